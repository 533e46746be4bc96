import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
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
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;

/** Scenarios of {@link Compat}: topics, partitions, configs, groups, log directories and producers through Admin. */
final class AdminScenarios {
    private final Compat compat;
    private final Admin admin;
    private final String bootstrap;

    AdminScenarios(Compat compat, Admin admin, String bootstrap) {
        this.compat = compat;
        this.admin = admin;
        this.bootstrap = bootstrap;
    }

    Map<String, Compat.Scenario> scenarios() {
        Map<String, Compat.Scenario> scenarios = new LinkedHashMap<>();
        scenarios.put("admin_topics", this::adminTopics);
        scenarios.put("admin_topic_by_id", this::adminTopicById);
        scenarios.put("admin_partitions", this::adminPartitions);
        scenarios.put("admin_configs", this::adminConfigs);
        scenarios.put("admin_delete_records", this::adminDeleteRecords);
        scenarios.put("admin_list_offsets", this::adminListOffsets);
        scenarios.put("admin_groups", this::adminGroups);
        scenarios.put("admin_cluster", this::adminCluster);
        scenarios.put("admin_log_dirs", this::adminLogDirs);
        scenarios.put("admin_producers", this::adminProducers);
        scenarios.put("admin_quotas", this::adminQuotas);
        return scenarios;
    }

    private void adminTopics() throws Exception {
        String topic = compat.create(3);
        TopicDescription described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        Compat.checkEquals(described.partitions().size(), 3);
        Compat.check(described.partitions().stream().allMatch(p -> p.isr().equals(p.replicas())), "ISR is not the replicas");
        Compat.checkFails(TopicExistsException.class, admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all());
        Compat.checkFails(InvalidTopicException.class, admin.createTopics(List.of(new NewTopic("not allowed", 1, (short) 1))).all());
        admin.deleteTopics(List.of(topic)).all().get(30, TimeUnit.SECONDS);
        Compat.check(!admin.listTopics().names().get().contains(topic), "the topic is still listed");
        Compat.checkFails(UnknownTopicOrPartitionException.class, admin.deleteTopics(List.of(topic)).all());
    }

