"""Which layer of the broker a function belongs to, for comparing commits: their files differ, their layers do not.

The table is read from the top, and the first line that fits decides. It names files of this commit and of older ones,
without `barnabas/` and, in `storage` and `wire`, without the folder: a file keeps its layer when it moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

LAYERS = (
    "turn", "read", "tls", "parse", "dispatch", "access", "append", "validate", "write", "flush", "fetch", "replicate",
    "coordinate", "answer", "respond", "send", "wait", "timers", "trio", "Python", "other",
)  # fmt: skip
"""In the order of a request; `answer` are the handlers of all requests but Produce and Fetch."""
_RULES: tuple[tuple[str, str, str], ...] = (
    # sockets and turns
    ("broker/net/reactor.py", "Reactor._read", "read"),
    ("broker/net/reactor.py", "Reactor._go_on", "read"),
    ("broker/net/reactor.py", "Reactor._send_queued", "send"),
    ("broker/net/reactor.py", "Reactor._send", "send"),
    ("broker/net/reactor.py", "Reactor._settle", "send"),
    ("broker/net/reactor.py", "Reactor._queue", "send"),
    ("broker/net/reactor.py", "Reactor._on_output", "send"),
    ("broker/net/reactor.py", "Reactor.send_outside_turn", "send"),
    ("broker/net/tls", "", "tls"),
    ("broker/net/connection.py", "", "read"),
    ("broker/net/frame_buffers.py", "", "read"),
    ("broker/net/channel.py", "", "send"),
    ("broker/net/page_cache.py", "", "send"),
    ("broker/event_loop/waiting.py", "", "wait"),
    ("broker/net/", "", "turn"),
    ("broker/event_loop/disk_threads.py", "", "flush"),
    ("broker/event_loop/loop.py", "", "turn"),
    ("broker/event_loop/slices.py", "", "turn"),
    ("broker/event_loop/steps.py", "", "turn"),
    ("broker/event_loop/timers.py", "", "timers"),
    ("coord/timers.py", "", "timers"),
    # messages
    ("<wire codec>", "parse", "parse"),
    ("<wire codec>", "build", "respond"),
    ("<constructor of", "", "respond"),
    ("broker/apis/dispatcher.py", "Dispatcher._parse", "parse"),
    ("broker/apis/dispatcher.py", "_after_tagged_fields", "parse"),
    ("broker/apis/dispatcher.py", "_text", "parse"),
    ("broker/apis/dispatcher.py", "_respond", "respond"),
    ("broker/apis/dispatcher.py", "_try_to_respond", "respond"),
    ("broker/apis/dispatcher.py", "_deliver", "respond"),
    ("broker/apis/dispatcher.py", "_in_memory", "respond"),
    ("broker/apis/dispatcher.py", "", "dispatch"),
    ("broker/apis/registry.py", "", "dispatch"),
    ("broker/apis/known_prefixes.py", "", "parse"),
    ("broker/apis/produce/usual.py", "Usual", "parse"),
    ("broker/apis/fetch/usual.py", "UsualFetches.read", "parse"),
    ("broker/apis/fetch/usual.py", "KnownFetch", "respond"),
    ("broker/apis/large_requests.py", "", "parse"),
    ("broker/apis/sliced_response.py", "", "respond"),
    ("broker/context.py", "RequestContext.is_allowed", "access"),
    ("broker/context.py", "RequestContext.refused", "access"),
    ("broker/context.py", "Broker.after_turn", "turn"),
    ("broker/context.py", "Broker.call_after_turn", "turn"),
    ("broker/context.py", "", "dispatch"),
    ("broker/apis/access.py", "", "access"),
    ("broker/apis/produce_access.py", "", "access"),
    ("broker/apis/security/authentication.py", "", "access"),
    ("broker/apis/authentication.py", "", "access"),
    ("broker/security/", "", "access"),
    ("coord/security/", "", "access"),
    # Produce
    ("broker/apis/produce/response.py", "", "respond"),
    ("broker/apis/produce_response.py", "", "respond"),
    ("broker/apis/replicated_produce.py", "", "replicate"),
    ("broker/apis/produce", "", "append"),
    ("broker/apis/transactional_produce.py", "", "append"),
    ("storage/batch_check.py", "", "validate"),
    ("storage/batch_content.py", "", "validate"),
    ("storage/batch_header.py", "", "validate"),
    ("wire/record", "", "validate"),
    ("wire/plain_records.py", "", "validate"),
    ("wire/long_record.py", "", "validate"),
    ("wire/varint.py", "", "validate"),
    ("wire/decompression.py", "", "validate"),
    ("wire/compression.py", "", "validate"),
    ("storage/append.py", "", "append"),
    ("storage/offset_assignment.py", "", "append"),
    ("storage/producer", "", "append"),
    ("storage/leader_epochs.py", "", "append"),
    ("storage/flush_job.py", "", "flush"),
    ("storage/log_dir.py", "", "flush"),
    ("broker/replicas/flush", "", "flush"),
    ("storage/log.py", "Log.read", "fetch"),
    ("storage/log.py", "Log.start_flush", "flush"),
    ("storage/log.py", "Log.finish_flush", "flush"),
    ("storage/local_log.py", "LocalLog.start_flush", "flush"),
    ("storage/local_log.py", "LocalLog.finish_flush", "flush"),
    ("storage/log_reader.py", "", "fetch"),
    ("storage/files.py", "FileSlice", "fetch"),
    ("storage/files.py", "File.read", "fetch"),
    ("storage/files.py", "Files.read_at", "fetch"),
    ("storage/files.py", "Files.sync", "flush"),
    ("storage/files.py", "_pread_all", "fetch"),
    ("storage/offset_index.py", "OffsetIndex.lookup", "fetch"),
    ("storage/sparse_indexes.py", "OffsetIndex.lookup", "fetch"),
    ("storage/segment.py", "Segment.locate", "fetch"),
    ("storage/segment.py", "Segment.search", "fetch"),
    ("storage/segment.py", "Segment._read", "fetch"),
    ("storage/log.py", "", "append"),
    ("storage/", "", "write"),
    # Fetch, replication
    ("broker/apis/fetch/follower.py", "", "replicate"),
    ("broker/apis/follower_fetch.py", "", "replicate"),
    ("broker/apis/fetch/fetch.py", "_wait", "wait"),
    ("broker/apis/fetch/fetch.py", "_Waiting", "wait"),
    ("broker/apis/fetch", "", "fetch"),
    ("broker/replicas/leader/fetch_sessions.py", "", "fetch"),
    ("broker/replicas/leader/committed_bytes.py", "", "wait"),
    ("broker/replicas/partition", "", "append"),
    ("broker/replicas/gathered_batches.py", "", "append"),
    ("broker/replicas/", "", "replicate"),
    # coordinators and everything else
    ("broker/coordinators/", "", "coordinate"),
    ("broker/sharing/", "", "coordinate"),
    ("coord/", "", "coordinate"),
    ("broker/apis/", "", "answer"),
    ("broker/metadata/", "", "answer"),
    ("broker/config/", "", "answer"),
    # older commits
    ("broker/api.py", "", "dispatch"),
    ("broker/transport.py", "Reactor._read", "read"),
    ("broker/transport.py", "Reactor._flush_queued", "send"),
    ("broker/transport.py", "Reactor._settle", "send"),
    ("broker/transport.py", "Reactor._queue", "send"),
    ("broker/transport.py", "Reactor._on_output", "send"),
    ("broker/transport.py", "", "turn"),
    ("broker/poller.py", "", "turn"),
    ("broker/channel.py", "", "send"),
    ("broker/connection.py", "Connection._answer", "respond"),
    ("broker/connection.py", "Connection._deliver", "respond"),
    ("broker/connection.py", "_in_memory", "respond"),
    ("broker/connection.py", "Connection._handle", "dispatch"),
    ("broker/connection.py", "Connection._serve", "dispatch"),
    ("broker/connection.py", "Connection._park", "dispatch"),
    ("broker/connection.py", "_behind_tagged_fields", "parse"),
    ("broker/connection.py", "_text", "parse"),
    ("broker/connection.py", "", "read"),
    ("broker/frame_buffers.py", "", "read"),
    ("broker/pending.py", "", "wait"),
    ("broker/committer.py", "", "flush"),
    ("broker/partition", "", "append"),
    ("broker/fetch_sessions.py", "", "fetch"),
    ("broker/coordinator", "", "coordinate"),
    ("broker/share", "", "coordinate"),
    ("broker/group", "", "coordinate"),
    ("broker/transaction", "", "coordinate"),
    ("broker/", "", "answer"),
    ("wire/", "", "parse"),
)
_LIBRARIES = ("trio", "outcome", "attr", "sortedcontainers")
_PACKAGES = ("broker", "coord", "storage", "wire")


def layer_of(file: str, function: str) -> str:
    """The layer of a function; `file` is relative to the checkout, or a file of a library."""
    if "site-packages/" in file:
        library = file.rpartition("site-packages/")[2]
        return "trio" if library.startswith(_LIBRARIES) else "Python"
    if file.startswith("<attrs generated"):
        return "trio" if any(f" {library}." in file for library in _LIBRARIES) else "other"
    if file.startswith(("/", "<frozen", "<string>")):
        return "Python"
    if file.startswith(("storage/", "wire/")):
        file = f"{file.partition('/')[0]}/{file.rpartition('/')[2]}"
    for file_start, function_start, layer in _RULES:
        if file.startswith(file_start) and function.startswith(function_start):
            return layer
    return "other"


def by_layer(functions: Mapping[tuple[str, str], float], checkout: Path) -> dict[str, float]:
    """The bytecodes of each layer that has some, in the order of `LAYERS`."""
    totals = dict.fromkeys(LAYERS, 0.0)
    for (file, function), number in functions.items():
        totals[layer_of(short_path(file, checkout), function)] += number
    return {layer: number for layer, number in totals.items() if number}


def short_path(file: str, checkout: Path) -> str:
    """The path of a file below the checkout, without `barnabas/` where that is a link to a package beside it."""
    file = file.removeprefix(f"{checkout.resolve()}/")
    rest = file.removeprefix("barnabas/")
    return rest if rest.startswith(tuple(f"{name}/" for name in _PACKAGES)) else file
