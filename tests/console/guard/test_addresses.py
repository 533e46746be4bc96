"""Which addresses the console may listen on, and which `Host`, `Origin` and paths it accepts."""

from __future__ import annotations

import pytest

from barnabas.console.guard.addresses import (
    AllowedHosts,
    ExposedError,
    check_exposure,
    host_name,
    is_same_origin,
    local_path,
)


def test_addresses_that_others_reach_need_tls_and_a_log_in() -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.8.0.1"):
        check_exposure(host, has_tls=False, has_login=False)
    for host in ("0.0.0.0", "", "::", "192.168.1.7", "broker.example"):
        check_exposure(host, has_tls=True, has_login=True)
        check_exposure(host, has_tls=False, has_login=False, is_in_container=True)
        with pytest.raises(ExposedError, match=r"needs TLS \(--tls-cert FILE --tls-key FILE\) and log-in"):
            check_exposure(host, has_tls=False, has_login=False)
        with pytest.raises(ExposedError, match="needs log-in"):
            check_exposure(host, has_tls=True, has_login=False)
        with pytest.raises(ExposedError, match=r"needs TLS .* there; without that it listens on 127\.0\.0\.1 only"):
            check_exposure(host, has_tls=False, has_login=True)


def test_a_host_is_an_ip_address_or_a_name_of_the_console() -> None:
    hosts = AllowedHosts(["Console.Example", ""])
    for host in ("127.0.0.1:8080", "[::1]:8080", "localhost", "LOCALHOST:1", "console.example.", "10.1.2.3:80"):
        assert hosts.allows(host), host
    for host in (
        "",
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "evil.example#localhost",
        "evil.example/localhost",
        "localhost:port",
        "localhost, evil.example",
        "[::1",
        "2130706433.evil",
    ):
        assert not hosts.allows(host), host
    assert host_name("[::1]:8080") == "::1"


def test_changes_come_from_a_page_of_the_console_or_from_no_page() -> None:
    host = "localhost:8080"
    for headers in (
        {},
        {"origin": "http://localhost:8080"},
        {"origin": "http://localhost:8080", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ):
        assert is_same_origin(headers, "http", host), headers
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "https://localhost:8080"},
        {"origin": "http://localhost:9090"},
        {"origin": "http://localhost:8080.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"origin": "http://localhost:8080", "sec-fetch-site": "same-site"},
    ):
        assert not is_same_origin(headers, "http", host), headers


def test_the_log_in_leads_to_paths_of_the_console_only() -> None:
    for path in ("/", "/topics?search=a%20b&page=2", "/topics/a%2Fb#tail"):
        assert local_path(path) == path
    for path in (
        "",
        "topics",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "/a\r\nSet-Cookie: a=b",
        "/\tevil",
        "/ü",
        "/a b",
        "//[",
    ):
        assert local_path(path) == "/", path
