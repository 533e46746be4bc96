"""Every code block of the pages does what the page says: they are followed in fresh environments.

The exceptions, blocks that are not run, have their reasons in the pages, and their numbers here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.pages.environment import ROOT, PageEnvironment
from tests.pages.running import NOT_RUN, Follower
from tests.support.blocks import parse_blocks
from tests.support.cases import for_each
from tests.support.jvm.jars import fetch
from tests.support.trees import copy_tree

pytestmark = pytest.mark.timeout(900)

CLONES = {
    "README.md": ".",
    "CONTRIBUTING.md": ".",
    "docs/ci.md": "barnabas",
    "docs/contributing/first-change.md": ".",
    "docs/pipeline.md": ".",
}
"""Pages that begin with nothing installed, and where their clone is. The others begin with Barnabas installed."""
EXCEPTIONS: dict[str, dict[str, int]] = {
    "README.md": {"targets": 1, "soak": 2},
    "CONTRIBUTING.md": {"skip": 2},
    "docs/ci.md": {"skip": 1},
    "docs/command-line.md": {"skip": 2},
    "docs/compatibility.md": {"skip": 1},
    "docs/console.md": {"skip": 4},
    "docs/contributing/project-tests.md": {"skip": 3},
    "docs/docker.md": {"skip": 3},
    "docs/evidence/comparison.md": {"skip": 1},
    "docs/evidence/proof.md": {"skip": 1},
    "docs/migrating-from-kafka.md": {"skip": 4},
    "docs/operations.md": {"skip": 2},
    "docs/pipeline.md": {"targets": 1, "soak": 5, "skip": 5},
    "docs/testing.md": {"soak": 1, "skip": 3},
    "docs/upgrading.md": {"skip": 1},
}
"""The number of blocks of each page that have a marker with a reason why they are not run by `make test`."""


def _pages() -> dict[str, str]:
    """The text of each page that has blocks."""
    paths = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *(ROOT / "docs").rglob("*.md")]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(paths)}
    return {name: text for name, text in texts.items() if "```" in text}


PAGES = _pages()
WITH_SOAK = [name for name, text in PAGES.items() if "<!-- test: soak " in text]
STARTS_SPARK = {"README.md"}
"""Pages that start Spark in blocks that are not marked `soak`."""
OF_SPARK = ("barnabas pipeline run", "barnabas.pipeline", "log_report", "kafka_spark")
"""What a block of a page contains that may start Spark."""


def _shared(factory: pytest.TempPathFactory) -> Path:
    """A directory of all processes of this test run."""
    base = factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "pages"


def _follow(page: str, root: Path, shared: Path, *, with_soak: bool) -> None:
    blocks = parse_blocks(PAGES[page], page)
    environment = PageEnvironment(root / "environment")
    if all(block.how in NOT_RUN for block in blocks):
        (root / "page").mkdir()
        Follower(page, root, environment, shared).follow(blocks)
        return
    environment.create()
    if page in CLONES:
        copy_tree(root / "page" / CLONES[page])
    else:
        (root / "page").mkdir()
        environment.install(Requirement("barnabas"), shared)
    run = [block for block in blocks if with_soak or block.how != "soak"]
    with_spark = any(word in block.text for block in run for word in OF_SPARK)
    Follower(page, root, environment, shared, _for_spark() if with_spark else {}, with_soak).follow(blocks)


def _for_spark() -> dict[str, str]:
    """Variables that spare the download of Spark's connector, and Java's second compiler: no job here runs long."""
    jars = str(fetch(ROOT / "barnabas/spark/session/pom.xml"))
    return {"BARNABAS_SPARK_JARS": jars, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.spark) if page in STARTS_SPARK else page for page in PAGES]
)
def test_every_block_of_a_page_does_what_the_page_says(
    page: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    _follow(page, tmp_path, _shared(tmp_path_factory), with_soak=False)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("page", WITH_SOAK)
def test_every_block_marked_soak_too(page: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    _follow(page, tmp_path, _shared(tmp_path_factory), with_soak=True)


@pytest.mark.soak
@pytest.mark.spark
def test_readme_holds_with_the_real_pip(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip"]
    reached = subprocess.run([*pip, "download", "--quiet", "--no-deps", "-d", str(tmp_path), "click"], check=False)
    if reached.returncode:
        pytest.skip("no package index can be reached")
    cache = subprocess.run([*pip, "cache", "dir"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    variables = {**settings, "PIP_CACHE_DIR": cache, **_for_spark()}
    environment = PageEnvironment(tmp_path / "environment").create_with_pip()
    copy_tree(tmp_path / "page")
    blocks = parse_blocks(PAGES["README.md"], "README.md")
    Follower("README.md", tmp_path, environment, tmp_path, variables).follow(blocks)


@for_each("page", PAGES)
def test_exceptions_are_few_and_counted(page: str) -> None:
    blocks = [block for block in parse_blocks(PAGES[page], page) if block.how in ("skip", "soak", "targets")]
    counts = Counter(block.how for block in blocks)
    assert counts == EXCEPTIONS.get(page, {}), [f"{block.place}: {block.how} {block.argument}" for block in blocks]
