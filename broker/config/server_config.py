"""The broker's configuration: layers of settings over declared keys.

Strongest first: a running broker's own dynamic config, the dynamic default of all brokers, the command
line, the environment, the file, the profile, Kafka's default. `load` reads the static layers and finds every
mistake at once that stops a start (`ConfigError`); what is only worth a word is in `warnings`. Values are
typed by their key: `config[NUM_PARTITIONS]` is an int.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from barnabas.broker.config.environment import settings_from_environment
from barnabas.broker.config.keys import BROKER_KEYS, DYNAMIC_ONLY_KEYS
from barnabas.broker.config.keys.controller import CONTROLLER_LISTENER_NAMES, CONTROLLER_QUORUM_VOTERS
from barnabas.broker.config.keys.general import BROKER_ID, NODE_ID, PROCESS_ROLES
from barnabas.broker.config.keys.groups import GROUP_COORDINATOR_REBALANCE_PROTOCOLS
from barnabas.broker.config.keys.log import (
    LOG_DIR,
    LOG_DIRS,
    LOG_FLUSH_INTERVAL_MS,
    LOG_FLUSH_SCHEDULER_INTERVAL_MS,
)
from barnabas.broker.config.keys.network import ADVERTISED_LISTENERS, LISTENER_SECURITY_PROTOCOL_MAP, LISTENERS
from barnabas.broker.config.keys.own import ALWAYS, INTERVAL, LOG_SYNC, OS
from barnabas.broker.config.listeners import (
    Endpoint,
    check_advertised,
    check_ports,
    check_protocols,
    parse_endpoints,
    parse_protocol_map,
)
from barnabas.broker.config.profiles import CLAMPED_IN_DEV, profile_defaults
from barnabas.broker.config.properties import parse_properties
from barnabas.storage.log_config import SYNONYMS
from barnabas.wire.configdef import READ_ONLY, ConfigError, ConfigKey, format_value

T = TypeVar("T")

COMMAND_LINE: Final = "command line"
ENVIRONMENT: Final = "environment"

DYNAMIC_BROKER_CONFIG: Final = 2
DYNAMIC_DEFAULT_BROKER_CONFIG: Final = 3
STATIC_BROKER_CONFIG: Final = 4
DEFAULT_CONFIG: Final = 5

SYNC_INTERVAL_MS: Final = 1000
"""Longest time without a sync under `barnabas.log.sync=interval`, where Kafka's keys say nothing."""

UNUSED: Final = "known to Kafka, not acted on by Barnabas"


