"""Every way in which records leave, in one list: the audit and the contract tests read it."""

from __future__ import annotations

from typing import Any

from privfield.mechanisms.chains.mechanism import ChainTransitions
from privfield.mechanisms.edges.mechanism import EdgeSelection
from privfield.mechanisms.edges.stable import StableTables
from privfield.mechanisms.frank_wolfe.general import LossFrankWolfe
from privfield.mechanisms.frank_wolfe.ising import IsingFrankWolfe
from privfield.mechanisms.frank_wolfe.logistic import LogisticFrankWolfe
from privfield.mechanisms.frank_wolfe.pairwise import PairwiseFrankWolfe
from privfield.mechanisms.frank_wolfe.polynomial import PolynomialFrankWolfe
from privfield.mechanisms.gradients.pseudolikelihood import PseudolikelihoodGradients
from privfield.mechanisms.gradients.sgd import StochasticGradients
from privfield.mechanisms.graphs.statistics import ChowLiuTree, CorrelationGraph
from privfield.mechanisms.graphs.structure import StableStructure
from privfield.mechanisms.items.mechanism import ItemScores
from privfield.mechanisms.moments.mechanism import SecondMoments
from privfield.mechanisms.parities.gaussian import NoisyParities
from privfield.mechanisms.parities.phases import RegressionsAndParities
from privfield.mechanisms.parities.pmw import MultiplicativeWeights
from privfield.mechanisms.parities.sepfem import PerturbedLeader
from privfield.mechanisms.peers.local import LocalStatistic
from privfield.mechanisms.peers.objective import PerturbedObjective
from privfield.mechanisms.peers.statistics import NetworkStatistics
from privfield.mechanisms.scores.mechanism import HeldOutScore
from privfield.mechanisms.tables.mechanism import ContingencyTables
from privfield.privacy.mechanism import Mechanism

MECHANISMS: tuple[type[Mechanism[Any]], ...] = (
    SecondMoments,
    ItemScores,
    ContingencyTables,
    EdgeSelection,
    PseudolikelihoodGradients,
    NoisyParities,
    MultiplicativeWeights,
    PerturbedLeader,
    RegressionsAndParities,
    StochasticGradients,
    StableStructure,
    CorrelationGraph,
    ChowLiuTree,
    IsingFrankWolfe,
    LogisticFrankWolfe,
    LossFrankWolfe,
    PairwiseFrankWolfe,
    PolynomialFrankWolfe,
    ChainTransitions,
    HeldOutScore,
    StableTables,
    NetworkStatistics,
    LocalStatistic,
    PerturbedObjective,
)
