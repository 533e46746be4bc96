"""Settings of the command line: from an option, the environment, a profile of the user's file, or a default.

The first of these that has a setting wins: the option of the command (also as `-X KEY=VALUE`), the environment
(`BARNABAS_BOOTSTRAP_SERVERS` ...), the profile, the default. The profile is that of `--profile`, of
`BARNABAS_PROFILE`, or the file's `profile`. The file is `barnabas/config.toml` in `XDG_CONFIG_HOME` or `~/.config`:

    profile = "local"

    [profiles.local]
    bootstrap = "127.0.0.1:9092"
    timeout = 10
    output = "json"
    colour = "never"
    security.protocol = "SASL_SSL"      # and other keys of TLS and SASL (`barnabas.cli.connect.security`)

It is read when a setting is needed. A mistake in it is one sentence and exit code 2.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from barnabas.terminal.suggestion import suggestion
from barnabas.terminal.tables import OUTPUTS

PROFILE_VARIABLE: Final = "BARNABAS_PROFILE"
COLOURS: Final = ("auto", "never")
Value = str | int | float


class SettingsError(Exception):
    """A setting is wrong, in the environment, in the user's file or on the command line; the text is one sentence."""


@dataclass
class Setting:
    """One setting: its default, its variable in the environment, and how a value is checked."""

    default: Value
    variable: str
    check: Callable[[object], Value]
    what: str

    def parse(self, text: str) -> Value:
        """A value from a text. ValueError, a sentence, if it is not allowed."""
        try:
            return self.check(float(text) if isinstance(self.default, float) else text)
        except ValueError:
            raise ValueError(f"{self.what}, not {text!r}") from None

    def checked(self, value: object) -> Value:
        """The value of a file. ValueError, a sentence, if it is not allowed."""
        try:
            return self.check(value)
        except ValueError:
            raise ValueError(f"{self.what}, not {value!r}") from None


def _addresses(value: object) -> str:
    from barnabas.client.cluster import parse_addresses

    if not isinstance(value, str):
        raise ValueError
    parse_addresses(value)
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError
    return float(value)


