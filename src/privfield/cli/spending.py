"""Before and after a charge: what will be spent, is that right, and what was charged if it ends."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from privfield.cli.arguments.budget import in_words, left_in, read_total
from privfield.cli.terminal.bars import bars
from privfield.cli.terminal.console import is_terminal, note, warn
from privfield.cli.terminal.exit_codes import INTERRUPTED, Stopped
from privfield.errors import BudgetRefused, InputError

if TYPE_CHECKING:
    from privfield.privacy.budgets import Budget
    from privfield.privacy.ledger import Ledger


HOPELESS = "Next to nothing can be learned: noise will drown what is related."
_WEAK = 7  # the ε from which somebody who knows all else may guess right in 999 of 1000 cases


class Spending:
    """The ledger of a command, if there is one; a new one is made only when `open` is called.

    `began` says whether this program came to the point where a charge may be made.
    """

    began: ClassVar[bool] = False
    _runs: int = 0  # that had begun in this process before this command came to its own

    def __init__(
        self,
        path: str | None,
        total: str | None,
        job: str | None,
        budget: Budget,
        adjacency: str,
        output: Path | None = None,
    ) -> None:
        self.path, self.job, self.budget, self.adjacency = path, job, budget, adjacency
        self.ledger: Ledger | None = None
        self._known: set[str] = set()
        self._made = False
        if path is None:
            if total is not None or job is not None:
                raise InputError(
                    f"--{'total' if total is not None else 'job'} needs --ledger: a file that "
                    "remembers what was spent."
                )
            return
        if output is not None and Path(path).resolve() == output.resolve():
            raise InputError("--output must not be the ledger: it would forget what was spent.")
        self.job = job or uuid.uuid4().hex[:12]  # so that the model can name its charge
        self._total = read_total(total, budget)
        if not Path(path).exists():
            _check_folder(path)
        else:
            self._find(None if total is None else self._total)

    def _find(self, total: Budget | None) -> None:
        """Open the ledger that is there; an empty file, left by a refused charge, is none yet."""
        from privfield.privacy.ledger import NoLedger

        with suppress(NoLedger):
            self._connect(None)
            self._connect(total)  # refuses another total

    def _connect(self, total: Budget | None) -> None:
        from privfield.privacy.ledger import Ledger

        assert self.path is not None
        try:
            self.ledger = Ledger(self.path, total, self.adjacency)
        except InputError as error:
            raise type(error)(f"--ledger: {about_ledger(error, self.path)}") from None
        self._known = {charge.job for charge in self.ledger.charges()}

    def open(self) -> Ledger | None:
        """The ledger to charge."""
        if self.path is not None and self.ledger is None:
            self._connect(self._total)
            self._made = True
        return self.ledger

    @property
    def is_known(self) -> bool:
        """Whether the job was charged before: nothing more will be."""
        return self.job is not None and self.job in self._known

    def spending(self) -> str:
        """What this command will spend, in words."""
        if self.is_known:
            return "nothing"
        weak = _epsilon(self.budget) > _WEAK
        return in_words(self.budget) + " (next to no promise)" * weak

    def check(self) -> None:
        """Refuse at once what the ledger certainly cannot pay, before anybody is asked.

        Only an empty one is refused here: whether a smaller rest is enough, the charge itself says.
        """
        if self.ledger is None or self.ledger.remaining is not None:
            return
        if not self.ledger.knows(str(self.job)):  # another program may just have charged it
            raise BudgetRefused(self._refusal())

    def _refusal(self, hint: str = "") -> str:
        """What was asked for and what is left, in the words of the command, and Python's hint."""
        assert self.ledger is not None  # nothing else refuses
        told = [
            f"budget refused: {in_words(self.budget)} was asked for; {self.path} has "
            f"{left_in(self.ledger)} left of {in_words(self.ledger.total)}.",
            hint,
            "" if self.charged() else "Nothing was spent.",
        ]
        return " ".join(filter(None, told))

    def preview(self) -> str:
        """What the ledger says before this charge."""
        if self.path is None:
            return "none: nothing remembers what was spent. --ledger study.ledger would."
        if self.ledger is None:
            return f"{self.path}, which will be new, with a total of {in_words(self._total)}"
        if self.is_known:
            return (
                f"{self.path} knows the job {self.job!r}: nothing more will be charged, and what "
                "was measured then is used, whatever the file holds now"
            )
        left = left_in(self.ledger)
        return f"{self.path}: {left} left of {in_words(self.ledger.total)}"

    def charged(self) -> list[Any]:
        """What this command charged so far."""
        if self.ledger is None:
            return []
        return [charge for charge in self.ledger.charges() if charge.job not in self._known]

    def summary(self) -> dict[str, Any] | None:
        """The ledger after this charge, for programs."""
        if self.ledger is None:
            return None
        left = self.ledger.remaining
        return {
            "path": self.path,
            "jobs": [charge.job for charge in self.charged()],
            "total": self.ledger.total.to_json(),
            "remaining": None if left is None else left.to_json(),
            "remaining_epsilon": self.ledger.remaining_epsilons()[0],
        }

    @contextmanager
    def watch(self, learner: Any) -> Iterator[None]:
        """Whatever ends the command, Ctrl-C too: it says what was charged."""
        try:
            yield
        except BudgetRefused as error:
            text = self._refusal(error.hint)
            self._forget()
            raise BudgetRefused(text) from None
        except InputError as error:
            told = "Nothing was" in str(error) and not (self.charged() or self._has_run)
            more = "" if told else self._standing()
            self._forget()
            raise InputError(f"{error} {more}".rstrip()) from None
        except KeyboardInterrupt:
            note(f"\nprivfield: interrupted, no file was written. {self._after(learner)}")
            raise Stopped(INTERRUPTED) from None
        except Stopped:
            raise
        except Exception as error:  # a disk that fails, too little memory, a bug of ours
            with suppress(Exception):
                error.add_note(self._standing())
            raise

    @contextmanager
    def pay(
        self,
        learner: Any,
        yes: bool,
        always: bool = True,
        totals: Mapping[str, int] | None = None,
        doubt: str = "",
    ) -> Iterator[None]:
        """Ask, twice where there is a doubt; then the learner charges this ledger, with bars."""
        self.check()
        ask(yes or self.is_known, always)
        if doubt:
            warn(doubt)
            ask(yes or self.is_known, always, "Spend it all the same?")
        Spending.began, self._runs = True, _runs()
        with bars("reading", totals) as progress:
            learner.set_params(ledger=self.open(), progress=progress)
            yield

    def _forget(self) -> None:
        """Take back a ledger made for a release that was refused: its total is not settled yet."""
        if self._made and self.ledger is not None:
            self.ledger.withdraw()

    @property
    def _has_run(self) -> bool:
        """Whether a mechanism of this command came to read records."""
        return Spending.began and _runs() > self._runs

    def _standing(self) -> str:
        """What a command has spent that stops at something wrong."""
        if self.charged() or not self._has_run:
            return self._charge() or "Nothing was spent."
        return (
            "The run had begun: count it as spent, though no file was written. With --ledger the "
            "same job costs nothing more."
            if self.ledger is None
            else "Nothing was charged."
        )

    def _charge(self) -> str:
        """What the ledger was charged by this command, and what it is good for."""
        charges = self.charged()
        if not charges:
            return ""
        last = charges[-1]
        return (
            f"{self.path} was charged {in_words(last.cost)}. Run the same command with --job "
            f"{last.job} to finish at no further cost."
        )

    def _after(self, learner: Any) -> str:
        """What a command has spent that was interrupted."""
        if self.ledger is not None:
            return self._charge() or "Nothing was charged."
        cost = getattr(learner, "cost_", None)
        if cost is not None:
            return (
                f"The release was made and is lost; had it been seen, its cost would be "
                f"{in_words(cost)}. With --ledger an interrupted fit can be finished for free."
            )
        if not self._has_run:
            return "Nothing was released, so nothing was spent."
        return (
            "Nothing was released but progress. Of methods that choose step by step it tells what "
            "they have found: count such a run as spent. With --ledger it can be finished for free."
        )