class ServerConfig:
    """The settings in force. Reading one is a dict lookup; `set_dynamic` changes what is in force."""

    def __init__(
        self, layers: list[tuple[str, Mapping[str, str]]], profile: str = "dev", cluster_id: str | None = None
    ) -> None:
        """Layers are (where they come from, settings by key as text), strongest first."""
        self.profile = profile
        self.cluster_id = cluster_id
        """The cluster id asked for by the environment (CLUSTER_ID); None leaves it to the data directory."""
        self.warnings: list[str] = []
        """Sentences about settings that have no effect, for the log."""
        self._profile = dict(profile_defaults(profile))
        self._static = {name: text for _, layer in reversed(layers) for name, text in layer.items()}
        self._dynamic: dict[str, str] = {}
        self._dynamic_default: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        self._drop_unknown(layers)
        self._check()

    def __getitem__(self, key: ConfigKey[T]) -> T:
        """The value in force."""
        try:
            return cast("T", self._values[key.name])
        except KeyError:
            value = self._values[key.name] = self._resolve(key)
            return value

    def _resolve(self, key: ConfigKey[T]) -> T:
        text = self._text(key.name)
        if text is None:
            return key.default
        value = key.parse(text)
        if self.profile == "dev" and key.name in CLAMPED_IN_DEV and isinstance(value, int):
            return cast("T", min(value, 1))
        return value

    def _text(self, name: str) -> str | None:
        for layer in (self._dynamic, self._dynamic_default, self._static, self._profile):
            if name in layer:
                return layer[name]
        return None

    def explicit(self, name: str) -> str | None:
        """What the user set on the command line, in the environment or in the file; None when nothing."""
        return self._static.get(name)

    def settle(self, key: ConfigKey[Any], text: str) -> None:
        """Fix what is only known once the broker starts, such as its temporary directory."""
        self._profile[key.name] = text
        self._values.pop(key.name, None)

    def settle_sync_policy(self, *, is_named: bool) -> None:
        """Fix when records are synced, unless the user says it: data in a place that was named is there to stay."""
        self.settle(LOG_SYNC, ALWAYS if is_named else OS)
        flush_interval = (LOG_FLUSH_INTERVAL_MS, LOG_FLUSH_SCHEDULER_INTERVAL_MS)
        if self[LOG_SYNC] == INTERVAL and all(self._text(key.name) is None for key in flush_interval):
            self.settle(LOG_FLUSH_INTERVAL_MS, str(SYNC_INTERVAL_MS))

    def set_dynamic(self, own: Mapping[str, str], default: Mapping[str, str]) -> set[str]:
        """Put a broker's own and all brokers' dynamic configs in force; gives the names whose value changed."""
        names = {*self._dynamic, *self._dynamic_default, *own, *default}
        keys = [key for name in names if (key := BROKER_KEYS.get(name))]
        before = {key.name: self[key] for key in keys}
        self._dynamic, self._dynamic_default = dict(own), dict(default)
        for name in names:
            self._values.pop(name, None)
        return {key.name for key in keys if self[key] != before[key.name]}

    def text_layers(self, name: str) -> list[tuple[int, str]]:
        """Every layer that says something about `name`, strongest first, as DescribeConfigs names its sources."""
        found = [
            (source, layer[name])
            for source, layer in (
                (DYNAMIC_BROKER_CONFIG, self._dynamic),
                (DYNAMIC_DEFAULT_BROKER_CONFIG, self._dynamic_default),
                (STATIC_BROKER_CONFIG, self._static),
                (DEFAULT_CONFIG, self._profile),
            )
            if name in layer
        ]
        key = BROKER_KEYS.get(name) or DYNAMIC_ONLY_KEYS.get(name)
        settled = name in self._profile or (key is not None and key.required and bool(found))
        if key is not None and not settled:
            default = key.format(key.default)
            if default is not None:
                found.append((DEFAULT_CONFIG, default))
        return found

    def topic_defaults(self) -> dict[str, str]:
        """Topic configs that this broker's settings give to topics which do not set their own, as text."""
        defaults: dict[str, str] = {}
        for topic_key, synonyms in SYNONYMS.items():
            for name, factor in synonyms:
                if self._text(name) is not None:
                    value = self[BROKER_KEYS[name]]
                    scaled = value if factor == 1 else max(-1, value * factor)
                    defaults[topic_key] = cast("str", format_value(scaled))
                    break
        return defaults

    @property
    def node_id(self) -> int:
        """This node's id: node.id, else Kafka's older broker.id, else 1."""
        if self.explicit(NODE_ID.name) is None and self[BROKER_ID] >= 0:
            return self[BROKER_ID]
        return self[NODE_ID]

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The data directories that were asked for; empty when none was."""
        if self._text(LOG_DIRS.name) is not None:
            return self[LOG_DIRS] or ()
        return self[LOG_DIR] if self._text(LOG_DIR.name) is not None else ()

    @property
    def listeners(self) -> list[Endpoint]:
        """The listeners for clients, in the order given; the controller's are left out."""
        unopened = {name.upper() for name in self[CONTROLLER_LISTENER_NAMES]}
        return [e for e in parse_endpoints(LISTENERS.name, self[LISTENERS]) if e.name not in unopened]

    @property
    def advertised_listeners(self) -> dict[str, Endpoint]:
        """Advertised addresses by listener name; a listener that is missing advertises what the client dialled."""
        unopened = {name.upper() for name in self[CONTROLLER_LISTENER_NAMES]}
        items = self[ADVERTISED_LISTENERS] or ()
        return {e.name: e for e in parse_endpoints(ADVERTISED_LISTENERS.name, items) if e.name not in unopened}

    @property
    def controller_listener(self) -> Endpoint | None:
        """Where Apache Kafka would put this node's controller listener, which is not opened here; None if nowhere."""
        named = {e.name: e for e in parse_endpoints(LISTENERS.name, self[LISTENERS])}
        items = self[ADVERTISED_LISTENERS] or ()
        named |= {e.name: e for e in parse_endpoints(ADVERTISED_LISTENERS.name, items)}
        names = [name.upper() for name in self[CONTROLLER_LISTENER_NAMES]]
        return next((named[name] for name in names if name in named), None)

    def _drop_unknown(self, layers: list[tuple[str, Mapping[str, str]]]) -> None:
        """Unknown keys: an error on the command line, a warning elsewhere. Known but unused ones: a warning."""
        for origin, layer in layers:
            for name in layer:
                if base_key(name) is not None or name not in self._static:
                    continue
                if origin == COMMAND_LINE:
                    raise ConfigError(f"Unknown config key {name} on the command line{_nearest(name)}")
                self.warnings.append(f"Unknown config key {name} in the {origin} is ignored")
                del self._static[name]
        for name in sorted(self._static):
            key = base_key(name)
            if key is not None and not key.used:
                self.warnings.append(f"{name} is {UNUSED}")

    def _check(self) -> None:
        """Everything that must hold before a broker may start."""
        for name, text in self._static.items():
            key = base_key(name)
            if key is not None:
                value = key.parse(text)
                if self.profile == "dev" and name in CLAMPED_IN_DEV and value > 1:
                    self.warnings.append(f"{name}={value} is more than the 1 broker there is: 1 is used (profile dev)")
        self._check_roles()
        self._check_retention()
        self._check_groups()
        endpoints = parse_endpoints(LISTENERS.name, self[LISTENERS])
        check_ports(endpoints)
        if not self.listeners:
            raise ConfigError("There must be at least one listener for clients in listeners")
        if len(endpoints) > len(self.listeners):
            unopened = ",".join(str(e) for e in endpoints if e not in self.listeners)
            self.warnings.append(f"Controller listener {unopened} is not opened: the controller is in this process")
        protocols = parse_protocol_map(self[LISTENER_SECURITY_PROTOCOL_MAP])
        check_protocols(self.listeners, protocols)
        check_advertised(list(self.advertised_listeners.values()), self.listeners)

    def _check_retention(self) -> None:
        """The strongest of the three settings of the retention time must be a time or -1, as Kafka's own start asks."""
        for name, _ in SYNONYMS["retention.ms"]:
            if self._text(name) is not None:
                if self[BROKER_KEYS[name]] == 0:
                    raise ConfigError(f"{name} must be unlimited (-1) or, equal or greater than 1")
                return

    def _check_groups(self) -> None:
        """The classic protocol is always there, and what holds for groups must be within the limits of groups."""
        if "classic" not in self[GROUP_COORDINATOR_REBALANCE_PROTOCOLS]:
            raise ConfigError("Disabling the 'classic' protocol is not supported.")
        if any(name.startswith(("group.consumer.", "group.share.", "group.streams.")) for name in self._static):
            from barnabas.broker.config.group_limits import check_limits

            check_limits(self.__getitem__)

    def _check_roles(self) -> None:
        if self.node_id < 0:
            raise ConfigError(f"node.id must be at least 0, not {self.node_id}")
        if set(self[PROCESS_ROLES]) != {"broker", "controller"}:
            raise ConfigError(
                f"process.roles={','.join(self[PROCESS_ROLES])} is not possible yet: "
                "Barnabas runs as broker and controller in one process (process.roles=broker,controller)"
            )
        if len(self[CONTROLLER_QUORUM_VOTERS]) > 1:
            raise ConfigError("controller.quorum.voters names several nodes, but Barnabas runs as a single node so far")


