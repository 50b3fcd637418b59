"""All audits, one after the other."""

from __future__ import annotations

from collections.abc import Callable

from privfield.audit.finding import Finding
from privfield.progress import Progress, ProgressCallback

# Mechanisms that no check here looks at as a whole, though the noise and the selections inside them
# are those that are checked; the tests of the project, and the proofs in docs/privacy, do.
NOT_AUDITED = (
    "noisy gradients (pseudolikelihood, private SGD)",
    "Frank–Wolfe for more than two levels, for logistic regression and for polynomials",
    "when edge selection stops, and its stable version",
    "graphs from stable margins and votes as a whole (blocks, Chow–Liu, correlations)",
    "choosing the limit of a chain on held-out people",
    "limits and shares of people with several rows",
)


def audits() -> dict[str, Callable[[], list[Finding]]]:
    """Every family of mechanisms with its audit."""
    from privfield.audit.chains import audit_chains
    from privfield.audit.edge_selection import audit_edge_selection
    from privfield.audit.frank_wolfe import audit_frank_wolfe
    from privfield.audit.marginals import audit_marginals
    from privfield.audit.moments import audit_moments, audit_parities
    from privfield.audit.network import audit_network
    from privfield.audit.parity_rounds import audit_parity_rounds
    from privfield.audit.peer_methods import audit_peer_methods
    from privfield.audit.primitives.noise import audit_noise
    from privfield.audit.primitives.selection import audit_selection
    from privfield.audit.primitives.stability import audit_stability

    return {
        "noise": audit_noise,
        "selection": audit_selection,
        "stable release": audit_stability,
        "tables": audit_marginals,
        "moments": audit_moments,
        "parities": audit_parities,
        "Frank–Wolfe": audit_frank_wolfe,
        "PMW and sepFEM": audit_parity_rounds,
        "edge selection": audit_edge_selection,
        "chains": audit_chains,
        "networks": audit_network,
        "other peer methods": audit_peer_methods,
    }


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
