"""`privfield init` reads the header and nothing else."""

import gzip
import os
import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privfield as pf
from command_line import installed


def test_a_pipe_keeps_all_but_its_first_line(tmp_path):
    """What is left in a FIFO afterwards is the whole body: not one byte of it was read."""
    pipe = tmp_path / "data.csv"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR)  # both ends: reading further would wait for ever
    body = b"SECRET,1\nHUSH,0\n"
    try:
        os.write(end, b'"low, mood",age\n' + body)
        done = installed("init", pipe, "-o", tmp_path / "s.toml")
        assert done.returncode == 0, done.stderr
        os.set_blocking(end, False)
        assert os.read(end, 1000) == body
    finally:
        os.close(end)
    text = (tmp_path / "s.toml").read_text()
    assert '[variables."low, mood"]' in text and "SECRET" not in text + done.stdout + done.stderr


def test_a_parquet_file_whose_pages_are_destroyed_still_has_its_footer(call, tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"a": ["x"] * 1000, "b": list(range(1000))}), path)
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    data[4 : -8 - footer] = b"\xff" * (len(data) - 12 - footer)
    path.write_bytes(data)
    code, out, _ = call("init", path, "--levels", "x,y", "-o", tmp_path / "s.toml")
    assert code == 0 and "2 columns, from the header only" in out
    code, _, err = call("check", path, "-s", tmp_path / "s.toml")
    assert code == 2 and "damaged" in err


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"\xef\xbb\xbfa,b\n", ("a", "b")),
        (b"a;b;c\r\n1;2;3\r\n", ("a", "b", "c")),
        (b"\n\na\tb\n", ("a", "b")),
        (b",a,b\n0,x,y\n", ("a", "b")),  # the index that pandas writes has no name
        (b"a,b", ("a", "b")),
    ],
)
def test_headers(call, tmp_path, content, names):
    (tmp_path / "d.csv").write_bytes(content)
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(content))
    for name in ("d.csv", "d.csv.gz"):
        target = tmp_path / f"{name}.toml"
        code, _, err = call("init", tmp_path / name, "--levels", "x,y", "-o", target)
        assert code == 0, err
        schema = pf.Schema.read(target)
        assert schema.names == names and schema[names[0]].unknown == "x"
        assert "# unknown: the level that values not listed here are read as" in target.read_text()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("d.csv", b"SECRET~1\n", "separated by commas, semicolons, tabs or |"),
        ("d.csv", b"1,0,1,1\n", "holds numbers only; is it a header?"),
        ("d.csv", b"SECRET,SECRET\n", "names a column twice; is it a header?"),
        ("d.csv", "a,b\n".encode("utf-16"), "UTF-16"),
        ("d.csv", "a,b\n".encode("utf-16-le"), "UTF-16"),
        (
            "d.csv.gz",
            gzip.compress(b"PK\x03\x04SECRET", mtime=0),
            "a spreadsheet with another name",
        ),
        ("d.csv", b"\xe4,b\n", "not UTF-8 text; if it is Latin-1, say so: --encoding latin-1"),
        ("d.csv", b"PK\x03\x04SECRET", "a spreadsheet with another name"),
        ("d.csv", b'id,"score\nSECRET,3\nbob,"4"\n', "remove it or rename the column"),
        ("d.csv", b'x;"y\nSECRET;2"\n3;4\n', "remove it or rename the column"),
        ("d.csv", b"", "is empty"),
        ("d.xlsx", b"PK\x03\x04", "is a spreadsheet. Export the table as CSV"),
        ("d.por", b"ASCII SPSS PORT FILE", "an SPSS file"),
        ("d.dat", b"a,b\n", "must end in one of .csv"),
        ("d.parquet", b"SECRET", "not a Parquet file"),
        ("d.csv.gz", b"SECRET", "cannot be read"),
    ],
)
def test_what_is_no_header_is_refused_without_repeating_it(call, tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    code, out, err = call("init", tmp_path / name, "-o", tmp_path / "s.toml")
    assert code == 2 and told in err and "SECRET" not in out + err
    assert not (tmp_path / "s.toml").exists()


def test_without_levels_there_are_places_to_fill_in(call, tmp_path):
    (tmp_path / "d.csv").write_text("a b,c\n1,2\n")
    code, _, err = call("init", tmp_path / "d.csv", "-o", tmp_path / "s.toml")
    assert code == 0 and "Fill in" in err
    code, _, err = call("plan", tmp_path / "s.toml", "--n", "10", "--epsilon", "1")
    assert code == 2 and "not filled in yet: write what 'a b' and 1 more may hold" in err
    text = (tmp_path / "s.toml").read_text()
    filled = text.replace("levels = []", "levels = [1, 2]", 1).replace("levels = []", "number = 3")
    (tmp_path / "s.toml").write_text(filled)
    assert pf.Schema.read(tmp_path / "s.toml").shape == (2, 3)


def test_levels_are_read_only_if_they_are_called_public(call, tmp_path):
    (tmp_path / "d.csv").write_text("a,b,id\n" + "".join(f"x,{i % 12},{i}\n" for i in range(100)))
    code, out, err = call(
        "init", tmp_path / "d.csv", "--levels-are-public", "-o", tmp_path / "s.toml", "--json"
    )
    assert code == 0 and '"fill_in": [\n    "id"\n  ]' in out  # too many different values
    text = (tmp_path / "s.toml").read_text()
    assert "levels_are_public = true" in text and 'levels = ["0", "1", "2", ' in text
    start = text.index("\n[variables.id]")
    (tmp_path / "s.toml").write_text(text[:start] + "\n")
    code, _, err = call(
        *("fit", tmp_path / "d.csv", "-s", tmp_path / "s.toml", "-e", "1", "--yes"),
        *("--cliques", "a,b", "-o", tmp_path / "m.pf"),
    )
    assert code == 0, err
    assert pf.load(tmp_path / "m.pf").card.levels_are_public
    code, _, err = call("init", tmp_path / "d.csv", "--levels", "1,2", "--levels-are-public")
    assert code == 2 and "exclude each other" in err


def test_codes_for_no_answer(call, tmp_path):
    path, target = tmp_path / "items.csv", tmp_path / "s.toml"
    path.write_text("a\n")
    given = ("init", path, "-o", target, "--force", "--levels")
    assert call(*given, "1-6", "--ordered", "--missing", "99, -1")[0] == 0
    scale = pf.Ordered([1, 2, 3, 4, 5, 6])
    listed = {"missing_codes": {"a": ["99", "-1"]}}
    assert pf.Schema.read(target) == pf.Schema({"a": scale}, gaps={"a": "no answer"}, **listed)
    assert call(*given, "0,1", "--missing", "99,-1")[0] == 0
    expected = pf.Schema({"a": ["0", "1"]}, gaps={"a": "no answer"}, **listed)
    assert pf.Schema.read(target) == expected
    assert call(*given, "0,1", "--missing", "99,-1", "--gaps", "0")[0] == 0
    assert pf.Schema.read(target) == pf.Schema({"a": ["0", "1"]}, missing={"a": "0"}, **listed)
    code, _, told = call(*given, "0,1", "--missing", "1")
    assert code == 2 and "'1' is a level of 'a', so it cannot mean no answer" in told
    code, _, told = call(*given, "0,1", "--missing", "9,,")
    assert code == 2 and "--missing must list codes" in told


def test_scales(call, tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("a,b\n")
    target = tmp_path / "s.toml"
    code, _, told = call("init", path, "--levels", "1-6", "--ordered", "-o", target)
    assert code == 0 and "such as 99, will be read as a level of their own" in told
    assert "listed with --missing 99" in told
    scales = {"a": pf.Ordered([1, 2, 3, 4, 5, 6]), "b": pf.Ordered([1, 2, 3, 4, 5, 6])}
    gaps = pf.Schema(scales, gaps={"a": "no answer", "b": "no answer"})
    assert pf.Schema.read(target) == gaps and gaps["a"].answers == scales["a"].levels
    for said, level in (("middle", "3"), ("6", "6")):
        command = ("init", path, "--levels", "1-6", "--ordered", "--gaps", said, "-o", target)
        assert call(*command, "--force")[0] == 0
        assert pf.Schema.read(target) == pf.Schema(scales, missing={"a": level, "b": level})
    code, _, told = call(*command[:-2], "-o", target, "--force", "--gaps", "never")
    assert code == 2 and "level, middle or one of the levels" in told
    code, _, told = call(
        "init", path, "--levels", "no,yes", "--gaps", "level", "-o", target, "--force"
    )
    assert code == 0 and pf.Schema.read(target)["a"].levels == ("no", "yes", "no answer")
    code, _, told = call("init", path, "--levels=-1-1", "-o", target, "--force")
    assert code == 0 and pf.Schema.read(target)["a"].levels == ("-1", "0", "1")
    for wrong in ("6-1", "1-1", "1-99999999"):
        code, _, told = call("init", path, "--levels", wrong, "-o", target, "--force")
        assert code == 2 and "1-6" in told
    code, _, told = call("init", path, "--ordered", "-o", target, "--force")
    assert code == 2 and "--levels 1-6" in told


@pytest.mark.parametrize("first", ["34,male,anna", "b0b,male,yes"])
def test_a_first_line_that_may_be_a_record_is_doubted(call, tmp_path, first):
    """One cell is a number, or one of the levels: the schema, which is public, repeats it."""
    (tmp_path / "d.csv").write_text(first + "\n20,female,eve\n")
    code, _, told = call(
        "init", tmp_path / "d.csv", "--levels", "no,yes", "-o", tmp_path / "s.toml"
    )
    assert code == 0 and "1 of 3 column names look like values" in told
    assert "male" not in told


def test_a_header_is_not_doubted(call, tmp_path):
    (tmp_path / "d.csv").write_text("age,sex,yes or no\n20,female,yes\n")
    _, _, told = call("init", tmp_path / "d.csv", "--levels", "no,yes", "-o", tmp_path / "s.toml")
    assert "look like values" not in told
    pq.write_table(pa.table({"2019": ["x"], "name": ["y"]}), tmp_path / "d.parquet")
    _, _, told = call("init", tmp_path / "d.parquet", "--levels", "x,y", "-o", tmp_path / "p.toml")
    assert "look like values" not in told


@pytest.mark.parametrize("place", ["hive", "hive/*/*.csv"])
def test_levels_of_a_column_that_folders_name_are_asked_for(call, tmp_path, monkeypatch, place):
    """They are not those of the cells; nor are names of folders told, unless they are public."""
    monkeypatch.chdir(tmp_path)
    for year in ("2019", "SECRET"):
        folder = tmp_path / "hive" / f"year={year}"
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text("a,b\nno,yes\n")
    code, out, told = call("init", place, "--levels", "no,yes", "-o", "s.toml")
    text = (tmp_path / "s.toml").read_text()
    assert code == 0 and "--levels is not about what folders name: year." in told
    assert text.count('levels = ["no", "yes"]') == 2 + 1  # one of them is in the explanation
    assert "[variables.year]\nlevels = []  # FILL IN" in text
    assert "SECRET" not in text + told + out and "2019" not in text + told + out
    assert f"check {shlex.quote(place)} --schema s.toml" in told  # a shell would expand the glob
    code, _, told = call("check", place, "-s", "s.toml")
    assert code == 2 and "is not filled in yet: write what 'year' may hold" in told
    assert call("init", place, "--levels-are-public", "-o", "s.toml", "--force")[0] == 0
    assert pf.Schema.read("s.toml")["year"].levels == ("2019", "SECRET")
