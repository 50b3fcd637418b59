"""The examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import privfield

MODULES = sorted(module.name for module in pkgutil.walk_packages(privfield.__path__, "privfield."))


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0
