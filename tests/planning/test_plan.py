"""`pf.plan` as people call it: what it says, what it refuses, what it looks like."""

import inspect
import json
import math
import subprocess
import sys
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privfield as pf
from privfield.checks import check_bytes
from privfield.errors import InputError
from privfield.planning.needs import scaled
from privfield.planning.plan import Plan, plan
from privfield.planning.screen import WIDTH
from privfield.words import bytes_text, duration_text, number_text, rows_text

pytestmark = pytest.mark.xdist_group("plan")  # plans are made once

SYMPTOMS = pf.Schema({f"symptom {i}": ["no", "yes"] for i in range(20)})
CASES = {
    "ising": ((6, 1000, pf.ApproxDP(1, 1e-6)), {"accuracy": 0.1, "min_weight": 0.3}),
    "ising, pure": ((SYMPTOMS, 5000, pf.PureDP(1)), {"accuracy": 0.1, "min_weight": 0.3}),
    "pairwise": (((2, 3, 4), 1000, pf.ZCDP(0.1)), {"accuracy": 0.01}),
    "add-remove": (
        (pf.Schema({"a": 3, "b": 2}), 1000, pf.ZCDP(0.1)),
        {"adjacency": "add-remove"},
    ),
    "ising, add-remove": ((SYMPTOMS, 1000, pf.ZCDP(0.1)), {"adjacency": "add-remove"}),
    "too large": (([12] * 40, 10**7, pf.ApproxDP(1, 1e-6)), {"max_memory": "1GB"}),
    "polynomial": ((9, 10**4, pf.ZCDP(0.1)), {"model": "polynomial", "order": 3, "accuracy": 0.1}),
    "structure": ((9, 10**4, pf.ApproxDP(1, 1e-6)), {"model": "structure", "accuracy": 0.1}),
    "structure, levels": (((3, 4, 3), 10**5, pf.ApproxDP(1, 1e-6)), {"model": "structure"}),
    "chain": ((None, 10**4, pf.PureDP(1)), {"states": 17, "accuracy": 0.02}),
    "peer": ((None, None, pf.PureDP(1)), {"network": (500, 2000, 30), "accuracy": 0.1}),
    "many variables": ((120, 20_000, pf.ApproxDP(1, 1e-6)), {"accuracy": 0.1}),
}


@cache
def planned(case):
    """Made once, whatever the order of tests."""
    given, options = CASES[case]
    return plan(*given, **options)


@pytest.fixture(params=CASES)
def found(request):
    return planned(request.param)


def test_no_argument_takes_data():
    names = set(inspect.signature(plan).parameters)
    assert not names & {"data", "rows", "table", "outcomes", "sequences", "records"}


def test_one_screen(found):
    lines = str(found).split("\n")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= WIDTH
    plain = " ".join(str(found).split())
    assert " ".join(found.verdict.split()) in plain
    assert all(each.note in plain for each in found.methods if not each.available)


def test_json_round_trip(found):
    text = json.dumps(found.to_json(), allow_nan=False)
    assert Plan.from_json(json.loads(text)) == found
    assert json.loads(text)["recommended"] == found.recommended.name


def test_the_recommended_method_comes_first_and_can_be_used(found):
    usable = [each for each in found.methods if each.available]
    if usable:
        assert found.recommended.available
        assert found.expected_error == found.recommended.expected_error
    assert all(each.note for each in found.methods if not each.available)


def test_errors_are_sane(found):
    for each in found.methods:
        if each.available:
            assert 0 < each.sampling_error <= each.plain_error + 1e-12 or found.model == "structure"
            assert each.expected_error <= each.plain_error + 1e-12
            assert each.memory > 0
            assert each.passes >= 1
            assert each.seconds > 0


def test_calls_can_be_pasted(found):
    for each in found.methods:
        learner = each.call.split("(")[0].removeprefix("pf.")
        names = {"schema": SYMPTOMS, "cliques": [("a", "b")], "states": [1, 2], "pf": pf}
        if hasattr(pf, learner):
            made = eval(each.call, names)
            assert type(made).__name__ == learner
            assert made.budget == found.budget and made.adjacency == str(found.adjacency)
        else:
            compile(each.call, "call", "eval")


