"""Settings from options, the environment, profiles and defaults; `barnabas profile`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.broker.config.environment import NOT_SETTINGS
from barnabas.cli.completion.values import PATIENCE_VARIABLE
from barnabas.cli.connect.settings import PROFILE_VARIABLE, SETTINGS
from tests.support.cases import for_each
from tests.support.processes.commands import Ran, run_command

Command = Callable[..., Ran]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs a command with a configuration directory of its own."""

    def run(*arguments: str, **environment: str) -> Ran:
        return run_command(*arguments, XDG_CONFIG_HOME=str(tmp_path), **environment)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "barnabas").mkdir()
    return tmp_path / "barnabas" / "config.toml"


def settings(ran: Ran) -> dict[str, tuple[object, str]]:
    return {row["setting"]: (row["value"], row["source"]) for row in ran.ok().json}


def test_without_a_file_the_defaults_apply(command: Command) -> None:
    assert settings(command("profile", "show", "-o", "json")) == {
        "bootstrap": ("127.0.0.1:9092", "default"),
        "timeout": (30, "default"),
        "output": ("table", "default"),
        "command-config": ("", "default"),
        "colour": ("auto", "default"),
    }
    assert command("profile", "list").ok().stderr.startswith("no profiles; 'barnabas profile create NAME")


def test_option_before_environment_before_profile_before_default(command: Command, file: Path) -> None:
    file.write_text('profile = "a"\n[profiles.a]\nbootstrap = "h:1"\ntimeout = 5\n[profiles.b]\nbootstrap = "h:2"\n')
    show = ("profile", "show", "-o", "json")
    assert settings(command(*show))["bootstrap"] == ("h:1", "profile a")
    assert settings(command(*show))["timeout"] == (5, "profile a")
    assert settings(command(*show, BARNABAS_PROFILE="b"))["bootstrap"] == ("h:2", "profile b")
    assert settings(command("--profile", "b", *show, BARNABAS_PROFILE="a"))["bootstrap"] == ("h:2", "profile b")
    variable = {"BARNABAS_BOOTSTRAP_SERVERS": "h:3"}
    assert settings(command("--profile", "b", *show, **variable))["bootstrap"][0] == "h:3"
    assert settings(command("-X", "brokers=h:4", *show, **variable))["bootstrap"][0] == "h:4"


def test_a_command_uses_the_profile(command: Command, broker) -> None:
    command("profile", "create", "here", f"bootstrap={broker.bootstrap}", "output=json").ok()
    assert isinstance(command("topic", "list", "--internal").ok().json, list)
    assert command("api-versions", "-o", "table").ok().lines[0].startswith("KEY")
    assert json.loads(command("api-versions", BARNABAS_OUTPUT="json").ok().stdout)


def test_settings_stand_after_the_command_too(command: Command, broker) -> None:
    assert command("api-versions", "-X", f"brokers={broker.bootstrap}", "-X", "output=json").ok().json
    wrong = command("topic", "list", "-X", "brokers=127.0.0.1:1", "-b", broker.bootstrap)
    assert wrong.code == 0, "the command's own option comes first"


def test_profiles_are_created_used_changed_and_deleted(command: Command, file: Path) -> None:
    file.write_text("# mine\n")
    assert (
        command("profile", "create", "a", "bootstrap=h:1").ok().stdout
        == "created profile a; it is in use from now on\n"
    )
    command("profile", "create", "b", "timeout=2.5").ok()
    assert [(row["profile"], row["in_use"]) for row in command("profile", "list", "-o", "json").ok().json] == [
        ("a", False),
        ("b", True),
    ]
    command("profile", "use", "a").ok()
    command("profile", "set", "a", "output=yaml", "bootstrap=").ok()
    assert command("profile", "show", "a", "-o", "json").ok().json == [{"setting": "output", "value": "yaml"}]
    assert "# mine" in file.read_text()
    command("profile", "delete", "a", "-y").ok()
    assert 'profile = "a"' not in file.read_text()
    command("profile", "use", "b").ok()
    command("profile", "clear").ok()
    assert settings(command("profile", "show", "-o", "json"))["timeout"] == (30, "default")
    assert command("profile", "path").ok().stdout == f"{file}\n"


