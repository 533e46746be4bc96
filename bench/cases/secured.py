"""The cases of the groups `Secured` and `Authorizer`: TLS, log-ins, and the cost of authorization.

Both brokers have the same certificate (a key of P-256), and listeners of the protocols SSL and SASL_PLAINTEXT beside
the one for topics and admin requests. The loads in C speak TLS 1.3 with AES-256-GCM; librdkafka negotiates the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from bench.cases.case import Case, Figures, Goal, Group, Scale
from bench.cases.page_cache import confluent_consume, produce_counted, raw_fetch, raw_produce
from bench.target import TIMEOUT_S, Outcome, Target
from tests.support.processes.ports import free_port
from tests.support.processes.server import ROOT, Server
from tests.support.requests import frames

USER, PASSWORD = "bench", "bench-secret"
ITERATIONS = 4096
AT_A_TIME = 20
"""Connections that log in at a time."""
SECURITY = "org.apache.kafka.common.security"
SETTINGS = {"ssl.keystore.type": "PEM", "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512"}
LOG_IN = {
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{SECURITY}.plain.PlainLoginModule required "
    f'user_{USER}="{PASSWORD}";',
    "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{SECURITY}.scram.ScramLoginModule required;",
}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # the admin requests of the benchmark
}
OTHER_USERS = 100
PAIRS = 3
"""Pairs of a run: the expected difference is smaller than the variation of one run."""
RECORD_BYTES = 100
FETCHED = 500


def secure(server: Server, folder: Path) -> None:
    """Give a server the listeners SSL and SASL_PLAINTEXT, with a certificate."""
    from barnabas.tools.secure.authority import Authority

    authority = Authority.new("bench")
    key_store = folder / f"{server.name}.pem"
    key_store.write_text(authority.broker("bench", [server.host]))
    ca_file(server).write_text(authority.pem)
    server.ports = {"SSL": free_port(), "SASL_PLAINTEXT": free_port()}
    server.config |= {"ssl.keystore.location": str(key_store), **LOG_IN}


def ca_file(server: Server) -> Path:
    """The CA file that clients of a server trust."""
    return server.data_dir.with_name(server.data_dir.name + "-ca.pem")


def _tls_client(target: Target) -> Mapping[str, str]:
    """The settings of a client of librdkafka."""
    server = target.server
    return {
        "bootstrap.servers": f"{server.host}:{server.ports['SSL']}",
        "security.protocol": "ssl",
        "ssl.ca.location": str(ca_file(server)),
    }


# TLS


def tls_confluent_produce(target: Target, scale: Scale) -> Figures:
    """Produce 1 KB records with confluent-kafka to 6 partitions, acks=all."""
    return produce_counted(target, scale.records // 3, 1000, 6, "all", _tls_client(target))


def tls_confluent_consume(target: Target, scale: Scale) -> Figures:
    """Read a topic of 1 KB records and 6 partitions with confluent-kafka."""
    return confluent_consume(target, scale, size=1000, partitions=6, client=_tls_client(target))


# Log-ins


def log_ins(target: Target, scale: Scale, *, mode: str) -> Figures:
    """Connections that log in (`plain`, `scram`) or shake hands (`tls`), ask for the versions, and are closed."""
    protocol = "SSL" if mode == "tls" else "SASL_PLAINTEXT"
    user = () if mode == "tls" else (USER, PASSWORD)
    outcome = target.logins(mode, protocol, AT_A_TIME, scale.warmup_s, scale.seconds, *user)
    return {
        "log-ins/s": outcome.requests / outcome.seconds,
        "p99 ms": outcome.p99_us / 1000,
        "CPU us/op": outcome.cpu_us_per_request,
    }


def tls_cases() -> Iterator[Case]:
    """The cases of the group `Secured`, in order."""
    goals = {"MB/s": Goal(1.0), "CPU s/GB": Goal(1.0)}
    for size, label in ((16 << 10, "16 KB"), (100 << 10, "100 KB")):
        for connections in (1, 4):
            measure = partial(raw_produce, size=size, connections=connections, uses_tls=True)
            yield Case(f"TLS raw produce {label}, {connections} conn.", measure, goals, quick=connections == 4)
    for consumers in (1, 3):
        measure = partial(raw_fetch, consumers=consumers, uses_tls=True)
        yield Case(f"TLS raw fetch, {consumers} cons.", measure, goals, quick=consumers == 3)
    goals = {"msg/s": Goal(1.0), "CPU s/GB": Goal(1.0)}
    yield Case("TLS confluent produce 1 KB, 6 part., acks all", tls_confluent_produce, goals)
    yield Case("TLS confluent consume 1 KB, 6 part.", tls_confluent_consume, goals)
    goals = {"log-ins/s": Goal(1.0), "CPU us/op": Goal(1.0)}
    yield Case("log-ins, PLAIN", partial(log_ins, mode="plain"), goals)
    yield Case("log-ins, SCRAM-SHA-512", partial(log_ins, mode="scram"), goals)
    yield Case("connections with a full TLS handshake", partial(log_ins, mode="tls"), goals)


def warm_up(target: Target, scale: Scale) -> None:
    """Create the SCRAM user, and warm up with the measured loads, for longer than the measurements."""
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
    change = UserScramCredentialUpsertion(USER, credential, PASSWORD.encode())
    for future in target.admin.alter_user_scram_credentials([change]).values():
        future.result(TIMEOUT_S)
    for _ in range(scale.warmup_rounds):
        for mode in ("plain", "scram", "tls"):
            log_ins(target, Scale(seconds=2.0, warmup_s=1.0), mode=mode)
        raw_produce(target, Scale(seconds=2.0, warmup_s=0.5, max_mb=400), size=100 << 10, connections=2, uses_tls=True)
        raw_fetch(target, Scale(seconds=2.0, warmup_s=0.5, fill_mb=20), consumers=2, uses_tls=True)
        produce_counted(target, 100_000, 1000, 6, "all", _tls_client(target))


# Authorizer


def produce_requests(target: Target, scale: Scale, *, batch_bytes: int, connections: int) -> Figures:
    """Produce one batch per request; each connection waits for the response before the next request."""
    topic = target.create(1)
    batch, _ = frames.batch(batch_bytes, RECORD_BYTES)
    request = frames.produce(topic, 0, batch)
    outcome = target.raw("produce", [request], connections, 1, *_shortened(scale), scale.max_mb)
    target.delete(topic)
    return _per_request(outcome)


def fetch_requests(target: Target, scale: Scale, *, batch_bytes: int, connections: int) -> Figures:
    """Fetch one batch per request, from a topic of `FETCHED` batches."""
    topic = target.create(1)
    batch, count = frames.batch(batch_bytes, RECORD_BYTES)
    target.send(frames.produce(topic, 0, batch) for _ in range(FETCHED))
    request = frames.fetch(topic, 0, partition_max_bytes=1)  # the first batch is returned whole
    outcome = target.raw("fetch", [request], connections, FETCHED * count, *_shortened(scale))
    target.delete(topic)
    return _per_request(outcome)


def _shortened(scale: Scale) -> tuple[float, float]:
    """Seconds of warming up and of measuring: the shorter a load, the less the machine changes between two of them."""
    return 0.4 * scale.warmup_s, 0.4 * scale.seconds


def _per_request(outcome: Outcome) -> Figures:
    return {"req/s": outcome.requests / outcome.seconds, "CPU us/op": outcome.cpu_us_per_request}


def authorizer_cases() -> Iterator[Case]:
    """The cases of the group `Authorizer`, in order."""
    goals = {"CPU us/op": Goal(1.03)}
    for connections in (1, 50):
        for size, label in ((1, "one record"), (16 << 10, "16 KB")):
            for name, measure in (("produce", produce_requests), ("fetch", fetch_requests)):
                case = partial(measure, batch_bytes=size, connections=connections)
                title = f"{name} of {label} a request, {connections} conn."
                yield Case(title, case, goals, quick=connections == 50, repeat=PAIRS)


def create_acls(target: Target, scale: Scale) -> None:
    """Create ACLs of many users, and the ACLs that the load needs, where there is an authorizer; then warm up."""
    if "authorizer.class.name" in target.server.config:
        acls = [_acl(f"User:user{n}", f"topic-{n}", ResourcePatternType.LITERAL) for n in range(OTHER_USERS)]
        acls.append(_acl("User:ANONYMOUS", "bench-", ResourcePatternType.PREFIXED))
        for future in target.admin.create_acls(acls).values():
            future.result(TIMEOUT_S)
    for _ in range(scale.warmup_rounds):
        produce_requests(target, Scale(seconds=2.0, warmup_s=1.0), batch_bytes=1, connections=50)
        fetch_requests(target, Scale(seconds=2.0, warmup_s=1.0), batch_bytes=1, connections=50)


def _acl(principal: str, name: str, pattern: ResourcePatternType) -> AclBinding:
    allows, everything = AclPermissionType.ALLOW, AclOperation.ALL
    return AclBinding(ResourceType.TOPIC, name, pattern, principal, "*", everything, allows)


def groups(page_cache: Mapping[str, str]) -> list[Group]:
    """Both groups; `page_cache` has Barnabas sync as Kafka does."""
    return [
        Group(
            "Secured",
            "Neither broker syncs before acknowledging. Both have the same kind of certificate (P-256); the raw loads "
            "speak TLS 1.3 with AES-256-GCM, which is also what confluent-kafka agrees on with both. A log-in is a new "
            f"connection that asks for the versions, authenticates and is closed, {AT_A_TIME} at a time; credentials "
            f"of SCRAM have {ITERATIONS} iterations.",
            tuple(tls_cases()),
            barnabas={**page_cache, **SETTINGS},
            kafka=SETTINGS,
            warm_up=warm_up,
            secure=secure,
        ),
        Group(
            "Authorizer",
            f"Barnabas with an authorizer and {OTHER_USERS + 1} ACLs beside Barnabas without; the load is allowed by "
            f"a prefix. {PAIRS} pairs a run, in turn.",
            tuple(authorizer_cases()),
            barnabas={**page_cache, **AUTHORIZER},
            kafka=page_cache,
            warm_up=create_acls,
            sides=("with", "without"),
            before=ROOT,
        ),
    ]
