"""Errors of mechanisms, of privacy and its ledger, and of files: one call for each text.

Those that no other test quotes; `tests/test_error_texts.py` fails where a text stands in no test.
"""

import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

import privfield as pf
from mistakes import told_by
from privfield.data.sequences.form import SequenceForm, StateSet
from privfield.mechanisms.edges.mechanism import check_choice
from privfield.mechanisms.edges.selection import SelectedTriple
from privfield.mechanisms.frank_wolfe.logistic import LogisticFrankWolfe
from privfield.mechanisms.scores.losses import check_states
from privfield.privacy.budgets import budget_from_json
from privfield.privacy.noise import NoiseLaw, check_law
from privfield.privacy.selection import exponential_mechanism
from privfield.privacy.stability import release_probabilities
from releases import (
    frank_wolfe_logistic,
    frank_wolfe_pairwise,
    frank_wolfe_polynomial,
    measure_chain,
    measure_moments,
    measure_network_objective,
    measure_pseudolikelihood,
    measure_structure,
    private_sgd,
)
from small_releases import (
    AB,
    AB_LEVELS,
    CODES,
    ITEMS,
    NODES,
    ONE,
    PAIR,
    SIGNS,
    learn,
    logistic,
    model,
    moments,
    on_path,
    ordinal,
    parities,
    scores,
    tables,
    tree,
)

PRINTED = {"calibration": "as-printed"}
SETTINGS = {"sampling_rate": 1, "clip": 1, "learning_rate": 0.1}


def of_chain(**changes):
    form = StateSet.of(["x", "y"])
    return replace(measure_chain([["x", "y"]], form, pf.PureDP(1)), **changes)


def ledger(name="a.ledger", **terms):
    return pf.Ledger(name, total=pf.ApproxDP(1, 1e-6), **terms)


def strange_ledger(change):
    ledger()
    with sqlite3.connect("a.ledger") as db:
        db.execute(change)
    db.close()
    pf.Ledger("a.ledger")


def stream():
    """Rows that can be read only once."""
    batch = pa.record_batch({"a": ["1"] * 40, "b": ["2"] * 40})
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def descent(epsilon=1.0):
    return private_sgd(CODES, AB, [("a", "b")], pf.ApproxDP(epsilon, 1e-12), steps=2, **SETTINGS)


def root(budget=ONE, **options):
    return measure_network_objective(NODES, np.array([1, 0, 1]), budget, **options)


def elsewhere(given):
    return pf.Measurements.from_tables(AB, [("a", "b")], given, noise="laplace", scale=1)


def written(name, text):
    Path(name).write_text(text)


