"""All audits, one after the other: the samplers, then every mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privfield.audit.finding import Finding
from privfield.audit.promise import check_world
from privfield.privacy.budgets import ZCDP, ApproxDP, PureDP
from privfield.privacy.mechanism import Mechanism
from privfield.privacy.terms import Terms
from privfield.progress import Progress, ProgressCallback

BUDGETS = (PureDP(1), ZCDP(0.1), ApproxDP(0.7, 1e-6))

# What no check here can see; the proofs in docs/privacy argue it.
NOT_AUDITED = (
    "how long a run takes, and what else runs on the machine",
    "domains larger than the small worlds: the proofs cover them, no enumeration could",
    "whether the operating system's random numbers are random",
)


def audits() -> dict[str, Callable[[], list[Finding]]]:
    """Every sampler and every mechanism with its audit."""
    from privfield.audit.primitives.noise import audit_noise
    from privfield.audit.primitives.selection import audit_selection
    from privfield.audit.primitives.stability import audit_stability
    from privfield.mechanisms.registry import MECHANISMS

    found: dict[str, Callable[[], list[Finding]]] = {
        "noise": audit_noise,
        "selection": audit_selection,
        "stable release": audit_stability,
    }
    for kind in MECHANISMS:
        found[kind.noun] = lambda kind=kind: audit_mechanism(kind)  # type: ignore[misc]
    return found


def audit_mechanism(kind: type[Mechanism[Any]]) -> list[Finding]:
    """Under every adjacency and kind of budget that it takes: all neighbours of small worlds."""
    found = []
    for adjacency in kind.adjacencies:
        for budget in BUDGETS:
            terms = Terms(budget, adjacency)
            if not kind.takes(terms):
                continue
            share, pairs, worlds, problem = 0.0, 0, 0, None
            for world in kind.worlds(terms):
                seen = check_world(world, (0,))
                worlds += 1
                pairs += seen.pairs
                share = max(share, seen.share)
                problem = problem or seen.problem
            found.append(
                Finding(
                    f"{kind.noun}, {adjacency}, {type(budget).__name__}",
                    f"at most {budget}",
                    problem or f"the worst neighbours use {share:.4g} of it",
                    problem is None and pairs > 0,
                    f"{pairs:,} pairs of neighbours in {worlds} small worlds",
                    kind.page,
                )
            )
    return found


def run_audit(progress: ProgressCallback | None = None) -> list[Finding]:
    """Run all of them; an audit that cannot run is a finding that did not pass."""
    found: list[Finding] = []
    for number, (name, audit) in enumerate(audits().items()):
        if progress is not None:
            progress(Progress("auditing", number))
        try:
            found += audit()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            found.append(Finding(name, "can be audited", text, False, "", ""))
    return found
