"""The ini keys and options of the plugin: declared, read, checked. A wrong one is an error of the run, in one line."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

LINT_MODES = ("off", "warn", "error")
RECORD_MODES = ("once", "none", "all")
PORTS = range(65536)
_KEYS = {
    "timeout": "how long assertions of the test kit wait, seconds",
    "port": "start the broker with the run, on this port of 127.0.0.1, for tests that expect one there",
    "host": "the address that clusters listen on, 127.0.0.1; 0.0.0.0 for clients in containers",
    "keep_on_failure": "save the cluster of each failed test in this directory, for `barnabas serve --data-dir`",
    "lint": "warn of what clients do wrong (the default), or error: fail the test, or off",
    "brokers": "how many brokers each test's cluster has, beside a controller; without it one, which is both",
    "record_mode": "of tests with a cassette: once (the default), none or all",
    "as_version": "answer as this release of Kafka: 2.8, 3.9, 4.0",
}


@dataclass(frozen=True)
class Settings:
    """The settings of a run; None where the user has set nothing."""

    timeout: float | None
    port: int | None
    lint: str
    as_version: str | None
    brokers: int | None
    record_mode: str
    host: str | None
    keep_on_failure: str | None
    load: tuple[str, ...]
    config: dict[str, str]


def declare(parser: pytest.Parser) -> None:
    """Options and ini keys with the same names: --barnabas-timeout and barnabas_timeout."""
    group = parser.getgroup("barnabas", "Barnabas, a broker for tests")
    for key, text in _KEYS.items():
        parser.addini(f"barnabas_{key}", text)
        group.addoption(f"--barnabas-{key.replace('_', '-')}", dest=f"barnabas_{key}", metavar=key.upper(), help=text)
    text = "config keys of the broker and of every test's cluster, as num.partitions=3"
    parser.addini("barnabas_config", text, type="linelist")
    group.addoption("--barnabas-config", action="append", default=[], metavar="KEY=VALUE", help=text)
    text = "seed files: the records that every test's cluster begins with, as `barnabas consume --json` writes them"
    parser.addini("barnabas_load", text, type="linelist")
    group.addoption("--barnabas-load", action="append", default=[], metavar="FILE", help=text)


def settings_of(config: pytest.Config) -> Settings:
    """The settings of a run. UsageError, which is one line of the run, for one that is not valid."""
    lint = _text(config, "lint") or "warn"
    if lint not in LINT_MODES:
        raise pytest.UsageError(f"barnabas_lint must be off, warn or error, not {lint!r}")
    record_mode = _text(config, "record_mode") or "once"
    if record_mode not in RECORD_MODES:
        raise pytest.UsageError(f"barnabas_record_mode must be once, none or all, not {record_mode!r}")
    return Settings(
        timeout=_timeout(config),
        port=_port(config),
        lint=lint,
        as_version=_text(config, "as_version"),
        brokers=_brokers(config),
        record_mode=record_mode,
        host=_text(config, "host"),
        keep_on_failure=_text(config, "keep_on_failure"),
        load=(*config.getini("barnabas_load"), *config.getoption("barnabas_load")),
        config=_config_keys(config),
    )


def _text(config: pytest.Config, key: str) -> str | None:
    given = config.getoption(f"barnabas_{key}") or config.getini(f"barnabas_{key}")
    return str(given) if given else None


def _timeout(config: pytest.Config) -> float | None:
    text = _text(config, "timeout")
    try:
        seconds = None if text is None else float(text)
    except ValueError:
        seconds = -1.0
    if seconds is not None and not 0 <= seconds < float("inf"):
        raise pytest.UsageError(f"barnabas_timeout must be a number of seconds, not {text!r}")
    return seconds


def _port(config: pytest.Config) -> int | None:
    text = _text(config, "port")
    if text is None:
        return None
    if not text.isdecimal() or int(text) not in PORTS:
        raise pytest.UsageError(f"barnabas_port must be a port, as 9092, not {text!r}")
    return int(text)


def _brokers(config: pytest.Config) -> int | None:
    text = _text(config, "brokers")
    if text is None:
        return None
    if not text.isdecimal():
        raise pytest.UsageError(f"barnabas_brokers must be a number, as 3, not {text!r}")
    return int(text)


def _config_keys(config: pytest.Config) -> dict[str, str]:
    keys = {}
    for line in [*config.getini("barnabas_config"), *config.getoption("barnabas_config")]:
        key, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"barnabas_config needs KEY=VALUE, as num.partitions=3, not {line!r}")
        keys[key.strip()] = value.strip()
    return keys
