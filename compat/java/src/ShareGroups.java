import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.IntPredicate;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;

/** Scenarios of {@link Compat}: the share consumer (KIP-932) and its group's configs. */
final class ShareGroups {
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final Compat compat;
    private final Admin admin;

    ShareGroups(Compat compat, Admin admin) {
        this.compat = compat;
        this.admin = admin;
    }

    Map<String, Compat.Scenario> scenarios() {
        Map<String, Compat.Scenario> scenarios = new LinkedHashMap<>();
        scenarios.put("share_implicit", this::implicit);
        scenarios.put("share_explicit", this::explicit);
        scenarios.put("share_async", this::async);
        scenarios.put("share_delivery_limit", this::deliveryLimit);
        scenarios.put("share_locks", this::locks);
        scenarios.put("share_record_limit", this::recordLimit);
        scenarios.put("share_close_gives_back", this::closeGivesBack);
        scenarios.put("share_three_members", this::threeMembers);
        scenarios.put("share_read_committed", this::readCommitted);
        scenarios.put("share_dead_letters", this::deadLetters);
        return scenarios;
    }

    // ---------------------------------------------------------------- building blocks

    /** A group that reads from the start of its topics. */
    private String group(String... configs) throws Exception {
        String group = Compat.unique("share");
        List<AlterConfigOp> changes = new ArrayList<>();
        changes.add(new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET));
        for (int n = 0; n < configs.length; n += 2) {
            changes.add(new AlterConfigOp(new ConfigEntry(configs[n], configs[n + 1]), AlterConfigOp.OpType.SET));
        }
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get(30, TimeUnit.SECONDS);
        return group;
    }

    private KafkaShareConsumer<byte[], byte[]> member(String group, String topic, String... pairs) {
        KafkaShareConsumer<byte[], byte[]> consumer = compat.shareConsumer(group, pairs);
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private void send(String topic, int count) throws Exception {
        compat.sendNumbers(compat.producer(), topic, count);
    }

    /** Reads at least a number of records. */
    private static List<ConsumerRecord<byte[], byte[]>> poll(KafkaShareConsumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (records.size() < count) {
            Compat.check(System.nanoTime() < deadline, records.size() + " records of " + count);
            consumer.poll(Duration.ofSeconds(10)).forEach(records::add); // long: each poll may fetch ahead
        }
        return records;
    }

    private static void nothing(KafkaShareConsumer<byte[], byte[]> consumer) {
        Compat.check(consumer.poll(Duration.ofMillis(500)).isEmpty(), "records that were done with came again");
    }

    private static Set<String> values(List<ConsumerRecord<byte[], byte[]>> records) {
        Set<String> values = new HashSet<>();
        records.forEach(record -> values.add(Compat.text(record.value())));
        return values;
    }

    private static Set<String> numbers(int count, IntPredicate wanted) {
        Set<String> numbers = new HashSet<>();
        for (int n = 0; n < count; n++) {
            if (wanted.test(n)) {
                numbers.add("" + n);
            }
        }
        return numbers;
    }

    private static void checkDeliveries(List<ConsumerRecord<byte[], byte[]>> records, int expected) {
        records.forEach(record -> Compat.checkEquals(record.deliveryCount().get().intValue(), expected));
    }

    private static void commit(KafkaShareConsumer<byte[], byte[]> consumer) {
        consumer.commitSync().values().forEach(error -> Compat.checkEquals(error.orElse(null), null));
    }

    // ---------------------------------------------------------------- scenarios

    private void implicit() throws Exception {
        String topic = compat.create(1);
        String group = group();
        send(topic, 1000);
        KafkaShareConsumer<byte[], byte[]> consumer = member(group, topic, "max.poll.records", "100");
        List<ConsumerRecord<byte[], byte[]>> records = poll(consumer, 1000);
        Compat.checkEquals(values(records), numbers(1000, n -> true));
        checkDeliveries(records, 1);
        nothing(consumer);
        consumer.close();
        nothing(member(group, topic));
    }

    private void explicit() throws Exception {
        String topic = compat.create(1);
        send(topic, 30);
        KafkaShareConsumer<byte[], byte[]> consumer = member(group(), topic, "share.acknowledgement.mode", "explicit");
        List<ConsumerRecord<byte[], byte[]>> records = poll(consumer, 30);
        for (int n = 0; n < 30; n++) {
            consumer.acknowledge(records.get(n), List.of(AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT).get(n % 3));
        }
        commit(consumer);
        List<ConsumerRecord<byte[], byte[]>> again = poll(consumer, 10);
        Compat.checkEquals(values(again), numbers(30, n -> n % 3 == 1));
        checkDeliveries(again, 2);
        again.forEach(consumer::acknowledge);
        commit(consumer);
        nothing(consumer);
    }

    private void async() throws Exception {
        String topic = compat.create(1);
        send(topic, 20);
        KafkaShareConsumer<byte[], byte[]> consumer = member(group(), topic, "share.acknowledgement.mode", "explicit");
        Map<Long, Exception> acknowledged = new HashMap<>();
        consumer.setAcknowledgementCommitCallback((offsets, error) ->
            offsets.values().forEach(some -> some.forEach(offset -> acknowledged.put(offset, error))));
        poll(consumer, 20).forEach(consumer::acknowledge);
        consumer.commitAsync();
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (acknowledged.size() < 20) {
            Compat.check(System.nanoTime() < deadline, "acknowledged " + acknowledged.size() + " offsets of 20");
            consumer.poll(Duration.ofMillis(100));
        }
        acknowledged.values().forEach(error -> Compat.checkEquals(error, null));
    }

    private void deliveryLimit() throws Exception {
        String topic = compat.create(1);
        send(topic, 1);
        KafkaShareConsumer<byte[], byte[]> consumer = member(
            group("share.delivery.count.limit", "3"), topic, "share.acknowledgement.mode", "explicit");
        for (int delivery = 1; delivery <= 3; delivery++) {
            List<ConsumerRecord<byte[], byte[]>> records = poll(consumer, 1);
            checkDeliveries(records, delivery);
            consumer.acknowledge(records.get(0), AcknowledgeType.RELEASE);
            commit(consumer);
        }
        nothing(consumer);
    }

    private void locks() throws Exception {
        String topic = compat.create(1);
        String group = group("share.record.lock.duration.ms", "15000");
        send(topic, 2);
        String[] oneByOne = {
            "max.poll.records", "1", "share.acquire.mode", "record_limit", "share.acknowledgement.mode", "explicit"};
        KafkaShareConsumer<byte[], byte[]> renewing = member(group, topic, oneByOne);
        KafkaShareConsumer<byte[], byte[]> sleeping = member(group, topic, oneByOne);
        ConsumerRecord<byte[], byte[]> renewed = poll(renewing, 1).get(0);
        ConsumerRecord<byte[], byte[]> slept = poll(sleeping, 1).get(0);
        Compat.checkEquals(renewing.acquisitionLockTimeoutMs().get(), 15000);
        KafkaShareConsumer<byte[], byte[]> other = member(group, topic);
        Compat.check(other.poll(Duration.ofSeconds(8)).isEmpty(), "locked records came to another");
        renewing.acknowledge(renewed, AcknowledgeType.RENEW);
        commit(renewing);
        renewing.poll(Duration.ofMillis(100));
        List<ConsumerRecord<byte[], byte[]>> lost = poll(other, 1);
        Compat.checkEquals(values(lost), Set.of(Compat.text(slept.value())));
        checkDeliveries(lost, 2);
        commit(other);
        renewing.acknowledge(renewed);
        commit(renewing);
        nothing(other);
    }

    private void recordLimit() throws Exception {
        String topic = compat.create(1);
        String group = group();
        send(topic, 50);
        KafkaShareConsumer<byte[], byte[]> one = member(
            group, topic, "max.poll.records", "7", "share.acquire.mode", "record_limit", "share.acknowledgement.mode", "explicit");
        Compat.checkEquals(poll(one, 1).size(), 7);
        List<ConsumerRecord<byte[], byte[]>> rest = poll(member(group, topic), 43);
        Compat.checkEquals(values(rest), numbers(50, n -> n >= 7));
    }

    private void closeGivesBack() throws Exception {
        String topic = compat.create(1);
        String group = group();
        send(topic, 10);
        KafkaShareConsumer<byte[], byte[]> one = member(group, topic, "share.acknowledgement.mode", "explicit");
        List<ConsumerRecord<byte[], byte[]>> records = poll(one, 10);
        one.acknowledge(records.get(0));
        one.close();
        List<ConsumerRecord<byte[], byte[]>> again = poll(member(group, topic), 9);
        Compat.checkEquals(values(again), numbers(10, n -> n > 0));
        checkDeliveries(again, 2);
    }

    private void threeMembers() throws Exception {
        String topic = compat.create(2);
        String group = group();
        List<KafkaShareConsumer<byte[], byte[]>> members = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            members.add(member(group, topic, "max.poll.records", "20"));
        }
        members.forEach(one -> one.poll(Duration.ofMillis(500)));
        KafkaProducer<byte[], byte[]> producer = compat.producer("batch.size", "200");
        List<String> found = new ArrayList<>();
        for (int n = 0; n < 600; n++) {
            producer.send(new ProducerRecord<>(topic, n % 2, null, Compat.bytes("" + n)));
        }
        producer.flush();
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (found.size() < 600) {
            Compat.check(System.nanoTime() < deadline, found.size() + " records of 600");
            members.forEach(one -> one.poll(Duration.ofMillis(20)).forEach(record -> found.add(Compat.text(record.value()))));
        }
        Compat.checkEquals(new HashSet<>(found), numbers(600, n -> true));
        Compat.checkEquals(found.size(), 600);
        members.forEach(ShareGroups::commit);
    }

    private void readCommitted() throws Exception {
        String topic = compat.create(1);
        KafkaShareConsumer<byte[], byte[]> consumer = member(group("share.isolation.level", "read_committed"), topic);
        KafkaProducer<byte[], byte[]> producer = compat.producer("transactional.id", Compat.unique("id"));
        producer.initTransactions();
        for (int n = 0; n < 20; n++) {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, Compat.bytes("" + n)));
            producer.flush();
            if (n % 2 == 0) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
        List<ConsumerRecord<byte[], byte[]>> records = poll(consumer, 10);
        Compat.checkEquals(values(records), numbers(20, n -> n % 2 == 0));
        nothing(consumer);
    }

    private void deadLetters() throws Exception {
        String topic = compat.create(1);
        String queue = Compat.unique("dlq.java");
        compat.createNamed(queue, Map.of("errors.deadletterqueue.group.enable", "true"));
        String group = group("errors.deadletterqueue.topic.name", queue, "errors.deadletterqueue.copy.record.enable", "true");
        send(topic, 3);
        KafkaShareConsumer<byte[], byte[]> consumer = member(group, topic, "share.acknowledgement.mode", "explicit");
        List<ConsumerRecord<byte[], byte[]>> records = poll(consumer, 3);
        consumer.acknowledge(records.get(0));
        consumer.acknowledge(records.get(1), AcknowledgeType.REJECT);
        consumer.acknowledge(records.get(2));
        commit(consumer);
        KafkaConsumer<byte[], byte[]> reader = compat.consumer();
        reader.assign(List.of(new TopicPartition(queue, 0)));
        reader.seekToBeginning(reader.assignment());
        ConsumerRecord<byte[], byte[]> letter = Compat.read(reader, 1).get(0);
        Compat.checkEquals(Compat.text(letter.key()), "key-1");
        Compat.checkEquals(Compat.text(letter.value()), "1");
        Map<String, String> headers = new HashMap<>();
        for (Header header : letter.headers()) {
            headers.put(header.key(), Compat.text(header.value()));
        }
        Compat.checkEquals(headers, Map.of(
            "__dlq.errors.topic", topic, "__dlq.errors.partition", "0", "__dlq.errors.offset", "1",
            "__dlq.errors.group", group, "__dlq.errors.delivery.count", "1",
            "__dlq.errors.message", "Offset rejected by client."));
    }
}
