"""Terminals, pipes and Ctrl-C."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

import privfield as pf
from command_line import installed, start
from privfield.__main__ import run
from privfield.cli.spending import Spending
from privfield.privacy.mechanism import Mechanism


def read_all(descriptor, until, seconds=300):
    """What a terminal shows, up to a text or the end."""
    shown, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if not select.select([descriptor], [], [], 0.2)[0]:
            continue
        try:
            more = os.read(descriptor, 4096)
        except OSError:  # the other side is gone
            break
        shown += more
        if until and until in shown:
            break
        if not more:
            break
    return shown.decode()


def in_a_terminal(*arguments, answer=None, run=start):
    """Run with a terminal for questions and news; (exit code, stdout, what the terminal showed)."""
    ours, theirs = pty.openpty()
    process = run(*arguments, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    shown = ""
    if answer is not None:
        shown = read_all(ours, b"[y/N]")
        os.write(ours, answer)
    shown += read_all(ours, None)
    out = process.stdout.read().decode()
    process.stdout.close()
    os.close(ours)
    return process.wait(300), out, shown


def fit_line(study, target, *more):
    return (
        *("fit", study / "patients.csv", "--schema", study / "schema.toml", "--epsilon", "1"),
        *("--cliques", "all-pairs", "-o", target, *more),
    )


def test_fit_asks_before_it_spends(study, tmp_path):
    ledger = ("--ledger", tmp_path / "l")
    code, out, shown = in_a_terminal(*fit_line(study, tmp_path / "m.pf", *ledger), answer=b"n\n")
    assert code == 130 and "Spend it?" in shown and "Nothing was spent" in shown
    assert not out and not list(tmp_path.iterdir())
    code, out, shown = in_a_terminal(*fit_line(study, tmp_path / "m.pf", *ledger), answer=b"y\n")
    assert code == 0, shown
    assert "Wrote" in out and len(pf.Ledger(tmp_path / "l").charges()) == 1


def test_fit_asks_again_where_next_to_nothing_can_be_learned(study, tmp_path):
    line = [*fit_line(study, tmp_path / "m.pf")]
    line[line.index("--epsilon") + 1] = "0.001"
    code, out, shown = in_a_terminal(*line, answer=b"y\nn\n")
    assert code == 130 and "Next to nothing can be learned" in shown, shown
    assert "Spend it all the same?" in shown and "Nothing was spent" in shown
    assert not out and not list(tmp_path.iterdir())


def test_structure_and_peer_ask_where_somebody_can_answer(study, tmp_path):
    (tmp_path / "edges.csv").write_text("a,b\nb,c\nc,a\n")
    (tmp_path / "outcomes.csv").write_text("a,1\nb,0\nc,1\n")
    peer = ("peer", tmp_path / "edges.csv", tmp_path / "outcomes.csv", "-e", "1")
    structure = ("structure", study / "patients.csv", "-s", study / "schema.toml", "-e", "1")
    structure = (*structure, "-d", "1e-6", "--method", "chow-liu")
    for line, target in ((peer, tmp_path / "p.pf"), (structure, tmp_path / "g.csv")):
        line = (*line, "--ledger", tmp_path / "l", "-o", target)
        code, out, shown = in_a_terminal(*line, answer=b"n\n")
        assert code == 130 and "Nothing was spent" in shown and not out
        assert not target.exists() and not (tmp_path / "l").exists()
        code, out, shown = in_a_terminal(*line, answer=b"\x04")  # Ctrl-D
        assert code == 130 and "Nothing was spent" in shown and not (tmp_path / "l").exists()
    for extra, answer in (("--yes", None), ("--force", b"y\ny\n")):
        code, out, shown = in_a_terminal(*peer, extra, "-o", tmp_path / "p.pf", answer=answer)
        assert code == 0 and ("Spend it?" in shown) == (answer is not None)
        assert ("Spend it all the same?" in shown) == (answer is not None)  # of three nodes


def test_progress_is_drawn_on_terminals_only(study, tmp_path):
    line = ("sample", study / "model.pf", "-n", "1e6", "--force", "-o", tmp_path / "rows.csv")

    def impatient(*arguments, **options):
        """Bars from the start, however fast the machine is."""
        program = (
            "import sys, privfield.cli.terminal.bars as b, privfield.cli as c; b._PATIENCE = 0"
        )
        program += "; sys.exit(c.main(sys.argv[1:]))"
        return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], **options)

    code, out, shown = in_a_terminal(*line, run=impatient)
    assert code == 0 and "drawing rows" in shown and " of 1,000,000" in shown
    done = installed(*line)
    assert done.returncode == 0 and done.stderr == "" and done.stdout == out
    assert "\x1b" not in out


ENDLESS = """
import sys
import privfield.cli as program
from privfield.data.table import Table
read = Table.batches
def again_and_again(self, *given):
    print("counting", file=sys.stderr, flush=True)
    while True:
        yield from read(self, *given)
