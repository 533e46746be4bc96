"""The structure of the source: short files and functions, few files in a folder, no imports in a circle.

The exceptions are listed here, each with its reason. A list can only become shorter: an exception that is no longer
needed fails the test.
"""

from __future__ import annotations

import ast
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.structure.__main__ import FILE as PICTURE
from tests.structure.picture import Picture
from tests.structure.rooms import against_the_direction, room_edges
from tests.support.source import PACKAGES, ROOT, Graph, circles, import_graph, python_files, statements

MEDIAN_LINES = 150
FILE_LINES = 600
FUNCTION_LINES = 70
FOLDER_FILES = 20

LONG_FILES: dict[str, str] = {}
"""Paths of longer files, each with the reason."""
LONG_FUNCTIONS: dict[str, str] = {}
"""`path::function`, each with the reason."""

CIRCULAR_IMPORTS: dict[str, tuple[str, tuple[str, ...]]] = {}
"""Imported module: the reason, and the modules whose import of it closes a circle. Without these there is no circle."""


MORE_THAN_SUPPORT: dict[str, tuple[tuple[str, ...], str]] = {
    "tests": (("tests.structure",), "what checks the source as a whole is one room, with the tests beside it"),
    "tests.bench": (("bench",), "tests the benchmark"),
    "tests.checker": (("compat.checker", "compat.exactly_once"), "tests the checker, and a client's history"),
    "tests.clients": (("compat",), "runs the suites, and their programs in Java and Go"),
    "tests.cluster": (
        ("compat.checker", "compat.exactly_once", "compat.kafka_streams"),
        "its loads are the clients of the suites, and the checker reads their histories",
    ),
    "tests.coord": (("compat.kafka",), "compares with Kafka's own classes"),
    "tests.costs": (("tests.mutants",), "plants the mutants that make requests dearer"),
    "tests.twin": (("compat.twin",), "tests the differential tester, and runs its standard sequences"),
    "tests.soak": (("tests.hostile", "tests.mutants"), "its parts name every flood and every mutant"),
}
"""Rooms of tests that import more than the product, `tests.support` and themselves: which modules, and why."""

AGAINST_THE_DIRECTION: dict[tuple[str, str], str] = {}
"""(importing package, imported package), with the reason: without these imports no package imports one above it."""


def circular_imports() -> list[tuple[str, str]]:
    """(importing module, imported module), with full names, of every exception."""
    return [
        (f"barnabas.{importer}", f"barnabas.{imported}")
        for imported, (_, importers) in CIRCULAR_IMPORTS.items()
        for importer in importers
    ]


@cache
def sources() -> dict[str, str]:
    """The text of every Python file, by its path from the root."""
    folders = (*PACKAGES, "tests", "bench", "compat", "scripts")
    return {str(path.relative_to(ROOT)): path.read_text() for path in python_files(folders)}


def line_count(text: str) -> int:
    return len(text.splitlines())


def test_the_median_file_is_short() -> None:
    product = [text for path, text in sources().items() if path.startswith(tuple(f"{name}/" for name in PACKAGES))]
    assert statistics.median(map(line_count, product)) <= MEDIAN_LINES
    assert statistics.median(map(line_count, sources().values())) <= MEDIAN_LINES


def test_no_file_is_long() -> None:
    lines = {path: line_count(text) for path, text in sources().items()}
    too_long = {path: count for path, count in lines.items() if count > FILE_LINES}
    assert {path: count for path, count in too_long.items() if path not in LONG_FILES} == {}
    assert LONG_FILES.keys() - too_long.keys() == set(), "no longer needed"


def test_no_folder_holds_many_files() -> None:
    folders = Counter(path.rpartition("/")[0] for path in sources())
    assert {folder: count for folder, count in folders.items() if count > FOLDER_FILES} == {}


