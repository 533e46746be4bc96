"""The addresses that pages give for containers are the addresses that the image's entry point advertises.

The tests have no container engine: the variables of each `docker run` are given to the entry point's configuration.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from barnabas.broker.config.load import load
from barnabas.broker.start.ready import entrances
from barnabas.cli.serve.console import IN_CONTAINER
from barnabas.cli.serve.run import parser
from tests.support.blocks import parse_blocks

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/docker.md"


def _runs() -> list[str]:
    """Every `docker run` of the page and of the head of the Dockerfile."""
    blocks = parse_blocks((ROOT / PAGE).read_text(), PAGE)
    lines = [
        line.partition("  #")[0]
        for block in blocks
        for line in block.text.splitlines()
        if line.startswith("docker run")
    ]
    head = re.findall(r"`(docker run [^`]+)`", (ROOT / "Dockerfile").read_text().partition("\nFROM ")[0])
    return [*lines, *head]


def _after_the_image(command: str) -> list[str]:
    """The arguments that the entry point gets."""
    words = shlex.split(command)
    return words[words.index("barnabas") + 1 :]


def _for_the_host(variables: dict[str, str]) -> str:
    config = load({}, variables, None, in_container=True)
    return entrances(config.listeners, config.advertised_listeners, in_container=True)[0].dial


def test_runs_are_found() -> None:
    assert len(_runs()) == 5
    assert sum("--console" in _after_the_image(command) for command in _runs()) == 2


@pytest.mark.parametrize("command", _runs())
def test_host_reaches_the_published_port(command: str) -> None:
    words = shlex.split(command)
    published = [words[number + 1] for number, word in enumerate(words) if word == "-p"]
    variables = dict(words[number + 1].split("=", 1) for number, word in enumerate(words) if word == "-e")
    outside = {int(ports.rpartition(":")[2]): ports.rpartition(":")[0] for ports in published}
    assert _for_the_host(variables) == f"localhost:{outside.pop(9092)}"
    if "--console" in _after_the_image(command):
        args = parser().parse_args(["--in-container", *_after_the_image(command)])
        assert args.console == ""
        assert outside == {int(IN_CONTAINER.rpartition(":")[2]): "127.0.0.1:8080"}, "only this machine reaches it"
    else:
        assert outside == {}


def test_compose_file_and_the_page_about_compose() -> None:
    variables = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["kafka"]["environment"]
    config = load({}, {name: str(value) for name, value in variables.items()}, None, in_container=True)
    addresses = {way.dial for way in entrances(config.listeners, config.advertised_listeners, in_container=True)}
    assert addresses == {"localhost:9092", "kafka:19092"}


def test_table_of_listeners_is_that_of_the_image() -> None:
    config = load({}, {}, None, in_container=True)
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", (ROOT / PAGE).read_text(), re.MULTILINE)
    assert rows == [(listener.name, str(listener.port)) for listener in config.listeners]
