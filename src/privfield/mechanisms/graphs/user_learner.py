"""A user's own learner as a voter: bounded in time, and silent whatever it does."""

from __future__ import annotations

import ctypes
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privfield.privacy.coins import Coins

_POLL = 0.05  # seconds between looks at a running learner
_PATIENCE = 10  # times the limit, on the clock on the wall


class UserFinder:
    """Votes for what `learner(rows)` returns: edges as tuples of column numbers or names.

    It runs in a thread of its own, which sees no Ctrl-C. Past `seconds` of its own processor time
    (ten times as much on the clock, should it sleep) it is stopped and votes for nothing; processor
    time, because the load that other blocks leave on the machine must not change a vote.
    """

    def __init__(
        self,
        learner: Callable[[NDArray[Any]], Any],
        names: Sequence[str],
        candidates: Sequence[tuple[int, ...]],
        seconds: float | None,
    ) -> None:
        self._learner = learner
        self._place = {name: number for number, name in enumerate(names)}
        self._number = {edge: number for number, edge in enumerate(candidates)}
        self._seconds = seconds

    def __call__(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """The vote of one block."""
        return np.asarray(run_alone(lambda: self.vote(rows), self._seconds))

    def vote(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Ask the learner, here and now; anything but a list of edges raises."""
        found = self._learner(rows)
        found = getattr(found, "edges", found)  # a networkx graph
        vote = np.zeros(len(self._number), bool)
        for edge in found:
            where = sorted({self._where(end) for end in edge})
            if len(where) != len(tuple(edge)):
                raise ValueError("an edge joins different variables")
            vote[self._number[tuple(where)]] = True
        return vote

    def _where(self, end: Any) -> int:
        if isinstance(end, str):
            return self._place[end]
        if isinstance(end, bool) or not isinstance(end, int | np.integer):
            raise TypeError("an edge is a tuple of column numbers or names")
        return int(end)


@contextmanager
def fresh_random_state(coins: Coins, block: int) -> Iterator[None]:
    """Seed `random` and `np.random` anew for that block, and put both back afterwards.

    They belong to the whole program: how much a learner draws depends on its rows, and the next
    block, or whoever draws after the release, would draw other numbers.
    """
    ours, theirs = random.getstate(), np.random.get_state()
    words = coins.words(np.array([(block, number) for number in range(12)], np.uint64))
    random.seed(words[:4].tobytes())
    np.random.seed(words[4:].view(np.uint32))
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(theirs)


def run_alone(call: Callable[[], Any], seconds: float | None) -> Any:
    """What `call` returns; a `TimeoutError` past the limit, a `RuntimeError` if it raised."""
    done: list[Any] = []
    clocks: list[int] = []

    def work() -> None:
        try:
            clocks.extend(_own_clock())
            with np.errstate(all="ignore"):
                done.append(call())
        except BaseException:  # SystemExit too: how a learner fails depends on records
            pass

    thread = threading.Thread(target=work, daemon=True)
    start = time.monotonic()
    thread.start()
    late = False
    try:
        while thread.is_alive() and not late:
            thread.join(_POLL)
            late = (
                seconds is not None and thread.is_alive() and _over(thread, clocks, start, seconds)
            )
    finally:
        if thread.is_alive():
            _stop(thread)
    if late:
        raise TimeoutError
    if not done:
        raise RuntimeError
    return done[0]


def _own_clock() -> list[int]:
    """The processor clock of the thread that asks, where there is one.

    The thread itself must ask: to ask for one that has just ended may crash the process.
    """
    try:
        return [time.pthread_getcpuclockid(threading.get_ident())]
    except (AttributeError, OSError):
        return []


def _over(thread: threading.Thread, clocks: list[int], start: float, seconds: float) -> bool:
    if time.monotonic() - start > _PATIENCE * seconds:
        return True
    used = time.monotonic() - start
    for clock in clocks:
        with suppress(OSError):  # it just ended
            used = time.clock_gettime(clock)
    return thread.is_alive() and used > seconds


def _stop(thread: threading.Thread) -> None:
    """Raise SystemExit in it at its next Python instruction; one that is in C stays behind."""
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
        )
