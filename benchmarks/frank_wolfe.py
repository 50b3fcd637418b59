"""Time one Frank–Wolfe step of all nodes of an Ising model; prints Markdown tables.

The rival is the same algorithm node by node in numpy: margins X w, residuals, Xᵀ r, in doubles. It
comes in two forms: with one matrix for all nodes (their own column gets weight 0), and with each
node's design [z_-i, 1] made when it is visited, as the paper writes it. All choose without noise,
so that only the gradients differ; the selection's own time stands beside. Times are CPU seconds
with BLAS as it is set up (OMP_NUM_THREADS=1 for one core), the best of some turns. Memory is the
peak of all arrays of a whole run, over the bytes of the coded rows. `--quick` tries it out.
"""

import argparse
import time
import tracemalloc

import numpy as np

import privfield as pf
from privfield.data.row_table import RowTable
from privfield.mechanisms.frank_wolfe.gradients import BLOCK, Gradients
from privfield.mechanisms.frank_wolfe.ising import IsingFrankWolfe
from privfield.mechanisms.frank_wolfe.laws import Best
from privfield.mechanisms.frank_wolfe.rows import Rows
from privfield.mechanisms.frank_wolfe.steps import residual_table, scale_of_iterate
from privfield.privacy.randomness import Randomness
from privfield.privacy.terms import Terms

SIZES = ((10_000, 100), (100_000, 100), (10_000, 1000))
GROWTH = (
    ((12_500, 200), (25_000, 200), (50_000, 200)),
    ((8192, 250), (8192, 500), (8192, 1000)),
)
QUICK_SIZES = ((500, 10), (1_000, 10))
RADIUS = 2.0
TURNS = 5


def signs(n, p):
    return np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (n, p))


def seconds(work, turns=TURNS):
    best = np.inf
    for _ in range(turns):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def private(p, steps):
    """The mechanism whose steps are timed."""
    names = tuple(f"x{i}" for i in range(p))
    return IsingFrankWolfe(Terms(pf.ZCDP(p / 100)), names=names, width=RADIUS / 2, steps=steps)


def our_step(data):
    """Seconds of one gradient of all nodes and the choice of their vertices, at some iterate."""
    p = data.shape[1]
    regressions = private(p, 10).regressions
    rows = Rows(RowTable(lambda key: iter([data]), True), None, 2.0**33)
    rows.load()
    sums = Gradients(regressions, rows, 100, 2.0**33)
    fixed = sums.targets_times_features()
    table = residual_table(5, RADIUS, 1)
    chosen, still = np.roll(np.arange(p), 1), np.zeros(p, np.int64)
    law, randomness = Best(regressions.law(())), Randomness()

    def step():
        moved = sums.residuals_times_features(table, np.zeros_like(fixed), chosen, still)
        best = randomness.draw("step", law, regressions.scores(moved - fixed))
        regressions.vertices(best)

    step()
    return seconds(step)


def naive_step(data, nodes, own_design):
    """Seconds of the same for all nodes, from `nodes` of them."""
    n, p = data.shape
    shared = np.hstack([data, np.ones((n, 1))])
    w = np.zeros(p + 1 - own_design)
    w[-2] = scale_of_iterate(5, RADIUS)

    def step():
        for i in range(nodes):
            design = np.delete(shared, i, axis=1) if own_design else shared
            label = shared[:, i]
            residual = -label / (1 + np.exp(label * (design @ w)))
            gradient = residual @ design
            np.concatenate([-gradient, gradient]).argmax()

    step()
    return seconds(step, 3) * p / nodes


def selection_seconds(p):
    mechanism, randomness = private(p, 10), Randomness()
    regressions, law = mechanism.regressions, mechanism.law(10, 0)
    gradients = np.random.default_rng(1).integers(-(10**7), 10**7, (p, p + 1))
    bounds = np.full(p, 5000)

    def select():
        drawn = randomness.draw("step", law(bounds), regressions.scores(gradients))
        regressions.vertices(drawn)

    return seconds(select, 3)


def gemm_rate(p):
    """What float32 products of a step's shape reach on this machine, in flop/s."""
    left, right = np.ones((BLOCK, p), np.float32), np.ones((BLOCK, p + 1), np.float32)
    return 2 * BLOCK * p * (p + 1) / seconds(lambda: left.T @ right, 8)


def memory(n, p):
    """Peak bytes that numpy held during a run, the coded rows included, over their bytes."""
    data = signs(n, p)
    tracemalloc.start()
    private(p, 4).release(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / data.nbytes


def speed_table(sizes):
    print("\nOne step of all nodes, CPU seconds\n")
    print(
        "| n | p | all at once | numpy, shared matrix | ratio | numpy, own designs | ratio "
        "| of GEMM rate | exact selection | memory |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for n, p in sizes:
        data = signs(n, p)
        ours = our_step(data)
        nodes = min(p, 5 if n * p >= 10**7 else 50)
        shared, own = (naive_step(data, nodes, own_design) for own_design in (False, True))
        share = 2 * n * p * (p + 1) / ours / gemm_rate(p)
        print(
            f"| {n:,} | {p:,} | {ours:.4f} | {shared:.3f} | {shared / ours:.1f}× | {own:.3f} "
            f"| {own / ours:.0f}× | {share:.0%} | {selection_seconds(p):.4f} "
            f"| {memory(n, p):.1f}× |",
            flush=True,
        )


def growth_table(series):
    print("\nCPU seconds of one step: linear in n, towards quadratic in p\n")
    print("| n | p | CPU-s | over the line above |")
    print("|---:|---:|---:|---:|")
    for sizes in series:
        last = None
        for n, p in sizes:
            now = our_step(signs(n, p))
            print(f"| {n:,} | {p:,} | {now:.4f} | {'' if last is None else f'{now / last:.2f}×'} |")
            last = now


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small tables, to try it out")
    quick = parser.parse_args().quick
    speed_table(QUICK_SIZES if quick else SIZES)
    growth_table((QUICK_SIZES,) if quick else GROWTH)


if __name__ == "__main__":
    main()
