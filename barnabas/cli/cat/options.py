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

    def __init__(self, bootstrap: str, properties: Mapping[str, str], given: Mapping[str, Any]) -> None:
        self.properties = properties
        self.bootstrap = properties.get("bootstrap.servers", bootstrap)
        self.names: tuple[str, ...] = given["names"]
        self.group: str | None = given["group"] or properties.get("group.id")
        self.topics: tuple[str, ...] = given["topics"]
        self.partition: int | None = None if given["partition"] == -1 else given["partition"]
        self.delimiter = unescape(given["delimiter"], "-D")
        self.key_delimiter = None if given["key_delimiter"] is None else unescape(given["key_delimiter"], "-K")
        self.key: str | None = given["key"]
        self.headers: tuple[str, ...] = given["headers"]
        self.compression: str = given["compression"] or properties.get("compression.codec", "none")
        self.lines: bool = given["lines"]
        self.tee: bool = given["tee"]
        self.count: int | None = given["count"]
        self.null: bool = given["null"]
        self.offsets: tuple[str, ...] = given["offsets"]
        self.exit_at_end: bool = given["exit_at_end"]
        self.format: str | None = given["format_"]
        self.as_json: bool = given["as_json"]
        self.serdes: tuple[str, ...] = given["serdes"]
        self.show_offset: bool = given["show_offset"]
        self.unbuffered: bool = given["unbuffered"]
        self.quiet: bool = given["quiet"]
        self.timeout_s: float = given["timeout_s"]

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
