"""What a study's codebook says of each column: SPSS, Stata, SDV metadata, Frictionless schemas.

A codebook is public: wording, levels and missing codes, as somebody wrote them down. No record is
read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privfield.errors import InputError
from privfield.schema.variables import level_text
from privfield.words import is_number

SURVEYS = (".sav", ".zsav", ".dta")
CODEBOOKS = (*SURVEYS, ".json")
_MOST_POINTS = 21  # of a scale of which a codebook names only some
_MOST_LISTED = 6
_MOST_CODE = 1e300  # SPSS has the largest and the least number for open ends of a range
_SCALES = ("ordinal", "scale")  # what SPSS calls variables with an order
_GAPS = ("no answer", "missing", "gap")  # names of the level that a gap is, whichever is free
_NO_ANSWER = re.compile(  # how labels begin that mean no answer
    r"\W*(?:\d+\W+)?(?:"
    r"no (?:answer|response|opinion)|(?:do not|don.?t|didn.?t|does not) know|dk\b|d\.k\.|refus"
    r"|(?:question )?not (?:answered|applicable|asked|ascertained|stated|available)"
    r"|inap(?:\b|plic)|n/a\b|na$|missing|skipped|prefer not|would rather not|unknown"
    r"|keine? (?:angaben?|antwort|meinung)|k\. ?a\.|wei(?:ß|ss) nicht|verweiger|nicht gefragt"
    r"|sans (?:réponse|opinion)|non[- ]réponse|(?:je )?ne sai[ts] pas|nsp\b"
    r"|no (?:sabe|sé|contesta|responde)|ns/nc|non (?:sa|so|risponde)\b|nessuna risposta"
    r"|weet (?:ik )?niet|geen (?:antwoord|mening)|não (?:sabe|sei|respond)"
    r")",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Column:
    """One column of a codebook; without levels where it does not say what the column may hold.

    `missing` is the level that empty values are read as, if not the first; `gap` names a further
    one for them. `declared_missing` are codes that mean "no answer", for readers; `missing_codes`
    are those among them that can be listed. They are no levels.
    """

    name: str
    levels: tuple[str, ...] = ()
    ordered: bool = False
    question: str = ""
    missing: str | None = None
    declared_missing: tuple[str, ...] = ()
    gap: str | None = None
    missing_codes: tuple[str, ...] = ()


def is_codebook(path: str) -> bool:
    """Whether a file holds more about its columns than their names."""
    return path.lower().endswith(CODEBOOKS)


def read_codebook(
    path: str, ordered: bool = False, no_answers: Sequence[str] = ()
) -> tuple[list[Column], list[str]]:
    """The columns, and remarks on those that were left out or left open.

    What SPSS or Stata label is a scale if all are `ordered`; codes that mean no answer are no part
    of it, whatever their label.
    """
    if not os.path.isfile(path):
        raise InputError(f"path: there is no file {path!r}.")
    if path.lower().endswith(SURVEYS):
        return _survey_columns(survey_metadata(path), ordered, no_answers)
    return _json_columns(path)


# -- SPSS and Stata --------------------------------------------------------------------------------


def survey_metadata(path: str, encoding: str | None = None) -> Any:
    """What the head of a file says: names, wording, labels, types. No record is read."""
    return read_survey(path, metadataonly=True, user_missing=True, encoding=encoding)[1]


def read_survey(path: str, **options: Any) -> Any:
    """By pyreadstat; errors keep nothing of its own, which may quote records."""
    try:
        import pyreadstat
    except ImportError:
        raise InputError(
            f"path: {path!r} is a file of SPSS or Stata, and reading it takes the package "
            "pyreadstat: pip install 'privfield[survey]'."
        ) from None
    reader = pyreadstat.read_dta if path.lower().endswith(".dta") else pyreadstat.read_sav
    try:
        return reader(path, output_format="dict", disable_datetime_conversion=True, **options)
    except Exception:
        pass
    raise InputError(f"path: {path!r} cannot be read: it is damaged, or no file of SPSS or Stata.")


def _survey_columns(
    about: Any, ordered: bool, no_answers: Sequence[str]
) -> tuple[list[Column], list[str]]:
    wordings = [text or "" for text in about.column_labels]
    columns = []
    open_ones: dict[str, Mapping[Any, str]] = {}
    for name, wording in zip(about.column_names, wordings, strict=True):
        measure = "ordinal" if ordered else about.variable_measure.get(name, "unknown")
        kept = _answers(about, name, no_answers)
        columns.append(_survey_column(about, name, kept, wording.strip(), measure))
        if measure in _SCALES and len(kept) > 1 and not _is_scale(kept) and not _says_none(kept):
            open_ones[name] = kept
    return columns, _on_open(open_ones)


def _answers(about: Any, name: str, no_answers: Sequence[str]) -> dict[Any, str]:
    """Codes with their labels, but those that mean no answer."""
    ranges, tags = about.missing_ranges.get(name, []), _tags(about, name)
    return {
        code: label.strip()
        for code, label in about.variable_value_labels.get(name, {}).items()
        if code not in tags
        and not any(_within(code, each) for each in ranges)
        and level_text(code) not in no_answers
    }


def _tags(about: Any, name: str) -> list[str]:
    """The letters of Stata's missing values .a to .z that have a label; its codes are numbers."""
    if str(about.readstat_variable_types.get(name)) == "string":
        return []
    return [code for code in about.variable_value_labels.get(name, {}) if isinstance(code, str)]


