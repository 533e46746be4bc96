"""kafka-delegation-tokens: create, renew, expire and describe delegation tokens."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import connect, padded
from barnabas.cli.kafka_tools.errors import exception_of
from barnabas.client.admin.tokens import Token, create_token, expire_token, list_tokens, renew_token
from barnabas.client.cluster import Cluster
from barnabas.wire.errors import KafkaError

ACTIONS: Final = ("create", "renew", "expire", "describe")
REQUIRED: Final = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
    "describe": (),
}
REFUSED: Final = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": ("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"),
    "expire": ("renew", "max-life-time-period", "renew-time-period", "owner-principal"),
    "describe": ("renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"),
}
TITLES: Final = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
WIDTHS: Final = (15, 30, 15, 15, 25, 15, 15, 15)

PARSER = Parser(
    "kafka-delegation-tokens",
    "This tool helps to create, renew, expire, or describe delegation tokens.",
    [
        BOOTSTRAP,
        COMMAND_CONFIG,
        Option("create", "Create a token."),
        Option("renew", "Renew a token."),
        Option("expire", "End a token."),
        Option("describe", "Show tokens."),
        Option("owner-principal", "The owner of tokens.", "TYPE:NAME", is_optional=True),
        Option("renewer-principal", "Another principal that may renew a new token.", "TYPE:NAME", is_optional=True),
        Option("max-life-time-period", "Milliseconds; -1: the broker's default.", "MS", kind="long", is_optional=True),
        Option("renew-time-period", "Milliseconds; -1: the broker's default.", "MS", kind="long", is_optional=True),
        Option("expiry-time-period", "Milliseconds; -1: at once.", "MS", kind="long", is_optional=True),
        Option("hmac", "The HMAC of the token.", "HMAC", is_optional=True),
    ],
)


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    options = PARSER.parse(_joined(arguments))
    actions = [action for action in ACTIONS if options.has(action)]
    if len(actions) != 1:
        raise Usage("Command must include exactly one action: --create, --renew, --expire or --describe")
    (action,) = actions
    options.require("bootstrap-server", "command-config", *REQUIRED[action])
    options.refuse_with(action, REFUSED[action])
    try:
        with connect(options) as cluster:
            {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}[action](cluster, options)
    except (KafkaError, ValueError) as error:
        print(exception_of(error) if isinstance(error, KafkaError) else error, file=sys.stderr)
        return 1
    return 0


def _joined(arguments: Sequence[str]) -> list[str]:
    """An optional argument may be a negative number, which joptsimple does not take for an option."""
    words: list[str] = []
    for word in arguments:
        if word[:1] == "-" and word[1:].isdigit() and words and words[-1].endswith("-period"):
            words[-1] = f"{words[-1]}={word}"
        else:
            words.append(word)
    return words


def _principals(options: Options, name: str) -> list[str]:
    texts = [text.strip() for text in options.all(name)]
    for text in texts:
        kind, colon, _ = text.partition(":")
        if not colon or not kind:
            raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return texts


def _create(cluster: Cluster, options: Options) -> None:
    renewers = _principals(options, "renewer-principal")
    period = options.get("max-life-time-period")
    print(
        f"Calling create token operation with renewers :[{', '.join(renewers)}] , max-life-time-period :{period}",
        flush=True,
    )
    owners = _principals(options, "owner-principal")
    owner = owners[0] if owners else None
    token = create_token(cluster, owner=owner, renewers=renewers, max_lifetime_ms=period)
    print(f"Created delegation token with tokenId : {token.token_id}")
    _print([token])


def _renew(cluster: Cluster, options: Options) -> None:
    hmac, period = options.get("hmac"), options.get("renew-time-period")
    print(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period}", flush=True)
    expiry = renew_token(cluster, _decoded(hmac), period)
    print(f"Completed renew operation. New expiry date : {_minute(expiry)}", end="")


def _expire(cluster: Cluster, options: Options) -> None:
    hmac, period = options.get("hmac"), options.get("expiry-time-period")
    print(f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period}", flush=True)
    expiry = expire_token(cluster, _decoded(hmac), period)
    print(f"Completed expire operation. New expiry date : {_minute(expiry)}", end="")


def _describe(cluster: Cluster, options: Options) -> None:
    owners = _principals(options, "owner-principal")
    if owners:
        print(f"Calling describe token operation for owners: [{', '.join(owners)}]")
    else:
        print("Calling describe token operation for current user.")
    tokens = list_tokens(cluster, owners)
    print(f"Total number of tokens : {len(tokens)}", end="")
    _print(tokens)


def _decoded(hmac: str) -> bytes:
    try:
        return base64.b64decode(hmac, validate=True)
    except binascii.Error:
        raise ValueError("the HMAC is not in base64") from None


def _print(tokens: Sequence[Token]) -> None:
    print(f"\n{padded(TITLES, WIDTHS)}")
    for token in tokens:
        times = (_minute(token.issued), _minute(token.expiry), _minute(token.max_time))
        renewers = f"[{', '.join(token.renewers)}]"
        hmac = base64.b64encode(token.hmac).decode()
        print(f"\n{padded((token.token_id, hmac, token.owner, token.requester, renewers, *times), WIDTHS)}")


def _minute(time_ms: int) -> str:
    """A time in the local time zone, as the tool prints it."""
    return datetime.fromtimestamp(time_ms / 1000).astimezone().strftime("%Y-%m-%dT%H:%M")
