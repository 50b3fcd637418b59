"""How test processes and their children run; set here, before anything loads numpy."""

import os
import shutil
import signal

# `make test` has a worker for each core: a second thread would wait for the others in circles.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A ledger waits for the disk at every charge and step. Temporary folders are in memory, if there is
# room; kills of processes, which tests are about, lose nothing there either.
if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

# What a shell runs in the background, or nohup, ignores Ctrl-C and the end of the terminal, and so
# would programs that tests interrupt, for ever. Programs do not inherit handlers.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

from hypothesis import settings

# No test is about how long an example takes, least of all on a busy machine.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
