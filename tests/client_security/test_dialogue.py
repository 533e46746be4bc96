"""Questions on a terminal: a password twice, without showing it, and before ACLs, quotas and users are removed."""

from __future__ import annotations

import pytest

from tests.support.processes.secured import Secured
from tests.support.processes.terminal import COMMAND, Terminal

SECRET = "s3cr3t-of-the-test"


def on_a_terminal(secured: Secured, *arguments: str) -> Terminal:
    env = {"BARNABAS_BOOTSTRAP_SERVERS": secured.harness, "BARNABAS_COMMAND_CONFIG": secured.command_config}
    return Terminal(str(COMMAND), *arguments, columns=100, env=env)


@pytest.mark.parametrize(("again", "code"), [(SECRET, 0), ("another", 1), ("\x04", 1)])
def test_a_password_is_typed_twice_and_not_shown(secured: Secured, admin, again: str, code: int) -> None:
    with on_a_terminal(secured, "user", "set", "typed") as terminal:
        terminal.wait_for("Password of typed:")
        terminal.type(f"{SECRET}\r")
        terminal.wait_for("Password of typed, again:")
        terminal.type(again if again == "\x04" else f"{again}\r")
        assert terminal.to_end() == code
    assert SECRET not in terminal.raw
    assert ("nothing was changed" in terminal.text) == (code == 1)
    users = [row["user"] for row in admin("user", "list", "-o", "json").ok().json]
    assert ("typed" in users) == (code == 0)
    if code == 0:
        admin("user", "delete", "typed", "-y").ok()


def test_a_removal_is_asked_for(secured: Secured, admin) -> None:
    admin("acl", "add", "topic", "asked", "--user", "a", "--operation", "read").ok()
    admin("quota", "set", "--user", "asked", "consumer_byte_rate=1").ok()
    admin("user", "set", "asked", "--password", "x").ok()
    for arguments, question in (
        (("acl", "remove", "topic", "asked"), "Remove 1 ACL (User:a may read topic asked)? [y/N]"),
        (("quota", "remove", "--user", "asked"), "Remove consumer_byte_rate of user asked? [y/N]"),
        (("user", "delete", "asked"), "Delete the credentials of asked? [y/N]"),
    ):
        for typed, code in (("n\r", 1), ("y\r", 0)):
            with on_a_terminal(secured, *arguments) as terminal:
                terminal.wait_for(question)
                terminal.type(typed)
                assert terminal.to_end() == code, terminal.text
