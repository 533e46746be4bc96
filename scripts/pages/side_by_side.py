"""The tables of docs/reference/commands.md: task by task, the command of Barnabas, rpk, kcat and Kafka's tools.

A test checks that every command of Barnabas named here exists, with the options that are named. rpk's commands are
those of its documentation (26.1), kcat's those of kcat 1.7, Kafka's those of 4.3.1. An empty cell: there is none.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Row(NamedTuple):
    """One task; several commands in a cell are separated by new lines."""

    task: str
    barnabas: str
    rpk: str = ""
    kcat: str = ""
    kafka: str = ""


TOPICS: Final = (
    Row("list", "barnabas topic list", "rpk topic list", "kcat -L", "kafka-topics --list"),
    Row(
        "list by pattern",
        "barnabas topic list 'order*'\nbarnabas topic list -r 'order.*'",
        "rpk topic list -r 'order.*'",
        "",
        "kafka-topics --list --topic 'order.*'",
    ),
    Row(
        "create",
        "barnabas topic create orders -p 3 -c retention.ms=86400000",
        "rpk topic create orders -p 3 -c retention.ms=86400000",
        "",
        "kafka-topics --create --topic orders --partitions 3 --config retention.ms=86400000",
    ),
    Row(
        "create unless it exists",
        "barnabas topic create orders --if-not-exists",
        "rpk topic create orders --if-not-exists",
        "",
        "kafka-topics --create --topic orders --if-not-exists",
    ),
    Row(
        "create, partitions placed by hand",
        "barnabas topic create orders --replica-assignment 1:2,2:3",
        "",
        "",
        "kafka-topics --create --topic orders --replica-assignment 1:2,2:3",
    ),
    Row(
        "move partitions",
        "barnabas topic reassign orders:0 --replicas 2,3,1 --wait",
        "rpk cluster partitions move orders -p 0:2,3,1",
        "",
        "kafka-reassign-partitions --execute --reassignment-json-file plan.json",
    ),
    Row(
        "movements that go on",
        "barnabas topic reassign",
        "rpk cluster partitions move-status",
        "",
        "kafka-reassign-partitions --list",
    ),
    Row(
        "cancel a movement",
        "barnabas topic reassign orders --cancel",
        "rpk cluster partitions move-cancel",
        "",
        "kafka-reassign-partitions --cancel --reassignment-json-file plan.json",
    ),
    Row(
        "elect preferred leaders",
        "barnabas topic elect-leaders",
        "",
        "",
        "kafka-leader-election --election-type preferred --all-topic-partitions",
    ),
    Row(
        "describe",
        "barnabas topic describe orders",
        "rpk topic describe orders",
        "kcat -L -t orders",
        "kafka-topics --describe --topic orders",
    ),
    Row(
        "configs of a topic",
        "barnabas topic describe orders --configs",
        "rpk topic describe orders -c",
        "",
        "kafka-configs --describe --topic orders --all",
    ),
    Row(
        "offsets of a topic",
        "barnabas topic describe orders --offsets",
        "rpk topic describe orders -p",
        "kcat -Q -t orders:0:-1",
        "kafka-get-offsets --topic orders",
    ),
    Row(
        "change configs",
        "barnabas topic alter orders --set retention.ms=1000",
        "rpk topic alter-config orders --set retention.ms=1000",
        "",
        "kafka-configs --alter --topic orders --add-config retention.ms=1000",
    ),
    Row(
        "more partitions",
        "barnabas topic add-partitions orders --num 2",
        "rpk topic add-partitions orders --num 2",
        "",
        "kafka-topics --alter --topic orders --partitions 5",
    ),
    Row(
        "delete records before a position",
        "barnabas topic trim orders --to 120",
        "rpk topic trim-prefix orders --offset 120",
        "",
        "kafka-delete-records --offset-json-file FILE",
    ),
    Row("batch sizes and rates", "barnabas topic analyze orders", "rpk topic analyze orders"),
    Row(
        "delete",
        "barnabas topic delete orders -y",
        "rpk topic delete orders",
        "",
        "kafka-topics --delete --topic orders",
    ),
)

RECORDS: Final = (
    Row(
        "send lines",
        "barnabas produce orders < lines.txt",
        "rpk topic produce orders < lines.txt",
        "kcat -P -t orders -l lines.txt",
        "kafka-console-producer --topic orders < lines.txt",
    ),
    Row(
        "with keys",
        "barnabas produce orders -K : < keyed.txt",
        "rpk topic produce orders -f '%k:%v\\n'",
        "kcat -P -t orders -K :",
        "kafka-console-producer --topic orders --reader-property parse.key=true --reader-property key.separator=:",
    ),
    Row(
        "with headers and compression",
        "barnabas produce orders -H source=web -z zstd",
        "rpk topic produce orders -H source:web -z zstd",
        "kcat -P -t orders -H source=web -z zstd",
        "kafka-console-producer --topic orders --reader-property parse.headers=true --compression-codec zstd",
    ),
    Row("JSON lines with key, headers, time", "barnabas produce orders --json FILE"),
    Row("whole files", "barnabas produce orders --file-per-record a.xml b.xml", "", "kcat -P -t orders a.xml b.xml"),
    Row(
        "a tombstone",
        "barnabas produce orders -K : -Z",
        "rpk topic produce orders -Z",
        "kcat -P -t orders -K : -Z",
        "kafka-console-producer --topic orders --reader-property null.marker=NULL",
    ),
    Row(
        "in a transaction",
        "barnabas produce orders --transactional-id load",
        "",
        "kcat -P -t orders -X transactional.id=load",
    ),
    Row(
        "read from the beginning, then stop",
        "barnabas consume orders -o beginning -e",
        "rpk topic consume orders -o start:end",
        "kcat -C -t orders -o beginning -e",
        "kafka-console-consumer --topic orders --from-beginning --timeout-ms 1000",
    ),
    Row(
        "the last five",
        "barnabas consume orders -o -5 -e",
        "rpk topic consume orders -o -5 -n 5",
        "kcat -C -t orders -o -5 -e",
    ),
    Row(
        "from a time",
        "barnabas consume orders -o @-1h:end",
        "rpk topic consume orders -o @-1h:end",
        "kcat -C -t orders -o s@1700000000000 -e",
    ),
    Row(
        "an own format",
        "barnabas consume orders -f '%p %o %k %v\\n'",
        "rpk topic consume orders -f '%p %o %k %v\\n'",
        "kcat -C -t orders -f '%p %o %k %s\\n'",
        "kafka-console-consumer --topic orders --formatter-property print.key=true",
    ),
    Row(
        "JSON",
        "barnabas consume orders --json",
        "rpk topic consume orders -f json",
        "kcat -C -t orders -J",
    ),
    Row("only records that match", "barnabas consume orders --grep error\nbarnabas consume orders --filter EXPRESSION"),
    Row(
        "as a member of a group",
        "barnabas consume orders -g readers",
        "rpk topic consume orders -g readers",
        "kcat -G readers orders",
        "kafka-console-consumer --topic orders --group readers",
    ),
    Row(
        "only what is committed",
        "barnabas consume orders --isolation read_committed",
        "rpk topic consume orders --read-committed",
        "kcat -C -t orders -X isolation.level=read_committed",
        "kafka-console-consumer --topic orders --isolation-level read_committed",
    ),
)

GROUPS: Final = (
    Row(
        "list",
        "barnabas group list",
        "rpk group list",
        "",
        "kafka-groups --list\nkafka-consumer-groups --list\nkafka-share-groups --list",
    ),
    Row(
        "offsets and lag",
        "barnabas group describe readers",
        "rpk group describe readers",
        "",
        "kafka-consumer-groups --describe --group readers",
    ),
    Row("follow the lag", "barnabas group describe readers --watch"),
    Row("watch all groups, topics and brokers", "barnabas top"),
    Row(
        "members",
        "barnabas group describe readers --members",
        "rpk group describe readers",
        "",
        "kafka-consumer-groups --describe --group readers --members --verbose",
    ),
    Row(
        "to the beginning",
        "barnabas group seek readers --to earliest",
        "rpk group seek readers --to start",
        "",
        "kafka-consumer-groups --reset-offsets --group readers --all-topics --to-earliest --execute",
    ),
    Row(
        "to a time",
        "barnabas group seek readers --to @-1h",
        "rpk group seek readers --to 1700000000000",
        "",
        "kafka-consumer-groups --reset-offsets --group readers --topic t --to-datetime 2026-11-22T09:00:00 --execute",
    ),
    Row(
        "back by ten records",
        "barnabas group seek readers --shift-by -10",
        "",
        "",
        "kafka-consumer-groups --reset-offsets --group readers --all-topics --shift-by -10 --execute",
    ),
    Row(
        "to the offsets of another group",
        "barnabas group seek readers --to-group other",
        "rpk group seek readers --to-group other",
    ),
    Row(
        "to offsets of a file",
        "barnabas group seek readers --from-file plan.csv",
        "rpk group seek readers --to-file plan.txt",
        "",
        "kafka-consumer-groups --reset-offsets --group readers --from-file plan.csv --execute",
    ),
    Row(
        "only show what would change",
        "barnabas group seek readers --to latest --dry-run",
        "",
        "",
        "kafka-consumer-groups --reset-offsets --group readers --all-topics --to-latest --dry-run",
    ),
    Row(
        "delete offsets",
        "barnabas group forget readers -t orders",
        "rpk group offset-delete readers -t orders",
        "",
        "kafka-consumer-groups --delete-offsets --group readers --topic orders",
    ),
    Row(
        "delete",
        "barnabas group delete readers",
        "rpk group delete readers",
        "",
        "kafka-consumer-groups --delete --group readers",
    ),
)

CLUSTER: Final = (
    Row(
        "brokers, id, controller",
        "barnabas cluster info",
        "rpk cluster info",
        "kcat -L",
        "kafka-cluster cluster-id\nkafka-cluster list-endpoints",
    ),
    Row("is it ready?", "barnabas health", "rpk cluster health"),
    Row("why can clients not connect?", "barnabas doctor"),
    Row(
        "APIs and versions",
        "barnabas api-versions",
        "",
        "kcat -L -X debug=feature",
        "kafka-cluster api-versions\nkafka-broker-api-versions",
    ),
    Row(
        "configs",
        "barnabas config get broker 1",
        "rpk cluster config get KEY",
        "",
        "kafka-configs --describe --broker 1",
    ),
    Row(
        "change a config",
        "barnabas config set broker 1 log.cleaner.threads=2",
        "rpk cluster config set KEY VALUE",
        "",
        "kafka-configs --alter --broker 1 --add-config log.cleaner.threads=2",
    ),
    Row("disk usage", "barnabas log-dirs", "rpk cluster logdirs describe", "", "kafka-log-dirs --describe"),
    Row("feature levels", "barnabas features list", "", "", "kafka-features describe"),
    Row("transactions", "barnabas txn list", "rpk cluster txn list", "", "kafka-transactions list"),
    Row(
        "one transaction",
        "barnabas txn describe load",
        "rpk cluster txn describe load",
        "",
        "kafka-transactions describe --transactional-id load",
    ),
    Row(
        "producers of a partition",
        "barnabas producers orders:0",
        "rpk cluster txn describe-producers -t orders -p 0",
        "",
        "kafka-transactions describe-producers --topic orders --partition 0",
    ),
    Row(
        "transactions that hang",
        "barnabas txn find-hanging",
        "",
        "",
        "kafka-transactions find-hanging --broker-id 1",
    ),
    Row(
        "abort a transaction",
        "barnabas txn abort load",
        "",
        "",
        "kafka-transactions abort --topic orders --partition 0 --start-offset 17",
    ),
    Row("files of a partition", "barnabas dump-log data/orders-0", "", "", "kafka-dump-log --files FILE"),
    Row("check and repair files", "barnabas storage check data\nbarnabas storage recover data --dry-run"),
)

SECURITY: Final = (
    Row(
        "connect with TLS and SASL",
        "barnabas topic list --command-config client.properties\n"
        "barnabas topic list -X security.protocol=SASL_SSL -X sasl.mechanism=PLAIN -X user=alice",
        "rpk topic list -X tls.enabled=true -X sasl.mechanism=PLAIN -X user=alice",
        "kcat -L -X security.protocol=SASL_SSL -X sasl.mechanisms=PLAIN -X sasl.username=alice",
        "kafka-topics --list --command-config client.properties",
    ),
    Row(
        "list users",
        "barnabas user list",
        "rpk security user list",
        "",
        "kafka-configs --describe --entity-type users",
    ),
    Row(
        "add a user, change a password",
        "barnabas user set alice --password-file FILE",
        "rpk security user create alice",
        "",
        "kafka-configs --alter --entity-type users --entity-name alice --add-config SCRAM-SHA-512=[password=...]",
    ),
    Row(
        "delete a user",
        "barnabas user delete alice",
        "rpk security user delete alice",
        "",
        "kafka-configs --alter --entity-type users --entity-name alice --delete-config SCRAM-SHA-512",
    ),
    Row(
        "list ACLs",
        "barnabas acl list topic orders",
        "rpk security acl list --topic orders",
        "",
        "kafka-acls --list --topic orders",
    ),
    Row(
        "allow",
        "barnabas acl add topic orders --user alice --operation read",
        "rpk security acl create --allow-principal alice --operation read --topic orders",
        "",
        "kafka-acls --add --allow-principal User:alice --operation Read --topic orders",
    ),
    Row(
        "remove ACLs",
        "barnabas acl remove topic orders --user alice",
        "rpk security acl delete --allow-principal alice --topic orders",
        "",
        "kafka-acls --remove --allow-principal User:alice --topic orders",
    ),
    Row("who decides?", "barnabas acl test topic orders --user alice --operation write"),
    Row("a broker with TLS, users and ACLs", "barnabas serve --secure --data-dir data"),
    Row("certificates", "barnabas cert show --data-dir data\nbarnabas cert renew --data-dir data"),
    Row(
        "set a quota",
        "barnabas quota set --user alice producer_byte_rate=1048576",
        "rpk cluster quotas alter --name user=alice --add producer_byte_rate=1048576",
        "",
        "kafka-configs --alter --entity-type users --entity-name alice --add-config producer_byte_rate=1048576",
    ),
    Row(
        "list quotas",
        "barnabas quota list",
        "rpk cluster quotas describe",
        "",
        "kafka-configs --describe --entity-type users",
    ),
    Row(
        "delegation tokens",
        "barnabas token create --renewer bob\nbarnabas token list",
        "",
        "",
        "kafka-delegation-tokens --create --max-life-time-period -1",
    ),
)

MORE: Final = (
    Row("what kcat does, as kcat does it", "barnabas cat -C -t orders -o -5 -e", "", "kcat -C -t orders -o -5 -e"),
    Row(
        "measure producing",
        "barnabas perf produce orders -n 100000 -s 100",
        "",
        "",
        "kafka-producer-perf-test --topic orders --num-records 100000 --record-size 100 --throughput -1",
    ),
    Row(
        "measure consuming",
        "barnabas perf consume orders",
        "",
        "",
        "kafka-consumer-perf-test --topic orders --num-records 100000",
    ),
    Row("measure latency", "barnabas perf latency orders", "", "", "kafka-e2e-latency (not here)"),
    Row("run a broker", "barnabas serve", "rpk container start", "kcat -M 1", "kafka-server-start (not here)"),
    Row(
        "settings by name",
        "barnabas profile create prod",
        "rpk profile create prod",
        "kcat -F FILE",
        "--command-config FILE",
    ),
    Row("completion", "barnabas completion install", "rpk generate shell-completion bash"),
    Row(
        "let time pass in a test",
        "barnabas clock freeze --control-file FILE\nbarnabas clock advance 7d\nbarnabas clock jump 2026-12-24",
    ),
    Row(
        "let requests fail in a test",
        "barnabas fault add --api Produce --topic orders --error NOT_LEADER_OR_FOLLOWER",
    ),
    Row("record a client's session", "barnabas record --upstream 127.0.0.1:9092 --file orders.cassette"),
    Row("answer clients from it", "barnabas replay orders.cassette --listen 127.0.0.1:9094"),
    Row("for authors of clients", "barnabas wire decode MetadataRequest 12"),
    Row("copies and pipelines", "barnabas pipeline run copy --config FILE", "rpk connect run FILE"),
)

AREAS: Final = {
    "Topics": TOPICS,
    "Records": RECORDS,
    "Groups": GROUPS,
    "Cluster, configs, transactions, files": CLUSTER,
    "TLS, users, ACLs, quotas, tokens": SECURITY,
    "More": MORE,
}

LACKS: Final = (
    ("rpk", "security role, security secret", "Kafka has no roles"),
    ("rpk", "registry, topic produce --schema-id, topic consume --use-schema-registry", "no schema registry"),
    ("rpk", "cluster license, storage; topic describe-storage", "no tiers"),
    ("rpk", "transform, connect, cloud, debug bundle, iotune, redpanda", "Redpanda's own products and system settings"),
    ("rpk", "topic consume: `%` modifiers as `%v{hex}`, `--format` of produce", "`-f` has verbs without modifiers"),
    ("kcat", "-M (mock broker)", "`barnabas serve` is a broker"),
    ("kcat", "-s avro, -r", "no schema registry"),
    (
        "kcat",
        "-X of most properties, -d, -E, -v",
        "`barnabas cat` has no librdkafka; `barnabas cat -X list` lists what it has",
    ),
    ("Kafka", "kafka-streams-groups, kafka-streams-application-reset", "Kafka's own run against Barnabas"),
    (
        "Kafka",
        "kafka-console-share-consumer, kafka-e2e-latency, kafka-share-consumer-perf-test",
        "Kafka's own run against Barnabas; `barnabas perf` measures with another client",
    ),
    ("Kafka", "formatters, readers and deserializers that are Java classes of users", "Barnabas runs no Java"),
)
"""Commands of other tools that Barnabas does not have: tool, commands, why."""
