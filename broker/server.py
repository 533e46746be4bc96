"""A broker process from its first line to its last.

Start: configuration, data directories (locked, identified), metadata replayed, logs opened, coordinators loaded,
listeners bound, broker registered, ready line. Stop, on SIGTERM or SIGINT: no new connections, answers under way
leave, logs flushed and closed, exit code 0. A mistake of the person who starts it (port taken, directory locked, bad
value) is one sentence and exit code 2; an unexpected failure is a traceback in the log and exit code 1.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from barnabas.broker import background
from barnabas.broker.apis.dispatcher import Dispatcher
from barnabas.broker.config.keys.general import MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS
from barnabas.broker.config.keys.log import LOG_DIRS
from barnabas.broker.config.keys.network import (
    CONNECTIONS_MAX_IDLE_MS,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    QUEUED_MAX_REQUEST_BYTES,
    SOCKET_LISTEN_BACKLOG_SIZE,
    SOCKET_REQUEST_MAX_BYTES,
)
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.server_config import ServerConfig, load
from barnabas.broker.context import Broker, wall_clock_ms
from barnabas.broker.coordinators.groups import GroupCoordinators
from barnabas.broker.coordinators.services import BrokerServices
from barnabas.broker.coordinators.share_coordinators import ShareCoordinators
from barnabas.broker.coordinators.transactions import TransactionCoordinators
from barnabas.broker.log_dir_failures import LogDirFailures
from barnabas.broker.logging_setup import set_up_logging
from barnabas.broker.metadata.controller import Controller
from barnabas.broker.metadata.producer_ids import ProducerIds
from barnabas.broker.net.acceptor import Listener, bind
from barnabas.broker.net.limits import Limits
from barnabas.broker.net.reactor import Reactor
from barnabas.broker.replicas.fetch_sessions import FetchSessions
from barnabas.broker.replicas.flush_threads import FlushExecutor, FlushThreads
from barnabas.broker.replicas.flusher import Flusher
from barnabas.broker.replicas.partitions import Partitions
from barnabas.coord.cluster.image import UnknownMetadataError
from barnabas.storage.checkpoints import CorruptCheckpoint
from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import Files
from barnabas.storage.log_config import SYNONYMS
from barnabas.storage.log_dirs import DataDirLocked, DataDirMismatch, LogDirs
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from barnabas.broker.config.options import ServeOptions

logger = logging.getLogger("kafka.server.KafkaServer")

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_MISTAKE = 2
DRAIN_S = 5.0
TOPIC_DEFAULT_KEYS = {name for synonyms in SYNONYMS.values() for name, _ in synonyms}
"""The broker configs that are defaults of topic configs."""


class StartError(Exception):
    """The broker cannot start, for a reason that its user can mend; the text is one sentence."""


def run(options: ServeOptions) -> int:
    """Serve until told to stop; returns the exit code of the process."""
    set_up_logging(options.log_level, options.log_format, options.environment)
    try:
        config = load(options.sets, options.environment, options.config_file, options.profile)
        for warning in config.warnings:
            logger.warning(warning)
        _raise_descriptor_limit()
        return trio.run(_serve, config, options.ready_file)
    except (ConfigError, StartError) as error:
        sys.stderr.write(f"barnabas serve: {error}\n")
        return EXIT_MISTAKE
    except Exception:
        logger.exception("The broker failed")
        return EXIT_FAILED


def _raise_descriptor_limit() -> None:
    """Take as many file descriptors as we may have, as a JVM does: connections and segments need one each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            logger.warning("At most %d files and connections can be open: the limit cannot be raised", soft)


async def _serve(config: ServerConfig, ready_file: str | None) -> int:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        if ready_file is not None:
            _clear_ready_file(ready_file)
        server = Server(config)
        server.start()
        try:
            async with trio.open_nursery() as nursery:
                server.run_in(nursery)
                _announce(server, ready_file)
                await server.told_to_stop(signals)
                await server.drain()
                nursery.cancel_scope.cancel()
        finally:
            server.close()
    logger.info("[KafkaServer id=%d] shut down completed", config.node_id)
    return EXIT_OK if server.is_clean and server.broker.halt_reason is None else EXIT_FAILED


