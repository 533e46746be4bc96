"""TLS and SASL of the command line: from `-X KEY=VALUE`, a file of Kafka's client.properties, or a profile.

The file of `--command-config` (or `BARNABAS_COMMAND_CONFIG`) is a whole configuration: it replaces what the profile
says of TLS and SASL. Single keys of `-X` come before both. They are kept in click's context and not, as other settings,
in the environment, which the programs that a command starts would inherit. `client.security` is imported only if
there is a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from barnabas.cli.connect.client_config import checked_key, command_config, is_security_key
from barnabas.cli.connect.settings import SettingsError, profile_settings, setting_with_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.client.security.settings import Security

META: Final = "barnabas.cli.connect.security"


def override_security(ctx: click.Context, word: str, value: str) -> None:
    """Set a key for this command (`-X`). `SettingsError` for an unknown one."""
    try:
        ctx.meta.setdefault(META, {})[checked_key(word)] = value
    except ValueError as error:
        raise SettingsError(str(error)) from None


def security(properties: Mapping[str, str] | None = None) -> Security | None:
    """What secures the connections of this command; None if nothing does. `SettingsError` for a mistake.

    `properties` are keys of the command's own options.
    """
    try:
        merged = security_properties() | dict(properties or {})
        if not merged:
            return None
        from barnabas.client.security.settings import security_from

        return security_from(merged)
    except ValueError as error:
        raise SettingsError(str(error)) from None


def security_properties() -> dict[str, str]:
    """The keys of TLS and SASL of this command: from a file, the profile and `-X`. `SettingsError`, ValueError."""
    path, source = setting_with_source("command-config")
    of_profile = {key: str(value) for key, value in profile_settings().items() if is_security_key(key)}
    chosen = {} if path and source == "environment" else of_profile
    if path:
        of_file = {key: value for key, value in command_config(str(path)).items() if is_security_key(key)}
        chosen = of_file | chosen
    context = click.get_current_context(silent=True)
    return chosen | ({} if context is None else context.meta.get(META, {}))
