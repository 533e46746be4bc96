"""What `serve` was asked for: the bridge between the command line and `broker.server.run`.

A plain record with no behaviour, so that the command line can be read before anything of the broker is
imported. Kafka's own settings travel as text in `sets`; `broker.config.server_config` gives them types.
"""

from __future__ import annotations

from collections.abc import Mapping


class ServeOptions:
    """The options of `barnabas serve`, as given; None says that the option was not given.

    `sets` holds the Kafka keys of the command line, those of `--set` as well as those that `--listen`
    (listeners) and `--data-dir` (log.dirs) stand for. `environment` is the process environment, unfiltered.
    """

    __slots__ = ("config_file", "environment", "log_format", "log_level", "profile", "ready_file", "sets")

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
    ) -> None:
        self.sets: Mapping[str, str] = {} if sets is None else sets
        self.config_file = config_file
        self.environment: Mapping[str, str] = {} if environment is None else environment
        self.profile = profile
        self.ready_file = ready_file
        self.log_format = log_format
        self.log_level = log_level
