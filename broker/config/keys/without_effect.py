"""Kafka's broker keys without effect in Barnabas: one table, by area.

They are declared so that a configuration of Kafka's is accepted, and DescribeConfigs shows them: setting one logs a
warning. A key that gets an effect moves to the module of its area, with a constant that the code reads. The table is
text because as calls it would be twice as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from barnabas.wire.configdef import ConfigKey, parse_value, without_effect

_NOT_SET: Final = "null"
"""The default of a key that is not set, as Kafka writes it."""

TABLE: Final = """\
[general]
alter.config.policy.class.name
    CLASS | null | | LOW | read-only
    Java class that validates changes of configs.
alter.log.dirs.replication.quota.window.num
    INT | 11 | [1,...] | LOW | read-only
    Samples kept for the quota of moves between log directories.
alter.log.dirs.replication.quota.window.size.seconds
    INT | 1 | [1,...] | LOW | read-only
    Time one sample covers, for the quota of moves between log directories.
background.threads
    INT | 10 | [1,...] | HIGH | cluster-wide
    Threads for background work.
client.quota.callback.class
    CLASS | null | | LOW | read-only
    Java class that computes client quotas.
compression.gzip.level
    INT | -1 | [1,...,9] or -1 | MEDIUM | cluster-wide
    Level of gzip where the broker compresses; -1 is gzip's own default.
compression.lz4.level
    INT | 9 | [1,...,17] | MEDIUM | cluster-wide
    Level of lz4 where the broker compresses.
compression.type
    STRING | producer | [uncompressed, zstd, lz4, snappy, gzip, producer] | HIGH | cluster-wide
    Compression of batches in the log; producer keeps the compression of the producer.
compression.zstd.level
    INT | 3 | [-131072,...,22] | MEDIUM | cluster-wide
    Level of zstd where the broker compresses.
config.providers
    LIST | | | LOW | cluster-wide
    Names of providers that resolve indirections in config values.
controlled.shutdown.enable
    BOOLEAN | true | | MEDIUM | read-only
    Whether a stopping broker first hands over its leaderships.
create.topic.policy.class.name
    CLASS | null | | LOW | read-only
    Java class that validates new topics.
delete.records.purgatory.purge.interval.requests
    INT | 1 | | MEDIUM | read-only
    Kafka's housekeeping of waiting DeleteRecords requests, by number of requests.
early.start.listeners
    LIST | null | | HIGH | read-only
    Listeners opened before the broker has caught up with the metadata.
fetch.purgatory.purge.interval.requests
    INT | 1000 | | MEDIUM | read-only
    Kafka's housekeeping of waiting Fetch requests, by number of requests.
follower.fetch.last.tiered.offset.enable
    BOOLEAN | false | | MEDIUM | cluster-wide
    Whether a new follower starts at the last offset in remote storage.
kafka.metrics.polling.interval.secs
    INT | 10 | [1,...] | LOW | read-only
    Polling interval of kafka.metrics.reporters.
kafka.metrics.reporters
    LIST | | | LOW | read-only
    Java classes that report Yammer metrics.
metric.reporters
    LIST | org.apache.kafka.common.metrics.JmxReporter | | LOW | cluster-wide
    Java classes that report metrics.
metrics.num.samples
    INT | 2 | [1,...] | LOW | read-only
    Samples kept for a metric.
metrics.recording.level
    STRING | INFO | | LOW | read-only
    Level of detail of metrics.
metrics.sample.window.ms
    LONG | 30000 | [1,...] | LOW | read-only
    Time one sample of a metric covers.
num.io.threads
    INT | 8 | [1,...] | HIGH | cluster-wide
    Threads that handle requests; Barnabas handles them in one loop.
principal.builder.class
    CLASS | org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder | | MEDIUM | per-broker
    Java class that turns an authenticated connection into a principal.
producer.purgatory.purge.interval.requests
    INT | 1000 | | MEDIUM | read-only
    Kafka's housekeeping of waiting Produce requests, by number of requests.
replication.quota.window.num
    INT | 11 | [1,...] | LOW | read-only
    Samples kept for replication quotas.
