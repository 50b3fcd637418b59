"""The command line: what `privfield` runs, and what its exit codes mean.

0 done; 1 a bug of ours; 2 bad input; 3 budget refused; 4 nothing stable to release; 130 stopped
with Ctrl-C, 143 by SIGTERM, 129 with its terminal.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from privfield.cli.arguments.options import as_options, flow
from privfield.cli.commands import (
    audit,
    check,
    compare,
    demo,
    export,
    fit,
    init,
    ledger,
    peer,
    plan,
    pool,
    query,
    report,
    sample,
    structure,
    utility,
)
from privfield.cli.spending import Spending
from privfield.cli.terminal.console import note
from privfield.cli.terminal.exit_codes import (
    BAD_INPUT,
    DONE,
    INTERRUPTED,
    OUR_BUG,
    REFUSED,
    Stopped,
)
from privfield.cli.terminal.help import Command, Commands
from privfield.errors import BudgetRefused, InputError

app = typer.Typer(
    name="privfield",
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS = (
    *(demo, init, check, plan, fit, report, query, compare, pool, sample, utility, export),
    *(structure, peer, ledger, audit),
)  # as --help lists them
for module in _COMMANDS:  # the command has the name of its file
    name = module.__name__.rpartition(".")[2]
    app.command(name, cls=Command, help=flow(module.HELP))(getattr(module, name))


def _version(wanted: bool) -> None:
    if wanted:
        from privfield._version import __version__

        typer.echo(f"privfield {__version__}")
        raise typer.Exit


@app.callback(
    help="Graphical models from sensitive data, under differential privacy.",
    epilog="A first look, without any data of your own: privfield demo",
)
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_version, help="Show which version."),
    ] = False,
) -> None:
    """What holds for all commands."""


_AGAIN = 0.05  # seconds until an interruption that Python dropped is sent again
_USAGE: Any = typer.BadParameter.__mro__[1]  # click's UsageError, which typer may carry inside


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _settle_streams()
    with _ended_like_ctrl_c() as signals:
        code = _run(given)
    if signals and code == INTERRUPTED:
        code = 128 + signals[0]
    if arguments is None and code >= INTERRUPTED - 1:
        _leave_at_once(code)
    return code


def _leave_at_once(code: int) -> None:
    """End the program without waiting for threads that still read for nobody."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def _ended_like_ctrl_c() -> Iterator[list[int]]:
    """Being told to end leaves as little behind as Ctrl-C does; gives the signals that came.

    Python drops an exception that is raised inside a destructor or a weak reference's callback. An
    interruption that arrives there is sent again.
    """
    came: list[int] = []

    def stop(number: int, _: Any) -> None:
        came.append(number)
        raise KeyboardInterrupt

    def dropped(lost: Any) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            number = came[-1] if came else signal.SIGINT
            again = threading.Timer(_AGAIN, os.kill, [os.getpid(), number])
            again.daemon = True
            again.start()
        else:
            unraisable(lost)

    unraisable, sys.unraisablehook = sys.unraisablehook, dropped
    before = {}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        try:
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # not `nohup`
                before[number] = signal.signal(number, stop)
        except ValueError:  # only the main thread may
            break
    try:
        yield came
    finally:
        sys.unraisablehook = unraisable
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(given: list[str]) -> int:
    Spending.began = False
    try:
        code = app(given or ["--help"], prog_name="privfield", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # typer turns Ctrl-C into this
            raise KeyboardInterrupt
        return code if isinstance(code, int) else DONE
    except Stopped as stop:
        return stop.code
    except _USAGE as error:
        _tell(_usage(error) + _spared(given, ""), error)
        note(f"Try '{_command(error)} --help'.")
        return BAD_INPUT
    except InputError as error:
        text = as_options(str(error))
        _tell(text + _spared(given, text), error)
        return BAD_INPUT
    except BudgetRefused as error:
        _tell(str(error), error)
        return REFUSED
    except (KeyboardInterrupt, typer.Abort):
        note("privfield: interrupted; no file was written.")
        return INTERRUPTED
    except SystemExit as end:  # typer's way, when whoever reads our output has seen enough
        if isinstance(end.__context__, BrokenPipeError):
            return _leave_pipe()
        return end.code if isinstance(end.code, int) else OUR_BUG  # completion in a shell
    except BrokenPipeError:
        return _leave_pipe()
    except OSError as error:
        place = f" {error.filename!r}" if error.filename else ""
        _tell(f"cannot read or write{place}: {error.strerror or type(error).__name__}.", error)
        return BAD_INPUT
    except MemoryError as error:
        _tell("not enough memory. `privfield plan` says how much a fit needs.", error)
        return BAD_INPUT
    except Exception as error:
        _confess(error)
        return OUR_BUG


def _leave_pipe() -> int:
    """What is still to be written goes nowhere, without a complaint from Python."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return DONE


def _settle_streams() -> None:
    """Text that a terminal cannot show becomes '?', and warnings are one line each."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        note(f"privfield: note: {message}")

    warnings.showwarning = show


def _tell(text: str, error: BaseException) -> None:
    note(f"privfield: {text}")
    for line in getattr(error, "__notes__", ()):
        note(line)
    if os.environ.get("PRIVFIELD_DEBUG"):
        traceback.print_exception(error)


def _usage(error: Any) -> str:
    """What is wrong with a command as typed; of something missing also what it is."""
    text, parameter = str(error.format_message()), getattr(error, "param", None)
    about = getattr(parameter, "help", None)
    if text.startswith("Missing") and about:
        return f"{text.rstrip('.')}: {about.split(chr(10))[0]}"
    return text


def _spared(given: list[str], text: str) -> str:
    """What people who came to spend want to know when a command stops."""
    spends = given[:1] in (["fit"], ["peer"], ["structure"])
    return " Nothing was spent." * (spends and not Spending.began and "was spent" not in text)


def _command(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return "privfield" if context is None else str(context.command_path)


def _confess(error: Exception) -> None:
    """Name the place of a bug, but not the error's text: it may hold what a record holds."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__} at {os.path.basename(last.filename)}:{last.lineno}"
    _tell(f"this is a bug in privfield, not your mistake ({place}).", error)
    note(
        "Please report it with this line, your command and `pip show privfield`. With "
        "PRIVFIELD_DEBUG=1 a\ntraceback is shown; it may hold private values: read it before you "
        "send it."
    )
