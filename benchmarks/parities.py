"""Parity queries and what they are for; prints Markdown tables and draws docs/figures/parities.png.

1. The largest error over all parities of up to three variables, by release method, as rows grow.
2. Maximal monomials of three-wise models: regressions alone (Zhang et al. 2020, Algorithm 4), with
   parity answers (Algorithm 5), and with the paper's split of rows and budget; and pairs and
   triples apart, as variables get more skewed.
3. How much of the budget parity answers should have.
4. One round of private multiplicative weights over one Walsh–Hadamard transform of the same size.

Rows come from random sparse three-wise models. Errors of releases are against the rows' own means,
those of monomials against the model. Every method sees the same rows; numbers are means over
repetitions. `python benchmarks/parities.py releases` makes one table only (also: learning, orders,
shares, speed). OMP_NUM_THREADS=1 keeps it to one core. `--quick` tries all of it on few rows. What
the figure shows is kept beside it, in parities.json.
"""

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import privfield as pf
from privfield.kernels.walsh_hadamard import transform
from privfield.mechanisms.parities.answers import count_sets

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
ABOUT = {
    "command": "python benchmarks/parities.py releases learning",
    "errors": "by p and method, a mean for each number of rows; null: not for so many variables",
    "seeds": "models and rows: numpy default_rng(p); noise afresh",
}
ORDER = 3
METHODS = ("gaussian", "pmw", "sepfem")
RELEASE_RHO = 0.5
LEARN_RHO = 1.0
LEARNERS = {
    "Algorithm 4": {"objective": "l1"},
    "Algorithm 5": {},
    "Algorithm 5, ρ in halves": {"query_share": 0.5},
    "Algorithm 5, printed split": {"split": "printed"},
}
SHARES = (0.03, 0.1, 0.3, 0.5)
STYLES = (  # dark to light in grey as well; markers and dashes differ too
    ("#004488", "o", "-"),
    ("#DDAA33", "d", "--"),
    ("#882255", "s", "-."),
    ("#88CCEE", "^", "-"),
)


@dataclass(frozen=True)
class Scope:
    """Variables, rows and repetitions of every table."""

    release_sizes: tuple[int, ...] = (10, 16, 24)
    release_rows: tuple[int, ...] = (100, 300, 1_000, 3_000, 10_000, 30_000)
    release_turns: int = 3
    learn_sizes: tuple[int, ...] = (8, 10, 12)
    learn_rows: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 100_000)
    learn_turns: int = 10
    order_rows: tuple[int, ...] = (10_000, 100_000)
    order_turns: int = 5
    share_rows: tuple[int, ...] = (1_000, 10_000, 100_000)
    share_turns: int = 6
    weights_size: int = 16  # variables of multiplicative weights
    weights_rounds: int = 600


QUICK = Scope(
    release_sizes=(6, 7, 8),
    release_rows=(100, 300),
    release_turns=1,
    learn_sizes=(5, 6, 7),
    learn_rows=(1_000, 10_000),
    learn_turns=1,
    order_rows=(1_000,),
    order_turns=1,
    share_rows=(1_000,),
    share_turns=1,
    weights_size=8,
    weights_rounds=20,
)


def sparse_model(p, rng, width=1.2, field=0.3):
    """About 0.8 p pairs and triples, none inside another, and fields on some variables."""
    found, load = {}, np.zeros(p)
    for _ in range(400):
        chosen = tuple(sorted(rng.choice(p, int(rng.integers(2, 4)), replace=False).tolist()))
        value = float(rng.choice([-1, 1]) * rng.uniform(0.25, 0.5))
        inside = any(set(chosen) <= set(m) or set(m) <= set(chosen) for m in found)
        if inside or (load[list(chosen)] + abs(value)).max() > width:
            continue
        found[chosen] = value
        load[list(chosen)] += abs(value)
        if len(found) >= 0.8 * p:
            break
    fields = {(j,): float(rng.uniform(-field, field)) for j in range(p) if rng.random() < 0.4}
    return pf.PolynomialMRF(found | fields, size=p)


