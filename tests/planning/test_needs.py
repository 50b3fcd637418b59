"""How many rows or how much budget: what the search finds, and how often it looks."""

import math

import pytest

from privfield.planning.needs import _smallest

CURVES = {
    "root": lambda n: -0.5 * math.log(n / 34_567),
    "bend": lambda n: 1 / (1 + n / 1e3) - 1 / 35.567,
    "stairs": lambda n: 1.0 if n < 34_567 else -1.0,
    "refused": lambda n: math.inf if n < 34_567 else -0.1,
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize(("low", "high"), [(10_000, 40_000), (1, 10**9), (34_566, 34_567)])
def test_the_smallest_number_is_found_with_few_looks(name, low, high):
    """34,567 or at most a thousandth more; halving alone would take 11 looks, and 25 for 10⁹."""
    seen = []

    def excess(n):
        seen.append(n)
        return CURVES[name](n)

    found = _smallest(excess, low, high, lambda n: max(1, n // 1000), math.log)
    assert 34_567 <= found <= 34_567 + 35
    assert len(set(seen)) <= (8 if name == "root" else 40)