replication.quota.window.size.seconds
    INT | 1 | [1,...] | LOW | read-only
    Time one sample covers, for replication quotas.
security.providers
    STRING | null | | LOW | read-only
    Java classes that provide security algorithms.
[network]
num.network.threads
    INT | 3 | [1,...] | HIGH | cluster-wide
    Threads that read and write sockets; Barnabas uses one loop.
queued.max.requests
    INT | 500 | [1,...] | HIGH | read-only
    Maximum number of requests waiting to be handled.
socket.connection.setup.timeout.max.ms
    LONG | 30000 | | MEDIUM | read-only
    Maximum time to wait for a connection to be made, after repeated failures.
socket.connection.setup.timeout.ms
    LONG | 10000 | | MEDIUM | read-only
    Time to wait for a connection to be made.
socket.receive.buffer.bytes
    INT | 102400 | | HIGH | read-only
    SO_RCVBUF of client connections; -1 leaves it to the system.
socket.send.buffer.bytes
    INT | 102400 | | HIGH | read-only
    SO_SNDBUF of client connections; -1 leaves it to the system.
[log]
cordoned.log.dirs
    LIST | | | MEDIUM | per-broker
    Log directories that take no new partitions.
log.dir.failure.timeout.ms
    LONG | 30000 | [1,...] | LOW | read-only
    Time after which a broker stops when it cannot report a failed log directory.
log.local.retention.bytes
    LONG | -2 | [-2,...] | MEDIUM | cluster-wide
    Bytes of a tiered partition kept locally; -2 is the whole retention.
log.local.retention.ms
    LONG | -2 | [-2,...] | MEDIUM | cluster-wide
    Time segments of a tiered partition are kept locally; -2 is the whole retention.
log.preallocate
    BOOLEAN | false | | MEDIUM | cluster-wide
    Whether segment files are given their full size when created.
log.remote.copy.lag.bytes
    LONG | -1 | [-1,...] | MEDIUM | cluster-wide
    Bytes a rolled segment lags behind before it is copied to remote storage.
log.remote.copy.lag.ms
    LONG | 0 | [-1,...] | MEDIUM | cluster-wide
    Time a rolled segment waits before it is copied to remote storage.
num.recovery.threads.per.data.dir
    INT | 2 | [1,...] | HIGH | cluster-wide
    Threads that load and flush the logs of one directory.
[groups]
group.coordinator.append.linger.ms
    INT | -1 | [-1,...] | MEDIUM | read-only
    Time the group coordinator gathers records before it writes them; -1 adapts.
group.coordinator.background.threads
    INT | 2 | [1,...] | HIGH | read-only
    Threads of the group coordinator for work such as regular expressions.
group.coordinator.cached.buffer.max.bytes
    INT | 1048588 | [524288,...] | MEDIUM | cluster-wide
    Largest buffer that the group coordinator keeps between writes.
group.coordinator.threads
    INT | 4 | [1,...] | HIGH | read-only
    Threads of the group coordinator.
offsets.load.buffer.size
    INT | 5242880 | [1,...] | HIGH | read-only
    Bytes read at a time when the offsets topic is loaded.
[share_and_streams]
group.streams.topology.description.plugin.class
    CLASS | null | | MEDIUM | read-only
    Java class that keeps descriptions of topologies.
share.coordinator.append.linger.ms
    INT | -1 | [-1,...] | MEDIUM | read-only
    Time the share coordinator gathers records before it writes them; -1 adapts.
share.coordinator.cached.buffer.max.bytes
    INT | 1048588 | [524288,...] | MEDIUM | cluster-wide
    Largest buffer that the share coordinator keeps between writes.
share.coordinator.load.buffer.size
    INT | 5242880 | [1,...] | HIGH | read-only
    Bytes read at a time when the share state topic is loaded.
share.coordinator.threads
    INT | 1 | [1,...] | MEDIUM | read-only
    Threads of the share coordinator.
share.fetch.purgatory.purge.interval.requests
    INT | 1000 | | MEDIUM | read-only
    Kafka's housekeeping of waiting ShareFetch requests, by number of requests.
