"""Two real tables: privfield's default next to dpmm, independent columns and real rows.

    python benchmarks/real_tables.py                              # Markdown; some ten minutes
    python benchmarks/real_tables.py --tables rwm5yr --epsilons 1 --runs 1
    python benchmarks/real_tables.py --rivals FOLDER              # dpmm as well: up to hours

Adult (48,842 × 14, up to 100 levels; four fifths are training rows) and rwm5yr (15,687 training and
3,922 held-out rows × 16) are read from ../shared/data, or --data. What is absent is not shown.

* TV: total variation between pair tables and those of the training rows, mean and largest over all
  pairs; of the model, and of as many synthetic rows as there are training rows.
* triples: the same over 64 triples of variables, of the synthetic rows.
* log-likelihood: nats per held-out row. An independent model has exact shares, plus one row.
* AUC: gradient boosting and logistic regression (scikit-learn) predict income or outwork; trained
  on synthetic rows, tested on held-out ones.
* CPU-seconds of the fit with one thread, and the peak memory of its process.

dpmm (AIM, MST, PrivBayes at their defaults, on the coded columns) lives in a virtual environment of
its own, made on the first run in FOLDER. A rival that takes more CPU time than --rival-seconds is
stopped, and its row says so.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path

import numpy as np

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DELTA = 1e-9
TRIPLES = 64
RIVALS = {"PrivBayes": "PrivBayesPipeline", "MST": "MSTPipeline", "AIM": "AIMPipeline"}
HEAD = (
    "| | ε | neighbours | TV, model | largest | TV, rows | triples | log-lik. | AUC boosting "
    "| AUC logistic | edges | CPU-s | MB |\n|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True, eq=False)
class RealTable:
    name: str
    columns: dict[str, int]
    train: np.ndarray
    test: np.ndarray
    target: int

    @property
    def shape(self) -> list[int]:
        return list(self.columns.values())

    def scopes(self, order: int) -> list[tuple[int, ...]]:
        """All pairs, or the triples of the benchmark."""
        found = list(combinations(range(len(self.columns)), order))
        if order == 2:
            return found
        chosen = np.random.default_rng(0).choice(len(found), min(TRIPLES, len(found)), False)
        return [found[k] for k in sorted(chosen)]


@dataclass
class Result:
    """What one run gave; numbers that it does not have are absent."""

    numbers: dict[str, float]
    rows: np.ndarray | None = None


def adult(data: Path) -> RealTable | None:
    rows, levels = data / "adult.csv", data / "adult-domain.json"
    if not (rows.exists() and levels.exists()):
        return None
    columns = json.loads(levels.read_text())
    codes = np.loadtxt(rows, np.int64, delimiter=",", skiprows=1)
    codes = codes[np.random.default_rng(0).permutation(len(codes))]
    cut = len(codes) * 4 // 5
    return RealTable("Adult", columns, codes[:cut], codes[cut:], list(columns).index("income>50K"))


def rwm5yr(data: Path) -> RealTable | None:
    path = data / "rwm5yr.npz"
    if not path.exists():
        return None
    found = np.load(path)
    names = [str(name) for name in found["names"]]
    columns = dict(zip(names, map(int, found["sizes"]), strict=True))
    train, test = found["train"].astype(np.int64), found["test"].astype(np.int64)
    return RealTable("rwm5yr", columns, train, test, names.index(str(found["target"])))


TABLES = {"adult": adult, "rwm5yr": rwm5yr}


# -- what is compared ------------------------------------------------------------------------------


def shares(rows: np.ndarray, shape: Sequence[int], scope: tuple[int, ...]) -> np.ndarray:
    own = [shape[v] for v in scope]
    cells = np.ravel_multi_index([rows[:, v].astype(np.int64) for v in scope], own)
    return np.bincount(cells, minlength=int(np.prod(own))).reshape(own) / len(rows)


def variation(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).sum() / 2)


def rows_apart(table: RealTable, rows: np.ndarray, order: int) -> float:
    """Mean TV between tables of some rows and of the training rows."""
    scopes, shape = table.scopes(order), table.shape
    return float(
        np.mean([variation(shares(rows, shape, s), shares(table.train, shape, s)) for s in scopes])
    )


def scores(table: RealTable, rows: np.ndarray) -> dict[str, float]:
    """AUC on held-out rows of classifiers that were trained on some rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    levels = [range(n) for v, n in enumerate(table.shape) if v != table.target]
    linear = make_pipeline(OneHotEncoder(categories=levels), LogisticRegression(max_iter=300))
    models = {"boosting": HistGradientBoostingClassifier(random_state=0), "logistic": linear}

    def inputs(some: np.ndarray) -> np.ndarray:
        return np.delete(some, table.target, axis=1)

    truth, found = table.test[:, table.target], {}
    for name, model in models.items():
        model.fit(inputs(rows), rows[:, table.target])
        found[name] = roc_auc_score(truth, model.predict_proba(inputs(table.test))[:, 1])
    return found