def _sorted(codes: Iterable[Any]) -> list[Any]:
    return sorted(codes, key=lambda code: (isinstance(code, str), code))


def _is_even(codes: Sequence[Any]) -> bool:
    """Whether labels may be those of a scale: of all its points, or of some, even from both ends.

    They are not where 9 says "no answer" beside 1 "never" and 6 "always". Texts have no distance.
    """
    if not all(_is_whole(code) for code in codes):
        return True
    return [codes[0] + codes[-1] - code for code in reversed(codes)] == list(codes)


def _is_whole(code: Any) -> bool:
    return isinstance(code, int | float) and abs(code) < _MOST_CODE and code == int(code)


def _is_word(code: Any) -> bool:
    """Words have an order of letters only."""
    return isinstance(code, str) and not is_number(code)


def _no_answers(labels: Mapping[Any, str]) -> list[Any]:
    """Codes at either end whose labels say that there is no answer."""
    codes = _sorted(labels)
    answers = [i for i, code in enumerate(codes) if not _NO_ANSWER.match(labels[code])]
    return codes[: answers[0]] + codes[answers[-1] + 1 :] if answers else codes


def _says_none(labels: Mapping[Any, str]) -> bool:
    """Whether all that has a label is no answer, so that nothing is said of the answers."""
    return bool(labels) and len(_no_answers(labels)) == len(labels)


def _is_scale(labels: Mapping[Any, str]) -> bool:
    return _is_even(_sorted(labels)) and not _no_answers(labels)


def _on_open(open_ones: Mapping[str, Mapping[Any, str]]) -> list[str]:
    if not open_ones:
        return []
    names = list(open_ones)
    first = _sorted(open_ones[names[0]])
    codes = [level_text(code) for code in first]
    shown = ", ".join([*codes[:2], "…", *codes[-2:]] if len(codes) > _MOST_LISTED else codes)
    more = ", …" * (len(names) > _MOST_LISTED)
    said = {level_text(code): 0 for labels in open_ones.values() for code in _no_answers(labels)}
    apart = list(said) or [level_text(first[0] if first[0] < 0 else first[-1])]
    mean = "means" if len(apart) == 1 else "mean"
    return [
        f"not all labels of {', '.join(names[:_MOST_LISTED])}{more} look like points of a scale "
        f"(codes {shown} of {names[0]}), so their levels are left open. If {', '.join(apart)} "
        f"{mean} no answer, add --missing {','.join(apart)}"
    ]


