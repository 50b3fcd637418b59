"""`pf.load`: a model with its card and with what was released for it."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from privfield.errors import InputError
from privfield.files import read_bytes
from privfield.models.base import Model
from privfield.models.chain import ChainModel
from privfield.models.loading import model_from_bytes

# What can be stored inside a model file, by the kind that its own bytes declare. Imported when
# needed: a name in a file must not choose which code is loaded.
RELEASES = {
    "measurements": "tables.measurements:Measurements",
    "moments": "moments.moments:Moments",
    "item sums": "items.sums:ItemSums",
    "pooled item sums": "items.sums:PooledItems",
    "chain measurements": "chains.measurements:ChainMeasurements",
    "frank-wolfe-trajectory": "frank_wolfe.trajectory:Trajectory",
    "pseudolikelihood-trajectory": "gradients.pseudolikelihood:PseudolikelihoodTrajectory",
    "sgd-trajectory": "gradients.sgd:SGDTrajectory",
    "edge-selection": "edges.selection:Selection",
    "stable-selection": "edges.stable:StableSelection",
    "parities": "parities.answers:ParityAnswers",
    "polynomial-phases": "parities.phases:PolynomialPhases",
    "structure": "graphs.release:StructureRelease",
    "network-statistics": "peers.release:StatisticRelease",
    "network-local": "peers.release:LocalRelease",
    "network-objective": "peers.release:ObjectiveRelease",
}


def load(path: str | os.PathLike[str]) -> Model | ChainModel:
    """Read a model that `save` wrote; anything else is an `InputError`."""
    return model_from_bytes(read_bytes(path), repr(str(path)), release_from_bytes)


def release_from_bytes(kind: object, data: bytes, source: str) -> Any:
    """Released numbers of that kind, from the bytes of their file."""
    if not isinstance(kind, str) or kind not in RELEASES:
        raise InputError(f"{source} holds measurements of an unknown kind, {kind!r}.")
    module, name = RELEASES[kind].split(":")
    released = getattr(import_module(f"privfield.mechanisms.{module}"), name)
    return released.from_bytes(data, source)
