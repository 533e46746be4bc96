"""The names that users of an installed Barnabas rely on, as text: Python names, the command line, config keys.

`python -m tests.packaging.public_names` records them in tests/data/public-names. A changed line is a change that users
see: it needs a line in CHANGES.md.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

import barnabas.pipeline
import barnabas.testing
from barnabas.testing.forms import operation

RECORDED: Final = Path(__file__).parents[1] / "data" / "public-names"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
WIDTH: Final = 100
REACHED: Final = (
    *("clock:AsyncClock", "clock:Clock", "faults:AsyncFaults", "faults:AsyncHeld", "faults:AsyncRule", "faults:Faults"),
    *("faults:Held", "faults:Rule", "cluster:Request", "cluster:AsyncSnapshot", "cluster:Snapshot", "cluster:End"),
    *("fixtures.clients:AiokafkaClients", "fixtures.clients:ConfluentClients", "fixtures.clients:KafkaPythonClients"),
)
"""Classes of objects that a test gets from a cluster or from a fixture; it does not import them."""


def python_names() -> str:
    """The public names of `barnabas.testing` and its modules for users, and of `barnabas.pipeline`, with signatures."""
    from barnabas.testing import plugin, spark, testcontainers

    lines: list[str] = []
    for package in (barnabas.testing, barnabas.pipeline):
        for name in sorted(package.__all__):
            lines += _declared(f"{package.__name__}.{name}", getattr(package, name))
    for function in (spark.process_available, testcontainers.replace):
        lines += _declared(f"{function.__module__}.{function.__name__}", function)
    for place in REACHED:
        module, _, name = place.partition(":")
        lines += _declared(name, getattr(import_module(f"barnabas.testing.{module}"), name))
    lines += _of_plugin(plugin)
    return "\n".join(lines) + "\n"


def _declared(path: str, value: Any) -> Iterator[str]:
    if not isinstance(value, type):
        yield path + _signature(value)
        return
    parents = [
        parent.__name__ for parent in value.__mro__[1:] if parent.__module__ == "builtins" and parent is not object
    ]
    yield f"class {path}{_signature(value)} {', '.join(parents)}".rstrip()
    for name in sorted(dir(value)):
        is_own = any(name in vars(parent) for parent in value.__mro__ if parent.__module__.startswith("barnabas"))
        if is_own and (not name.startswith("_") or name in {"__enter__", "__aenter__", "__iter__", "__len__"}):
            yield f"    {path}.{name}{_member(inspect.getattr_static(value, name))}"


def _member(value: Any) -> str:
    if isinstance(value, staticmethod | classmethod):
        return _signature(value.__func__)
    if isinstance(value, operation):
        return f"{_signature(value._function)}, in both forms"
    return _signature(value) if callable(value) else ""


def _signature(value: Any) -> str:
    try:
        return _ADDRESS.sub("", str(inspect.signature(value)))
    except ValueError:
        return "(...)"


class _Recorder:
    """Replaces pytest's parser: records the declared options."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def getgroup(self, *_: Any) -> _Recorder:
        return self

    def addoption(self, *names: str, **settings: Any) -> None:
        self.lines.append(f"pytest {' '.join(names)} {settings.get('metavar', '')}".rstrip())

    def addini(self, name: str, *_: Any, default: Any = None, **more: Any) -> None:
        self.lines.append(f"pytest ini {name} type={more.get('type')} default={default!r}")


def _of_plugin(plugin: Any) -> list[str]:
    recorder = _Recorder()
    plugin.pytest_addoption(recorder)
    fixtures = [
        f"pytest fixture {name} scope={marker.scope}{_signature(value)}"
        for name, value in sorted(vars(plugin).items())
        if (marker := getattr(value, "_fixture_function_marker", None)) is not None
    ]
    return [*recorder.lines, *fixtures, f"pytest.mark.kafka: {', '.join(plugin.MARKED)}"]


def commands() -> Iterator[tuple[str, click.Context]]:
    """Every command with its context, groups too, in the order of their help pages."""
    from barnabas.cli.app import CONTEXT, app

    def walk(context: click.Context) -> Iterator[tuple[str, click.Context]]:
        yield context.command_path, context
        command = context.command
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                yield from walk(click.Context(inner, context, info_name=name, **command.context_settings))

    yield from walk(click.Context(app, info_name="barnabas", terminal_width=WIDTH, **CONTEXT))


def command_line() -> str:
    """The help page of every command and of Kafka's tools, and for each option of ours what the page does not say."""
    from barnabas.cli.kafka_tools.registry import TOOLS

    parts: list[str] = []
    for path, context in commands():
        parts.append(f"=== {path}\n{context.command.get_help(context)}")
        parts += [_parameter(parameter) for parameter in context.command.get_params(context)]
    parts += [f"=== {name}\n{text}" for name, (_, text) in TOOLS.items()]
    return "\n".join(parts) + "\n"


def _parameter(parameter: click.Parameter) -> str:
    names = " ".join([*parameter.opts, *parameter.secondary_opts])
    says = {
        "type": parameter.type.name,
        "nargs": parameter.nargs,
        "required": parameter.required,
        "multiple": parameter.multiple,
        "envvar": parameter.envvar,
        "flag": getattr(parameter, "is_flag", None),
        "hidden": getattr(parameter, "hidden", None),
    }
    return f"- {names}: " + " ".join(f"{name}={value}" for name, value in says.items() if value not in (None, False))


def config_keys() -> str:
    """Every config key of brokers, topics, groups and client metrics, and of the pipeline's files."""
    from barnabas.broker.config.keys import BROKER_KEYS, DYNAMIC_ONLY_KEYS
    from barnabas.broker.config.keys.resources import GROUP_KEYS
    from barnabas.spark.jobs import NAMES, find_job
    from barnabas.storage.topic_keys import TOPIC_KEYS

    tables = {"broker": BROKER_KEYS, "dynamic": DYNAMIC_ONLY_KEYS, "topic": TOPIC_KEYS, "group": GROUP_KEYS}
    lines = [
        f"{kind} {name} {key.type} default={key.default!r} valid={key.valid} update={key.dynamic} used={key.used}"
        for kind, keys in tables.items()
        for name, key in sorted(keys.items())
    ]
    for name in NAMES:
        lines += [f"pipeline {name} {line}" for line in _keys_of(find_job(name).config)]
    return "\n".join(lines) + "\n"


def _keys_of(model: Any, prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        if hasattr(field.annotation, "model_fields"):
            yield f"[{key}]"
            yield from _keys_of(field.annotation, f"{key}.")
        else:
            yield f"{key} required={field.is_required()} default={field.default!r}"


FILES: Final = {"python.txt": python_names, "command-line.txt": command_line, "config-keys.txt": config_keys}


if __name__ == "__main__":
    RECORDED.mkdir(exist_ok=True)
    for name, make in FILES.items():
        (RECORDED / name).write_text(make(), encoding="utf-8")
