"""Keys of the configuration that Barnabas does not act on, and whose effect an operator counts on.

A key without an effect is a note, with the sentence that a start logs. The few in `RELIED_ON` change who may do what,
or where data is: they stand against a start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.tools.takeover.verdict import Verdict

RELIED_ON: Final = {
    "config.providers": "Barnabas does not look values up, so that ${...} would be taken as it is written",
    "remote.log.storage.system.enable": "Barnabas has no tiered storage, so that segments there cannot be read",
}
"""Key -> what would be lost without it."""
_OFF: Final = {"", "false"}


def check_certificates(config: ServerConfig, verdict: Verdict) -> None:
    """Add why the key stores and trust stores cannot be used."""
    if config.tls_listeners or config.tls_targets:
        from barnabas.broker.security.tls import Tls

        try:
            Tls(config)
        except ConfigError as error:
            verdict.refuse(str(error))


def check_keys(config: ServerConfig, verdict: Verdict) -> None:
    """Add what the keys that are set stand for."""
    for name, why in RELIED_ON.items():
        if config.static.get(name, "").strip() not in _OFF:
            verdict.refuse(f"{name} is set: {why}")
    for text in config.warnings:
        if text.split(" ", 1)[0] not in RELIED_ON:
            verdict.note(text)
