"""The control channel: only with `--control`, only with its token, one sentence for every mistake."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from barnabas.testing import Broker
from tests.support.cases import for_each
from tests.support.processes.commands import run_barnabas


def ask(broker: Broker, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
    connection = HTTPConnection(broker.channel.url.removeprefix("http://"), timeout=20)
    try:
        connection.request(method, path, body, {"Authorization": f"Bearer {broker.channel.token}"} | headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@for_each("authorization", ["", "Bearer", "Bearer x", "Basic x"])
def test_without_the_token_nothing_is_done(barnabas_broker: Broker, authorization: str) -> None:
    assert ask(barnabas_broker, "POST", "/v1/clusters", Authorization=authorization)[0] == 401


@for_each(
    ("method", "path", "body", "status", "sentence"),
    [
        ("GET", "/", b"", 404, "There is nothing at /"),
        ("GET", "/v1/clusters/x", b"", 404, "There is nothing at /v1/clusters/x"),
        ("GET", "/v1/clusters/0", b"", 400, "GET is not for /v1/clusters/0"),
        ("PUT", "/v1/clusters", b"", 400, "PUT is not for /v1/clusters"),
        ("POST", "/v1/clusters/0/dance", b"", 404, "There is no operation 'dance'"),
        ("POST", "/v1/clusters/999999/records", b"", 404, "There is no cluster 999999"),
        ("POST", "/v1/clusters/0/records", b"", 400, "topic is missing"),
        ("POST", "/v1/clusters/0/records", b'{"topic": 7}', 400, "topic must be a text, not 7"),
        ("POST", "/v1/clusters/0/records", b'{"topic": "t", "dance": 1}', 400, "Unknown: dance"),
        ("POST", "/v1/clusters/0/records", b'{"topic": "t", "key": "!"}', 400, "key must be base64"),
        ("POST", "/v1/clusters/0/records", b'{"topic": "t", "headers": {"h": "!"}}', 400, "headers: h must be base64"),
        ("POST", "/v1/clusters/0/records", b'{"topic": "t", "headers": {"h": 7}}', 400, "headers: h must be base64"),
        (
            "POST",
            "/v1/clusters/0/records",
            b'{"topic": "t", "positions": {"x": 1}}',
            400,
            "positions must be whole numbers",
        ),
        ("POST", "/v1/clusters/0/produce", b'{"topic": "t", "records": [7]}', 400, "records must be a list of objects"),
        ("POST", "/v1/clusters/0/records", b"[]", 400, "Bad Request"),
        ("POST", "/v1/clusters/0/records", b"{", 400, "Bad Request"),
        ("POST", "/v1/clusters/0/request", b'{"api": "Dance"}', 400, "There is no API 'Dance'"),
        ("POST", "/v1/clusters/0/request", b'{"api": "Fetch", "version": 1}', 400, "FetchRequest has no version 1"),
        ("POST", "/v1/clusters/0/request", b'{"api": "Heartbeat", "body": {"x": 1}}', 400, "HeartbeatRequest"),
        ("POST", "/v1/clusters", b'{"dance": 1}', 400, "Unknown: dance"),
    ],
)
def test_mistakes(barnabas_broker: Broker, method: str, path: str, body: bytes, status: int, sentence: str) -> None:
    actual, response = ask(barnabas_broker, method, path, body)
    assert (actual, sentence in response["error"]) == (status, True), response


def test_no_http(barnabas_broker: Broker) -> None:
    import socket

    host, port = barnabas_broker.channel.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as client:
        client.sendall(b"\x00\x00\x00\x10 no HTTP at all\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")
    assert ask(barnabas_broker, "GET", "/v1/clusters")[0] == 200


def test_the_file_of_the_token_is_its_owners(tmp_path: Path) -> None:
    file = tmp_path / "control.json"
    command = [sys.executable, "-m", "barnabas", "serve", "--listen", "127.0.0.1:0", "--control"]
    command += ["--control-file", str(file), "--end-with-stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        content = json.loads(file.read_text())
        assert content["pid"] == broker.pid
        assert content["control"].startswith("http://127.0.0.1:")
        assert content["token"] not in Path(f"/proc/{broker.pid}/cmdline").read_text()
        broker.communicate()
    assert broker.returncode == 0


@for_each(
    ("arguments", "sentence"),
    [
        (["--control-file", "x"], "--control-file is for --control"),
        (["--end-with-stdin"], "--end-with-stdin is for --control"),
        (["--control", "nowhere"], "--control must be HOST:PORT"),
        (["--control", "203.0.113.1:0"], "Cannot listen on 203.0.113.1:0 (--control)"),
        (["--control", "--control-file", "/no/such/directory/x"], "Cannot write the control file"),
        (["--control", "--brokers", "3"], "--control is for one broker"),
    ],
)
def test_mistakes_on_the_command_line(arguments: list[str], sentence: str) -> None:
    ended = run_barnabas(["serve", "--listen", "127.0.0.1:0", *arguments], os.environ)
    stderr = ended.stderr.decode()
    assert (ended.returncode, sentence in stderr, "Traceback" in stderr) == (2, True, False), stderr
