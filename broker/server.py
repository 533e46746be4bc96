"""The broker process, from start to exit.

Start: configuration, listeners bound, data directories locked and identified, metadata replayed, logs opened,
coordinators loaded, broker registered, ready line. Stop, on SIGTERM or SIGINT: no new connections, pending responses
are sent, logs flushed and closed, exit code 0. A mistake of the user (port taken, directory locked, invalid value) is
one sentence and exit code 2; an unexpected failure is a traceback in the log and exit code 1.
"""

from __future__ import annotations

import gc
import logging
import signal
from typing import TYPE_CHECKING

import trio

from barnabas.broker.apis.dispatcher import Dispatcher
from barnabas.broker.apis.registry import BROKER, BROKER_APIS, CONTROLLER, CONTROLLER_APIS, FORWARDING
from barnabas.broker.background import BackgroundJobs
from barnabas.broker.config.keys.log import LOG_DIRS
from barnabas.broker.config.keys.network import SOCKET_LISTEN_BACKLOG_SIZE
from barnabas.broker.config.keys.own import METRICS_LISTENER
from barnabas.broker.config.listeners import SASL_PROTOCOLS, Endpoint, parse_address
from barnabas.broker.config.load import load_options
from barnabas.broker.config.server_config import ServerConfig
from barnabas.broker.event_loop.disk_threads import DiskThreads
from barnabas.broker.net.acceptor import Listener, bind, start_listening
from barnabas.broker.net.limits import Limits
from barnabas.broker.net.reactor import Reactor
from barnabas.broker.start import warm_up
from barnabas.broker.start.connection_limits import connection_limits, look_up, named_hosts
from barnabas.broker.start.descriptor_limit import UNLIMITED, raise_descriptor_limit
from barnabas.broker.start.logging_setup import set_up_logging
from barnabas.broker.start.ready import announce, announce_controller, remove_ready_file
from barnabas.broker.start.start_errors import StartError, data_errors, why_not_bound
from barnabas.broker.start.temporary_dir import make_temporary_dir, remove_temporary_dir
from barnabas.broker.world import World
from barnabas.storage.layout import LOCK
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence

    from barnabas.broker.cluster_member import ClusterMember, RemoteController
    from barnabas.broker.config.options import Companion, Secured, ServeOptions
    from barnabas.broker.context import Broker
    from barnabas.broker.net.client.outgoing import Connect, Outgoing
    from barnabas.broker.security.ip_rates import IpRates
    from barnabas.broker.security.tls import Tls

logger = logging.getLogger("kafka.server.KafkaServer")

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_MISTAKE = 2
GC_THRESHOLDS = (2000, 5, 200)
"""Objects per collection of the first generation, and collections of one generation per collection of the next."""
DRAIN_S = 5.0
"""How long a stop waits for responses to be sent, seconds."""


def run(options: ServeOptions) -> int:
    """Serve until SIGTERM, SIGINT or a fatal failure; returns the exit code of the process."""
    set_up_logging(options.log_level, options.log_format, options.environment)
    try:
        config = load_options(options)
        for warning in config.warnings:
            logger.warning(warning)
        return trio.run(_serve, config, options, raise_descriptor_limit())
    except (ConfigError, StartError) as error:
        from barnabas.terminal.notes import note

        note(f"barnabas serve: {error}")
        return EXIT_MISTAKE
    except Exception:
        logger.exception("The broker failed")
        return EXIT_FAILED


async def _serve(config: ServerConfig, options: ServeOptions, descriptors: int) -> int:
    ready_file = options.ready_file
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        if ready_file is not None:
            remove_ready_file(ready_file)
        if options.secured is not None and not config.is_standalone:
            raise StartError("--secure is for one broker that is its own controller, without process.roles")
        server = Server(config, descriptors, is_temporary=options.is_temporary)
        server.secured = options.secured
        if options.prepare is not None:
            options.prepare(server)
        server.start()
        try:
            async with trio.open_nursery() as nursery:
                server.run_in(nursery)
                if await server.has_joined(signals) and await server.has_started(options.companion, nursery):
                    server.announce(ready_file, in_container=options.in_container, also_ready=options.also_ready)
                    _tune_garbage_collection()
                    is_broker = "broker" in config.roles
                    warm_up.start_later(server.broker.loop, server.apis, descriptors, is_broker=is_broker)
                    await server.wait_for_stop(signals)
                await server.drain()
                nursery.cancel_scope.cancel()
        finally:
            server.close()
    if server.mistake is not None:
        raise server.mistake
    logger.info("[%s id=%d] shut down completed", server.name, config.node_id)
    return EXIT_OK if server.is_clean and server.broker.halt_reason is None else EXIT_FAILED


