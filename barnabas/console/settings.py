"""What a console is started with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.client.security.settings import Security


@dataclass(frozen=True)
class Settings:
    """The options of one console."""

    bootstrap: str
    """Addresses of brokers, separated by commas."""
    host: str = "127.0.0.1"
    port: int = 8080
    """Where the console listens; port 0 takes a free one."""
    security: Security | None = None
    """How the console itself connects; None: without TLS and SASL."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Keys of TLS and SASL that `security` was made of; a log-in replaces the user and the password."""
    read_only: bool = False
    control: tuple[str, str] | None = None
    """Address and token of the broker's control channel."""
    data_dir: str | None = None
    """The directory of `serve --brokers N`, whose supervisor starts and ends nodes."""
    pipelines: str | None = None
    """The folder of the checkpoints, files and reports of `barnabas pipeline`."""
    certificate: str | None = None
    key: str | None = None
    """PEM files with which the console serves TLS; both or none."""
    login: bool = False
    """Whether people log in even if `properties` have a user."""
    allowed_hosts: tuple[str, ...] = ()
    """Further names under which the console is addressed."""
    is_in_container: bool = False
    """Whether the address is the container's, reached by whom its port is published to."""
    schema_files: tuple[str, ...] = ()
    """Avro and Protobuf schemas of messages: .avsc, .proto, .desc."""
    schema_registry: str | None = None
    """The address of a Schema Registry."""
    timeout_s: float = 10.0
    """How long a page waits for brokers, seconds."""
