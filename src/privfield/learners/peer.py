"""Peer effects on one public network from one sensitive outcome per node."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from privfield.checks import check_one_of, check_rng, finite_number, is_word
from privfield.errors import InputError
from privfield.learners.base import Learner, attach_card, result
from privfield.models.base import check_count
from privfield.privacy.adjacency import NODE, Adjacency
from privfield.privacy.budgets import NON_PRIVATE, Budget, NonPrivate, check_budget
from privfield.progress import check_progress
from privfield.stamps import stamped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privfield.data.network.public import PublicNetwork
    from privfield.estimation.peers.one import PeerEstimate
    from privfield.models.network import NetworkIsing

METHODS = ("auto", "sufficient-statistic", "objective-perturbation", "local", "mple")


@dataclass(frozen=True, eq=False)
class SimulatedOutcomes:
    """Outcomes drawn from the fitted model, and where the released statistics lie among theirs.

    `statistics` are the simulated ones, without privacy noise. `tails` holds, for each statistic
    released with additive noise, the share of simulated ones with such noise added that are at
    least as far from the middle: a small share speaks against the model. It is empty for the
    methods "local", "objective-perturbation" and "mple".
    """

    outcomes: NDArray[np.int8]
    statistics: dict[str, NDArray[np.float64]]
    released: dict[str, float]
    tails: dict[str, float]


@dataclass(repr=False, eq=False, kw_only=True)
class PeerEffect(Learner):
    """How strongly neighbours' outcomes go together: β of P(σ) ∝ exp(½ β σᵀJσ).

    The network is public; one ±1 outcome per node is protected (adjacency "flip-outcome"). `fit`
    releases σᵀJσ, or a root, with noise: β and its interval, for sampling and privacy noise.

    * `method`: "sufficient-statistic" (what "auto" takes), "local" (the same number with noise that
      adapts to the data; "auto" takes it when it is less noisy at a declared `guess` of β),
      "objective-perturbation" (releases a root of the noisy pseudo-likelihood equation,
      `release_.beta`, and β is that under which it is likeliest), or "mple" (not private);
    * `scaling`: "laplacian", "mean-degree", "regular" or "none" (the weights are J);
    * `field`: True estimates a tilt toward +1 as well; `covariates` maps names to public numbers,
      one per node. Both are further statistics that share the budget;
    * `bound`: β is sought in [0, bound], or in `bounds` such as (-3, 3), where neighbours may
      differ more than chance would make them. `level` is that of intervals;
    * `weight`: the edge attribute to use as weight; without it every edge weighs 1;
    * `missing`: "error" refuses nodes without an outcome and outcomes of unknown nodes, "ignore"
      passes over the latter, "negative" besides reads nodes without an outcome as −1;
    * `positive`: the values that count as positive, such as ["ja"] or [2]; without it numbers above
      0 and the words true, yes, y and t do. Everything else counts as negative;
    * `prevalence`: a public guess of the share of +1, for advice only;
    * `calibration`: "tight", or "as-printed": the PrIsing paper's constants, for study. Like "mple"
      it gives the root over all real β, and no bound cuts it off. Its interval is for β within the
      bounds, and may not hold the root, which a ridge draws to 0;
    * `cache`: a folder in which simulated curves are kept; they depend on the network and, above
      5,000 nodes, on released numbers. Fits that are NOT PRIVATE neither read nor write it, nor
      does "objective-perturbation", whose curve depends on the root.

    After `fit`: `beta_`, `interval_` (None where the method has none, or where no β in the range
    makes the released number plausible: `estimate_.outside`), `estimate_` (with `pieces`, where
    separate ranges of β do and the interval spans them), `release_`, `network_`, `model_`,
    `method_`, `stamp_`, `cost_`, `adjacency_`.

    >>> import networkx as nx, privfield as pf
    >>> from privfield.learners.peer import PeerEffect
    >>> ring = nx.cycle_graph(10)
    >>> peer = PeerEffect(pf.PureDP(1.0)).fit(ring, {node: node < 5 for node in ring})
    >>> 0 <= peer.beta_ <= 5
    True
    """

    beta_: float = result()
    interval_: tuple[float, float] | None = result()
    estimate_: PeerEstimate | None = result()
    network_: PublicNetwork = result()
    model_: NetworkIsing | None = result()
    method_: str = result()
    stamp_: str | None = result()

    method: str = "auto"
    scaling: str = "laplacian"
    field: bool = False
    covariates: Mapping[str, Any] | None = None
    bound: float = 5.0
    bounds: tuple[float, float] | None = None
    level: float = 0.95
    guess: float | None = None
    weight: str | None = None
    missing: str = "error"
    positive: Any = None
    prevalence: float | None = None
    calibration: str = "tight"
    noise: str = "auto"
    cache: str | os.PathLike[str] | None = None
    adjacency: str = "flip-outcome"

    def fit(self, graph: Any, outcomes: Any) -> Self:
        """Release what is needed and estimate β; each call spends the budget once more."""
        from privfield.data.network.read import read_network

        self._forget()
        budget = check_budget(self.budget)
        self._check()
        network = read_network(graph, self.scaling, self.weight)
        method = self._choose(network, budget)
        if self.calibration == "as-printed" or method == "mple":
            beta, estimate = self._fit_for_study(network, outcomes, method)
        else:
            objective = method == "objective-perturbation"
            fit = self._fit_objective if objective else self._fit_statistic
            estimate = fit(network, outcomes, method)
            beta = estimate.beta
        self.beta_, self.estimate_ = beta, estimate
        if self.released_ is not None:
            self.stamp_ = self.released_.stamp
        self.network_, self.method_ = network, method
        self.interval_ = None
        if estimate is not None and not estimate.outside:
            self.interval_ = estimate.interval
        self.model_ = self._model()
        stamped(estimate, self.stamp_)
        attach_card(self, () if estimate is None else estimate.remarks)
        return self

    def _check(self) -> None:
        check_one_of(self.method, "method", METHODS)
        if Adjacency.parse(self.adjacency) is not Adjacency.FLIP_OUTCOME:
            raise InputError(f"adjacency must be 'flip-outcome' here; got {self.adjacency!r}.")
        if not 0 < finite_number(self.bound, "bound") <= 100:
            raise InputError(f"bound must lie above 0 and up to 100; got {self.bound}.")
        if not 0 < finite_number(self.level, "level") < 1:
            raise InputError(f"level must lie between 0 and 1; got {self.level}.")
        self._check_bounds()
        if self.guess is not None and not 0 <= finite_number(self.guess, "guess") <= self.bound:
            raise InputError(f"guess must lie in [0, bound]; got {self.guess}.")
        if self.prevalence is not None and not 0 < finite_number(self.prevalence, "prevalence") < 1:
            raise InputError(f"prevalence must lie between 0 and 1; got {self.prevalence}.")
        if not is_word(self.calibration, ("tight", "as-printed")):
            raise InputError(
                f"calibration must be 'tight' or 'as-printed'; got {self.calibration!r}."
            )
        check_progress(self.progress)

    def _check_bounds(self) -> None:
        if self.bounds is None:
            return
        try:
            low, high = (finite_number(each, "bounds") for each in self.bounds)
        except (TypeError, ValueError):
            low = high = 0.0
        if not -100 <= low <= 0 < high <= 100:
            raise InputError(
                "bounds must be two numbers, from −100 to 0 and above 0 up to 100, such as "
                f"(-3, 3); got {self.bounds!r}."
            )

    def _choose(self, network: PublicNetwork, budget: Budget | NonPrivate) -> str:
        """The method, by public knowledge only."""
        extras = self.field or bool(self.covariates)
        method = self.method
        if self.calibration == "as-printed" and method == "auto":
            method = "objective-perturbation"
        if self.calibration == "as-printed" and method != "objective-perturbation":
            raise InputError('calibration="as-printed" goes with method="objective-perturbation".')
        if method == "mple" and not isinstance(budget, NonPrivate):
            raise InputError('method="mple" has no privacy: it needs budget=pf.NON_PRIVATE.')
        study = method == "mple" or self.calibration == "as-printed"
        if study and (self.ledger is not None or self.job is not None):
            raise InputError("ledger: what is not private cannot be charged; leave it out.")
        if extras and method in ("objective-perturbation", "local", "mple"):
            raise InputError(
                f'field and covariates need method="sufficient-statistic"; got {method!r}.'
            )
        if method != "auto":
            return method
        if extras or isinstance(budget, NonPrivate):
            return "sufficient-statistic"
        return self._best_release(network, budget)

    def _best_release(self, network: PublicNetwork, budget: Budget) -> str:
        """The best forecast."""
        from privfield.estimation.peers.bank import expected_pull
        from privfield.mechanisms.forecasting.choose import choose
        from privfield.mechanisms.forecasting.networks import facts_of
        from privfield.mechanisms.forecasting.study import Study

        pull = None
        if self.guess is not None:
            pull = expected_pull(network, float(self.guess), self.cache, self.progress)
        facts = facts_of(network, pull)
        study = Study("peer", network.nodes, budget, Adjacency.FLIP_OUTCOME, network=facts)
        return choose(study).name

    def _fit_statistic(self, network: PublicNetwork, outcomes: Any, method: str) -> PeerEstimate:
        from privfield.data.network.covariates import read_covariates
        from privfield.estimation.peers.bank import open_bank
        from privfield.estimation.peers.one import estimate_peer_effect
        from privfield.estimation.peers.several import estimate_with_covariates
        from privfield.mechanisms.peers.local import LocalStatistic
        from privfield.mechanisms.peers.statistics import NetworkStatistics

        extras = read_covariates(self.field, self.covariates, network)
        stamped = isinstance(self.budget, NonPrivate) or self.insecure_seed is not None
        # before anything is paid for: a cache may be damaged
        bank = open_bank(network, pull=method == "local", folder=self.cache, kept=not stamped)
        options = self._range()
        reading = self._reading(network)
        if method == "local":
            local = self._release(LocalStatistic, outcomes, NODE, **reading)
            return estimate_peer_effect(local, bank, **options)
        reading |= {"covariates": extras, "noise": self.noise}
        found = self._release(NetworkStatistics, outcomes, NODE, **reading)
        if extras:
            return estimate_with_covariates(found, network, extras, **options)
        return estimate_peer_effect(found, bank, **options)

    def _reading(self, network: PublicNetwork) -> dict[str, Any]:
        """How outcomes are read."""
        about = {"missing": self.missing, "positive": self.positive, "schema": self.schema}
        return {"network": network, **about}

    def _range(self) -> dict[str, Any]:
        """Where β is sought."""
        return {
            "least": 0.0 if self.bounds is None else float(self.bounds[0]),
            "bound": float(self.bound if self.bounds is None else self.bounds[1]),
            "level": float(self.level),
            "progress": self.progress,
        }

    def _fit_objective(self, network: PublicNetwork, outcomes: Any, method: str) -> PeerEstimate:
        from privfield.estimation.peers.one import estimate_from_root
        from privfield.mechanisms.peers.objective import PerturbedObjective

        if isinstance(self.budget, NonPrivate):
            raise InputError('budget: NON_PRIVATE goes with method="mple" here.')
        guess = 1.0 if self.guess is None else self.guess
        sought = self._range()
        about: dict[str, Any] = {"bound": sought["bound"], "least": sought["least"], "guess": guess}
        found = self._release(PerturbedObjective, outcomes, NODE, **self._reading(network), **about)
        return estimate_from_root(found, network, **sought)

    def _fit_for_study(
        self, network: PublicNetwork, outcomes: Any, method: str
    ) -> tuple[float, PeerEstimate | None]:
        """What protects nobody: the root, and what is known of β from it."""
        from privfield.data.network.outcomes import check_missing, open_outcomes
        from privfield.estimation.peers.mple import maximum_pseudolikelihood
        from privfield.estimation.peers.one import estimate_from_root
        from privfield.mechanisms.peers.as_printed import STAMP, measure_as_printed
        from privfield.privacy.terms import Terms

        check_missing(self.missing)
        read = open_outcomes(outcomes, network.names, self.missing, self.schema, self.positive)
        self.released_, self.cost_, self.adjacency_ = None, NON_PRIVATE, Adjacency.FLIP_OUTCOME
        self.stamp_ = Terms(NON_PRIVATE).stamp if method == "mple" else STAMP
        if method == "mple":
            return maximum_pseudolikelihood(network.couplings, read()), None
        root = measure_as_printed(network, read, self.budget, self.insecure_seed)
        found = estimate_from_root(root, network, **self._range())
        return root.point, found.with_root(root.point)

    def _model(self) -> NetworkIsing | None:
        """The fitted model; None where covariates give each node its own field."""
        from privfield.models.network import NetworkIsing

        if self.covariates or not math.isfinite(self.beta_):
            return None
        tilt = 0.0
        if self.estimate_ is not None and "field" in self.estimate_.parameters:
            tilt = self.estimate_.parameters["field"][0]
        names = [str(name) for name in self.network_.names]
        return NetworkIsing(
            self.network_.couplings,
            self.beta_,
            tilt,
            names if len(set(names)) == len(names) else None,
            stamp=self.stamp_,
        )

    def summary(self) -> str:
        """A table with what it means; the first line says what is protected and what is not."""
        from privfield.learners.peer_summary import summary_text

        return summary_text(
            self.network_,
            self.budget,
            self.method_,
            self.beta_,
            self.estimate_,
            self.release_,
            self.cost_ if self.cost_ is not None else self.budget,
            self.stamp_,
            self.prevalence,
            float(self.level),
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """The likelihood of the released number along β, with estimate and interval."""
        from privfield.learners.peer_summary import plot_likelihood

        if self.estimate_ is None:
            raise InputError(
                f"method {self.method_!r} gives no likelihood; use 'sufficient-statistic'."
            )
        return plot_likelihood(self.estimate_, ax, self.stamp_)

    def simulate(self, n: int = 1000, rng: np.random.Generator | None = None) -> SimulatedOutcomes:
        """Outcomes from the fitted model, to see whether what was released looks like them."""
        from privfield.data.network.covariates import read_covariates
        from privfield.estimation.peers.simulate import simulate_outcomes

        extras = read_covariates(self.field, self.covariates, self.network_)
        parameters: tuple[float, ...] = (self.beta_,)
        if self.estimate_ is not None:
            parameters = tuple(triple[0] for triple in self.estimate_.parameters.values())
        if not math.isfinite(self.beta_):
            raise InputError("no finite β solves the equation here: nothing to simulate.")
        found = simulate_outcomes(
            self.network_, extras, parameters, self.release_, check_count(n, 1), check_rng(rng)
        )
        return SimulatedOutcomes(*found)
