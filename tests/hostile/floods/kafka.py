"""Apache Kafka under the floods, for comparison: without security, since what a flood costs is asked here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.hostile.harness import Watched
from tests.support.processes.kafka import KafkaServer

WARM_UP_S: Final = 10.0
"""How long the healthy client works before its waits are counted: until the JVM has compiled what it uses."""


class KafkaVictim(Watched, KafkaServer):  # type: ignore[misc]  # a server's pid is a property
    """One node of Kafka. Config keys of Barnabas alone are left out."""

    listener = "PLAINTEXT"
    authority = ""

    def __init__(self, data_dir: Path, config: Mapping[str, str]) -> None:
        super().__init__(data_dir, config={key: value for key, value in config.items() if key[:9] != "barnabas."})
