"""`privfield/__init__.py` has one list of public names; its stub is made from that list."""

import importlib
from pathlib import Path

import privfield as pf

STUB = Path(pf.__file__).with_suffix(".pyi")


def stub() -> str:
    """What type checkers read: the same names, as imports."""
    pairs = sorted((module, name) for name, module in pf.PUBLIC.items())
    fixed = [("_version", "__version__"), ("errors", "BudgetRefused"), ("errors", "InputError")]
    lines = [f"from privfield.{module} import {name} as {name}" for module, name in fixed]
    lines += [f"from {module} import {name} as {name}" for module, name in pairs]
    return "\n".join([*sorted(lines), "", "PUBLIC: dict[str, str]", ""])


def test_the_stub_is_up_to_date():
    """Run this file as a program to write it."""
    assert STUB.read_text() == stub()


def test_every_public_name_is_where_the_list_says():
    for name, module in pf.PUBLIC.items():
        assert getattr(pf, name) is getattr(importlib.import_module(module), name)
        assert name in dir(pf)


def test_folders_and_names_do_not_collide():
    """`import privfield.data.table as t` works: no public name hides a folder."""
    folders = {path.name for path in Path(pf.__file__).parent.iterdir() if path.is_dir()}
    assert not folders & set(pf.PUBLIC)
    import privfield.mechanisms.tables.mechanism as tables

    assert tables.measure is pf.measure


if __name__ == "__main__":
    STUB.write_text(stub())
