"""Logging to stderr in Kafka's format.

    [2026-11-21 09:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)

Loggers have Kafka's names, so that filters written for Kafka work. The level comes from the command
line, else from `KAFKA_LOG4J_ROOT_LOGLEVEL` as in the apache/kafka image, else it is INFO.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any

_LEVEL_NAMES = {logging.WARNING: "WARN", logging.CRITICAL: "FATAL"}
_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}


def escape_controls(text: str) -> str:
    """`text` with line breaks, terminal escapes and other unprintable characters as Python escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class KafkaFormatter(logging.Formatter):
    """Time, level, message, logger. Every event begins a line, and text that a client sent cannot begin one.

    Unprintable characters of the message are escaped. Tracebacks keep their lines, each indented by a tab.
    """

    def __init__(self) -> None:
        super().__init__("[%(asctime)s,%(msecs)03d] %(levelname)s %(message)s (%(name)s)", "%Y-%m-%d %H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """One log event as text."""
        record.levelname = _LEVEL_NAMES.get(record.levelno, record.levelname)
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - overrides logging's method
        """The event's first line."""
        record.message = escape_controls(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - overrides logging's method
        """The traceback, indented."""
        return "\n".join("\t" + escape_controls(line) for line in super().formatException(ei).splitlines())


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """One log event as JSON."""
        import json

        event = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": _LEVEL_NAMES.get(record.levelno, record.levelname),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event)


def set_up_logging(level: str | None, log_format: str, environment: Mapping[str, str]) -> None:
    """Log to stderr; an unknown level means INFO."""
    name = level or environment.get("KAFKA_LOG4J_ROOT_LOGLEVEL") or "INFO"
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else KafkaFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS.get(name.upper(), logging.INFO))
    logging.raiseExceptions = False  # a closed stderr must not stop the broker
