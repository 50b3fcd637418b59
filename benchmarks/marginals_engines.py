"""One engine's fits in a process of its own, with one core: for benchmarks/marginals.py.

Run by the Python of mbi's own environment or by ours; numbers go through files.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from marginals_setting import Edges, Problem, measurements

MBI = "mbi==2.0.0"
ITERATIONS = (50, 100, 200, 500, 1000, 2000, 5000)  # of mbi; its default is 1000
DEFAULT = ITERATIONS.index(1000)
WARM_FITS = 3
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


Fit = Callable[[Problem], Any]


def mbi_tools(edges: Edges, levels: Sequence[int]) -> tuple[Fit, Fit]:
    """Whole fits by mbi, and fits that are watched."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    from mbi import Domain, LinearMeasurement, estimation

    domain = Domain([str(i) for i in range(len(levels))], levels)
    cliques = [(str(a), str(b)) for a, b in edges]

    class Watched(estimation.MirrorDescent):  # type: ignore[misc]
        """Tells the potentials, not the marginals; the steps are the same."""

        def _callback_value(self, state: Any, known_total: float, constraints: Any = ()) -> Any:
            return state.potentials

    def run(estimator: Any, problem: Problem, **options: Any) -> Any:
        given = [
            LinearMeasurement(table.ravel(), clique, stddev=float(np.sqrt(2) * problem.scale))
            for clique, table in zip(cliques, problem.noisy, strict=True)
        ]
        return estimator.estimate(domain, given, known_total=problem.people, **options)

    def read(potentials: Any) -> np.ndarray:
        return np.array([np.asarray(potentials[c].datavector(flatten=False)) for c in cliques])

    def fit(problem: Problem) -> np.ndarray:
        """A whole fit at the defaults."""
        return read(run(estimation.MirrorDescent(), problem).potentials)

    def path(problem: Problem) -> np.ndarray:
        """The potentials after each number of iterations."""
        seen: list[np.ndarray] = []
        run(Watched(), problem, iters=ITERATIONS[-1], callback_fn=lambda p: seen.append(read(p)))
        every = ITERATIONS[-1] // len(seen)
        return np.array([seen[steps // every - 1] for steps in ITERATIONS])

    jax.devices()  # starts its backend: part of the import
    return fit, path


def inside(job: str, folder: Path) -> None:
    """One engine's work in a process of its own."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    given = np.load(folder / "problem.npz")
    edges = [(int(a), int(b)) for a, b in given["edges"]]
    levels = given["levels"].tolist()
    cells = [
        Problem("", int(people), 0, edges, noisy, float(scale))
        for noisy, scale, people in zip(
            given["noisy"], given["scale"], given["people"], strict=True
        )
    ]
    if job == "own-time":
        answer = costs(own_fit(levels), cells[0])
    else:
        fit, path = mbi_tools(edges, levels)
        if job == "mbi-path":
            np.save(folder / "answer.npy", np.array([path(cell) for cell in cells]))
            return
        answer = costs(fit, cells[0])
    (folder / "answer.json").write_text(json.dumps(answer))


def own_fit(levels: Sequence[int]) -> Fit:
    import privfield as pf

    def fit(problem: Problem) -> Any:
        schema = pf.Schema({f"x{i}": size for i, size in enumerate(levels)})
        return pf.estimate(measurements(schema, problem))

    return fit


def costs(fit: Fit, problem: Problem) -> dict[str, float]:
    """CPU-seconds of the first fit and of the best of some more, and the peak memory of the first.

    What the first fit still has to import or to compile counts.
    """
    before = memory("VmRSS")
    times = []
    for _ in range(1 + WARM_FITS):
        start = time.process_time()
        fit(problem)
        times.append(time.process_time() - start)
        if len(times) == 1:
            peak = memory("VmHWM") - before
    return {"first": times[0], "warm": min(times[1:]), "peak": peak}


def memory(what: str) -> float:
    """MB of this process, now (VmRSS) or at its peak (VmHWM).

    Not getrusage: its peak starts with that of the process that started this one.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return float(line.split()[1]) / 1024
    raise RuntimeError(f"no {what} on this system")


def run_inside(
    python: Path | str, job: str, levels: Sequence[int], problems: Sequence[Problem]
) -> Any:
    """Hand problems of one graph to a process, and take its answer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(
            folder / "problem.npz",
            edges=problems[0].edges,
            levels=levels,
            noisy=[problem.noisy for problem in problems],
            scale=[problem.scale for problem in problems],
            people=[problem.people for problem in problems],
        )
        command = [python, "-W", "ignore", __file__, job, name]
        subprocess.run(command, check=True, env=os.environ | ONE_THREAD)
        if job == "mbi-path":
            return np.load(folder / "answer.npy")
        return json.loads((folder / "answer.json").read_text())


def mbi_python(folder: Path) -> Path:
    """The Python of mbi's environment, which is made where it does not exist."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        if subprocess.run([python, "-m", "pip", "install", "--quiet", MBI], check=False).returncode:
            sys.exit(f"{MBI} could not be installed; --only growth design needs no rival.")
    return python


if __name__ == "__main__":
    inside(sys.argv[1], Path(sys.argv[2]))
