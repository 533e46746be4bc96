"""The process of a console: it is started with `serve --console` or alone, and ends with whatever started it."""

from __future__ import annotations

import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.support.console.running import words
from tests.support.console.serving import Serving
from tests.support.processes.commands import COMMAND, clean_environment, run_command
from tests.support.waiting import wait_for

LISTEN = ("--listen", "127.0.0.1:0", "--console", "127.0.0.1:0")


def url_of(serving: Serving) -> str:
    """The URL of the ready line of the console."""
    assert serving.process.stdout is not None
    line = serving.process.stdout.readline().decode()
    assert line.startswith("Console: http://127.0.0.1:")
    return line.removeprefix("Console: ").strip()


def process_of_console(serving: Serving) -> psutil.Process:
    children = psutil.Process(serving.process.pid).children(recursive=True)
    (console,) = (child for child in children if "console" in child.cmdline())
    return console


def wait_for_end(process: psutil.Process) -> None:
    def has_ended() -> bool:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE

    wait_for(has_ended, "the process of the console ends", errors=(psutil.NoSuchProcess,))


def is_refused(url: str) -> bool:
    try:
        httpx2.get(url)
    except httpx2.ConnectError:
        return True
    return False


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_console_is_ready_with_its_broker_and_ends_with_it(end: signal.Signals) -> None:
    with Serving(*LISTEN) as serving:
        assert "started on" in serving.first_line
        url = url_of(serving)
        assert "There are no topics yet." in httpx2.get(f"{url}/topics", timeout=60).text
        requests = httpx2.get(f"{url}/api/requests?own=true", timeout=60).json()
        assert requests["available"]
        lab = httpx2.get(f"{url}/api/lab", timeout=60).json()
        assert not lab["available"], "a broker without --control has no test powers"
        console = process_of_console(serving)
        code, _, err = serving.stop(end)
        assert code == (0 if end is signal.SIGTERM else -9)
        assert "WARN" not in err
        wait_for_end(console)
        assert is_refused(url)


def test_a_broker_goes_on_without_its_console_and_says_so() -> None:
    with Serving(*LISTEN) as serving:
        url = url_of(serving)
        assert httpx2.get(f"{url}/topics", timeout=60).status_code == 200
        process_of_console(serving).kill()
        wait_for(lambda: is_refused(url), "the console is gone")
        code, _, err = serving.stop(signal.SIGTERM)
    assert code == 0
    assert re.search(r"WARN The console has ended by signal 9; 'barnabas console -b ADDRESS' starts one again", err)


@pytest.mark.cluster
def test_the_console_of_a_cluster_ends_with_its_supervisor(tmp_path) -> None:
    with Serving(*LISTEN, "--brokers", "2", "--data-dir", str(tmp_path / "cluster")) as serving:
        url = url_of(serving)
        view = httpx2.get(f"{url}/api/cluster", timeout=60).json()
        assert [broker["node_id"] for broker in view["brokers"]] == [1, 2]
        assert view["has_nodes"] is True
        requests_of_both_brokers(url)
        console = process_of_console(serving)
        serving.stop(signal.SIGKILL)
        wait_for_end(console)


def requests_of_both_brokers(url: str) -> None:
    """The console of a cluster shows what each broker was asked, also after a broker was started again."""
    with httpx2.Client(base_url=url, timeout=60) as client:

        def asked(path: str) -> dict[int, int]:
            """The broker and the number of the newest request of each broker."""
            rows = client.get(path).json()["requests"]
            return {row["node"]: row["number"] for row in reversed(rows)}

        view = client.get("/api/requests").json()
        assert (view["available"], view["nodes"], view["silent"]) == (True, [1, 2], [])
        newest = wait_for(lambda: len(asked("/api/requests?own=true")) == 2 and asked("/api/requests?own=true"), "both")
        assert isinstance(newest, dict)
        for node, number in newest.items():
            one = client.get(f"/api/requests/{number}?node={node}").json()
            assert (one["row"]["node"], one["row"]["number"]) == (node, number)
            assert f"/requests?node={node}" in client.get(f"/requests/{number}?node={node}").text
        assert set(asked("/api/requests?own=true&node=2")) == {2}
        assert not any(
            re.match(r"broker-\d", row["client"]) for row in client.get("/api/requests").json()["requests"]
        ), "what brokers ask each other is shown on demand"
        headers = {"x-csrf-token": client.get("/api/session").json()["csrf_token"]}
        assert client.post("/api/cluster/nodes/2/kill", json={}, headers=headers).status_code == 200
        wait_for(lambda: client.get("/api/requests").json()["silent"] == [2], "broker 2 is silent")
        assert "Broker 2 does not answer" in client.get("/requests").text
        assert client.post("/api/cluster/nodes/2/start", json={}, headers=headers).status_code == 200
        wait_for(lambda: 2 in asked("/api/requests?own=true&node=2"), "broker 2 tells its requests again")


def test_a_taken_or_wrong_address_is_a_mistake_of_the_command_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for command in (("serve", "--listen", "127.0.0.1:0", "--console", address), ("console", "--listen", address)):
            ran = run_command(*command)
            assert ran.code == 2
            assert f"the console cannot listen on {address}: Address already in use" in ran.stderr
            assert "Traceback" not in ran.stderr
    for command in (("serve", "--console", "nowhere"), ("console", "--listen", "nowhere")):
        ran = run_command(*command)
        assert ran.code == 2
        assert "must be HOST:PORT" in ran.stderr


