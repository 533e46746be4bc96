"""Kafka's own tools, and so the Java client, with the client.properties of `--secure`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.secure.serving import SecureServe
from tests.support.jvm.kafka_tools import Tools

pytestmark = pytest.mark.jvm


def test_kafkas_tools_take_the_file(tmp_path: Path) -> None:
    with SecureServe(tmp_path, "--user", 'admin:with "quotes" and \\') as serving:
        tools = Tools(serving.java()["bootstrap.servers"])
        tools.run("TopicCommand", "--command-config", serving.command_config, "--create", "--topic", "of-java")
        listed = tools.run("TopicCommand", "--command-config", serving.command_config, "--list")
        assert listed.splitlines() == ["of-java"]
