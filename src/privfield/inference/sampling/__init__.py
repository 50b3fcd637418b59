"""Markov chain samplers: Glauber and Swendsen–Wang on networks, Gibbs on any factors."""

from privfield.inference.sampling.diagnostics import (
    Diagnostic,
    effective_sample_size,
    split_r_hat,
)
from privfield.inference.sampling.gibbs import sample_gibbs
from privfield.inference.sampling.run import SampleResult
from privfield.inference.sampling.sparse import sample_network

__all__ = [
    "Diagnostic",
    "SampleResult",
    "effective_sample_size",
    "sample_gibbs",
    "sample_network",
    "split_r_hat",
]
