"""Studies as `pf.plan` would ask them."""

import inspect

import privfield as pf
from privfield.planning.request import check_study

DEFAULTS = {
    name: each.default
    for name, each in inspect.signature(pf.plan).parameters.items()
    if each.kind is each.KEYWORD_ONLY
}


def asked(schema_or_shape, n, budget, **settings):
    return check_study(schema_or_shape, n, budget, **{**DEFAULTS, **settings})