def _survey_column(
    about: Any, name: str, kept: Mapping[Any, str], wording: str, measure: str
) -> Column:
    ranges, tags = about.missing_ranges.get(name, []), _tags(about, name)
    column = _labelled(name, kept, wording, measure)
    codes = [code for each in ranges for code in _range_codes(each) if code not in column.levels]
    return replace(
        with_gap(column) if ranges or tags else column,
        declared_missing=(*map(_range_text, ranges), *(f".{tag}" for tag in tags)),
        missing_codes=tuple(codes),
    )


def _within(code: Any, ends: Mapping[str, Any]) -> bool:
    return type(code) is type(ends["lo"]) and bool(ends["lo"] <= code <= ends["hi"])


def _range_text(ends: Mapping[str, Any]) -> str:
    low, high = (level_text(ends[end]) if _is_finite(ends[end]) else "…" for end in ("lo", "hi"))
    return low if low == high else f"{low} to {high}"


def _range_codes(ends: Mapping[str, Any]) -> list[str]:
    """The codes of a range that are few enough to list."""
    if ends["lo"] == ends["hi"]:
        return [level_text(ends["lo"])]
    points = None if isinstance(ends["lo"], str) else _points([ends["lo"], ends["hi"]])
    return [level_text(point) for point in points or ()]


def _is_finite(value: Any) -> bool:
    return isinstance(value, str) or abs(value) < _MOST_CODE


def _labelled(
    name: str,
    labels: Mapping[Any, str],
    question: str,
    measure: str,
) -> Column:
    """A column whose codes have labels: by label where all have one, else by code.

    Of a declared scale ("ordinal", "scale") whose ends alone are labelled, the whole numbers in
    between are levels too; of other codes with gaps nobody knows, so nothing is said.
    """
    codes = _sorted(labels)
    ordered = measure in _SCALES and len(codes) > 1 and not any(map(_is_word, codes))
    points = _points(codes)
    levels: Sequence[str] = list(dict.fromkeys(labels[code] for code in codes))
    gaps = all(map(_is_whole, codes)) and bool(codes) and codes[-1] - codes[0] >= len(codes)
    wide = gaps and points is None and (ordered or len(codes) == 2)  # as 0 and 100 of a slider
    # one label says of no other answer, nor do those of "no answer"
    nothing = len(codes) == 1 or _says_none(labels)
    if nothing or (measure != "nominal" and (wide or (ordered and not _is_scale(labels)))):
        levels, question = [], _with_codes(question, codes, labels)
    elif points is not None and len(points) > len(codes):
        if measure != "nominal":
            levels = [level_text(point) for point in points] if ordered else []
            question = _with_codes(question, codes, labels)
    elif not all(levels):
        levels = [level_text(code) for code in codes]
        question = _with_codes(question, codes, labels)
    return _column(name, levels, ordered, question)


def _column(name: str, levels: Sequence[str], ordered: bool, question: str = "") -> Column:
    """Of an ordered scale, a gap is no answer."""
    column = Column(name, tuple(levels), ordered and len(levels) > 2, question)
    return with_gap(column) if column.ordered else column


def with_gap(column: Column) -> Column:
    """Empty values become a level of their own, where levels are known."""
    free = [name for name in _GAPS if name not in column.levels]
    return replace(column, gap=free[0]) if free and column.levels else column


