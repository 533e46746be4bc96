"""After the warm-up nothing has to be imported any more, which would need descriptors."""

from __future__ import annotations

import ast
import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from barnabas.broker.apis.registry import BROKER_APIS
from barnabas.broker.start import warm_up

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop

ROOT = Path(__file__).parents[3]
_PKCS12 = "for key stores of that type, at the start or in the thread that reads them"
NOT_SERVING = {
    "barnabas.broker.server": "the process itself",
    "barnabas.broker.start.builder": "part of the start of a broker",
    "barnabas.broker.replicas.cleaning.retention": "part of the start of a broker",
    "barnabas.broker.metadata.controller_channel": "part of the start of a broker of a cluster",
    "barnabas.broker.exporter.listener": "part of the start of a broker with a listener of metrics",
    "barnabas.broker.metrics.meter": "part of the start of a broker with a listener of metrics",
    "barnabas.broker.cluster_member": "part of the start of a broker of a cluster",
    "barnabas.broker.config.authorizer": "part of the start of a broker with an authorizer",
    "barnabas.broker.security.authorizer": "part of the start of a broker with an authorizer",
    "barnabas.broker.start.controller_builder": "part of the start of a controller",
    "barnabas.broker.config.sasl_logins": "part of the start of a broker of a cluster",
    "barnabas.broker.start.first_users": "part of the start with --secure",
    "barnabas.broker.security.token_file": "part of the start of a broker that logs in with a token of a file",
    "barnabas.broker.security.sasl_listener": "part of the start of a listener with SASL",
    "barnabas.broker.security.jwks": "part of the start of a listener with OAUTHBEARER",
    "barnabas.broker.security.signed_tokens": "part of the start of a listener with OAUTHBEARER",
    "barnabas.broker.net.client.outgoing_tls": "part of the start of a node with TLS",
    "barnabas.broker.net.tls_channel": "part of the start of a node with TLS",
    "barnabas.broker.security.tls": "part of the start of a node with TLS",
    "cryptography.hazmat.primitives.serialization": _PKCS12,
    "cryptography.hazmat.primitives.serialization.pkcs12": _PKCS12,
    "cryptography.exceptions": "for encrypted keys of the pipeline",
    "barnabas.broker.start.holders": "for a start that is refused",
    "barnabas.terminal.notes": "for a start that is refused",
    "crc32c": "where there is no extension of the package",
    "difflib": "for mistakes in a configuration file, before the start",
    "construct": "annotations",
}
"""Modules that are not imported, and why serving does not need them."""


def imports_in_functions() -> set[str]:
    """The modules that the broker imports inside of functions."""
    modules = set()
    for package in ("broker", "coord", "storage", "wire"):
        for path in (ROOT / package).rglob("*.py"):
            if path.parent.name == "checking" or path.name in {"__main__.py", "cleaner_worker.py"}:
                continue
            for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    modules |= _imported(function)
    return modules - NOT_SERVING.keys()


def _imported(function: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            in_package = {f"{node.module}.{alias.name}" for alias in node.names}
            names.add(node.module)
            names |= {name for name in in_package if (ROOT / Path(*name.split(".")[1:])).with_suffix(".py").exists()}
    return names


def test_everything_that_is_imported_late_is_imported_by_the_warm_up() -> None:
    program = (
        "import sys, barnabas.broker.server, barnabas.broker.start.builder\n"
        "from barnabas.broker.start import warm_up\n"
        "from barnabas.broker.apis.registry import BROKER_APIS\n"
        "steps = warm_up.import_all([*warm_up.LATE, *(f'broker.apis.{name}' for name in BROKER_APIS.values())])\n"
        "while True:\n"
        "    try:\n"
        "        next(steps)\n"
        "    except StopIteration as end:\n"
        "        assert end.value == {}, end.value\n"
        "        break\n"
        "print(*sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(ran.stdout.split())
    expected = imports_in_functions() | {f"barnabas.broker.apis.{name}" for name in BROKER_APIS.values()}
    assert len(expected) > 60
    assert expected - imported == set()


def test_what_usual_clients_need_is_a_part_of_it_and_leaves_out_what_few_need() -> None:
    """An idle broker holds what is imported after the ready line, so libraries that take megabytes are not."""
    every = {*warm_up.LATE, *(f"broker.apis.{name}" for name in BROKER_APIS.values())}
    assert set(warm_up.USUAL) <= every
    program = (
        "import sys\n"
        "from barnabas.lazy_modules import OF_SERVE, import_lazily\n"
        "import_lazily(OF_SERVE)\n"
        "import barnabas.broker.server, barnabas.broker.start.builder\n"
        "from barnabas.broker.start import warm_up\n"
        "steps = warm_up.import_all(warm_up.USUAL, ())\n"
        "assert list(steps)\n"
        "print(*sys.modules)\n"
    )
    imported = set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )
    assert {f"barnabas.{name}" for name in warm_up.USUAL} <= imported
    few = {"_hashlib", "_ssl", "lz4", "re2", "snappy", "zstandard"}
    assert imported & few == set()


class _Loop:
    """The clock and the timers of a loop, which the test advances."""

    def __init__(self) -> None:
        self.timers = self
        self.time = 0.0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> float:
        return self.time

    def at(self, when: float, then: Callable[[], None]) -> None:
        self.due.append((when, then))

    def advance(self, to: float) -> None:
        self.time = to
        due = [then for when, then in self.due if when <= to]
        self.due = [entry for entry in self.due if entry[0] > to]
        for then in due:
            then()


def test_everything_is_imported_before_no_descriptor_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = _Loop()
    in_use = 10
    started: list[set[str]] = []
    monkeypatch.setattr(warm_up, "_descriptors_in_use", lambda: in_use)
    monkeypatch.setattr(warm_up, "start", lambda _loop, names, libraries: started.append({*names, *libraries}))
    warm_up.start_later(cast("Loop", loop), BROKER_APIS.values(), descriptors=100)
    for second in range(1, 5):
        loop.advance(second * warm_up.CHECK_S)
    assert started == [{*warm_up.USUAL, *warm_up.USUAL_LIBRARIES}]
    in_use = 40
    for second in range(5, 10):
        loop.advance(second * warm_up.CHECK_S)
    assert len(started) == 2
    assert {*warm_up.LATE, *warm_up.LIBRARIES} < started[1]


def test_descriptors_in_use_are_counted() -> None:
    before = warm_up._descriptors_in_use()
    with contextlib.ExitStack() as opened:
        for _ in range(20):
            opened.enter_context(open(os.devnull))
        assert warm_up._descriptors_in_use() >= before + 20


def test_a_step_imports_few_modules_and_a_failure_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    names = []

    def refuse(name: str) -> None:
        names.append(name)
        if name == "zstandard":
            raise OSError(24, "Too many open files", name)

    monkeypatch.setattr(warm_up, "import_module", refuse)
    steps = warm_up.import_all(warm_up.LATE)
    done = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            failures = end.value
            break
        done += 1
        assert len(names) <= done
    assert list(failures) == ["zstandard"]
    assert len(names) == len(set(names)) == done
