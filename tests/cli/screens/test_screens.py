"""The important commands on terminals of 60, 100 and 160 columns, with and without colour, and piped.

On a terminal no line is wider than the screen, no word is broken, and escape sequences are only written where they
are allowed. Piped output has none, and a row is a line.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.terminal.layout import cell_width
from tests.cli.screens.many import END
from tests.support.cases import for_each
from tests.support.processes.commands import clean_environment
from tests.support.processes.server import BarnabasServer
from tests.support.processes.terminal import Terminal

MANY = str(Path(__file__).with_name("many.py"))
CERTIFICATE = str(Path(__file__).with_name("certificate.pem"))
TOPIC = "screens.of-orders.with-a-long-name"
GROUP = "screens-readers-with-a-long-name"
SETUP = [
    ["topic", "create", TOPIC, "screens-b", "-p", "3", "-c", "retention.ms=86400000"],
    ["group", "seek", GROUP, "--to", "0", "-t", TOPIC],
]
COMMANDS = {
    "topic list": ["topic", "list"],
    "topic list wide": ["topic", "list", "-o", "wide"],
    "topic describe": ["topic", "describe", TOPIC, "screens-b"],
    "group list": ["group", "list"],
    "group describe": ["group", "describe", GROUP],
    "group offsets": ["group", "offsets", GROUP],
    "group seek": ["group", "seek", GROUP, "--to", "earliest", "--dry-run"],
    "config get": ["config", "get", "topic", TOPIC],
    "config get all": ["config", "get", "topic", TOPIC, "--all"],
    "api-versions": ["api-versions"],
    "cluster info": ["cluster", "info"],
    "cluster health": ["cluster", "health"],
    "log-dirs": ["log-dirs"],
    "log-dirs of a topic": ["log-dirs", TOPIC],
    "txn list": ["txn", "list"],
    "producers": ["producers", TOPIC],
    "features": ["features", "list"],
    "topic analyze": ["topic", "analyze", TOPIC],
    "topic trim": ["topic", "trim", TOPIC, "--to", "latest", "--dry-run"],
    "group lag": ["group", "lag", GROUP],
    "group members": ["group", "describe", GROUP, "--members"],
    "group state": ["group", "describe", GROUP, "--state"],
    "consume": ["consume", TOPIC, "-e"],
    "consume quietly": ["consume", TOPIC, "-e", "-q"],
    "profile list": ["profile", "list"],
    "profile show": ["profile", "show"],
    "create again": ["topic", "create", TOPIC],
    "no such topic": ["topic", "describe", "no-such-topic-of-the-screens"],
    "no such group": ["group", "describe", "no-such-group-of-the-screens"],
    "no such option": ["topic", "list", "--internl"],
    "no such command": ["topc"],
    "no such member of a group": ["consume", "no-such-topic-of-the-screens", "-e"],
    "no such key": ["config", "set", "topic", TOPIC, "retntion.ms=1"],
    "no such profile": ["topic", "list", "--profile", "nobody"],
    "wrong value": ["topic", "create", "x", "-c", "retention"],
    "wrong position": ["consume", TOPIC, "-o", "middle"],
    "no broker": ["topic", "list", "-b", "127.0.0.1:1"],
    "help": ["-h"],
    "help of serve": ["serve", "-h"],
    "help of consume": ["consume", "-h"],
    "help of produce": ["produce", "-h"],
    "help of topic": ["topic", "-h"],
    "help of perf produce": ["perf", "produce", "-h"],
    "doctor": ["doctor"],
    "help of cat": ["cat", "-h"],
    "help of top": ["top", "-h"],
    "help of acl list": ["acl", "list", "-h"],
    "help of fault add": ["fault", "add", "-h"],
    "help of record": ["record", "-h"],
    "record without a file": ["record", "--upstream", "127.0.0.1:9092"],
    "help of replay": ["replay", "-h"],
    "no such cassette": ["replay", "/no-such-folder/orders.cassette"],
    "help of quota": ["quota", "-h"],
    "cert show": ["cert", "show", CERTIFICATE],
    "help of cert show": ["cert", "show", "-h"],
    "no such certificates": ["cert", "show", "--data-dir", "/no-such-folder/data"],
    "serve with a user alone": ["serve", "--user", "alice:secret"],
    "wrong security": ["topic", "list", "-X", "security.protocol=TLS"],
    "no such quota": ["quota", "set", "--user", "alice", "producer_byte_rat=1"],
    "no control channel": ["fault", "list"],
    "wrong acl": ["acl", "add", "group", "readers", "--user", "alice", "--operation", "write"],
    "group without a command": ["config"],
    "serve with a mistake": ["serve", "--lissten", "127.0.0.1:9092"],
    "serve that cannot start": ["serve", "--data-dir", "/proc/no-such-folder", "--listen", "127.0.0.1:0"],
}
ONE_LINE = [name for name in COMMANDS if name.startswith(("no ", "wrong", "create", "serve"))]
"""Mistakes: one sentence, on one line where stderr is no terminal."""

FEW = ["topic list", "topic describe", "group describe", "no such topic", "help"]
"""Enough to see whether escape sequences are written."""

Shown = dict[str, tuple[list[str], int]]


def parts(lines: list[str], names: list[str]) -> Shown:
    """The lines and the exit code of each command."""
    screens: Shown = {}
    current: list[str] = []
    for line in lines:
        if line.startswith(END):
            number, code = line.removeprefix(END).split()
            screens[names[int(number)]] = (current, int(code))
            current = []
        else:
            current.append(line)
    assert list(screens) == names
    return screens


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of its own: groups and sizes that other tests leave would change between two screens."""
    with BarnabasServer(tmp_path_factory.mktemp("screens") / "data") as server:
        env = clean_environment() | {"BARNABAS_BOOTSTRAP_SERVERS": server.bootstrap}
        subprocess.run([sys.executable, MANY, json.dumps(SETUP)], env=env, check=True, timeout=60)
        yield server.bootstrap


