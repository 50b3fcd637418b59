"""Time sweeps on random networks against dwave-samplers; prints Markdown tables.

The rival goes into a virtual environment of its own, made in a temporary folder (or name one that
has it: --rival-python PATH). Times are CPU seconds of one thread, the best of alternating turns.
The rival cannot be set up apart from running, so its sweep is the difference between a long and a
short run over the difference in sweeps. A whole run is set-up, from a ready matrix or model, and
all sweeps.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np

COUPLING = 0.05
SIZES = ((10_000, 1000), (100_000, 100), (1_000_000, 40))
REPEATS = 3
SHORT = 10  # the short run has this part of the sweeps


def random_edges(nodes, degree, seed=0):
    """An Erdős–Rényi graph of nodes · degree / 2 edges, as two arrays."""
    rng = np.random.default_rng(seed)
    wanted = nodes * degree // 2
    ends = rng.integers(0, nodes, (2, wanted + wanted // 10 + 100))
    low, high = ends.min(axis=0), ends.max(axis=0)
    keys = np.unique(low[low < high] * nodes + high[low < high])
    keys = np.sort(rng.permutation(keys)[:wanted])
    return keys // nodes, keys % nodes


def cpu_seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def rival(path, sweeps):
    """Runs in the rival's environment: its sampler at one constant temperature, one chain."""
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    graph = np.load(path)
    model = dimod.BinaryQuadraticModel.from_numpy_vectors(
        np.zeros(int(graph["nodes"])),
        (graph["left"], graph["right"], -graph["weights"]),
        0.0,
        dimod.SPIN,
    )
    sampler = SimulatedAnnealingSampler()

    def run(kind, count):
        sampler.sample(
            model,
            num_reads=1,
            beta_schedule_type="custom",
            beta_schedule=[1.0],
            num_sweeps_per_beta=count,
            proposal_acceptance_criteria=kind,
            seed=1,
        )

    counts = (max(1, sweeps // SHORT), sweeps)
    kinds = ("Gibbs", "Metropolis")
    print(json.dumps([[cpu_seconds(lambda k=k, c=c: run(k, c)) for c in counts] for k in kinds]))


def rival_python(given, folder):
    if given:
        return given
    venv.create(folder / "rival", with_pip=True)
    python = folder / "rival" / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "dwave-samplers"],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return str(python)


def symmetric(nodes, left, right, weights):
    from scipy.sparse import coo_array

    half = coo_array((weights, (left, right)), shape=(nodes, nodes))
    return (half + half.T).tocsr()


def ours(matrix, sweeps, chains=1, method="glauber", repeats=REPEATS):
    """Best seconds per sweep of all chains, and of set-up."""
    from privfield.inference.sampling.couplings import network_of
    from privfield.inference.sampling.glauber import GlauberChains
    from privfield.inference.sampling.swendsen_wang import ClusterChains

    kind = {"glauber": GlauberChains, "swendsen-wang": ClusterChains}[method]

    def prepare():
        return kind(network_of(matrix, None, 1.0), chains, np.random.default_rng(1))

    setup = cpu_seconds(prepare)
    walk = prepare()
    walk.advance(1)
    return min(cpu_seconds(lambda: walk.advance(sweeps)) for _ in range(repeats)) / sweeps, setup


def compile_times(folder):
    """Wall seconds of a first call: nothing cached, then cached."""
    code = (
        "import time, numpy as np; from privfield.inference.sampling import sample_network as s\n"
        "t = time.perf_counter(); s(np.zeros((2, 2)), n=4); print(time.perf_counter() - t)"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", code]
    return [
        float(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
        for _ in range(2)
    ]


def race(python, path, matrix, sweeps):
    """Best of turns: our (sweep, set-up), and the rival's for Gibbs and for Metropolis moves."""
    command = [python, __file__, "--rival", str(path), str(sweeps)]
    theirs, mine = [], []
    for _ in range(REPEATS):
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        theirs.append(json.loads(found))
        mine.append(ours(matrix, sweeps, repeats=2))
    short = max(1, sweeps // SHORT)
    rivals = []
    for low, high in np.min(theirs, axis=0):
        sweep = (high - low) / (sweeps - short)
        rivals.append((sweep, low - short * sweep))
    return np.min(mine, axis=0), *rivals


def versus(python, folder):
    print("Glauber on Erdős–Rényi networks of mean degree 10, one chain: ns per node and sweep")
    print("(dwave-samplers: SimulatedAnnealingSampler at constant β. Its Gibbs moves are ours; its")
    print("Metropolis moves, the default, are another chain for the same law.)\n")
    print(
        "| nodes | edges | couplings | privfield | dwave Gibbs | dwave Metropolis | ratio "
        "| sweeps in a run | whole run, s: privfield | dwave Gibbs | ratio |"
    )
    print("|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for nodes, sweeps in SIZES:
        left, right = random_edges(nodes, 10)
        degree = np.bincount(np.concatenate([left, right]), minlength=nodes)
        scaled = 10 * COUPLING / np.sqrt(degree[left] * degree[right])
        for name, weights in (("equal", np.full(left.size, COUPLING)), ("scaled", scaled)):
            path = folder / "graph.npz"
            np.savez(path, nodes=nodes, left=left, right=right, weights=weights)
            matrix = symmetric(nodes, left, right, weights)
            own, gibbs, metropolis = race(python, path, matrix, sweeps)
            unit = 1e9 / nodes
            runs = [each[0] * sweeps + each[1] for each in (own, gibbs)]
            print(
                f"| {nodes:,} | {left.size:,} | {name} | {own[0] * unit:.1f} "
                f"| {gibbs[0] * unit:.0f} | {metropolis[0] * unit:.0f} "
                f"| {gibbs[0] / own[0]:.1f}× / {metropolis[0] / own[0]:.1f}× "
                f"| {sweeps} | {runs[0]:.2f} | {runs[1]:.2f} | {runs[1] / runs[0]:.1f}× |",
                flush=True,
            )


def growth():
    print("\nGrowth in edges, 100,000 nodes, equal couplings: seconds per 100 sweeps")
    print("(ns per edge in brackets)\n")
    print("| edges | Glauber, one chain | Glauber, 64 chains, per chain | Swendsen–Wang |")
    print("|---:|---:|---:|---:|")
    nodes = 100_000
    for degree in (5, 10, 20, 40):
        left, right = random_edges(nodes, degree)
        weights = np.full(left.size, 0.5 / degree)
        matrix = symmetric(nodes, left, right, weights)
        cells = []
        for chains, method in ((1, "glauber"), (64, "glauber"), (1, "swendsen-wang")):
            sweep = ours(matrix, 20 if chains > 1 else 50, chains, method)[0] / chains
            cells.append(f"{100 * sweep:.3f} ({sweep / left.size * 1e9:.1f})")
        print(f"| {left.size:,} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rival", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--rival-python", help="a Python that has dwave-samplers")
    options = parser.parse_args()
    if options.rival:
        rival(options.rival[0], int(options.rival[1]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, cached = compile_times(folder)
        python = rival_python(options.rival_python, folder)
        versus(python, folder)
        growth()
        print(
            f"\nFirst call: {first:.1f} s while compiling (once per machine), {cached:.1f} s with"
        )
        print("the cache, numba's import included; not part of the tables.")


if __name__ == "__main__":
    main()
