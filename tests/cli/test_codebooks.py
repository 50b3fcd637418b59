"""Codebooks give a schema its levels, order and wording; no record is read."""

import json
import sys
import tomllib

import numpy as np
import pytest

import privfield as pf
from privfield.cli import main
from privfield.data.table import open_table
from privfield.schema.codebook import read_codebook

pd = pytest.importorskip("pandas")
pyreadstat = pytest.importorskip("pyreadstat")

WORDING = {
    "A1": "Am indifferent to the feelings of others",
    "A2": "Trust others",
    "sex": "Sex",
    "city": "Where do you live?",
    "age": "Age in years",
}
FRAME = {
    "A1": [1.0, 2, 6, 99, np.nan, 3],
    "A2": [1.0, 2, 3, 3, 2, 1],
    "sex": ["m", "f", "m", "x", "", "f"],
    "city": [1.0, 2, 1, 2, 1, 2],
    "age": [20.0, 30, 40, 50, 60, 70],
}
LABELS = {
    "A1": {1: "never", 6: "always", 99: "no answer"},
    "A2": {1: "no", 2: "so so", 3: "yes"},
    "sex": {"m": "Male", "f": "Female"},
    "city": {1: "Basel", 2: "Bern"},
}


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    path = tmp_path_factory.mktemp("survey") / "survey.sav"
    pyreadstat.write_sav(
        pd.DataFrame(FRAME),
        str(path),
        column_labels=[WORDING[name] for name in FRAME],
        variable_value_labels=LABELS,
        missing_ranges={"A1": [{"lo": 90, "hi": 99}]},
        variable_measure={"A1": "ordinal", "A2": "scale", "city": "nominal"},
    )
    return path


def test_all_labels_of_a_codebook_may_be_called_scales(survey, tmp_path):
    """Where nobody said that variables are ordinal, `--ordered` does; others wait for levels."""
    target = tmp_path / "s.toml"
    assert main(["init", str(survey), "--ordered", "-o", str(target)]) == 0
    found = tomllib.loads(target.read_text())["variables"]
    assert found["city"]["levels"] == ["Basel", "Bern"] and found["city"]["ordered"]
    assert found["city"]["gap"] and found["A1"]["ordered"] and found["A1"]["levels"][0] == "1"


def test_an_spss_file_says_levels_order_wording_and_missing_codes(survey):
    schema = pf.Schema.from_codebook(survey)
    assert schema.names == ("A1", "A2", "sex", "city")  # of age nothing is said
    assert schema["A1"].answers == tuple("123456") and schema["A1"].kind == "ordered"
    assert schema["A1"].missing == "no answer" and schema["A1"].has_gap  # 99 is no level
    assert schema["A1"].missing_codes == tuple(map(str, range(90, 100)))
    assert not schema["sex"].has_gap and not schema["sex"].missing_codes
    assert schema["A1"].question == f"{WORDING['A1']} (1 = never, 6 = always)"
    assert schema["A2"].answers == ("no", "so so", "yes") and schema["A2"].kind == "ordered"
    assert schema["sex"].levels == ("Female", "Male") and schema["sex"].kind == "levels"
    assert schema["city"].levels == ("Basel", "Bern") and schema["city"].kind == "levels"
    columns, _ = read_codebook(str(survey))
    assert columns[0].declared_missing == ("90 to 99",)
    assert pf.Schema.from_toml(schema.to_toml())["A1"].question == schema["A1"].question


