"""Long compiled loops run in parts: Ctrl-C works, and the parts do not show in the answers."""

import math
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from privfield.inference.factors import Factors
from privfield.inference.loopy.propagation import LoopyPlan
from privfield.inference.sampling import sample_gibbs, sample_network
from privfield.kernels import pace

SECONDS = [0.0, 2e-5, math.inf]  # one step at a time, some parts, ever longer parts


def ring(nodes):
    eye = np.eye(nodes)
    return np.roll(eye, 1, axis=0) + np.roll(eye, -1, axis=0)


def gibbs():
    rng = np.random.default_rng(1)
    cliques = tuple((i, (i + 1) % 9) for i in range(9))
    factors = Factors((3,) * 9, cliques, tuple(rng.normal(size=(3, 3)) for _ in cliques))
    return sample_gibbs(factors, 40, rng, chains=5, burn_in=101, thin=7).states


def network(method, chains, couplings):
    rng = np.random.default_rng(2)
    options = {"method": method, "chains": chains, "burn_in": 101, "thin": 7}
    return sample_network(couplings, 0.1, 300, rng, beta=0.4, **options).states


def loopy(messages, schedule, damping):
    rng = np.random.default_rng(3)
    cliques = [(i, j) for i in range(7) for j in range(i)]
    plan = LoopyPlan((2,) * 7, cliques)
    found = []
    for limit, tolerance in ((1, 0.0), (2, 0.0), (7, 0.0), (100, 1e-9)):
        result = plan.run(
            [rng.normal(size=(2, 2)) for _ in cliques], messages=messages, schedule=schedule,
            damping=damping, max_iterations=limit, tolerance=tolerance,
        )  # fmt: skip
        counts = [result.iterations, result.residual, result.log_partition, result.converged]
        found += [result.messages, result.clique_cells, np.array(counts, float)]
    return np.concatenate(found)


WEIGHTED = ring(30) * np.outer(np.arange(30) % 3 + 1, np.arange(30) % 3 + 1)
RUNS = {
    "gibbs": gibbs,
    "glauber": lambda: network("glauber", 5, ring(30)),
    "glauber in lanes": lambda: network("glauber", 130, ring(30)),
    "glauber with weights": lambda: network("glauber", 5, WEIGHTED),
    "glauber with weights in lanes": lambda: network("glauber", 130, WEIGHTED),
    "swendsen-wang": lambda: network("swendsen-wang", 5, ring(30)),
    **{
        f"loopy {m} {s} {d}": lambda m=m, s=s, d=d: loopy(m, s, d)
        for m in ("auto", "log")
        for s in ("asynchronous", "synchronous")
        for d in (0.0, 0.3)
    },
}


@pytest.mark.parametrize("name", RUNS)
def test_parts_of_any_length_give_the_same(monkeypatch, name):
    found = []
    for seconds in SECONDS:
        monkeypatch.setattr(pace, "_SECONDS", seconds)
        found.append(RUNS[name]())
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.parametrize("seconds", SECONDS)
def test_parts_cover_every_step_of_every_row_once_and_in_order(monkeypatch, seconds):
    monkeypatch.setattr(pace, "_SECONDS", seconds)
    keeper = pace.Pace()
    for steps, rows in ((0, 3), (1, 1), (1, 7), (50, 1), (50, 7), (3, 200), (10**30, 0)):
        done = np.zeros(rows, dtype=int)
        for part, count in keeper.parts(steps, rows):
            assert count >= 1
            done[part] += count
        assert (done == steps).all()


def test_parts_grow_until_they_take_a_while_and_shrink_again(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(pace, "perf_counter", lambda: now[0])
    keeper = pace.Pace()
    for cost in (1e-4, 1e-2, 1e-3):
        lengths = []
        for _, part in keeper.parts(100_000):
            lengths.append(part)
            now[0] += cost * part
        assert 0.05 <= cost * lengths[len(lengths) // 2] <= 0.1


CALLS = {
    "gibbs": "sample_gibbs(Factors((2,) * 9, (), ()), 4, burn_in={n}, thin=1)",
    "thin": "sample_network(eye, 0.1, 1000, burn_in=0, thin={n})",
    "swendsen-wang": "sample_network(eye, None, 4, method='swendsen-wang', burn_in={n}, thin=1)",
    "ratio": "loopy(frustrated, max_iterations={n}, tolerance=0)",
    "log": "loopy(frustrated, max_iterations={n}, tolerance=0, messages='log')",
}
CHILD = """
import numpy as np
from privfield.inference.factors import Factors
from privfield.inference.loopy.propagation import loopy_belief_propagation as loopy
from privfield.inference.sampling import sample_gibbs, sample_network
eye = np.kron(np.eye(2), [[0, 1], [1, 0]])
pair = np.array([[-3.0, 3.0], [3.0, -3.0]]) + [[0.0, 0.1], [0.2, 0.4]]
cliques = tuple((i, j) for i in range(5) for j in range(i))
frustrated = Factors((2,) * 5, cliques, (pair,) * len(cliques))
{short}
try:
    print("ready", flush=True)
    {long}
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process there")
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_ends_a_loop_without_end(name):
    code = CHILD.format(short=CALLS[name].format(n=1), long=CALLS[name].format(n=10**15))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)  # into the loop; an interrupt before it would be no failure either
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=300)[0] == "stopped\n"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