def line(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def header(*cells):
    print()
    line(*cells)
    line("---", *["---:"] * (len(cells) - 1))


# -- releases --------------------------------------------------------------------------------------


def release_error(method, data, exact):
    """The largest error of all answers, or NaN where the method is not for so many variables."""
    if method == "pmw" and data.shape[1] > 20:
        return np.nan
    found = pf.measure_parities(data, pf.ZCDP(RELEASE_RHO), ORDER, method)
    return float(np.abs(found.answers - exact).max())


def releases(scope):
    """{p: {method: errors by number of rows}}."""
    print(f"\nLargest error over all parities of up to {ORDER}, ρ = {RELEASE_RHO}")
    header("p", "parities", "rows", *METHODS, "all answers 0", "CPU-seconds")
    curves = {}
    for p in scope.release_sizes:
        rng = np.random.default_rng(p)
        models = [sparse_model(p, rng) for _ in range(scope.release_turns)]
        curves[p] = {method: [] for method in METHODS}
        for n in scope.release_rows:
            errors, zero = {method: [] for method in METHODS}, []
            spent = dict.fromkeys(METHODS, 0.0)
            for model in models:
                data = model.sample(n, rng, method="independent")
                exact = pf.measure_parities(data, pf.NON_PRIVATE, ORDER).answers
                zero.append(np.abs(exact).max())
                for method in METHODS:
                    start = time.process_time()
                    errors[method].append(release_error(method, data, exact))
                    spent[method] += (time.process_time() - start) / scope.release_turns
            means = [float(np.mean(errors[method])) for method in METHODS]
            for method, mean in zip(METHODS, means, strict=True):
                curves[p][method].append(mean)
            best = np.nanmin(means)
            cells = [f"**{m:.4f}**" if m == best else f"{m:.4f}" for m in means]
            cells = ["–" if np.isnan(m) else c for m, c in zip(means, cells, strict=True)]
            times = " / ".join(
                "–" if np.isnan(mean) else f"{spent[method]:.2g}"
                for method, mean in zip(METHODS, means, strict=True)
            )
            line(p, count_sets(p, ORDER), f"{n:,}", *cells, f"{np.mean(zero):.3f}", times)
    slopes(scope.release_rows, curves)
    return curves


# -- learning --------------------------------------------------------------------------------------


def estimates(learner):
    """What Algorithm 4, or Algorithm 5, says of the coefficients of maximal monomials."""
    return learner.model_.coefficients if learner.objective == "l1" else learner.derivatives_


def maximal_error(model, learner):
    """The largest error of a true maximal monomial's coefficient."""
    found = estimates(learner)
    return max(abs(found.get(m, 0.0) - model.coefficients[m]) for m in model.maximal_monomials)


def learning(scope):
    """{p: {learner: errors by number of rows}}."""
    print(f"\nLargest error of a maximal monomial's coefficient, order {ORDER}, ρ = {LEARN_RHO}")
    header("p", "rows", *LEARNERS, "maximal found", "… wrongly")
    curves = {}
    for p in scope.learn_sizes:
        rng = np.random.default_rng(p)
        models = [sparse_model(p, rng) for _ in range(scope.learn_turns)]
        curves[p] = {name: [] for name in LEARNERS}
        for n in scope.learn_rows:
            errors, hits, wrong = {name: [] for name in LEARNERS}, [], []
            for model in models:
                data = model.sample(n, rng, method="independent")
                for name, settings in LEARNERS.items():
                    learner = pf.PolynomialLearner(
                        pf.ZCDP(LEARN_RHO), order=ORDER, width=1.5, **settings
                    )
                    errors[name].append(maximal_error(model, learner.fit(data)))
                    if name == "Algorithm 5":
                        true, found = set(model.maximal_monomials), set(learner.maximal_)
                        hits.append(len(true & found) / len(true))
                        wrong.append(len(found - true))
            means = [float(np.mean(errors[name])) for name in LEARNERS]
            for name, mean in zip(LEARNERS, means, strict=True):
                curves[p][name].append(mean)
            share, extra = f"{np.mean(hits):.0%}", f"{np.mean(wrong):.1f}"
            line(p, f"{n:,}", *[f"{m:.4f}" for m in means], share, extra)
    slopes(scope.learn_rows, curves)
    rows_needed(scope.learn_rows, curves)
    return curves


def rows_needed(rows, curves):
    """How many times as many rows the printed split needs for the same error, by interpolation."""
    print("\nRows that the printed split needs over those of Algorithm 5, at the same error")
    header("p", "default share", "ρ in halves (theory: 2)")
    logs, every = np.log(rows), []
    for p, found in curves.items():
        printed = np.log(found["Algorithm 5, printed split"])
        ratios = []
        for name in ("Algorithm 5", "Algorithm 5, ρ in halves"):
            ours = np.log(found[name])
            inside = (printed <= ours[0]) & (printed >= ours[-1])  # no extrapolation
            same = np.interp(-printed[inside], -ours, logs)
            ratios.append(float(np.exp(np.mean(logs[inside] - same))) if inside.any() else np.nan)
        every.append(ratios)
        line(p, *[f"{ratio:.2f}" for ratio in ratios])
    line("all", *[f"{ratio:.2f}" for ratio in np.exp(np.log(every).mean(axis=0))])


def slopes(rows, curves):
    """By which power of the number of rows errors fall: a line through their logarithms."""
    print("\nErrors fall as n to the power of")
    header("p", *next(iter(curves.values())))
    for p, found in curves.items():
        fits = [np.polyfit(np.log(rows), np.log(errors), 1)[0] for errors in found.values()]
        line(p, *["–" if np.isnan(fit) else f"{fit:.2f}" for fit in fits])


def shares(rows, turns, p=10):
    """Errors of maximal monomials, and of all mean derivatives, by `query_share`."""
    print(f"\nHow much of ρ = {LEARN_RHO} for parity answers, p = {p}, order {ORDER}")
    header("rows", "error of", *[f"{share:.0%}" for share in SHARES])
    rng = np.random.default_rng(0)
    for n in rows:
        largest = {share: [] for share in SHARES}
        everything = {share: [] for share in SHARES}
        for _ in range(turns):
            model = sparse_model(p, rng)
            data = model.sample(n, rng, method="independent")
            truth = mean_derivatives_of(model)
            for share in SHARES:
                learner = pf.PolynomialLearner(
                    pf.ZCDP(LEARN_RHO), order=ORDER, width=1.5, query_share=share
                )
                learner.fit(data)
                largest[share].append(maximal_error(model, learner))
                found = learner.derivatives_
                everything[share].append(max(abs(found[m] - truth[m]) for m in truth))
        for name, errors in (("maximal", largest), ("all E[∂h]", everything)):
            line(f"{n:,}", name, *[f"{np.mean(errors[share]):.4f}" for share in SHARES])


def mean_derivatives_of(model):
    """E[∂_S h] under the model itself, by enumeration."""
    from itertools import combinations, product

    states = np.array(list(product((-1, 1), repeat=model.size)))
    energy = sum(v * states[:, list(m)].prod(axis=1) for m, v in model.coefficients.items())
    weight = np.exp(energy - energy.max())
    weight /= weight.sum()
    truth = {s: 0.0 for k in range(1, ORDER + 1) for s in combinations(range(model.size), k)}
    for monomial, value in model.coefficients.items():
        for k in range(1, len(monomial) + 1):
            for chosen in combinations(monomial, k):
                rest = [j for j in monomial if j not in chosen]
                truth[chosen] += value * float(weight @ states[:, rest].prod(axis=1))
    return truth


def skewed_model(p, field, rng):
    """Pairs and triples as in `sparse_model`, and a field of that size on every variable."""
    found = sparse_model(p, rng, field=0.0).coefficients
    pairs = {monomial: value for monomial, value in found.items() if len(monomial) > 1}
    signs = rng.choice([-1.0, 1.0], p)
    return pf.PolynomialMRF(pairs | {(j,): field * float(signs[j]) for j in range(p)}, size=p)


def orders(rows, turns, p=8, fields=(0.0, 0.5, 1.0)):
    """Algorithm 4 against 5: all monomials that are not maximal would be estimated alike, so pairs
    and triples that are maximal, apart, as variables get more skewed."""
    print(f"\nLargest error of a maximal monomial's coefficient, p = {p}, ρ = {LEARN_RHO}")
    header(
        "field",
        "rows",
        *[f"{what}, Algorithm {name}" for what in ("pairs", "triples") for name in "45"],
    )
    for field in fields:
        rng = np.random.default_rng(int(10 * field))
        models = [skewed_model(p, field, rng) for _ in range(turns)]
        for n in rows:
            errors = {}
            for model in models:
                data = model.sample(n, rng, method="independent")
                for name, objective in (("4", "l1"), ("5", "linf")):
                    learner = pf.PolynomialLearner(
                        pf.ZCDP(LEARN_RHO), order=ORDER, width=2.5, objective=objective
                    )
                    found = estimates(learner.fit(data))
                    for size in (2, 3):
                        wrong = [
                            abs(found.get(m, 0.0) - model.coefficients[m])
                            for m in model.maximal_monomials
                            if len(m) == size
                        ]
                        errors.setdefault((size, name), []).extend([max(wrong)] if wrong else [])
            cells = [f"{np.mean(errors[size, name]):.3f}" for size in (2, 3) for name in "45"]
            line(field, f"{n:,}", *cells)


# -- speed -----------------------------------------------------------------------------------------


def speed(p, rounds, rows=3_000):
    """Medians of rounds and of transforms that take turns in one run."""
    data = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (rows, p))
    other = np.random.default_rng(1).random(1 << p)
    ends, transforms, starts = [], [], []

    def between(news):
        if news.stage != "PMW":
            return
        starts.append(time.process_time())
        transform(other)
        ends.append(time.process_time())
        transforms.append(ends[-1] - starts[-1])
        other[:] = 1.0

    def run(turns):
        for times in (starts, ends, transforms):
            times.clear()
        pf.measure_parities(data, pf.ZCDP(1), ORDER, "pmw", rounds=turns, progress=between)

    run(3)
    run(rounds)
    one = np.median(np.array(starts[1:]) - np.array(ends[:-1])) * 1e6
    rival = np.median(transforms) * 1e6
    print(f"\nOne round of private multiplicative weights, p = {p}, order {ORDER}, microseconds")
    header("parities", "round", f"transform of 2^{p}", "ratio")
    line(count_sets(p, ORDER), f"{one:.0f}", f"{rival:.0f}", f"{one / rival:.2f}")


