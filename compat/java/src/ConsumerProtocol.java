import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.GroupSubscribedToTopicException;
import org.apache.kafka.common.errors.InvalidRegularExpression;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.common.errors.UnsupportedAssignorException;

/** Scenarios of {@link Compat}: {@code group.protocol=consumer}, alone and with members of the classic protocol. */
final class ConsumerProtocol {
    private final Compat compat;
    private final Admin admin;

    ConsumerProtocol(Compat compat, Admin admin) {
        this.compat = compat;
        this.admin = admin;
    }

    Map<String, Compat.Scenario> scenarios() {
        Map<String, Compat.Scenario> scenarios = new java.util.LinkedHashMap<>();
        scenarios.put("consumer_protocol_commit_and_resume", this::commitAndResume);
        for (String assignor : List.of("uniform", "range")) {
            scenarios.put("consumer_protocol_group_of_three_" + assignor, () -> groupOfThree(assignor));
        }
        scenarios.put("consumer_protocol_unknown_assignor", this::unknownAssignor);
        scenarios.put("consumer_protocol_static_member", this::staticMember);
        scenarios.put("consumer_protocol_pattern", this::pattern);
        scenarios.put("consumer_protocol_invalid_pattern", this::invalidPattern);
        scenarios.put("consumer_protocol_change_of_subscription", this::changeOfSubscription);
        scenarios.put("consumer_protocol_topic_grows", this::topicGrows);
        scenarios.put("consumer_protocol_beside_classic_members", this::besideClassicMembers);
        scenarios.put("admin_consumer_protocol_group", this::adminGroup);
        return scenarios;
    }

    // ---------------------------------------------------------------- building blocks

    private KafkaConsumer<byte[], byte[]> member(String group, String... pairs) {
        List<String> all = new ArrayList<>(List.of("group.id", group, "group.protocol", "consumer"));
        all.addAll(Arrays.asList(pairs));
        return compat.consumer(all.toArray(new String[0]));
    }

    private KafkaConsumer<byte[], byte[]> classicMember(String group) {
        return compat.consumer("group.id", group, "heartbeat.interval.ms", "300");
    }

    private static Set<TopicPartition> partitions(String topic, int count) {
        return java.util.stream.IntStream.range(0, count).mapToObj(n -> new TopicPartition(topic, n)).collect(Collectors.toSet());
    }

    /** Poll until the members have these partitions, each with one owner, distributed in these sizes. */
    private static void settle(List<KafkaConsumer<byte[], byte[]>> members, Set<TopicPartition> all, Integer... sizes) {
        Compat.pollUntil(members, () -> {
            List<TopicPartition> owned = members.stream().flatMap(one -> one.assignment().stream()).toList();
            List<Integer> found = members.stream().map(one -> one.assignment().size()).sorted().toList();
            return owned.size() == all.size() && Set.copyOf(owned).equals(all) && found.equals(List.of(sizes));
        });
    }

    private ConsumerGroupDescription describe(String group) throws Exception {
        return admin.describeConsumerGroups(List.of(group)).all().get(30, TimeUnit.SECONDS).get(group);
    }

    // ---------------------------------------------------------------- members

    private void commitAndResume() throws Exception {
        String topic = compat.create(1);
        String group = Compat.unique("group");
        TopicPartition where = new TopicPartition(topic, 0);
        compat.sendNumbers(compat.producer(), topic, 20);
        try (KafkaConsumer<byte[], byte[]> first = member(group, "max.poll.records", "12")) {
            first.subscribe(List.of(topic));
            Compat.read(first, 12);
            first.commitSync(Map.of(where, new OffsetAndMetadata(12, "half way")));
        }
        KafkaConsumer<byte[], byte[]> second = member(group);
        second.subscribe(List.of(topic));
        List<ConsumerRecord<byte[], byte[]>> rest = Compat.read(second, 8);
        Compat.checkEquals(rest.get(0).offset(), 12L);
        Compat.checkEquals(second.committed(Set.of(where)).get(where).metadata(), "half way");
        second.commitSync();
        Compat.checkEquals(second.committed(Set.of(where)).get(where).offset(), 20L);
    }

