"""Run by test_ledger.py: fork children that measure, and kill -9 them inside chosen phases.

Usage: kill_victim.py FOLDER KILLS: so many, or more until every phase has had some. Prints how many
kills fell into which phase, as JSON.
"""

import json
import mmap
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import privfield as pf
from privfield.privacy import laws
from privfield.privacy.ledger import Ledger

PHASES = ["idle", "charging", "noising", "saving"]
LEAST = 10  # kills in each phase but the first
SCHEMA = pf.Schema({"a": 40, "b": 40})


def mark(owner, name, phase, board):
    """Wrap owner.name so that the board shows the phase while it runs."""
    inner = getattr(owner, name)

    def wrapped(*args, **kwargs):
        board[0] = PHASES.index(phase)
        try:
            return inner(*args, **kwargs)
        finally:
            board[0] = 0

    setattr(owner, name, wrapped)


def child(folder, name, data, board):
    """Measure again and again; what a caller gets to see goes to the file `released`."""
    ledger = Ledger(folder / "study.ledger")
    begun = os.open(folder / "begun", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    out = os.open(folder / "released", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number in range(250):
        job = f"{name}-{number}"
        os.write(begun, f"{job}\n".encode())
        m = pf.measure(data, SCHEMA, [("a", "b")], pf.PureDP(0.001), ledger=ledger, job=job)
        os.write(out, (json.dumps([job, m.tables[0].ravel()[:8].tolist()]) + "\n").encode())
        board[1] = number + 1


def main():
    folder, kills = Path(sys.argv[1]), int(sys.argv[2])
    board = mmap.mmap(-1, 2)  # shared with the children: the phase, and how many they finished
    data = np.random.default_rng(1).integers(0, 40, (500, 2))
    pf.Ledger(folder / "study.ledger", total=pf.PureDP(1000))
    pf.measure(data, SCHEMA, [("a", "b")], pf.PureDP(1))  # compile and load everything once
    mark(Ledger, "charge", "charging", board)
    mark(laws, "add_noise", "noising", board)
    mark(Ledger, "keep", "saving", board)
    warnings.simplefilter("ignore", DeprecationWarning)  # fork with idle native threads
    hits = dict.fromkeys(PHASES, 0)
    for number in range(4 * kills):  # on a busy machine a kill may come after its phase
        if number >= kills and min(hits[phase] for phase in PHASES[1:]) >= LEAST:
            break
        target = 1 + number % 3
        board[0] = board[1] = 0
        pid = os.fork()
        if pid == 0:
            try:
                child(folder, f"kill{number}", data, board)
            finally:
                os._exit(1)
        patience, earlier = time.monotonic() + 30, random.randrange(3)
        while (board[1] < earlier or board[0] != target) and time.monotonic() < patience:
            time.sleep(5e-5)  # a phase lasts longer, and the child needs the core
        time.sleep(random.choice([0, 0, random.uniform(0, 0.004)]))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        hits[PHASES[board[0]]] += 1
    print(json.dumps(hits))


if __name__ == "__main__":
    main()
