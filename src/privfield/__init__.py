"""privfield: graphical models from sensitive data under differential privacy.

>>> import privfield as pf
>>> schema = pf.Schema({"smoker": ["no", "yes"], "age": pf.Bins([0, 18, 40, 65, 120])})
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from privfield._version import __version__ as __version__
from privfield.errors import BudgetRefused as BudgetRefused
from privfield.errors import InputError as InputError

if TYPE_CHECKING:
    from privfield.estimate.bootstrap import Bootstrap as Bootstrap
    from privfield.estimate.bootstrap import bootstrap as bootstrap
    from privfield.estimate.estimate import estimate as estimate
    from privfield.learn.chain import ChainLearner as ChainLearner
    from privfield.learn.ising import IsingLearner as IsingLearner
    from privfield.learn.marginal import MarginalLearner as MarginalLearner
    from privfield.learn.pairwise import PairwiseLearner as PairwiseLearner
    from privfield.learn.peer import PeerEffect as PeerEffect
    from privfield.learn.polynomial import PolynomialLearner as PolynomialLearner
    from privfield.learn.sparse_logistic import SparseLogistic as SparseLogistic
    from privfield.learn.structure import StructureLearner as StructureLearner
    from privfield.measure.chain_measurements import ChainMeasurements as ChainMeasurements
    from privfield.measure.marginals import measure as measure
    from privfield.measure.measurements import Measurements as Measurements
    from privfield.models.card import Card as Card
    from privfield.models.chain import ChainModel as ChainModel
    from privfield.models.ising import IsingModel as IsingModel
    from privfield.models.mrf import MarkovRandomField as MarkovRandomField
    from privfield.models.network import NetworkIsing as NetworkIsing
    from privfield.models.polynomial import PolynomialMRF as PolynomialMRF
    from privfield.models.saving import load as load
    from privfield.plan.plan import plan as plan
    from privfield.privacy.adjacency import Adjacency as Adjacency
    from privfield.privacy.budgets import NON_PRIVATE as NON_PRIVATE
    from privfield.privacy.budgets import ZCDP as ZCDP
    from privfield.privacy.budgets import ApproxDP as ApproxDP
    from privfield.privacy.budgets import Cost as Cost
    from privfield.privacy.budgets import PureDP as PureDP
    from privfield.privacy.ledger import Ledger as Ledger
    from privfield.progress import Progress as Progress
    from privfield.report.report import write_report as write_report
    from privfield.schema import Bins as Bins
    from privfield.schema import Person as Person
    from privfield.schema import Schema as Schema
    from privfield.tables.check import check as check

_LAZY = {  # loaded when they are first asked for: `privfield --help` needs none of them
    "Adjacency": "privfield.privacy.adjacency",
    "ApproxDP": "privfield.privacy.budgets",
    "Bins": "privfield.schema",
    "Bootstrap": "privfield.estimate.bootstrap",
    "bootstrap": "privfield.estimate.bootstrap",
    "Card": "privfield.models.card",
    "ChainLearner": "privfield.learn.chain",
    "ChainMeasurements": "privfield.measure.chain_measurements",
    "ChainModel": "privfield.models.chain",
    "check": "privfield.tables.check",
    "Cost": "privfield.privacy.budgets",
    "estimate": "privfield.estimate.estimate",
    "IsingLearner": "privfield.learn.ising",
    "IsingModel": "privfield.models.ising",
    "Ledger": "privfield.privacy.ledger",
    "load": "privfield.models.saving",
    "MarginalLearner": "privfield.learn.marginal",
    "MarkovRandomField": "privfield.models.mrf",
    "measure": "privfield.measure.marginals",
    "Measurements": "privfield.measure.measurements",
    "NetworkIsing": "privfield.models.network",
    "NON_PRIVATE": "privfield.privacy.budgets",
    "PairwiseLearner": "privfield.learn.pairwise",
    "PeerEffect": "privfield.learn.peer",
    "Person": "privfield.schema",
    "plan": "privfield.plan.plan",
    "PolynomialLearner": "privfield.learn.polynomial",
    "PolynomialMRF": "privfield.models.polynomial",
    "Progress": "privfield.progress",
    "PureDP": "privfield.privacy.budgets",
    "Schema": "privfield.schema",
    "SparseLogistic": "privfield.learn.sparse_logistic",
    "StructureLearner": "privfield.learn.structure",
    "write_report": "privfield.report.report",
    "ZCDP": "privfield.privacy.budgets",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'privfield' has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


class _Package(ModuleType):
    """`pf.measure`, `pf.estimate` and `pf.plan` are functions, though folders have these names.

    The import system sets a folder as an attribute of its package once it is loaded; here it must
    not take the place of the function.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _LAZY and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