def of_rows(table: RealTable, rows: np.ndarray) -> dict[str, float]:
    return {
        "rows": rows_apart(table, rows, 2),
        "triples": rows_apart(table, rows, 3),
        **scores(table, rows),
    }


# -- who is compared -------------------------------------------------------------------------------


def learned(table: RealTable, epsilon: float, adjacency: str) -> Result:
    """One fit at the defaults, in a process of its own."""
    import privfield as pf
    from privfield.inference.exact import marginals

    schema = pf.Schema(table.columns)
    start = time.process_time()
    learner = pf.MarginalLearner(pf.ApproxDP(epsilon, DELTA), schema=schema, adjacency=adjacency)
    model = learner.fit(table.train).model_
    took = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    pairs = [(i, j) for i, j in table.scopes(2)]
    found = zip(pairs, marginals(model.factors, pairs)[1], strict=True)
    apart = [variation(one, shares(table.train, table.shape, p)) for p, one in found]
    numbers = {
        "model": float(np.mean(apart)),
        "largest": max(apart),
        "likelihood": model.log_likelihood(table.test) / len(table.test),
        "edges": len(learner.graph_.edges),
        "cpu": took,
        "memory": memory,
    }
    drawn = model.sample(len(table.train), rng=np.random.default_rng())
    return Result(numbers, np.asarray(drawn, np.int64))


def independent(table: RealTable) -> Result:
    """Columns with the training rows' own shares, drawn by themselves."""
    rng, train = np.random.default_rng(0), table.train
    single = [shares(train, table.shape, (v,)) for v in range(len(table.shape))]
    apart = [
        variation(np.outer(single[i], single[j]), shares(train, table.shape, (i, j)))
        for i, j in table.scopes(2)
    ]
    smooth = [(p * len(train) + 1 / len(p)) / (len(train) + 1) for p in single]
    likelihood = sum(np.log(p[table.test[:, v]]).mean() for v, p in enumerate(smooth))
    numbers = {"model": float(np.mean(apart)), "largest": max(apart), "likelihood": likelihood}
    rows = np.column_stack([rng.permutation(train[:, v]) for v in range(train.shape[1])])
    return Result(numbers, rows)


