"""`barnabas doctor` against brokers that are set up wrongly: each mistake is one sentence, and gives the exit code."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.client.doctor import Doctor
from barnabas.wire.clients.connection import Connection, RequestReceived
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResponse, DescribeConfigsResult
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.schema import Message
from tests.support.processes.commands import Ran, run_command
from tests.support.processes.forwarder import Forwarder
from tests.support.processes.ports import free_port


def doctor(bootstrap: str, *options: str) -> Ran:
    ran = run_command("doctor", "-b", bootstrap, "--timeout", "20", *options)
    assert "Traceback" not in ran.stderr
    return ran


def failures(ran: Ran) -> list[str]:
    """The texts of the failed checks, each one line."""
    return [line.removeprefix("failed").strip() for line in ran.lines if line.startswith("failed")]


def failure(ran: Ran, code: int) -> str:
    assert ran.code == code, ran.stdout + ran.stderr
    (text,) = failures(ran)
    return text


@contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that handles each connection in a thread, and closes it then; its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                handle(connection)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


class Broker:
    """A broker of a cluster whose metadata a test chooses; `identity` is the node that it is."""

    def __init__(self, metadata: MetadataResponse, identity: int = 1, newest_fetch: int = 18, *, sasl: bool = False):
        self.metadata = metadata
        self.identity = identity
        self.newest_fetch = newest_fetch
        self.sasl = sasl

    def __call__(self, connection: socket.socket) -> None:
        protocol = Connection.server()
        while data := connection.recv(65536):
            protocol.receive_data(data)
            while isinstance(event := protocol.next_event(), RequestReceived):
                if self.sasl and not isinstance(event.request, ApiVersionsRequest):
                    return
                response = self._answer(event.request)
                connection.sendall(b"".join(bytes(chunk) for chunk in protocol.send_response(response, event)))

    def _answer(self, request: Message) -> Message:
        if isinstance(request, ApiVersionsRequest):
            offered = [(kind.api_key, kind.max_version) for kind in (ApiVersionsRequest, MetadataRequest)]
            offered += [(FetchRequest.api_key, self.newest_fetch), (DescribeConfigsRequest.api_key, 4)]
            return ApiVersionsResponse(
                api_keys=[ApiVersion(api_key=key, min_version=0, max_version=newest) for key, newest in offered]
            )
        if isinstance(request, DescribeConfigsRequest):
            wrong = request.resources[0].resource_name != str(self.identity)
            return DescribeConfigsResponse(results=[DescribeConfigsResult(error_code=42 if wrong else 0)])
        return self.metadata


def metadata(*nodes: str, cluster: str = "one", controller: int = 1, leader: int = 1) -> MetadataResponse:
    """A cluster with brokers 1, 2, ... at these addresses, and the partition t-0."""
    brokers = [
        MetadataResponseBroker(node_id=number, host=node.rpartition(":")[0], port=int(node.rpartition(":")[2]))
        for number, node in enumerate(nodes, 1)
    ]
    part = MetadataResponsePartition(partition_index=0, leader_id=leader, replica_nodes=[1], isr_nodes=[1])
    topic = MetadataResponseTopic(name="t", partitions=[part])
    return MetadataResponse(brokers=brokers, cluster_id=cluster, controller_id=controller, topics=[topic])


def test_a_broker_that_is_set_up_well(broker) -> None:  # Apache Kafka with --against kafka
    ran = doctor(broker.bootstrap).ok()
    assert failures(ran) == []
    assert f"broker 1 advertises {broker.bootstrap}: it answers there" in ran.stdout.replace("localhost", "127.0.0.1")
    rows = doctor(broker.bootstrap, "-o", "json").ok().json
    assert [row["check"] for row in rows][-2:] == ["advertised", "partitions"]
    assert {row["result"] for row in rows} == {"ok"}


def test_nothing_listens() -> None:
    assert "refuses connections" in failure(doctor(f"127.0.0.1:{free_port()}"), 3)


def test_a_name_that_is_not_known() -> None:
    assert "the name kafka.invalid is not known here" in failure(doctor("kafka.invalid:9092"), 3)


def test_a_port_mapping_without_a_broker_behind_it() -> None:
    with Forwarder(("127.0.0.1", free_port())) as mapping:
        assert "a published port without a broker behind it" in failure(doctor(f"127.0.0.1:{mapping.port}"), 3)


def test_an_advertised_port_that_is_not_published(start_broker) -> None:
    """`-p OUTSIDE:INSIDE` while the broker advertises its inside port, which only the broker's side can reach."""
    unpublished = free_port()
    broker = start_broker(config={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{unpublished}"})
    with Forwarder(("127.0.0.1", broker.port)) as mapping:
        text = failure(doctor(f"127.0.0.1:{mapping.port}"), 1)
    assert text.startswith(f"broker 1 advertises 127.0.0.1:{unpublished}: 127.0.0.1:{unpublished} refuses connections")
    assert "set advertised.listeners" in text


def test_a_name_that_only_containers_know() -> None:
    with serving(Broker(metadata("kafka.invalid:19092"))) as address:
        text = failure(doctor(address), 1)
    assert "broker 1 advertises kafka.invalid:19092: the name kafka.invalid is not known here" in text


def test_an_advertised_localhost_of_another_machine() -> None:
    described = metadata("localhost:9092")
    (check,) = Doctor("10.0.0.7:9092", 1.0, "0").follow(described.brokers[0], described)
    assert not check.is_ok
    assert check.text.startswith("broker 1 advertises localhost:9092: from here that is this machine, not the broker's")


def test_another_cluster_and_another_broker_behind_the_advertised_address() -> None:
    with (
        serving(Broker(metadata("127.0.0.1:1", cluster="two"))) as other,
        serving(Broker(metadata(other))) as address,
    ):
        assert f"another cluster answers at {other}: its id is two, not one" in failure(doctor(address), 1)
    second = Broker(metadata(), identity=2)
    with serving(second) as other:
        second.metadata = metadata(other)
        assert "another broker of the cluster answers there" in failure(doctor(other), 1)


def test_two_brokers_with_one_address() -> None:
    with serving(Broker(metadata("127.0.0.1:1", "127.0.0.1:1"))) as address:
        texts = failures(doctor(address))
    assert len(texts) == 2
    assert "brokers 1 and 2 advertise the same address" in texts[0]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"controller": -1}, "the cluster has no controller"),
        ({"leader": -1}, "1 partition of 1 without a leader: t-0"),
    ],
)
def test_a_cluster_that_is_not_whole(told: dict[str, int], expected: str) -> None:
    broker = Broker(metadata())
    with serving(broker) as address:
        broker.metadata = metadata(address, **told)
        assert expected in failure(doctor(address), 1)


