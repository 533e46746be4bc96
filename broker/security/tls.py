"""TLS of a node: the identities for its listeners, and for the listeners of other nodes that it connects to.

A thread checks the files every `CHECK_S` seconds; dynamic configs are applied when they change. A replacement that
cannot be read or is not compatible is refused with one line in the log, and the old identity stays; where a file or
descriptor failed, the replacement is tried again at the next check. New connections use the new identity; open
connections keep theirs.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.stores import UnreadableError
from barnabas.broker.security.tls_identity import (
    LiveIdentity,
    TlsIdentity,
    check_handshake,
    check_replacement,
    load_identity,
    why_not_valid,
)
from barnabas.broker.security.tls_settings import TlsSettings, tls_settings
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.disk_threads import DiskExecutor
    from barnabas.broker.event_loop.loop import Loop

logger = logging.getLogger("kafka.common.security.ssl.SslFactory")

_SSL: Final = ".ssl."
CHECK_S: Final = 5.0
"""How often the files of the stores are checked, seconds."""

Stamps = tuple[tuple[int, int, int] | None, ...]
"""Inode number, size and time of change of each file; None for a missing file."""


class Tls:
    """The identities of a node, by the name of the listener."""

    def __init__(self, config: ServerConfig) -> None:
        """Read all stores. ConfigError if that fails."""
        self._config = config
        self._inter_broker = config.inter_broker_listener
        self._served = set(config.tls_listeners)
        self._loop: Loop | None = None
        self._changes = 0
        """Counts changes of dynamic configs. Threads may end in any order: older results are not used."""
        self.identities: dict[str, LiveIdentity] = {}
        self._seen: dict[str, Stamps] = {}
        self._refused: dict[str, str] = {}
        """Why the last replacement was refused, which is logged once."""
        for name in (*config.tls_listeners, *config.tls_targets):
            if name not in self.identities:
                settings = tls_settings(config, name)
                self._seen[name] = _stamps(settings)
                self.identities[name] = LiveIdentity(name, self._load(name, settings))

    def _load(self, name: str, settings: TlsSettings) -> TlsIdentity:
        identity = load_identity(settings, name, serves=name in self._served)
        if name == self._inter_broker and name in self._served:
            check_handshake(identity, identity)
        return identity

    def replacement(self, name: str, settings: TlsSettings) -> TlsIdentity:
        """The replacement for the identity of a listener; runs in a thread. ConfigError if it is not allowed."""
        old = self.identities[name].current
        new = load_identity(settings, name, serves=name in self._served)
        check_replacement(old, new)
        if name == self._inter_broker and name in self._served:
            check_handshake(old, new)
            check_handshake(new, old)
        return new

    def settings_with(self, config: ServerConfig) -> dict[str, TlsSettings]:
        """The settings of another configuration. ConfigError for a value that cannot be parsed."""
        return {name: tls_settings(config, name) for name in self.identities}

    def check(self, settings: Mapping[str, TlsSettings]) -> None:
        """Raise ConfigError if these settings could not be used; runs in a thread."""
        for name, new in settings.items():
            if new != self.identities[name].current.settings:
                self.replacement(name, new)

    def use_dynamic_configs(self) -> None:
        """Use the dynamic configs from before this start, while no client is connected; unusable ones are logged."""
        for name, new in self.settings_with(self._config).items():
            if new == self.identities[name].current.settings:
                continue
            self._seen[name] = _stamps(new)
            outcome: TlsIdentity | ConfigError
            try:
                outcome = self._load(name, new)
            except ConfigError as error:
                outcome = error
            self._put(name, outcome)

    # -- changes

    def follow(self, loop: Loop, executor: DiskExecutor) -> None:
        """Check the files from time to time; `executor` reads them."""
        self._loop, self._executor = loop, executor
        for name in self.identities:
            self._warn_if_not_valid(name)
        self._check_later()

    def _check_later(self) -> None:
        loop = self._loop
        assert loop is not None
        loop.timers.at(loop.now() + CHECK_S, self._check_files)

    def _check_files(self) -> None:
        names = list(self.identities)
        settings = {name: self.identities[name].current.settings for name in names}
        self._replace(settings, self._check_later, is_changed=self._is_changed)

    def _is_changed(self, name: str, stamps: Stamps) -> bool:
        return stamps != self._seen[name] and None not in stamps

    def configs_changed(self, changed: set[str]) -> None:
        """Apply dynamic configs that are effective now."""
        if any(_SSL in f".{name}" for name in changed):
            self._changes += 1
            self._replace(self.settings_with(self._config), lambda: None, is_changed=lambda _name, _stamps: True)

    def _replace(
        self,
        settings: dict[str, TlsSettings],
        then: Callable[[], None],
        *,
        is_changed: Callable[[str, Stamps], bool],
    ) -> None:
        """Read changed identities in a thread, and use them; then call `then`."""
        outcomes: list[tuple[str, Stamps, TlsIdentity | ConfigError]] = []
        change = self._changes

        def read() -> None:
            for name, new in settings.items():
                stamps = _stamps(new)
                if new == self.identities[name].current.settings and not is_changed(name, stamps):
                    continue
                try:
                    outcomes.append((name, stamps, self.replacement(name, new)))
                except ConfigError as error:
                    outcomes.append((name, stamps, error))

        def was_read(failure: Exception | None) -> None:
            if failure is not None:
                logger.error("Certificates could not be read again", exc_info=failure)
            for name, stamps, outcome in outcomes if change == self._changes else ():
                if not isinstance(outcome, UnreadableError):
                    self._seen[name] = stamps
                elif self._refused.get(name) == str(outcome):
                    continue
                self._put(name, outcome)
            then()

        self._executor.submit(read, was_read)

    def _put(self, name: str, outcome: TlsIdentity | ConfigError) -> None:
        if isinstance(outcome, ConfigError):
            self._refused[name] = str(outcome)
            logger.error("New certificates of the listener %s are refused, the old ones stay: %s", name, outcome)
            return
        self._refused.pop(name, None)
        self.identities[name].current = outcome
        logger.info("New certificates of the listener %s are used for new connections", name)
        if self._loop is not None:
            self._warn_if_not_valid(name)

    def _warn_if_not_valid(self, name: str) -> None:
        assert self._loop is not None
        keys = self.identities[name].current.keys
        why = None if keys is None else why_not_valid(keys, self._loop.now_ms() / 1000)
        if why is not None:
            logger.warning("The certificate of the listener %s is not valid now, clients will refuse it: %s", name, why)


def _stamps(settings: TlsSettings) -> Stamps:
    return tuple(map(_stamp, settings.files))


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