def test_a_plan_is_a_frozen_value():
    one = plan(5, 100, pf.PureDP(1))
    assert one == plan(5, 100, pf.PureDP(1)) and hash(one) == hash(plan(5, 100, pf.PureDP(1)))
    with pytest.raises(AttributeError):
        one.n = 3


# -- what it says ----------------------------------------------------------------------------------


def test_the_psychologist_is_told_what_pure_epsilon_does_to_190_tables():
    pure = plan(SYMPTOMS, n=5000, budget=pf.PureDP(1))
    tables = next(each for each in pure.methods if each.name == "tables")
    assert tables.noise_sd == pytest.approx(380 * 2**0.5, rel=1e-3)  # Laplace of scale 2·190
    assert "next to nothing" in tables.note
    assert pure.recommended.name == "moments"
    text = " ".join(pure.advice)
    assert "190 tables" in text and "next to nothing" in text
    assert "ε = 1, δ = 1e-06" in text and "fewer tables" in text
    approximate = plan(SYMPTOMS, n=5000, budget=pf.ApproxDP(1, 1e-6))
    assert approximate.expected_error < pure.expected_error / 2
    assert "about as much as sampling error" in approximate.verdict


def test_a_gap_is_no_level_of_a_scale():
    items = {f"item {i}": pf.Ordered([1, 2, 3, 4]) for i in range(5)}
    schema = pf.Schema(items, gaps=dict.fromkeys(items, "no answer"))
    found = plan(schema, 5000, pf.ApproxDP(1, 1e-6))
    assert found.model == "ordinal" and found.levels == (4,) * 5
    assert "5 variables of 4 levels" in str(found)


def test_plenty_of_rows_make_privacy_cheap():
    assert "next to nothing" in plan(5, 10**7, pf.ZCDP(0.5)).verdict
    assert plan(5, 10**7, pf.ZCDP(0.5)).privacy_factor < 1.05


def test_too_few_rows_are_called_that():
    assert "leaves next to nothing" in plan(20, 100, pf.PureDP(0.1)).verdict


def test_few_variables_without_an_order_are_named():
    """They keep scales from a model with one signed link for each pair."""
    scales = {f"x{i}": pf.Ordered([1, 2, 3]) for i in range(5)}
    budget = pf.ApproxDP(1, 1e-6)
    mixed = pf.Schema({"sex": ["m", "f"], "clinic": ["n", "s", "w"], **scales})
    text = " ".join(pf.plan(mixed, 1000, budget).advice)
    assert "clinic has no order, unlike the other 6 variables. Leave it out" in text
    more = pf.Schema({**{f"c{i}": ["n", "s", "w"] for i in range(5)}, **scales})
    few = pf.Schema({"clinic": ["n", "s", "w"], "x0": scales["x0"], "x1": scales["x1"]})
    others = (mixed, pf.PureDP(1)), (mixed.only([*scales]), budget), (more, budget), (few, budget)
    for schema, spent in others:
        assert not any("no order" in line for line in pf.plan(schema, 1000, spent).advice)
    assert pf.plan(mixed.only(["sex", *scales]), 1000, budget).methods[0].name == "ordinal"


def test_needed_rows_and_budget_reach_the_accuracy():
    asked = {"accuracy": 0.05}
    first = plan(10, 2000, pf.ApproxDP(1, 1e-6), **asked)
    assert first.recommended.largest_error > 0.05
    more = plan(10, first.needed_n, pf.ApproxDP(1, 1e-6), **asked)
    assert 0.045 < more.recommended.largest_error <= 0.05
    fewer = plan(10, int(0.98 * first.needed_n), pf.ApproxDP(1, 1e-6), **asked)
    assert fewer.recommended.largest_error > 0.05
    assert first.needed_budget is None  # sampling alone errs by more
    larger = plan(10, 5000, pf.ApproxDP(1, 1e-6), **asked)
    assert larger.needed_budget.delta == 1e-6
    there = plan(10, 5000, larger.needed_budget, **asked)
    assert there.recommended.largest_error <= 0.051


