"""What users rely on is as it was recorded: `barnabas.testing`, `barnabas.pipeline`, the command line, config keys."""

from __future__ import annotations

from importlib.metadata import entry_points

from tests.packaging.public_names import FILES, RECORDED
from tests.support.cases import for_each


@for_each("name", FILES)
def test_public_names_are_as_recorded(name: str) -> None:
    recorded = (RECORDED / name).read_text(encoding="utf-8").split("\n")
    assert FILES[name]().split("\n") == recorded, "`python -m tests.packaging.public_names` records a change"


def test_users_find_the_plugin_and_the_command() -> None:
    (command,) = entry_points(group="console_scripts", name="barnabas")
    (plugin,) = entry_points(group="pytest11", name="barnabas")
    assert callable(command.load())
    assert plugin.value == "barnabas.testing.plugin"
