"""Compile all loops once, before several test processes would each do it at the same time."""

from importlib import import_module
from pathlib import Path

import privfield

ROOT = Path(privfield.__file__).parent.parent


def main() -> None:
    """Loops have explicit signatures: to import a module is to compile it, or to load it."""
    for path in sorted(ROOT.glob("privfield/**/*.py")):
        if "njit(" in path.read_text(encoding="utf-8") or path.stem.endswith("kernels"):
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


if __name__ == "__main__":
    main()