[transactions]
transaction.state.log.load.buffer.size
    INT | 5242880 | [1,...] | HIGH | read-only
    Bytes read at a time when the transaction state topic is loaded.
[replication]
replica.socket.receive.buffer.bytes
    INT | 65536 | | HIGH | read-only
    SO_RCVBUF of a follower's connections.
[controller]
controller.quorum.append.linger.ms
    INT | 25 | [0,...] | MEDIUM | read-only
    Time the controller gathers records before it writes them.
controller.quorum.auto.join.enable
    BOOLEAN | false | | LOW | read-only
    Whether a controller adds itself to the quorum.
controller.quorum.election.backoff.max.ms
    INT | 1000 | [0,...] | HIGH | read-only
    Maximum wait before a controller stands for election again.
controller.quorum.election.timeout.ms
    INT | 1000 | [0,...] | HIGH | read-only
    Time a controller waits for votes.
controller.quorum.fetch.timeout.ms
    INT | 2000 | [0,...] | HIGH | read-only
    Time without a successful fetch after which a controller stands for election.
metadata.max.idle.interval.ms
    INT | 500 | [0,...] | LOW | read-only
    Time after which an idle controller writes an empty record; 0 is never.
metadata.max.retention.bytes
    LONG | 104857600 | | HIGH | read-only
    Size of metadata log and snapshots above which old ones are deleted.
metadata.max.retention.ms
    LONG | 604800000 | | HIGH | read-only
    Age above which old metadata segments and snapshots are deleted.
[remote]
remote.fetch.max.wait.ms
    INT | 500 | [1,...] | MEDIUM | cluster-wide
    Maximum wait for data from remote storage.
remote.list.offsets.request.timeout.ms
    LONG | 30000 | [1,...] | MEDIUM | cluster-wide
    Maximum wait for an offset found in remote storage.
remote.log.index.file.cache.total.size.bytes
    LONG | 1073741824 | [1,...] | LOW | cluster-wide
    Disk space for cached indexes of remote segments.
remote.log.manager.copier.thread.pool.size
    INT | 10 | [1,...] | MEDIUM | cluster-wide
    Threads that copy segments to remote storage.
remote.log.manager.copy.max.bytes.per.second
    LONG | 9223372036854775807 | [1,...] | MEDIUM | cluster-wide
    Maximum bytes per second copied to remote storage.
remote.log.manager.copy.quota.window.num
    INT | 11 | [1,...] | MEDIUM | read-only
    Samples kept for the quota of copying to remote storage.
remote.log.manager.copy.quota.window.size.seconds
    INT | 1 | [1,...] | MEDIUM | read-only
    Time one sample covers, for the quota of copying to remote storage.
remote.log.manager.expiration.thread.pool.size
    INT | 10 | [1,...] | MEDIUM | cluster-wide
    Threads that delete expired remote segments.
remote.log.manager.fetch.max.bytes.per.second
    LONG | 9223372036854775807 | [1,...] | MEDIUM | cluster-wide
    Maximum bytes per second read from remote storage.
remote.log.manager.fetch.quota.window.num
    INT | 11 | [1,...] | MEDIUM | read-only
    Samples kept for the quota of reading from remote storage.
remote.log.manager.fetch.quota.window.size.seconds
    INT | 1 | [1,...] | MEDIUM | read-only
    Time one sample covers, for the quota of reading from remote storage.
remote.log.manager.follower.thread.pool.size
    INT | 2 | [1,...] | MEDIUM | cluster-wide
    Threads for remote work of followers.
remote.log.manager.task.interval.ms
    LONG | 30000 | [1,...] | LOW | read-only
    Time between two rounds of copying and deleting.
remote.log.manager.thread.pool.size
    INT | 2 | [1,...] | MEDIUM | read-only
    Threads of the remote log.
remote.log.metadata.custom.metadata.max.bytes
    INT | 128 | [0,...] | LOW | read-only
    Largest custom metadata of a remote segment.
remote.log.metadata.manager.class.name
    STRING | org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager \
        | non-empty string | MEDIUM | read-only
    Java class that keeps the metadata of remote segments.
