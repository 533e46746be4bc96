"""Where the command line takes TLS and SASL from, and that it shows no secret. The broker needs no Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes.commands import Ran, run_command

SECRET = "s3cr3t-of-the-test"
NOBODY = "127.0.0.1:1"


def profile(tmp_path: Path, text: str) -> dict[str, str]:
    """The environment of a user with this file of profiles."""
    folder = tmp_path / "barnabas"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def refused(ran: Ran, words: str) -> None:
    assert (ran.code, len(ran.stderr.splitlines())) == (2, 1), ran.stderr
    assert words in ran.stderr
    assert SECRET not in ran.stderr


def test_keys_of_x_are_used_and_checked() -> None:
    secured = ["topic", "list", "-b", NOBODY, "-X", "security.protocol=SASL_SSL"]
    refused(run_command(*secured), "sasl.mechanism must be one of")
    refused(run_command(*secured, "-X", "sasl.mechanisms=PLAIN", "-X", f"pass={SECRET}"), "needs a user and a password")
    refused(run_command("topic", "list", "-b", NOBODY, "-X", f"ssl.passwords={SECRET}"), "ssl.passwords is not among")
    before = run_command("-X", "security.protocol=X", "topic", "list", "-b", NOBODY)
    refused(before, "security.protocol must be one of")


def test_a_file_of_kafkas_is_used(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "bootstrap.servers=127.0.0.1:1\nacks=all\nsecurity.protocol = SASL_SSL\nsasl.mechanism: PLAIN\n"
        f'sasl.jaas.config=x.PlainLoginModule required \\\n  username="alice" \\\n  password="{SECRET}"\n'
    )
    ran = run_command("topic", "list", "--command-config", str(path))
    assert ran.code == 2
    assert "no effect in commands: acks" in ran.stderr
    assert "not terminated by semi-colon" in ran.stderr
    assert SECRET not in ran.stderr
    path.write_text("bootstrap.servers=127.0.0.1:1\n")
    for ran in (
        run_command("topic", "list", "--command-config", str(path)),
        run_command("--command-config", str(path), "topic", "list"),
        run_command("topic", "list", BARNABAS_COMMAND_CONFIG=str(path)),
    ):
        assert (ran.code, "no broker answers at 127.0.0.1:1 " in ran.stderr) == (1, True)
    ran = run_command("topic", "list", "--command-config", str(path), "-b", "127.0.0.1:2")
    assert "no broker answers at 127.0.0.1:2 " in ran.stderr
    refused(run_command("topic", "list", "--command-config", "/no/such"), "/no/such: no such file")


def test_a_profile_has_the_same_keys_and_hides_secrets(tmp_path: Path) -> None:
    text = (
        f'profile = "p"\n[profiles.p]\nbootstrap = "{NOBODY}"\nsecurity.protocol = "SASL_PLAINTEXT"\n'
        f'"sasl.mechanism" = "PLAIN"\nsasl.username = "alice"\nsasl.password = "{SECRET}"\n'
    )
    home = profile(tmp_path, text)
    for arguments in (("profile", "show"), ("profile", "show", "p"), ("profile", "list", "-o", "json")):
        shown = run_command(*arguments, **home).ok()
        assert SECRET not in shown.stdout + shown.stderr
    fields = {row["setting"]: row["value"] for row in run_command("profile", "show", "p", "-o", "json", **home).json}
    assert fields["sasl.password"] == "[hidden]"
    assert fields["sasl.username"] == "alice"
    assert "no broker answers" in run_command("topic", "list", **home).stderr
    refused(run_command("topic", "list", "-X", "sasl.mechanism=GSSAPI", **home), "not GSSAPI")
    # A file is a whole configuration: without a mechanism of its own it does not take the profile's.
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_PLAINTEXT\n")
    refused(run_command("topic", "list", "--command-config", str(path), **home), "sasl.mechanism must be one of")


def test_a_profile_is_changed_and_its_file_is_private(tmp_path: Path) -> None:
    home = profile(tmp_path, '[profiles.p]\nsecurity.protocol = "SSL"\n')
    run_command("profile", "set", "p", f"sasl.password={SECRET}", "security.protocol=SASL_SSL", **home).ok()
    path = tmp_path / "barnabas" / "config.toml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().count("protocol") == 1
    run_command("profile", "set", "p", "sasl.password=", **home).ok()
    rows = run_command("profile", "show", "p", "-o", "json", **home).json
    assert rows == [{"setting": "security.protocol", "value": "SASL_SSL"}]
    refused(run_command("profile", "set", "p", f"sasl.pasword={SECRET}", **home), "sasl.pasword is not among")


@pytest.mark.parametrize("line", ["security.protocl = 'SSL'", "ssl.key.password = 5", "'pass' = 'x'"])
def test_a_mistake_in_the_profiles_is_one_sentence(tmp_path: Path, line: str) -> None:
    ran = run_command("topic", "list", **profile(tmp_path, f"profile = 'p'\n[profiles.p]\n{line}\n"))
    assert (ran.code, len(ran.stderr.splitlines())) == (2, 1), ran.stderr
    assert "config.toml" in ran.stderr


def test_kafkas_tools_take_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.password={SECRET}\n")
    ran = run_command("kafka-topics", "--list", "--bootstrap-server", NOBODY, "--command-config", str(path))
    assert ran.code == 1
    assert "needs a user and a password" in ran.stderr
    assert SECRET not in ran.stderr
    assert "no effect" not in ran.stderr


def test_cat_takes_them_as_kcat_does() -> None:
    refused(run_command("cat", "-L", "-b", NOBODY, "-X", "security.protocol=SASL_SSL"), "sasl.mechanism must be one of")
    refused(run_command("cat", "-L", "-b", NOBODY, "-X", f"sasl.passwort={SECRET}"), "sasl.passwort is not among")