def _nearest(name: str) -> str:
    """`; did you mean x?` for a mistyped key, or nothing when none is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, BROKER_KEYS, 1, 0.8)
    return f"; did you mean {near[0]}?" if near else ""


def base_key(name: str) -> ConfigKey[Any] | None:
    """The declaration behind a setting's name, through a `listener.name.<listener>.` prefix; None when unknown."""
    if name in BROKER_KEYS:
        return BROKER_KEYS[name]
    if name.startswith("listener.name."):
        parts = name.split(".", 3)
        key = BROKER_KEYS.get(parts[3]) if len(parts) == 4 else None
        return key if key is not None and not key.used else None
    return None


def is_dynamic(name: str) -> bool:
    """Whether a running broker's config of this name can be changed."""
    key = BROKER_KEYS.get(name) or DYNAMIC_ONLY_KEYS.get(name)
    return key is not None and key.dynamic != READ_ONLY


def load(
    sets: Mapping[str, str],
    environment: Mapping[str, str],
    file: str | None,
    profile: str = "dev",
) -> ServerConfig:
    """Read all static layers. `sets` are the command line's; `file` is the path of a server.properties.

    ConfigError when the broker cannot start with them.
    """
    from_environment, ignored = settings_from_environment(environment)
    layers: list[tuple[str, Mapping[str, str]]] = [(COMMAND_LINE, sets), (ENVIRONMENT, from_environment)]
    if file is not None:
        layers.append((f"file {file}", read_file(file)))
    config = ServerConfig(layers, profile, environment.get("CLUSTER_ID") or None)
    config.warnings.extend(f"{variable} is for Kafka's JVM and ignored" for variable in ignored)
    return config


def read_file(path: str) -> dict[str, str]:
    """Read a properties file; ConfigError when that is not possible."""
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read the config file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"Cannot read the config file {path}: it is not UTF-8 text") from error