def test_needed_budget_for_tables_keeps_the_design():
    first = plan((3, 3, 3), 3000, pf.PureDP(0.2), accuracy=0.03)
    there = plan((3, 3, 3), 3000, first.needed_budget, accuracy=0.03)
    assert there.expected_error == pytest.approx(0.03, rel=0.03)


def test_memory_is_refused_with_what_would_fit():
    found = plan([12] * 40, 10**7, pf.ApproxDP(1, 1e-6), max_memory="100MB")
    assert not found.recommended.available
    assert "tree of 39 pairs" in " ".join(found.advice)
    listed = plan([12] * 40, 10**7, pf.ApproxDP(1, 1e-6), cliques=[(i, i + 1) for i in range(39)])
    assert listed.recommended.name == "tables" and listed.recommended.available
    small = plan(6, 100, pf.PureDP(1), max_memory="8GB")
    assert small.fits is True and "within the 8.0 GB" in str(small)


def test_forbidden_combinations_count_for_memory():
    free = pf.Schema({f"v{i}": 10 for i in range(8)})
    rule = {f"v{i}": "0" for i in range(8)}
    tied = pf.Schema({f"v{i}": 10 for i in range(8)}, forbidden=[rule])
    cliques = [(f"v{i}", f"v{i + 1}") for i in range(7)]
    loose, tight = (plan(s, 1000, pf.PureDP(1), cliques=cliques) for s in (free, tied))
    assert tight.memory_bytes > 10 * loose.memory_bytes


def test_structure_needs_a_delta():
    found = plan(10, 10**4, pf.PureDP(1), model="structure")
    assert found.recommended.name == "moments-threshold"
    assert all(not each.available for each in found.methods[1:])


def test_what_learners_refuse_is_not_recommended():
    crowded = plan(200, 10**5, pf.ZCDP(0.1), model="polynomial", order=4)
    assert not any(each.available for each in crowded.methods)
    assert "None of the methods" in str(crowded)
    wide = plan(25, 10**5, pf.ZCDP(0.1), model="polynomial", order=3)
    assert "up to 20 variables" in next(each for each in wide.methods if each.name == "pmw").note


def test_table_1_has_all_notions_of_privacy():
    found = plan(20, 5000, pf.ApproxDP(1, 1e-6), accuracy=0.1, min_weight=0.2)
    rows = found.table1_rows()
    assert [row["privacy"] for row in rows] == [
        "no privacy",
        "ε = 1, δ = 1e-06",
        "ρ = 0.02436 (zCDP)",
        "ε = 1",
    ]
    needed = [row["parameters_needed"] for row in rows]
    assert needed == sorted(needed)  # harder as privacy is tightened
    assert "structure: proved" in found.table1()
    assert "two-level" in plan((3, 3), 100, pf.PureDP(1)).table1()


def test_table_1_shows_that_only_the_graph_under_a_delta_grows_slowly():
    """The separation of Zhang et al. (2020): log p for structure under (ε, δ), powers of p else."""
    goal = {"accuracy": 0.1, "min_weight": 0.4}
    few, many = (plan(p, 5000, pf.ApproxDP(1, 1e-6), **goal) for p in (20, 200))
    rows = few.table1_rows()
    for task in ("structure", "parameters"):
        wanted = [
            b[f"{task}_needed"] / a[f"{task}_needed"]
            for a, b in zip(rows, many.table1_rows(), strict=True)
        ]
        for plan_ in (few, many):
            found = [row[f"{task}_growth"] for row in plan_.table1_rows()]
            assert found == pytest.approx(wanted)
    none, approximate, concentrated, pure = (row["structure_growth"] for row in rows)
    assert max(none, approximate) < 3 < math.sqrt(10) < concentrated < pure
    assert all(row["parameters_growth"] > math.sqrt(10) for row in rows[1:])
    assert "p = 200 as at p = 20" in few.table1() and f"{approximate:.1f}×" in few.table1()


