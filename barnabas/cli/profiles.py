"""`barnabas profile`: addresses and preferences under a name, in the user's file (`barnabas.cli.connect.settings`).

Changes keep the file's comments and order (tomlkit), and replace the file as a whole.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.connect.client_config import checked_key, is_security_key, shown
from barnabas.cli.connect.settings import (
    SETTINGS,
    SettingsError,
    Value,
    config_file,
    profile_in_use,
    profile_settings,
    read_file,
    setting_name,
    setting_with_source,
)
from barnabas.cli.options.parameters import key_values, output_option, yes_option
from barnabas.cli.options.patterns import ask_or_refuse
from barnabas.terminal.notes import note
from barnabas.terminal.suggestion import suggestion
from barnabas.terminal.tables import show_rows

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

KEYS = ", ".join(SETTINGS)


@click.group(cls=Group)
def profile() -> None:
    """List, choose and change profiles: addresses and preferences under a name.

    A profile is used with --profile NAME, with BARNABAS_PROFILE, or after 'barnabas profile use NAME'. An option of a
    command and the environment come before it.
    """


@profile.command("list")
@output_option
def list_(output: str) -> None:
    """List profiles."""
    current = profile_in_use()
    rows = [
        {"profile": name, "in_use": name == current, **{key: settings.get(key) for key in SETTINGS}}
        for name, settings in read_file()["profiles"].items()
    ]
    show_rows(
        rows,
        output,
        columns=("profile", "in_use", "bootstrap"),
        empty="no profiles; 'barnabas profile create NAME bootstrap=HOST:PORT' makes one",
    )


@profile.command()
@click.argument("name", required=False)
@output_option
def show(name: str | None, output: str) -> None:
    """Show the settings of a profile; without NAME the settings that commands use now, and where they come from."""
    if name is None:
        current = profile_settings()  # the profile in use must exist
        rows: list[dict[str, object]] = []
        for key in SETTINGS:
            value, source = setting_with_source(key)
            rows.append({"setting": key, "value": _plain(value), "source": _named(source, key)})
        rows += [
            {"setting": key, "value": shown(key, current[key]), "source": _named("profile", key)}
            for key in current
            if key not in SETTINGS
        ]
    else:
        rows = [{"setting": key, "value": shown(key, _plain(value))} for key, value in _existing(name).items()]
    show_rows(rows, output, empty=f"profile {name} has no settings")


def _plain(value: Value) -> Value:
    """5.0 as 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _named(source: str, key: str) -> str:
    if source == "environment":
        return SETTINGS[key].variable
    return {"profile": f"profile {profile_in_use()}"}.get(source, source)


@profile.command()
@click.argument("name")
def use(name: str) -> None:
    """Use a profile from now on."""
    _existing(name)
    document = _document()
    document["profile"] = name
    _save(document)
    click.echo(f"profile {name} is in use from now on")
    _warn_of_variables()


@profile.command()
def clear() -> None:
    """Use no profile from now on; all are kept."""
    document = _document()
    document.pop("profile", None)
    _save(document)
    click.echo("no profile is in use")


@profile.command()
@click.argument("name")
@click.argument("changes", nargs=-1, metavar="[KEY=VALUE]...")
def create(name: str, changes: tuple[str, ...]) -> None:
    """Create a profile and use it: 'barnabas profile create local bootstrap=127.0.0.1:9092'.

    Keys are bootstrap, timeout (seconds), output (table, wide, json, yaml), colour (auto, never), command-config (a
    client.properties of Kafka's), and the keys of TLS and SASL under Kafka's names.
    """
    if not name or not name.isprintable() or name != name.strip():
        raise click.UsageError(f"a profile's name must be printable, without spaces around it, not {name!r}")
    document = _document()
    if name in read_file()["profiles"]:
        raise click.UsageError(f"there is a profile {name}; 'barnabas profile set {name} KEY=VALUE' changes it")
    _table(document, name)
    _change(document, name, changes)
    document["profile"] = name
    _save(document)
    click.echo(f"created profile {name}; it is in use from now on")
    _warn_of_variables()


@profile.command("set")
@click.argument("name")
@click.argument("changes", nargs=-1, required=True, metavar="KEY=VALUE...")
def set_(name: str, changes: tuple[str, ...]) -> None:
    """Change settings of a profile; no value removes one, as in 'output='."""
    _existing(name)
    document = _document()
    _change(document, name, changes)
    _save(document)
    click.echo(f"changed profile {name}")


@profile.command()
@click.argument("name")
@yes_option
def delete(name: str, yes: bool) -> None:
    """Delete a profile. It asks first."""
    _existing(name)
    ask_or_refuse(f"Delete profile {name}?", f"this deletes profile {name}", yes=yes)
    document: Any = _document()
    del document["profiles"][name]
    if document.get("profile") == name:
        del document["profile"]
    _save(document)
    click.echo(f"deleted profile {name}")


@profile.command()
def path() -> None:
    """Print the path of the file that has the profiles."""
    click.echo(str(config_file()))


def _existing(name: str) -> dict[str, Any]:
    """The settings of a profile; NotFound if there is none of this name."""
    from barnabas.client.errors import NotFound

    profiles: dict[str, dict[str, Any]] = read_file()["profiles"]
    if name not in profiles:
        raise NotFound(f"there is no profile {name!r}{suggestion(name, profiles)}")
    return profiles[name]


def _warn_of_variables() -> None:
    for key, setting in SETTINGS.items():
        if os.environ.get(setting.variable):
            note(f"{setting.variable} is set and comes before the profile's {key}")


# --- the file


def _document() -> TOMLDocument:
    import tomlkit

    read_file()  # refuses a file with a mistake: it is not overwritten
    path = config_file()
    return tomlkit.parse(path.read_text()) if path.exists() else tomlkit.document()


def _table(document: TOMLDocument, name: str) -> Any:
    import tomlkit

    profiles = document.setdefault("profiles", tomlkit.table(is_super_table=True))
    return profiles.setdefault(name, tomlkit.table())


def _change(document: TOMLDocument, name: str, changes: tuple[str, ...]) -> None:
    table = _table(document, name)
    for word, text in key_values(changes, "KEY=VALUE").items():
        if is_security_key(word):
            try:
                _change_security(table, checked_key(word), text)
            except ValueError as error:
                raise SettingsError(str(error)) from None
            continue
        key = setting_name(word)
        if not text:
            table.pop(key, None)
            continue
        try:
            value = SETTINGS[key].parse(text)
        except ValueError as error:
            raise SettingsError(f"{word} {error}") from None
        table[key] = _plain(value)


def _change_security(table: Any, key: str, text: str) -> None:
    """Set a key of TLS or SASL, under its name in quotation marks; or remove it, however it is written."""
    table.pop(key, None)
    first, _, rest = key.partition(".")
    inner = table.get(first)
    if isinstance(inner, dict):  # written as `ssl.key.password = ...`, which is tables in TOML
        _change_security(inner, rest, "")
        if not inner:
            table.pop(first)
    if text:
        table[key] = text


def _save(document: TOMLDocument) -> None:
    import tomlkit

    path = config_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()  # a link into a repository of dot files stays a link
    beside = Path(f"{target}.new")
    beside.touch(0o600)  # it may have passwords
    beside.write_text(tomlkit.dumps(document))
    beside.replace(target)
