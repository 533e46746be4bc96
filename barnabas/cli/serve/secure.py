"""`barnabas serve --secure` and `--user`: what they mean, and which options they exclude."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.cli.serve import UsageError, host_and_port

if TYPE_CHECKING:
    from barnabas.broker.config.options import Secured

VARIABLE: Final = "BARNABAS_USER_PASSWORD"
"""Has the password of a `--user` without one."""
_WILDCARDS: Final = {"", "0.0.0.0", "::"}


def check_secure(args: argparse.Namespace) -> None:
    """UsageError, one sentence, if the options exclude each other."""
    if not args.secure:
        if args.user:
            raise UsageError("--user is for a broker with --secure; 'barnabas user set' adds users to others")
        return
    others = (("--brokers", args.brokers), ("--in-container", args.in_container), ("--check", args.check))
    for option, value in others:
        if value:
            raise UsageError(f"--secure is for one broker on this machine; it cannot be used with {option}")


def secure(args: argparse.Namespace, keys: dict[str, str], environment: Mapping[str, str]) -> Secured:
    """Make certificates and passwords that are missing, and add the config keys to `keys`. UsageError."""
    data_dirs = keys.get("log.dirs") or keys.get("log.dir")
    if not data_dirs:
        raise UsageError("--secure keeps certificates and a password beside the data: it needs --data-dir DIR")
    from barnabas.tools.secure.errors import SecureError
    from barnabas.tools.secure.folder import SecureFolder
    from barnabas.tools.secure.start import keys_of, prepare

    folder = SecureFolder(data_dirs.split(",")[0].strip())
    added = keys_of(folder)
    for key in ("listeners", *added):
        if key in keys and (key != "listeners" or args.listen is None):
            raise UsageError(f"--secure sets {key} itself; it cannot be used with --set {key}")
    address = args.listen or "127.0.0.1:9092"
    keys |= added | {"listeners": f"SASL_SSL://{address}"}
    try:
        return prepare(folder, _hosts(address, keys.get("advertised.listeners", "")), _users(args.user, environment))
    except SecureError as error:
        raise UsageError(str(error)) from None


def _hosts(listen: str, advertised: str) -> list[str]:
    """The hosts by which clients may address the broker."""
    addresses = [
        listen,
        *(address.rpartition("://")[2].strip() for address in advertised.split(",") if address.strip()),
    ]
    host_and_port(listen)
    hosts = [address.rpartition(":")[0].removeprefix("[").removesuffix("]") for address in addresses]
    return [host for host in hosts if host not in _WILDCARDS]


def _users(texts: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The passwords of `--user`, by name."""
    users: dict[str, str] = {}
    for text in texts:
        name, colon, password = text.partition(":")
        if not name:
            raise UsageError("--user must be NAME:PASSWORD or NAME")
        if name in users:
            raise UsageError(f"--user {name} is given twice")
        users[name] = password if colon else environment.get(VARIABLE) or _ask_password(name)
        if not users[name]:
            raise UsageError(f"the password of --user {name} is empty")
    return users


def _ask_password(name: str) -> str:
    from barnabas.terminal.question import Declined, ask_secret
    from barnabas.terminal.screen import is_terminal

    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(f"there is no terminal to ask for the password of {name}: set {VARIABLE}")
    try:
        return ask_secret(f"Password of {name}")
    except Declined as error:
        raise UsageError(str(error)) from None
