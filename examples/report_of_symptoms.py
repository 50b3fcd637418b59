"""From 5,000 made-up patients with 14 symptoms to a report: a private network at ε = 1.

It writes to the folder demo-output: the model, the report, and two figures.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import privfield as pf
from privfield.learners.base import attach_card
from privfield.reporting import write_report

FOLDER = Path("demo-output")
SYMPTOMS = [
    *("low mood", "no interest", "poor sleep", "fatigue", "appetite", "guilt", "concentration"),
    *("restlessness", "worry", "irritability", "muscle tension", "palpitations", "avoidance"),
    "alcohol",
]
LINKS = {  # the truth, which a real study would not know
    ("low mood", "no interest"): 0.55,
    ("low mood", "guilt"): 0.35,
    ("low mood", "poor sleep"): 0.2,
    ("poor sleep", "fatigue"): 0.5,
    ("fatigue", "concentration"): 0.4,
    ("no interest", "concentration"): 0.2,
    ("appetite", "low mood"): 0.2,
    ("worry", "restlessness"): 0.45,
    ("worry", "muscle tension"): 0.3,
    ("worry", "guilt"): 0.25,
    ("restlessness", "irritability"): 0.35,
    ("restlessness", "poor sleep"): 0.2,
    ("muscle tension", "palpitations"): 0.35,
    ("palpitations", "avoidance"): 0.3,
    ("avoidance", "alcohol"): -0.3,
    ("irritability", "alcohol"): 0.3,
}


def true_model() -> pf.IsingModel:
    """How these symptoms hang together in the population that the patients are drawn from."""
    weights = np.zeros((len(SYMPTOMS), len(SYMPTOMS)))
    for pair, weight in LINKS.items():
        i, j = (SYMPTOMS.index(name) for name in pair)
        weights[i, j] = weights[j, i] = weight
    return pf.IsingModel(weights, np.linspace(-0.35, 0.05, len(SYMPTOMS)), SYMPTOMS)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    truth = true_model()
    patients = truth.sample(
        5000, np.random.default_rng(1), method="independent"
    )  # made up: nobody's data

    schema = pf.Schema({name: ["no", "yes"] for name in SYMPTOMS})
    budget = pf.ApproxDP(epsilon=1, delta=1e-6)
    learner = pf.MarginalLearner(budget, schema=schema).fit((patients > 0).astype(np.uint8))
    attach_card(learner, notes=["Made-up patients."])
    learner.model_.save(FOLDER / "symptoms.pf")

    model = pf.load(FOLDER / "symptoms.pf")  # from here on there is no data, and no cost
    report = write_report(model, FOLDER / "symptoms.html", title="Symptoms of 5,000 patients")
    model.plot(FOLDER / "symptoms_network.png")
    model.plot(FOLDER / "symptoms_marginals.svg", kind="marginals")
    print(f"The report is in {report}; open it in a browser.")


if __name__ == "__main__":
    main()
