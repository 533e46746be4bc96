"""The options of `barnabas serve`, passed from the command line to `broker.server.run`.

A plain class without imports of the broker, so that the command line is parsed before those are imported. Config keys
are texts in `sets`; `broker.config.load` parses them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

Companion: TypeAlias = Callable[[Any, Any], Awaitable[None]]
"""Starts servers beside a broker; called with its `Server`, and the nursery of its tasks, before the ready line."""


class Secured:
    """The additions of `--secure` to the config keys: users, and a message about how clients connect.

    `users` are passwords by name, for SCRAM's `mechanism`. `tell` is called once, when the broker serves, with a
    sentence that names the clients that can use an address, and the address; it returns the text for stdout.
    ConfigError if the files for clients cannot be written.
    """

    __slots__ = ("mechanism", "tell", "users")

    def __init__(self, users: Mapping[str, str], mechanism: str, tell: Callable[[str, str], str]) -> None:
        self.users = users
        self.mechanism = mechanism
        self.tell = tell


class ServeOptions:
    """The options of `barnabas serve`; None if an option was not given.

    `sets` has the config keys of the command line: from `--set`, `--listen` (listeners) and `--data-dir` (log.dirs).
    `environment` is the whole environment of the process. `defaults` are weaker than every setting of the user;
    `is_temporary`: the process that starts this node removes the data at the end. A supervisor of a cluster sets both.
    `secured` is there with `--secure`, `companion` with `--control` and `--console`, `prepare`, which is given the
    `Server` before it starts, with `--control`. `also_ready` is written to stdout below the ready line.
    """

    __slots__ = (
        "also_ready",
        "companion",
        "config_file",
        "defaults",
        "environment",
        "in_container",
        "is_temporary",
        "log_format",
        "log_level",
        "prepare",
        "profile",
        "ready_file",
        "secured",
        "sets",
    )

    def __init__(
        self,
        *,
        sets: Mapping[str, str] | None = None,
        config_file: str | None = None,
        environment: Mapping[str, str] | None = None,
        profile: str = "dev",
        ready_file: str | None = None,
        log_format: str = "kafka",
        log_level: str | None = None,
        in_container: bool = False,
        defaults: Mapping[str, str] | None = None,
        is_temporary: bool = False,
        secured: Secured | None = None,
        companion: Companion | None = None,
        prepare: Callable[[Any], None] | None = None,
        also_ready: str = "",
    ) -> None:
        self.also_ready = also_ready
        self.companion = companion
        self.prepare = prepare
        self.sets: Mapping[str, str] = {} if sets is None else sets
        self.config_file = config_file
        self.environment: Mapping[str, str] = {} if environment is None else environment
        self.profile = profile
        self.ready_file = ready_file
        self.log_format = log_format
        self.log_level = log_level
        self.in_container = in_container
        self.defaults: Mapping[str, str] = {} if defaults is None else defaults
        self.is_temporary = is_temporary
        self.secured = secured
