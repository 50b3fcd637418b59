"""How test processes and their children run; set here, before anything loads numpy."""

import os

# `make test` has a worker for each core: a second thread would wait for the others in circles.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