@pytest.fixture(scope="module")
def piped(bootstrap: str) -> Shown:
    env = clean_environment() | {"BARNABAS_BOOTSTRAP_SERVERS": bootstrap, "COLUMNS": "160"}
    command = [sys.executable, MANY, json.dumps(list(COMMANDS.values()))]
    done = subprocess.run(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
        timeout=60,
    )
    return parts(done.stdout.decode().splitlines(), list(COMMANDS))


def on_a_terminal(bootstrap: str, columns: int, names: list[str], **environment: str) -> tuple[Terminal, Shown]:
    env = {"BARNABAS_BOOTSTRAP_SERVERS": bootstrap} | environment
    commands = json.dumps([COMMANDS[name] for name in names])
    with Terminal(sys.executable, MANY, commands, columns=columns, env=env) as terminal:
        assert terminal.to_end() == 0, terminal.text
    return terminal, parts(terminal.written[:-1], names)


@pytest.fixture(scope="module", params=[60, 100, 160])
def screen(request: pytest.FixtureRequest, bootstrap: str) -> tuple[int, Shown]:
    return request.param, on_a_terminal(bootstrap, request.param, list(COMMANDS))[1]


def words(lines: list[str]) -> set[str]:
    """Words, without the commas behind which lists are wrapped."""
    return {word for line in lines for word in re.split(r"[\s,]+", line) if word}


@for_each("name", COMMANDS)
def test_no_line_is_wider_than_the_screen(screen: tuple[int, Shown], name: str) -> None:
    columns, shown = screen
    lines, _ = shown[name]
    too_wide = [line for line in lines if cell_width(line) > columns and len(line.split()) > 1]
    assert too_wide == [], "only a word that is longer than the screen may be"


@for_each("name", COMMANDS)
def test_no_word_is_broken(screen: tuple[int, Shown], piped: Shown, name: str) -> None:
    lines, code = screen[1][name]
    expected, expected_code = piped[name]
    assert code == expected_code
    assert words(expected) <= words(lines)


def test_piped_output_has_a_line_for_each_row(piped: Shown) -> None:
    lines, _ = piped["topic list wide"]
    row = next(line for line in lines if line.startswith(TOPIC))
    assert re.fullmatch(rf"{re.escape(TOPIC)} +3 +1 .*", row)
    for name in ONE_LINE:
        assert len(piped[name][0]) == 1, piped[name]
        assert piped[name][1] in (1, 2, 3)


def test_piped_output_has_no_escape_sequence(piped: Shown) -> None:
    assert not [line for lines, _ in piped.values() for line in lines if "\x1b" in line or "\r" in line]


def test_titles_are_bold_on_a_terminal_unless_it_is_not_wanted(bootstrap: str, tmp_path: Path) -> None:
    plain, coloured = "\x1b[0m", "\x1b[1m"
    terminal, _ = on_a_terminal(bootstrap, 100, FEW)
    assert coloured in terminal.raw
    assert plain in terminal.raw
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"BARNABAS_COLOUR": "never"}):
        terminal, _ = on_a_terminal(bootstrap, 100, FEW, **environment)
        assert "\x1b" not in terminal.raw


def test_the_screen_shows_what_was_written(bootstrap: str) -> None:
    """The program's lines are the screen's lines: the terminal wraps only words that are longer than the screen."""
    terminal, _ = on_a_terminal(bootstrap, 60, FEW)
    written = [line.rstrip() for line in terminal.written[:-1]]
    shown = terminal.text.splitlines()
    assert [line for line in written if cell_width(line) <= 60 and line not in shown] == []
