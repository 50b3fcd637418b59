"""Draw docs/figures/terminal.svg: what `privfield demo` and two questions really print.

Run it in an environment with privfield installed: python docs/figures/terminal.py
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

SESSION = [
    ["demo"],
    ["query", "privfield-demo/model.pf", "P(fatigue=yes | poor sleep=yes)"],
    ["ledger", "privfield-demo/study.ledger"],
]


def main() -> None:
    program = Path(sys.executable).with_name("privfield")
    console = Console(record=True, width=112, file=open("/dev/null", "w"))  # noqa: SIM115
    with tempfile.TemporaryDirectory() as folder:
        for arguments in SESSION:
            shown = " ".join(f'"{a}"' if " " in a else a for a in arguments)
            console.print(Text.assemble(("$ ", "dim"), (f"privfield {shown}", "bold green")))
            done = subprocess.run(
                [program, *arguments], cwd=folder, capture_output=True, text=True, check=True
            )
            text = (done.stdout + done.stderr).replace(str(Path(folder).resolve()), "/home/ann")
            console.print(Text(text.rstrip() + "\n"))
    picture = console.export_svg(title="privfield")
    picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)  # no fonts from afar
    Path(__file__).with_suffix(".svg").write_text(picture.replace("Fira Code", "DejaVu Sans Mono"))


if __name__ == "__main__":
    main()
