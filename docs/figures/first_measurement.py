"""Draw docs/figures/first_measurement.png: python docs/figures/first_measurement.py

The noisy table of age and poor sleep from the demo, with the margin of the privacy noise, beside
the counts that nobody but the data's owner would see. The noise is fresh in every run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import privfield as pf

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "examples"))
from first_measurement import make_patients, patient_schema  # noqa: E402

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#555555"  # safe for colour-blind readers


def main() -> None:
    schema, clique = patient_schema(), ("age", "poor sleep")
    with tempfile.TemporaryDirectory() as folder:
        patients = Path(folder) / "patients.csv"
        make_patients(patients)
        pairs = [(a, b) for i, a in enumerate(schema.names) for b in schema.names[i + 1 :]]
        noisy = pf.measure(patients, schema, pairs, pf.ApproxDP(1, 1e-6))
        true = pf.measure(patients, schema, pairs, pf.NON_PRIVATE)
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    position, width = np.arange(3), 0.38
    for column, (level, colour) in enumerate(zip(("no", "yes"), (BLUE, ORANGE), strict=True)):
        x = position + (column - 0.5) * width
        axes.bar(
            x,
            noisy.table(clique)[:, column],
            width * 0.92,
            yerr=noisy.margin(clique),
            color=colour,
            capsize=4,
            label=f"released, poor sleep: {level}",
        )
        axes.scatter(
            x + width * 0.3,
            true.table(clique)[:, column],
            marker="D",
            s=26,
            color="white",
            edgecolor=GREY,
            zorder=3,
            label="true count (never released)" if column else None,
        )
    axes.set_xticks(position, [f"age {label}" for label in schema["age"].levels])
    axes.set_ylabel("patients")
    axes.set_title(
        "5,000 made-up patients, 10 tables, ε = 1, δ = 10⁻⁶, bars: 95% of the privacy noise",
        fontsize=9,
        loc="left",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(HERE / "first_measurement.png", dpi=150)


if __name__ == "__main__":
    main()
