"""The settings of the authorizer: whether there is one, its super users, and its decision without ACLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.authorizer import ALLOW_EVERYONE_IF_NO_ACL_FOUND, SUPER_USERS
from barnabas.broker.config.keys.general import AUTHORIZER_CLASS_NAME
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SHORT_NAME: Final = "barnabas"


def super_users(config: ServerConfig) -> list[str]:
    """The principals of super.users. ConfigError for one that does not consist of a type and a name."""
    users = [user for item in config[SUPER_USERS].split(";") if (user := item.strip())]
    for user in users:
        if ":" not in user:
            raise ConfigError(f"{SUPER_USERS.name}: expected principalType:principalName but got {user}")
    return users


def check_authorizer(config: ServerConfig) -> None:
    """Raise ConfigError for an authorizer that Barnabas does not have; warn about its keys without one."""
    name = config[AUTHORIZER_CLASS_NAME].strip()
    if name not in ("", STANDARD_AUTHORIZER, SHORT_NAME):
        raise ConfigError(
            f"{AUTHORIZER_CLASS_NAME.name}={name}: Barnabas runs no Java classes; what it has is "
            f"{STANDARD_AUTHORIZER}, or {SHORT_NAME} for short"
        )
    super_users(config)
    for key in (SUPER_USERS, ALLOW_EVERYONE_IF_NO_ACL_FOUND):
        if not name and key.name in config.static:
            config.warnings.append(f"{key.name} has no effect without {AUTHORIZER_CLASS_NAME.name}")
