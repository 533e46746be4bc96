"""The log: one event a line, and nothing that a client sends can look like an event of its own."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from barnabas.broker.start.logging_setup import JsonFormatter, KafkaFormatter

FORGED = "app\n[2026-01-01 00:00:00,000] ERROR disk failed (kafka.log.LogManager)\r\x1b[2K\u2028\u202eend"


def event(message: str, *arguments: object, failure: BaseException | None = None) -> logging.LogRecord:
    """A log event as the logging module makes it."""
    exc_info = (type(failure), failure, failure.__traceback__) if failure else None
    return logging.LogRecord("kafka.network.Processor", logging.WARNING, __file__, 1, message, arguments, exc_info)


def failed(text: str) -> ValueError:
    """An exception that was raised, with a traceback."""
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


def test_an_event_is_one_line_in_kafkas_shape() -> None:
    line = KafkaFormatter().format(event("Connection from %s closed", "127.0.0.1"))
    assert line.startswith("[20")
    assert line.endswith("] WARN Connection from 127.0.0.1 closed (kafka.network.Processor)")


def test_text_of_a_client_cannot_begin_a_line_or_move_the_cursor() -> None:
    line = KafkaFormatter().format(event("Client %s left", FORGED))
    assert line.isprintable()
    assert "app\\n[2026-01-01" in line
    assert "\\x1b[2K\\u2028\\u202eend left" in line


def test_printable_text_of_any_script_stays_as_it_is() -> None:
    assert "Топик 主题 tópico" in KafkaFormatter().format(event("Topic %s", "Топик 主题 tópico"))


def test_lines_of_a_traceback_cannot_be_taken_for_events() -> None:
    lines = KafkaFormatter().format(event("Bug", failure=failed(FORGED))).split("\n")
    assert lines[0].endswith("WARN Bug (kafka.network.Processor)")
    assert len(lines) > 3
    assert all(line.startswith("\t") and line[1:].isprintable() for line in lines[1:])


@pytest.mark.parametrize("failure", [None, failed(FORGED)])
def test_a_json_event_is_one_line(failure: BaseException | None) -> None:
    line = JsonFormatter().format(event("Client %s left", FORGED, failure=failure))
    assert line.isprintable()
    assert json.loads(line)["message"] == f"Client {FORGED} left"


def test_surrogates_of_broken_text_can_be_written() -> None:
    line = KafkaFormatter().format(event("%s", "\udcff"))
    assert line.encode(sys.getdefaultencoding())
