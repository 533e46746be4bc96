"""Kafka's command line tools 4.3.1 (`compat/kafka-tools/pom.xml`), by the names of their classes: `TopicCommand`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support.jvm import command, host
from tests.support.jvm.jars import ROOT, jars

POM = ROOT / "compat" / "kafka-tools" / "pom.xml"


def class_path(level: str = "error") -> list[Path]:
    """The class path of the tools, whose clients log this level and above to stderr."""
    return [command.logging(level), *jars(POM)]


def class_of(tool: str) -> str:
    """The full name of a tool's class; most are in one package."""
    return tool if tool.startswith(("kafka.", "org.")) else f"org.apache.kafka.tools.{tool}"


def run_tool(
    tool: str,
    *arguments: str,
    stdin: str = "",
    options: Sequence[str] = (),
    level: str = "error",
    timeout_s: float = host.RUN_TIMEOUT_S,
) -> host.Ran:
    """Run a tool to its end in the JVM of all tools."""
    return host.run(class_path(level), class_of(tool), *arguments, stdin=stdin, options=options, timeout_s=timeout_s)


def output(tool: str, *arguments: str, options: Sequence[str] = ()) -> str:
    """The standard output of a tool that must succeed."""
    done = run_tool(tool, *arguments, options=options)
    assert done.code == 0, done.out + done.errors
    return done.out


def process(tool: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
    """The command line of a tool in a process of its own: one that never ends by itself."""
    return command.java(class_path(), class_of(tool), *arguments, options=options)


class Tools:
    """The tools with the arguments that they have in common: an address, and `config`, a client.properties."""

    def __init__(self, bootstrap: str, config: Path | None = None, options: Sequence[str] = ()) -> None:
        self.bootstrap = bootstrap
        self._config = [] if config is None else ["--command-config", str(config)]
        self._options = options

    def run(self, tool: str, *arguments: object, expected: int = 0) -> str:
        """Run a tool that must end with this exit code; its standard output followed by its error output."""
        address = ("--broker-list" if tool == "TransactionalMessageCopier" else "--bootstrap-server", self.bootstrap)
        done = run_tool(tool, *address, *self._config, *map(str, arguments), options=self._options)
        assert done.code == expected, done.out + done.errors
        return done.out + done.errors

    def groups(self, *arguments: object, expected: int = 0) -> str:
        """kafka-consumer-groups."""
        return self.run("consumer.group.ConsumerGroupCommand", *arguments, expected=expected)

    def transactions(self, *arguments: object, expected: int = 0) -> str:
        """kafka-transactions."""
        return self.run("TransactionsCommand", *arguments, expected=expected)
