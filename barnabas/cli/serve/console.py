"""`barnabas serve --console`: the console as a process of its own, which ends with the broker or the supervisor.

Its socket is opened here before the broker starts, so that a taken port is a mistake of the command line, and a page
that is asked for early waits. The process gets the socket, and a pipe as stdin: at the end of the pipe it stops, in
whatever way this process ended. Its stdout is a pipe too, whose end tells that it is gone.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from barnabas.cli.serve import UsageError, host_and_port
from barnabas.console.guard.addresses import ExposedError, check_exposure, is_loopback
from barnabas.console.listening import CannotListen, listen, url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import trio

    from barnabas.broker.config.options import Companion
    from barnabas.broker.server import Server

logger = logging.getLogger("barnabas.console")

DEFAULT: Final = "127.0.0.1:8080"
IN_CONTAINER: Final = "0.0.0.0:8080"
"""The address in a container, whose published ports say who reaches it."""
STOP_S: Final = 3.0
"""How long a stop waits for the process, seconds."""


class ConsoleProcess:
    """The process of a console."""

    def __init__(
        self, address: str, *, is_secure: bool = False, is_in_container: bool = False, arguments: Sequence[str] = ()
    ) -> None:
        """Listen at HOST:PORT. UsageError if that is not possible, or if others reach the address.

        `arguments` are further ones of `barnabas console`. With `--secure` people log in, and where others reach the
        console it has the broker's certificate.
        """
        self._host, port = host_and_port(address, "--console")
        self._has_tls = is_secure and not is_loopback(self._host)
        self._is_in_container = is_in_container
        self._arguments = arguments
        try:
            check_exposure(
                self._host, has_tls=self._has_tls, has_login=is_secure, is_in_container=is_in_container, is_served=True
            )
            self._socket = listen(self._host, port)
        except (CannotListen, ExposedError) as error:
            raise UsageError(str(error)) from None
        self._address = f"{self._host}:{self._socket.getsockname()[1]}"
        self._process: subprocess.Popen[bytes] | None = None
        self.also_ready = f"Console: {url(self._host, self._socket.getsockname()[1], has_tls=self._has_tls)}\n"

    def start(
        self,
        bootstrap: str,
        data_dir: str = "",
        *,
        properties: Mapping[str, str] | None = None,
        control: str = "",
        certificate: str = "",
    ) -> None:
        """Start the process for the brokers at these addresses; `properties` are keys of TLS and SASL.

        `data_dir` is the directory of a supervisor, `control` what a control file has, `certificate` the PEM file of
        the broker.
        """
        command = [sys.executable, "-m", "barnabas", "console", "-b", bootstrap, "--listen", self._address]
        command += ["--socket", str(self._socket.fileno()), "--end-with-stdin"]
        command += [word for key, value in (properties or {}).items() for word in ("-X", f"{key}={value}")]
        command += ["--data-dir", data_dir] if data_dir else []
        command += ["--tls-cert", certificate] if self._has_tls else []
        command += ["--in-container"] if self._is_in_container else []
        command += self._arguments
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BARNABAS_")}
        if control:
            environment["BARNABAS_CONSOLE_CONTROL"] = control
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            pass_fds=[self._socket.fileno()],
            start_new_session=True,  # Ctrl-C is for the broker, which then ends this
        )
        self._socket.close()

    def of_broker(self, file: str) -> Companion:
        """The channel by which the console sees the requests of one broker of a cluster."""
        from barnabas.kit.channel.request_watch import RequestWatch

        return RequestWatch(file)

    def descriptors(self) -> list[int]:
        """The descriptors that no other process may inherit."""
        if self._process is None:
            return [self._socket.fileno()]
        pipes = (self._process.stdin, self._process.stdout)
        return [pipe.fileno() for pipe in pipes if pipe is not None and not pipe.closed]

    def fileno(self) -> int:
        """The descriptor that becomes readable when the process has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def sentence_of_end(self) -> str:
        """That the process has ended, with how."""
        assert self._process is not None
        code = self._process.wait()
        how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
        return f"The console has ended {how}; 'barnabas console -b ADDRESS' starts one again"

    def end(self) -> None:
        """End the process and wait for its end."""
        self._socket.close()
        if self._process is None:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    # --- beside one broker

    async def beside(self, server: Server, nursery: trio.Nursery, control: Callable[[], str] | None = None) -> None:
        """The companion of a broker (`ServeOptions.companion`)."""
        import trio

        address, properties = connection_of(server)
        if address is None:
            logger.warning("The console is not started: %s", properties["why"])
            self.end()
            return
        from barnabas.broker.config.keys.security import SSL_KEYSTORE_LOCATION

        certificate = server.config[SSL_KEYSTORE_LOCATION] or ""
        self.start(
            address,
            properties=properties,
            control="" if control is None else control(),
            certificate=certificate,
        )

        async def watch() -> None:
            try:
                await trio.lowlevel.wait_readable(self.fileno())
                logger.warning(self.sentence_of_end())
            finally:
                self.end()

        nursery.start_soon(watch)


def connection_of(server: Server) -> tuple[str | None, dict[str, str]]:
    """The address of a broker on this machine, and the keys to connect; without an address, `why` there is none.

    A listener without TLS and SASL is preferred; on one with SASL the users of the console log in.
    """
    from barnabas.broker.start.ready import entrances

    config = server.config
    ways = entrances(
        server.addresses, config.advertised_listeners, in_container=False, protocols=config.security_protocols
    )
    if not ways:
        return None, {"why": "this process has no broker, only a controller"}
    way = min(ways, key=lambda way: way.protocol != "PLAINTEXT")
    if way.protocol == "PLAINTEXT":
        return way.local, {}
    if server.secured is not None:
        from barnabas.broker.config.keys.security import SSL_TRUSTSTORE_LOCATION

        trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": config[SSL_TRUSTSTORE_LOCATION] or ""}
        return way.local, {
            "security.protocol": way.protocol,
            "sasl.mechanism": server.secured.mechanism,
            **trusted,
        }
    return None, {
        "why": f"how clients connect to the listener of {way.protocol} is not known here: "
        f"'barnabas console -b {way.local} --command-config FILE' starts one with the configuration of a client"
    }