    private void adminTopicById() throws Exception {
        String topic = compat.create(1);
        org.apache.kafka.common.Uuid id = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).topicId();
        var ids = org.apache.kafka.common.TopicCollection.ofTopicIds(List.of(id));
        Compat.checkEquals(admin.describeTopics(ids).allTopicIds().get().get(id).name(), topic);
        admin.deleteTopics(ids).all().get(30, TimeUnit.SECONDS);
    }

    private void adminPartitions() throws Exception {
        String topic = compat.create(1);
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get(30, TimeUnit.SECONDS);
        Compat.checkEquals(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size(), 4);
        Compat.checkFails(InvalidPartitionsException.class, admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all());
    }

    private void adminConfigs() throws Exception {
        String topic = compat.create(1, "retention.ms", "1234567");
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ConfigEntry entry = admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms");
        Compat.checkEquals(entry.value(), "1234567");
        Compat.checkEquals(entry.source(), ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG);
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry("retention.ms", "7654321"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get(30, TimeUnit.SECONDS);
        Compat.checkEquals(admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms").value(), "7654321");
        AlterConfigOp delete = new AlterConfigOp(new ConfigEntry("retention.ms", ""), AlterConfigOp.OpType.DELETE);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(delete))).all().get(30, TimeUnit.SECONDS);
        entry = admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms");
        Compat.checkEquals(entry.value(), "604800000");
        Compat.check(entry.isDefault(), "a deleted setting is not the default");
        Compat.check(admin.listConfigResources().all().get().contains(resource), "the topic is no config resource");
    }

    private void adminDeleteRecords() throws Exception {
        String topic = compat.create(1);
        compat.sendNumbers(compat.producer(), topic, 10);
        TopicPartition where = new TopicPartition(topic, 0);
        long low = admin.deleteRecords(Map.of(where, RecordsToDelete.beforeOffset(4))).lowWatermarks().get(where).get().lowWatermark();
        Compat.checkEquals(low, 4L);
        KafkaConsumer<byte[], byte[]> consumer = compat.consumer();
        consumer.assign(List.of(where));
        consumer.seekToBeginning(List.of(where));
        Compat.checkNumbers(Compat.read(consumer, 6), 4);
    }

    private void adminListOffsets() throws Exception {
        String topic = compat.create(1);
        compat.sendNumbers(compat.producer(), topic, 10);
        TopicPartition where = new TopicPartition(topic, 0);
        Map<OffsetSpec, Long> expected = new LinkedHashMap<>();
        expected.put(OffsetSpec.earliest(), 0L);
        expected.put(OffsetSpec.latest(), 10L);
        expected.put(OffsetSpec.maxTimestamp(), 9L);
        expected.put(OffsetSpec.forTimestamp(Compat.EPOCH + 4500), 5L);
        expected.put(OffsetSpec.earliestLocal(), 0L);
        for (Map.Entry<OffsetSpec, Long> one : expected.entrySet()) {
            Compat.checkEquals(admin.listOffsets(Map.of(where, one.getKey())).partitionResult(where).get().offset(), one.getValue());
        }
    }

    private void adminGroups() throws Exception {
        String topic = compat.create(1);
        String group = Compat.unique("group");
        TopicPartition where = new TopicPartition(topic, 0);
        compat.sendNumbers(compat.producer(), topic, 5);
        try (KafkaConsumer<byte[], byte[]> consumer = compat.consumer("group.id", group, "client.id", "reader")) {
            consumer.subscribe(List.of(topic));
            Compat.read(consumer, 5);
            consumer.commitSync();
            Compat.check(admin.listGroups().all().get().stream().map(GroupListing::groupId).anyMatch(group::equals), "not listed");
            ConsumerGroupDescription described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            Compat.checkEquals(described.groupState().toString(), "Stable");
            Compat.checkEquals(described.members().iterator().next().clientId(), "reader");
            Compat.checkEquals(described.members().iterator().next().assignment().topicPartitions(), Set.of(where));
        }
        Compat.checkEquals(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(where).offset(), 5L);
        admin.alterConsumerGroupOffsets(group, Map.of(where, new OffsetAndMetadata(2))).all().get(30, TimeUnit.SECONDS);
        Compat.checkEquals(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(where).offset(), 2L);
        admin.deleteConsumerGroupOffsets(group, Set.of(where)).all().get(30, TimeUnit.SECONDS);
        Compat.checkEquals(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get(), Collections.emptyMap());
        admin.deleteConsumerGroups(List.of(group)).all().get(30, TimeUnit.SECONDS);
        Compat.checkFails(GroupIdNotFoundException.class, admin.deleteConsumerGroups(List.of(group)).all());
    }

    private void adminCluster() throws Exception {
        Collection<Node> nodes = admin.describeCluster().nodes().get();
        Set<String> addresses = nodes.stream().map(node -> node.host() + ":" + node.port()).collect(Collectors.toSet());
        Compat.checkEquals(addresses, Set.of(bootstrap.split(",")));
        Compat.check(!admin.describeCluster().clusterId().get().isEmpty(), "no cluster id");
    }

    private void adminLogDirs() throws Exception {
        String topic = compat.create(2);
        List<Integer> nodes = admin.describeCluster().nodes().get().stream().map(Node::id).collect(Collectors.toList());
        Set<TopicPartition> wanted = Set.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
        Set<TopicPartition> found = new HashSet<>();
        long deadline = System.nanoTime() + Compat.PATIENCE.toNanos();
        while (!found.containsAll(wanted) && System.nanoTime() < deadline) { // Kafka makes the logs a moment after answering
            admin.describeLogDirs(nodes).allDescriptions().get().values()
                .forEach(dirs -> dirs.values().forEach(dir -> found.addAll(dir.replicaInfos().keySet())));
        }
        Compat.check(found.containsAll(wanted), "no replicas listed");
    }

    private void adminProducers() throws Exception {
        String topic = compat.create(1);
        compat.sendNumbers(compat.producer("enable.idempotence", "true"), topic, 5);
        TopicPartition where = new TopicPartition(topic, 0);
        var producers = admin.describeProducers(List.of(where)).partitionResult(where).get().activeProducers();
        Compat.checkEquals(producers.size(), 1);
        Compat.checkEquals(producers.get(0).lastSequence(), 4);
    }

    private void adminQuotas() throws Exception {
        String name = compat.create(1);
        ClientQuotaEntity user = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, name));
        ClientQuotaEntity both = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, name, ClientQuotaEntity.CLIENT_ID, name));
        alterQuota(user, "producer_byte_rate", 1024.0);
        alterQuota(both, "request_percentage", 12.5);
        var ofUser = ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.USER, name);
        await(ClientQuotaFilter.contains(List.of(ofUser)),
            Map.of(user, Map.of("producer_byte_rate", 1024.0), both, Map.of("request_percentage", 12.5)));
        await(ClientQuotaFilter.containsOnly(List.of(ofUser)), Map.of(user, Map.of("producer_byte_rate", 1024.0)));
        var anyClient = ClientQuotaFilterComponent.ofEntityType(ClientQuotaEntity.CLIENT_ID);
        await(ClientQuotaFilter.containsOnly(List.of(ofUser, anyClient)), Map.of(both, Map.of("request_percentage", 12.5)));
        alterQuota(user, "producer_byte_rate", null);
        alterQuota(both, "request_percentage", null);
        await(ClientQuotaFilter.contains(List.of(ofUser)), Map.of());
        ClientQuotaEntity address = new ClientQuotaEntity(Map.of(ClientQuotaEntity.IP, "127.0.0.1", ClientQuotaEntity.USER, name));
        Compat.checkFails(InvalidRequestException.class, quotaChange(address, "connection_creation_rate", 1.0));
        Compat.checkFails(InvalidRequestException.class, quotaChange(user, "nonsense", 1.0));
    }

    private void alterQuota(ClientQuotaEntity entity, String key, Double value) throws Exception {
        quotaChange(entity, key, value).get(30, TimeUnit.SECONDS);
    }

    private org.apache.kafka.common.KafkaFuture<Void> quotaChange(ClientQuotaEntity entity, String key, Double value) {
        var operation = new ClientQuotaAlteration.Op(key, value);
        return admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(operation)))).all();
    }

    private void await(ClientQuotaFilter filter, Map<ClientQuotaEntity, Map<String, Double>> wanted) throws Exception {
        long deadline = System.nanoTime() + Compat.PATIENCE.toNanos();
        Map<ClientQuotaEntity, Map<String, Double>> found;
        do { // Kafka answers before a broker has the change
            found = admin.describeClientQuotas(filter).entities().get(30, TimeUnit.SECONDS);
        } while (!found.equals(wanted) && System.nanoTime() < deadline);
        Compat.checkEquals(found, wanted);
    }
}
