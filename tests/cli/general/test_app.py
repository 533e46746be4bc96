"""The command line as a whole: help, version, usage errors, exit codes, no broker."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import barnabas
from barnabas.cli.app import COMMANDS
from tests.support.cases import for_each
from tests.support.processes.commands import run_command
from tests.support.processes.ports import free_port

ROOT = Path(__file__).resolve().parents[3]


def test_version_is_declared_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "barnabas.__version__"}
    assert run_command("--version").ok().stdout == f"barnabas {barnabas.__version__}\n"


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_lists_every_command(option: str) -> None:
    text = run_command(option).ok().stdout
    assert all(f"  {name} " in text for name in COMMANDS)


def test_no_command_shows_the_help() -> None:
    assert run_command().ok().stdout == run_command("-h").stdout


@pytest.mark.parametrize("group", ["topic", "group", "config"])
def test_a_group_without_a_command_shows_its_help(group: str) -> None:
    assert run_command(group).ok().stdout == run_command(group, "-h").stdout


def test_similar_names_of_topics_and_groups_are_suggested(run, topic) -> None:
    run("topic", "create", topic).ok()
    run("group", "seek", f"{topic}-readers", "--to", "0", "-t", topic).ok()
    for arguments in (["topic", "describe"], ["consume", "-e"], ["topic", "delete"], ["config", "get", "topic"]):
        ran = run(*arguments, f"{topic}x")
        assert (ran.code, ran.stderr) == (3, f"barnabas: there is no topic '{topic}x'; did you mean {topic}?\n")
    ran = run("group", "describe", f"{topic}-raeders")
    assert ran.stderr == f"barnabas: there is no group '{topic}-raeders'; did you mean {topic}-readers?\n"
    assert run("topic", "describe", "nothing-like-it").stderr == "barnabas: there is no topic 'nothing-like-it'\n"


@for_each("name", [name for name, (place, _) in COMMANDS.items() if place])
def test_every_command_of_the_table_exists(name: str) -> None:
    module, attribute = COMMANDS[name][0].split(":")
    assert getattr(import_module(module), attribute).name == name


@for_each("group", ["topic", "group", "cluster", "perf"])
def test_the_line_of_a_command_in_its_groups_table_is_the_commands_own(group: str) -> None:
    for module, attribute, line in (
        (*place.split(":"), line) for place, line in import_module(f"barnabas.cli.{group}").COMMANDS.values()
    ):
        assert getattr(import_module(module), attribute).get_short_help_str(limit=200) == line


@for_each(
    ("arguments", "sentence"),
    [
        (["tpoic"], "barnabas: no such command: tpoic; did you mean topic?"),
        (["topic", "lst"], "barnabas topic: no such command: lst; did you mean list?"),
        (["topic", "list", "--internl"], "no such option: --internl; did you mean --internal?"),
        (["topic", "list", "-o", "jsn"], "'jsn' is not one of 'table', 'wide', 'json', 'yaml'; did you mean json?"),
        (["topic", "create"], "missing argument"),
        (["topic", "create", "t", "-p", "0"], "0 is not in the range"),
        (["topic", "create", "t", "-c", "x"], "must be KEY=VALUE, not 'x'"),
        (["topic", "list", "-b", "host:port"], "a broker's address is HOST:PORT"),
        (["topic", "list", "-o", "xml"], "'xml' is not one of"),
        (["produce", "t", "--compression", "rar"], "'rar' is not one of"),
        (["produce", "t", "-k", "a", "-K", ":"], "give one of them"),
        (["produce", "t", "-H", "=x"], "must be NAME=VALUE"),
        (["consume", "t", "-f", "%x"], "knows no %x"),
        (["consume", "t", "-o", "middle"], "'middle' is not a position in a partition"),
        (["consume", "t", "--json", "-f", "%v"], "give one of them"),
        (["consume"], "missing argument"),
        (["consume", "t", "-g"], "requires an argument ('barnabas consume -h' explains)"),
        (["--profile", "x", "topic", "list", "-b"], "requires an argument ('barnabas topic list -h' explains)"),
        (["config", "get", "topics", "t"], "'topics' is not one of"),
        (["config", "set", "topic", "t", "x"], "must be KEY=VALUE"),
        (["group", "seek", "g"], "say where to: --to WHERE"),
        (["--nonsense"], "no such option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistake_is_one_sentence_and_exit_code_2(arguments: list[str], sentence: str) -> None:
    ran = run_command(*arguments)
    assert ran.code == 2
    assert ran.stdout == ""
    assert len(ran.stderr.splitlines()) == 1
    assert sentence.lower() in ran.stderr.lower()


@for_each(
    "arguments",
    [["topic", "list"], ["produce", "t"], ["consume", "t"], ["group", "list"], ["config", "get", "topic", "t"]],
    ids=" ".join,
)
def test_absent_broker_is_one_sentence_and_exit_code_1(arguments: list[str]) -> None:
    address = f"127.0.0.1:{free_port()}"
    ran = run_command(*arguments, stdin="line\n", bootstrap=address)
    assert ran.code == 1
    assert ran.stdout == ""
    assert ran.stderr.startswith(f"barnabas: no broker answers at {address} (connection refused)")
    assert len(ran.stderr.splitlines()) == 1


def test_address_may_stand_before_the_command() -> None:
    before, after = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    assert before in run_command("-b", before, "health").stderr
    assert after in run_command("-b", before, "health", "-b", after).stderr


def test_health_of_an_absent_broker_is_exit_code_3() -> None:
    ran = run_command("health", "-b", f"127.0.0.1:{free_port()}")
    assert ran.code == 3
    assert ran.stderr.startswith("not ready: no broker answers")
    assert run_command("health", "-q", "-b", f"127.0.0.1:{free_port()}").stderr == ""


def test_silent_listener_is_a_timeout_and_exit_code_4() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ran = run_command("topic", "list", "--timeout", "0.2", "-b", f"127.0.0.1:{silent.getsockname()[1]}")
    assert ran.code == 4
    assert "did not answer" in ran.stderr


def test_server_that_is_no_kafka_is_named_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        ran = run_command("topic", "list", "-b", f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert ran.code == 1
    assert "does not speak Kafka's protocol" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_listing_commands_imports_none_of_them() -> None:
    program = (
        "import sys; from barnabas.cli.app import run; run(['-h']); print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stderr.split())
    assert "barnabas.cli.app" in loaded
    heavy = ("rich", "barnabas.wire.", "barnabas.broker.", "barnabas.cli.topic")
    assert not {name for name in loaded if name.startswith(heavy)}


def test_help_is_a_word_too() -> None:
    for words in ((), ("topic",), ("topic", "list"), ("serve",), ("kafka-topics",)):
        ran = run_command("help", *words)
        assert ran.ok().stdout == run_command(*words, "--help").ok().stdout
        assert ran.stdout
    wrong = run_command("help", "topci")
    assert (wrong.code, "no such command: topci; did you mean topic?" in wrong.stderr) == (2, True)
