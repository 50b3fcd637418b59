"""An official statistician: a private model of a census, and synthetic people from it.

Run it with `python examples/census.py`. It writes to the folder demo-output.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import privfield as pf

FOLDER = Path("demo-output")
ROWS = 100_000

SCHEMA = pf.Schema(
    {
        "age": pf.Bins([0, 16, 30, 45, 65, 110]),
        "region": 8,
        "education": ["none", "school", "trade", "degree"],
        "work": ["none", "part", "full"],
        "married": ["no", "yes"],
        "children": ["0", "1", "2", "3+"],
        "home": ["rents", "owns"],
        "rooms": ["1-2", "3", "4", "5+"],
        "car": ["no", "yes"],
        "income": 6,
    },
    forbidden=[{"age": "0-16", "married": "yes"}, {"age": "0-16", "work": "full"}],
)


def make_people(path: Path, seed: int = 1) -> None:
    """Write made-up people, each column depending on a few before it."""
    rng = np.random.default_rng(seed)  # an ordinary generator: this data is nobody's

    def draw(scores: np.ndarray) -> np.ndarray:
        """One level per person, at random, likelier where its score is higher."""
        return (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)

    def levels(name: str, slope: np.ndarray) -> np.ndarray:
        """A column that leans to later levels as `slope` rises."""
        k = SCHEMA.shape[SCHEMA.names.index(name)]
        return draw(np.outer(slope, np.arange(k)) - 0.3 * np.arange(k))

    age = rng.choice(5, ROWS, p=[0.2, 0.2, 0.2, 0.25, 0.15])
    child = age == 0
    region = rng.choice(8, ROWS, p=np.array([5, 4, 4, 3, 3, 2, 2, 1]) / 24)
    education = np.where(child, 0, levels("education", 0.9 - 0.2 * age + 0.1 * (region < 2)))
    work = np.where(child, 0, levels("work", 0.3 + 0.3 * education - 1.5 * (age == 4)))
    married = np.where(child, 0, levels("married", 0.6 * age - 1.0))
    children = np.where(child, 0, levels("children", 1.2 * married - 0.7))
    home = levels("home", 0.5 * age + 0.4 * married - 1.2)
    rooms = levels("rooms", 0.5 * home + 0.25 * children)
    income = np.where(child, 0, levels("income", 0.5 * work + 0.3 * education - 0.6))
    car = levels("car", 0.3 * income + 0.4 * home - 0.5 * (region < 2))
    columns = [age, region, education, work, married, children, home, rooms, car, income]
    texts = {
        v.name: np.array(v.levels)[codes].tolist()
        for v, codes in zip(SCHEMA.variables, columns, strict=True)
        if v.name != "age"
    }
    years = rng.integers(np.array([0, 16, 30, 45, 65])[age], np.array([16, 30, 45, 65, 100])[age])
    pq.write_table(pa.table({"age": years, **texts}), path)


def pair_distance(model: pf.MarkovRandomField, truth: pf.Measurements) -> float:
    """Total variation between model and data, averaged over all pairs of variables."""
    return float(
        np.mean(
            [
                np.abs(model.marginal(pair) - truth.table(pair) / ROWS).sum() / 2
                for pair in truth.cliques
            ]
        )
    )


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    people = FOLDER / "people.parquet"
    make_people(people)
    budget = pf.ApproxDP(epsilon=1, delta=1e-9)

    # Before anything is spent:
    print(pf.plan(SCHEMA, n=ROWS, budget=budget).verdict)

    # Which variables interact is learned too, within the same budget.
    learner = pf.MarginalLearner(budget, cliques="learn", schema=SCHEMA).fit(people)
    model = learner.model_
    model.save(FOLDER / "people.pf")
    print(f"Spent {learner.cost_}; the model has {learner.graph_.number_of_edges()} edges.")

    # Synthetic people cost nothing more, and there may be any number of them.
    synthetic = model.sample(50_000, np.random.default_rng(2))
    ages, married = synthetic[:, 0], synthetic[:, SCHEMA.names.index("married")]
    print(f"Married children among 50,000 synthetic people: {(married[ages == 0] == 1).sum()}.")

    truth = pf.measure(people, SCHEMA, list(combinations(SCHEMA.names, 2)), pf.NON_PRIVATE)
    flat = pf.MarginalLearner(
        budget, cliques=[(name,) for name in SCHEMA.names], schema=SCHEMA
    ).fit(people)
    near, far = pair_distance(model, truth), pair_distance(flat.model_, truth)
    print("These people are made up, so we may look. Distance of pair tables from the data:")
    print(f"{near:.4f}; of a model without edges {far:.4f}.")


if __name__ == "__main__":
    main()