def middle(levels: Sequence[str]) -> str | None:
    """The middle of a scale, the lower of two."""
    return levels[(len(levels) - 1) // 2] if levels else None


def _points(codes: Sequence[Any]) -> range | None:
    """The whole numbers from the first code to the last, if they are a scale."""
    if not codes or not all(map(_is_whole, codes)):
        return None
    first, last = int(codes[0]), int(codes[-1])
    return range(first, last + 1) if last - first < _MOST_POINTS else None


def _with_codes(question: str, codes: Sequence[Any], labels: Mapping[Any, str]) -> str:
    shown = [f"{level_text(code)} = {labels[code]}" for code in codes if labels[code]]
    if not shown:
        return question
    more = ", …" * (len(shown) > _MOST_LISTED)
    return f"{question} ({', '.join(shown[:_MOST_LISTED])}{more})".lstrip()


# -- SDV metadata and Frictionless Table Schema ----------------------------------------------------


def _json_columns(path: str) -> tuple[list[Column], list[str]]:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        raise InputError(f"path: {path!r} is not readable as JSON.") from None
    columns: list[Column] = []
    remarks = []
    for name, read, about in _described(document, path):
        if not isinstance(name, str) or not name.strip() or not isinstance(about, dict):
            raise InputError(f"path: {path!r}: each column must have a name and a description.")
        if about.get("sdtype") == "id":
            remarks.append(f"{name!r} tells rows apart and was left out")
        else:
            try:
                columns.append(read(name, about))
            except InputError as error:
                raise InputError(f"path: {path!r}: column {name!r}: {error}") from None
    if not columns or len({column.name for column in columns}) < len(columns):
        raise InputError(f"path: {path!r} must describe at least one column, and none twice.")
    return columns, remarks


def _described(document: Any, path: str) -> Iterator[tuple[Any, Any, Any]]:
    """Name, reader and description of each column, of the only table there is."""
    resource = _only_table(document, "resources")
    schema = resource.get("schema", resource)
    fields = schema.get("fields") if isinstance(schema, dict) else None
    columns = _only_table(document, "tables").get("columns")
    if isinstance(fields, list):
        general = {"missingValues": schema.get("missingValues")}
        for about in fields:
            own = {**general, **about} if isinstance(about, dict) else {}
            yield own.get("name"), _frictionless, own
    elif isinstance(columns, dict):
        for name, about in columns.items():
            yield name, _sdv, about
    else:
        raise InputError(
            f"path: {path!r} is no codebook of one table: neither a Frictionless Table Schema "
            "(fields) nor SDV metadata (columns)."
        )


def _only_table(document: Any, key: str) -> dict[str, Any]:
    """What describes the only table: the document itself, or what it lists under `key`."""
    tables = document.get(key) if isinstance(document, dict) else None
    if isinstance(tables, dict):
        tables = list(tables.values())
    found = tables[0] if isinstance(tables, list) and len(tables) == 1 else document
    return found if isinstance(found, dict) else {}


def _sdv(name: str, about: Mapping[str, Any]) -> Column:
    """SDV knows the kind of a column, and its levels only where they have an order."""
    if about.get("sdtype") == "boolean":
        return Column(name, ("false", "true"))
    return _column(name, _texts(about.get("order")), True)


def _frictionless(name: str, about: Mapping[str, Any]) -> Column:
    """With `missingValues`, of the field or of all: values that are no answers."""
    codes = tuple(code for code in _listed(about.get("missingValues")) if code)
    column = _described_field(name, about, codes)
    found = replace(column, declared_missing=codes, missing_codes=codes)
    return with_gap(found) if codes else found


def _described_field(name: str, about: Mapping[str, Any], codes: Sequence[str]) -> Column:
    """Without these values, which are no answers."""
    texts = [about.get(key) for key in ("title", "description")]
    question = next((text for text in texts if isinstance(text, str)), "")
    limits = about.get("constraints")
    limits = limits if isinstance(limits, dict) else {}
    if about.get("type") == "boolean":
        words = [_texts(about.get(key)) for key in ("falseValues", "trueValues")]
        return Column(name, (*words[0], "false")[:1] + (*words[1], "true")[:1], question=question)
    listed = about.get("categories", limits.get("enum"))
    labels = {value: label for value, label in _listed(listed).items() if value not in codes}
    levels, question = list(labels), _with_codes(question, list(labels), labels)
    if levels:
        return _column(name, levels, about.get("categoriesOrdered") is True, question)
    ends = limits.get("minimum"), limits.get("maximum")
    points = _points(ends) if about.get("type") == "integer" and None not in ends else None
    levels = [str(point) for point in points or () if str(point) not in codes]
    return _column(name, levels, True, question)


def _listed(values: Any) -> dict[str, str]:
    """Values with their labels; one may be written alone or as value and label."""
    found = {}
    for each in values if isinstance(values, list) else ():
        about = each if isinstance(each, dict) else {"value": each}
        found[level_text(about.get("value", ""))] = str(about.get("label", ""))
    return found


def _texts(values: Any) -> list[str]:
    return [level_text(value) for value in values] if isinstance(values, list) else []
