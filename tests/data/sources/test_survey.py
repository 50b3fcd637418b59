"""SPSS and Stata files are read as the table they were written from, batch after batch."""

import numpy as np
import pytest

import privfield as pf
from privfield.data.sources import survey as module
from privfield.data.table import open_table

pd = pytest.importorskip("pandas")
pyreadstat = pytest.importorskip("pyreadstat")

LABELS = {"mood": {0: "bad", 1: "so so", 2: "good"}, "sex": {"m": "Male", "f": "Female"}}
BY_LABEL = pf.Schema(
    {
        "mood": pf.Ordered(["bad", "so so", "good"]),
        "sex": ["Male", "Female"],
        "age": pf.Bins([0, 40, 90]),
    },
    missing={"mood": "so so", "sex": "Female"},
    unknown={"sex": "Female"},
)
BY_CODE = pf.Schema(
    {"mood": ["0", "1", "2"], "sex": ["m", "f"], "age": pf.Bins([0, 40, 90])},
    missing={"mood": "1", "sex": "f"},
    unknown={"sex": "f"},
)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    n = 1000
    frame = pd.DataFrame(
        {
            "name": [f"SECRET{i}" for i in range(n)],
            "mood": rng.choice([0.0, 1, 2, 9, np.nan], n),
            "sex": rng.choice(["m", "f", "?", ""], n),
            "age": rng.integers(1, 80, n).astype(float),
        }
    )
    mood = frame.mood.map({0: 0, 2: 2}).fillna(1)  # 9 is declared missing
    sex = (frame.sex != "m").astype(int)
    return frame, np.column_stack([mood, sex, frame.age >= 40]).astype(int)


@pytest.fixture(scope="module")
def files(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    frame, _ = people
    labels = {"mood": LABELS["mood"], "sex": LABELS["sex"]}
    pyreadstat.write_sav(
        frame, str(folder / "a.sav"), variable_value_labels=labels, missing_ranges={"mood": [9]}
    )
    pyreadstat.write_sav(
        frame,
        str(folder / "a.zsav"),
        compress=True,
        variable_value_labels=labels,
        missing_ranges={"mood": [9]},
    )
    plain = frame.assign(mood=frame.mood.replace(9, np.nan))
    pyreadstat.write_dta(
        plain, str(folder / "a.dta"), variable_value_labels={"mood": labels["mood"]}
    )
    return folder


def rows(table):
    return np.concatenate([np.column_stack(batch.columns) for batch in table.batches()])


@pytest.mark.parametrize("name", ["a.sav", "a.zsav", "a.dta"])
@pytest.mark.parametrize("schema", [BY_LABEL, BY_CODE])
def test_rows_are_those_that_were_written(files, people, name, schema, monkeypatch):
    if name == "a.dta" and schema is BY_LABEL:
        schema = pf.Schema.from_toml(
            schema.to_toml().replace('["Male", "Female"]', '["m", "f"]').replace('"Female"', '"f"')
        )  # Stata labels no texts
    monkeypatch.setattr(module, "batch_rows", lambda columns: 28)  # seven rows at a time
    table = open_table(str(files / name), schema)
    assert (rows(table) == people[1]).all()
    assert table.count_rows() == 1000
    assert "float" not in table.source.kinds[:2] or schema is BY_CODE  # labels are text
    assert max(batch.rows for batch in table.source.read()) == 7


def test_one_text_in_another_encoding_is_an_unknown_value(tmp_path):
    path = tmp_path / "a.sav"
    frame = pd.DataFrame({"é": ["abcd", "no", "yes"]})
    pyreadstat.write_sav(frame, str(path))
    schema = pf.Schema({"é": ["yes", "no"]})
    assert rows(open_table(str(path), schema)).ravel().tolist() == [0, 1, 0]
    path.write_bytes(path.read_bytes().replace(b"abcd", b"ab\xffd"))
    with pytest.raises(Exception, match="encoding"):
        pyreadstat.read_sav(str(path))
    assert rows(open_table(str(path), schema)).ravel().tolist() == [0, 1, 0]


def test_errors_say_nothing_of_records(files, tmp_path):
    whole = (files / "a.sav").read_bytes()
    path = tmp_path / "short.sav"
    path.write_bytes(whole[: len(whole) - 500])
    with pytest.raises(pf.InputError, match="damaged") as caught:
        rows(open_table(str(path), BY_CODE))
    assert "SECRET" not in str(caught.value)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    with pytest.raises(pf.InputError, match="lacks 1 column of the schema: 'height'") as caught:
        open_table(str(files / "a.sav"), pf.Schema({"height": 3}))
    assert "SECRET" not in str(caught.value)


def test_dates_are_refused_by_their_type(tmp_path):
    path = tmp_path / "d.sav"
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    pyreadstat.write_sav(frame, str(path))
    with pytest.raises(pf.InputError, match="column 'day' has type date"):
        open_table(str(path), pf.Schema({"day": ["a", "b"]}))


def test_several_files_are_one_table_and_kinds_do_not_mix(files, people, tmp_path):
    for number in range(2):
        (tmp_path / f"{number}.sav").write_bytes((files / "a.sav").read_bytes())
    found = rows(open_table(str(tmp_path), BY_CODE))
    assert (found == np.concatenate([people[1]] * 2)).all()
    (tmp_path / "2.csv").write_text("mood,sex,age\n")
    with pytest.raises(pf.InputError, match="mixes files of several kinds"):
        open_table(str(tmp_path), BY_CODE)


def test_a_person_is_told_apart_by_text_and_not_by_numbers_of_spss(files):
    unit = pf.Schema({"mood": ["0", "1", "2"]}, unit=pf.Person("name", rows=1))
    assert len(rows(open_table(str(files / "a.sav"), unit))) == 1000
    unit = pf.Schema({"mood": ["0", "1", "2"]}, unit=pf.Person("age", rows=1))
    with pytest.raises(pf.InputError, match="its type is float"):
        open_table(str(files / "a.sav"), unit)


def test_a_study_from_codebook_to_model(files, tmp_path, people):
    schema = pf.Schema.from_codebook(files / "a.sav")
    learner = pf.MarginalLearner(pf.NON_PRIVATE, cliques=[("mood", "sex")], schema=schema)
    table = learner.fit(files / "a.sav").released_.tables[0]
    answers = len(schema["mood"].answers)
    assert table.sum() == 1000 and (table.sum(axis=1)[:answers] > 0).all()
