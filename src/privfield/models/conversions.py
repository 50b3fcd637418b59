"""One distribution in another form: tables, couplings of ±1, a polynomial in ±1.

Models do not know each other; this file knows them all, and `Model.to_mrf`, `to_ising` and
`to_polynomial` find it through `FORMS`.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from privfield.errors import InputError
from privfield.models.base import FORMS, Model
from privfield.models.ising import IsingModel, SpinModel
from privfield.models.mrf import ROUNDING, MarkovRandomField
from privfield.models.network import MOST_DENSE, NetworkIsing
from privfield.models.ordinal import OrdinalModel
from privfield.models.polynomial import Monomial, PolynomialMRF, monomials_of


@singledispatch
def to_mrf(model: Model) -> MarkovRandomField:
    """Tables of log-potentials; the levels of ±1 variables are "-1" and "+1"."""
    assert isinstance(model, MarkovRandomField)
    return model


@to_mrf.register
def _(model: SpinModel) -> MarkovRandomField:
    cliques = [[model.names[i] for i in clique] for clique in model.factors.cliques]
    return MarkovRandomField(model.schema, cliques, model.factors.tables, stamp=model.stamp)


@to_mrf.register
def _(model: OrdinalModel) -> MarkovRandomField:
    cliques = [[model.schema.names[i] for i in clique] for clique in model.factors.cliques]
    return MarkovRandomField(model.schema, cliques, model.factors.tables, stamp=model.stamp)


@to_mrf.register
def _(model: NetworkIsing) -> MarkovRandomField:
    return to_mrf(to_ising(model))


@singledispatch
def to_ising(model: Model) -> IsingModel:
    """Couplings and fields, of what has two levels each and no interaction of three."""
    return to_ising(to_polynomial(model))


@to_ising.register
def _(model: IsingModel) -> IsingModel:
    return model


@to_ising.register
def _(model: NetworkIsing) -> IsingModel:
    nodes = model.couplings.shape[0]
    if nodes > MOST_DENSE:
        raise InputError(
            f"an IsingModel holds a dense matrix, for up to {MOST_DENSE:,} variables; this network "
            f"has {nodes:,} nodes."
        )
    weights = model.beta * model.couplings.toarray()
    return IsingModel(weights, np.full(nodes, model.field), model.names, stamp=model.stamp)


@to_ising.register
def _(model: PolynomialMRF) -> IsingModel:
    if model.order > 2:
        raise InputError(f"an Ising model has order two; this polynomial has {model.order}.")
    weights, field = np.zeros((model.size, model.size)), np.zeros(model.size)
    for monomial, value in model.coefficients.items():
        if len(monomial) == 2:
            weights[monomial] = weights[monomial[::-1]] = value
        elif monomial:
            field[monomial] = value
    return IsingModel(weights, field, model.names, stamp=model.stamp)


@to_ising.register
def _(model: OrdinalModel) -> IsingModel:
    if set(model.schema.shape) != {2}:
        raise InputError("an Ising model needs variables with two levels each.")
    low, high = np.array(model.scores).T
    middle, half = (high + low) / 2, (high - low) / 2  # a score is middle + half·x, x = ±1
    weights = model.weights * np.outer(half, half)
    down, up = np.array(model.thresholds).T
    field = (up - down) / 2 + half * (model.weights @ middle)
    return IsingModel(weights, field, schema=model.schema, stamp=model.stamp)


@singledispatch
def to_polynomial(model: Model) -> PolynomialMRF:
    """Coefficients of products of ±1; the second level of a variable is +1."""
    return to_polynomial(to_ising(model))


@to_polynomial.register
def _(model: PolynomialMRF) -> PolynomialMRF:
    return model


@to_polynomial.register
def _(model: OrdinalModel) -> PolynomialMRF:
    return to_polynomial(to_mrf(model))


@to_polynomial.register
def _(model: IsingModel) -> PolynomialMRF:
    p = len(model.field)
    terms: dict[Monomial, float] = {(i,): float(model.field[i]) for i in range(p)}
    terms |= {
        (int(i), int(j)): float(model.weights[i, j]) for i, j in np.argwhere(np.triu(model.weights))
    }
    kept = {monomial: value for monomial, value in terms.items() if value}
    return PolynomialMRF(kept, size=p, names=model.names, stamp=model.stamp)


@to_polynomial.register
def _(model: MarkovRandomField) -> PolynomialMRF:
    schema = model.schema
    if any(size != 2 for size in schema.shape):
        raise InputError("a polynomial in ±1 needs variables with two levels each.")
    if schema.forbidden or not all(np.isfinite(t).all() for t in model.log_potentials):
        raise InputError("a polynomial in ±1 cannot express structural zeros.")
    total: dict[Monomial, float] = {}
    scale: dict[Monomial, float] = {}
    for clique, table in zip(model.cliques, model.log_potentials, strict=True):
        for monomial, value in monomials_of(schema.clique(clique), table).items():
            total[monomial] = total.get(monomial, 0.0) + value
            scale[monomial] = scale.get(monomial, 0.0) + float(np.abs(table).max())
    kept = {m: v for m, v in total.items() if abs(v) > ROUNDING * scale[m] or not m}
    return PolynomialMRF(kept, size=len(schema), names=schema.names, stamp=model.stamp)


FORMS.update(mrf=to_mrf, ising=to_ising, polynomial=to_polynomial)
