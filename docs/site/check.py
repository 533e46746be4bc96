#!/usr/bin/env python3
"""Checks the built documentation site: local links lead somewhere, and browsers fetch nothing from other machines.

python docs/site/check.py DIRECTORY     # exit code 1 and a line for each finding
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {
    "link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src",
    "object": "data", "embed": "src", "use": "href", "image": "href",
}  # fmt: skip
"""The attributes whose target a browser fetches by itself."""
_IN_CSS = re.compile(r"""(?:@import\s+|url\()\s*["']?((?:https?:)?//[^"')\s]+)""")


class Page(HTMLParser):
    """What a page links to, what its browser fetches, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the attributes of one tag."""
        values = {name: value for name, value in attrs if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in FETCHED and FETCHED[tag] in values:
            self.fetched.append(values[FETCHED[tag]])
        self.fetched += [part.split()[0] for part in values.get("srcset", "").split(",") if part.strip()]
        self.fetched += _IN_CSS.findall(values.get("style", ""))


def findings(site: Path) -> list[str]:
    """What is wrong in a built site, a line each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: there is no page"]
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [
            f"{name}: fetches {target}"
            for target in page.fetched
            if _is_remote(target) and not target.startswith("data:")
        ]
        local = [target for target in [*page.links, *page.fetched] if not _is_remote(target)]
        found += [f"{name}: {target} leads nowhere" for target in local if _is_broken(path, target, pages)]
        found += [f"{name}: fetches {target}" for target in _IN_CSS.findall(path.read_text(encoding="utf-8"))]
    for sheet in sorted(site.rglob("*.css")):
        found += [
            f"{sheet.relative_to(site)}: fetches {target}" for target in _IN_CSS.findall(sheet.read_text("utf-8"))
        ]
    return found


def _is_remote(target: str) -> bool:
    parts = urlsplit(target)
    return bool(parts.netloc or parts.scheme)


def _is_broken(path: Path, target: str, pages: dict[Path, Page]) -> bool:
    """Whether a local target has no file, or no such anchor in it."""
    parts = urlsplit(target)
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if file.is_dir():
        file /= "index.html"
    if not file.is_file():
        return True
    anchor = unquote(parts.fragment)
    return bool(anchor) and file in pages and anchor not in pages[file].anchors


def main() -> int:
    """The command line."""
    found = findings(Path(sys.argv[1]).resolve())
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
