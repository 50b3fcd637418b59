"""How long the fixed costs are: import, noise, one ledger charge.

    python benchmarks/privacy.py

Prints a Markdown table. Each line runs in a fresh process and takes the best of five in CPU time;
the rival runs in the same loop.
"""

from __future__ import annotations

import subprocess
import sys

LINES = [
    ("import privfield", "import privfield", "import pandas", "import pandas"),
    (
        "discrete Laplace noise on 50,000 cells",
        "import numpy as np, opendp.prelude; from privfield.privacy.noise import *; "
        "x = np.zeros(50_000, np.int64); law = NoiseLaw('discrete-laplace', 24.0); "
        "add_noise(x[:2], law)| add_noise(x, law)",
        "numpy's floating-point Laplace (leaks: for speed only)",
        "import numpy as np; g = np.random.default_rng()| g.laplace(0, 24, 50_000)",
    ),
    (
        "discrete Gaussian noise on 50,000 cells",
        "import numpy as np, opendp.prelude; from privfield.privacy.noise import *; "
        "x = np.zeros(50_000, np.int64); law = NoiseLaw('discrete-gaussian', 24.0); "
        "add_noise(x[:2], law)| add_noise(x, law)",
        "numpy's floating-point Gaussian (leaks: for speed only)",
        "import numpy as np; g = np.random.default_rng()| g.normal(0, 24, 50_000)",
    ),
    (
        "one durable ledger charge",
        "import privfield as pf, tempfile; f = tempfile.mkdtemp(); "
        "l = pf.Ledger(f + '/l', total=pf.PureDP(1))| "
        "l.charge('x', pf.PureDP(0.01), 'replace-one')",
        "write and fsync 100 bytes",
        "import os, tempfile; f = open(tempfile.mktemp(), 'wb')| "
        "f.write(bytes(100)); f.flush(); os.fsync(f.fileno())",
    ),
]


def seconds(code: str) -> float:
    """The best of five fresh processes; what stands before | is not timed."""
    prepare, _, timed = code.rpartition("|")
    script = (
        f"import time\n{prepare.strip()}\nt = time.process_time()\n{timed.strip()}\n"
        "print(time.process_time() - t)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    print("| work | CPU-s | rival | CPU-s | ratio |")
    print("|---|---:|---|---:|---:|")
    for name, ours, rival, theirs in LINES:
        a, b = seconds(ours), seconds(theirs)
        print(f"| {name} | {a:.4f} | {rival} | {b:.4f} | {a / b:.3g} |")


if __name__ == "__main__":
    main()
