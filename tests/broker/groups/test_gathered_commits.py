"""OffsetCommits of a turn are written as one batch; the usual one is read and answered without message objects (G2)."""

from __future__ import annotations

import random

import pytest

from barnabas.broker.apis.groups.usual_commit import KnownCommit, end_of_usual, usual_commits
from barnabas.broker.apis.known_prefixes import Bound
from barnabas.storage.files import Files
from barnabas.wire.batches.records import iter_batches
from barnabas.wire.errors import ErrorCode, ProtocolError
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.groups import commit, fetch, find, heartbeat, stable

VERSION = 9
GROUPS = ("g1", "g2", "g3")
OFFSETS = "__consumer_offsets"
SEED = 815


@pytest.fixture
def memory(tmp_path):
    broker = MemoryBroker(tmp_path / "data", {"offsets.topic.num.partitions": "1"})
    broker.create_topic("t")
    yield broker
    broker.close()


class Member:
    """The only member of a classic group, whose commits are known already."""

    def __init__(self, memory: MemoryBroker, group_id: str) -> None:
        self.memory, self.group_id, self.client = memory, group_id, memory.client()
        self.joined = stable(self.client, group_id)
        for _ in range(2):
            self.client.send(self.request(1), VERSION)
        assert self.errors() == [0, 0]

    def request(self, offset: int, **values: object) -> o.OffsetCommitRequest:
        return commit_of(self.group_id, offset, self.joined.generation_id, self.joined.member_id, **values)

    def receive(self, offset: int, **values: object) -> None:
        frame = self.client.frame(self.request(offset, **values), VERSION)
        self.client.connection.receive(memoryview(bytearray(frame)), self.memory.clock.now)

    def errors(self) -> list[int]:
        return [response.topics[0].partitions[0].error_code for response in self.client.answers()]  # type: ignore[attr-defined]


def commit_of(
    group_id: str, offset: int, generation: int = -1, member_id: str = "", topic: str = "t", **values: object
) -> o.OffsetCommitRequest:
    partition = o.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata="", committed_leader_epoch=3
    )
    return o.OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[o.OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        **values,  # type: ignore[arg-type]
    )


def log_of(memory: MemoryBroker):
    return memory.broker.partitions.get(OFFSETS, 0).log


def test_the_commits_of_a_turn_are_one_batch(memory) -> None:
    members = [Member(memory, group_id) for group_id in GROUPS]
    log, loop = log_of(memory), memory.broker.loop
    start = log.log_end_offset
    loop.is_gathering = True
    for offset, member in enumerate([*members, members[0]], 10):
        member.receive(offset)
    loop.is_gathering = False
    assert log.log_end_offset == start
    loop.write_gathered()
    data = log.read(start, 1 << 20, limit_offset=log.log_end_offset, min_one_batch=True).slice.read()
    (written,) = iter_batches(data)
    assert (written.base_offset, written.record_count) == (start, 4)
    assert [member.errors() for member in members] == [[0, 0], [0], [0]]
    assert [fetch(member.client, "t", member.group_id) for member in members] == [13, 11, 12]


def test_the_offsets_are_there_after_a_restart(memory, tmp_path) -> None:
    members = [Member(memory, group_id) for group_id in GROUPS]
    memory.broker.loop.is_gathering = True
    for offset, member in enumerate(members, 10):
        member.receive(offset)
    memory.broker.loop.is_gathering = False
    memory.broker.loop.write_gathered()
    stores = [coordinator.offsets.store for coordinator in memory.broker.group_coordinators]
    memory.close()
    again = MemoryBroker(tmp_path / "data")
    again.broker.group_coordinators.load()
    client = again.client()
    assert [fetch(client, "t", group_id) for group_id in GROUPS] == [10, 11, 12]
    assert [coordinator.offsets.store for coordinator in again.broker.group_coordinators] == stores
    again.close()


