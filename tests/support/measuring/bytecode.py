"""A pytest plugin: the modules that the processes of a parallel run import are compiled once, before they start.

They import the same files at the same time: in a fresh clone each would rewrite the assertions of all tests and compile
them and the product, which takes four times as long as the rest of collecting. Nothing is done where Python writes no
bytecode (PYTHONDONTWRITEBYTECODE).
"""

from __future__ import annotations

import compileall
import multiprocessing
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

ROOT = Path(__file__).resolve().parents[3]
TESTS = ROOT / "tests"
OTHERS = ("bench", "compat", "barnabas", "wire", "storage", "coord", "broker")
AT_ONCE = 20
"""How many files a process is given at a time."""
_config: pytest.Config
"""The configuration of the run. The processes that compile are forked from this one, so they have it too."""


def with_assertions() -> Iterator[Path]:
    """The files whose assertions pytest rewrites: tests, and what defines fixtures."""
    for path in TESTS.rglob("*.py"):
        if path.name.startswith("test_") or path.name == "conftest.py":
            yield path


def without() -> Iterator[Path]:
    """The other files that tests import."""
    rewritten = set(with_assertions())
    for folder in ("tests", *OTHERS):
        yield from (path for path in (ROOT / folder).rglob("*.py") if path not in rewritten)


def rewrite_assertions(path: Path) -> bool:
    """Whether a file's assertions had to be rewritten: the result is where pytest looks for it."""
    directory = rewrite.get_cache_dir(path)
    compiled = directory / f"{path.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(path, compiled) is not None:
        return False
    directory.mkdir(parents=True, exist_ok=True)
    try:
        source_hash, code = rewrite._rewrite_test(path, _config)
    except SyntaxError:  # the import of the file raises it again
        return False
    return rewrite._write_pyc(_config.stash[rewrite.assertstate_key], code, source_hash, compiled)


def compile_file(path: Path) -> None:
    """Compile a file as Python does, if it is not compiled yet; the import of the file raises its errors."""
    compileall.compile_file(path, quiet=2)


def compile_all(config: pytest.Config) -> int:
    """Compile everything, in as many processes as there are CPUs. Returns how many files were rewritten."""
    global _config  # noqa: PLW0603 - the processes inherit it
    _config = config
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        tests = pool.map(rewrite_assertions, list(with_assertions()), chunksize=AT_ONCE)
        others = pool.map(compile_file, list(without()), chunksize=AT_ONCE)
        list(others)
        return sum(tests)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Before the processes of a parallel run start."""
    if not sys.dont_write_bytecode:
        compile_all(config)
