"""What a command imports before it works: counted, because time depends on the machine."""

from __future__ import annotations

import subprocess
import sys

from tests.support.cases import for_each
from tests.support.processes.commands import clean_environment

HEAVY = ("rich", "yaml", "tomlkit", "tomllib", "trio", "asyncio", "logging", "numpy", "pydantic", "multiprocessing")
PROGRAM = """
import sys
before = set(sys.modules)
from barnabas.cli import main
main(sys.argv[1:])
print(*sorted(set(sys.modules) - before), sep="\\n", file=sys.stderr)
"""


def imported(*arguments: str, bootstrap: str) -> list[str]:
    env = clean_environment() | {"BARNABAS_BOOTSTRAP_SERVERS": bootstrap}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stderr.split()


@for_each(
    ("arguments", "most"),
    [
        (["--version"], 90),
        (["-h"], 95),
        (["topic", "-h"], 115),
        (["topic", "list"], 170),
        (["topic", "list", "-o", "json"], 170),
        (["group", "list"], 170),
        (["health"], 165),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_imports_little(broker, arguments: list[str], most: int) -> None:
    modules = imported(*arguments, bootstrap=broker.bootstrap)
    assert [name for name in modules if name.partition(".")[0] in HEAVY] == []
    assert len(modules) <= most


def test_a_command_imports_no_other_command(broker) -> None:
    modules = imported("topic", "list", bootstrap=broker.bootstrap)
    commands = [name for name in modules if name.startswith(("barnabas.cli.topic.", "barnabas.cli.group"))]
    assert commands == ["barnabas.cli.topic.listing"]
    assert not [name for name in modules if name.startswith(("barnabas.broker", "barnabas.storage", "barnabas.coord"))]
