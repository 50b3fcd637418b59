"""How letters are written in a CSV file: UTF-8, or one byte for each."""

from __future__ import annotations

from privfield.errors import InputError

_LEGAL = "utf-8, or one with a byte for each letter, such as latin-1, cp1252 or mac-roman"


def check_encoding(encoding: object) -> str:
    """A legal encoding: cutting rows at bytes must be cutting them at letters."""
    if isinstance(encoding, str):
        if encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig"):
            return "utf-8"
        try:
            letters = bytes(range(256)).decode(encoding, "replace")
        except LookupError:
            letters = ""
        plain = letters[:128] == bytes(range(128)).decode("ascii")
        if plain and len(letters) == 256 and len(set(letters)) > 129:
            return encoding
    raise InputError(f"encoding must be {_LEGAL}; got {encoding!r}.")


def not_text(encoding: str) -> str:
    """What to do about a header that is not legal in its encoding."""
    if encoding != "utf-8":
        return f"It is no {encoding} text."
    return (
        "It is not UTF-8 text; if it is Latin-1, say so: --encoding latin-1 on the command line, "
        'pf.CsvFiles(path, encoding="latin-1") in Python.'
    )
