"""The header of a CSV file ends where it should: what stands below plays no part."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privfield.data.sources.header import first_line, read_header
from privfield.errors import InputError

BODIES = [b"", b"x,y\n", b'1;"2\n', b'"\n"', b"a,b;c|d\te\n" * 3, b'";"\n;"SECRET;",\n']


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    ("header", "names"),
    [
        (b'a,x;"y\n', ("a", 'x;"y')),  # with semicolons, a quote would open here
        (b'x|"y;b\n', ('x|"y', "b")),
        (b'a\tx,"y\r\n', ("a", 'x,"y')),
        (b'a,b;c;d;"y\n', ("a", 'b;c;d;"y')),
        (b'\xef\xbb\xbf\n\na|"b|c"\n', ("a", "b|c")),
        (b"only\n", ("only",)),
    ],
)
def test_headers_end_where_they_should(
    tmp_path: Path, header: bytes, names: tuple[str, ...], body: bytes
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(header + body)
    assert first_line(str(path)) == header
    for wanted in ((), names, names[:1]):
        found = read_header(header + body, "t", wanted=wanted)
        assert (found.cells, found.length) == (names, len(header))
        assert found.empty == (body == b"")


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    ("header", "names"),
    [
        (b'"two\nlines";b\n', ("two\nlines", "b")),
        (b'a,"two\nlines",b\n', ("a", "two\nlines", "b")),
        (b'"two\r\nlines","three\nmore\nlines"\n', ("two\r\nlines", "three\nmore\nlines")),
        (b'a|"two\nlines"\n', ("a", "two\nlines")),
    ],
)
def test_names_over_several_lines_are_read_if_they_are_wanted(
    tmp_path: Path, header: bytes, names: tuple[str, ...], body: bytes
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(header + body)
    found = read_header(header + body, "t", wanted=names)
    assert (found.cells, found.length) == (names, len(header))
    assert first_line(str(path)) == header[: header.index(b"\n") + 1]
    for wanted in ((), ("a", "b"), ("two", "a"), ("two\nother lines",)):
        assert refused(header + body, wanted) == OPEN


OPEN = (
    "t: the first line cannot be read as a list of column names. If a quote in it stays open, "
    "remove it or rename the column: a name over several lines is read only with a schema that "
    "has it, written by hand."
)


def refused(text: bytes, wanted: Sequence[str]) -> str:
    with pytest.raises(InputError) as caught:
        read_header(text, "t", wanted=wanted)
    return str(caught.value)


RECORDS = [b"", b"alice,3\n", b'alice,3\nbob,"4"\n', b'",id,score\n', b'x";id;score\n', b'"\n']


@pytest.mark.parametrize("wanted", [(), ("id",), ("id", "score"), ("score\nof tests",)])
@pytest.mark.parametrize("header", [b'id,"score\n', b'id;"score\n', b'"id\n', b'id,"\n'])
def test_no_record_decides_what_becomes_of_a_header_with_an_open_quote(
    header: bytes, wanted: tuple[str, ...]
) -> None:
    assert {refused(header + body, wanted) for body in RECORDS} == {OPEN}


def test_one_name_with_a_quote_is_found_by_the_schema() -> None:
    found = read_header(b'x;"y\n1\n";z', "t", wanted=['x;"y'])
    assert found.cells == ('x;"y',) and found.length == 5


names = st.lists(st.text('ab,;|\t" é', min_size=1, max_size=6), min_size=2, max_size=5, unique=True)


@settings(max_examples=200, deadline=None)
@given(names, st.sampled_from(",;\t|"), st.sampled_from(BODIES))
def test_what_another_program_writes_is_read_with_its_names(
    names: list[str], delimiter: str, body: bytes
) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerow(names)
    header = text.getvalue().encode()
    found = read_header(header + body, "t", wanted=names)
    assert list(found.cells) == names and found.length == len(header)
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerow(names)
    header = text.getvalue().encode()
    assert list(read_header(header + body, "t", wanted=names).cells) == names
    assert read_header(header + body, "t").length == len(header)  # no line of the body
