"""The steps of `barnabas serve --secure` before the broker starts, and its output for clients when the broker serves.

The password of the first user is in client.properties alone, which is written when the broker serves for the first
time; each start gives the user that password. So a start that fails leaves nothing that the next one could not use,
and a folder that was lost is made again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from barnabas.broker.config.options import Secured
from barnabas.client.security.jaas import JaasError, parse_jaas
from barnabas.tools.secure.client_texts import MECHANISM, PROTOCOL, Login, configurations, properties_file
from barnabas.tools.secure.errors import SecureError
from barnabas.tools.secure.folder import SecureFolder
from barnabas.wire.configdef import ConfigError
from barnabas.wire.properties import parse_properties

ADMIN: Final = "admin"
"""The first user, a super user."""
PASSWORD_BYTES: Final = 24


def keys_of(folder: SecureFolder) -> dict[str, str]:
    """The config keys that `--secure` stands for, besides listeners."""
    return {
        "listener.security.protocol.map": f"{PROTOCOL}:{PROTOCOL}",
        "sasl.enabled.mechanisms": MECHANISM,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder.ca),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN}",
        "allow.everyone.if.no.acl.found": "false",
    }


def prepare(folder: SecureFolder, hosts: Iterable[str], users: Mapping[str, str]) -> Secured:
    """Make the missing files in the folder; `users` have names and passwords. `SecureError`."""
    folder.prepare(["localhost", "127.0.0.1", "::1", os.uname().nodename, *hosts])
    known = _known_password(folder)
    password = users.get(ADMIN) or known or secrets.token_urlsafe(PASSWORD_BYTES)

    def tell(clients: str, address: str) -> str:
        login = Login(address, str(folder.ca), ADMIN, password)
        text = configurations(login, str(folder.properties))
        try:
            _keep(folder, folder.clients, text)
            _keep(folder, folder.properties, properties_file(login))
        except SecureError as error:
            raise ConfigError(str(error)) from error
        if known is not None:
            return f"\n{clients}: {address}, with the configurations in {folder.clients}\n"
        return f"\n{clients}: {address}, as user {ADMIN}; also in {folder.clients}\n\n{text}"

    return Secured({**users, ADMIN: password}, MECHANISM, tell)


def _keep(folder: SecureFolder, path: Path, text: str) -> None:
    """Write a file that has another content, or none."""
    if folder.read(path) != text:
        folder.write(path, text)


def _known_password(folder: SecureFolder) -> str | None:
    """The password of the first user, None if it has none yet."""
    text = folder.read(folder.properties)
    if text is None:
        return None
    try:
        return parse_jaas(parse_properties(text)["sasl.jaas.config"]).options["password"]
    except (ConfigError, JaasError, KeyError):
        raise SecureError(
            f"{folder.properties} has no sasl.jaas.config with a password: remove the file, and {ADMIN} gets a new one"
        ) from None