def test_no_record_is_read(survey, tmp_path, call):
    """A file whose data part is gone, and one whose data part is rubbish, still give a schema."""
    whole = survey.read_bytes()
    end = whole.index((999).to_bytes(4, "little")) + 8  # what ends the dictionary of an SPSS file
    for name, rest in (("gone.sav", b""), ("rubbish.sav", b"\xff" * (len(whole) - end))):
        path = tmp_path / name
        path.write_bytes(whole[:end] + rest)
        target = tmp_path / f"{name}.toml"
        code, out, err = call("init", path, "-o", target)
        assert code == 0 and "5 columns, from the codebook only" in out, err
        assert "1 column with codes for no answer (90 to 99)" in err and "  age" in err
        assert "read as their first level: sex, city.\nWith --gaps level" in err
        text = target.read_text()
        assert 'question = "Age in years"\nlevels = []  # FILL IN' in text
        assert pf.Schema.from_codebook(path) == pf.Schema.from_codebook(survey)
    code, _, err = call("init", survey, "--gaps", "level", "-o", tmp_path / "level.toml")
    assert code == 0 and "first level" not in err
    with pytest.raises(pf.InputError, match="damaged") as caught:  # who wants records needs them
        list(open_table(str(tmp_path / "gone.sav"), pf.Schema.from_codebook(survey)).source.read())
    assert caught.value.__context__ is None


def test_a_stata_file(tmp_path, call):
    path = tmp_path / "survey.dta"
    labels = {"A1": {1: "never", 6: "always"}, "A2": LABELS["A2"]}
    frame = pd.DataFrame({"A1": [1.0, 2, 6], "A2": [1, 2, 3], "sex": ["m", "f", "m"]})
    pyreadstat.write_dta(frame, str(path), variable_value_labels=labels)
    columns, _ = read_codebook(str(path))
    assert columns[0].levels == () and "(1 = never, 6 = always)" in columns[0].question
    assert columns[1].levels == ("no", "so so", "yes") and not columns[1].ordered
    assert "--ordered takes all so" in call("init", path, "-o", tmp_path / "a.toml")[2]
    code, _, err = call("init", path, "--ordered", "-o", tmp_path / "b.toml")
    assert code == 0 and "takes all so" not in err
    assert "answers in words as scales, in the order of their codes: A2." in err
    item = tomllib.loads((tmp_path / "b.toml").read_text())["variables"]["A1"]
    assert item["levels"] == list("123456") and item["ordered"]


def _labelled(tmp_path, name, labels, measure):
    path = tmp_path / name
    rows = min(map(len, labels.values()))
    frame = pd.DataFrame({a: [float(code) for code in b][:rows] for a, b in labels.items()})
    if name.endswith(".dta"):
        pyreadstat.write_dta(frame, str(path), variable_value_labels=labels)
    else:
        pyreadstat.write_sav(
            frame,
            str(path),
            variable_value_labels=labels,
            variable_measure=dict.fromkeys(labels, measure),
        )
    return path


LEVELS = {  # labels, measure: levels
    "ends": ({1: "never", 6: "always"}, "ordinal", tuple("123456")),
    "ends and middle": ({1: "never", 4: "at times", 7: "always"}, "scale", tuple("1234567")),
    "all": ({1: "no", 2: "so so", 3: "yes"}, "ordinal", ("no", "so so", "yes")),
    "ends and no answer": ({1: "never", 6: "always", 9: "no answer"}, "ordinal", ()),
    "all and no answer": ({1: "no", 2: "so so", 3: "yes", 99: "no answer"}, "ordinal", ()),
    "no answer below": ({-9: "no answer", 1: "no", 2: "so so", 3: "yes"}, "scale", ()),
    "no answer alone": ({9: "no answer"}, "nominal", ()),
    "no answer twice alone": ({-9: "refused", -8: "don't know"}, "scale", ()),
    "no answer as far away": ({1: "never", 5: "always", 9: "no answer"}, "ordinal", ()),
    "no answer next to them": ({1: "no", 2: "so so", 3: "yes", 4: "keine Angabe"}, "ordinal", ()),
    "no answer of three kinds": (
        {0: "never", 10: "always", 77: "Refusal", 88: "Don't know", 99: "No answer"},
        "ordinal",
        (),
    ),
    "unsure": ({1: "no", 2: "don't know", 3: "yes"}, "ordinal", ("no", "don't know", "yes")),
    "not at all": ({1: "not at all", 2: "no", 3: "yes"}, "ordinal", ("not at all", "no", "yes")),
    "a slider": ({0: "none", 100: "worst"}, "scale", ()),
    "towns": ({1: "Bern", 41: "Basel", 99: "no answer"}, "nominal", ("Bern", "Basel", "no answer")),
}


