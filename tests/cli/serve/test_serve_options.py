"""The options of `barnabas serve`, and its usage errors: one line and exit code 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.cli.serve.run import UsageError, serve_options
from tests.support.cases import for_each


def test_options_become_kafka_keys() -> None:
    options = serve_options(
        ["--listen", "0.0.0.0:9093", "--data-dir=/data", "--set", "num.partitions=3", "--set=log.cleaner.enable=false"],
        {"KAFKA_NODE_ID": "7"},
    )
    assert options.sets == {
        "listeners": "PLAINTEXT://0.0.0.0:9093",
        "log.dirs": "/data",
        "num.partitions": "3",
        "log.cleaner.enable": "false",
    }
    assert options.environment == {"KAFKA_NODE_ID": "7"}
    assert (options.profile, options.config_file, options.ready_file) == ("dev", None, None)


def test_other_options_are_kept() -> None:
    options = serve_options(
        ["--profile", "kafka", "--config", "server.properties", "--ready-file", "ready", "--log-level", "warn"], {}
    )
    assert (options.profile, options.config_file, options.ready_file) == ("kafka", "server.properties", "ready")
    assert options.log_level == "warn"


def test_value_may_hold_an_equals_sign() -> None:
    assert serve_options(["--set", "a=b=c"], {}).sets == {"a": "b=c"}


@for_each(
    ("listen", "listener"),
    [
        ("127.0.0.1:0", "PLAINTEXT://127.0.0.1:0"),
        (":9092", "PLAINTEXT://:9092"),
        ("[::1]:9092", "PLAINTEXT://[::1]:9092"),
        ("localhost:65535", "PLAINTEXT://localhost:65535"),
    ],
)
def test_listen_becomes_a_listener(listen: str, listener: str) -> None:
    assert serve_options(["--listen", listen], {}).sets["listeners"] == listener


MISTAKES = [
    (["--lsten", "x"], "no such option: --lsten; did you mean --listen?"),
    (["--frobnicate"], "no such option: --frobnicate"),
    (["9092"], "unexpected argument: '9092'"),
    (["--listen"], "argument --listen: expected one argument"),
    (["--listen="], "argument --listen: needs a value: HOST:PORT"),
    (["--listen", "9092"], "--listen must be HOST:PORT"),
    (["--listen", "::1:9092"], "--listen must be HOST:PORT"),
    (["--listen", "host:port"], "--listen needs a port between 0 and 65535, not 'port'"),
    (["--listen", "host:65536"], "--listen needs a port between 0 and 65535, not '65536'"),
    (["--listen", "host:-1"], "--listen needs a port between 0 and 65535"),
    (["--listen", "a:1", "--listen", "b:1"], "argument --listen: given twice"),
    (["--profile", "prod"], "argument --profile: invalid choice: 'prod' (choose from 'dev', 'kafka')"),
    (["--set", "num.partitions"], "--set must be KEY=VALUE"),
    (["--set", "=3"], "--set must be KEY=VALUE"),
    (["--listen", "a:1", "--set", "listeners=PLAINTEXT://b:1"], "--listen and --set listeners are the same setting"),
    (["--data-dir", "a", "--set", "log.dirs=b"], "--data-dir and --set log.dirs are the same setting"),
    (["--data-dir", "a", "--set", "log.dir=b"], "are the same setting"),
]


@for_each(("arguments", "sentence"), MISTAKES, ids=[" ".join(mistake[0]) for mistake in MISTAKES])
def test_mistake_gets_one_sentence(arguments: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        serve_options(arguments, {})
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


LIGHT = """
import sys
before = set(sys.modules)
from barnabas.cli import main
code = main(["serve", "--lsten"])
heavy = {"click", "rich", "trio", "construct", "dataclasses", "barnabas.broker.server"}
print(code, sorted(heavy & (set(sys.modules) - before)))
"""


def test_reading_the_options_imports_nothing_heavy() -> None:
    """`serve` starts fast: it does not import the rest of the command line."""
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "2 []", done.stderr