def test_a_link_stays_a_link(command: Command, file: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").write_text("")
    file.symlink_to(tmp_path / "dotfiles")
    command("profile", "create", "a").ok()
    assert file.is_symlink()
    assert 'profile = "a"' in (tmp_path / "dotfiles").read_text()


def test_a_variable_that_hides_the_profile_is_named(command: Command) -> None:
    ran = command("profile", "create", "a", "bootstrap=h:1", BARNABAS_BOOTSTRAP_SERVERS="h:2").ok()
    assert ran.stderr == "BARNABAS_BOOTSTRAP_SERVERS is set and comes before the profile's bootstrap\n"


@for_each(
    ("content", "sentence"),
    [
        ("profile = ?", "is not TOML: Invalid value (at line 1, column 11)"),
        ('profil = "a"', "unknown key profil; did you mean profile?; there are profile, profiles"),
        ("profile = 3", "profile must be the name of a profile, not 3"),
        ('profile = "local"\n[profiles.lokal]', "no such profile: local; did you mean lokal?; the profiles are lokal"),
        ("profiles = 1", "profiles must be tables"),
        ("[profiles]\na = 1", "profiles must be tables"),
        ("[profiles.a]\nbotstrap = 'h:1'", "unknown key profiles.a.botstrap; did you mean bootstrap?"),
        ("[profiles.a]\nbootstrap = 'h:x'", "profiles.a.bootstrap must be HOST:PORT"),
        ("[profiles.a]\nbootstrap = 9092", "profiles.a.bootstrap must be HOST:PORT"),
        ("[profiles.a]\ntimeout = 0", "profiles.a.timeout must be a number of seconds above 0, not 0"),
        ("[profiles.a]\ntimeout = true", "profiles.a.timeout must be a number of seconds above 0, not True"),
        ("[profiles.a]\noutput = 'xml'", "profiles.a.output must be one of table, wide, json, yaml, not 'xml'"),
        ("[profiles.a]\ncolour = true", "profiles.a.colour must be one of auto, never, not True"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(command: Command, file: Path, content: str, sentence: str) -> None:
    file.write_text(content)
    ran = command("topic", "list")
    assert (ran.code, ran.stdout) == (2, "")
    assert sentence in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert command("-h").code == 0
    assert file.read_text() == content


@for_each(
    ("arguments", "code", "sentence"),
    [
        (["profile", "use", "x"], 3, "there is no profile 'x'"),
        (["profile", "delete", "x"], 3, "there is no profile 'x'"),
        (["profile", "show", "x"], 3, "there is no profile 'x'"),
        (["profile", "create", "x", "bootstrp=h:1"], 2, "no such setting: bootstrp; did you mean bootstrap?"),
        (["profile", "create", "x", "timeout=soon"], 2, "timeout must be a number of seconds above 0, not 'soon'"),
        (["profile", "create", "x", "timeout=nan"], 2, "timeout must be a number of seconds above 0, not 'nan'"),
        (["profile", "create", " "], 2, "a profile's name must be printable"),
        (["--profile", "x", "topic", "list"], 2, "no such profile: x"),
        (["topic", "list", "-X", "broker"], 2, "must be KEY=VALUE, not 'broker'"),
        (["topic", "list", "-X", "brokrs=x"], 2, "no such setting: brokrs; did you mean brokers?"),
        (["topic", "list", "-X", "output=xml"], 2, "-X output must be one of table, wide, json, yaml, not 'xml'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_in_a_command_is_one_sentence(
    command: Command, file: Path, arguments: list[str], code: int, sentence: str
) -> None:
    ran = command(*arguments)
    assert (ran.code, ran.stdout) == (code, "")
    assert sentence in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not file.exists()


@pytest.mark.parametrize("variable", ["BARNABAS_TIMEOUT", "BARNABAS_OUTPUT", "BARNABAS_COLOUR"])
def test_a_mistake_in_a_variable_names_it(command: Command, variable: str) -> None:
    ran = command("topic", "list", **{variable: "x"})
    assert ran.code == 2
    assert ran.stderr.startswith(f"barnabas: {variable} must be")


def test_create_does_not_replace_a_profile(command: Command) -> None:
    command("profile", "create", "a", "timeout=1").ok()
    ran = command("profile", "create", "a")
    assert ran.code == 2
    assert "there is a profile a; 'barnabas profile set a KEY=VALUE' changes it" in ran.stderr


def test_home_has_the_file_without_xdg_config_home(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": "", "HOME": str(tmp_path)}
    run_command("profile", "create", "a", **environment).ok()
    assert (tmp_path / ".config" / "barnabas" / "config.toml").exists()


def test_variables_of_the_command_line_are_no_keys_of_a_broker() -> None:
    variables = {setting.variable for setting in SETTINGS.values()} | {PROFILE_VARIABLE, PATIENCE_VARIABLE}
    assert variables <= NOT_SETTINGS