def test_a_failed_write_fails_all_of_them_and_changes_nothing(memory, monkeypatch) -> None:
    members = [Member(memory, group_id) for group_id in GROUPS]
    log, loop = log_of(memory), memory.broker.loop
    start = log.log_end_offset

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    loop.is_gathering = True
    for member in members:
        member.receive(99)
    loop.is_gathering = False
    with monkeypatch.context() as patch:
        patch.setattr(Files, "write_at", no_space)
        loop.write_gathered()
        alone = Member.request(members[0], 98)
        members[0].client.send(alone, VERSION)
    not_coordinator = int(ErrorCode.NOT_COORDINATOR)
    assert members[0].errors() == [not_coordinator] * 2
    assert [member.errors() for member in members[1:]] == [[not_coordinator]] * 2
    assert log.log_end_offset == start
    assert [fetch(member.client, "t", member.group_id) for member in members] == [1, 1, 1]
    members[1].receive(5)
    assert members[1].errors() == [0]


def test_every_other_event_comes_after_them(memory) -> None:
    first, second = Member(memory, "g1"), Member(memory, "g2")
    log, loop = log_of(memory), memory.broker.loop
    loop.is_gathering = True
    first.receive(20)
    second.receive(21)
    request = g.LeaveGroupRequest(group_id="g1", members=[g.MemberIdentity(member_id=first.joined.member_id)])
    left = second.client.frame(request, 5)
    second.client.connection.receive(memoryview(bytearray(left)), memory.clock.now)
    first.receive(22)
    loop.is_gathering = False
    loop.write_gathered()
    data = log.read(0, 1 << 20, limit_offset=log.log_end_offset, min_one_batch=True).slice.read()
    counts = [written.record_count for written in iter_batches(data)]
    assert counts[-2:] == [2, 1]  # both commits, then the group without its member
    assert first.errors() == [0, int(ErrorCode.UNKNOWN_MEMBER_ID)]
    assert len(second.client.answers()) == 2
    assert fetch(second.client, "t", "g1") == 20


def test_a_commit_renews_the_session(memory) -> None:
    member = Member(memory, "g1")
    for offset in range(5):
        memory.advance(8)
        member.receive(offset)
    assert member.errors() == [0] * 5
    assert heartbeat(member.client, member.joined, "g1") == 0
    memory.advance(11)
    member.receive(9)
    assert member.errors() == [int(ErrorCode.UNKNOWN_MEMBER_ID)]


