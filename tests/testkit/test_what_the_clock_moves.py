"""What else goes by the clock of a cluster: the timeout of a rebalance, and the windows of quotas."""

from __future__ import annotations

import threading

from barnabas.testing import Cluster
from barnabas.wire.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tests.testkit.raw import Raw

VERSION = 3
"""The last version of JoinGroup in which a member joins without a second request."""


def _join(kafka: Cluster, client: str) -> JoinGroupResponse:
    """Join the group g, with a session that outlasts the rebalance; the answer, which may take a while."""
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=600_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=client.encode())],
    )
    answer = Raw(kafka).ask(request, VERSION)
    assert isinstance(answer, JoinGroupResponse)
    return answer


def test_a_rebalance_ends_without_the_member_that_is_too_slow(kafka: Cluster) -> None:
    kafka.clock.freeze()
    kafka.request("FindCoordinator", {"keyType": 0, "coordinatorKeys": ["g"]}, 4)
    slow = _join(kafka, "slow")
    assert (slow.error_code, slow.generation_id) == (0, 1)
    answers: list[JoinGroupResponse] = []
    joining = threading.Thread(target=lambda: answers.append(_join(kafka, "fast")))
    joining.start()
    kafka.group("g").wait_until("PreparingRebalance")
    kafka.clock.advance(59)
    assert kafka.group("g").describe().state == "PreparingRebalance"
    kafka.clock.advance(2)
    joining.join(20)
    (fast,) = answers
    assert (fast.error_code, fast.generation_id, fast.leader) == (0, 2, fast.member_id)
    assert [one.member_id for one in fast.members] == [fast.member_id]
