"""SCRAM: the examples of the RFCs, both sides against each other, and refused messages."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.security.exchange import AuthenticationFailed, InvalidCredentials
from barnabas.coord.security.scram import (
    SCRAM_MECHANISMS,
    SCRAM_SHA_256,
    ScramMechanism,
    escaped,
    parse_client_final,
    parse_client_first,
    parse_server_first,
    unescaped,
)
from barnabas.coord.security.scram_changes import password_records
from barnabas.coord.security.scram_client import ScramClient
from barnabas.coord.security.scram_server import Credential, FakeCredentials, ScramExchange, TokenCredential
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.records.metadata_records import UserScramCredentialRecord
from barnabas.wire.principal import KafkaPrincipal
from tests.support.cases import for_each

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
"""The example of RFC 7677, section 3: the user `user` with the password `pencil`."""


def credential(mechanism: ScramMechanism, password: str, iterations: int = 4096) -> Credential:
    salted = mechanism.salted_password(password, SALT, iterations)
    return Credential(SALT, mechanism.stored_key(salted), mechanism.server_key(salted), iterations)


def exchange(
    stored: Credential, *, is_real: bool = True, token: TokenCredential | None = None, nonce: str | None = None
) -> ScramExchange:
    server_exchange = ScramExchange(
        SCRAM_SHA_256, lambda _: (stored, is_real), lambda _: token, lambda size: b"\x01" * size
    )
    if nonce is not None:
        server_exchange._nonce = nonce
    return server_exchange


def test_the_server_answers_the_example_of_rfc_7677() -> None:
    server = exchange(credential(SCRAM_SHA_256, "pencil"), nonce=SERVER_NONCE)
    assert server.step(CLIENT_FIRST, 0) == SERVER_FIRST
    assert server.identity is None
    assert server.step(CLIENT_FINAL, 0) == SERVER_FINAL
    assert server.identity is not None
    assert str(server.identity.principal) == "User:user"


def test_the_client_sends_the_example_of_rfc_7677() -> None:
    client = ScramClient(SCRAM_SHA_256, "user", lambda s, i: SCRAM_SHA_256.salted_password("pencil", s, i), bytes)
    client._bare = "n=user,r=rOprNGfwEbeRWgbNEkqO"
    client._nonce = "rOprNGfwEbeRWgbNEkqO"
    assert client.first() == CLIENT_FIRST
    assert client.step(SERVER_FIRST) == CLIENT_FINAL
    assert client.step(SERVER_FINAL) is None


def talk(
    mechanism: ScramMechanism, name: str, password: str, stored: Credential, *, is_real: bool = True
) -> ScramExchange:
    """A whole log-in. Raises what one of the sides raises."""
    client = ScramClient(
        mechanism, name, lambda s, i: mechanism.salted_password(password, s, i), lambda size: b"\x02" * size
    )
    server = ScramExchange(mechanism, lambda _: (stored, is_real), lambda _: None, lambda size: b"\x01" * size)
    final = client.step(server.step(client.first(), 0))
    assert final is not None
    assert client.step(server.step(final, 0)) is None
    return server


@for_each("mechanism", SCRAM_MECHANISMS.values(), ids=lambda scram_mechanism: scram_mechanism.name)
@for_each("name", ["alice", "a,b=c", "=2C", "Zoë"])
def test_both_sides_agree(mechanism: ScramMechanism, name: str) -> None:
    server = talk(mechanism, name, "päss,=word", credential(mechanism, "päss,=word", 8192))
    assert server.identity is not None
    assert server.identity.principal.name == name


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS.values(), ids=lambda scram_mechanism: scram_mechanism.name)
def test_another_password_is_refused(mechanism: ScramMechanism) -> None:
    with pytest.raises(InvalidCredentials, match="Invalid client credentials"):
        talk(mechanism, "alice", "wrong", credential(mechanism, "right"))


def test_a_right_proof_of_a_user_who_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidCredentials, match="Invalid client credentials"):
        talk(SCRAM_SHA_256, "alice", "right", credential(SCRAM_SHA_256, "right"), is_real=False)


def test_a_server_that_has_not_the_credential_is_noticed() -> None:
    client = ScramClient(SCRAM_SHA_256, "a", lambda s, i: SCRAM_SHA_256.salted_password("p", s, i), bytes)
    nonce = b64encode(bytes(18)).decode()
    client.step(f"r={nonce}xyz,s={b64encode(SALT).decode()},i=4096".encode())
    with pytest.raises(InvalidCredentials, match="does not prove"):
        client.step(b"v=" + b64encode(bytes(32)))


@for_each(
    "message",
    [b"r=other,s=AAAA,i=4096", b"r=NONCE,s=AAAA,i=4096", b"r=NONCEx,s=AAAA,i=4095", b"r=NONCEx,s=AAAA,i=16385"],
)
def test_a_client_refuses_another_nonce_and_other_numbers_of_iterations(message: bytes) -> None:
    client = ScramClient(SCRAM_SHA_256, "a", lambda s, i: pytest.fail("computed"), bytes)
    with pytest.raises(InvalidCredentials):
        client.step(message.replace(b"NONCE", b64encode(bytes(18))))


def test_an_authorization_id_must_be_the_user() -> None:
    server = exchange(credential(SCRAM_SHA_256, "pencil"))
    with pytest.raises(AuthenticationFailed, match="authorization id that is different from username"):
        server.step(b"n,a=other,n=user,r=abc", 0)
    assert exchange(credential(SCRAM_SHA_256, "pencil")).step(b"n,a=user,n=user,r=abc", 0)


@for_each(
    "final",
    [
        CLIENT_FINAL.replace(b"rOpr", b"rOpx"),  # another nonce
        CLIENT_FINAL.replace(b"c=biws", b"c=eSws"),  # y,, : the client's header was n,,
        CLIENT_FINAL.replace(b"p=dHzb", b"p=dHza"),
        CLIENT_FINAL[:-4],
        b"p=AAAA",
        b"\xff",
        b"",
    ],
)
def test_a_changed_last_message_is_refused(final: bytes) -> None:
    server = exchange(credential(SCRAM_SHA_256, "pencil"), nonce=SERVER_NONCE)
    server.step(CLIENT_FIRST, 0)
    with pytest.raises(InvalidCredentials):
        server.step(final, 0)
    assert server.identity is None


@for_each("token", [b"", b"y,,n=a,r=b", b"p=tls-unique,,n=a,r=b", b"n,,n=,r=b", b"n,,n=a", b"n,,n=a=,r=b", b"\xff"])
def test_other_first_messages_are_refused(token: bytes) -> None:
    with pytest.raises(InvalidCredentials):
        parse_client_first(token)


def test_a_token_logs_in_as_its_owner_until_it_expires() -> None:
    owner = KafkaPrincipal("User", "alice")
    token = TokenCredential(credential(SCRAM_SHA_256, "pencil"), owner, 1000)
    for now_ms, is_in in ((999, True), (1000, False)):
        server = exchange(credential(SCRAM_SHA_256, "other"), is_real=False, token=token, nonce=SERVER_NONCE)
        client = ScramClient(
            SCRAM_SHA_256, "id", lambda s, i: SCRAM_SHA_256.salted_password("pencil", s, i), bytes, is_token=True
        )
        final = client.step(server.step(client.first(), now_ms))
        assert final is not None
        if is_in:
            client.step(server.step(final, now_ms))
            assert server.identity == (owner._replace(is_token_authenticated=True), 1000)
        else:
            with pytest.raises(InvalidCredentials):
                server.step(final, now_ms)


def test_a_fake_credential_is_always_the_same_and_looks_like_a_real_one() -> None:
    fakes, mechanism = FakeCredentials(b"secret"), SCRAM_SHA_256
    like = Credential(b"0123456789abcdefghijklmnop", b"", b"", 8192)
    fake = fakes.credential(mechanism, "mallory", like)
    assert fake == fakes.credential(mechanism, "mallory", like)
    assert fake.salt != fakes.credential(mechanism, "trudy", like).salt
    assert fake.salt != FakeCredentials(b"other").credential(mechanism, "mallory", like).salt
    assert (len(fake.salt), fake.iterations, fake.salt.isalnum()) == (26, 8192, True)
    binary = fakes.credential(mechanism, "mallory", like._replace(salt=bytes(64)))
    assert len(binary.salt) == 64
    assert not binary.salt.isalnum()


@given(st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_a_name_in_a_message_is_read_as_it_was_written(name: str) -> None:
    assert unescaped(escaped(name)) == name
    if name.isprintable():
        assert parse_client_first(f"n,,n={escaped(name)},r=x".encode()).name == name


@given(st.binary(max_size=200) | st.text(alphabet="n,a=mrsicvp+/1AQ2C3D \xff", max_size=60).map(str.encode))
def test_any_bytes_are_a_message_or_refused(token: bytes) -> None:
    for parse in (parse_client_first, parse_client_final, parse_server_first):
        try:
            parse(token)
        except InvalidCredentials:
            pass


def test_passwords_become_records_only_where_they_are_new() -> None:
    def random_bytes(size: int) -> bytes:
        return b"s" * size

    records = password_records({}, "SCRAM-SHA-512", {"alice": "secret", "bob": "other"}, 30, random_bytes)
    credentials = {
        (record.name, record.mechanism): record for record in records if isinstance(record, UserScramCredentialRecord)
    }
    assert list(credentials) == [("alice", 2), ("bob", 2)]
    (changed,) = password_records(credentials, "SCRAM-SHA-512", {"alice": "changed", "bob": "other"}, 30, random_bytes)
    assert isinstance(changed, UserScramCredentialRecord)
    assert changed.name == "alice"
    assert changed.stored_key != credentials["alice", 2].stored_key
    with pytest.raises(KafkaError, match="does not support SCRAM"):
        password_records({}, "SCRAM-SHA-512", {"alice": "secret"}, 10, random_bytes)
