"""Which test files have tests for volume, found in their source: collecting them all would import every client.

A file has them if it has the mark itself, or names something of a conftest.py of its folders that has the mark: a
fixture with a marked parameter, a list of such parameters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.soak.records import ROOT

MARK = re.compile(r"\bmark\.soak\b")
SIZES = re.compile(
    r"^from (tests\.support\.volume import|hypothesis import"
    r"|tests\.support\.logs\.log_driver import .*\b(EXAMPLES|PROPERTY)\b)",
    re.MULTILINE,
)
"""A test whose size the environment sets: by `tests/support/volume.py`, which also sets the examples of properties."""


def files_with_mark(root: Path = ROOT) -> list[str]:
    """The test files, from the root, that have tests with the mark `soak`."""
    return [name for name, text in _test_files(root) if MARK.search(text) or _uses(root, name, text)]


def files_with_sizes(root: Path = ROOT) -> list[str]:
    """The test files whose tests are repeated as often as the environment says."""
    return [name for name, text in _test_files(root) if SIZES.search(text)]


def other_files_with_mark(root: Path = ROOT) -> list[str]:
    """Files in which the mark is not found: helpers that are neither tests nor a conftest.py."""
    return [
        str(path.relative_to(root))
        for path in sorted((root / "tests").rglob("*.py"))
        if path.name != "conftest.py" and not path.name.startswith("test_") and MARK.search(path.read_text())
    ]


@cache
def marked_names(source: str) -> set[str]:
    """The names that a module gives to what has the mark, or is made of something that has it."""
    statements = [(_defined(node), ast.unparse(node)) for node in ast.parse(source).body]
    marked: set[str] = set()
    while True:
        before = len(marked)
        for names, text in statements:
            if MARK.search(text) or _names_any(text, marked):
                marked |= names
        if len(marked) == before:
            return marked


def _test_files(root: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((root / "tests").rglob("test_*.py")):
        if path.parent == root / "tests" / "soak":  # whose tests have the mark as an example
            continue
        yield str(path.relative_to(root)), path.read_text()


def _uses(root: Path, name: str, text: str) -> bool:
    """Whether a test file names something with the mark of a conftest.py of its folders."""
    for folder in list(Path(name).parents)[:-1]:
        conftest = root / folder / "conftest.py"
        if conftest.exists() and MARK.search(source := conftest.read_text()):
            return not marked_names(source).isdisjoint(_taken_names(text))
    return False


def _taken_names(text: str) -> Iterator[str]:
    """What a test file can take from a conftest.py: the arguments of functions, used fixtures, and imports."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.arg(arg=name):
                yield name
            case ast.ImportFrom(names=imported):
                yield from (one.name for one in imported)
            case ast.Call(func=ast.Attribute(attr="usefixtures"), args=arguments):
                yield from (one.value for one in arguments if isinstance(one, ast.Constant))


def _defined(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


def _names_any(text: str, names: set[str]) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", text) for name in names)
