"""Imports, after the ready line, the modules that usual clients need: the first of them must not wait for it.

A start imports only what it needs, and an idle broker is to be small: `USUAL` is imported soon after the ready line,
when nothing is served yet (3 MB), and what few clients use (share and streams groups, ACLs, tokens, codecs of
compression; 10 MB) with their first request. But an import opens files, and a request must not fail because no
descriptor is left for that: when `SCARCE_SHARE` of the descriptors are in use, the others are imported too.

A step imports one module whose own imports are done before, so that it is short: the longest ones define the messages
of an API family. The imports of a module, in functions too, are the names of our modules in its code.
"""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import os
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
    "broker.coordinators.gathered_commits",
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
    *("base64", "binascii", "ctypes", "ctypes.util", "hashlib", "hmac", "json", "platform", "shutil", "subprocess"),
    *("zlib", "lz4.frame", "re2", "snappy", "trio", "zstandard"),
)
"""Modules of other packages that are imported, or loaded (`barnabas.lazy_modules`), when they are first needed."""
USUAL: Final = (
    *("wire.codec.structs", "wire.codec.message_codec", "coord.groups.coordinator", "coord.groups.consumer.groups"),
    *(
        "broker.coordinators.gathered_commits",
        "broker.coordinators.replay",
        "broker.config.group_configs",
        "broker.config.group_limits",
    ),
    *("broker.apis.metadata.api_versions", "broker.apis.metadata.metadata", "broker.apis.admin.topics"),
    *("broker.apis.produce.produce", "broker.apis.fetch.fetch", "broker.apis.fetch.list_offsets"),
    *("broker.apis.groups.find_coordinator", "broker.apis.groups.classic_groups"),
    *("broker.apis.groups.consumer_groups", "broker.apis.groups.offset_commit", "broker.apis.groups.offset_fetch"),
    "broker.apis.transactions.transactions",
)
"""What producers, consumers and groups of any client need; an idle broker holds it in memory."""
USUAL_LIBRARIES: Final = ("trio.to_thread",)
"""The same of other packages: threads and events of trio, which take 4 ms."""
START_S: Final = 1.0
"""How long after the ready line it begins, seconds: clients that have waited for the broker are served first."""
RETRY_S: Final = 10.0
"""The interval at which modules are tried again that could not be imported, seconds."""
SCARCE_SHARE: Final = 0.4
"""The share of the descriptors in use from which on everything is imported. Should more be taken between two checks:
connections and log files leave a reserve (`storage.open_files`, `net.acceptor`), and an import needs one at a time."""
CHECK_S: Final = 1.0
"""The interval at which the descriptors in use are looked at, seconds."""


def start_later(loop: Loop, apis: Iterable[str], descriptors: int, *, is_broker: bool = True) -> None:
    """Begin `START_S` from now; `apis` are the modules of the requests that are served.

    `descriptors` is the limit of the process. A process that is only a controller imports all it needs: that is little.
    """
    names = (*(LATE if is_broker else LATE_OF_CONTROLLER), *(f"broker.apis.{name}" for name in dict.fromkeys(apis)))

    def when_scarce() -> None:
        if _descriptors_in_use() >= descriptors * SCARCE_SHARE:
            start(loop, names, LIBRARIES)
        else:
            loop.timers.at(loop.now() + CHECK_S, when_scarce)

    loop.timers.at(loop.now() + START_S, lambda: start(loop, USUAL if is_broker else names, USUAL_LIBRARIES))
    loop.timers.at(loop.now() + START_S, when_scarce)


def start(loop: Loop, names: Sequence[str], libraries: Sequence[str]) -> None:
    """Import the modules in slices; modules that cannot be imported now are tried again."""

    def then(failures: dict[str, str] | Exception) -> None:
        return_free_memory()
        if isinstance(failures, Exception):
            logger.error("Modules cannot be imported: %s", failures)
        elif failures:
            name, reason = next(iter(failures.items()))
            logger.error("%d modules cannot be imported, %s: %s. It is tried again", len(failures), name, reason)
            loop.timers.at(loop.now() + RETRY_S, lambda: start(loop, names, libraries))

    waiting.start_later(import_all(names, libraries), loop.slices, then)


def return_free_memory() -> None:
    """Give free memory back to the system: the files of modules were read into it, or, without `.pyc`, compiled in it.

    Takes 1 to 3 ms, once. Only glibc has it; others return memory themselves.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        logger.debug("The C library has no malloc_trim")


def _descriptors_in_use() -> int:
    """About how many there are: a new descriptor has the lowest free number. `sys.maxsize` if none is left."""
    try:
        descriptor = os.open("/", os.O_RDONLY)
    except OSError:
        return sys.maxsize
    os.close(descriptor)
    return descriptor


def import_all(names: Iterable[str], libraries: Iterable[str] = LIBRARIES) -> Generator[None, None, dict[str, str]]:
    """Import all modules, one in each step; returns the ones that cannot be imported, with the reason."""
    failures: dict[str, str] = {}
    seen: set[str] = set()
    for name in names:
        yield from _import_with_imports(f"barnabas.{name}", seen, failures)
    for name in libraries:
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
        getattr(import_module(name), "__all__", None)  # a lazy module is loaded now
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