remote.log.metadata.manager.class.path
    STRING | null | | MEDIUM | read-only
    Class path of remote.log.metadata.manager.class.name.
remote.log.metadata.manager.impl.prefix
    STRING | rlmm.config. | non-empty string | MEDIUM | read-only
    Prefix of the keys handed to remote.log.metadata.manager.class.name.
remote.log.metadata.manager.listener.name
    STRING | null | non-empty string | MEDIUM | read-only
    Listener over which metadata of remote segments travels.
remote.log.reader.max.pending.tasks
    INT | 100 | [1,...] | MEDIUM | read-only
    Maximum number of reads from remote storage that wait.
remote.log.reader.threads
    INT | 10 | [1,...] | MEDIUM | cluster-wide
    Threads that read from remote storage.
remote.log.storage.manager.class.name
    STRING | null | non-empty string | MEDIUM | read-only
    Java class that stores remote segments.
remote.log.storage.manager.class.path
    STRING | null | | MEDIUM | read-only
    Class path of remote.log.storage.manager.class.name.
remote.log.storage.manager.impl.prefix
    STRING | rsm.config. | non-empty string | MEDIUM | read-only
    Prefix of the keys handed to remote.log.storage.manager.class.name.
remote.log.storage.system.enable
    BOOLEAN | false | | MEDIUM | read-only
    Whether tiered storage is on.
[security]
sasl.client.callback.handler.class
    CLASS | null | | MEDIUM | read-only
    Java class of the SASL client's callbacks.
sasl.kerberos.kinit.cmd
    STRING | /usr/bin/kinit | | MEDIUM | per-broker
    Path of the kinit command.
sasl.kerberos.min.time.before.relogin
    LONG | 60000 | | MEDIUM | per-broker
    Time between two attempts to refresh a Kerberos login.
sasl.kerberos.principal.to.local.rules
    LIST | DEFAULT | | MEDIUM | per-broker
    Rules that turn a Kerberos principal into a short name.
sasl.kerberos.service.name
    STRING | null | | MEDIUM | per-broker
    Kerberos name of the broker.
sasl.kerberos.ticket.renew.jitter
    DOUBLE | 0.05 | | MEDIUM | per-broker
    Random part of the time until a Kerberos ticket is renewed.
sasl.kerberos.ticket.renew.window.factor
    DOUBLE | 0.8 | | MEDIUM | per-broker
    Part of a Kerberos ticket's life after which it is renewed.
sasl.login.callback.handler.class
    CLASS | null | | MEDIUM | read-only
    Java class of the SASL login's callbacks.
sasl.login.class
    CLASS | null | | MEDIUM | read-only
    Java class of the SASL login.
sasl.login.connect.timeout.ms
    INT | null | | LOW | read-only
    Time to wait for a connection to the authentication provider.
sasl.login.read.timeout.ms
    INT | null | | LOW | read-only
    Time to wait for an answer of the authentication provider.
sasl.login.refresh.buffer.seconds
    SHORT | 300 | | MEDIUM | per-broker
    Time before its expiry at which a credential is refreshed at the latest.
sasl.login.refresh.min.period.seconds
    SHORT | 60 | | MEDIUM | per-broker
    Minimum time between two refreshes of a credential.
sasl.login.refresh.window.factor
    DOUBLE | 0.8 | | MEDIUM | per-broker
    Part of a credential's life after which it is refreshed.
sasl.login.refresh.window.jitter
    DOUBLE | 0.05 | | MEDIUM | per-broker
    Random part of the time until a credential is refreshed.
sasl.login.retry.backoff.max.ms
    LONG | 10000 | | LOW | read-only
    Maximum wait between two attempts to log in.
sasl.login.retry.backoff.ms
    LONG | 100 | | LOW | read-only
    First wait between two attempts to log in.
sasl.oauthbearer.assertion.algorithm
    STRING | RS256 | (case insensitive) [ES256, RS256] | MEDIUM | read-only
    Algorithm that signs an assertion.
