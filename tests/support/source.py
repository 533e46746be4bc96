"""Which module of `barnabas` imports which, from the source: imports in functions and under TYPE_CHECKING count too."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("wire", "storage", "coord", "broker", "barnabas")
"""The folders at the top that hold the product; the first four are linked into the last."""

Graph = dict[str, set[str]]
"""For each module the modules it imports, both by their dotted names."""


def python_files(folders: Iterable[str] = PACKAGES) -> list[Path]:
    """Every Python file below the folders, each once: links are not followed."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py") if path.resolve() == path)


def module_name(path: Path) -> str:
    """The name under which a file is imported: `barnabas.wire.batches.records` for wire/batches/records.py."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] != "barnabas":
        parts = ("barnabas", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.Module) -> Iterator[str]:
    """The dotted names in import statements, the longest that each may mean."""
    for node in statements(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from (f"{module}.{alias.name}" for alias in names)


def import_graph() -> Graph:
    """Every module of the product with the modules of the product that it imports, in a new dictionary.

    `from package import name` imports the module `package.name` where there is one, and otherwise `package`.
    """
    return {name: set(targets) for name, targets in _parsed_graph().items()}


@cache
def _parsed_graph() -> Graph:
    files = {module_name(path): path for path in python_files()}
    graph: Graph = {}
    for name, path in files.items():
        targets = set()
        for imported in _imported(ast.parse(path.read_text())):
            target = imported if imported in files else imported.rpartition(".")[0]
            if target in files and target != name:
                targets.add(target)
        graph[name] = targets
    return graph


def circles(graph: Graph) -> list[set[str]]:
    """The strongly connected components with more than one module: each module imports all others in the end."""
    reach = {name: _reachable(graph, name) for name in graph}
    circles_found: list[set[str]] = []
    for name in graph:
        if name in reach[name] and not any(name in circle for circle in circles_found):
            circles_found.append({other for other in reach[name] if name in reach[other]})
    return circles_found


def _reachable(graph: Graph, start: str) -> set[str]:
    """The modules that can be reached from `start`, itself only when a path leads back to it."""
    reached: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(graph[name])
    return reached


_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
"""The fields of a statement, of `except` and of `case` that hold statements."""


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes in the blocks of a module or a statement, in source order, `except` and `case` included."""
    for name in _BLOCKS:
        for child in getattr(node, name, ()):
            yield child
            yield from statements(child)
