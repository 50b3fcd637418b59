"""Time belief propagation on binary grids against numpy; prints Markdown tables.

The rivals update all messages at once, as arrays over the grid in the four directions, and also
compute beliefs and the Bethe log Z. The first keeps normalised log messages of both levels, which
is safe for any potentials and number of levels. The second keeps normalised probabilities of both
levels, which is fast but fails when potentials are large. The third uses that the model is binary
and of Ising form: log-odds by the tanh rule, half the numbers, and numpy's vectorised tanh.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privfield.inference.loopy.propagation import LoopyPlan, LoopyResult

Array = NDArray[np.float64]
ITERATIONS = 100
ISING = np.array([[1.0, -1.0], [-1.0, 1.0]])  # levels 0, 1 are spins −1, +1


def spins(side: int) -> tuple[Array, Array, Array]:
    """Weights to the right and downward, and the field, of a weakly coupled spin glass."""
    rng = np.random.default_rng(1)
    right, down = rng.normal(0, 0.3, (side, side - 1)), rng.normal(0, 0.3, (side - 1, side))
    return right, down, rng.normal(0, 0.5, (side, side))


def as_cliques(right: Array, down: Array, field: Array) -> tuple[list[tuple[int, ...]], Array]:
    numbers = np.arange(field.size).reshape(field.shape)
    pairs = [
        *zip(numbers[:, :-1].ravel().tolist(), numbers[:, 1:].ravel().tolist(), strict=True),
        *zip(numbers[:-1].ravel().tolist(), numbers[1:].ravel().tolist(), strict=True),
    ]
    weights = np.concatenate([right.ravel(), down.ravel()])
    cells = [np.multiply.outer(weights, ISING), np.multiply.outer(field, [-1.0, 1.0])]
    return pairs + [(i,) for i in range(field.size)], np.concatenate([c.ravel() for c in cells])


def numpy_logs(right: Array, down: Array, field: Array) -> tuple[Array, float]:
    """Log messages of both levels; a message's last axis is the level of its receiver."""
    local = np.multiply.outer(field, [-1.0, 1.0])
    across, along = np.multiply.outer(right, ISING), np.multiply.outer(down, ISING)
    # m[d] holds what arrives at each site from the left, right, above, below
    m = np.full((4, *field.shape, 2), -np.log(2))
    m[0, :, 0] = m[1, :, -1] = m[2, 0] = m[3, -1] = 0

    def step(table: Array, cavity: Array) -> Array:
        terms = table + cavity[..., None]
        new = np.logaddexp(terms[..., 0, :], terms[..., 1, :])
        return new - np.logaddexp(new[..., 0], new[..., 1])[..., None]

    for _ in range(ITERATIONS):
        total = local + m.sum(axis=0)
        cavity = total - m
        m[0, :, 1:] = step(across, cavity[1, :, :-1])
        m[1, :, :-1] = step(across, cavity[0, :, 1:])
        m[2, 1:] = step(along, cavity[3, :-1])
        m[3, :-1] = step(along, cavity[2, 1:])
    total = local + m.sum(axis=0)
    cavity = total - m
    log_z = np.logaddexp(total[..., 0], total[..., 1])
    beliefs = np.exp(total - log_z[..., None])
    bethe = float(log_z.sum())
    pairs = [
        (across, cavity[1, :, :-1], cavity[0, :, 1:], m[1, :, :-1]),
        (along, cavity[3, :-1], cavity[2, 1:], m[3, :-1]),
    ]
    for table, one, two, back in pairs:
        joint = table + one[..., :, None] + two[..., None, :]
        peak = joint.max(axis=(-2, -1), keepdims=True)
        sums = np.exp(joint - peak).sum(axis=(-2, -1))
        bethe += float((np.log(sums) + peak[..., 0, 0]).sum())
        for message, rest in ((back, one), (step(table, one), two)):
            both = message + rest
            bethe -= float(np.logaddexp(both[..., 0], both[..., 1]).sum())
    return beliefs[..., 1].ravel(), bethe


def numpy_probabilities(right: Array, down: Array, field: Array) -> tuple[Array, float]:
    """Normalised messages of both levels; their first axis is the level of the receiver."""
    local = np.exp(np.multiply.outer([-1.0, 1.0], field))
    across, along = (np.exp(np.multiply.outer(ISING, weights)) for weights in (right, down))
    m = np.full((4, 2, *field.shape), 0.5)
    m[0, :, :, 0] = m[1, :, :, -1] = m[2, :, 0] = m[3, :, -1] = 1

    def step(table: Array, cavity: Array) -> Array:
        new = table[0] * cavity[0] + table[1] * cavity[1]
        return new / new.sum(axis=0)

    for _ in range(ITERATIONS):
        cavity = local * m.prod(axis=0) / m
        m[0, :, :, 1:] = step(across, cavity[1, :, :, :-1])
        m[1, :, :, :-1] = step(across, cavity[0, :, :, 1:])
        m[2, :, 1:] = step(along, cavity[3, :, :-1])
        m[3, :, :-1] = step(along, cavity[2, :, 1:])
    total = local * m.prod(axis=0)
    cavity = total / m
    sums = total.sum(axis=0)
    bethe = float(np.log(sums).sum())
    pairs = [
        (across, cavity[1, :, :, :-1], cavity[0, :, :, 1:], sums[:, :-1], sums[:, 1:]),
        (along, cavity[3, :, :-1], cavity[2, :, 1:], sums[:-1], sums[1:]),
    ]
    for table, one, two, first, second in pairs:
        joint = (table * one[:, None] * two[None]).sum(axis=(0, 1))
        bethe += float((np.log(joint) - np.log(first * second)).sum())
    return (total[1] / sums).ravel(), bethe


