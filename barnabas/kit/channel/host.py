"""The control channel of one process: its address, its token, its clusters, and how it ends with its parent.

A broker that is started without `--control` has none of this. The channel listens on the loopback unless another
address was given; its token is made at each start and written to a file that only its owner can read.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import trio

from barnabas.broker.config.authorizer import super_users
from barnabas.broker.config.keys.authorizer import SUPER_USERS
from barnabas.broker.config.keys.general import AUTHORIZER_CLASS_NAME
from barnabas.broker.config.load import load
from barnabas.broker.net.acceptor import bind
from barnabas.broker.start.descriptor_limit import raise_descriptor_limit
from barnabas.broker.start.start_errors import StartError
from barnabas.kit.channel.control_file import write_control_file
from barnabas.kit.channel.http_server import serve_control
from barnabas.kit.clusters.clusters import Clusters
from barnabas.kit.clusters.local_client import PRINCIPAL
from barnabas.kit.clusters.options import Options
from barnabas.kit.clusters.virtual_cluster import VirtualCluster
from barnabas.kit.errors import ControlError, NotFoundError
from barnabas.kit.operations.registry import perform
from barnabas.kit.values import Values

if TYPE_CHECKING:
    from barnabas.broker.config.options import ServeOptions
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.server import Server
    from barnabas.kit.clusters.security import Certificates, Security

logger = logging.getLogger("barnabas.control")

BACKLOG: Final = 128
TOKEN_BYTES: Final = 24
PREFIX: Final = "/v1/clusters"
SESSION: Final = ("record", "cassette", "timing")
"""The keys of a request to open a cluster that `sessions` reads."""
SECURITY: Final = ("auth", "tls")
"""The keys of a request to open a cluster that `security` reads."""


class Host:
    """The control channel that `serve --control` adds to a broker."""

    def __init__(
        self, address: tuple[str, int], options: ServeOptions, file: str | None, *, ends_with_stdin: bool
    ) -> None:
        """`address` is the channel's, port 0 for any; `file` is where address and token are written."""
        self._address = address
        self._options = options
        self._file = file
        self._ends_with_stdin = ends_with_stdin
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._clusters: Clusters
        self._nursery: trio.Nursery
        self._own: VirtualCluster | None = None
        self._published = ""
        self._certificates: Certificates | None = None

    def prepare(self, server: Server) -> None:
        """Replace the surroundings of the process' own broker, before it starts."""
        _admit(server.config)
        self._own = VirtualCluster(0, server)

    async def __call__(self, _server: Server, nursery: trio.Nursery) -> None:
        """Start: called when the broker serves, before its ready line. StartError if the address cannot be used."""
        host, port = self._address
        try:
            listening = bind(host, port, BACKLOG)
        except OSError as error:
            raise StartError(f"Cannot listen on {host}:{port} (--control): {error.strerror}") from error
        own = self._own
        assert own is not None
        own.follow(own.broker)
        self._nursery = nursery
        nursery.start_soon(own.clock.run)
        self._clusters = Clusters(own, self._config_of, raise_descriptor_limit(), nursery)
        bound = listening.getsockname()
        self._publish(own, f"{host}:{bound[1]}")
        nursery.start_soon(serve_control, listening, self._token, self.answer)
        if self._ends_with_stdin:
            nursery.start_soon(_end_with_stdin)

    def _config_of(self, keys: Mapping[str, str]) -> ServerConfig:
        """The configuration of a cluster: the process's configuration on a free port, with the cluster's own keys."""
        options = self._options
        protocol = options.sets.get("listeners", "PLAINTEXT://").partition("://")[0]
        own = {"listeners": f"{protocol}://{self._host}:0"} | dict(keys)
        sets = {key: value for key, value in options.sets.items() if key not in {"log.dirs", "log.dir"}}
        config = load(sets | own, options.environment, options.config_file, options.profile)
        _admit(config)
        return config

    @property
    def _host(self) -> str:
        """The host that the listeners of this process are bound to."""
        address = self._options.sets.get("listeners", "").partition(",")[0].partition("://")[2]
        return address.rpartition(":")[0] or "127.0.0.1"

    def _publish(self, own: VirtualCluster, address: str) -> None:
        """Write address and token to the file that the parent process reads."""
        logger.info("The control channel is at http://%s", address)
        text = self._published = json.dumps(
            {"control": f"http://{address}", "token": self._token, "bootstrap": own.bootstrap, "pid": os.getpid()}
        )
        if self._file is not None:
            write_control_file(self._file, text)

    def published(self) -> str:
        """What a control file has: JSON with the channel's address and token. Empty before the start."""
        return self._published

    async def answer(self, method: str, path: str, values: dict[str, Any]) -> object:
        """Answer a request of the channel. ControlError if it is refused."""
        if not path.startswith(PREFIX):
            raise NotFoundError(f"There is nothing at {path}")
        parts = path[len(PREFIX) :].strip("/").split("/") if path != PREFIX else []
        if not parts:
            return await self._answer_about_all(method, values)
        if not parts[0].isdecimal() or len(parts) > 2:
            raise NotFoundError(f"There is nothing at {path}")
        number = int(parts[0])
        if len(parts) == 2 and method == "POST":
            return await perform(self._clusters[number], parts[1], values)
        if method == "DELETE" and len(parts) == 1:
            return await self._close(number, Values(values))
        raise ControlError(f"{method} is not for {path}")

    async def _close(self, number: int, values: Values) -> object:
        """Close a cluster; with `lint` return its clients' mistakes, but for the rules of `ignore`."""
        values.only(("lint", "ignore"))
        cluster = self._clusters[number]
        try:
            result: dict[str, Any] = {} if cluster.session is None else await cluster.session.end()
            if values.flag("lint", default=False):
                from barnabas.kit.operations.recorded import findings_at_close

                ignored = set(map(str, values.list_of("ignore")))
                result["findings"] = findings_at_close(cluster, ignored)
        finally:
            self._clusters.close(number)
        return result

    async def _answer_about_all(self, method: str, values: dict[str, Any]) -> object:
        if method == "GET":
            clusters = self._clusters.all()
            return {"clusters": [{"id": cluster.id, "bootstrap": cluster.bootstrap} for cluster in clusters]}
        if method != "POST":
            raise ControlError(f"{method} is not for {PREFIX}")
        request = Values(values)
        options = Options.of(request, (*SESSION, *SECURITY))
        security = self._security_of(request)
        if security is not None:
            options = self._secured(options, security, request)
        cluster = await self._clusters.open(options, None if security is None else security.secured)
        bootstrap = await self._with_session(cluster, request) or cluster.bootstrap
        result = {"id": cluster.id, "bootstrap": bootstrap}
        return result if security is None else result | {"security": security.to_json()}

    async def _with_session(self, cluster: VirtualCluster, request: Values) -> str | None:
        """Have the clients' session recorded (`record`), or answered from a `cassette`: the address to use then."""
        if not request.has("cassette") and not request.flag("record", default=False):
            return None
        from barnabas.kit.clusters.sessions import session_of

        try:
            session = await session_of(cluster.bootstrap.split(",")[0], request)
        except (ControlError, trio.Cancelled):
            self._clusters.close(cluster.id)
            raise
        cluster.session = session
        self._nursery.start_soon(session.run)
        return session.bootstrap

    def _secured(self, options: Options, security: Security, request: Values) -> Options:
        """The same with the config keys of a listener that wants a log-in. ControlError if it cannot have them."""
        if options.brokers is not None:
            raise ControlError("auth and tls are for clusters with one broker")
        if request.has("cassette") or request.flag("record", default=False):
            raise ControlError("a session of clients that log in or speak TLS is not recorded")
        own = security.keys(self._host)
        if conflicting := sorted(own.keys() & options.keys.keys()):
            raise ControlError(f"auth and tls set {', '.join(conflicting)}, so config cannot")
        return options._replace(keys=own | dict(options.keys))

    def _security_of(self, request: Values) -> Security | None:
        """How clients log in at a cluster; None if they do not. The certificate is made with the first of them."""
        auth, tls = request.text("auth", None), request.flag("tls", default=False)
        if auth is None and not tls:
            return None
        from barnabas.kit.clusters.security import Certificates, Security, mechanism_named

        mechanism = mechanism_named(auth)
        if tls and self._certificates is None:
            self._certificates = Certificates()
            self._nursery.start_soon(self._certificates.remove_at_end)
        return Security(mechanism, self._certificates if tls else None)


def _admit(config: ServerConfig) -> None:
    """Have an authorizer, wherever it is configured, let the control channel's own requests do everything."""
    if config[AUTHORIZER_CLASS_NAME].strip():
        config.override(SUPER_USERS, ";".join([*super_users(config), str(PRINCIPAL)]))


async def _end_with_stdin() -> None:
    """Stop the process when its standard input ends: then the process at the other end has ended, in whatever way."""
    async with trio.lowlevel.FdStream(os.dup(0)) as stream:
        while await stream.receive_some(4096):
            pass
    signal.raise_signal(signal.SIGTERM)