def _tune_garbage_collection() -> None:
    """Exclude the objects of the start from garbage collection, and collect long-lived objects seldom.

    That takes 0.1 s with 2,000 partitions and some large responses in progress, and no request is served meanwhile.
    Garbage in reference cycles is mostly young.
    """
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


class Server:
    """The parts of a broker, started and stopped in order."""

    def __init__(
        self,
        config: ServerConfig,
        descriptors: int = UNLIMITED,
        *,
        is_temporary: bool = False,
        world: World | None = None,
    ) -> None:
        """`descriptors` is the process' limit of open files and connections; `world` is the real one if it is None."""
        self.config = config
        self._is_temporary = is_temporary or not config.log_dirs
        self.world = world or World()
        """What it uses of the machine; replaced only before the start."""
        self.world.files.open_files.limit_to(descriptors)
        assert isinstance(self.world.disk, DiskThreads)
        self._threads = self.world.disk
        """The reactor watches their pipe."""
        self.addresses: list[Endpoint] = []
        """The bound listeners for clients; port 0 is replaced by the port that was assigned."""
        self.controller_addresses: list[Endpoint] = []
        """The bound listeners of the controller."""
        self.name = "KafkaServer" if "broker" in config.roles else "ControllerServer"
        """The name of the process in its ready line, as in Kafka."""
        self._temporary_dir: str | None = None
        self.remove_directory: Callable[[str], object] = remove_temporary_dir
        """Removes a temporary directory: now, or later, where others are served by the same loop."""
        self.prepared_dir: str | None = None
        """A directory with the data to begin with, in place of a new one; it is removed at the end as that is."""
        self.inherited: dict[str, socket.socket] = {}
        """Sockets that listen already, by listener, from the server that this one replaces."""
        self._listeners: list[Listener] = []
        self._metrics_socket: socket.socket | None = None
        self._outgoing: Outgoing | None = None
        self._tls: Tls | None = None
        self._member: ClusterMember | None = None
        self._remote: RemoteController | None = None
        self.kind = BROKER
        """Which APIs its listeners for clients have: a broker that is no controller forwards some."""
        self._has_logs = True
        self._is_closed = False
        self._has_stop_signal = False
        self._ip_rates: IpRates | None = None
        self.secured: Secured | None = None
        self.dispatcher: Callable[[Broker, str], Dispatcher] = Dispatcher
        """Makes the dispatcher of a kind of listener."""
        self.mistake: StartError | ConfigError | None = None
        """Why this broker could not join its cluster or be announced, if the user can fix it."""
        self.is_clean = True
        """Whether all logs were closed, so that the next start need not recover them."""

    def start(self) -> None:
        """Start everything up to accepting connections. StartError if the user can fix it; nothing stays open."""
        try:
            self._start()
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Close what a start has opened that failed or must not serve; remove a temporary data directory."""
        self._close_listeners()
        for listening in self.inherited.values():
            listening.close()
        if hasattr(self, "broker"):
            self.close(is_killed=self._temporary_dir is None)
        elif not self._is_closed:
            self._is_closed = True
            self._remove_temporary_dir()
            self._threads.close()

    def _start(self) -> None:
        self._read_certificates()
        self._bind()  # first: no recovery is needed to find that a port is taken
        self._open_data()
        broker = self.broker
        dispatch = self.dispatcher(broker, self.kind).dispatch
        self.reactor = Reactor(broker.loop, self._limits_at_start(), dispatch, self._threads)
        self.reactor.meter = broker.meter
        if broker.meter is not None:
            broker.meter.reactor = self.reactor
            self._threads.on_waited = broker.meter.disk_waits.add
        broker.metadata.on_config_change.append(lambda _changed: self._apply_limits())
        broker.on_quotas.append(self._apply_quotas_of_addresses)
        self._apply_quotas_of_addresses()
        self.reactor.watch(self._threads.fileno(), self._threads.collect)
        if self._tls is not None:
            self._serve_tls(self._tls)
        if self._outgoing is not None:
            self._outgoing.attach(self.reactor.poller)
            self.reactor.on_close.append(self._outgoing.close)
        controllers = {endpoint.name for endpoint in self.controller_addresses}
        self._secure(controllers)
        for listener in self._listeners:
            if listener.name in controllers:
                listener.dispatch = self.dispatcher(broker, CONTROLLER).dispatch
                self.reactor.listen(listener)
        if self.config.is_standalone:
            self._accept_clients()
            with data_errors(",".join(log_dir.path for log_dir in broker.log_dirs.dirs)):
                if self.secured is not None:
                    from barnabas.broker.start.first_users import set_passwords

                    set_passwords(broker, self.secured)
                broker.controller.register_broker(self.addresses)

    def _secure(self, controllers: Collection[str]) -> None:
        """Have the connections of listeners with SASL authenticate; `controllers` are the controller's listeners."""
        for listener in self._listeners:
            if listener.protocol in SASL_PROTOCOLS:
                from barnabas.broker.security.sasl_listener import SaslListener

                broker = self.broker
                sasl = SaslListener(
                    broker.loop,
                    self.config,
                    listener.name,
                    lambda: self.broker.image,
                    executor=self._threads,
                    is_controller=listener.name in controllers,
                    random_bytes=broker.random_bytes,
                    log_ins=listener.log_ins,
                )
                listener.prepare = sasl.attach

    def _read_certificates(self) -> None:
        """Read the TLS files of listeners and connections to other nodes. ConfigError if that fails."""
        if self.config.tls_listeners or self.config.tls_targets:
            from barnabas.broker.security.tls import Tls

            self._tls = Tls(self.config)

    def _serve_tls(self, tls: Tls) -> None:
        from barnabas.broker.net.tls_channel import HandshakeThreads, TlsListener

        threads, poller = HandshakeThreads(self._threads), self.reactor.poller
        for listener in self._listeners:
            if listener.name in self.config.tls_listeners:
                identity = tls.identities[listener.name]
                listener.tls = TlsListener(self.broker.loop, identity, threads, poller, listener.log_ins)
        self.broker.tls = tls
        tls.use_dynamic_configs()
        self.broker.metadata.on_config_change.append(tls.configs_changed)
        tls.follow(self.broker.loop, self._threads)

    def _apply_limits(self) -> None:
        """Apply connection limits that were changed dynamically (KIP-612); names of hosts are looked up in a thread."""
        hosts = named_hosts(self.config)
        if not hosts:
            self.reactor.set_limits(connection_limits(self.config, {}))
            return
        addresses: dict[str, tuple[str, ...]] = {}
        self._threads.submit(
            lambda: addresses.update(look_up(hosts)),
            lambda _: self.reactor.set_limits(connection_limits(self.config, addresses)),
        )

    def _apply_quotas_of_addresses(self) -> None:
        """Apply the rates at which addresses may connect (KIP-612)."""
        rates = self.broker.connection_rates
        if rates or self._ip_rates is not None:
            from barnabas.broker.security.ip_rates import IpRates

            if self._ip_rates is None:
                self._ip_rates = IpRates(self.config, self.broker.loop.now, self._threads)
            self._ip_rates.follow(rates)
            self.reactor.admission.ip_throttle_s = self._ip_rates.throttle_s if rates else None

    def _limits_at_start(self) -> Limits:
        return connection_limits(self.config, look_up(named_hosts(self.config)))

    def run_in(self, nursery: trio.Nursery) -> None:
        """Start the broker's tasks."""
        nursery.start_soon(self.reactor.run)
        nursery.start_soon(self.broker.loop.timers.run)
        nursery.start_soon(BackgroundJobs(self.broker, self.reactor).run)
        if self._metrics_socket is not None:
            from barnabas.broker.exporter.listener import run_metrics_listener

            shown = (self.broker, self._listeners, self.reactor.admission.connection_counts)
            nursery.start_soon(run_metrics_listener, self._metrics_socket, *shown)

    def _bind(self) -> None:
        backlog: int = self.config[SOCKET_LISTEN_BACKLOG_SIZE]
        for endpoint in self.config.listeners:
            self.addresses.append(self._listen(endpoint, backlog if self.config.is_standalone else None))
        for endpoint in self.config.controller_listeners:
            self.controller_addresses.append(self._listen(endpoint, backlog))
        address = self.config[METRICS_LISTENER]
        if address is not None and "broker" in self.config.roles:
            self._bind_metrics(parse_address(METRICS_LISTENER.name, address), backlog)

    def _bind_metrics(self, endpoint: Endpoint, backlog: int) -> None:
        """Bind the address of metrics (`broker.metrics`); the log names it, since port 0 means any."""
        try:
            self._metrics_socket = bind(endpoint.host, endpoint.port, backlog)
        except OSError as error:
            raise StartError(why_not_bound(endpoint.host, endpoint.port, error)) from error
        host, port = self._metrics_socket.getsockname()[:2]
        logger.info("[%s id=%d] metrics at http://%s:%d/metrics", self.name, self.config.node_id, host, port)

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.socket.close()
        if self._metrics_socket is not None:
            self._metrics_socket.close()

    def _listen(self, endpoint: Endpoint, backlog: int | None) -> Endpoint:
        """Bind an address; returns it with the port that was assigned. Without a backlog it refuses connections."""
        try:
            listening = self.inherited.pop(endpoint.name, None) or bind(endpoint.host, endpoint.port, backlog)
        except OSError as error:
            raise StartError(why_not_bound(endpoint.host, endpoint.port, error)) from error
        protocol = self.config.security_protocols[endpoint.name]
        self._listeners.append(Listener(endpoint.name, listening, protocol=protocol))
        return endpoint._replace(port=listening.getsockname()[1])

    def _open_data(self) -> None:
        config = self.config
        config.set_default_flush_policy(is_temporary=self._is_temporary)
        paths = config.log_dirs or (self._make_temporary_dir(),)
        config.set_default(LOG_DIRS, ",".join(paths))
        with data_errors(",".join(paths)):
            if config.roles == {"broker"}:
                self._open_member(paths)
            elif not config.is_standalone and "broker" in config.roles:
                self._open_combined(paths)
            elif "broker" in config.roles:
                from barnabas.broker.start.builder import open_broker  # a controller alone does not need it

                self.broker = open_broker(config, paths, self.world)
            else:
                from barnabas.broker.start.controller_builder import open_controller

                endpoints = config.advertised_controllers(self.controller_addresses)
                self.broker = open_controller(config, paths, self.world, endpoints)
            dirs = self.broker.log_dirs
            # Where `.LOCK` is found there is no difference between small and capital letters, as on macOS.
            dirs.ignores_case = any(
                self.world.files.exists(f"{log_dir.path}/{LOCK.upper()}") for log_dir in dirs.working
            )
        if self.broker.halt_reason is not None:
            raise StartError(f"Cannot use the data directory {','.join(paths)}: {self.broker.halt_reason}")

    @property
    def is_idle(self) -> bool:
        """Whether no work is left in threads or between the turns."""
        return self._threads.is_idle and self.broker.loop.is_idle

    def _open_member(self, paths: Sequence[str]) -> None:
        """Open the data of a broker whose controllers are other processes."""
        from barnabas.broker.start.builder import open_member

        self.kind, self._has_logs = FORWARDING, False
        self.broker, self._member, self._remote = open_member(
            self.config,
            paths,
            self.world,
            self._connect,
            connect_to_controllers=lambda _: self._connects_to(self.config.controllers_listener),
        )

    def _open_combined(self, paths: Sequence[str]) -> None:
        """Open the data of a broker that is also the controller of its cluster."""
        from barnabas.broker.start.builder import open_combined

        endpoints = self.config.advertised_controllers(self.controller_addresses)
        self.broker, self._member = open_combined(self.config, paths, self.world, self._connect, endpoints)

    def _connect(self, broker: Broker) -> Connect:
        """Return the function that opens the broker's connections to other brokers."""
        from barnabas.broker.net.client.outgoing import Outgoing

        self._outgoing = Outgoing(broker.loop, self._threads)
        return self._connects_to(self.config.inter_broker_listener)

    def _connects_to(self, listener: str | None) -> Connect:
        """Return the function that opens connections to a listener of other nodes, with TLS if the listener has it."""
        assert self._outgoing is not None
        if self._tls is None or listener not in self.config.tls_targets:
            return self._outgoing.connect
        from barnabas.broker.net.client.outgoing_tls import tls_connect

        return tls_connect(self._outgoing, self._tls.identities[listener])

    async def has_joined(self, signals: AsyncIterator[int]) -> bool:
        """Join the cluster: wait until this broker is unfenced; False if it has to stop before that.

        A single node has joined when it has started. An error that the user can fix is in `mistake`.
        """
        if self._member is None:
            return True
        has_joined = False
        async with trio.open_nursery() as nursery:

            async def join() -> None:
                nonlocal has_joined
                try:
                    await self._join()
                    has_joined = True
                except StartError as error:
                    self.mistake = error  # a nursery would make a group of it
                nursery.cancel_scope.cancel()

            nursery.start_soon(join)
            await self.wait_for_stop(signals)
            nursery.cancel_scope.cancel()
        return has_joined and not self._has_stop_signal  # it may have come in the moment of the unfencing

    async def has_started(self, companion: Companion | None, nursery: trio.Nursery) -> bool:
        """Start the companion that serves beside this broker; False if it cannot, for the reason in `mistake`."""
        try:
            if companion is not None:
                await companion(self, nursery)
        except StartError as error:
            self.mistake = error  # the nursery would make a group of it
        return self.mistake is None

    async def _join(self) -> None:
        member = self._member
        assert member is not None
        with data_errors(",".join(log_dir.path for log_dir in self.broker.log_dirs.dirs)):
            if self._remote is not None:
                await self._remote.catch_up()
            await member.join(self.addresses, self._load if self._remote is not None else self._accept_clients)

    def _load(self) -> None:
        """Open the logs once the metadata is here, and accept connections, which precedes the unfencing."""
        from barnabas.broker.start.builder import load_logs

        load_logs(self.broker)
        self._has_logs = True
        self._accept_clients()

    def _accept_clients(self) -> None:
        """Accept connections of clients and other brokers: in a cluster not before the broker is registered again.

        Until then its leaderships come from an earlier incarnation, whose records a crash may have lost. Connections
        are refused meanwhile, as by Kafka: clients that wait in a queue would not ask the other brokers.
        """
        if self._tls is not None:
            self._tls.use_dynamic_configs()  # a broker of a cluster has them now
        endpoints = {endpoint.name: endpoint for endpoint in self.addresses}
        for listener in self._listeners:
            if listener.name in endpoints:
                try:
                    start_listening(listener.socket, self.config[SOCKET_LISTEN_BACKLOG_SIZE])
                except OSError as error:
                    raise StartError(
                        why_not_bound(endpoints[listener.name].host, endpoints[listener.name].port, error)
                    ) from error
                self.reactor.listen(listener)

    @property
    def apis(self) -> Iterable[str]:
        """The modules of the requests that this process serves."""
        apis = {**(BROKER_APIS if self.addresses else {}), **(CONTROLLER_APIS if self.controller_addresses else {})}
        return apis.values() if self._remote is None else [*apis.values(), FORWARDING]

    def announce(self, ready_file: str | None, *, in_container: bool, also_ready: str = "") -> None:
        """Announce that the process serves: ready file and ready lines. An error is kept in `mistake`."""
        try:
            self._announce(ready_file, in_container=in_container, also_ready=also_ready)
        except ConfigError as error:
            self.mistake = error

    def _announce(self, ready_file: str | None, *, in_container: bool, also_ready: str) -> None:
        config = self.config
        if self.addresses:
            announce(
                config.node_id,
                self.addresses,
                config.advertised_listeners,
                ready_file,
                in_container=in_container,
                protocols=config.security_protocols,
                secured=self.secured,
                also_ready=also_ready,
            )
        else:
            announce_controller(config.node_id, self.controller_addresses, ready_file)

    def duplicate_listeners(self) -> dict[str, socket.socket]:
        """Duplicates of the listening sockets, by listener, for a server that replaces this one."""
        return {listener.name: listener.socket.dup() for listener in self._listeners}

    @property
    def is_untouched(self) -> bool:
        """Whether no client has connected, and `move` can give it another address."""
        plain = all(listener.protocol == "PLAINTEXT" and not listener.has_accepted for listener in self._listeners)
        return plain and self.config.is_standalone and self._metrics_socket is None

    def leave(self) -> None:
        """Stop listening at the address, to `move` to another one."""
        self.reactor.acceptor.close()
        self._listeners.clear()
        self.addresses.clear()

    def move(self) -> None:
        """Serve at another address, as after a restart with another port: connections to the old one are refused.

        StartError if there is none.
        """
        self._bind()
        self._accept_clients()
        self.broker.controller.register_broker(self.addresses)

    def _make_temporary_dir(self) -> str:
        self._temporary_dir = path = self.prepared_dir or make_temporary_dir()
        return path

    async def wait_for_stop(self, signals: AsyncIterator[int]) -> None:
        """Wait for a signal, or until the broker halts because it cannot continue. One signal is enough."""
        if self._has_stop_signal or self.broker.halt_reason is not None or self.mistake is not None:
            return
        async with trio.open_nursery() as nursery:
            self.broker.on_halt = nursery.cancel_scope.cancel
            async for number in signals:
                self._has_stop_signal = True
                name = signal.Signals(number).name
                logger.info("[%s id=%d] shutting down on %s", self.name, self.config.node_id, name)
                break
        self.broker.on_halt = None

    async def drain(self) -> None:
        """Stop accepting, fail waiting requests, and send the remaining responses, for `DRAIN_S` at most."""
        broker = self.broker
        if self._member is not None:
            await self._member.leave()
        broker.is_stopping = True
        self.reactor.acceptor.close()
        if "broker" in self.config.roles:
            broker.transaction_coordinators.stop()
            broker.share_coordinators.stop()
            broker.group_coordinators.stop()  # answers the delayed JoinGroups and SyncGroups
        self.reactor.stop_reading()
        with trio.move_on_after(DRAIN_S):
            await self.reactor.wait_closed()

    def close(self, *, is_killed: bool = False) -> None:
        """Flush and close everything; remove a temporary data directory. A killed broker does not touch its files."""
        if self._is_closed:
            return
        self._is_closed = True
        log_dirs = self.broker.log_dirs
        self._close_listeners()  # of a broker that stops before it has served, too
        if self._remote is not None:
            self._remote.close()
        if self._member is not None:
            self._member.close()
        if is_killed or not self._has_logs:
            log_dirs.release()  # the files stay as they are
        elif self._temporary_dir is None:
            try:
                log_dirs.close(self._close_controller())
            except (OSError, KafkaError) as error:
                self.is_clean = False
                logger.error("Not all logs could be closed: %s. The next start checks them", error)
        else:
            log_dirs.release()
            self._remove_temporary_dir()
        self._threads.close()

    def _remove_temporary_dir(self) -> None:
        path = self._temporary_dir or self.prepared_dir
        if path is not None:
            self.remove_directory(path)

    def _close_controller(self) -> int:
        """Close the controller of this process; the broker epoch, -1 if there is none."""
        epoch = -1 if self._remote is not None else self.broker.controller.close()
        return epoch if self._member is None else self.broker.lifecycle.broker_epoch
