"""privfield: graphical models from sensitive data under differential privacy.

>>> import privfield as pf
>>> schema = pf.Schema({"smoker": ["no", "yes"], "age": pf.Bins([0, 18, 40, 65, 120])})
"""

from importlib import import_module
from typing import Any

from privfield._version import __version__ as __version__
from privfield.errors import BudgetRefused as BudgetRefused
from privfield.errors import InputError as InputError

PUBLIC = {  # loaded when first asked for: `privfield --help` needs none; types: __init__.pyi
    "Adjacency": "privfield.privacy.adjacency",
    "ApproxDP": "privfield.privacy.budgets",
    "Bins": "privfield.schema",
    "Bootstrap": "privfield.estimation.uncertainty.bootstrap",
    "bootstrap": "privfield.estimation.uncertainty.bootstrap",
    "Card": "privfield.models.card",
    "ChainLearner": "privfield.learners.chain",
    "ChainMeasurements": "privfield.mechanisms.chains.measurements",
    "ChainModel": "privfield.models.chain",
    "check": "privfield.data.check",
    "compare": "privfield.reporting.comparing",
    "Comparison": "privfield.reporting.comparing",
    "combine": "privfield.estimation.uncertainty.combining",
    "Combined": "privfield.estimation.uncertainty.combining",
    "Cost": "privfield.privacy.budgets",
    "CsvFiles": "privfield.data.sources.files",
    "estimate": "privfield.estimation.estimate",
    "FrankWolfe": "privfield.learners.frank_wolfe",
    "GaussianDP": "privfield.privacy.budgets",
    "IsingLearner": "privfield.learners.ising",
    "IsingModel": "privfield.models.ising",
    "Ledger": "privfield.privacy.ledger",
    "load": "privfield.learners.files",
    "Loss": "privfield.mechanisms.frank_wolfe.losses",
    "MarginalLearner": "privfield.learners.marginal",
    "MarkovRandomField": "privfield.models.mrf",
    "measure": "privfield.mechanisms.tables.mechanism",
    "measure_parities": "privfield.mechanisms.parities.mechanism",
    "Measurements": "privfield.mechanisms.tables.measurements",
    "NetworkIsing": "privfield.models.network",
    "NON_PRIVATE": "privfield.privacy.budgets",
    "Ordered": "privfield.schema",
    "OrdinalLearner": "privfield.learners.ordinal",
    "OrdinalModel": "privfield.models.ordinal",
    "PairwiseLearner": "privfield.learners.pairwise",
    "ParityAnswers": "privfield.mechanisms.parities.answers",
    "PeerEffect": "privfield.learners.peer",
    "Person": "privfield.schema",
    "pool": "privfield.estimation.pooling",
    "plan": "privfield.planning.plan",
    "PolynomialLearner": "privfield.learners.polynomial",
    "PolynomialMRF": "privfield.models.polynomial",
    "Progress": "privfield.progress",
    "PureDP": "privfield.privacy.budgets",
    "release_score": "privfield.mechanisms.scores.mechanism",
    "ReleasedScore": "privfield.mechanisms.scores.score",
    "Schema": "privfield.schema",
    "SGDLearner": "privfield.learners.sgd",
    "Solution": "privfield.models.solution",
    "SparkFiles": "privfield.data.spark.files",
    "SparseLogistic": "privfield.learners.sparse_logistic",
    "StructureLearner": "privfield.learners.structure",
    "write_report": "privfield.reporting.report",
    "ZCDP": "privfield.privacy.budgets",
}


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'privfield' has no attribute {name!r}")
    value = getattr(import_module(PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
