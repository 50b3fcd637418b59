"""The documentation site: `make docs` builds it without any network."""

import re

from privfield import __version__

project = "privfield"
author = "The privfield maintainers"
copyright = "2026, The privfield maintainers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository, outside this folder

html_theme = "furo"
html_title = f"privfield {__version__}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_js_files = ["pages.js"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
    "dark_css_variables": {"color-brand-primary": "#8ab4f8", "color-brand-content": "#8ab4f8"},
}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
default_role = "code"  # docstrings write `names` in single backticks, as Markdown does


def setup(app: object) -> None:
    """Read docstrings as the plain text with lists that they are."""
    app.connect("autodoc-process-docstring", _plain)  # type: ignore[attr-defined]


def _plain(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    found: list[str] = []
    for line in lines:
        before = found[-1] if found else ""
        item, code = line.lstrip().startswith("* "), line.lstrip().startswith((">>>", "..."))
        inside = before.lstrip().startswith("* ") or before.startswith("  ")
        starts = (item and not inside) or (code and not before.lstrip().startswith((">>>", "...")))
        if before.strip() and starts:
            found.append("")
        plain = re.sub(r"(`[^`]*`)|\||(?<=\w)_(?!\w)", _escape, line)
        found.append(line if code else plain.replace("±`", "±\\ `"))
    lines[:] = found


def _escape(match: re.Match[str]) -> str:
    return match[1] or "\\" + match[0]