def function_lines(path: str, text: str) -> dict[str, int]:
    """The lines of every function in a file, by `path::name`."""
    return {
        f"{path}::{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for node in statements(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_no_function_is_long() -> None:
    too_long: dict[str, int] = {}
    for path, text in sources().items():
        too_long |= {name: count for name, count in function_lines(path, text).items() if count > FUNCTION_LINES}
    assert {name: count for name, count in too_long.items() if name not in LONG_FUNCTIONS} == {}
    assert LONG_FUNCTIONS.keys() - too_long.keys() == set(), "no longer needed"


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = import_graph()
    listed = circular_imports()
    for name, targets in graph.items():
        graph[name] = {target for target in targets if (name, target) not in listed}
    described = [
        f"{name} imports {', '.join(sorted(graph[name] & circle))}"
        for circle in circles(graph)
        for name in sorted(circle)
    ]
    assert described == []


def is_circular(graph: Graph) -> bool:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False


def test_every_listed_circular_import_closes_a_circle() -> None:
    graph = import_graph()
    for name, target in circular_imports():
        assert target in graph.get(name, ()), f"{name} does not import {target} any more: remove it from the list"
    for name, target in circular_imports():
        graph[name].discard(target)
    for name, target in circular_imports():
        graph[name].add(target)
        needed = is_circular(graph)
        graph[name].discard(target)
        assert needed, f"{name} -> {target} closes no circle any more: remove it from the list"


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert circles(graph) == [{"b", "c"}]
    assert circles({"a": {"b"}, "b": set()}) == []


def test_every_module_is_in_the_graph_once() -> None:
    graph = import_graph()
    assert {"barnabas.wire.batches.records", "barnabas.broker.server", "barnabas.cli"} <= graph.keys()
    assert all(name.split(".")[0] == "barnabas" for name in graph)
    assert len(graph) == len(python_files())


def test_no_package_imports_one_above_it() -> None:
    assert against_the_direction(*room_edges()).keys() == AGAINST_THE_DIRECTION.keys()


def room_of(module: str) -> str:
    """`tests.broker` for `tests.broker.fetch.test_fetch`; `tests` for modules directly in it; `bench`."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "tests" and len(parts) > 2 else parts[0]


def is_below(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def imports_of_tests() -> Iterator[tuple[str, str]]:
    """(module, imported module) for every import of `tests`, `bench` and `compat` in one of them."""
    names = ("tests", "bench", "compat")
    modules = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in sources()}
    for module, path in modules.items():
        if not path.startswith(tuple(f"{name}/" for name in names)):
            continue
        for node in statements(ast.parse(sources()[path])):
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                package = module.split(".")[: -node.level] if node.level else []
                base = ".".join([*package, node.module] if node.module else package)
                imported = [
                    f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base for alias in node.names
                ]
            else:
                continue
            yield from ((module, name) for name in imported if name.split(".")[0] in names)


def test_tests_import_their_room_support_and_the_product() -> None:
    used: dict[str, set[str]] = defaultdict(set)
    others = []
    for module, imported in imports_of_tests():
        room = room_of(module)
        allowed, _ = MORE_THAN_SUPPORT.get(room, ((), ""))
        if is_below(imported, ("tests.support",)) or room_of(imported) == room:
            continue
        used[room] |= {package for package in allowed if is_below(imported, (package,))}
        if not is_below(imported, allowed):
            others.append(f"{module} imports {imported}")
    assert others == []
    assert {room: sorted(packages) for room, packages in used.items()} == {
        room: sorted(packages) for room, (packages, _) in MORE_THAN_SUPPORT.items()
    }, "no longer needed"


def test_no_module_imports_a_test_module() -> None:
    assert [pair for pair in imports_of_tests() if pair[1].rpartition(".")[2].startswith("test_")] == []


def test_the_picture_of_the_imports_is_fresh() -> None:
    assert PICTURE.read_text() == Picture().svg(), "run `make docs`"


def test_packages_are_links_in_barnabas() -> None:
    """An installation from a checkout in which they have become files or copies would have other packages."""
    for name in PACKAGES[:-1]:
        link = ROOT / "barnabas" / name
        assert link.is_symlink()
        assert link.readlink() == Path("..", name)
