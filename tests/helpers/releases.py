"""Releases in one call, for tests: a mechanism made from data and settings, then released."""

from privfield.data.rows import find_variables
from privfield.data.sequences.form import COLUMNS, id_unit
from privfield.data.sequences.read import Labelled
from privfield.data.signs import check_variables
from privfield.data.table import unit_of
from privfield.mechanisms.chains.mechanism import DEFAULT_LIMIT, ChainTransitions
from privfield.mechanisms.frank_wolfe.ising import IsingFrankWolfe
from privfield.mechanisms.frank_wolfe.logistic import LogisticFrankWolfe, check_arrays
from privfield.mechanisms.frank_wolfe.pairwise import PairwiseFrankWolfe
from privfield.mechanisms.frank_wolfe.polynomial import PolynomialFrankWolfe
from privfield.mechanisms.gradients.pseudolikelihood import PseudolikelihoodGradients
from privfield.mechanisms.gradients.sgd import StochasticGradients
from privfield.mechanisms.graphs.statistics import ChowLiuTree, CorrelationGraph, refuse_people
from privfield.mechanisms.graphs.structure import StableStructure
from privfield.mechanisms.moments.mechanism import SecondMoments
from privfield.mechanisms.parities.phases import RegressionsAndParities
from privfield.mechanisms.peers.local import LocalStatistic
from privfield.mechanisms.peers.objective import PerturbedObjective
from privfield.mechanisms.peers.statistics import NetworkStatistics
from privfield.privacy.adjacency import NODE, Unit
from privfield.schema import Schema


def on_signs(kind):
    """Of ±1 variables that have names, a schema, or neither."""

    def measure(data, budget, *, schema=None, names=None, **rest):
        if kind is CorrelationGraph:
            refuse_people(schema, "correlation")
        found = check_variables(data, schema, names)
        return kind.measure(data, budget, unit_of(schema), names=found, schema=schema, **rest)

    return measure


measure_moments = on_signs(SecondMoments)
measure_pseudolikelihood = on_signs(PseudolikelihoodGradients)
measure_correlation_graph = on_signs(CorrelationGraph)
measure_polynomial = on_signs(RegressionsAndParities)


def frank_wolfe_ising(data, variables, budget, width, *, kind=IsingFrankWolfe, **rest):
    schema = variables if isinstance(variables, Schema) else None
    if isinstance(variables, int):
        variables = [f"x{i}" for i in range(variables)]
    names = check_variables(data, schema, None if schema is not None else variables)
    return kind.measure(
        data, budget, unit_of(schema), names=names, schema=schema, width=width, **rest
    )


def frank_wolfe_polynomial(data, variables, budget, order, width, **rest):
    about = {"kind": PolynomialFrankWolfe, "order": order}
    return frank_wolfe_ising(data, variables, budget, width, **about, **rest)


def frank_wolfe_pairwise(data, schema, budget, width, **rest):
    return PairwiseFrankWolfe.measure(
        data, budget, unit_of(schema), schema=schema, width=width, **rest
    )


def frank_wolfe_logistic(features, labels, budget, radius, **rest):
    check_arrays(features, labels)
    about = {"features": features.shape[1], "radius": radius}
    return LogisticFrankWolfe.measure((features, labels), budget, **about, **rest)


def private_sgd(data, schema, cliques, budget, **rest):
    return StochasticGradients.measure(data, budget, schema=schema, cliques=cliques, **rest)


def measure_chain(
    sequences, states, budget, limit=DEFAULT_LIMIT, *, people=None, unit=None, **rest
):
    whose = unit if isinstance(unit, Unit) else id_unit(rest.get("columns", COLUMNS), unit)
    data = sequences if people is None else Labelled(sequences, people)
    return ChainTransitions.measure(data, budget, whose, states=states, limit=limit, **rest)


def measure_chow_liu(data, budget, *, schema=None, names=None, **rest):
    refuse_people(schema, "chow-liu")
    found = find_variables(data, schema, names).names
    return ChowLiuTree.measure(data, budget, names=found, schema=schema, **rest)


def measure_structure(data, budget, *, schema=None, names=None, **rest):
    found = find_variables(data, schema, names)
    return StableStructure.measure(
        data, budget, unit_of(schema), variables=found, schema=schema, **rest
    )


def on_network(kind):
    """Of outcomes on a network."""

    def measure(network, outcomes, budget, **rest):
        return kind.measure(outcomes, budget, NODE, network=network, **rest)

    return measure


measure_network = on_network(NetworkStatistics)
measure_network_local = on_network(LocalStatistic)
measure_network_objective = on_network(PerturbedObjective)