def rival_python(folder: Path) -> str:
    """The interpreter of an environment with dpmm, made where it is missing."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "dpmm"], check=True)
    return str(python)


def rival(table: RealTable, name: str, epsilon: float, folder: Path, limit: int) -> Result | None:
    """One fit of dpmm; None where it takes too long."""
    with tempfile.TemporaryDirectory() as place:
        np.savez(Path(place) / "in.npz", rows=table.train, shape=table.shape)
        command = [rival_python(folder), __file__, "--inside", name, place, str(epsilon)]

        def cap() -> None:
            os.nice(19)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

        done = subprocess.run(command, preexec_fn=cap, env=os.environ | ONE_THREAD, check=False)
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):  # the limit of CPU time
            return None
        done.check_returncode()
        out = np.load(Path(place) / "out.npz")
        return Result({"cpu": float(out["cpu"]), "memory": float(out["memory"])}, out["rows"])


def run_inside(name: str, place: Path, epsilon: float) -> None:
    """Fit and draw by dpmm, inside its own environment."""
    import dpmm.pipelines
    import pandas as pd

    found = np.load(place / "in.npz")
    shape = [int(levels) for levels in found["shape"]]
    columns = [f"v{v}" for v in range(len(shape))]
    domain = dict(zip(columns, shape, strict=True))
    frame = pd.DataFrame(found["rows"], columns=columns)
    start = time.process_time()
    make = getattr(dpmm.pipelines, RIVALS[name])
    fitted = make(epsilon=epsilon, delta=DELTA, n_jobs=1, disable_processing=True)
    fitted.fit(frame, domain)
    took = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    rows = fitted.generate(n_records=len(frame))[columns].to_numpy(np.int64)
    np.savez(place / "out.npz", rows=rows, cpu=took, memory=memory)


def rival_version(folder: Path) -> str:
    code = "from importlib.metadata import version; print(version('dpmm'))"
    done = subprocess.run([rival_python(folder), "-c", code], capture_output=True, text=True)
    return done.stdout.strip()


# -- the tables ------------------------------------------------------------------------------------


def line(name: str, epsilon: str, adjacency: str, results: Sequence[Result]) -> None:
    def mean(key: str, form: str) -> str:
        found = [result.numbers[key] for result in results if key in result.numbers]
        return format(float(np.mean(found)), form) if found else "–"

    forms = {"model": ".4f", "largest": ".3f", "rows": ".4f", "triples": ".4f"}
    forms |= {"likelihood": ".3f", "boosting": ".3f", "logistic": ".3f"}
    forms |= {"edges": ".1f", "cpu": ",.1f", "memory": ",.0f"}
    cells = [name, epsilon, adjacency, *(mean(key, form) for key, form in forms.items())]
    print(f"| {' | '.join(cells)} |", flush=True)


def runs_of(
    table: RealTable, epsilon: float, adjacency: str, runs: int, pool: ProcessPoolExecutor
) -> Iterator[Result]:
    for _ in range(runs):
        result = pool.submit(learned, table, epsilon, adjacency).result()
        assert result.rows is not None
        result.numbers |= of_rows(table, result.rows)
        yield result


def compare(table: RealTable, options: argparse.Namespace) -> None:
    print(
        f"\n### {table.name}: {len(table.train):,} rows, {len(table.shape)} columns of "
        f"{min(table.shape)}–{max(table.shape)} levels\n\n{HEAD}"
    )
    line("real rows", "–", "–", [Result(scores(table, table.train))])
    alone = independent(table)
    assert alone.rows is not None
    alone.numbers |= of_rows(table, alone.rows)
    line("independent columns", "–", "–", [alone])
    fresh = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as pool:
        for adjacency in options.neighbours:
            for epsilon in options.epsilons:
                found = list(runs_of(table, epsilon, adjacency, options.runs, pool))
                line("privfield", f"{epsilon:g}", adjacency, found)
    for name in RIVALS if options.rivals else ():
        for epsilon in options.rival_epsilons:
            one = rival(table, name, epsilon, options.rivals, options.rival_seconds)
            label = f"dpmm's {name}, one run"
            if one is None:
                label += f", stopped after {options.rival_seconds:,} CPU-s"
                one = Result({})
            if one.rows is not None:
                one.numbers |= of_rows(table, one.rows)
            line(label, f"{epsilon:g}", "add-remove", [one])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--tables", nargs="+", choices=[*TABLES], default=[*TABLES])
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.3, 1.0, 3.0])
    parser.add_argument("--neighbours", nargs="+", default=["add-remove", "replace-one"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rivals", type=Path)
    parser.add_argument("--rival-epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--rival-seconds", type=int, default=3600)
    parser.add_argument("--inside", nargs=3, metavar=("RIVAL", "FOLDER", "EPSILON"))
    options = parser.parse_args()
    if options.inside:
        name, place, epsilon = options.inside
        run_inside(name, Path(place), float(epsilon))
        return
    warnings.simplefilter("ignore")  # of classifiers that stop early
    for name in options.tables:
        table = TABLES[name](options.data)
        if table is None:
            print(f"\n({name} is not here)")
            continue
        compare(table, options)
    if options.rivals:
        print(f"\ndpmm {rival_version(options.rivals)}")


if __name__ == "__main__":
    for name, value in ONE_THREAD.items():
        if os.environ.get(name) != value:  # must be set before numpy starts
            os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_THREAD)
    main()
