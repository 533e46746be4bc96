"""Reads the configuration of a broker from the command line, the environment and a properties file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.broker.config.checks import check
from barnabas.broker.config.environment import settings_from_environment
from barnabas.broker.config.keys import BROKER_KEYS
from barnabas.broker.config.keys.general import PROCESS_ROLES
from barnabas.broker.config.keys.network import LISTENERS
from barnabas.broker.config.profiles import CONTAINER, KAFKA
from barnabas.broker.config.server_config import UNUSED, ServerConfig, base_key
from barnabas.wire.configdef import ConfigError
from barnabas.wire.properties import parse_properties

if TYPE_CHECKING:
    from barnabas.broker.config.options import ServeOptions

COMMAND_LINE: Final = "command line"
ENVIRONMENT: Final = "environment"

Layer: TypeAlias = tuple[str, Mapping[str, str]]
"""The source of settings, and their texts by key."""


def load_options(options: ServeOptions) -> ServerConfig:
    """`load` with the options of `barnabas serve`."""
    return load(
        options.sets,
        options.environment,
        options.config_file,
        options.profile,
        in_container=options.in_container,
        defaults=options.defaults,
    )


def load(
    sets: Mapping[str, str],
    environment: Mapping[str, str],
    file: str | None,
    profile: str = "dev",
    *,
    in_container: bool = False,
    defaults: Mapping[str, str] | None = None,
) -> ServerConfig:
    """Read the static settings: from the command line (`sets`), the environment and a properties file.

    `defaults` are weaker than every setting. In a container the listeners have other defaults (`profiles.CONTAINER`),
    unless `listeners` is set. A broker whose controllers are other processes has Kafka's defaults, like the other
    brokers of its cluster, unless a supervisor that starts all of them sets others. Raises ConfigError if the broker
    cannot start with them.
    """
    from_environment, ignored = settings_from_environment(environment)
    layers: list[Layer] = [(COMMAND_LINE, sets), (ENVIRONMENT, from_environment)]
    if file is not None:
        layers.append((f"file {file}", read_file(file)))
    settings, warnings = _known_settings(layers)
    if not defaults and settings.get(PROCESS_ROLES.name, "").strip() == "broker":
        profile = KAFKA
    config = ServerConfig(settings, profile, environment.get("CLUSTER_ID") or None)
    if in_container and LISTENERS.name not in settings:
        config.set_defaults(CONTAINER)
    if defaults:
        config.set_defaults(defaults)
    config.warnings.extend(warnings)
    check(config)
    config.warnings.extend(f"{variable} is for Kafka's JVM and ignored" for variable in ignored)
    return config


def read_file(path: str) -> dict[str, str]:
    """Read a properties file. ConfigError if that fails."""
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read the config file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"Cannot read the config file {path}: it is not UTF-8 text") from error


def _known_settings(layers: list[Layer]) -> tuple[dict[str, str], list[str]]:
    """Merge the layers and leave out unknown keys; returns the settings and the warnings.

    An unknown key raises ConfigError on the command line, and is a warning elsewhere.
    """
    settings = {name: text for _, layer in reversed(layers) for name, text in layer.items()}
    warnings: list[str] = []
    for origin, layer in layers:
        for name in layer:
            if base_key(name) is not None or name not in settings:
                continue
            if origin == COMMAND_LINE:
                raise ConfigError(f"Unknown config key {name} on the command line{_nearest(name)}")
            warnings.append(f"Unknown config key {name} in the {origin} is ignored{_nearest(name)}")
            del settings[name]
    for name in sorted(settings):
        key = base_key(name)
        if key is not None and not key.used:
            warnings.append(f"{name} is {UNUSED}")
    return settings, warnings


def _nearest(name: str) -> str:
    """`; did you mean x?` if a known key is similar, otherwise nothing."""
    from difflib import get_close_matches

    near = get_close_matches(name, BROKER_KEYS, 1, 0.8)
    return f"; did you mean {near[0]}?" if near else ""