@pytest.mark.parametrize("case", LEVELS)
def test_labels_of_codes_with_gaps(case, tmp_path):
    """What may be a code for no answer is no level of a scale, and no scale has two points only."""
    labels, measure, levels = LEVELS[case]
    path = _labelled(tmp_path, "s.sav", {"a": labels}, measure)
    (column,), remarks = read_codebook(str(path))
    assert column.levels == levels and column.ordered == (measure != "nominal" and bool(levels))
    assert bool(remarks) == ("no answer" in case and "alone" not in case)


@pytest.mark.parametrize("name", ["s.sav", "s.dta"])
def test_codes_for_no_answer_that_have_a_label(name, tmp_path, call):
    """They were not declared missing: `init` says how to, and then the scale is one."""
    codes = {1: "never", 6: "always", 9: "no answer"}
    path = _labelled(tmp_path, name, {"a": codes, "b": codes}, "ordinal")
    command = ("init", path, "--ordered", "-o", tmp_path / "s.toml", "--force")
    code, _, err = call(*command)
    assert code == 0 and "(codes 1, 6, 9 of a), so their levels are left open" in err
    assert "add --missing 9." in err and "Fill in what 2 columns may hold" in err
    code, _, err = call(*command, "--missing", "9")
    assert code == 0 and "left open" not in err and "Fill in" not in err
    schema = pf.Schema.read(tmp_path / "s.toml")
    assert schema["a"].answers == tuple("123456") and schema["a"].has_gap
    batches = list(open_table(str(path), schema).batches())
    assert batches[0].columns[0].tolist() == [0, 5, 6]  # 9 is the gap, after six levels


def test_all_codes_that_may_mean_no_answer_are_named(tmp_path, call):
    """Of all items at once, and where one of them is a level of another item, of which one."""
    ends, other = {0: "never", 10: "always"}, {1: "no", 2: "so so", 3: "yes"}
    labels = {"a": ends | {77: "Refusal", 99: "No answer"}, "b": other | {8: "Don't know"}}
    path = _labelled(tmp_path, "s.sav", {**labels, "c": ends}, "ordinal")
    command = ("init", path, "-o", tmp_path / "s.toml", "--force")
    told = call(*command)[2]
    assert "(codes 0, 10, 77, 99 of a)" in told
    assert "If 77, 99, 8 mean no answer, add --missing 77,99,8." in told
    told = call(*command, "--missing", "77,99,8")[2]
    assert "--missing: '8' is a level of 'a', so it cannot mean no answer." in told
    code, _, told = call(*command, "--missing", "77,99")
    assert code == 0 and "If 8 means no answer" in told
    found = tomllib.loads((tmp_path / "s.toml").read_text())["variables"]
    assert found["a"]["levels"] == list(map(str, range(11))) and not found["b"]["levels"]


def test_missing_values_of_stata_are_no_answers(tmp_path, call):
    """.a to .z may have labels: they are gaps, not one more level at the end of the scale."""
    path = tmp_path / "s.dta"
    labels = {"a": {1: "never", 5: "always", "a": "refused", "b": "not asked"}, "b": {"a": "none"}}
    frame = pd.DataFrame({"a": [1, 5, 2, "a", "b", 3], "b": [1, 2, 3, 4, 5, "a"]}, dtype=object)
    tagged = {"a": ["a", "b"], "b": ["a"]}
    pyreadstat.write_dta(frame, str(path), variable_value_labels=labels, missing_user_values=tagged)
    code, _, err = call("init", path, "--ordered", "-o", tmp_path / "s.toml")
    assert code == 0 and "2 columns with codes for no answer (.a, .b)" in err
    text = tomllib.loads((tmp_path / "s.toml").read_text())["variables"]
    assert text["a"]["levels"] == list("12345") and text["a"]["gap"] and not text["b"]["levels"]
    schema = pf.Schema({"a": pf.Ordered(range(1, 6))}, gaps={"a": "no answer"})
    batches = list(open_table(str(path), schema).batches())
    assert batches[0].columns[0].tolist() == [0, 4, 1, 5, 5, 2]


