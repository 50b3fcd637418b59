"""Schemas: what they accept, what they refuse, and TOML that gives the same schema back."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privfield as pf
from privfield.learners.base import attach_card

EXAMPLE = pf.Schema(
    {"smoker": ["no", "yes"], "age": pf.Bins([0, 18, 40, 65, 120]), "low mood": 12},
    missing={"smoker": "yes"},
    unknown={"low mood": 3},
    forbidden=[{"age": ["0-18", "18-40"], "smoker": "yes"}],
    unit=pf.Person("patient id", rows=5),
)


def test_names_shape_levels_and_rules():
    assert EXAMPLE.names == ("smoker", "age", "low mood")
    assert EXAMPLE.shape == (2, 4, 12)
    assert EXAMPLE["age"].levels == ("0-18", "18-40", "40-65", "65-120")
    assert (EXAMPLE["smoker"].missing, EXAMPLE["smoker"].unknown) == ("yes", "no")
    assert (EXAMPLE["age"].missing, EXAMPLE["age"].unknown) == ("0-18", None)
    assert EXAMPLE["low mood"].unknown == "3"
    assert EXAMPLE.cells(["age", "low mood"]) == 48
    assert EXAMPLE.forbidden == ((("age", ("0-18", "18-40")), ("smoker", ("yes",))),)


def test_levels_may_be_numbers_and_truth_values():
    assert pf.Schema({"a": np.int64(3)}).shape == (3,)
    schema = pf.Schema({"a": [1, 2.5, True, np.int64(4)], "b": range(3), "c": np.array(["x", "y"])})
    assert schema["a"].levels == ("1", "2.5", "true", "4")
    assert schema["b"].levels == ("0", "1", "2")
    assert schema["c"].levels == ("x", "y")
    assert schema["a"].code(2.5) == 1 and schema["a"].code("4") == 3


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ([0, 0.5, 1], ("0-0.5", "0.5-1")),
        ([-5, 0, 5], ("-5 to 0", "0-5")),
        ([-math.inf, 0, 10, math.inf], ("<0", "0-10", ">=10")),
        ([1e20, 2e20], ("1e+20 to 2e+20",)),
        ([-math.inf, math.inf], ("any",)),
    ],
)
def test_bin_labels(edges, labels):
    assert pf.Bins(edges).labels == labels


def test_written_toml_explains_every_key_and_reads_back(tmp_path):
    path = tmp_path / "schema.toml"
    EXAMPLE.write(path)
    assert pf.Schema.read(path) == EXAMPLE
    text = path.read_text()
    comments = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    for key in (
        "protects",
        "rows",
        "levels",
        "number",
        "bins",
        "missing",
        "unknown",
        "Combinations",
    ):
        assert key in comments
    assert 'missing = "0-18"' in text and 'unknown = "nearest"' in text  # spelled out


names = st.text(min_size=1, max_size=12).filter(lambda s: s.strip() and _writable(s))
levels = st.lists(
    st.text(max_size=8).filter(lambda s: _writable(s)), min_size=1, max_size=5, unique=True
)
edges = st.lists(
    st.floats(allow_nan=False), min_size=2, max_size=5, unique_by=lambda x: x + 0.0
).map(sorted)


def _writable(text):
    return not any(0xD800 <= ord(c) <= 0xDFFF for c in text)


@st.composite
def schemas(draw):
    variables = draw(
        st.dictionaries(
            names,
            st.one_of(levels, levels.map(pf.Ordered), st.integers(1, 300), edges.map(pf.Bins)),
            min_size=1,
            max_size=4,
        )
    )
    plain = pf.Schema(variables)
    rules = [
        {v.name: draw(st.sampled_from(v.levels)) for v in plain.variables if draw(st.booleans())}
        for _ in range(2)
    ]
    rule = {v.name: draw(st.sampled_from(v.levels)) for v in plain.variables}
    possible = any(len(v.levels) > 1 for v in plain.variables)
    person = draw(st.one_of(st.none(), st.integers(1, 10**6), st.just("share")))
    unit = None if person is None else pf.Person("\tid", None if person == "share" else person)
    return pf.Schema(
        variables,
        missing=rules[0],
        unknown=rules[1],
        forbidden=[rule] if possible and draw(st.booleans()) else [],
        unit=unit if "\tid" not in variables else None,
    )


@given(schemas())
def test_toml_round_trip(schema):
    assert pf.Schema.from_toml(schema.to_toml()) == schema


def test_ordered_levels():
    scale = pf.Schema({"a": pf.Ordered(range(1, 7)), "b": pf.Ordered(["never", "often"])})
    assert scale["a"].levels == ("1", "2", "3", "4", "5", "6")
    assert scale["a"].kind == "ordered" and scale["a"].is_ordered
    assert scale["a"].unknown is None and scale["b"].unknown == "never"  # names have no nearest
    assert "ordered = true" in scale.to_toml()
    plain = pf.Schema({"a": ["1", "2", "3"], "c": pf.Bins([0, 1, 2, 3]), "n": 3, "two": 2})
    assert [v.is_ordered for v in plain.variables] == [False, True, False, True]
    for wrong, said in (("abc", "list"), (7, "list"), ({"a"}, "list"), ([None], "level")):
        with pytest.raises(pf.InputError, match=said):
            pf.Ordered(wrong)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("number = 3\nordered = true", "goes with levels"),
        ('levels = ["a", "b"]\nordered = "yes"', "goes with levels"),
        ('levels = ["a", "b"]\nordered = true\nunknown = "nearest"', "no level 'nearest'"),
    ],
)
def test_what_cannot_be_ordered(lines, said):
    with pytest.raises(pf.InputError, match=said):
        pf.Schema.from_toml(f"format = 1\n[variables.a]\n{lines}\n")


BAD = [
    (lambda: pf.Schema({}), "at least one name"),
    (lambda: pf.Schema(["a"]), "must be a mapping"),
    (lambda: pf.Schema({"": 2}), "variable name must be non-empty"),
    (lambda: pf.Schema({3: 2}), "variable name must be non-empty text; got 3"),
    (lambda: pf.Schema({"a": []}), "'a' must have between 1 and 65,535 levels; got 0"),
    (lambda: pf.Schema({"a": 65_536}), "between 1 and 65,535 levels; got 65,536"),
    (lambda: pf.Schema({"a": range(70_000)}), "got 70,000"),
    (lambda: pf.Schema({"a": -1}), "got -1"),
    (
        lambda: pf.Schema({"a": "yes"}),
        "must be a list of levels, pf.Ordered, pf.Bins or a number.*got str",
    ),
    (lambda: pf.Schema({"a": True}), "got bool"),
    (lambda: pf.Schema({"a": 2.0}), "got float"),
    (lambda: pf.Schema({"a": ["x", "x"]}), "'a' lists a level twice"),
    (lambda: pf.Schema({"a": [1, "1"]}), "'a' lists a level twice"),
    (lambda: pf.Schema({"a": [None]}), "a level must be text.*got NoneType"),
    (lambda: pf.Schema({"a": [math.nan]}), "a level must be text"),
    (lambda: pf.Schema({"a": 2}, missing={"b": "0"}), "missing names 'b', which is not a variable"),
    (
        lambda: pf.Schema({"a": 2}, unknown={"a": "7"}),
        "'a' has no level '7'; its levels are '0', '1'",
    ),
    (lambda: pf.Schema({"a": 2}, missing="0"), "missing must map"),
    (lambda: pf.Schema({"a": {"x", "y"}}), "must be a list of levels.*got set"),
    (lambda: pf.Schema({"a": ["\ud800"]}), "cannot be written as UTF-8"),
    (lambda: pf.Schema({"\ud800": 2}), "cannot be written as UTF-8"),
    (lambda: pf.Schema({"a": 2}, forbidden=[{"a": [0, 1]}]), "leaves nothing possible"),
    (lambda: pf.Schema({"a": 2}, forbidden=None), "forbidden must be a list"),
    (lambda: pf.Bins("12"), "edges must be numbers|at least two"),
    (lambda: pf.Schema({"a": 2}, forbidden=[{}]), "each forbidden combination"),
    (lambda: pf.Schema({"a": 2}, forbidden=[{"b": 0}]), "no variable 'b'"),
    (lambda: pf.Schema({"a": 2}, forbidden=[{"a": []}]), "at least one level"),
    (lambda: pf.Schema({"a": 2}, unit="person"), "unit must be None or a pf.Person; got str"),
    (lambda: pf.Schema({"a": 2}, unit=pf.Person("a")), "person id 'a' cannot also be a variable"),
    (lambda: pf.Person("id", rows=0), "rows must be None or an int from 1; got 0"),
    (lambda: pf.Person("id", rows=True), "rows must be None or an int"),
    (lambda: pf.Person(""), "column must be non-empty"),
    (lambda: pf.Bins([1]), "at least two edges"),
    (lambda: pf.Bins([1, 1]), "edges must rise strictly"),
    (lambda: pf.Bins([0, math.nan]), "edges must rise strictly"),
    (lambda: pf.Bins(["a", 1]), "edges must be numbers"),
    (lambda: pf.Bins(3), "edges must be numbers"),
    (lambda: EXAMPLE.clique(["age", "age"]), "names a variable twice"),
    (lambda: EXAMPLE.clique(["agee"]), "no variable 'agee'; the schema has 'smoker', 'age'"),
    (lambda: EXAMPLE.clique("age"), "a clique must be a tuple"),
    (lambda: EXAMPLE["smoker"].code("maybe"), "no level 'maybe'; its levels are 'no', 'yes'"),
]


@pytest.mark.parametrize(("make", "text"), BAD, ids=[text for _, text in BAD])
def test_bad_schemas_are_refused_in_words(make, text):
    with pytest.raises(pf.InputError, match=text):
        make()


GOOD_TOML = 'format = 1\n[variables.a]\nlevels = ["x"]\n'
BAD_TOML = [
    ("format = ", "is not valid TOML"),
    ("[variables.a]\nnumber = 2\n", "format must be 1; got None"),
    ("format = 2\n", "format must be 1; got 2"),
    ("format = 1\n", r"at least one \[variables.NAME\]"),
    ("format = 1\nvariable = 3\n", "unknown key 'variable'; legal keys are format"),
    ("format = 1\n[variables]\na = 3\n", "must be a section"),
    ("format = 1\n[variables.a]\nnumber = 2\nbins = [1, 2]\n", "exactly one of"),
    ("format = 1\n[variables.a]\nmissing = 'x'\n", "exactly one of"),
    ("format = 1\n[variables.a]\nbins = [1]\n", r"\[variables.a\]: Bins: at least two edges"),
    ("format = 1\n[variables.a]\nnumber = 2.5\n", "number must be a whole number"),
    ("format = 1\n[variables.a]\nlevels = 'yes'\n", "levels must be a list"),
    ("format = 1\n[variables.a]\nnumber = 2\nmising = '0'\n", "unknown key 'mising'"),
    (GOOD_TOML + "unknown = 'nearest'\n", "no level 'nearest'"),
    (GOOD_TOML + "[unit]\nprotects = 'day'\n", "'row' or 'person'|\"row\" or \"person\""),
    (GOOD_TOML + "[unit]\nprotects = 'person'\n", "needs id and rows"),
    (GOOD_TOML + "[unit]\nid = 'p'\n", "go with protects"),
    (GOOD_TOML + "[unit]\nprotects = 'person'\nid = 'p'\nrows = 'all'\n", "rows must be None or"),
    (GOOD_TOML + "[forbidden]\na = 'x'\n", r"\[\[forbidden\]\] sections"),
]


@pytest.mark.parametrize(("text", "message"), BAD_TOML, ids=[m for _, m in BAD_TOML])
def test_bad_schema_files_are_refused_with_their_name(tmp_path, text, message):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(pf.InputError, match=message) as caught:
        pf.Schema.read(path)
    assert "schema.toml" in str(caught.value)


def test_files_that_are_not_there_or_not_text(tmp_path):
    with pytest.raises(pf.InputError, match="there is no schema file"):
        pf.Schema.read(tmp_path / "none.toml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(pf.InputError, match="UTF-8"):
        pf.Schema.read(tmp_path / "binary")
    with pytest.raises(pf.InputError, match="UTF-8"):
        pf.Schema.read(tmp_path)
    with pytest.raises(pf.InputError, match=r"folder .* does not exist"):
        EXAMPLE.write(tmp_path / "no" / "schema.toml")


def test_a_byte_order_mark_is_fine(tmp_path):
    (tmp_path / "s.toml").write_text("\ufeff" + GOOD_TOML, encoding="utf-8")
    assert pf.Schema.read(tmp_path / "s.toml").names == ("a",)


def test_where_the_levels_come_from_is_kept_but_changes_no_schema(tmp_path):
    """It is said in the file, in what is derived, and on the card of whatever was learned."""
    told = pf.Schema({"a": ["no", "yes"], "b": 2}, levels_are_public=True)
    plain = pf.Schema({"a": ["no", "yes"], "b": 2})
    assert told == plain and hash(told) == hash(plain)
    told.write(tmp_path / "s.toml")
    assert "levels_are_public = true" in (tmp_path / "s.toml").read_text()
    again = pf.Schema.read(tmp_path / "s.toml")
    assert again.levels_are_public and again.given({"a": "no"}).levels_are_public
    assert "levels_are_public" not in plain.to_toml() and not plain.levels_are_public
    learner = pf.MarginalLearner(pf.PureDP(1), cliques=[("a", "b")], schema=again).fit(
        np.zeros((9, 2), int)
    )
    attach_card(learner)
    learner.model_.save(tmp_path / "m.pf")
    assert pf.load(tmp_path / "m.pf").card.levels_are_public
    assert pf.load(tmp_path / "m.pf").schema.levels_are_public
    with pytest.raises(pf.InputError, match="levels_are_public must be True or False; got 'yes'"):
        pf.Schema.from_toml(told.to_toml().replace("= true", '= "yes"'))


def test_schemas_are_values():
    assert pf.Schema({"a": 2}) == pf.Schema({"a": 2}) != pf.Schema({"a": 3})
    assert hash(pf.Schema({"a": 2})) == hash(pf.Schema({"a": 2}))
    with pytest.raises(AttributeError):
        pf.Schema({"a": 2}).unit = None
    with pytest.raises(pf.InputError, match="got Fraction"):
        pf.Schema({"a": [Fraction(1, 2)]})


NINES = 10**5000  # Python refuses to write or to read so many digits


@pytest.mark.parametrize(
    "make",
    [
        lambda: pf.Schema({"a": NINES}),
        lambda: pf.Schema({"a": -NINES}),
        lambda: pf.Schema({"a": [NINES]}),
        lambda: pf.Schema({"a": 3}, missing={"a": NINES}),
        lambda: pf.Schema({"a": 3}, forbidden=[{"a": NINES}]),
        lambda: pf.Bins([0, 10**400]),
        lambda: pf.Person("id", NINES),
        lambda: pf.ZCDP(NINES),
        lambda: pf.Schema.read("a\0b"),
        lambda: pf.Schema({"a": 2}).write("a\0b"),
        lambda: pf.load("a\0b"),
        lambda: pf.Ledger("a\0b", pf.PureDP(1)),
    ],
)
def test_numbers_and_names_that_python_cannot_write(make):
    with pytest.raises(pf.InputError):
        make()


@pytest.mark.parametrize(
    "line",
    [
        f"number = {'9' * 4400}",
        f"number = 0x{'f' * 5000}",
        f"bins = [0, 1{'0' * 400}]",
        f"levels = [0x{'f' * 5000}]",
        f"number = 3\nmissing = 0x{'f' * 5000}",
        f"levels = {'[' * 3000}{']' * 3000}",
        f"levels = {'{a=' * 3000}1{'}' * 3000}",
        f"{'a.' * 1500}b = 1",
        f"number = 3\n[unit]\nprotects = 'person'\nid = 'i'\nrows = 0x{'f' * 5000}",
        f"number = 3\n[[forbidden]]\na = 0x{'f' * 5000}",
    ],
)
def test_files_with_numbers_and_brackets_without_end(line):
    with pytest.raises(pf.InputError, match=r"^the schema"):
        pf.Schema.from_toml(f"format = 1\n[variables.a]\n{line}\n")
    with pytest.raises(pf.InputError, match=r"^the schema"):
        pf.Schema.from_toml(f"format = 0x{'f' * 5000}\n")


def test_wording_round_trips_and_plays_no_part():
    plain, worded = (
        pf.Schema({"a b": ["no", "yes"], "c": 3}, questions=questions)
        for questions in ({}, {"a b": 'Is it "so"?\nReally?'})
    )
    assert pf.Schema.from_toml(worded.to_toml())["a b"].question == 'Is it "so"?\nReally?'
    assert plain == worded and "question =" not in plain.to_toml()
    with pytest.raises(pf.InputError, match="questions names 'd'"):
        pf.Schema({"c": 3}, questions={"d": "?"})
    with pytest.raises(pf.InputError, match="the question of 'c' must be text; got int"):
        pf.Schema({"c": 3}, questions={"c": 7})


def test_wording_is_no_part_of_a_request():
    """A job is known by how rows are read: by the same words as before there was wording."""
    levels = {"a": ["no", "yes"], "b": pf.Bins([0, 1, 2])}
    worded = pf.Schema(levels, questions={"a": "Do you sleep well?"})
    assert worded.stated() == pf.Schema(levels).stated()
    fields = {"name", "levels", "kind", "missing", "unknown", "edges"}
    assert all(set(variable) == fields for variable in worded.stated()["variables"])


# -- gaps


def test_a_gap_is_a_further_level_and_missing_codes_are_read_as_it():
    schema = pf.Schema(
        {"a": pf.Ordered([1, 2, 3]), "b": ["m", "f"], "c": 4, "d": pf.Bins([0, 18, 65])},
        gaps={"a": "no answer", "b": "gap", "c": 9},
        missing_codes={"a": [99, -9], "b": ["x"], "d": [99]},
    )
    assert pf.Schema.from_toml(schema.to_toml()) == schema
    assert schema.shape == (4, 3, 5, 2) and schema.answered().shape == (3, 2, 4, 2)
    assert schema["a"].is_ordered and schema["b"].is_ordered and not schema["c"].is_ordered
    assert (schema["a"].unknown, schema["b"].unknown, schema["d"].missing) == (None, "gap", "0-18")
    stated = schema.stated()["variables"]
    assert stated[0]["has_gap"] and stated[1]["missing_codes"] == ("x",)
    assert "has_gap" not in stated[3] and "missing_codes" not in stated[2]
    among = schema.answered()
    assert not among.has_gaps and among["a"].missing == "2" and among.answered() is among
    assert pf.Schema.from_toml(among.to_toml()) == among


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"gaps": {"a": "1"}}, "lists a level twice"),
        ({"gaps": {"a": " "}}, "needs a name"),
        ({"gaps": {"a": "x"}, "missing": {"a": 1}}, "both a gap and a level"),
        ({"gaps": {"b": "x"}}, "gaps names 'b'"),
        ({"missing_codes": {"a": "99"}}, "must be a list"),
        ({"missing_codes": {"a": [1]}}, "'1' is a level of 'a'"),
    ],
)
def test_what_gaps_cannot_be(given, said):
    with pytest.raises(pf.InputError, match=said):
        pf.Schema({"a": pf.Ordered([1, 2, 3])}, **given)


def test_a_schema_of_some_variables(tmp_path):
    """Other columns are not read, as if they had never been listed."""
    never = [{"a": "1", "b": "x"}, {"a": "2", "c": "0"}]
    schema = pf.Schema(
        {"a": ["1", "2"], "b": ["x", "y"], "c": 2},
        unknown={"b": "y"},
        forbidden=never,
        unit=pf.Person("id", rows=1),
    )
    unit = pf.Person("id", rows=1)
    found = schema.only(["b", "a"])
    assert found == pf.Schema(
        {"b": ["x", "y"], "a": ["1", "2"]}, unknown={"b": "y"}, forbidden=never[:1], unit=unit
    )
    assert pf.Schema.from_toml(found.to_toml()) == found
    for names in ("a", [], ["a", "a"], ["nobody"], None):
        with pytest.raises(pf.InputError):
            schema.only(names)