# -- the figure ------------------------------------------------------------------------------------


def keep(path, **found):
    """Put (rows, repetitions, errors) of a table where the figure is; all that is kept."""
    known = json.loads(path.read_text()) if path.exists() else {"about": ABOUT}
    for name, (rows, turns, curves) in found.items():
        errors = {
            p: {
                method: [None if np.isnan(e) else round(e, 5) for e in each]
                for method, each in by_method.items()
            }
            for p, by_method in curves.items()
        }
        known[name] = {"rows": rows, "repetitions": turns, "errors": errors}
    path.write_text(json.dumps(known, ensure_ascii=False, indent=1) + "\n")
    return known


def draw(known, folder):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.2), sharey="row", layout="constrained")
    rows, errors = known["releases"]["rows"], known["releases"]["errors"]
    for axis, (p, found) in zip(axes[0], errors.items(), strict=True):
        curves = {name: np.array(each, float) for name, each in found.items()}
        panel(axis, rows, curves, f"parities of up to {ORDER}, p = {p}, ρ = {RELEASE_RHO:g}")
        guide(axis, rows, curves["gaussian"], -1, "1/n", anchor=-1)
        if not np.isnan(curves["pmw"]).all():
            guide(axis, rows, curves["pmw"], -1 / 2, "1/√n:\nbound of pmw")
    rows, errors = known["learning"]["rows"], known["learning"]["errors"]
    for axis, (p, curves) in zip(axes[1], errors.items(), strict=True):
        panel(axis, rows, curves, f"maximal monomials, p = {p}, ρ = {LEARN_RHO:g}")
        guide(axis, rows, curves["Algorithm 5"], -2 / 9, "n^(−2/9): bound\nof the paper")
    for axis in axes[:, 0]:
        axis.legend(frameon=False, fontsize=8, loc="lower left")
        axis.set_ylabel("largest error")
    for axis, ticks in (
        (axes[0, 0], (0.003, 0.01, 0.03, 0.1, 0.3, 1)),
        (axes[1, 0], (0.02, 0.1, 0.3)),
    ):
        axis.set_yticks(ticks, [str(tick) for tick in ticks])
        axis.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    figure.savefig(folder / "parities.png", dpi=110)


