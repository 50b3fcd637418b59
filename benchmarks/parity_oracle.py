"""Time and quality of the parity oracle, and of sepFEM with it; prints Markdown tables.

With the argument "sepfem" it prints the last table only; with "settings", instead, how sepFEM's
error depends on its settings; with "heldout", its error on models that no setting was tuned on;
with "constant", the default beside a perturbation that does not grow with the rounds.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

import privfield as pf
from privfield.kernels.walsh_hadamard import transform
from privfield.solvers.parity_oracle.oracle import maximise, maximise_each, set_members

HELD_OUT = ((10, 1_000), (10, 10_000), (10, 100_000), (24, 1_000), (24, 10_000))  # p, rows
ROUNDS_OF_WEIGHTS = 300  # how many ±1 steps an instance "as in sepFEM" has made


def seconds(work: Callable[[], object], repeats: int = 15) -> float:
    """CPU-seconds: the median over repeats, after one run that compiles."""
    work()
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def instance(seed: int, p: int, order: int, sparse: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, p])
    sets = len(set_members(p, order))
    weights = np.zeros(sets)
    if sparse:
        steps = rng.integers(sets, size=ROUNDS_OF_WEIGHTS)
        np.add.at(weights, steps, rng.choice([-1.0, 1.0], ROUNDS_OF_WEIGHTS))
    else:
        weights[:] = rng.normal(size=sets)
    return weights, rng.laplace(0, 3, (100, p))


def oracle_against_transform() -> None:
    print("### Exact oracle, p = 20, order 3 (1,350 parities)\n")
    print("| work | CPU-ms | transforms of 2²⁰ |")
    print("|---|---:|---:|")
    numbers = np.random.default_rng(0).normal(size=2**20)

    def once() -> None:
        numbers[:] = 1e-3  # or they would overflow after many repeats
        transform(numbers)

    fill = seconds(lambda: numbers.fill(1e-3))
    base = seconds(once) - fill
    print(f"| one Walsh–Hadamard transform of 2²⁰ | {1e3 * base:.1f} | 1 |")
    full, linear = instance(0, 20, 3, sparse=False)
    few, _ = instance(0, 20, 3, sparse=True)
    for name, work in [
        ("one problem, all weights", lambda: maximise(full, 20, 3)),
        ("one problem, weights as in sepFEM", lambda: maximise(few, 20, 3, linear=linear[0])),
        ("100 perturbed problems as in sepFEM", lambda: maximise_each(few, linear, 20, 3)),
    ]:
        taken = seconds(work, 7)
        print(f"| {name} | {1e3 * taken:.1f} | {taken / base:.2f} |")


def tabu_against_exact() -> None:
    maximise(np.ones(2), 2, 1, method="tabu")  # compiles
    print("\n### Tabu search against the exact optimum, order 3, 20 instances\n")
    print(
        "| p | weights | instances | largest gap, 8 starts | largest gap of 100 problems, 1 start "
        "| share not optimal, 1 start | exact, CPU-s | tabu, CPU-s |"
    )
    print("|---:|---|---:|---:|---:|---:|---:|---:|")
    for p in (12, 16, 20, 22, 24):
        for sparse in (False, True):
            gaps, single, exact_time, tabu_time = [], [], 0.0, 0.0
            for seed in (100, 101):  # others than those that its settings were tried on
                weights, linear = instance(seed, p, 3, sparse)
                start = time.process_time()
                best = maximise(weights, p, 3, linear=linear[0], method="exact")
                middle = time.process_time()
                rng = np.random.default_rng(seed)
                good = maximise(weights, p, 3, linear=linear[0], method="tabu", rng=rng)
                exact_time += middle - start
                tabu_time += time.process_time() - middle
                gaps.append(1 - good.value / best.value)
                each = maximise_each(weights, linear, p, 3, method="exact").values
                ones = maximise_each(weights, linear, p, 3, method="tabu", rng=rng).values
                single.append(1 - ones / each)
            share = float((np.concatenate(single) > 1e-9).mean())
            kind = "as in sepFEM" if sparse else "all, normal"
            print(
                f"| {p} | {kind} | 2 | {max(gaps):.2%} | {np.max(single):.2%} | {share:.1%} "
                f"| {exact_time / 2:.3f} | {tabu_time / 2:.3f} |"
            )


def integer_program() -> None:
    print("\n### Integer program (HiGHS), all weights normal\n")
    print("| p | order | parities | HiGHS, CPU-s | exact, CPU-ms | same optimum |")
    print("|---:|---:|---:|---:|---:|---|")
    for p, order in [(8, 2), (10, 2), (12, 2), (14, 2), (8, 3), (10, 3)]:
        weights, _ = instance(0, p, order, sparse=False)
        start = time.process_time()
        program = maximise(weights, p, order, method="milp")
        taken = time.process_time() - start
        exact = maximise(weights, p, order, method="exact")
        same = abs(program.value - exact.value) < 1e-6
        quick = seconds(lambda w=weights, p=p, o=order: maximise(w, p, o, method="exact"), 5)
        print(
            f"| {p} | {order} | {len(weights)} | {taken:.1f} | {1e3 * quick:.2f} "
            f"| {'yes' if same else 'no'} |"
        )


def mixture(p: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Two kinds of people; each variable is +1 with a probability of 0.2 to 0.8 that differs."""
    chance = rng.uniform(0.2, 0.8, (2, p))[rng.integers(0, 2, rows)]
    return np.where(rng.random((rows, p)) < chance, 1, -1).astype(np.int8)


