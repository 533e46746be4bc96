"""The rows of TLS, log-ins and the authorizer measure what they state: each is run small, on Barnabas only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from bench.cases import secured
from bench.cases.case import Case, Group, Scale
from bench.cases.groups import PAGE_CACHE
from bench.target import TIMEOUT_S, Target
from tests.support.cases import for_each
from tests.support.processes.server import Server

pytestmark = pytest.mark.skipif(
    not (shutil.which("cc") and Path("/usr/include/openssl/ssl.h").exists()),
    reason="needs a C compiler and OpenSSL's headers",
)
BRIEF = Scale(seconds=0.2, warmup_s=0.1, records=3000, max_mb=20, fill_mb=2, warmup_rounds=0)
ANY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def _server(folder: Path, **config: str) -> Server:
    settings = PAGE_CACHE | secured.SETTINGS | config
    return Group("Test", "", (), barnabas=settings, kafka={}, secure=secured.secure).server("barnabas", folder)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with _server(tmp_path_factory.mktemp("secured")) as server:
        secured_target = Target(server)
        secured.warm_up(secured_target, BRIEF)
        yield secured_target


@for_each("case", list(secured.tls_cases()), ids=lambda case: case.name)
def test_a_row_has_a_figure_for_each_goal(target: Target, case: Case) -> None:
    figures = case.measure(target, BRIEF)
    assert figures.keys() >= case.goals.keys()
    assert all(value >= 0 for value in figures.values())
    assert max(figures.values()) > 0


@pytest.mark.parametrize("mode", ["plain", "scram"])
def test_a_log_in_that_is_refused_ends_the_load(target: Target, mode: str) -> None:
    with pytest.raises(RuntimeError, match="the log-in was refused"):
        target.logins(mode, "SASL_PLAINTEXT", 2, 0, 5, secured.USER, "another")


def test_a_load_over_tls_does_not_speak_to_a_listener_without(target: Target) -> None:
    with pytest.raises(RuntimeError, match="the TLS handshake failed"):
        target.logins("tls", "SASL_PLAINTEXT", 1, 0, 5)


@pytest.mark.parametrize("settings", [secured.AUTHORIZER, {}], ids=["with", "without"])
def test_requests_are_measured_with_and_without_an_authorizer(tmp_path: Path, settings: dict[str, str]) -> None:
    group = Group("Test", "", (), barnabas=PAGE_CACHE | settings, kafka={})
    with group.server("barnabas", tmp_path) as server:
        secured_target = Target(server)
        secured.create_acls(secured_target, BRIEF)
        acls = secured_target.admin.describe_acls(ANY_ACL).result(TIMEOUT_S)
        assert len(acls) == (secured.OTHER_USERS + 1 if settings else 0)
        for case in list(secured.authorizer_cases())[:4]:
            assert case.measure(secured_target, BRIEF).keys() == {"req/s", "CPU us/op"}
