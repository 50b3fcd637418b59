"""Files of SPSS and Stata: a batch of rows at a time, by label or by code as the schema says.

pyreadstat refuses a file for one text that is not in the file's encoding. So texts are read with
each byte as a letter of its own, which always works, and decoded one by one. Codes that the file
declares missing are missing.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from privfield.data.sources.base import RawBatch, batch_rows, check_names, cut, refuse_type
from privfield.schema.codebook import read_survey, survey_metadata
from privfield.schema.variables import number_text

_BYTES = "ISO-8859-1"  # each byte is a letter
_SHARE = 4  # of a batch: pyreadstat makes Python objects, which take four times the memory


class SurveyFile:
    """One .sav, .zsav or .dta file.

    Where all of a column's labels are levels of the schema, or more of them than of its codes, a
    value that has a label is read as that label. `levels` are those of each variable.
    """

    def __init__(
        self, path: str, wanted: Sequence[str], levels: Mapping[str, Sequence[str]]
    ) -> None:
        self._path = path
        about, raw = survey_metadata(path), survey_metadata(path, _BYTES)
        check_names(about.column_names, wanted, f"path: {path!r}")
        places = [about.column_names.index(name) for name in wanted]
        self._columns = [raw.column_names[place] for place in places]
        self._encoding = _codec(about.file_encoding)
        self._labels = [
            _by_label(about.variable_value_labels.get(name, {}), levels.get(name, ()))
            for name in wanted
        ]
        for name in wanted:
            form = (about.original_variable_types.get(name) or "").upper()
            if "DATE" in form or "TIME" in form or form.startswith("%T"):
                refuse_type(name, "date", f"path: {path!r}")
        types = [about.readstat_variable_types[name] for name in wanted]
        self._types = [
            "text" if kind == "string" else "integer" if kind.startswith("int") else "float"
            for kind in types
        ]
        # what is read by label comes as text
        self.kinds = [
            "text" if labels else kind
            for kind, labels in zip(self._types, self._labels, strict=True)
        ]
        self.id_is_text = self.kinds[-1] == "text"
        self._rows = about.number_rows

    def count_rows(self) -> int:
        """As the file says, or by reading them."""
        if self._rows is not None and self._rows >= 0:
            return int(self._rows)
        return sum(batch.rows for batch in self.read())

    def read(self) -> Iterator[RawBatch]:
        """Yield the wanted columns."""
        most, start = max(1, batch_rows(len(self._columns)) // _SHARE), 0
        while True:
            found, _ = read_survey(
                self._path,
                usecols=self._columns,
                encoding=_BYTES,
                row_offset=start,
                row_limit=most,
            )
            columns = [
                self._array(found[name], kind, labels)
                for name, kind, labels in zip(self._columns, self._types, self._labels, strict=True)
            ]
            rows = len(columns[0])
            yield from cut(columns, rows)
            if rows < most:
                return
            start += most

    def _array(self, values: Sequence[Any], kind: str, labels: Mapping[Any, str]) -> Any:
        if kind == "text":
            texts = (None if text is None else self._text(text) for text in values)
            return pa.array([labels.get(text, text) for text in texts], pa.string())
        if not labels:
            return pa.array(values, pa.float64() if kind == "float" else pa.int64())
        return pa.array([_labelled(value, labels) for value in values], pa.string())

    def _text(self, letters: str) -> str:
        raw = letters.encode("latin-1", "replace")
        try:
            return raw.decode(self._encoding)
        except UnicodeDecodeError:
            return raw.decode("windows-1252", "replace")


def _by_label(labels: Mapping[Any, str], levels: Sequence[str]) -> dict[Any, str]:
    """The labels that values are read as; none where the schema speaks of codes."""
    known = set(levels)
    found = {code: label.strip() for code, label in labels.items() if label.strip() in known}
    codes = [code for code in labels if _code_text(code) in known]
    if all(label == _code_text(code) for code, label in found.items()):
        return {}  # the same either way
    return found if len(found) > len(codes) or len(found) == len(labels) else {}


def _code_text(code: Any) -> str:
    return code if isinstance(code, str) else number_text(code)


def _labelled(value: float | None, labels: Mapping[Any, str]) -> str | None:
    if value is None or math.isnan(value):
        return None
    return labels.get(value) or number_text(value)


def _codec(name: str | None) -> str:
    try:
        return codecs.lookup(name or "utf-8").name
    except LookupError:
        return "utf-8"
