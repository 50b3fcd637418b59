"""All audits, one after the other."""

from __future__ import annotations

from collections.abc import Callable

from privfield.audit.finding import Finding
from privfield.progress import Progress, ProgressCallback


def audits() -> dict[str, Callable[[], list[Finding]]]:
    """Every family of mechanisms with its audit."""
    from privfield.audit.frank_wolfe import audit_frank_wolfe
    from privfield.audit.marginals import audit_marginals
    from privfield.audit.moments import audit_moments, audit_parities
    from privfield.audit.network import audit_network
    from privfield.audit.noise import audit_noise
    from privfield.audit.selection import audit_selection
    from privfield.audit.stability import audit_stability

    return {
        "noise": audit_noise,
        "selection": audit_selection,
        "stable release": audit_stability,
        "tables": audit_marginals,
        "moments": audit_moments,
        "parities": audit_parities,
        "Frank–Wolfe": audit_frank_wolfe,
        "networks": audit_network,
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