def test_weak_couplings_are_easier_than_strong_ones():
    weak, strong = (plan(10, 10**4, pf.ZCDP(0.1), coupling=c) for c in (0.1, 0.8))
    assert weak.sampling_error < strong.sampling_error
    assert weak.expected_error < strong.expected_error


@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 12),
    st.integers(1, 10**9),
    st.sampled_from([0.001, 0.1, 3.0]),
    st.sampled_from(["replace-one", "add-remove"]),
)
def test_more_rows_and_more_budget_never_hurt(p, n, rho, adjacency):
    options = {"adjacency": adjacency, "model": "ising"}
    base = plan(p, n, pf.ZCDP(rho), **options)
    more = plan(p, 2 * n, pf.ZCDP(rho), **options)
    richer = plan(p, n, pf.ZCDP(2 * rho), **options)
    named = {each.name: each for each in base.methods}
    for other in (more, richer):
        for each in other.methods:
            if each.available and named[each.name].available:
                # a dry run of selection finds whole edges: one more shares the budget once more
                slack = 1.05 if each.name == "selection" else 1 + 1e-9
                assert each.expected_error <= named[each.name].expected_error * slack


# -- what it refuses -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, -5, "5000", 2.5, None, True, float("nan"), 10**16])
def test_bad_numbers_of_rows(n):
    with pytest.raises(InputError, match=r"^n must be"):
        plan(5, n, pf.PureDP(1))


@pytest.mark.parametrize("budget", [pf.NON_PRIVATE, None, 1.0, "1", pf.Cost(1, 0)])
def test_bad_budgets(budget):
    with pytest.raises(InputError, match=r"^budget must be"):
        plan(5, 100, budget)


@pytest.mark.parametrize(
    ("given", "options", "text"),
    [
        ((2, 1, 2), {}, "levels from 2; got 1"),
        ((), {}, "1 to 8,192 variables"),
        (0, {}, "1 to 8,192 variables"),
        (10**9, {}, "1 to 8,192 variables"),
        ("schema.toml", {}, "schema_or_shape must be"),
        (None, {}, "schema_or_shape must be"),
        (pf.Schema({"a": ["only"]}), {}, "at least one variable must have two levels"),
        (5, {"model": "bayes"}, "model must be one of"),
        ((2, 3), {"model": "ising"}, "two levels"),
        ((2,), {"model": "ising"}, "at least two variables"),
        (5, {"width": 0}, "width must lie"),
        (5, {"width": "wide"}, "width"),
        (5, {"accuracy": -1}, "accuracy must lie"),
        (5, {"min_weight": 0}, "min_weight must lie"),
        (5, {"coupling": 0}, "coupling must lie"),
        (5, {"adjacency": "flip-outcome"}, "adjacency must be"),
        (5, {"adjacency": "nearby"}, "adjacency must be"),
        (5, {"cliques": "some"}, "cliques must be"),
        (5, {"cliques": []}, "cliques must be"),
        (5, {"cliques": [(0, 7)]}, "by position, 0 to 4"),
        (5, {"cliques": [(0, 0)]}, "different variables"),
        (5, {"cliques": [(0, 1), (1, 0)]}, "listed twice"),
        (5, {"cliques": ["ab"]}, "tuples of variables"),
        (5, {"max_memory": "lots"}, "max_memory must be"),
        (5, {"max_memory": -1}, "max_memory must lie"),
        (5, {"order": 3}, "model='polynomial'"),
        (5, {"model": "polynomial", "order": 6}, "order must be"),
        (5, {"model": "polynomial", "order": 0}, "order must be"),
        (5, {"model": "peer"}, "network is needed"),
        (5, {"model": "ising", "network": (5, 4, 2)}, "network goes with"),
        (5, {"model": "ising", "states": 3}, "states go with"),
        (None, {"network": (5, 4)}, "network must be"),
        (None, {"network": (5, 400, 3)}, "do not fit together"),
        (None, {"network": (5, 10, 1)}, "do not fit together"),
        (None, {"states": 1}, "states must be"),
        (None, {"states": 3, "limit": 0}, "limit must lie"),
        ((2, 2), {"model": "chain"}, "needs states"),
    ],
)
def test_bad_input_is_named(given, options, text):
    n = 5 if "network" in options and options["network"] and given is None else 100
    with pytest.raises(InputError, match=text.replace("(", r"\(").replace(")", r"\)")):
        plan(given, n, pf.PureDP(1), **options)