def test_a_commit_that_is_refused_is_refused_as_usual(memory) -> None:
    member = Member(memory, "g1")
    stale = commit_of("g1", 7, member.joined.generation_id - 1, member.joined.member_id)
    unknown_topic = commit_of("g1", 7, member.joined.generation_id, member.joined.member_id, topic="none")
    nobody = commit_of("g9", 7, 3, "m")
    for request, error in (
        (stale, ErrorCode.ILLEGAL_GENERATION),
        (unknown_topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (nobody, ErrorCode.GROUP_ID_NOT_FOUND),
    ):
        for _ in range(3):
            member.client.send(request, VERSION)
            assert member.errors() == [int(error)]
    for _ in range(3):
        assert commit(member.client, "t", 8, "simple") == {0}
    assert fetch(member.client, "t", "simple") == 8


def test_a_topic_that_is_created_again_has_its_own_offsets(memory) -> None:
    from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

    member = Member(memory, "g1")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])
    assert member.client.ask(request, 6, DeleteTopicsResponse).responses[0].error_code == 0
    memory.run_all()
    member.receive(5)
    assert member.errors() == [int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    topic_id = memory.create_topic("t")
    member.receive(6)
    assert member.errors() == [0]
    (coordinator,) = memory.broker.group_coordinators
    assert coordinator.offsets.store.get("g1", "t", 0, topic_id).offset == 6


VERSIONS = range(o.OffsetCommitRequest.min_version, o.OffsetCommitRequest.max_version + 1)


def frame_of(request: o.OffsetCommitRequest, version: int) -> bytes:
    """The bytes from the end of the client id on."""
    return (b"\0" if version >= 8 else b"") + request.encode(version)


def request_of(version: int, topic_id: bytes) -> o.OffsetCommitRequest:
    request = commit_of("group", 7, 4, "member", topic="t" if version < 10 else "")
    if version >= 10:
        request.topics[0].topic_id = topic_id
    if version < 6:
        request.topics[0].partitions[0].committed_leader_epoch = -1
    return request


@pytest.mark.parametrize("version", VERSIONS)
def test_a_changed_frame_is_read_as_by_the_codec_or_not_at_all(version: int) -> None:
    """Whatever byte changes: what is looked up and the last bytes say what the codec reads."""
    draw = random.Random(SEED + version)
    commits = usual_commits(version, Bound())
    offset_and_epoch, ends = end_of_usual(version)
    request = request_of(version, draw.randbytes(16))
    frame = frame_of(request, version)
    last = len(frame) - len(next(iter(ends)))
    at = last - offset_and_epoch.size
    assert frame[last:] in ends
    assert commits.learned(frame[:at], memoryview(frame), 0) is None
    learned = commits.learned(frame[:at], memoryview(frame), 0)
    assert isinstance(learned, KnownCommit)
    for _ in range(3_000):
        changed = bytearray(frame)
        for _ in range(draw.choice((1, 1, 2))):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        known = commits.get(bytes(changed[:at]))
        if known is None or bytes(changed[last:]) not in ends:
            continue
        try:
            parsed = o.OffsetCommitRequest.decode(bytes(changed[int(version >= 8) :]), version)
        except ProtocolError:
            pytest.fail(f"seed {SEED}: {changed.hex()} is no request, but was read")
        offset, *epoch = offset_and_epoch.unpack_from(changed, at)
        partition = parsed.topics[0].partitions[0]
        assert (partition.committed_offset, partition.committed_leader_epoch) == (offset, *(epoch or [-1]))
        assert not partition.committed_metadata
        expected = request.topics[0].partitions[0]
        partition.committed_offset, partition.committed_metadata = 7, ""
        partition.committed_leader_epoch = expected.committed_leader_epoch
        assert parsed.encode(version) == request.encode(version)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_commit_that_expires_by_itself_is_not_usual(version: int) -> None:
    commits = usual_commits(version, Bound())
    request = request_of(version, bytes(16))
    request.retention_time_ms = 60_000
    frame = memoryview(frame_of(request, version))
    for _ in range(3):
        assert commits.learned(bytes(frame[:-10]), frame, 0) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_the_response_is_the_one_that_the_codec_builds(version: int) -> None:
    request = request_of(version, bytes(range(16)))
    known = KnownCommit(request, version)
    tags = b"\0" if version >= 8 else b""
    for error in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR):
        frame = known.failed(77, error) if error else known.response(77)
        head = (len(frame) - 4).to_bytes(4, "big") + (77).to_bytes(4, "big") + tags
        assert frame.startswith(head)
        decoded = o.OffsetCommitResponse.decode(frame[len(head) :], version)
        assert decoded.topics[0].partitions[0].error_code == error
        assert decoded.topics[0].topic_id == request.topics[0].topic_id
        assert decoded.topics[0].name == request.topics[0].name


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_commits_the_offset(memory, version: int) -> None:
    client, topic_id = memory.client(), memory.broker.image.topics["t"].topic_id
    find(client, "simple")
    for offset in (5, 6, 7, 8):
        request = commit_of("simple", offset, topic="t" if version < 10 else "")
        if version >= 10:
            request.topics[0].topic_id = topic_id
        if version < 6:
            request.topics[0].partitions[0].committed_leader_epoch = -1
        response = client.ask(request, version, o.OffsetCommitResponse)
        assert response.topics[0].partitions[0].error_code == 0
        (coordinator,) = memory.broker.group_coordinators
        committed = coordinator.offsets.store.get("simple", "t", 0, topic_id)
        assert (committed.offset, committed.leader_epoch) == (offset, 3 if version >= 6 else -1)


def test_a_client_with_several_connections(memory) -> None:
    """A connection that is closed before the write: its commit is written, and nothing else is disturbed."""
    first, second = Member(memory, "g1"), Member(memory, "g2")
    memory.broker.loop.is_gathering = True
    first.receive(30)
    second.receive(31)
    first.client.connection.close()
    memory.broker.loop.is_gathering = False
    memory.broker.loop.write_gathered()
    assert second.errors() == [0]
    other: Client = memory.client()
    assert (fetch(other, "t", "g1"), fetch(other, "t", "g2")) == (30, 31)
