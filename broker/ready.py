"""Announces that the broker accepts connections: the ready file, Kafka's ready line, and examples for clients."""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.config.listeners import Endpoint

logger = logging.getLogger("kafka.server.KafkaServer")


def remove_ready_file(path: str) -> None:
    """Remove the ready file of an earlier broker. PermissionError when the file could not be written later."""
    file = Path(path)
    if file.is_dir() or not os.access(file.parent, os.W_OK):
        raise PermissionError(f"Cannot write the ready file {path}")
    file.unlink(missing_ok=True)


def announce(node_id: int, addresses: Sequence[Endpoint], ready_file: str | None) -> None:
    """Write the ready file, then the ready line and client examples to stdout."""
    bound = ",".join(str(address) for address in addresses)
    now = time.strftime("%Y-%m-%d %H:%M:%S") + f",{time.time_ns() // 1_000_000 % 1000:03d}"
    address = addresses[0]
    host = "127.0.0.1" if address.host in ("", "0.0.0.0", "::") else address.host
    dial = f"[{host}]:{address.port}" if ":" in host else f"{host}:{address.port}"
    if ready_file is not None:  # before the line: a process that waits for the line may read the file
        temporary = Path(f"{ready_file}.{os.getpid()}")
        temporary.write_text(f"{dial}\n", encoding="utf-8")
        temporary.replace(ready_file)
    sys.stdout.write(
        f"[{now}] INFO [KafkaServer id={node_id}] started on {bound} (Kafka Server started; "
        "Transitioning from RECOVERY to RUNNING; Started Kafka API server) (kafka.server.KafkaServer)\n"
        + CLIENT_CONFIGURATION.format(dial=dial)
    )
    sys.stdout.flush()
    logger.info("[KafkaServer id=%d] started on %s", node_id, bound)


CLIENT_CONFIGURATION = """
confluent-kafka  Producer({{"bootstrap.servers": "{dial}"}})
                 Consumer({{"bootstrap.servers": "{dial}", "group.id": "my-group", "auto.offset.reset": "earliest"}})
kafka-python     KafkaProducer(bootstrap_servers="{dial}")
                 KafkaConsumer("my-topic", bootstrap_servers="{dial}", auto_offset_reset="earliest")
Spark            spark.readStream.format("kafka")
                     .option("kafka.bootstrap.servers", "{dial}").option("subscribe", "my-topic").load()
"""
