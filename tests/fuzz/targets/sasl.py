"""The tokens of PLAIN, SCRAM and OAUTHBEARER, server's side and client's.

Only AuthenticationFailed and InvalidCredentials. An authenticated client has proved its identity and has a name that
can be written into a log, and the text for the client can be sent.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

from barnabas.coord.security.claims import TokenRefused
from barnabas.coord.security.exchange import AuthenticationFailed, Exchange, Identity, InvalidCredentials
from barnabas.coord.security.oauthbearer import OAuthBearerExchange, parse_initial
from barnabas.coord.security.plain import PlainExchange, plain_token
from barnabas.coord.security.scram import (
    SCRAM_SHA_256,
    escaped,
    parse_client_final,
    parse_client_first,
    parse_server_first,
    unescaped,
)
from barnabas.coord.security.scram_client import ScramClient
from barnabas.coord.security.scram_server import Credential, FakeCredentials, ScramExchange, TokenCredential
from barnabas.wire.principal import USER_TYPE, KafkaPrincipal
from tests.fuzz.targets import Input, is_sayable, pieces

MAX_BYTES = 1024
USERS = {"alice": "secret", "bob": "s=,"}
TOKEN = "aaaaaaaa.bbbb.cccc"
ITERATIONS = 4096
FAKE = FakeCredentials(b"secret")
NONCE = "r=" + b64encode(bytes(18)).decode()
NOW_MS = 1_700_000_000_000


def _credential(name: str, password: str) -> Credential:
    salted = SCRAM_SHA_256.salted_password(password, name.encode(), ITERATIONS)
    return Credential(name.encode(), SCRAM_SHA_256.stored_key(salted), SCRAM_SHA_256.server_key(salted), ITERATIONS)


KNOWN = {name: _credential(name, password) for name, password in USERS.items()}
DELEGATION = TokenCredential(KNOWN["bob"], KafkaPrincipal(USER_TYPE, "alice"), NOW_MS + 1000)


def _find(name: str) -> tuple[Credential, bool]:
    credential = KNOWN.get(name)
    return (FAKE.credential(SCRAM_SHA_256, name, None), False) if credential is None else (credential, True)


def _find_token(token_id: str) -> TokenCredential | None:
    return DELEGATION if token_id == "token" else None


def _bearer(token: str, _now_ms: int) -> Identity:
    if token != TOKEN:
        raise TokenRefused("another token")
    return Identity(KafkaPrincipal(USER_TYPE, "alice"))


def _exchange(number: int) -> Exchange:
    if number == 0:
        return PlainExchange(USERS)
    if number == 1:
        return ScramExchange(SCRAM_SHA_256, _find, _find_token, bytes)
    return OAuthBearerExchange(_bearer)


def check(data: bytes) -> None:
    """The first byte is the mechanism or a parser; then come the tokens."""
    source = Input(data)
    kind = source.number(5)
    if kind < 3:
        _converse(_exchange(kind), source)
    elif kind == 3:
        _parse(source.rest)
    else:
        _answer(source)


def _converse(exchange: Exchange, source: Input) -> None:
    while exchange.identity is None and source.rest:
        try:
            response = exchange.step(source.piece(), NOW_MS)
        except InvalidCredentials:
            return
        except AuthenticationFailed as error:
            is_sayable(str(error))
            return
        assert type(response) is bytes
    if exchange.identity is not None:
        is_sayable(exchange.identity.principal.name)
        assert exchange.identity.principal.name in USERS


def _parse(message: bytes) -> None:
    for parser in (parse_client_first, parse_client_final, parse_server_first, parse_initial):
        try:
            parsed = parser(message)
        except InvalidCredentials:
            continue
        if parser is parse_client_first:
            is_sayable(parsed.name, parsed.authorization_id)
            assert unescaped(escaped(parsed.name)) == parsed.name


def _answer(source: Input) -> None:
    """A client of ours hears what a hostile server says."""
    client = ScramClient(SCRAM_SHA_256, "alice", lambda _salt, _iterations: bytes(32), bytes)
    try:
        client.first()
        assert client.step(source.piece()) is not None
        client.step(source.piece())
    except InvalidCredentials:
        pass


def seeds() -> Iterator[bytes]:
    """Log-ins that succeed and fail."""
    for name, password in (*USERS.items(), ("eve", "x"), ("", "")):
        yield b"\0" + pieces(plain_token(name, password))
        yield b"\x01" + pieces(f"n,,n={escaped(name)},r=abc")
    yield b"\0" + pieces("alice\0alice\0secret")
    yield b"\x01" + pieces("n,a=alice,n=alice,r=abc", _proof("n,a=alice,", "alice", "secret"))
    yield b"\x01" + pieces("n,,n=alice,r=abc", _proof("n,,", "alice", "secret"))
    yield b"\x01" + pieces("n,,n=token,r=abc,tokenauth=true", _proof("n,,", "bob", "s=,", "token", ",tokenauth=true"))
    yield b"\x02" + pieces(f"n,,\x01auth=Bearer {TOKEN}\x01\x01")
    yield b"\x02" + pieces("n,a=alice,\x01auth=Bearer x.y.z\x01traceId=1\x01\x01", b"\x01")
    yield b"\x03n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL"
    yield b"\x03c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfc,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
    yield b"\x04" + pieces(NONCE + "abc,s=QSXCR+Q6sek8bf92,i=4096", "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=")
    yield b"\x04" + pieces(NONCE + "abc,s=QSXCR+Q6sek8bf92,i=4096", "e=unknown-user")


def _proof(header: str, credential: str, password: str, name: str = "", extensions: str = "") -> bytes:
    scram = SCRAM_SHA_256
    nonce = "abc" + b64encode(bytes(18)).decode()
    salted = scram.salted_password(password, credential.encode(), ITERATIONS)
    salt = b64encode(credential.encode()).decode()
    unproved = f"c={b64encode(header.encode()).decode()},r={nonce}"
    message = f"n={name or credential},r=abc{extensions},r={nonce},s={salt},i={ITERATIONS},{unproved}"
    signature = scram.hmac(scram.stored_key(salted), message.encode())
    proof = bytes(a ^ b for a, b in zip(scram.client_key(salted), signature, strict=True))
    return f"{unproved},p={b64encode(proof).decode()}".encode()
