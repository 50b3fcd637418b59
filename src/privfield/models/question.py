"""Questions as people type them: "P(low mood=yes | age=40-65)".

Names and levels come from a schema, so they may hold spaces, commas, bars or equal signs: whatever
is a variable of the schema is read as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NoReturn

from privfield.errors import InputError
from privfield.schema import Schema

_LEGAL = 'a question looks like "P(smoker=yes | age=40-65)"; conditions are separated by commas'
_SIGNS = (re.compile(r"\s*=\s*"), re.compile(r"\s*==?\s*"))
_QUOTES = ("'", '"')
_AND = re.compile(r"\s*(?:,|;|&|∧|\band\b)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Question:
    """P(event | given), both as levels by name."""

    event: Mapping[str, str]
    given: Mapping[str, str]

    def __str__(self) -> str:
        event = ", ".join(f"{name}={level}" for name, level in self.event.items())
        given = ", ".join(f"{name}={level}" for name, level in self.given.items())
        return f"P({event} | {given})" if given else f"P({event})"


def read_question(text: str, schema: Schema) -> Question:
    """The question in `text`; a typo is an `InputError` that suggests what was meant.

    >>> schema = Schema({"low mood": ["no", "yes"], "age": ["18-40", "40-65"]})
    >>> read_question("P(low mood=yes | age=40-65)", schema).given
    {'age': '40-65'}
    """
    inside = _inside(text)
    for event, given in _readings(inside, schema):
        both = set(event) & set(given)
        if both:
            raise InputError(f"query: {sorted(both)[0]!r} stands on both sides of the bar.")
        return Question(event, given)
    _complain(inside, schema)


def _readings(text: str, schema: Schema) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """All ways to read the text; names and levels may hold anything, so there may be several."""
    for event, at in _conditions(text, schema, _spaces(text, 0)):
        rest = _spaces(text, at)
        if rest == len(text):
            yield event, {}
        elif text[rest] == "|":
            for given, end in _conditions(text, schema, _spaces(text, rest + 1)):
                if _spaces(text, end) == len(text):
                    yield event, given


def _conditions(text: str, schema: Schema, at: int) -> Iterator[tuple[dict[str, str], int]]:
    """All ways to read name=level, and more of them, from there on; longer names first."""
    names = _longest_first(schema.names)
    levels = {name: _longest_first(schema[name].levels) for name in names}
    # A stack instead of recursion: a question may have more conditions than Python has frames.
    found: dict[str, str] = {}
    ways = [_condition(text, names, levels, at)]
    ends: list[int] = []
    while ways:
        way = next((way for way in ways[-1] if way[0] not in found), None)
        if way is not None:
            name, level, end = way
            found[name] = level
            ends.append(end)
            more = _AND.match(text, end)
            ways.append(_condition(text, names, levels, more.end()) if more else iter(()))
            continue
        ways.pop()
        if ends:
            yield dict(found), ends.pop()
            found.popitem()


def _condition(
    text: str, names: Sequence[str], levels: Mapping[str, Sequence[str]], at: int
) -> Iterator[tuple[str, str, int]]:
    """All ways to read one name=level from there on, and where it ends."""
    for name in names:
        for after_name in _ends(text, name, at):
            signs = [sign.match(text, after_name) for sign in _SIGNS]
            for start in sorted({sign.end() for sign in signs if sign}):  # each way once
                for level in levels[name]:
                    for end in _ends(text, level, start):
                        yield name, level, end


def _ends(text: str, word: str, at: int) -> list[int]:
    """Where the word ends if it comes next, bare or in quotes."""
    ends = [at + len(word)] if text.startswith(word, at) else []
    quote = text[at : at + 1]
    if quote in _QUOTES and text.startswith(word + quote, at + 1):
        ends.append(at + len(word) + 2)
    return ends


def _spaces(text: str, at: int) -> int:
    return len(text) - len(text[at:].lstrip())


def _inside(text: str) -> str:
    """What stands between P( and ); both may be left out."""
    if not isinstance(text, str):
        raise InputError(f"query: {_LEGAL}; got {type(text).__name__}.")
    found = re.fullmatch(r"\s*(?:P|Pr|Prob)\s*[(\[](.*)[)\]]\s*", text, re.DOTALL | re.IGNORECASE)
    inside = text if found is None else found[1]
    if not inside.strip():
        raise InputError(f"query: it is empty; {_LEGAL}.")
    return inside.strip()


def _complain(text: str, schema: Schema) -> NoReturn:
    """Read from left to right what cannot be read, and say where it stops making sense."""
    at, given, seen = 0, False, set()
    while True:
        name, at = _read_name(text, schema, _spaces(text, at))
        at = _read_level(text, schema, name, at)
        if name in seen:
            raise InputError(f"query: {name!r} is there twice; each variable may be once.")
        seen.add(name)
        if more := _AND.match(text, at):
            at = more.end()
            continue
        at = _spaces(text, at)
        if given or not text.startswith("|", at):
            raise InputError(f"query: cannot read {text[at:].strip()!r}; {_LEGAL}.")
        at, given, seen = at + 1, True, set()


def _read_name(text: str, schema: Schema, at: int) -> tuple[str, int]:
    names = schema.names
    for name in _longest_first(names):
        for end in _ends(text, name, at):
            if sign := _SIGNS[-1].match(text, end):
                return name, sign.end()
    rest, bare = text[at:], _next_word(text, at)
    if bare in names:
        raise InputError(
            f"query: {bare!r} needs a level, such as {bare}={schema[bare].levels[-1]}; {_LEGAL}."
        )
    if "=" not in rest:
        raise InputError(f"query: cannot read {rest.strip()!r}; {_LEGAL}.")
    given = re.sub(r"[=<>!]+$", "", rest.partition("=")[0]).strip(" '\"")
    raise InputError(
        f"query: there is no variable {given!r}.{_suggestion(given, names)} The model has "
        f"{_listing(names)}."
    )


def _read_level(text: str, schema: Schema, name: str, at: int) -> int:
    levels = schema[name].levels
    for level in _longest_first(levels):
        for end in _ends(text, level, at):
            rest = text[end:]
            if not rest.strip() or rest.lstrip().startswith("|") or _AND.match(rest):
                return end
    given = _next_word(text, at)
    raise InputError(
        f"query: {name!r} has no level {given!r}.{_suggestion(given, levels)} Its levels are "
        f"{_listing(levels)}."
    )


def _next_word(text: str, at: int) -> str:
    return re.split(r"[,;&|]", text[at:], maxsplit=1)[0].strip(" '\"")


def _listing(words: Sequence[str]) -> str:
    return ", ".join(map(repr, words[:12])) + (", …" if len(words) > 12 else "")


def _longest_first(words: Iterable[str]) -> list[str]:
    return sorted(words, key=len, reverse=True)


def _suggestion(given: str, legal: Iterable[str]) -> str:
    lower = {word.lower(): word for word in legal}
    close = get_close_matches(given.lower(), lower, 1, 0.5)
    return f" Did you mean {lower[close[0]]!r}?" if close else ""
