"""Configuration of Sphinx for the documentation site: `make docs-site`.

The source folder is the repository, so links between pages are those of the repository, and are checked: every warning
is an error. A page of docs/ that is not in SECTIONS is one. Browsers fetch nothing from other machines.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from barnabas import __version__  # noqa: E402 - needs the path above

SECTIONS = {
    "Use": [
        "docs/console", "docs/testing", "docs/ci", "docs/docker", "docs/command-line", "docs/queues", "docs/pipeline",
        "docs/operations", "docs/securing", "docs/upgrading", "docs/migrating-from-compose",
        "docs/migrating-from-kafka", "docs/compatibility", "docs/skipped",
    ],
    "Reference": ["docs/reference/*"],
    "Evidence": ["docs/evidence/*", "bench/README", "bench/RESULTS"],
    "Clients": ["compat/README", "compat/*/README", "compat/*/FINDINGS"],
    "Development": ["CONTRIBUTING", "ARCHITECTURE", "docs/contributing/*", "CHANGES", "SECURITY", "CODE_OF_CONDUCT"],
}  # fmt: skip
"""The contents, beside README, which is the first page."""

project = "Barnabas"
version = release = __version__
root_doc = "README"
extensions = ["myst_parser"]
include_patterns = ["*.md", "docs/*.md", "docs/*/*.md", "compat/*.md", "compat/*/*.md", "bench/*.md"]
exclude_patterns = [".*", "build", "dist", "tests", "barnabas", "broker", "coord", "storage", "wire"]
nitpicky = True
myst_heading_anchors = 4
myst_links_external_new_tab = False

html_theme = "furo"
html_title = f"Barnabas {version}"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_static_path = [str(ROOT / "docs/site/static")]
html_css_files = ["site.css"]


def add_contents(_: Sphinx, name: str, source: list[str]) -> None:
    """Append the contents to the first page, where GitHub would show them as text."""
    if name == root_doc:
        for title, pages in SECTIONS.items():
            paths = [path for page in pages for path in sorted(ROOT.glob(f"{page}.md"))]
            names = [f"/{path.relative_to(ROOT).with_suffix('')}" for path in paths]
            lines = [f"```{{toctree}}\n:hidden:\n:caption: {title}\n", *names, "```\n"]
            source[0] += "\n" + "\n".join(lines)


def without_markers(_: Sphinx, __: str, source: list[str]) -> None:
    """Remove the comments that are for the tests of pages."""
    source[0] = re.sub(r"^ *<!-- test: .*?-->\n", "", source[0], flags=re.DOTALL | re.MULTILINE)


def write_index(app: Sphinx, error: Exception | None) -> None:
    """The first page under the name that servers look for."""
    if error is None and app.builder.name == "html":
        out = Path(app.outdir)
        shutil.copy(out / "README.html", out / "index.html")


def setup(app: Sphinx) -> None:
    """Register what is above. Diagrams of mermaid are shown as text: what draws them comes from another machine."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("source-read", without_markers)
    app.connect("source-read", add_contents)
    app.connect("build-finished", write_index)
