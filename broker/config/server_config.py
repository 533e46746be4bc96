"""The broker's configuration: typed values of the declared keys, from several layers of settings.

The layers, strongest first: the dynamic configs of this broker, the dynamic defaults of all brokers, the static
settings (`load`), the profile, Kafka's defaults. `config[NUM_PARTITIONS]` is an int.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, Final, TypeVar, cast

from barnabas.broker.config.keys import BROKER_KEYS, DYNAMIC_ONLY_KEYS
from barnabas.broker.config.keys.controller import CONTROLLER_LISTENER_NAMES
from barnabas.broker.config.keys.general import BROKER_ID, NODE_ID, PROCESS_ROLES, SECURITY_INTER_BROKER_PROTOCOL
from barnabas.broker.config.keys.log import (
    LOG_DIR,
    LOG_DIRS,
    LOG_FLUSH_INTERVAL_MS,
    LOG_FLUSH_SCHEDULER_INTERVAL_MS,
)
from barnabas.broker.config.keys.network import (
    ADVERTISED_LISTENERS,
    INTER_BROKER_LISTENER_NAME,
    LISTENER_SECURITY_PROTOCOL_MAP,
    LISTENERS,
)
from barnabas.broker.config.keys.own import ALWAYS, INTERVAL, LOG_SYNC, OS
from barnabas.broker.config.listener_keys import PER_LISTENER, SASL_KEYS, declared, listener_key, sasl_key, split
from barnabas.broker.config.listeners import (
    TLS_PROTOCOLS,
    Endpoint,
    parse_endpoints,
    parse_protocol_map,
)
from barnabas.broker.config.profiles import CLAMPED_IN_DEV, profile_defaults
from barnabas.storage.topic_keys import SYNONYMS
from barnabas.wire.configdef import ConfigKey, format_value

T = TypeVar("T")

DYNAMIC_BROKER_CONFIG: Final = 2
DYNAMIC_DEFAULT_BROKER_CONFIG: Final = 3
STATIC_BROKER_CONFIG: Final = 4
DEFAULT_CONFIG: Final = 5

_BOTH_ROLES: Final = frozenset({"broker", "controller"})

SYNC_INTERVAL_MS: Final = 1000
"""log.flush.interval.ms with `barnabas.log.sync=interval` if none of Kafka's flush intervals is set."""

UNUSED: Final = "known to Kafka, not acted on by Barnabas"