Table.batches = again_and_again
sys.exit(program.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("ledger", [True, False])
def test_interrupting_a_fit_says_what_was_charged(study, tmp_path, ledger):
    """Ctrl-C while a file without end is counted, which begins once the charge is durable."""
    line = [
        *("fit", study / "patients.csv", "-s", study / "schema.toml", "-e", "1", "--yes"),
        *("--cliques", "all-pairs", "--n", "1000", "-o", tmp_path / "m.pf"),
        *(("--ledger", tmp_path / "l") if ledger else ()),
    ]
    program = [sys.executable, "-c", ENDLESS, *map(str, line)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(program, **pipes)
    while process.stderr.readline() != "counting\n":
        assert process.poll() is None
    assert not ledger or pf.Ledger(tmp_path / "l").charges()
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130 and out == "", err
    assert {each.name for each in tmp_path.iterdir()} <= {"l"}
    if not ledger:
        assert "interrupted, no file was written. Nothing was released" in err
        return
    job = pf.Ledger(tmp_path / "l").charges()[0].job
    assert f"l was charged ε = 1. Run the same command with --job {job}" in err
    assert installed(*line, "--job", job).returncode == 0  # finished, at no further cost


def test_an_interrupted_run_without_a_ledger_is_not_called_free(monkeypatch):
    """Progress of a method that chooses step by step follows from what it has found."""
    purse = Spending(None, None, None, pf.PureDP(1), "replace-one")
    monkeypatch.setattr(Spending, "began", False)
    assert purse._after(None) == "Nothing was released, so nothing was spent."
    monkeypatch.setattr(Spending, "began", True)
    monkeypatch.setattr(purse, "_runs", Mechanism.begun)
    assert purse._after(None) == "Nothing was released, so nothing was spent."
    monkeypatch.setattr(Mechanism, "begun", Mechanism.begun + 1)
    assert "count such a run as spent" in purse._after(None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ending_a_sample_leaves_nothing_behind(study, tmp_path, number):
    line = ("sample", study / "model.pf", "-n", "1e9", "-o", tmp_path / "rows.csv")
    with start(*line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.iterdir()):  # the file that will take its place
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        try:
            _, err = process.communicate(timeout=300)
        finally:
            process.kill()
    assert process.returncode == 128 + number and "no file was written" in err
    assert not list(tmp_path.iterdir())


DROPPED = """
import os, sys, threading, time
from privfield import cli

waiting = []

class Timer(threading.Timer):
    def start(self):  # not before the program went on, however busy the machine is
        waiting.append(super().start)

threading.Timer = Timer

class Resource:
    def __del__(self):  # Python drops what is raised here
        os.kill(os.getpid(), int(sys.argv[1]))
        time.sleep(0.1)

def run(given):
    try:
        Resource()
        print("dropped", flush=True)
        waiting.pop()()
        time.sleep(60)
    except KeyboardInterrupt:
        return cli.INTERRUPTED

cli._run = run
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_arrives_in_a_destructor_still_ends_the_program(number):
    program = [sys.executable, "-c", DROPPED, str(int(number))]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout) == (128 + number, "dropped\n"), ended.stderr
    assert ended.stderr == ""


def test_a_reader_that_has_seen_enough_is_no_error(study):
    process = start(
        "ledger", study / "study.ledger", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0 and err == b""


def test_ctrl_c_while_the_program_is_loaded_is_one_sentence(monkeypatch, capsys):
    class Interrupted:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "privfield.cli":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "meta_path", [Interrupted, *sys.meta_path])
    monkeypatch.delitem(sys.modules, "privfield.cli")
    assert run() == 130
    assert capsys.readouterr().err == "privfield: interrupted; no file was written.\n"


def test_a_program_that_was_loaded_runs(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["privfield", "--version"])
    assert run() == 0
    assert capsys.readouterr().out.startswith("privfield ")