    private void groupOfThree(String assignor) throws Exception {
        String topic = compat.create(6);
        String group = Compat.unique("group");
        List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            members.add(member(group, "group.remote.assignor", assignor));
            members.get(n).subscribe(List.of(topic));
        }
        settle(members, partitions(topic, 6), 2, 2, 2);
        Compat.checkEquals(describe(group).partitionAssignor(), assignor);
        members.remove(0).close();
        settle(members, partitions(topic, 6), 3, 3);
    }

    private void unknownAssignor() {
        KafkaConsumer<byte[], byte[]> member = member(Compat.unique("group"), "group.remote.assignor", "unknown");
        member.subscribe(List.of(Compat.unique("topic")));
        fails(member, UnsupportedAssignorException.class);
    }

    private void staticMember() throws Exception {
        String topic = compat.create(2);
        String group = Compat.unique("group");
        List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();
        for (String name : List.of("a", "b")) {
            members.add(member(group, "group.instance.id", name));
            members.get(members.size() - 1).subscribe(List.of(topic));
        }
        settle(members, partitions(topic, 2), 1, 1);
        Set<TopicPartition> owned = members.get(0).assignment();
        int epoch = members.get(1).groupMetadata().generationId();
        members.get(0).close();
        members.set(0, member(group, "group.instance.id", "a"));
        members.get(0).subscribe(List.of(topic));
        Compat.pollUntil(members, () -> members.get(0).assignment().equals(owned));
        Compat.checkEquals(members.get(1).groupMetadata().generationId(), epoch);
    }

    private void pattern() throws Exception {
        String first = compat.create(2);
        String group = Compat.unique("group");
        KafkaConsumer<byte[], byte[]> member = member(group);
        String second = Compat.unique("java");
        member.subscribe(new SubscriptionPattern("(" + first + "|" + second + ")"));
        settle(List.of(member), partitions(first, 2), 2);
        admin.createTopics(List.of(new org.apache.kafka.clients.admin.NewTopic(second, 1, (short) 1))).all().get();
        Set<TopicPartition> both = new java.util.HashSet<>(partitions(first, 2));
        both.add(new TopicPartition(second, 0));
        settle(List.of(member), both, 3);
    }

    private void invalidPattern() {
        KafkaConsumer<byte[], byte[]> member = member(Compat.unique("group"));
        member.subscribe(new SubscriptionPattern("(a)\\1"));
        fails(member, InvalidRegularExpression.class);
    }

    private static void fails(KafkaConsumer<byte[], byte[]> member, Class<? extends Exception> expected) {
        long deadline = System.nanoTime() + Compat.PATIENCE.toNanos();
        while (System.nanoTime() < deadline) {
            try {
                member.poll(Duration.ofMillis(100));
            } catch (Exception error) {
                Compat.check(expected.isInstance(error), "failed with " + error);
                return;
            }
        }
        throw new AssertionError("did not fail with " + expected.getSimpleName());
    }

    private void changeOfSubscription() throws Exception {
        String first = compat.create(2);
        String second = compat.create(2);
        String group = Compat.unique("group");
        KafkaConsumer<byte[], byte[]> member = member(group);
        member.subscribe(List.of(first));
        settle(List.of(member), partitions(first, 2), 2);
        member.subscribe(List.of(second));
        settle(List.of(member), partitions(second, 2), 2);
        member.unsubscribe();
        Compat.checkEquals(member.assignment(), Set.of());
        Compat.checkEquals(describe(group).members().size(), 0);
    }

    private void topicGrows() throws Exception {
        String topic = compat.create(1);
        KafkaConsumer<byte[], byte[]> member = member(Compat.unique("group"));
        member.subscribe(List.of(topic));
        settle(List.of(member), partitions(topic, 1), 1);
        admin.createPartitions(Map.of(topic, org.apache.kafka.clients.admin.NewPartitions.increaseTo(3))).all().get();
        settle(List.of(member), partitions(topic, 3), 3);
    }

    /** The group changes its type when the first member of the new protocol joins, and back when the last one leaves. */
    private void besideClassicMembers() throws Exception {
        String topic = compat.create(6);
        String group = Compat.unique("group");
        List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>(List.of(classicMember(group), classicMember(group)));
        members.forEach(one -> one.subscribe(List.of(topic)));
        settle(members, partitions(topic, 6), 3, 3);
        Compat.checkEquals(describe(group).type(), GroupType.CLASSIC);
        members.add(member(group));
        members.get(2).subscribe(List.of(topic));
        settle(members, partitions(topic, 6), 2, 2, 2);
        Compat.checkEquals(describe(group).type(), GroupType.CONSUMER);
        members.remove(2).close();
        settle(members, partitions(topic, 6), 3, 3);
        Compat.checkEquals(describe(group).type(), GroupType.CLASSIC);
    }

    // ---------------------------------------------------------------- administration

    private void adminGroup() throws Exception {
        String topic = compat.create(1);
        String group = Compat.unique("group");
        TopicPartition where = new TopicPartition(topic, 0);
        compat.sendNumbers(compat.producer(), topic, 5);
        try (KafkaConsumer<byte[], byte[]> consumer = member(group, "client.id", "reader", "client.rack", "shelf")) {
            consumer.subscribe(List.of(topic));
            Compat.read(consumer, 5);
            consumer.commitSync();
            ListGroupsOptions listed = new ListGroupsOptions().withTypes(Set.of(GroupType.CONSUMER));
            Compat.check(admin.listGroups(listed).all().get().stream().map(GroupListing::groupId).anyMatch(group::equals), "not listed");
            ConsumerGroupDescription described = describe(group);
            MemberDescription one = described.members().iterator().next();
            Compat.checkEquals(described.groupState().toString(), "Stable");
            Compat.checkEquals(described.groupEpoch(), described.targetAssignmentEpoch());
            Compat.checkEquals(one.clientId(), "reader");
            Compat.checkEquals(one.rackId().get(), "shelf");
            Compat.checkEquals(one.assignment().topicPartitions(), Set.of(where));
            Compat.checkEquals(one.targetAssignment().get().topicPartitions(), Set.of(where));
            Compat.checkFails(GroupNotEmptyException.class, admin.deleteConsumerGroups(List.of(group)).all());
            Compat.checkFails(UnknownMemberIdException.class,
                admin.alterConsumerGroupOffsets(group, Map.of(where, new OffsetAndMetadata(2))).all());
            Compat.checkFails(GroupSubscribedToTopicException.class, admin.deleteConsumerGroupOffsets(group, Set.of(where)).all());
        }
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        ConfigEntry entry = new ConfigEntry("consumer.session.timeout.ms", "50000");
        admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET)))).all().get();
        Compat.checkEquals(admin.describeConfigs(List.of(resource)).all().get().get(resource).get(entry.name()).value(), "50000");
        admin.alterConsumerGroupOffsets(group, Map.of(where, new OffsetAndMetadata(2))).all().get(30, TimeUnit.SECONDS);
        Compat.checkEquals(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(where).offset(), 2L);
        admin.deleteConsumerGroups(List.of(group)).all().get(30, TimeUnit.SECONDS);
    }
}