def test_labels_that_are_the_numbers_of_the_codes_turned_round(tmp_path):
    """A value is read as its label where all labels are levels."""
    turned = {1: "3", 2: "2", 3: "1"}
    path = _labelled(tmp_path, "s.sav", {"a": turned}, "ordinal")
    schema = pf.Schema.from_codebook(path)
    assert schema["a"].answers == ("3", "2", "1")
    assert next(open_table(str(path), schema).batches()).columns[0].tolist() == [0, 1, 2]


def test_codes_that_are_words_have_no_order(tmp_path):
    path, labels = tmp_path / "s.sav", {"lo": "Low", "mid": "Mid", "hi": "High"}
    digits = {"1": "Low", "2": "Mid", "3": "High"}
    pyreadstat.write_sav(
        pd.DataFrame({"a": ["lo", "mid", "hi"], "b": ["1", "2", "3"]}),
        str(path),
        variable_value_labels={"a": labels, "b": digits},
        variable_measure={"a": "ordinal", "b": "ordinal"},
    )
    (a, b), _ = read_codebook(str(path))
    assert not a.ordered and a.levels == ("High", "Low", "Mid")
    assert b.ordered and b.levels == ("Low", "Mid", "High")


def test_only_a_scale_has_a_middle(tmp_path, call):
    labels = {"a": {1: "never", 6: "always"}, "b": {1: "no", 2: "yes"}}
    path = _labelled(tmp_path, "s.sav", labels, "ordinal")
    town = _labelled(tmp_path, "t.sav", {"town": {1: "Bern", 2: "Basel", 3: "Chur"}}, "nominal")
    assert call("init", path, "--gaps", "middle", "-o", tmp_path / "s.toml")[0] == 0
    found = pf.Schema.read(tmp_path / "s.toml")
    assert found["a"].missing == "3" and found["b"].missing == "no"
    assert call("init", town, "--gaps", "middle", "-o", tmp_path / "t.toml")[0] == 0
    assert pf.Schema.read(tmp_path / "t.toml")["town"].missing == "Bern"  # as if nothing was said


def test_without_pyreadstat_one_sentence_says_what_to_install(survey, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(pf.InputError, match=r"pip install 'privfield\[survey\]'"):
        pf.Schema.from_codebook(survey)


FRICTIONLESS = {
    "fields": [
        {
            "name": "A1",
            "title": "I trust",
            "type": "integer",
            "constraints": {"minimum": 1, "maximum": 5},
        },
        {"name": "site", "type": "string", "constraints": {"enum": ["Basel", "Bern"]}},
        {
            "name": "mood",
            "type": "integer",
            "categories": [
                {"value": 0, "label": "bad"},
                {"value": 1},
                {"value": 2, "label": "good"},
            ],
            "categoriesOrdered": True,
        },
        {"name": "smoker", "type": "boolean", "falseValues": ["N"], "trueValues": ["Y"]},
        {"name": "income", "type": "number"},
    ]
}


@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: {"resources": [{"schema": s}]}])
def test_a_frictionless_table_schema(tmp_path, wrap, call):
    path = tmp_path / "package.json"
    path.write_text(json.dumps(wrap(FRICTIONLESS)))
    schema = pf.Schema.from_codebook(path)
    assert schema["A1"].answers == tuple("12345") and schema["A1"].kind == "ordered"
    assert schema["A1"].question == "I trust" and schema["A1"].has_gap
    assert schema["site"].levels == ("Basel", "Bern") and schema["site"].kind == "levels"
    assert schema["mood"].answers == ("0", "1", "2") and schema["mood"].kind == "ordered"
    assert schema["mood"].question == "(0 = bad, 2 = good)"
    assert schema["smoker"].levels == ("N", "Y") and "income" not in schema.names
    code, out, err = call("init", path, "-o", tmp_path / "s.toml")
    assert code == 0 and "5 columns" in out and "privfield check <table>" in err