def test_the_nodes_of_a_network_are_not_a_choice():
    with pytest.raises(InputError, match="500 nodes"):
        plan(None, 100, pf.PureDP(1), network=(500, 2000, 30))


@pytest.mark.parametrize("data", [{}, None, [], {"format": 1, "kind": "plan"}, {"format": 9}])
def test_damaged_json(data):
    with pytest.raises(InputError, match="JSON of a plan"):
        Plan.from_json(data)


@pytest.mark.parametrize("budget", [pf.PureDP(1e-9), pf.PureDP(1e6), pf.ZCDP(1e-12), pf.ZCDP(1e6)])
@pytest.mark.parametrize("n", [1, 10**15])
@pytest.mark.parametrize("shape", [2, (2, 3), (7,), 40])
def test_extremes_do_not_fail(shape, n, budget):
    found = plan(shape, n, budget, accuracy=0.01)
    assert len(str(found).split("\n")) <= 40
    json.dumps(found.to_json(), allow_nan=False)


# -- parts -----------------------------------------------------------------------------------------


def test_sizes_are_read_in_one_way():
    assert check_bytes("8GB", "max_memory") == 8e9
    assert check_bytes("512 MiB", "max_memory") == 512 * 2**20
    assert check_bytes("1.5g", "max_memory") == 1.5e9
    assert check_bytes(1000, "max_memory") == 1000


def test_numbers_in_words():
    assert rows_text(20_961) == "21,000"
    assert rows_text(7.2) == "8"
    assert rows_text(1e20) == "over 1e15"
    assert bytes_text(8e9) == "8.0 GB"
    assert number_text(None) == "–"
    assert number_text(0.04189) == "0.042"
    assert duration_text(0.2) == "1 s" and duration_text(7200) == "2 h"
    assert "years" in duration_text(1e12)


def test_scaled_budgets_keep_their_kind():
    assert scaled(pf.PureDP(1), 2) == pf.PureDP(2)
    assert scaled(pf.ApproxDP(1, 1e-6), 0.5) == pf.ApproxDP(Fraction(1, 2), 1e-6)
    assert scaled(pf.ZCDP(0.1), 3) == pf.ZCDP(Fraction(3, 10))


def test_numpy_numbers_are_numbers():
    one = plan(np.array([2, 2, 2]), np.int64(1000), pf.PureDP(1), width=np.float64(2))
    assert one == plan(3, 1000, pf.PureDP(1))
    assert plan(3, 1e3, pf.PureDP(1)) == one


# -- importing -------------------------------------------------------------------------------------

_IMPORTS = """
import sys
import privfield as pf
assert "numpy" not in sys.modules  # importing privfield stays quick
import privfield.planning.request
from privfield.mechanisms.graphs.block_plan import plan_blocks
from privfield.planning.plan import plan
assert pf.plan is plan and callable(pf.plan)
assert pf.plan(3, 100, pf.PureDP(1)).n == 100
"""


def test_importing_is_quick_and_the_package_does_not_hide_the_function():
    subprocess.run([sys.executable, "-c", _IMPORTS], check=True, timeout=120)


def test_the_exported_name_is_the_function():
    import privfield.mechanisms.graphs.block_plan  # noqa: F401

    assert pf.plan is plan


def test_calls_name_the_budget_that_was_given():
    for budget in (pf.PureDP(0.5), pf.ZCDP(0.03), pf.GaussianDP(0.03), pf.ApproxDP(1, 1e-6)):
        call = pf.plan(4, 1000, budget).recommended.call
        inner = call[call.index("pf.", 3) : call.index(")") + 1]
        assert eval(inner, {"pf": pf}) == budget and type(eval(inner, {"pf": pf})) is type(budget)