class ServerConfig:
    """The effective settings. Reading one is a dict lookup; `set_dynamic` changes them."""

    def __init__(self, static: Mapping[str, str], profile: str = "dev", cluster_id: str | None = None) -> None:
        """`static` has the texts of known keys. ConfigError for an unknown profile."""
        self.profile = profile
        self.cluster_id = cluster_id
        """The cluster id that the environment sets (CLUSTER_ID); None if the data directory decides."""
        self.warnings: list[str] = []
        """Sentences about settings that have no effect, for the log."""
        self.static = static
        """The texts that the user has set on the command line, in the environment or in the file, by key."""
        self._profile = dict(profile_defaults(profile))
        self._dynamic: dict[str, str] = {}
        self._dynamic_default: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def __getitem__(self, key: ConfigKey[T]) -> T:
        """The effective value of a key."""
        try:
            return cast("T", self._values[key.name])
        except KeyError:
            value = self._values[key.name] = self._resolve(key)
            return value

    def of_listener(self, key: ConfigKey[T], listener: str) -> T:
        """The effective value of a key for one listener: its own (`listener.name.<listener>.`), else the broker's."""
        own = self[listener_key(key, listener)]
        return self[key] if own is None else cast("T", own)

    def of_mechanism(self, key: ConfigKey[T], listener: str, mechanism: str | None = None) -> T:
        """The effective value of a key of SASL: the mechanism's, else the listener's, else the broker's."""
        names = (
            [sasl_key(key, listener)]
            if mechanism is None
            else [sasl_key(key, listener, mechanism), sasl_key(key, listener)]
        )
        for own in names:
            if (text := self.static.get(own.name)) is not None:
                return cast("T", own.parse(text))
        return self[key]

    def _resolve(self, key: ConfigKey[T]) -> T:
        text = self.text(key.name)
        if text is None:
            return key.default
        value = key.parse(text)
        if self.clamps_replicas and key.name in CLAMPED_IN_DEV and isinstance(value, int):
            return cast("T", min(value, 1))
        return value

    def text(self, name: str) -> str | None:
        """The text of a key in the strongest layer that sets it; None if only its default is left."""
        for layer in (self._dynamic, self._dynamic_default, self.static, self._profile):
            if name in layer:
                return layer[name]
        return None

    def set_default(self, key: ConfigKey[Any], text: str) -> None:
        """Set a default that is computed at start, such as the temporary directory."""
        self._profile[key.name] = text
        self._values.pop(key.name, None)

    def set_defaults(self, texts: Mapping[str, str]) -> None:
        """Set defaults that depend on how the broker was started, by key; settings of the user override them."""
        self._profile.update(texts)
        self._values.clear()

    def override(self, key: ConfigKey[Any], text: str) -> None:
        """Set a key as on the command line, over what the user has set."""
        self.static = {**self.static, key.name: text}
        self._values.pop(key.name, None)

    def set_default_flush_policy(self, *, is_temporary: bool) -> None:
        """Set the default of `barnabas.log.sync`: `os` if the data directory is temporary, otherwise `always`."""
        self.set_default(LOG_SYNC, OS if is_temporary else ALWAYS)
        flush_interval = (LOG_FLUSH_INTERVAL_MS, LOG_FLUSH_SCHEDULER_INTERVAL_MS)
        if self[LOG_SYNC] == INTERVAL and all(self.text(key.name) is None for key in flush_interval):
            self.set_default(LOG_FLUSH_INTERVAL_MS, str(SYNC_INTERVAL_MS))

    def set_dynamic(self, own: Mapping[str, str], default: Mapping[str, str]) -> set[str]:
        """Replace the dynamic configs of this broker and of all brokers; returns the keys whose value has changed."""
        names = {*self._dynamic, *self._dynamic_default, *own, *default}
        keys = [key for name in names if (key := base_key(name)) and key.name == name]
        before = {key.name: self[key] for key in keys}
        self._dynamic, self._dynamic_default = dict(own), dict(default)
        for name in names:
            self._values.pop(name, None)
        return {key.name for key in keys if self[key] != before[key.name]}

    def with_dynamic(self, own: Mapping[str, str], default: Mapping[str, str]) -> ServerConfig:
        """The same settings with other dynamic configs, to check the effect of these."""
        other = copy(self)
        other._dynamic, other._dynamic_default, other._values = dict(own), dict(default), {}
        return other

    def text_layers(self, name: str) -> list[tuple[int, str]]:
        """The texts of all layers that set `name`, strongest first, with DescribeConfigs' number of the layer."""
        layers = [
            (source, layer[name])
            for source, layer in (
                (DYNAMIC_BROKER_CONFIG, self._dynamic),
                (DYNAMIC_DEFAULT_BROKER_CONFIG, self._dynamic_default),
                (STATIC_BROKER_CONFIG, self.static),
                (DEFAULT_CONFIG, self._profile),
            )
            if name in layer
        ]
        key = BROKER_KEYS.get(name) or DYNAMIC_ONLY_KEYS.get(name)
        settled = name in self._profile or (key is not None and key.required and bool(layers))
        if key is not None and not settled:
            default = key.format(key.default)
            if default is not None:
                layers.append((DEFAULT_CONFIG, default))
        return layers

    def topic_defaults(self) -> dict[str, str]:
        """The topic configs, as text, that the broker's settings give to topics without their own."""
        defaults: dict[str, str] = {}
        for topic_key, synonyms in SYNONYMS.items():
            for name, factor in synonyms:
                if self.text(name) is not None:
                    value = self[BROKER_KEYS[name]]
                    scaled = value if factor == 1 else max(-1, value * factor)
                    defaults[topic_key] = cast("str", format_value(scaled))
                    break
        return defaults

    @property
    def node_id(self) -> int:
        """This node's id: node.id, else Kafka's older broker.id, else 1."""
        if self.static.get(NODE_ID.name) is None and self[BROKER_ID] >= 0:
            return self[BROKER_ID]
        return self[NODE_ID]

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The configured data directories; empty if there are none."""
        if self.text(LOG_DIRS.name) is not None:
            return self[LOG_DIRS] or ()
        return self[LOG_DIR] if self.text(LOG_DIR.name) is not None else ()

    @property
    def clamps_replicas(self) -> bool:
        """Whether numbers of replicas are reduced to one, since a node without process.roles is the only broker."""
        return self.profile == "dev" and PROCESS_ROLES.name not in self.static

    @property
    def roles(self) -> frozenset[str]:
        """The roles of this process: `broker`, `controller` or both."""
        return frozenset(self[PROCESS_ROLES])

    @property
    def is_standalone(self) -> bool:
        """Whether this process is a cluster of its own: broker and controller, without a controller listener."""
        return self.roles == _BOTH_ROLES and not self.controller_listeners

    @property
    def listeners(self) -> list[Endpoint]:
        """The listeners for clients, in the configured order, without the controller's."""
        others = {name.upper() for name in self[CONTROLLER_LISTENER_NAMES]}
        return [e for e in parse_endpoints(LISTENERS.name, self[LISTENERS]) if e.name not in others]

    @property
    def controller_listeners(self) -> list[Endpoint]:
        """The listeners for brokers and tools that this process opens as a controller; needs process.roles."""
        if PROCESS_ROLES.name not in self.static or "controller" not in self.roles:
            return []
        names = {name.upper() for name in self[CONTROLLER_LISTENER_NAMES]}
        return [e for e in parse_endpoints(LISTENERS.name, self[LISTENERS]) if e.name in names]

    @property
    def security_protocols(self) -> dict[str, str]:
        """The security protocol by listener name; controllers' listeners are PLAINTEXT without a map, as in Kafka."""
        protocols = parse_protocol_map(self[LISTENER_SECURITY_PROTOCOL_MAP])
        if LISTENER_SECURITY_PROTOCOL_MAP.name not in self.static:
            protocols |= {endpoint.name: "PLAINTEXT" for endpoint in self.controller_listeners}
        return protocols

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener that brokers use among themselves."""
        return (self[INTER_BROKER_LISTENER_NAME] or self[SECURITY_INTER_BROKER_PROTOCOL]).upper()

    @property
    def controllers_listener(self) -> str | None:
        """The name of the listener by which this node reaches controllers in other processes; None if there are none.

        The first of controller.listener.names, as in Kafka.
        """
        names: tuple[str, ...] = self[CONTROLLER_LISTENER_NAMES]
        return names[0].upper() if names and self.roles == {"broker"} else None

    def protocol_of(self, listener: str) -> str:
        """The security protocol of a listener, also of one that this process does not open."""
        return self.security_protocols.get(listener, "PLAINTEXT")

    @property
    def tls_listeners(self) -> list[str]:
        """The names of the opened listeners with TLS."""
        opened = (*self.listeners, *self.controller_listeners)
        return [endpoint.name for endpoint in opened if self.protocol_of(endpoint.name) in TLS_PROTOCOLS]

    @property
    def tls_targets(self) -> list[str]:
        """The names of the listeners of other nodes to which this one connects with TLS."""
        if self.is_standalone or "broker" not in self.roles:
            return []
        targets = (self.inter_broker_listener, self.controllers_listener)
        return [name for name in targets if name is not None and self.protocol_of(name) in TLS_PROTOCOLS]

    @property
    def advertised_listeners(self) -> dict[str, Endpoint]:
        """Advertised addresses by listener name; for other listeners it is the address that the client connected to."""
        unopened = {name.upper() for name in self[CONTROLLER_LISTENER_NAMES]}
        items = self[ADVERTISED_LISTENERS] or ()
        return {e.name: e for e in parse_endpoints(ADVERTISED_LISTENERS.name, items) if e.name not in unopened}

    @property
    def advertised_controller_listeners(self) -> dict[str, Endpoint]:
        """Advertised addresses of the controller's listeners, by name."""
        names = {name.upper() for name in self[CONTROLLER_LISTENER_NAMES]}
        items = self[ADVERTISED_LISTENERS] or ()
        return {e.name: e for e in parse_endpoints(ADVERTISED_LISTENERS.name, items) if e.name in names}

    def advertised_controllers(self, bound: Iterable[Endpoint]) -> list[Endpoint]:
        """The controller's listeners as others reach them; one on all interfaces by the name of this machine."""
        advertised = self.advertised_controller_listeners
        endpoints = [advertised.get(endpoint.name, endpoint) for endpoint in bound]
        name = os.uname().nodename
        return [
            listener._replace(host=name) if listener.host in {"", "0.0.0.0", "::"} else listener
            for listener in endpoints
        ]

    @property
    def controller_listener(self) -> Endpoint | None:
        """The configured controller listener, as advertised; None if there is none."""
        named = {e.name: e for e in parse_endpoints(LISTENERS.name, self[LISTENERS])}
        items = self[ADVERTISED_LISTENERS] or ()
        named |= {e.name: e for e in parse_endpoints(ADVERTISED_LISTENERS.name, items)}
        names = [name.upper() for name in self[CONTROLLER_LISTENER_NAMES]]
        return next((named[name] for name in names if name in named), None)


def base_key(name: str) -> ConfigKey[Any] | None:
    """The declaration of a key, also with a `listener.name.<listener>.` prefix; None if the key is unknown."""
    if name in BROKER_KEYS:
        return BROKER_KEYS[name]
    own = declared(name)
    if own is not None:
        return own
    parts = split(name)
    if parts is None or parts[1] in PER_LISTENER or parts[1] in SASL_KEYS:
        return None
    key = BROKER_KEYS.get(parts[1])
    return key if key is not None and not key.used else None