def test_missing_values_of_a_frictionless_schema_are_no_answers(tmp_path, call):
    """As Table Schema 2.0 has it: those of a field come before those of all fields."""
    scale = {"type": "integer", "constraints": {"minimum": 1, "maximum": 9}}
    refused = [{"value": 8, "label": "refused"}, 9]
    book = {
        "fields": [
            {"name": "A1", "type": "integer", "constraints": {"minimum": 1, "maximum": 6}},
            {"name": "A2", **scale, "missingValues": refused},
            {"name": "site", "constraints": {"enum": ["Basel", "Bern", "-"]}, "missingValues": "-"},
            {"name": "ward", "constraints": {"enum": ["a", "b", "99"]}},
        ],
        "missingValues": ["", "99"],
    }
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(book))
    schema = pf.Schema.from_codebook(path)
    assert schema["A1"].answers == tuple("123456") and schema["A1"].missing_codes == ("99",)
    assert schema["A2"].answers == tuple("1234567") and schema["A2"].missing_codes == ("8", "9")
    assert schema["site"].levels == ("Basel", "Bern", "-")  # no list: nothing is declared
    assert schema["ward"].answers == ("a", "b") and schema["ward"].missing == "no answer"
    code, _, err = call("init", path, "-o", tmp_path / "s.toml")
    assert code == 0 and "3 columns with codes for no answer (99, 8, 9)" in err
    (tmp_path / "a.csv").write_text("A1,A2,site,ward\n99,9,Bern,99\n7,8,-,a\n6,1,Basel,b\n")
    written = pf.Schema.read(tmp_path / "s.toml")
    for name, counts in {"A1": [0] * 5 + [1, 2], "A2": [1] + [0] * 6 + [2]}.items():
        table = pf.measure(tmp_path / "a.csv", written, [(name,)], pf.NON_PRIVATE).tables[0]
        assert table.tolist() == counts  # neither 7 nor 99 is an answer


def test_sdv_metadata(tmp_path, call):
    columns = {
        "id": {"sdtype": "id"},
        "mood": {"sdtype": "categorical", "order": ["bad", "so so", "good"]},
        "smoker": {"sdtype": "boolean"},
        "city": {"sdtype": "categorical"},
    }
    one = {"columns": columns, "primary_key": "id", "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1"}
    for number, text in enumerate((one, {"tables": {"people": one}})):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(text))
        schema = pf.Schema.from_codebook(path)
        assert schema.names == ("mood", "smoker") and schema["mood"].kind == "ordered"
        code, out, err = call("init", path, "-o", tmp_path / f"{number}.toml")
        assert code == 0 and "3 columns" in out and "'id' tells rows apart" in err
    with pytest.raises(pf.InputError, match="no codebook of one table"):
        path.write_text(json.dumps({"tables": {"a": one, "b": one}}))
        pf.Schema.from_codebook(path)


@pytest.mark.parametrize("most", [2**64 - 1, 10**400])
def test_ends_that_are_far_apart_say_nothing(tmp_path, most):
    """They ended `init` with a traceback."""
    ends = {"minimum": 1, "maximum": most}
    scale = {"name": "a", "type": "integer", "constraints": ends}
    fields = [scale, {"name": "b", "type": "boolean"}]
    (tmp_path / "x.json").write_text(json.dumps({"fields": fields}))
    assert pf.Schema.from_codebook(tmp_path / "x.json").names == ("b",)


def test_what_cannot_be_a_level_is_named_with_its_column(tmp_path):
    (tmp_path / "x.json").write_text('{"columns": {"mood": {"order": ["bad", null]}}}')
    with pytest.raises(pf.InputError, match=r"^path: .*: column 'mood': a level must be text"):
        pf.Schema.from_codebook(tmp_path / "x.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", '{"fields": [3]}', '{"columns": {"a": 3}}'])
def test_other_json_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(pf.InputError, match=r"^path: "):
        pf.Schema.from_codebook(tmp_path / "x.json")