def _path(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return str(Path(value).expanduser()) if value else value


def _choice(words: tuple[str, ...]) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError
        return value

    return check


SETTINGS: Final[Mapping[str, Setting]] = {
    "bootstrap": Setting(
        "127.0.0.1:9092", "BARNABAS_BOOTSTRAP_SERVERS", _addresses, "must be HOST:PORT, or several separated by commas"
    ),
    "timeout": Setting(30.0, "BARNABAS_TIMEOUT", _seconds, "must be a number of seconds above 0"),
    "output": Setting("table", "BARNABAS_OUTPUT", _choice(OUTPUTS), f"must be one of {', '.join(OUTPUTS)}"),
    "command-config": Setting("", "BARNABAS_COMMAND_CONFIG", _path, "must be the path of a file"),
    "colour": Setting("auto", "BARNABAS_COLOUR", _choice(COLOURS), f"must be one of {', '.join(COLOURS)}"),
}
ALIASES: Final[Mapping[str, str]] = {"brokers": "bootstrap", "bootstrap.servers": "bootstrap", "color": "colour"}
"""Names that rpk and Kafka's clients use, for `-X` and `profile set`."""


def config_file() -> Path:
    """The user's file; it need not exist."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".config") / "barnabas" / "config.toml"


def setting_name(word: str) -> str:
    """The setting that a word names. `SettingsError`, with a suggestion, if there is none."""
    name = ALIASES.get(word, word)
    if name not in SETTINGS:
        raise SettingsError(
            f"no such setting: {word}{suggestion(word, (*SETTINGS, *ALIASES))}; there are {', '.join(SETTINGS)}"
        )
    return name


def profile_in_use() -> str | None:
    """The name of the profile whose settings apply, if one was chosen."""
    return os.environ.get(PROFILE_VARIABLE) or read_file().get("profile")


def profile_settings() -> Mapping[str, Value]:
    """The settings of the profile in use. `SettingsError` if it does not exist."""
    name = profile_in_use()
    if not name:
        return {}
    profiles = read_file()["profiles"]
    if name not in profiles:
        known = f"; the profiles are {', '.join(profiles)}" if profiles else f"; {config_file()} has none"
        raise SettingsError(f"no such profile: {name}{suggestion(name, profiles)}{known}")
    profile: Mapping[str, Value] = profiles[name]
    return profile


def setting(name: str) -> Value:
    """The value of a setting without its option: from the environment, the profile in use, or its default."""
    return setting_with_source(name)[0]


def setting_with_source(name: str) -> tuple[Value, str]:
    """The value of a setting, and what set it: `environment`, `command-config`, `profile` or `default`."""
    known = SETTINGS[name]
    if text := os.environ.get(known.variable):
        try:
            return known.parse(text), "environment"
        except ValueError as error:
            raise SettingsError(f"{known.variable} {error}") from None
    if name == "bootstrap" and (address := _configured_bootstrap("environment")):
        return address, "command-config"
    profile = profile_settings()
    if name in profile:
        return profile[name], "profile"
    if name == "bootstrap" and (address := _configured_bootstrap("profile")):
        return address, "command-config"
    return known.default, "default"


def _configured_bootstrap(source: str) -> str | None:
    """`bootstrap.servers` of the file of Kafka's client.properties, if that was set by `source`."""
    path, path_source = setting_with_source("command-config")
    if path_source != source:
        return None
    from barnabas.cli.connect.client_config import command_config

    try:
        return command_config(str(path)).get("bootstrap.servers")
    except ValueError as error:
        raise SettingsError(str(error)) from None


def override(word: str, text: str) -> None:
    """Set a setting for this command, as its option would (`-X`). `SettingsError` if the value is not allowed."""
    name = setting_name(word)
    try:
        SETTINGS[name].parse(text)
    except ValueError as error:
        raise SettingsError(f"-X {word} {error}") from None
    os.environ[SETTINGS[name].variable] = text


def apply_colour() -> None:
    """Let the setting `colour` take effect on everything that is written from now on."""
    if setting("colour") == "never":
        os.environ["NO_COLOR"] = "1"


@cache
def read_file() -> dict[str, Any]:
    """The checked content of the user's file: `profile` and `profiles`; empty if it does not exist."""
    path = config_file()
    try:
        text = path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return {"profiles": {}}
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None
    import tomllib

    try:
        return _checked(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from None


def _checked(content: dict[str, Any]) -> dict[str, Any]:
    _no_other_keys("", content, ("profile", "profiles"))
    profiles = content.setdefault("profiles", {})
    if not isinstance(profiles, dict) or not all(isinstance(profile, dict) for profile in profiles.values()):
        raise ValueError("profiles must be tables, as [profiles.local]")
    if not isinstance(content.get("profile", ""), str):
        raise ValueError(f"profile must be the name of a profile, not {content['profile']!r}")
    for name, profile in profiles.items():
        settings = profiles[name] = _flat(profile)
        secured = {key for key in settings if key.startswith(_SECURITY)}
        _no_other_keys(f"profiles.{name}.", settings.keys() - secured, tuple(SETTINGS))
        for key, value in settings.items():
            try:
                settings[key] = _checked_security(key, value) if key in secured else SETTINGS[key].checked(value)
            except ValueError as error:
                raise ValueError(f"profiles.{name}.{key} {error}") from None
    return content


_SECURITY = ("security.", "sasl.", "ssl.")
"""How the keys of TLS and SASL begin."""


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A table whose keys with dots may be tables in TOML: `security.protocol = "SSL"`."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _checked_security(key: str, value: object) -> str:
    from barnabas.cli.connect.client_config import checked_key

    if checked_key(key) != key or not isinstance(value, str):
        raise ValueError("must be a text, under Kafka's name")
    return value


def _no_other_keys(where: str, keys: Iterable[str], known: tuple[str, ...]) -> None:
    for key in keys:
        if key not in known:
            raise ValueError(f"unknown key {where}{key}{suggestion(key, known)}; there are {', '.join(known)}")
