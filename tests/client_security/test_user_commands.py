"""`barnabas user`: the users that it creates can log in, and their passwords are not shown."""

from __future__ import annotations

import pytest

from tests.support.processes.commands import run_command

SECRET = "s3cr3t-of-the-test"


def can_log_in(secured, config_file, name: str, mechanism: str, password: str = SECRET) -> bool:
    more = {"sasl_mechanism": mechanism, "sasl_username": name, "sasl_password": password}
    file = config_file(secured.properties("SASL_SSL", **more))
    ran = run_command("cluster", "info", "-b", secured.address("SASL_SSL"), "--command-config", file)
    assert ran.code in (0, 5), ran.stderr
    assert SECRET not in ran.stderr
    return ran.code == 0


def test_a_user_is_added_changed_and_deleted(secured, admin, config_file, tmp_path) -> None:
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    added = admin("user", "set", "erin", "--password-file", str(path)).ok()
    assert added.stdout == "added user erin (SCRAM-SHA-512)\n"
    assert can_log_in(secured, config_file, "erin", "SCRAM-SHA-512")
    assert not can_log_in(secured, config_file, "erin", "SCRAM-SHA-256")

    both = ("-m", "SCRAM-SHA-256", "-m", "SCRAM-SHA-512", "-i", "8192")
    changed = admin("user", "set", "erin", *both, "--password-file", "-", stdin="another\n").ok()
    assert changed.lines == ["added user erin (SCRAM-SHA-256)", "changed the password of user erin (SCRAM-SHA-512)"]
    assert can_log_in(secured, config_file, "erin", "SCRAM-SHA-256", "another")
    assert not can_log_in(secured, config_file, "erin", "SCRAM-SHA-512")

    assert admin("user", "describe", "erin", "-o", "json").ok().json == [
        {"user": "erin", "mechanism": "SCRAM-SHA-256", "iterations": 8192},
        {"user": "erin", "mechanism": "SCRAM-SHA-512", "iterations": 8192},
    ]
    assert admin("user", "list", "er*", "-o", "json").ok().json == [
        {"user": "erin", "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"]}
    ]
    assert (
        admin("user", "delete", "erin", "-m", "SCRAM-SHA-256", "-y").ok().stdout
        == "deleted user erin (SCRAM-SHA-256)\n"
    )
    admin("user", "set", "erin", "-m", "SCRAM-SHA-256", "--password", "x").ok()
    assert admin("user", "delete", "erin", "-y").ok().stdout == "deleted user erin (SCRAM-SHA-256, SCRAM-SHA-512)\n"
    gone = admin("user", "describe", "erin")
    assert (gone.code, "there is no user 'erin'" in gone.stderr) == (3, True)


def test_a_name_that_is_misspelt_is_suggested(admin) -> None:
    admin("user", "set", "frederica", "--password", "x").ok()
    wrong = admin("user", "delete", "fredericca")
    assert (wrong.code, "frederica?" in wrong.stderr) == (3, True)


def test_who_may_not_is_told(secured, config_file) -> None:
    more = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "alice-secret"}
    file = config_file(secured.properties("SASL_SSL", **more))
    ran = run_command("user", "list", "-b", secured.address("SASL_SSL"), "--command-config", file)
    assert (ran.code, "CLUSTER_AUTHORIZATION_FAILED" in ran.stderr) == (5, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("user", "set", "x"), "no terminal to ask for the password"),
        (("user", "set", "x", "--password", ""), "the password is empty"),
        (("user", "set", "x", "--password", "y", "--password-file", "-"), "exclude each other"),
        (("user", "set", "x", "--password", "y", "-i", "100"), "4096"),
        (("user", "set", "x", "--password", "y", "-m", "MD5"), "MD5"),
    ],
)
def test_mistakes(admin, arguments: tuple[str, ...], words: str) -> None:
    ran = admin(*arguments)
    assert (ran.code, words in ran.stderr) == (2, True), ran.stderr
