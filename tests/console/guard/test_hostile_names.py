"""Names and paths that an attacker has chosen, on a whole console."""

from __future__ import annotations

import socket
from urllib.parse import quote, urlsplit

from barnabas.client.admin.users import set_credential
from barnabas.client.cluster import Cluster
from barnabas.client.security.scram import credential
from tests.support.console.running import RunningConsole

MARKUP = "<img src=x onerror=alert(1)>\"'&\u202e\u0000"
NAMES = ("<script>alert(1)</script>", MARKUP.replace("\u0000", ""), "a\r\nSet-Cookie: planted=1", "javascript:alert(1)")


def test_markup_in_names_and_errors_is_text(console: RunningConsole) -> None:
    with Cluster(console.settings.bootstrap) as cluster:
        set_credential(cluster, NAMES[1], credential("SCRAM-SHA-256", "secret", 4096))
    for name in NAMES:
        part = quote(name, safe="")
        for path in (
            f"/topics/{part}",
            f"/users/{part}",
            f"/users?search={part}",
            f"/acls?name={part}",
            f"/may?user={part}&name={part}",
            f"/quotas?search={part}",
            f"/requests?client={part}",
            f"/pipelines/{part}",
            f"/login?next={part}",
            f"/{part}",
        ):
            answer = console.client.get(path)
            assert answer.status_code in (200, 400, 403, 404, 409), (path, answer.status_code)
            assert "<script>alert" not in answer.text, path
            assert "<img src=x" not in answer.text, path
            assert 'href="javascript:' not in answer.text, path
            assert "\u202e" not in answer.text.replace(part, "") or 'value="' in answer.text, path
            assert "planted" not in console.client.cookies, path


def test_no_file_outside_of_the_static_ones_is_served(console: RunningConsole) -> None:
    address = urlsplit(console.url)
    for path in (
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/..\\app.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/....//app.py",
        "/static/",
        "//evil.example/static/console.css",
    ):
        with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
            head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode())
            answer = b"".join(iter(lambda connection=connection: connection.recv(65536), b""))
        status = int(answer.split()[1])
        assert status in (400, 404), (path, status)
        assert b"create_app" not in answer
        assert b"root:" not in answer