@contextmanager
def console_command(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`barnabas console` on a free port: its URL and its process."""
    command = [*COMMAND, "console", "--listen", "127.0.0.1:0", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, env=clean_environment()
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().removeprefix("Console: ").strip(), process
        finally:
            process.kill()


def test_a_console_alone_says_when_no_broker_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    with console_command("-b", address, "--end-with-stdin") as (url, process):
        response = httpx2.get(f"{url}/api/topics", timeout=60)
        assert response.status_code == 503
        assert address in response.json()["error"]
        page = httpx2.get(f"{url}/topics")
        assert page.status_code == 503
        assert "Service Unavailable" in page.text
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def test_options_of_the_console_are_those_of_serve_too(tmp_path: Path) -> None:
    schema = tmp_path / "order.avsc"
    schema.write_text('{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}')
    with Serving(*LISTEN, "--schema", str(schema), "--pipelines", str(tmp_path)) as serving:
        url = url_of(serving)
        schemas = httpx2.get(f"{url}/api/schemas", timeout=60).json()["schemas"]
        assert [schema["name"] for schema in schemas] == ["order.avsc"]
        assert httpx2.get(f"{url}/api/pipelines", timeout=60).json()["folder"] == str(tmp_path)
    for arguments, sentence in (
        (("--schema", str(schema)), "--schema is for --console"),
        (("--schema-registry", "http://127.0.0.1:1"), "--schema-registry is for --console"),
        (("--pipelines", str(tmp_path), "--brokers", "2"), "--pipelines is for --console"),
        (("--console", "127.0.0.1:0", "--schema", "none.avsc"), "--schema none.avsc: no such file or directory"),
        (("--console", "127.0.0.1:0", "--pipelines", "nowhere"), "--pipelines nowhere: there is no such directory"),
    ):
        ran = run_command("serve", "--listen", "127.0.0.1:0", *arguments)
        assert (ran.code, ran.stdout) == (2, "")
        assert sentence in ran.stderr


def test_a_console_that_others_reach_needs_tls_and_a_log_in(tmp_path: Path) -> None:
    for address in ("0.0.0.0:0", ":0", "[::]:0"):
        for command, way in (
            (("serve", "--listen", "127.0.0.1:0", "--console", address), "start with --secure"),
            (("console", "-b", "127.0.0.1:1", "--listen", address), "whether people must log in is not known"),
        ):
            ran = run_command(*command)
            assert (ran.code, ran.stdout) == (2, "")
            assert way in ran.stderr
    ran = run_command("console", "-b", "127.0.0.1:1", "--tls-cert", str(tmp_path / "none.pem"))
    assert ran.code == 2
    assert "No such file" in ran.stderr
    ran = run_command("console", "-b", "127.0.0.1:1", "--tls-key", "key.pem")
    assert "--tls-key is the key of --tls-cert" in ran.stderr


def test_the_console_of_a_secured_broker_has_its_certificate_and_its_users(tmp_path: Path) -> None:
    arguments = (
        "--listen",
        "127.0.0.1:0",
        "--secure",
        "--data-dir",
        str(tmp_path / "data"),
        "--user",
        "ann:ann-secret",
    )
    with Serving(*arguments, "--console", "0.0.0.0:0") as serving:
        assert serving.process.stdout is not None
        url = serving.process.stdout.readline().decode().removeprefix("Console: ").strip()
        assert url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=str(tmp_path / "data-secure" / "ca.pem"))
        with httpx2.Client(base_url=url, verify=trusted, timeout=60, follow_redirects=True) as client:
            assert "Log in" in client.get("/topics").text
            assert client.post("/login", data={"user": "ann", "password": "ann"}).status_code == 401
            page = client.post("/login", data={"user": "ann", "password": "ann-secret", "next": "/topics"})
            assert (page.status_code, page.url.path) == (200, "/topics")
            assert client.get("/api/session").json()["user"] == "ann"
            cookie = next(iter(client.cookies.jar))
            assert cookie.secure
            assert cookie.name.startswith("__Host-")
            assert client.get("/topics", headers={"host": "evil.example"}).status_code == 403
            without_rights(client)


def without_rights(client: httpx2.Client) -> None:
    """What a user without any ACL gets: pages without what may not be seen, or one sentence, and no change."""
    for path, status, sentence in (
        ("/overview", 200, "Brokers 1"),
        ("/topics", 200, "There are no topics yet"),
        ("/topics/orders", 403, "TOPIC_AUTHORIZATION_FAILED"),
        ("/cluster", 200, "online"),
        ("/cluster/partitions", 200, "There is no such partition"),
        ("/cluster/quorum", 403, "CLUSTER_AUTHORIZATION_FAILED"),
        ("/cluster/log-dirs", 403, "CLUSTER_AUTHORIZATION_FAILED"),
        ("/configs/broker/1", 403, "CLUSTER_AUTHORIZATION_FAILED"),
        ("/configs", 200, "Broker 1"),
    ):
        page = client.get(path)
        assert (path, page.status_code) == (path, status)
        assert re.search(sentence, words(page.text)), (path, words(page.text))
    headers = {"x-csrf-token": client.get("/api/session").json()["csrf_token"]}
    for path, fields, status in (
        ("/new-topic", {"name": "orders"}, 403),
        ("/cluster/elect", {}, 403),
        ("/configs/broker/default/set", {"key": "log.retention.ms", "value": "1"}, 403),
        ("/cluster/nodes/1/kill", {}, 403),
    ):
        refused = client.post("/api" + path, json=fields, headers=headers)
        assert (path, refused.status_code) == (path, status), refused.text
