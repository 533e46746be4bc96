"""The check of `barnabas serve --check`: configuration, directories, features and controllers, in this order.

An error in the configuration itself ends it, since nothing else can be checked then. All other findings are collected,
so that one run reports them all.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.load import load_options
from barnabas.broker.config.options import ServeOptions
from barnabas.broker.config.server_config import ServerConfig
from barnabas.terminal.notes import note, say
from barnabas.tools.takeover.controllers import check_controllers
from barnabas.tools.takeover.directories import check_directories
from barnabas.tools.takeover.features import check_metadata
from barnabas.tools.takeover.verdict import Verdict
from barnabas.wire.configdef import ConfigError

# --- keys without effect in Barnabas whose effect an operator counts on

RELIED_ON: Final = {
    "config.providers": "Barnabas does not look values up, so that ${...} would be taken as it is written",
    "remote.log.storage.system.enable": "Barnabas has no tiered storage, so that segments there cannot be read",
}
"""Key -> the effect that would be missing."""
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
    """Add the missing effects of the keys that are set."""
    for name, why in RELIED_ON.items():
        if config.static.get(name, "").strip() not in _OFF:
            verdict.refuse(f"{name} is set: {why}")
    for text in config.warnings:
        if text.split(" ", 1)[0] not in RELIED_ON:
            verdict.note(text)


# --- the check

EXIT_OK, EXIT_AGAINST = 0, 2


def run(options: ServeOptions) -> int:
    """Check, and print the findings; return the exit code: 0 if Barnabas can take over, else 2."""
    verdict, subject = check(options)
    for text in verdict.notes:
        note(f"barnabas serve --check: note: {text}")
    for text in verdict.against:
        note(f"barnabas serve --check: {text}")
    if verdict.against:
        count = len(verdict.against)
        reasons = "one reason" if count == 1 else f"{count} reasons"
        say(f"Barnabas cannot take over {subject}: {reasons} against it")
        return EXIT_AGAINST
    say(f"Barnabas can take over {subject}")
    return EXIT_OK


def check(options: ServeOptions) -> tuple[Verdict, str]:
    """Return the verdict, and a description of what was checked."""
    verdict = Verdict()
    try:
        config = load_options(options)
    except ConfigError as error:
        verdict.refuse(str(error))
        return verdict, options.config_file or "this configuration"
    check_keys(config, verdict)
    check_certificates(config, verdict)
    subject = f"node {config.node_id}"
    if config.log_dirs:
        directories = check_directories(config, verdict)
        subject = f"node {config.node_id} of {', '.join(config.log_dirs)} ({directories} partitions)"
        check_metadata(config, verdict)
    else:
        verdict.refuse("log.dirs is not set: the data would be temporary")
    if config.roles == {"broker"}:
        check_controllers(config, verdict)
    return verdict, subject