def triples(p: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Every third variable is the product of the two before, with 20 % errors."""
    x = rng.choice(np.array([-1, 1], np.int8), (rows, p))
    for j in range(2, p, 3):
        x[:, j] = x[:, j - 1] * x[:, j - 2] * np.where(rng.random(rows) < 0.8, 1, -1)
    return x


def end_to_end() -> None:
    print("\n### sepFEM end to end, order 3, 10,000 rows, replace-one, defaults\n")
    print("Largest error over all parities; one run each. Zeros: the error of answering 0.\n")
    print("| data | p | parities | ρ | rounds | oracle | CPU-s | sepFEM | Gaussian | zeros |")
    print("|---|---:|---:|---:|---:|---|---:|---:|---:|---:|")
    for p in (10, 20, 40):
        for rho in (0.0004, 0.01):
            for name, make in [("mixture", mixture), ("triples", triples)]:
                x = make(p, 10_000, np.random.default_rng(p))
                truth = pf.measure_parities(x, pf.NON_PRIVATE, 3).answers
                start = time.process_time()
                found = pf.measure_parities(x, pf.ZCDP(rho), 3, "sepfem")
                taken = time.process_time() - start
                plain = pf.measure_parities(x, pf.ZCDP(rho), 3, "gaussian").answers
                error, other = (np.abs(a - truth).max() for a in (found.answers, plain))
                print(
                    f"| {name} | {p} | {len(truth):,} | {rho} | {found.about['rounds']} "
                    f"| {found.about['oracle']} | {taken:.1f} | {error:.3f} | {other:.3f} "
                    f"| {np.abs(truth).max():.3f} |",
                    flush=True,
                )


def chain(p: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Each variable repeats the one before with probability 0.7."""
    steps = np.where(rng.random((rows, p)) < 0.7, 1, -1).astype(np.int8)
    steps[:, 0] = rng.choice([-1, 1], rows)
    return np.asarray(np.cumprod(steps, axis=1, dtype=np.int8))


def skewed(p: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Independent variables, +1 with probabilities of 0.05 to 0.95."""
    return np.where(rng.random((rows, p)) < rng.uniform(0.05, 0.95, p), 1, -1).astype(np.int8)


def mean_error(
    p: int, signal: int, rounds: int, samples: int, scale: float, variant: str, repeats: int
) -> float:
    """Largest error over parities of order 3 at n√ρ = signal, mean over sources and repeats."""
    rows, found = 100_000, []
    for make in (mixture, chain, skewed, triples):
        x = make(p, rows, np.random.default_rng(1))
        truth = pf.measure_parities(x, pf.NON_PRIVATE, 3).answers
        budget = pf.ZCDP(Fraction(signal, rows) ** 2)
        for _ in range(repeats):
            told = {"rounds": rounds, "samples": samples, "perturbation": scale * rounds**0.5}
            answers = pf.measure_parities(x, budget, 3, variant, **told).answers
            found.append(np.abs(answers - truth).max())
    return float(np.mean(found))


def settings() -> None:
    print("### sepFEM's settings, p = 10, order 3, mean of 16 runs\n")
    print("| variant | n√ρ | rounds | samples | scale 0.2·√rounds | 0.35 | 0.5 | 0.7 | 1 |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for variant, signal, rounds, samples in [
        *(("sepfem", 300, rounds, 100) for rounds in (30, 90, 300)),
        *(("sepfem", 1000, rounds, 100) for rounds in (100, 300, 1000)),
        *(("sepfem", 1000, 300, samples) for samples in (20, 50, 200)),
        ("fem", 1000, 300, 100),
    ]:
        errors = [
            mean_error(10, signal, rounds, samples, scale, variant, 4)
            for scale in (0.2, 0.35, 0.5, 0.7, 1.0)
        ]
        row = " | ".join(f"{error:.3f}" for error in errors)
        print(f"| {variant} | {signal} | {rounds} | {samples} | {row} |", flush=True)


def tree(p: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Each variable repeats an earlier one with probability 0.6 to 0.95."""
    x = np.empty((rows, p), np.int8)
    x[:, 0] = rng.choice([-1, 1], rows)
    for j in range(1, p):
        parent, chance = int(rng.integers(j)), rng.uniform(0.6, 0.95)
        x[:, j] = x[:, parent] * np.where(rng.random(rows) < chance, 1, -1)
    return x


def classes(p: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Four kinds of people, as in `mixture`, with probabilities of 0.1 to 0.9."""
    chance = rng.uniform(0.1, 0.9, (4, p))[rng.integers(0, 4, rows)]
    return np.where(rng.random((rows, p)) < chance, 1, -1).astype(np.int8)


def held_out(settings: Sequence[tuple[int, int]] = HELD_OUT) -> None:
    print("### sepFEM on models that it was not tuned on, order 3, ρ = 0.5, replace-one\n")
    print("Largest error over all parities: mean over four kinds of data; the largest of them.\n")
    print("| p | rows | rounds | choices | CPU-s | sepFEM | largest | Gaussian |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    budget = pf.ZCDP(0.5)
    for p, rows in settings:
        errors, plain, spent = [], [], 0.0
        for make in (tree, classes, skewed, triples):
            x = make(p, rows, np.random.default_rng([31, p, rows]))
            truth = pf.measure_parities(x, pf.NON_PRIVATE, 3).answers
            start = time.process_time()
            found = pf.measure_parities(x, budget, 3, "sepfem")
            spent += (time.process_time() - start) / 4
            errors.append(np.abs(found.answers - truth).max())
            noisy = pf.measure_parities(x, budget, 3, "gaussian").answers
            plain.append(np.abs(noisy - truth).max())
        about = found.about
        print(
            f"| {p} | {rows:,} | {about['rounds']:,} | {about['choices']} | {spent:.1f} "
            f"| {np.mean(errors):.4f} | {max(errors):.4f} | {np.mean(plain):.4f} |",
            flush=True,
        )


def constant_scale() -> None:
    runs = 4
    print(f"### sepFEM's growing scale against a constant one, order 3, n√ρ = 1,000, {runs} runs\n")
    print("Largest error over all parities: mean, least and largest of the runs.\n")
    print("| data | p | rounds | default | constant scale 3, window 1 |")
    print("|---|---:|---:|---:|---:|")
    budget = pf.ZCDP(Fraction(1, 100))
    for p in (10, 24):
        for name, make in [("triples", triples), ("mixture", mixture), ("tree", tree)]:
            x = make(p, 10_000, np.random.default_rng([77, p]))
            truth = pf.measure_parities(x, pf.NON_PRIVATE, 3).answers
            rounds = pf.measure_parities(x, budget, 3, "sepfem").about["rounds"]
            plain = {"rounds": rounds, "window": 1, "perturbation": 3}
            cells = []
            for told in ({}, plain):
                answers = (pf.measure_parities(x, budget, 3, "sepfem", **told) for _ in range(runs))
                found = [np.abs(each.answers - truth).max() for each in answers]
                cells.append(f"{np.mean(found):.3f} ({min(found):.3f}–{max(found):.3f})")
            print(f"| {name} | {p} | {rounds} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    alone = {
        "settings": settings,
        "sepfem": end_to_end,
        "heldout": held_out,
        "constant": constant_scale,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", choices=alone)
    parser.add_argument("--quick", action="store_true", help="small tables: heldout, to try it out")
    given = parser.parse_args()
    if given.quick:
        if given.table != "heldout":
            parser.error("--quick is for heldout")
        held_out(((6, 300), (8, 300)))
        return
    if given.table:
        alone[given.table]()
        return
    oracle_against_transform()
    tabu_against_exact()
    integer_program()
    end_to_end()


if __name__ == "__main__":
    main()