sasl.oauthbearer.assertion.claim.aud
    STRING | null | | MEDIUM | read-only
    Audience claim of an assertion.
sasl.oauthbearer.assertion.claim.exp.seconds
    INT | 300 | [0,...,86400] | LOW | read-only
    Seconds until an assertion expires.
sasl.oauthbearer.assertion.claim.iss
    STRING | null | | MEDIUM | read-only
    Issuer claim of an assertion.
sasl.oauthbearer.assertion.claim.jti.include
    BOOLEAN | false | | MEDIUM | read-only
    Whether an assertion has a unique id.
sasl.oauthbearer.assertion.claim.nbf.seconds
    INT | 60 | [0,...,3600] | LOW | read-only
    Seconds before now from which an assertion holds.
sasl.oauthbearer.assertion.claim.sub
    STRING | null | | MEDIUM | read-only
    Subject claim of an assertion.
sasl.oauthbearer.assertion.file
    STRING | null | | MEDIUM | read-only
    File with a ready assertion.
sasl.oauthbearer.assertion.private.key.file
    STRING | null | | MEDIUM | read-only
    File with the key that signs an assertion.
sasl.oauthbearer.assertion.private.key.passphrase
    PASSWORD | null | | MEDIUM | read-only
    Passphrase of the key that signs an assertion.
sasl.oauthbearer.assertion.template.file
    STRING | null | | MEDIUM | read-only
    File with headers and claims of an assertion.
sasl.oauthbearer.client.credentials.client.id
    STRING | null | | MEDIUM | read-only
    Client id of the client credentials grant.
sasl.oauthbearer.client.credentials.client.secret
    PASSWORD | null | | MEDIUM | read-only
    Client secret of the client credentials grant.
sasl.oauthbearer.jwt.retriever.class
    CLASS | org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever | | MEDIUM | read-only
    Java class that requests tokens.
sasl.oauthbearer.jwt.validator.class
    CLASS | org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator | | MEDIUM | read-only
    Java class that checks tokens.
sasl.oauthbearer.scope
    STRING | null | | MEDIUM | read-only
    Scope requested with a token.
ssl.engine.factory.class
    CLASS | null | | LOW | per-broker
    Java class that makes TLS engines.
ssl.keymanager.algorithm
    STRING | SunX509 | | MEDIUM | per-broker
    Java algorithm of the key manager.
ssl.provider
    STRING | null | | MEDIUM | per-broker
    Java security provider for TLS.
ssl.secure.random.implementation
    STRING | null | | LOW | per-broker
    Java source of randomness for TLS.
ssl.trustmanager.algorithm
    STRING | PKIX | | MEDIUM | per-broker
    Java algorithm of the trust manager.
[dynamic_only]
group.consumer.assignor.offload.enable
    BOOLEAN | true | | MEDIUM | cluster-wide
    Whether assignments of consumer groups are computed in the background.
group.share.assignor.offload.enable
    BOOLEAN | true | | MEDIUM | cluster-wide
    Whether assignments of share groups are computed in the background.
group.streams.assignor.offload.enable
    BOOLEAN | true | | MEDIUM | cluster-wide
    Whether assignments of streams groups are computed in the background.
"""
"""Three lines for each key: its name; type, default, valid values, importance and update mode; its documentation."""


def _rows() -> Iterator[tuple[str, ConfigKey[Any]]]:
    area = ""
    lines = map(str.strip, TABLE.splitlines())
    for name in lines:
        if name.startswith("["):
            area = name.strip("[]")
            continue
        type_, default, valid, importance, dynamic = map(str.strip, next(lines).split("|"))
        value = None if default == _NOT_SET else parse_value(name, type_, default)
        yield area, ConfigKey(type_, name, value, valid, importance, dynamic, next(lines))


def _by_area() -> dict[str, tuple[ConfigKey[Any], ...]]:
    areas: dict[str, list[ConfigKey[Any]]] = {}
    for area, key in _rows():
        areas.setdefault(area, []).append(key)
    return {area: without_effect(*keys) for area, keys in areas.items()}


WITHOUT_EFFECT: Final = _by_area()
"""The keys, by the module of their area."""
