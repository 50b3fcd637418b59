"""How test processes and their children run; set here, before anything loads numpy."""

import os
import shutil

# `make test` has a worker for each core: a second thread would wait for the others in circles.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A ledger waits for the disk at every charge and step. Temporary folders are in memory, if there is
# room; kills of processes, which tests are about, lose nothing there either.
if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")