class Server:
    """The parts of a broker, started and stopped in order."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.addresses: list[Endpoint] = []
        """The listeners as bound, with the ports that were free."""
        self._temporary_dir: str | None = None
        self._listeners: list[Listener] = []
        self._flushes = FlushThreads()
        self._is_closed = False
        self.is_clean = True
        """Whether the stop has left all logs as a start may trust them."""

    def start(self) -> None:
        """Everything up to listening. Raises StartError for what the user can mend."""
        self._bind()  # first: a taken port must not cost a recovery
        try:
            self._open_data()
        except BaseException:
            for listener in self._listeners:
                listener.socket.close()
            raise
        broker = self.broker
        self.reactor = Reactor(broker.loop, _limits(self.config), Dispatcher(broker).dispatch)
        broker.controller.on_config_change.append(lambda _changed: self._follow_limits())
        self.reactor.watch(self._flushes.fileno(), self._flushes.collect)
        for listener in self._listeners:
            self.reactor.listen(listener)
        broker.controller.register_broker(self.addresses)

    def _follow_limits(self) -> None:
        """Take over limits of connections that a running broker was given (KIP-612)."""
        self.reactor.limits = _limits(self.config)

    def run_in(self, nursery: trio.Nursery) -> None:
        """Start the tasks that serve."""
        nursery.start_soon(self.reactor.run)
        nursery.start_soon(self.broker.loop.timers.run)
        nursery.start_soon(background.run, self.broker, self.reactor)

    def _bind(self) -> None:
        for endpoint in self.config.listeners:
            try:
                listening = bind(endpoint.host, endpoint.port, self.config[SOCKET_LISTEN_BACKLOG_SIZE])
            except OSError as error:
                for listener in self._listeners:
                    listener.socket.close()
                reason = error.strerror or str(error)
                raise StartError(f"Cannot listen on {endpoint.host or '*'}:{endpoint.port}: {reason}") from error
            self._listeners.append(Listener(endpoint.name, listening))
            self.addresses.append(endpoint._replace(port=listening.getsockname()[1]))

    def _open_data(self) -> None:
        config = self.config
        config.settle_sync_policy(is_named=bool(config.log_dirs))
        paths = config.log_dirs or (self._make_temporary_dir(),)
        config.settle(LOG_DIRS, ",".join(paths))
        try:
            self.broker = open_broker(config, paths, flushes=self._flushes)
        except (DataDirLocked, DataDirMismatch, CorruptCheckpoint, DamagedLog, UnknownMetadataError) as error:
            raise StartError(str(error)) from error
        except (OSError, KafkaError) as error:
            cause = error.__cause__ if isinstance(error, KafkaError) else error
            if not isinstance(cause, OSError):
                raise
            raise StartError(f"Cannot use the data directory {','.join(paths)}: {cause.strerror or cause}") from error
        if self.broker.halt_reason is not None:
            raise StartError(f"Cannot use the data directory {','.join(paths)}: {self.broker.halt_reason}")

    def _make_temporary_dir(self) -> str:
        path = f"{os.environ.get('TMPDIR') or '/tmp'}/barnabas-{os.urandom(6).hex()}"  # noqa: S108 - mode 0700
        Path(path).mkdir(0o700)
        self._temporary_dir = path
        return path

    async def told_to_stop(self, signals: AsyncIterator[int]) -> None:
        """Wait for a signal, or for the broker to find that it cannot go on."""
        if self.broker.halt_reason is not None:
            return
        async with trio.open_nursery() as nursery:
            self.broker.on_halt = nursery.cancel_scope.cancel
            async for number in signals:
                name = signal.Signals(number).name
                logger.info("[KafkaServer id=%d] shutting down on %s", self.config.node_id, name)
                break
        self.broker.on_halt = None

    async def drain(self) -> None:
        """Let what is under way come to its end, for a few seconds at most."""
        broker = self.broker
        broker.is_stopping = True
        self.reactor.stop_accepting()
        broker.transaction_coordinators.stop()
        broker.share_coordinators.stop()
        broker.group_coordinators.stop()  # answers the parked JoinGroups and SyncGroups
        self.reactor.stop_reading()
        with trio.move_on_after(DRAIN_S):
            await self.reactor.wait_closed()

    def close(self) -> None:
        """Flush and close everything; a temporary data directory goes with it."""
        if self._is_closed:
            return
        self._is_closed = True
        log_dirs = self.broker.log_dirs
        if self._temporary_dir is None:
            try:
                log_dirs.close(self.broker.controller.close())
            except (OSError, KafkaError) as error:
                self.is_clean = False
                logger.error("Not all logs could be closed: %s. The next start checks them", error)
        else:
            import shutil

            log_dirs.release()
            shutil.rmtree(self._temporary_dir, ignore_errors=True)
        self._flushes.close()


def open_broker(
    config: ServerConfig,
    paths: Sequence[str],
    *,
    flushes: FlushExecutor,
    files: Files | None = None,
    now: Callable[[], float] = trio.current_time,
    now_ms: Callable[[], int] = wall_clock_ms,
    random_bytes: Callable[[int], bytes] = os.urandom,
) -> Broker:
    """A broker with its data open and its metadata replayed, and nothing that listens.

    Clocks, files, randomness and what runs the flushes can be replaced by tests. Raises what opening the data
    directories and reading the metadata raise.
    """
    absolute = [str(Path(path).absolute()) for path in paths]
    log_dirs = LogDirs(files or Files(), absolute, partial(_new_uuid, random_bytes))
    cluster_id = log_dirs.open(config.node_id, config.cluster_id or "")
    try:
        broker = Broker(config, cluster_id=cluster_id, now=now, now_ms=now_ms, random_bytes=random_bytes)
        loop = broker.loop
        broker.log_dirs = log_dirs
        failures = broker.log_dir_failures = LogDirFailures(loop, log_dirs, broker.halt)
        log_dirs.on_error = failures.report
        flushers = {log_dir: Flusher(loop, log_dir, failures, flushes) for log_dir in log_dirs.dirs}
        slots = config[MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS]
        broker.fetch_sessions = FetchSessions(slots, partial(_new_session_id, random_bytes))
        broker.controller = Controller(loop, config, log_dirs, failures)
        broker.partitions = Partitions(loop, config, log_dirs, failures, flushers)
        broker.producer_ids = ProducerIds(broker.controller.allocate_producer_ids)
        services = broker.services = BrokerServices(
            loop, config, broker.partitions, lambda: broker.image, broker.controller.auto_create
        )
        broker.share_coordinators = ShareCoordinators(services)
        broker.group_coordinators = GroupCoordinators(
            services, broker.share_coordinators, lambda: broker.group_configs, random_bytes
        )
        broker.transaction_coordinators = TransactionCoordinators(
            services, broker.producer_ids.next, broker.group_coordinators.transaction_ended
        )
        _subscribe(broker)
        broker.controller.open()
        broker.partitions.load(broker.image)
        broker.group_coordinators.load()
        broker.transaction_coordinators.load()
        broker.share_coordinators.load()
    except BaseException:
        log_dirs.release()
        raise
    return broker


def _subscribe(broker: Broker) -> None:
    """Connect the parts that must hear of changed metadata and of failed log directories."""
    controller, partitions = broker.controller, broker.partitions
    coordinators = (broker.group_coordinators, broker.transaction_coordinators, broker.share_coordinators)

    def apply_topic_defaults(changed: set[str]) -> None:
        if changed & TOPIC_DEFAULT_KEYS:
            partitions.update_configs(broker.image)

    controller.on_change.append(lambda delta: partitions.apply(broker.image, delta))
    controller.on_change.extend(runtime.apply for runtime in coordinators)
    controller.on_config_change.append(apply_topic_defaults)
    partitions.on_failure = {runtime.topic: runtime.partition_failed for runtime in coordinators}
    broker.log_dir_failures.on_failure.append(partitions.take_dir_offline)


def _limits(config: ServerConfig) -> Limits:
    idle_ms = config[CONNECTIONS_MAX_IDLE_MS]
    return Limits(
        max_frame_bytes=config[SOCKET_REQUEST_MAX_BYTES],
        max_connections=config[MAX_CONNECTIONS],
        max_connections_per_ip=config[MAX_CONNECTIONS_PER_IP],
        max_queued_bytes=config[QUEUED_MAX_REQUEST_BYTES],
        idle_s=idle_ms / 1000 if idle_ms >= 0 else float("inf"),
    )


def _new_uuid(random_bytes: Callable[[int], bytes]) -> bytes:
    """A random uuid of version 4, which never begins with a dash in Kafka's text form."""
    while True:
        value = bytearray(random_bytes(16))
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        if value[0] >> 2 != 62:  # base64's 62 is "-": it would look like an option on a command line
            return bytes(value)


