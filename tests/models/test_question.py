"""Questions as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privfield as pf
from privfield.models.question import Question, read_question

SCHEMA = pf.Schema(
    {
        "smoker": ["no", "yes"],
        "low mood": ["no", "yes, often", "yes"],
        "age": pf.Bins([0, 18, 40, 65]),
        "a=b|c": ["x | y", "x"],
        "age group": ["and", "old and wise"],
    }
)


@pytest.mark.parametrize(
    ("text", "event", "given_"),
    [
        ("P(smoker=yes)", {"smoker": "yes"}, {}),
        ("smoker=yes", {"smoker": "yes"}, {}),
        ("P(smoker=yes | age=40-65)", {"smoker": "yes"}, {"age": "40-65"}),
        ("p( smoker = yes|age == 40-65 )", {"smoker": "yes"}, {"age": "40-65"}),
        ("Pr[low mood=yes | smoker=no]", {"low mood": "yes"}, {"smoker": "no"}),
        ("P(low mood=yes, often, smoker=no)", {"low mood": "yes, often", "smoker": "no"}, {}),
        ('P("low mood"="yes" & smoker=no)', {"low mood": "yes", "smoker": "no"}, {}),
        ("P(a=b|c=x | y | smoker=yes)", {"a=b|c": "x | y"}, {"smoker": "yes"}),
        ("P(a=b|c=x | smoker=yes)", {"a=b|c": "x"}, {"smoker": "yes"}),
        (
            "P(age group=old and wise and age=0-18)",
            {"age group": "old and wise", "age": "0-18"},
            {},
        ),
        ("P(age group=and and smoker=no)", {"age group": "and", "smoker": "no"}, {}),
    ],
)
def test_what_is_read(text, event, given_):
    assert read_question(text, SCHEMA) == Question(event, given_)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("P(smokr=yes)", "there is no variable 'smokr'. Did you mean 'smoker'?"),
        ("P(Smoker=yes)", "Did you mean 'smoker'?"),
        ("P(smoker=ys | age=40-65)", "'smoker' has no level 'ys'. Did you mean 'yes'? Its levels"),
        ("P(smoker=yes | age=40-64)", "'age' has no level '40-64'. Did you mean '40-65'?"),
        ("P(smoker)", "'smoker' needs a level, such as smoker=yes"),
        ("P()", "it is empty"),
        ("", "it is empty"),
        ("hello", "cannot read 'hello'"),
        ("P(smoker=yes | smoker=no)", "both sides"),
        ("P(smoker=yes, smoker=no)", "twice"),
        ("P(smoker=yes | age=0-18 | low mood=no)", "cannot read '| low mood=no'"),
        ("P(smoker=yes |)", "cannot read"),
        ("P(zzz=1)", "there is no variable 'zzz'. The model has 'smoker'"),
    ],
)
def test_mistakes_are_told_with_what_was_meant(text, told):
    with pytest.raises(pf.InputError) as error:
        read_question(text, SCHEMA)
    assert told in str(error.value)


def test_a_typo_after_many_conditions_is_found_at_once():
    """Every condition can be read in one way only; two ways each would take for ever."""
    schema = pf.Schema({f"v{i}": ["no", "yes"] for i in range(200)})
    many = ", ".join(f"v{i}=yes" for i in range(40))
    assert len(read_question(f"P({many} | v100==no)", schema).event) == 40
    with pytest.raises(pf.InputError, match="'v100' has no level 'nope'"):
        read_question(f"P({many} | v100=nope)", schema)


def test_more_conditions_than_python_has_frames():
    schema = pf.Schema({f"v{i}": ["no", "yes"] for i in range(1500)})
    many = [f"v{i}=yes" for i in range(1, 1500)]
    assert len(read_question(f"P(v0=no | {', '.join(many)})", schema).given) == 1499
    with pytest.raises(pf.InputError, match="'v7' has no level 'nope'"):
        read_question(f"P(v0=no | {', '.join(many[7:])}, v7=nope)", schema)
    with pytest.raises(pf.InputError, match="'age' is there twice"):
        read_question(f"P({', '.join(['age=40-65'] * 1500)})", SCHEMA)


WORDS = st.text("ab =|,&'\"P()", min_size=1, max_size=5).filter(lambda w: w.strip() == w)


@given(st.lists(WORDS, min_size=1, max_size=3, unique=True), st.data())
def test_any_one_condition_reads_back_whatever_the_names_hold(names, data):
    """One variable and level: what `Question` prints is read as a question that prints the same."""
    levels = st.lists(WORDS, min_size=1, max_size=3, unique=True)
    schema = pf.Schema({name: data.draw(levels) for name in names})
    name = data.draw(st.sampled_from(names))
    asked = Question({name: data.draw(st.sampled_from(schema[name].levels))}, {})
    assert str(read_question(str(asked), schema)) == str(asked)