def panel(axis, rows, curves, title):
    for (colour, marker, dash), (name, errors) in zip(STYLES, curves.items(), strict=False):
        if not np.isnan(errors).all():
            axis.plot(rows, errors, marker=marker, ls=dash, ms=5, color=colour, label=name)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set(xscale="log", yscale="log", xlabel="rows n")
    axis.set_title(title, fontsize=10, loc="left")


def guide(axis, rows, errors, power, text, anchor=0):
    """A dotted line of that power through one point of the curve."""
    values = errors[anchor] * (np.array(rows) / rows[anchor]) ** power
    axis.plot(rows, values, ":", color="#888888", lw=1)
    place = {"textcoords": "offset points", "xytext": (5, 0), "va": "center"}
    axis.annotate(text, (rows[-1], values[-1]), fontsize=7, color="#555555", **place)
    axis.set_xlim(right=rows[-1] * 9)  # room for the text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help="releases, learning, orders, shares, speed (all)")
    parser.add_argument("--out", type=Path, default=FIGURES, help="where the figure goes")
    parser.add_argument("--quick", action="store_true", help="few rows, to try it out")
    given = parser.parse_args()
    if given.quick and given.out == FIGURES:
        parser.error("--quick asks for --out: its numbers are not for the page")
    names = ("releases", "learning", "orders", "shares", "speed")
    if unknown := set(given.tables) - set(names):
        parser.error(f"no such table: {', '.join(sorted(unknown))}")
    wanted, scope = given.tables or names, QUICK if given.quick else Scope()
    known = {}
    kept = given.out / "parities.json"
    if "releases" in wanted:
        found = (scope.release_rows, scope.release_turns, releases(scope))
        known = keep(kept, releases=found)
    if "learning" in wanted:
        found = (scope.learn_rows, scope.learn_turns, learning(scope))
        known = keep(kept, learning=found)
    if "orders" in wanted:
        orders(scope.order_rows, scope.order_turns)
    if "shares" in wanted:
        shares(scope.share_rows, scope.share_turns)
    if "speed" in wanted:
        speed(scope.weights_size, scope.weights_rounds)
    if {"releases", "learning"} <= {*known}:
        draw(known, given.out)


if __name__ == "__main__":
    main()
