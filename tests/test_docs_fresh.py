"""The generated pages of docs/ are equal to the pages that the code generates now."""

from __future__ import annotations

from pathlib import Path

from scripts.pages.generate import PAGES
from tests.support.cases import for_each

DOCS = Path(__file__).parent.parent / "docs"


@for_each("name", PAGES)
def test_generated_page_is_fresh(name: str) -> None:
    committed = (DOCS / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), f"docs/{name} is stale: run `python -m scripts.pages --write`"
