"""The parsed options of `barnabas cat`, and its connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from barnabas.cli.connect.client_config import is_security_key
from barnabas.cli.options.escapes import unescape
from barnabas.cli.options.parameters import connect
from barnabas.client.cluster import Cluster
from barnabas.terminal.notes import note


class Options:
    """What was given. `properties` are those of -X and -F, checked."""

    def __init__(self, bootstrap: str, properties: Mapping[str, str], flags: Mapping[str, Any]) -> None:
        self.properties = properties
        self.bootstrap = properties.get("bootstrap.servers", bootstrap)
        self.names: tuple[str, ...] = flags["names"]
        self.group: str | None = flags["group"] or properties.get("group.id")
        self.topics: tuple[str, ...] = flags["topics"]
        self.partition: int | None = None if flags["partition"] == -1 else flags["partition"]
        self.delimiter = unescape(flags["delimiter"], "-D")
        self.key_delimiter = None if flags["key_delimiter"] is None else unescape(flags["key_delimiter"], "-K")
        self.key: str | None = flags["key"]
        self.headers: tuple[str, ...] = flags["headers"]
        self.compression: str = flags["compression"] or properties.get("compression.codec", "none")
        self.lines: bool = flags["lines"]
        self.tee: bool = flags["tee"]
        self.count: int | None = flags["count"]
        self.null: bool = flags["null"]
        self.offsets: tuple[str, ...] = flags["offsets"]
        self.exit_at_end: bool = flags["exit_at_end"]
        self.format: str | None = flags["format_"]
        self.as_json: bool = flags["as_json"]
        self.serdes: tuple[str, ...] = flags["serdes"]
        self.show_offset: bool = flags["show_offset"]
        self.unbuffered: bool = flags["unbuffered"]
        self.quiet: bool = flags["quiet"]
        self.timeout_s: float = flags["timeout_s"]

    @property
    def topic(self) -> str:
        """The one topic of -t."""
        if len(self.topics) != 1:
            raise click.UsageError("-t TOPIC is missing" if not self.topics else "only one -t TOPIC can be given")
        return self.topics[0]

    def connect(self) -> Cluster:
        """A client for the cluster."""
        secured = {key: value for key, value in self.properties.items() if is_security_key(key)}
        cluster = connect(self.bootstrap, self.timeout_s, secured)
        cluster.client_id = self.properties.get("client.id", cluster.client_id)
        return cluster

    def note(self, text: str) -> None:
        """A line on stderr in kcat's form, but for -q."""
        if not self.quiet:
            note(f"% {text}")
