"""The documentation site is built without a warning, its links lead somewhere, and it fetches nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cases import for_each

ROOT = Path(__file__).resolve().parents[2]


def _check(site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "docs/site/check.py"), str(site)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.timeout(600)
def test_site_is_built_without_warnings_and_stands_alone(tmp_path: Path) -> None:
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-b", "html", "-c", "docs/site"]
    command = [sys.executable, "-m", "sphinx", *options, "-d", str(tmp_path / "doctrees"), ".", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=500)
    assert built.returncode == 0, built.stderr
    checked = _check(tmp_path / "site")
    assert checked.returncode == 0, checked.stderr
    assert (tmp_path / "site/index.html").read_text() == (tmp_path / "site/README.html").read_text()
    text = (tmp_path / "site/docs/queues.html").read_text()
    assert "resize image 7: done" in text
    assert "test:" not in text, "the markers of blocks are for the tests only"


@for_each(
    ("files", "said"),
    [
        ({"a.html": '<script src="https://cdn.example/x.js"></script>'}, "a.html: fetches https://cdn.example/x.js"),
        ({"a.html": '<link rel="stylesheet" href="//cdn.example/x.css">'}, "a.html: fetches //cdn.example/x.css"),
        ({"a.html": '<img src="http://cdn.example/x.png">'}, "a.html: fetches http://cdn.example/x.png"),
        ({"a.html": '<img srcset="http://cdn.example/x.png 2x">'}, "a.html: fetches http://cdn.example/x.png"),
        ({"a.html": "<style>@import 'https://f.example/x.css'</style>"}, "a.html: fetches https://f.example/x.css"),
        ({"a.html": "", "s/b.css": "x { src: url(https://f.example/x.woff2) }"}, "s/b.css: fetches https://f.example/"),
        ({"a.html": '<a href="b.html">'}, "a.html: b.html leads nowhere"),
        ({"a.html": '<a href="b.html#x">', "b.html": '<p id="y">'}, "a.html: b.html#x leads nowhere"),
        ({"a.html": '<a href="#x">'}, "a.html: #x leads nowhere"),
        ({"a.html": '<script src="x.js">'}, "a.html: x.js leads nowhere"),
        ({}, "there is no page"),
    ],
)
def test_what_a_site_may_not_have_is_found(tmp_path: Path, files: dict[str, str], said: str) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    checked = _check(tmp_path)
    assert checked.returncode == 1
    assert said in checked.stderr


def test_links_to_other_machines_are_for_readers_to_follow(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="x"><a href="https://kafka.apache.org/"><a href="#x"><img src="data:,x">')
    checked = _check(tmp_path)
    assert (checked.returncode, checked.stderr) == (0, "")
