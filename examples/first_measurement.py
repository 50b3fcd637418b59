"""From a file of 5,000 made-up patients to noisy tables with error bars: the shortest whole way.

Run it with `make demo`. It writes to the folder demo-output.
"""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path

import numpy as np

import privfield as pf

FOLDER = Path("demo-output")
SYMPTOMS = ["low mood", "poor sleep", "fatigue", "worry"]
AGES = [(18, 40, 0.45), (40, 65, 0.35), (65, 100, 0.2)]  # from, to, share


def make_patients(path: Path, count: int = 5000, seed: int = 1) -> None:
    """Write made-up patients: older ones sleep worse, and each symptom makes the next likelier."""
    rng = np.random.default_rng(seed)  # an ordinary generator: this data is nobody's
    group = rng.choice(len(AGES), count, p=[share for _, _, share in AGES])
    low, high = np.array([(a, b) for a, b, _ in AGES]).T
    columns = {"age": rng.integers(low[group], high[group])}
    previous = np.zeros(count, dtype=bool)
    for name, base in zip(SYMPTOMS, [-1.0, -1.3, -1.1, -1.4], strict=True):
        odds = base + 1.4 * previous + 0.5 * (group == 2) * (name == "poor sleep")
        previous = rng.random(count) < 1 / (1 + np.exp(-odds))
        columns[name] = np.where(previous, "yes", "no")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def patient_schema() -> pf.Schema:
    """What the study protocol says, not what the file says."""
    return pf.Schema({"age": pf.Bins([18, 40, 65, 100]), **{s: ["no", "yes"] for s in SYMPTOMS}})


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    patients = FOLDER / "patients.csv"
    make_patients(patients)
    schema = patient_schema()
    schema.write(FOLDER / "schema.toml")
    print(f"5,000 made-up patients are in {patients}; their schema is in {FOLDER / 'schema.toml'}.")

    (FOLDER / "study.ledger").unlink(missing_ok=True)  # each demo is a new study
    ledger = pf.Ledger(FOLDER / "study.ledger", total=pf.ApproxDP(epsilon=1, delta=1e-6))
    pairs = list(combinations(schema.names, 2))
    m = pf.measure(patients, schema, pairs, pf.ApproxDP(epsilon=1, delta=1e-6), ledger=ledger)
    m.save(FOLDER / "measurements.zip")
    print(
        f"\nReleased {len(pairs)} tables with {m.noise} noise, private as {m.cost}, {m.adjacency}."
    )
    print(f"What the ledger says: {ledger}")

    truth = pf.measure(patients, schema, pairs, pf.NON_PRIVATE)
    for clique in [("age", "poor sleep"), ("low mood", "poor sleep")]:
        print(f"\n{m.show(clique)}")
        off = np.abs(m.table(clique) - truth.table(clique))
        print(f"(these patients are made up, so we may look: the largest error is {off.max():g})")
    sampling = np.sqrt(5000 * 0.25 * 0.75)
    print(
        f"\nPrivacy noise has standard deviation {m.laws[0].deviation:.0f}; another 5,000 patients "
        f"would move\na cell with a quarter of them by about {sampling:.0f} anyway."
    )


if __name__ == "__main__":
    main()