def test_a_broker_that_is_too_old() -> None:
    broker = Broker(metadata(), newest_fetch=8)
    with serving(broker) as address:
        broker.metadata = metadata(address)
        assert "older than Kafka 2.1" in failure(doctor(address), 1)


def test_a_listener_that_requires_sasl() -> None:
    with serving(Broker(metadata(), sasl=True)) as address:
        assert "if its listener requires SASL" in failure(doctor(address), 3)


def test_a_web_server() -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with serving(answer) as address:
        assert "is a web server" in failure(doctor(address), 3)


def test_a_server_that_does_not_answer() -> None:
    def silence(connection: socket.socket) -> None:
        while connection.recv(1000):
            pass

    with serving(silence) as address:
        ran = run_command("doctor", "-b", address, "--timeout", "0.3")
    assert "does not answer within 0.3 s" in failure(ran, 3)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate of its own in one file."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    try:
        subprocess.run([*command, "-keyout", str(path), "-out", str(path) + ".crt"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    path.write_text(path.read_text() + Path(str(path) + ".crt").read_text())
    return path


def test_a_listener_that_expects_tls(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1000)

    with serving(answer) as address:
        assert "expects TLS" in failure(doctor(address), 3)


def test_wrong_addresses_are_wrong_usage() -> None:
    ran = run_command("doctor", "-b", "http://127.0.0.1:9092")
    assert (ran.code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
