"""Imports go one way, from the command line down; lazy imports and those for types count.

The one documented exception: what a model says of itself (`Model.edges`, `ask`, `draws`,
`centrality`, `plot`) leads to `reporting.on_models`, which knows all models and how sure they are.
"""

import ast
from pathlib import Path

import networkx as nx
import pytest

import privfield

ROOT = Path(privfield.__file__).parent

BASE = {"errors", "_version", "words", "progress", "checks", "files", "html", "stamps"}
TOOLS = {"kernels", "algebra"}
MAY = {  # each room: the rooms whose files its files may import, besides the base and itself
    "schema": set(),
    "kernels": set(),
    "algebra": set(),
    "privacy": {"schema"},
    "solvers": {*TOOLS, "inference"},
    "inference": {*TOOLS, "schema", "solvers"},
    "data": {*TOOLS, "schema", "privacy"},
    "models": {*TOOLS, "schema", "privacy", "data", "inference", "solvers"},
}
MAY["mechanisms"] = {*MAY["models"], "models", "estimation"}
MAY["estimation"] = {*MAY["models"], "models", "mechanisms"}
MAY["learners"] = {*MAY["mechanisms"], "mechanisms"}
MAY["planning"] = MAY["audit"] = {*MAY["learners"], "learners"}
MAY["reporting"] = {*MAY["planning"], "planning"}
MAY["cli"] = {*MAY["reporting"], "reporting", "planning", "audit"}
EXCEPTIONS = {("privfield.models.base", "privfield.reporting.on_models")}


def modules():
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports():
    """(importing module, imported module, imported names)."""
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in MODULES:
                        yield name, alias.name, ()
            elif isinstance(node, ast.ImportFrom) and (node.module or "") in MODULES:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    if inner in MODULES:
                        yield name, inner, ()
                    else:
                        yield name, node.module, (alias.name,)


IMPORTS = [each for each in imports() if each[0] != each[1]]


def room(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_no_file_is_part_of_a_circle():
    graph = nx.DiGraph((a, b) for a, b, _ in IMPORTS if (a, b) not in EXCEPTIONS)
    circles = [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    assert circles == []


@pytest.mark.parametrize("name", sorted(MAY))
def test_a_room_imports_only_what_lies_below(name):
    upward = {
        (a, b)
        for a, b, _ in IMPORTS
        if room(a) == name and room(b) not in {*MAY[name], *BASE, name, ""}
    }
    assert upward <= EXCEPTIONS


def test_every_room_has_its_rule():
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert rooms == set(MAY)


def test_the_base_knows_no_room():
    assert not [(a, b) for a, b, _ in IMPORTS if room(a) in BASE and room(b) not in BASE]


def test_no_private_name_crosses_files():
    crossing = [
        (a, b, name)
        for a, b, names in IMPORTS
        for name in names
        if name.startswith("_") and not name.startswith("__")
    ]
    assert crossing == []


def test_the_exception_is_needed():
    assert {(a, b) for a, b, _ in IMPORTS} >= EXCEPTIONS