MISTAKES = [
    # what mechanisms release, and what they refuse
    (
        lambda: on_path(covariates={"x": [1, 2]}),
        "covariates: 'x' must hold one finite number for each of 3 nodes.",
    ),
    (
        lambda: on_path(covariates={"H": [1, 2, 3]}),
        "covariates: names must be text other than 'H', 'beta' and 'field'.",
    ),
    (lambda: measure_moments(np.ones((9, 0)), ONE), "data must have 1 to "),
    (lambda: learn(importance={"a": 0}), "importance must be whole numbers from 1 to "),
    (
        lambda: LogisticFrankWolfe.measure(
            (SIGNS / 2.0, SIGNS[:, 0]), ONE, features=3, radius=1.0, steps=2
        ),
        "X must have 3 columns; got 2.",
    ),
    (
        lambda: frank_wolfe_logistic(SIGNS / 2.0, SIGNS[:, 0], ONE, 0, steps=2),
        "must lie between 1e-6 and 10,000; got 0.",
    ),
    (lambda: replace(tree(), names=("a", "a")), "names must be different from each other."),
    (
        lambda: ordinal([[1, 2, 3]]),
        "scores must be a list with the scores of each of the 2 variables.",
    ),
    (
        lambda: replace(moments(), total=None),
        "either total or count must be given: the number of rows, or a noisy one.",
    ),
    (lambda: replace(moments(), total=0.5), "total and count must be whole numbers."),
    (
        lambda: pf.measure_parities(SIGNS, ONE, 2, "x"),
        "method must be 'auto', 'gaussian', 'pmw', 'sepfem' or 'fem'; got 'x'.",
    ),
    (lambda: of_chain(unit=7), "unit must be text."),
    (
        lambda: of_chain(initial=np.zeros(3)),
        "initial must be an array of 64-bit floats with shape (2,).",
    ),
    (
        lambda: pf.ChainLearner(ONE, states=["x", "y"], null="y", limit=60_000, segment=9).fit(
            [["x", "y"]]
        ),
        "limit and segment: a unit may weigh ",
    ),
    (
        lambda: check_choice(AB, None, 1),
        "max_bytes: exact inference without any edge needs more than 1 bytes.",
    ),
    (lambda: learn(importance=3), "importance must be a dict of variable names; got 3."),
    (
        lambda: replace(learn(), triples=(SelectedTriple(2, 1, 0, 1.0, 1.0),)),
        "triples must be variables of the schema, in its order.",
    ),
    (
        lambda: learn(stream(), budget=pf.ApproxDP(1, 1e-6), structure="stable"),
        "data can be read only once, but structure='stable' takes two passes. Pass a frame or a",
    ),
    (
        lambda: pf.FrankWolfe(pf.ZCDP(1), ball="group", groups=[2], steps=2, **PRINTED).fit(
            SIGNS / 2.0, SIGNS[:, 0]
        ),
        "calibration='as-printed' is for ball='l1' and ball='simplex'.",
    ),
    (lambda: logistic(X=[[1.0]]), "X must be a 2-D numpy array; got list."),
    (
        lambda: logistic(X=np.ma.masked_array(SIGNS / 2.0)),
        "X is a masked array: fill it first, with NaN for what is missing.",
    ),
    (lambda: logistic(X=SIGNS.astype(str)), "X must hold numbers; got dtype "),
    (lambda: pf.Loss("margin", (1, 0), (0, 1)), "at must rise, one number for each of slopes."),
    (lambda: logistic(max_bytes=-1), "max_bytes must not be negative; got -1."),
    (
        lambda: logistic(budget=pf.NON_PRIVATE, **PRINTED),
        'calibration="as-printed" needs a budget; got NON_PRIVATE.',
    ),
    (
        lambda: logistic(budget=pf.ZCDP(1), adjacency="add-remove", **PRINTED),
        'calibration="as-printed" is for adjacency="replace-one" with rows as the unit.',
    ),
    (
        lambda: frank_wolfe_pairwise(CODES, AB, pf.ZCDP(1), 1.0, steps=2, **PRINTED),
        'calibration="as-printed" goes with geometry="l1", the paper\'s ball.',
    ),
    (
        lambda: frank_wolfe_pairwise(
            CODES, pf.Schema({"a": 60_000, "b": 60_000}), ONE, 1.0, steps=2
        ),
        " levels are too many; use method='tables', coarser levels or fewer variables.",
    ),
    (
        lambda: frank_wolfe_polynomial(np.ones((9, 60), np.int8), 60, ONE, 9, 1.0, steps=2),
        " products are too many; use a smaller order or fewer variables.",
    ),
    (
        lambda: measure_pseudolikelihood(SIGNS, ONE, names=["a", "b"], steps=1, clip=0),
        "clip must be at least 0.001; got 0.",
    ),
    (
        lambda: replace(descent(), gradients=np.zeros((1, 3))),
        "gradients must have 4 columns; got shape (1, 3).",
    ),
    (
        lambda: descent(epsilon=1e-9),
        " is too small for 2 steps of private SGD.",
    ),
    (
        lambda: replace(tree(), edges=(("a", "b"), ("a", "b"))),
        "edges must be different from each other.",
    ),
    (
        lambda: replace(tree(), edges=(("b", "a"),)),
        "edges must be tuples of at least two different names, in column order.",
    ),
    (
        lambda: measure_structure(
            np.zeros((40, 3)),
            pf.ApproxDP(1, 1e-6),
            schema=pf.Schema(dict.fromkeys("abc", 3)),
            order=3,
        ),
        "order=3 is for variables with two levels only; use order=2.",
    ),
    (
        lambda: measure_structure(
            {"who": ["x"] * 40, "a": ["no"] * 40, "b": ["no"] * 40},
            pf.ApproxDP(1, 1e-6),
            schema=pf.Schema(AB_LEVELS, unit=pf.Person("who", rows=2)),
        ),
        "schema: each person must be in one block only, with one row: say pf.Person('who', rows=1)",
    ),
    (
        lambda: pf.OrdinalLearner(ONE, schema=pf.Schema({"a": pf.Ordered(["x"]), "b": 2})).fit(
            CODES
        ),
        "has one level: there is nothing to learn.",
    ),
    (
        lambda: pf.OrdinalLearner(
            ONE, schema=pf.Schema(AB_LEVELS, forbidden=[{"a": "no", "b": "no"}])
        ).fit(CODES),
        "schema: models of scores know no forbidden combinations.",
    ),
    (
        lambda: pf.OrdinalLearner(pf.ZCDP(1), schema=ITEMS).fit(stream()),
        "data can be read only once, but scores of items take two passes. Pass a frame or a file.",
    ),
    (lambda: ordinal([[0, 1, 1e7]] * 2), "scores of 'a' must lie within ±1,000,000; got "),
    (lambda: ordinal(["x", "y"]), "scores of 'a' must be numbers."),
    (lambda: ordinal("square"), "scores must be 'two-stage', 'linear', 'split' or a list; got "),
    (
        lambda: replace(scores(), pairs=np.zeros((3, 3), np.int64)),
        "pairs and singles must have shapes (2, 2) and (2,).",
    ),
    (
        lambda: replace(scores(), pairs=np.array([[1, 2], [3, 4]])),
        "pairs must be symmetric.",
    ),
    (
        lambda: replace(scores(), gaps=np.zeros(2, np.int64)),
        "gaps and together go with each other.",
    ),
    (
        lambda: replace(scores(), gaps=np.zeros(3, np.int64), together=np.eye(2, dtype=np.int64)),
        "gaps and together must have shapes (2,) and (2, 2).",
    ),
    (
        lambda: replace(scores(), laws=()),
        "laws must hold four, of levels, pairs, squares and singles; with gaps, a fifth.",
    ),
    (
        lambda: replace(scores(), levels=()),
        "levels must hold one number for each level of each variable.",
    ),
    (
        lambda: pf.pool([scores(), replace(scores(), model_scores=(np.arange(3.0),) * 2)]),
        "sites must have the same scores: their weights mean other things.",
    ),
    (
        lambda: replace(moments(), singles=np.zeros(3, np.int64)),
        "pairs and singles must have shapes (2, 2) and (2,); got (2, 2) and (3,).",
    ),
    (
        lambda: replace(parities(), sums=None),
        "sums are released by method='gaussian', and by no other.",
    ),
    (lambda: replace(parities(), sums=np.zeros(9, np.int64)), "sums must have shape (3,); got"),
    (
        lambda: pf.PolynomialLearner(pf.ZCDP(1), order=2, steps=2, schema=AB).fit(stream()),
        "data can be read only once, but objective='linf' reads it twice. Pass a frame or a file",
    ),
    (
        lambda: pf.measure_parities(np.ones((9, 40), np.int8), pf.ZCDP(1), 2, "pmw"),
        "method='pmw' keeps a weight for each of 2^40 states, ",
    ),
    (
        lambda: on_path(budget=pf.ZCDP(1), **PRINTED),
        'calibration="as-printed" needs a pf.PureDP or pf.ApproxDP budget.',
    ),
    (
        lambda: pf.PeerEffect(ONE, scaling="none", **PRINTED).fit(-PAIR, [1, 0]),
        'calibration="as-printed" is for couplings that are not negative.',
    ),
    (lambda: root(pf.PureDP(1e-8)), "budget is too small for objective perturbation."),
    (
        lambda: root(pf.PureDP(4.1e-8)),
        "budget is out of range for objective perturbation on this network.",
    ),
    (lambda: root(least=1), "least must be 0 or below; got 1."),
    (
        lambda: on_path(budget=pf.PureDP(1e-17), method="sufficient-statistic"),
        "budget is too small for this network: noise would exceed 64 bits.",
    ),
    (
        lambda: check_states(
            pf.ChainModel(["x", "y"], [0.5, 0.5], PAIR), SequenceForm.of(["y", "x"])
        ),
        "model must have the same states, in the same order.",
    ),
    (
        lambda: replace(tables(), scales=()),
        "cliques, tables and scales must be equally many; got 1, 1 and 0.",
    ),
    (
        lambda: replace(tables(), centred=(1,)),
        "centred must hold True or False for each table.",
    ),
    (
        lambda: replace(tables(), cliques=(("b", "a"),), centred=(True,)),
        "the centred table of ('b', 'a') must follow the schema's order.",
    ),
    (lambda: replace(tables(), grid=0.0), "grid must be above 0; got 0.0."),
    (lambda: elsewhere([]), "tables must hold one array for each of 1 cliques."),
    (lambda: elsewhere([[["x"]]]), "tables and scale must hold numbers only."),
    (
        lambda: pf.measure(CODES, AB, [()], ONE),
        "cliques: an empty clique has no table; leave it out.",
    ),
    (
        lambda: private_sgd(
            CODES,
            pf.Schema(
                AB_LEVELS,
                forbidden=[{"a": a, "b": b} for a in ("no", "yes") for b in ("no", "yes")],
            ),
            [("a", "b")],
            pf.ApproxDP(1, 1e-6),
            steps=2,
            **SETTINGS,
        ),
        "schema: its forbidden combinations leave no possible record.",
    ),
    # files
    (lambda: model().save("a\0b"), "is no file name."),
    (lambda: model().save("/proc/m.pf"), "path: cannot write in '/proc'"),
    (lambda: pf.load("/"), "path: cannot read '/'"),
    # privacy and its ledger
    (
        lambda: pf.MarginalLearner(7, schema=AB).fit(CODES),
        "budget must be pf.PureDP, pf.ZCDP or pf.ApproxDP (or pf.NON_PRIVATE for study); got int.",
    ),
    (
        lambda: pf.Cost(-1, 0),
        "Cost: rho, delta, epsilon and gaussian must not be negative.",
    ),
    (lambda: budget_from_json({"kind": "pure"}), "a stored budget is damaged."),
    (
        lambda: strange_ledger("UPDATE meta SET value = '{}' WHERE name = 'total'"),
        "path: this ledger is damaged: what it says does not fit.",
    ),
    (lambda: strange_ledger("PRAGMA user_version = 9"), "has ledger format 9; this is "),
    (
        lambda: (ledger(), ledger(stable_delta=1e-9)),
        "was made with another stable_delta.",
    ),
    (
        lambda: ledger().charge("x", pf.NON_PRIVATE, "replace-one"),
        "a ledger records private releases; this one has no privacy cost.",
    ),
    (lambda: ledger().keep("j", b""), "job 'j' was never charged to this ledger."),
    (lambda: ledger().charge("", ONE, "replace-one"), "what must be non-empty text."),
    (lambda: (Path("f").mkdir(), ledger("f")), "/f' as a ledger."),
    (
        lambda: (written("a.ledger", "x" * 2000), pf.Ledger("a.ledger")),
        "as a ledger: it is not a ledger, or damaged.",
    ),
    (
        lambda: (written("a.ledger", ""), pf.Ledger("a.ledger")),
        "'a.ledger' is an empty file; to start, give a total.",
    ),
    (
        lambda: NoiseLaw("none", 0.0).margin(2),
        "level must lie between 0 and 1; got 2.",
    ),
    (lambda: check_law("laplace", 0), "noise 'laplace' does not go with the scale 0."),
    (
        lambda: exponential_mechanism([0.5], 1),
        "scores must be integers that fit int64 (round others to a public grid first); got dtype",
    ),
    (
        lambda: exponential_mechanism([[1], [1, 2]], 1),
        "scores must have the same number of candidates in each row.",
    ),
    (
        lambda: release_probabilities(Fraction(21), Fraction(1, 9)),
        "epsilon of a stable release must lie in (0, 20]; got 21.0.",
    ),
    (
        lambda: release_probabilities(Fraction(1), Fraction(0)),
        "a stable release needs δ > 0: with probability δ it may reveal what it must not; got",
    ),
    (
        lambda: release_probabilities(Fraction(1, 10**9), Fraction(1, 10**9)),
        "people could change might not be released.",
    ),
]

test_mistakes = told_by(MISTAKES)