def numpy_tanh(right: Array, down: Array, field: Array) -> tuple[Array, float]:
    """Half log-odds u with tanh u' = tanh J · tanh(cavity)."""
    across, along = np.tanh(right), np.tanh(down)
    m = np.zeros((4, *field.shape))
    for _ in range(ITERATIONS):
        total = field + m.sum(axis=0)
        cavity = np.tanh(total - m)
        m[0, :, 1:] = np.arctanh(across * cavity[1, :, :-1])
        m[1, :, :-1] = np.arctanh(across * cavity[0, :, 1:])
        m[2, 1:] = np.arctanh(along * cavity[3, :-1])
        m[3, :-1] = np.arctanh(along * cavity[2, 1:])
    total = field + m.sum(axis=0)
    mean = np.tanh(total)
    cavity = total - m
    bethe = float(np.log(2 * np.cosh(total)).sum())
    pairs = [
        (right, cavity[1, :, :-1], cavity[0, :, 1:], total[:, :-1], total[:, 1:]),
        (down, cavity[3, :-1], cavity[2, 1:], total[:-1], total[1:]),
    ]
    for weight, one, two, first, second in pairs:
        same = np.exp(weight) * 2 * np.cosh(one + two)
        sums = same + np.exp(-weight) * 2 * np.cosh(one - two)
        bethe += float((np.log(sums) - np.log(4 * np.cosh(first) * np.cosh(second))).sum())
    return (1 + mean.ravel()) / 2, bethe


def cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """Fastest of some runs: other work on the machine only ever adds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def run(plan: LoopyPlan, tables: Array, iterations: int = ITERATIONS, **options) -> LoopyResult:
    return plan.run(
        tables,
        **({"schedule": "synchronous", "tolerance": 0, "max_iterations": iterations} | options),
    )


def against_numpy() -> None:
    model = spins(100)
    cliques, tables = as_cliques(*model)
    plan = LoopyPlan((2,) * model[2].size, cliques)
    ours = run(plan, tables)
    seconds = cpu_seconds(lambda: run(plan, tables), 20)
    print(f"100×100 binary grid, {ITERATIONS} synchronous iterations, beliefs and Bethe log Z\n")
    print("| | ms | ratio | largest difference of beliefs | of log Z |")
    print("|---|---:|---:|---:|---:|")
    print(f"| privfield | {1e3 * seconds:.1f} | 1 | | |")
    for name, rival in (
        ("numpy, log messages", numpy_logs),
        ("numpy, probabilities", numpy_probabilities),
        ("numpy, tanh rule", numpy_tanh),
    ):
        beliefs, bethe = rival(*model)
        apart = np.abs(ours.variable_cells[1::2] - beliefs).max()
        assert apart < 1e-8 and abs(bethe - ours.log_partition) < 1e-8 * abs(bethe)
        theirs = cpu_seconds(lambda r=rival: r(*model), 5)
        print(
            f"| {name} | {1e3 * theirs:.0f} | {theirs / seconds:.1f}× | {apart:.0e} "
            f"| {abs(bethe - ours.log_partition):.0e} |"
        )


def growth() -> None:
    print("\nGrowth with the grid\n")
    print(
        "| grid | edges | plan, ms | all but the iterations, ms | synchronous, ns per edge and "
        "iteration | asynchronous | asynchronous, log messages |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for side in (50, 100, 200, 400):
        model = spins(side)
        cliques, tables = as_cliques(*model)
        edges = model[0].size + model[1].size
        made = cpu_seconds(lambda c=cliques, s=side: LoopyPlan((2,) * s * s, c), 1)
        plan = LoopyPlan((2,) * side * side, cliques)
        repeats = 10 if side < 200 else 3
        once = cpu_seconds(lambda p=plan, t=tables: run(p, t, 1), repeats)
        per_edge = []
        for options, more in (
            ({}, 50),
            ({"schedule": "asynchronous"}, 50),
            ({"schedule": "asynchronous", "messages": "log"}, 10),
        ):
            short, long = (
                cpu_seconds(lambda p=plan, t=tables, n=n, o=options: run(p, t, n, **o), repeats)
                for n in (1, 1 + more)
            )
            per_edge.append(1e9 * (long - short) / more / edges)
        print(
            f"| {side}×{side} | {edges:,} | {1e3 * made:.0f} | {1e3 * once:.1f} | "
            + " | ".join(f"{each:.1f}" for each in per_edge)
            + " |"
        )


def loading() -> None:
    code = "import time, numba; t = time.perf_counter(); import privfield.inference."
    code += "loopy.ratio_kernels; print(f'{time.perf_counter() - t:.1f}')"
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = (
            subprocess.run(
                [sys.executable, "-c", code],
                env=os.environ | {"NUMBA_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for _ in range(2)
        )
    print(f"Kernels: {cold} s to compile, once per machine; {warm} s to load from the cache\n")


def main() -> None:
    loading()
    against_numpy()
    growth()


if __name__ == "__main__":
    main()