def _new_session_id(random_bytes: Callable[[int], bytes]) -> int:
    return int.from_bytes(random_bytes(4), "big") >> 1


def _clear_ready_file(path: str) -> None:
    """Take away what an earlier broker left, so that nobody takes it for this one; StartError if we may not."""
    file = Path(path)
    if file.is_dir() or not os.access(file.parent, os.W_OK):
        raise StartError(f"Cannot write the ready file {path}")
    file.unlink(missing_ok=True)


def _announce(server: Server, ready_file: str | None) -> None:
    """Say that connections are accepted: the ready line, the ready file, and how to connect."""
    node_id = server.config.node_id
    bound = ",".join(str(address) for address in server.addresses)
    now = time.strftime("%Y-%m-%d %H:%M:%S") + f",{time.time_ns() // 1_000_000 % 1000:03d}"
    address = server.addresses[0]
    host = "127.0.0.1" if address.host in ("", "0.0.0.0", "::") else address.host
    dial = f"[{host}]:{address.port}" if ":" in host else f"{host}:{address.port}"
    if ready_file is not None:  # before the line: who waits for the line may read the file
        temporary = Path(f"{ready_file}.{os.getpid()}")
        temporary.write_text(f"{dial}\n", encoding="utf-8")
        temporary.replace(ready_file)
    sys.stdout.write(
        f"[{now}] INFO [KafkaServer id={node_id}] started on {bound} (Kafka Server started; "
        "Transitioning from RECOVERY to RUNNING; Started Kafka API server) (kafka.server.KafkaServer)\n"
        + CLIENT_CONFIGURATION.format(dial=dial)
    )
    sys.stdout.flush()
    logger.info("[KafkaServer id=%d] started on %s", node_id, bound)


CLIENT_CONFIGURATION = """
confluent-kafka  Producer({{"bootstrap.servers": "{dial}"}})
                 Consumer({{"bootstrap.servers": "{dial}", "group.id": "my-group", "auto.offset.reset": "earliest"}})
kafka-python     KafkaProducer(bootstrap_servers="{dial}")
                 KafkaConsumer("my-topic", bootstrap_servers="{dial}", auto_offset_reset="earliest")
Spark            spark.readStream.format("kafka")
                     .option("kafka.bootstrap.servers", "{dial}").option("subscribe", "my-topic").load()
"""
