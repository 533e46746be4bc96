"""Imports, after the ready line, the modules that are imported when they are first needed.

A start imports only what it needs. But an import opens files, and a request must not fail because no descriptor is left
for that. A step imports one module whose own imports are done before, so that it is short: the longest ones define the
messages of an API family. The imports of a module, in functions too, are the names of our modules in its code.

It costs half a second of CPU once, and 11 MB.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import TYPE_CHECKING, Final

from barnabas.broker.event_loop import waiting

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop

logger = logging.getLogger("kafka.server.KafkaServer")

PACKAGES: Final = tuple(f"barnabas.{name}." for name in ("broker", "coord", "storage", "wire"))
LATE: Final = (
    "wire.codec.structs",
    "wire.codec.message_codec",
    "storage.cleaning.replacement",
    "storage.append.follower_append",
    "storage.recover.truncation",
    "storage.recover.recovery",
    "storage.recover.swap",
    "coord.client_metrics.subscriptions",
    "coord.cluster.metadata_log.image_diff",
    "coord.cluster.metadata_log.image_records",
    "coord.cluster.changes.metadata_limits",
    "coord.groups.assignors.simple",
    "coord.groups.consumer.groups",
    "coord.groups.coordinator",
    "coord.groups.share.groups",
    "coord.groups.share.tasks",
    "coord.groups.streams.groups",
    "coord.share_state.config",
    "coord.share_state.coordinator",
    "broker.apis.metering",
    "broker.config.config_schema",
    "broker.config.group_configs",
    "broker.config.group_limits",
    "broker.coordinators.latest_offsets",
    "broker.coordinators.remote_markers",
    "broker.coordinators.replay",
    "broker.coordinators.share_state_requests",
    "broker.coordinators.transaction_requests",
    "broker.metadata.automatic_topics",
    "broker.metadata.controller_quorum",
    "broker.metadata.controller_requests",
    "broker.metadata.directory_assignments",
    "broker.metrics.client_metrics",
    "broker.net.refused_sockets",
    "broker.replicas.cleaning.cleaner",
    "broker.replicas.cleaning.cleaner_process",
    "broker.replicas.leader.committed_bytes",
    "broker.replicas.log_dirs.dir_moves",
    "broker.replicas.load",
    "broker.replicas.replication",
    "broker.security.client_quotas",
    "broker.security.ip_rates",
)
"""Imports in functions of the modules that a start has imported; `tests/broker/server/test_warm_up.py` compares it."""
LATE_OF_CONTROLLER: Final = (
    *("wire.codec.structs", "wire.codec.message_codec", "storage.recover.recovery", "storage.recover.swap"),
    *("coord.cluster.metadata_log.image_records", "broker.config.config_schema", "broker.metadata.controller_requests"),
    *("broker.apis.metering", "broker.net.refused_sockets", "broker.security.client_quotas"),
    "broker.security.ip_rates",
)
"""The same for a process that is only a controller."""
LIBRARIES: Final = (
    *("base64", "binascii", "ctypes", "json", "shutil", "subprocess", "zlib"),
    *("lz4.frame", "re2", "snappy", "zstandard"),
)
"""Modules of other packages that are imported when they are first needed."""
START_S: Final = 1.0
"""How long after the ready line it begins, seconds: clients that have waited for the broker are served first."""
RETRY_S: Final = 10.0
"""The interval at which modules are tried again that could not be imported, seconds."""


def start_later(loop: Loop, apis: Iterable[str], *, is_broker: bool = True) -> None:
    """Begin `START_S` from now; `apis` are the modules of the requests that are served."""
    names = (*(LATE if is_broker else LATE_OF_CONTROLLER), *(f"broker.apis.{name}" for name in dict.fromkeys(apis)))
    loop.timers.at(loop.now() + START_S, lambda: start(loop, names))


def start(loop: Loop, names: Sequence[str]) -> None:
    """Import the modules in slices; modules that cannot be imported now are tried again."""

    def then(failures: dict[str, str] | Exception) -> None:
        if isinstance(failures, Exception):
            logger.error("Modules cannot be imported: %s", failures)
        elif failures:
            name, reason = next(iter(failures.items()))
            logger.error("%d modules cannot be imported, %s: %s. It is tried again", len(failures), name, reason)
            loop.timers.at(loop.now() + RETRY_S, lambda: start(loop, names))

    waiting.start_later(import_all(names), loop.slices, then)


def import_all(names: Iterable[str]) -> Generator[None, None, dict[str, str]]:
    """Import all modules, one in each step; returns the ones that cannot be imported, with the reason."""
    failures: dict[str, str] = {}
    seen: set[str] = set()
    for name in names:
        yield from _import_with_imports(f"barnabas.{name}", seen, failures)
    for name in LIBRARIES:
        _import(name, failures)
        yield
    return failures


def _import_with_imports(root: str, seen: set[str], failures: dict[str, str]) -> Generator[None, None, None]:
    """Import a module after the modules that it names."""
    if root in seen or root in sys.modules:
        return
    seen.add(root)
    pending = [(root, _named_in(root, failures))]
    while pending:
        name, named = pending[-1]
        following = next((other for other in named if other not in seen and other not in sys.modules), None)
        if following is not None:
            seen.add(following)
            pending.append((following, _named_in(following, failures)))
            continue
        pending.pop()
        _import(name, failures)
        yield


def _import(name: str, failures: dict[str, str]) -> None:
    try:
        import_module(name)
    except (ImportError, OSError) as error:
        failures[name] = str(error)


def _named_in(name: str, failures: dict[str, str]) -> Iterator[str]:
    """Our modules that a module's code names."""
    try:
        spec = importlib.util.find_spec(name)
        loader = spec.loader if spec is not None else None
        code = loader.get_code(name) if isinstance(loader, SourceFileLoader) else None
    except (ImportError, OSError) as error:
        failures[name] = str(error)
        return
    if code is not None:
        yield from _names(code)


def _names(code: CodeType) -> Iterator[str]:
    for name in code.co_names:
        if name.startswith(PACKAGES):
            yield name
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
