"""Time exact inference (log Z and all edge marginals) against mbi, pyAgrum and pgmpy.

Prints Markdown tables. The rivals live in a virtual environment of their own, made on the first
run under the folder given by --rivals; a rival that cannot be installed is left out, with a note.
Every engine has one core and a process of its own; times are CPU time, the best of many runs on
the same tables, and answers must agree. Loopy belief propagation: benchmarks/inference_loopy.py.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

RIVALS = {"mbi": "mbi==2.0.0", "pyagrum": "pyagrum", "pgmpy": "pgmpy"}
MBI_WAYS = ("shafer_shenoy", "hugin", "implicit_fused", "implicit_semistable")
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
SECONDS = 600  # for one rival on one model, compilation included

Edges = list[tuple[int, int]]


def best_seconds(work: Callable[[], object], budget: float = 3.0) -> float:
    """Best CPU time: other programs can only make a run slower."""
    best, spent, runs = float("inf"), 0.0, 0
    while runs < 3 or (spent < budget and runs < 2000):
        start = time.process_time()
        work()
        took = time.process_time() - start
        best, spent, runs = min(best, took), spent + took, runs + 1
        if spent > 60:
            break
    return best


def third_order_chain(length: int) -> Edges:
    return [(i, j) for i in range(length) for j in range(i + 1, min(length, i + 4))]


def erdos_renyi(nodes: int, treewidth: int) -> Edges:
    """The first random graph, by seed, of this treewidth."""
    from privfield.inference.contraction.elimination import elimination_order

    for seed in range(1000):
        rng = np.random.default_rng(seed)
        edges = [pair for pair in combinations(range(nodes), 2) if rng.random() < 0.45]
        if elimination_order([2] * nodes, edges).treewidth == treewidth:
            return edges
    raise RuntimeError("no such graph")


def random_tables(edges: Edges, levels: int) -> np.ndarray:
    rng = np.random.default_rng(len(edges))
    return np.log(rng.dirichlet(np.ones(levels**2), len(edges))).reshape(-1, levels, levels)


# -- privfield -------------------------------------------------------------------------------------


def time_privfield(nodes: int, levels: int, edges: Edges, theta: np.ndarray) -> dict[str, Any]:
    from privfield.inference.contraction.plan import plan_contraction

    tables = list(theta)
    start = time.process_time()
    plan = plan_contraction((levels,) * nodes, edges)
    _, found = plan.run(tables)
    cold = time.process_time() - start
    return {"cold": cold, "warm": best_seconds(lambda: plan.run(tables)), "mu": np.array(found)}


# -- rivals: these run inside their own environment ------------------------------------------------


def time_mbi(way: str, nodes: int, levels: int, edges: Edges, theta: np.ndarray) -> dict[str, Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    import functools

    from mbi import CliqueVector, Domain, Factor, marginal_oracles

    implicit = marginal_oracles.message_passing_implicit
    oracle = {
        "shafer_shenoy": marginal_oracles.message_passing_shafer_shenoy,
        "hugin": marginal_oracles.message_passing_hugin,
        "implicit_fused": functools.partial(implicit, contraction=marginal_oracles.einsum_fused),
        "implicit_semistable": functools.partial(
            implicit, contraction=marginal_oracles.einsum_semistable
        ),
    }[way]
    domain = Domain([str(i) for i in range(nodes)], [levels] * nodes)
    cliques = [(str(a), str(b)) for a, b in edges]
    arrays = {
        c: Factor(domain.project(c), jax.numpy.asarray(t))
        for c, t in zip(cliques, theta, strict=True)
    }
    potentials = CliqueVector(domain, cliques, arrays)

    def run() -> Any:
        return jax.block_until_ready(oracle(potentials))

    start = time.process_time()
    found = run()
    cold = time.process_time() - start
    mu = np.array([np.asarray(found[c].datavector(flatten=False)) for c in cliques])
    return {"cold": cold, "warm": best_seconds(run), "mu": mu}


def time_pyagrum(nodes: int, levels: int, edges: Edges, theta: np.ndarray) -> dict[str, Any]:
    import pyagrum as gum

    gum.setNumberOfThreads(1)
    field = gum.MarkovRandomField()
    for i in range(nodes):
        field.add(gum.RangeVariable(f"v{i}", "", 0, levels - 1))
    for (a, b), table in zip(edges, theta, strict=True):
        factor = gum.Tensor().add(field.variable(f"v{a}")).add(field.variable(f"v{b}"))
        weights = np.exp(table - table.max())
        for i, j in np.ndindex(levels, levels):  # by name: the order of axes is its own affair
            factor[{f"v{a}": i, f"v{b}": j}] = weights[i, j]
        field.addFactor(factor)

    def run() -> tuple[float, list[Any]]:
        engine = gum.ShaferShenoyMRFInference(field)
        for a, b in edges:
            engine.addJointTarget({f"v{a}", f"v{b}"})
        start = time.process_time()
        engine.makeInference()
        found = [engine.jointPosterior({f"v{a}", f"v{b}"}) for a, b in edges]
        return time.process_time() - start, found

    took, found = run()
    times = [took]
    while len(times) < 3 or (sum(times) < 3 and len(times) < 500):
        times.append(run()[0])
    mu = np.zeros(theta.shape)
    for e, (a, b) in enumerate(edges):
        for i, j in np.ndindex(levels, levels):
            mu[e, i, j] = found[e][{f"v{a}": i, f"v{b}": j}]
    return {"cold": times[0], "warm": min(times), "mu": mu}


def time_pgmpy(nodes: int, levels: int, edges: Edges, theta: np.ndarray) -> dict[str, Any]:
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteMarkovNetwork

    names = [f"v{i}" for i in range(nodes)]
    field = DiscreteMarkovNetwork([(names[a], names[b]) for a, b in edges])
    field.add_factors(
        *(
            DiscreteFactor([names[a], names[b]], [levels, levels], np.exp(t - t.max()))
            for (a, b), t in zip(edges, theta, strict=True)
        )
    )
    engine = VariableElimination(field)

    def run() -> list[Any]:
        return [engine.query([names[a], names[b]], show_progress=False) for a, b in edges]

    start = time.process_time()
    found = run()
    cold = time.process_time() - start
    mu = [
        (f.values if f.variables == [names[a], names[b]] else f.values.T) / f.values.sum()
        for f, (a, b) in zip(found, edges, strict=True)
    ]
    return {"cold": cold, "warm": best_seconds(run, 1.0), "mu": np.array(mu)}


def run_inside(rival: str, way: str, folder: Path) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    problem = np.load(folder / "problem.npz")
    edges = [tuple(edge) for edge in problem["edges"].tolist()]
    arguments = (int(problem["nodes"]), int(problem["levels"]), edges, problem["theta"])
    if rival == "mbi":
        answer = time_mbi(way, *arguments)
    else:
        engines = {"privfield": time_privfield, "pyagrum": time_pyagrum, "pgmpy": time_pgmpy}
        answer = engines[rival](*arguments)
    np.save(folder / "mu.npy", answer.pop("mu"))
    (folder / "answer.json").write_text(json.dumps(answer))


# -- the two together ------------------------------------------------------------------------------


def rival_python(folder: Path) -> Path:
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        for package in RIVALS.values():
            command = [python, "-m", "pip", "install", "--quiet", package]
            if subprocess.run(command, check=False).returncode:
                print(f"{package} could not be installed and is left out.\n")
    return python


def time_engine(
    python: Path | str, rival: str, way: str, problem: tuple[int, int, Edges, np.ndarray]
) -> dict[str, Any] | None:
    nodes, levels, edges, theta = problem
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "problem.npz", nodes=nodes, levels=levels, edges=edges, theta=theta)
        command = [python, __file__, "--inside", rival, way, name]
        env = os.environ | ONE_THREAD
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, timeout=SECONDS, env=env
            )
        except subprocess.TimeoutExpired:
            print(f"({rival} {way}: no answer in {SECONDS} s)", file=sys.stderr)
            return None
        if done.returncode:
            print(f"({rival} {way}: {done.stderr.decode()[-400:]})", file=sys.stderr)
            return None
        answer = json.loads((folder / "answer.json").read_text())
        return answer | {"mu": np.load(folder / "mu.npy")}


def time_own(problem: tuple[int, int, Edges, np.ndarray]) -> dict[str, Any]:
    found = time_engine(sys.executable, "privfield", "-", problem)
    if found is None:
        raise RuntimeError("privfield gave no answer")
    return found


def compare(name: str, python: Path, nodes: int, levels: int, edges: Edges, slow: bool) -> None:
    problem = (nodes, levels, edges, random_tables(edges, levels))
    ours = time_own(problem)
    rows = {}
    for way in MBI_WAYS:
        found = time_engine(python, "mbi", way, problem)
        if found:
            rows[f"mbi, {way}"] = found
    for rival in ("pyagrum", "pgmpy") if slow else ("pyagrum",):
        found = time_engine(python, rival, "-", problem)
        if found:
            rows[rival] = found
    again = time_own(problem)  # rivals stand between two runs of ours
    warm, cold = min(ours["warm"], again["warm"]), min(ours["cold"], again["cold"])
    print(f"| {name} | **privfield** | {1e3 * warm:.2f} | {1e3 * cold:.1f} | 1 | |", flush=True)
    for rival, found in rows.items():
        error = np.abs(found["mu"] - ours["mu"]).max()
        if not error < 1e-8:
            raise RuntimeError(f"{rival} differs by {error} on {name}")
        print(
            f"| {name} | {rival} | {1e3 * found['warm']:.2f} | {1e3 * found['cold']:.1f} "
            f"| {found['warm'] / warm:.1f}× | {error:.0e} |",
            flush=True,
        )


def growth() -> None:
    print("\n| third-order chain, 10 states: T | ms | µs per variable |\n|---:|---:|---:|")
    for length in (30, 100, 300, 1000, 3000):
        edges = third_order_chain(length)
        warm = time_own((length, 10, edges, random_tables(edges, 10)))["warm"]
        print(f"| {length} | {1e3 * warm:.2f} | {1e6 * warm / length:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(tempfile.gettempdir()) / "privfield-rivals"
    parser.add_argument("--rivals", type=Path, default=default)
    parser.add_argument("--inside", nargs=3, metavar=("RIVAL", "WAY", "FOLDER"))
    options = parser.parse_args()
    if options.inside:
        run_inside(options.inside[0], options.inside[1], Path(options.inside[2]))
        return
    python = rival_python(options.rivals)
    print("Marginals of all edges (privfield: log Z too); one core each; ratio of warm times.\n")
    print("| model | engine | warm, ms | first call, ms | ratio | largest difference |")
    print("|---|---|---:|---:|---:|---:|")
    for length in (10, 30, 100):
        edges = third_order_chain(length)
        compare(f"chain, T = {length}", python, length, 10, edges, slow=False)
    compare("Erdős–Rényi, 10 × 20 states", python, 10, 20, erdos_renyi(10, 4), slow=True)
    growth()


if __name__ == "__main__":
    main()
