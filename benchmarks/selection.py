"""Time exact selections against OpenDP's on the same scores; prints a Markdown table."""

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import opendp.prelude as dp

from privfield.privacy.selection import exponential_mechanism, exponential_mechanism_rows

SELECTIONS = 100_000
TABLE_SCORES = 10**7  # 80 MB of scores at a time
SCALE = 100


def cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    work()
    start = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - start) / repeats


def main() -> None:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    opendp = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=float(SCALE))
    rng = np.random.default_rng(0)
    print("CPU-seconds per 100,000 selections (exponential mechanism, exact)\n")
    print("| candidates | rows of a table | one call each | OpenDP, one call each | ratio |")
    print("|---:|---:|---:|---:|---:|")
    for candidates in (100, 1_000, 10_000):
        rows = min(SELECTIONS, TABLE_SCORES // candidates)
        table = rng.integers(0, 2_000, (rows, candidates))
        row, listed = table[0], table[0].tolist()
        scale = Fraction(SCALE)

        batched = cpu_seconds(
            lambda t=table, s=scale: exponential_mechanism_rows(t, s), SELECTIONS // rows
        )
        batched *= SELECTIONS / rows
        calls = max(50, 200_000 // candidates)
        single = cpu_seconds(lambda r=row, s=scale: exponential_mechanism(r, s), calls)
        theirs = cpu_seconds(lambda r=listed: opendp(r), calls)
        single *= SELECTIONS
        theirs *= SELECTIONS
        print(
            f"| {candidates:,} | {batched:.2f} | {single:.1f} | {theirs:.0f} "
            f"| {theirs / batched:.0f}× / {theirs / single:.1f}× |"
        )


if __name__ == "__main__":
    main()