def _runs() -> int:
    from privfield.privacy.mechanism import Mechanism

    return Mechanism.begun


def _epsilon(budget: Budget) -> float:
    found = getattr(budget, "epsilon", None)
    return float(budget.epsilon_at(1e-6) if found is None else found)


def warn_of_seed(seed: int | None) -> None:
    """Say, before anything else, that nobody is protected."""
    if seed is not None:
        warn("NOT PRIVATE: --insecure-seed makes the noise repeatable. For study only.")


def remark_on_delta(budget: Budget, n: int) -> None:
    """Say when δ is too large for so many people; their number must be public or declared."""
    from privfield.planning.verdict import delta_remark

    remark = delta_remark(budget, n)
    if remark:
        warn(remark)


def about_ledger(error: InputError, path: str) -> str:
    """What is wrong with a ledger, by the name that was typed."""
    text = str(error).removeprefix("path: ")
    return text.replace(repr(str(Path(path).absolute())), repr(path))


def _check_folder(path: str) -> None:
    parent = Path(path).absolute().parent
    if not parent.is_dir():
        raise InputError(f"--ledger: the folder {str(parent)!r} does not exist.")


def ask(yes: bool, always: bool = True, question: str = "Spend it?") -> None:
    """Go on only if somebody says so; where nobody can be asked, only unless `always`."""
    if yes or not (always or is_terminal()):
        return
    if not is_terminal():
        raise InputError(
            "nobody can be asked here whether to spend this budget: add --yes to go on. Nothing "
            "was spent."
        )
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        note("Nothing was spent.")
        raise Stopped(INTERRUPTED)
