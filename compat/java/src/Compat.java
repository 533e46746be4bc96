import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Utils;

/**
 * The Java client against a broker: {@code java Compat HOST:PORT [--command-config FILE] [SCENARIO...|NUMBER/COUNT]}.
 *
 * FILE is a client.properties of Kafka, which every client gets.
 * Runs each scenario (all of them by default, every COUNT-th with NUMBER/COUNT, from 0/COUNT on) and prints {@code PASS name} or {@code FAIL name reason}; the exit code is 1
 * if one has failed. Every scenario has its own topics and groups, so that runs may share a broker.
 */
public final class Compat {
    interface Scenario {
        void run() throws Exception;
    }

    static final Duration PATIENCE = Duration.ofSeconds(45);
    static final long EPOCH = System.currentTimeMillis() / 1000 * 1000 - 86_400_000; // younger than Kafka's retention

    private final String bootstrap;
    private final Properties common;
    private final Admin admin;
    private final Map<String, Scenario> scenarios = new LinkedHashMap<>();
    private final List<AutoCloseable> opened = new ArrayList<>();

    private Compat(String bootstrap, Properties common) {
        this.bootstrap = bootstrap;
        this.common = common;
        this.admin = Admin.create(properties());
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            scenarios.put("roundtrip_" + codec, () -> roundTrip(codec));
        }
        for (String acks : List.of("0", "1", "all")) {
            scenarios.put("acks_" + acks, () -> acks(acks));
        }
        scenarios.put("idempotent_order", this::idempotentOrder);
        scenarios.put("message_too_large", this::messageTooLarge);
        scenarios.put("big_records", this::bigRecords);
        scenarios.put("null_key_and_value", this::nullKeyAndValue);
        scenarios.put("offsets_for_times", this::offsetsForTimes);
        scenarios.put("seek", this::seek);
        scenarios.put("out_of_range", this::outOfRange);
        scenarios.put("log_append_time", this::logAppendTime);
        scenarios.put("read_committed_plain", this::readCommittedPlain);
        scenarios.put("auto_create", this::autoCreate);
        scenarios.put("pattern_subscription", this::patternSubscription);
        scenarios.put("group_commit_and_resume", this::groupCommitAndResume);
        for (String assignor : List.of("Range", "RoundRobin", "Sticky", "CooperativeSticky")) {
            scenarios.put("group_of_three_" + assignor, () -> groupOfThree(assignor));
        }
        scenarios.put("static_member", this::staticMember);
        scenarios.putAll(new AdminScenarios(this, admin, bootstrap).scenarios());
        scenarios.putAll(new Transactions(this, admin).scenarios());
        scenarios.putAll(new ShareGroups(this, admin).scenarios());
        scenarios.putAll(new ConsumerProtocol(this, admin).scenarios());
    }

    public static void main(String[] arguments) throws Exception {
        boolean hasFile = arguments.length > 2 && arguments[1].equals("--command-config");
        Compat compat = new Compat(arguments[0], hasFile ? Utils.loadProps(arguments[2]) : new Properties());
        List<String> wanted = Arrays.asList(arguments).subList(hasFile ? 3 : 1, arguments.length);
        int failures = 0;
        int number = 0;
        for (Map.Entry<String, Scenario> entry : compat.scenarios.entrySet()) {
            if (wanted.isEmpty() || wanted.contains(entry.getKey()) || isInPart(number++, wanted)) {
                failures += compat.run(entry.getKey(), entry.getValue());
            }
        }
        compat.admin.close(Duration.ofSeconds(5));
        if (failures > 0) {
            throw new IllegalStateException(failures + " scenarios have failed");
        }
    }

    private static boolean isInPart(int number, List<String> wanted) {
        String[] part = wanted.get(0).split("/");
        return part.length == 2 && number % Integer.parseInt(part[1]) == Integer.parseInt(part[0]);
    }

    private int run(String name, Scenario scenario) {
        String outcome = "PASS " + name;
        try {
            scenario.run();
        } catch (Throwable error) {
            outcome = "FAIL " + name + " " + String.valueOf(error).replace('\n', ' ') + " at " + where(error);
        } finally {
            for (AutoCloseable one : opened) {
                try {
                    one.close();
                } catch (Exception error) {
                    outcome = outcome.startsWith("FAIL") ? outcome : "FAIL " + name + " close: " + error;
                }
            }
            opened.clear();
        }
        System.out.println(outcome);
        return outcome.startsWith("FAIL") ? 1 : 0;
    }

    private static String where(Throwable error) {
        for (StackTraceElement element : error.getStackTrace()) {
            if (!element.getClassName().contains(".") && !element.getMethodName().startsWith("check")) {
                return element.getMethodName() + ":" + element.getLineNumber();
            }
        }
        return "?";
    }

    // ---------------------------------------------------------------- building blocks

    private Properties properties(String... pairs) {
        Properties properties = new Properties();
        properties.putAll(common);
        properties.put("bootstrap.servers", bootstrap);
        properties.put("default.api.timeout.ms", "30000");
        for (int n = 0; n < pairs.length; n += 2) {
            properties.put(pairs[n], pairs[n + 1]);
        }
        return properties;
    }

    KafkaProducer<byte[], byte[]> producer(String... pairs) {
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(properties(pairs), new ByteArraySerializer(), new ByteArraySerializer());
        opened.add(() -> producer.close(Duration.ofSeconds(10)));
        return producer;
    }

    KafkaConsumer<byte[], byte[]> consumer(String... pairs) {
        Properties properties = properties("auto.offset.reset", "earliest", "enable.auto.commit", "false");
        for (int n = 0; n < pairs.length; n += 2) {
            properties.put(pairs[n], pairs[n + 1]);
        }
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        opened.add(consumer::close);
        return consumer;
    }

    KafkaShareConsumer<byte[], byte[]> shareConsumer(String group, String... pairs) {
        Properties properties = properties(pairs);
        properties.put("group.id", group);
        KafkaShareConsumer<byte[], byte[]> consumer =
            new KafkaShareConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        opened.add(consumer::close);
        return consumer;
    }

    static String unique(String stem) {
        return stem + "-" + UUID.randomUUID();
    }

    String create(int partitions, String... configs) throws Exception {
        String topic = unique("java");
        Map<String, String> settings = new HashMap<>();
        for (int n = 0; n < configs.length; n += 2) {
            settings.put(configs[n], configs[n + 1]);
        }
        return create(topic, partitions, settings);
    }

    void createNamed(String topic, Map<String, String> settings) throws Exception {
        create(topic, 1, settings);
    }

    private String create(String topic, int partitions, Map<String, String> settings) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) -1).configs(settings))).all().get(30, TimeUnit.SECONDS);
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (!isKnown(topic)) { // Kafka answers before the broker knows the topic
            check(System.nanoTime() < deadline, "the new topic did not appear");
        }
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>(); // of the leaders, to which acks=0 would send in vain before
        for (int index = 0; index < partitions; index++) {
            asked.put(new TopicPartition(topic, index), OffsetSpec.latest());
        }
        admin.listOffsets(asked).all().get(30, TimeUnit.SECONDS);
        return topic;
    }

    private boolean isKnown(String topic) throws Exception {
        try {
            return admin.describeTopics(List.of(topic)).allTopicNames().get(30, TimeUnit.SECONDS).get(topic)
                .partitions().stream().allMatch(partition -> partition.leader() != null);
        } catch (ExecutionException error) {
            check(error.getCause() instanceof UnknownTopicOrPartitionException, "describing failed with " + error.getCause());
            return false;
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, java.nio.charset.StandardCharsets.UTF_8);
    }

    void sendNumbers(KafkaProducer<byte[], byte[]> producer, String topic, int count) throws Exception {
        List<Future<RecordMetadata>> answers = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            answers.add(producer.send(new ProducerRecord<>(topic, 0, EPOCH + n * 1000L, bytes("key-" + n), bytes("" + n))));
        }
        producer.flush();
        for (Future<RecordMetadata> answer : answers) {
            answer.get(30, TimeUnit.SECONDS);
        }
    }

    static List<ConsumerRecord<byte[], byte[]>> read(KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (records.size() < count && System.nanoTime() < deadline) {
            ConsumerRecords<byte[], byte[]> batch = consumer.poll(Duration.ofMillis(200));
            batch.forEach(records::add);
        }
        check(records.size() == count, "read " + records.size() + " records of " + count);
        return records;
    }

    private static void assign(KafkaConsumer<byte[], byte[]> consumer, String topic, int partition, long offset) {
        TopicPartition where = new TopicPartition(topic, partition);
        consumer.assign(List.of(where));
        consumer.seek(where, offset);
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void checkEquals(Object found, Object expected) {
        check(Objects.equals(found, expected), "found " + found + ", expected " + expected);
    }

    static void checkFails(Class<? extends Throwable> expected, Future<?> future) throws Exception {
        try {
            future.get(30, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            check(expected.isInstance(error.getCause()), "failed with " + error.getCause());
            return;
        }
        throw new AssertionError("did not fail with " + expected.getSimpleName());
    }

    static void checkNumbers(List<ConsumerRecord<byte[], byte[]>> records, int first) {
        for (int n = 0; n < records.size(); n++) {
            checkEquals(records.get(n).offset(), (long) (first + n));
            checkEquals(text(records.get(n).value()), "" + (first + n));
        }
    }

    static void pollUntil(Collection<KafkaConsumer<byte[], byte[]>> consumers, BooleanSupplier settled) {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (!settled.getAsBoolean()) {
            check(System.nanoTime() < deadline, "the group did not settle in time");
            consumers.forEach(one -> one.poll(Duration.ofMillis(20)));
        }
    }

    // ---------------------------------------------------------------- producing and consuming

    private void roundTrip(String codec) throws Exception {
        String topic = create(1);
        KafkaProducer<byte[], byte[]> producer = producer("compression.type", codec, "linger.ms", "20", "acks", "all");
        List<Future<RecordMetadata>> answers = new ArrayList<>();
        for (int n = 0; n < 500; n++) {
            ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(topic, 0, EPOCH + n, bytes("key-" + n), bytes(("value-" + n + " ").repeat(20)));
            record.headers().add("n", bytes("" + n)).add(new RecordHeader("null", (byte[]) null));
            answers.add(producer.send(record));
        }
        producer.flush();
        for (int n = 0; n < 500; n++) {
            checkEquals(answers.get(n).get().offset(), (long) n);
        }
        KafkaConsumer<byte[], byte[]> consumer = consumer("check.crcs", "true");
        assign(consumer, topic, 0, 0);
        List<ConsumerRecord<byte[], byte[]>> records = read(consumer, 500);
        for (int n = 0; n < 500; n++) {
            ConsumerRecord<byte[], byte[]> record = records.get(n);
            checkEquals(record.offset(), (long) n);
            checkEquals(record.timestamp(), EPOCH + n);
            checkEquals(text(record.key()), "key-" + n);
            checkEquals(text(record.value()), ("value-" + n + " ").repeat(20));
            checkEquals(text(record.headers().lastHeader("n").value()), "" + n);
            checkEquals(record.headers().lastHeader("null").value(), null);
        }
    }

    private void acks(String acks) throws Exception {
        String topic = create(1);
        sendNumbers(producer("acks", acks, "enable.idempotence", "false"), topic, 300);
        KafkaConsumer<byte[], byte[]> consumer = consumer();
        assign(consumer, topic, 0, 0);
        checkNumbers(read(consumer, 300), 0);
    }

    private void idempotentOrder() throws Exception {
        String topic = create(1);
        sendNumbers(producer("enable.idempotence", "true", "batch.size", "100"), topic, 2000);
        KafkaConsumer<byte[], byte[]> consumer = consumer();
        assign(consumer, topic, 0, 0);
        checkNumbers(read(consumer, 2000), 0);
    }

    private void messageTooLarge() throws Exception {
        String topic = create(1, "max.message.bytes", "200000");
        KafkaProducer<byte[], byte[]> producer = producer("max.request.size", "10000000");
        producer.send(new ProducerRecord<>(topic, new byte[199_000])).get(30, TimeUnit.SECONDS);
        checkFails(RecordTooLargeException.class, producer.send(new ProducerRecord<>(topic, new byte[201_000])));
    }

    private void bigRecords() throws Exception {
        String topic = create(1, "max.message.bytes", "8000000");
        KafkaProducer<byte[], byte[]> producer = producer("max.request.size", "8000000");
        byte[] value = new byte[5_000_000];
        new java.util.Random(1).nextBytes(value);
        for (int n = 0; n < 3; n++) {
            producer.send(new ProducerRecord<>(topic, value)).get(30, TimeUnit.SECONDS);
        }
        KafkaConsumer<byte[], byte[]> consumer = consumer();
        assign(consumer, topic, 0, 0);
        for (ConsumerRecord<byte[], byte[]> record : read(consumer, 3)) {
            check(Arrays.equals(record.value(), value), "a big value came back changed");
        }
    }

    private void nullKeyAndValue() throws Exception {
        String topic = create(1);
        KafkaProducer<byte[], byte[]> producer = producer();
        producer.send(new ProducerRecord<>(topic, null, new byte[0])).get(30, TimeUnit.SECONDS);
        producer.send(new ProducerRecord<>(topic, new byte[0], null)).get(30, TimeUnit.SECONDS);
        KafkaConsumer<byte[], byte[]> consumer = consumer();
        assign(consumer, topic, 0, 0);
        List<ConsumerRecord<byte[], byte[]>> records = read(consumer, 2);
        check(records.get(0).key() == null && records.get(0).value().length == 0, "null key, empty value");
        check(records.get(1).key().length == 0 && records.get(1).value() == null, "empty key, null value");
    }

    private void offsetsForTimes() throws Exception {
        String topic = create(1);
        sendNumbers(producer(), topic, 100);
        KafkaConsumer<byte[], byte[]> consumer = consumer();
        TopicPartition where = new TopicPartition(topic, 0);
        OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(where, EPOCH + 41_500)).get(where);
        checkEquals(found.offset(), 42L);
        checkEquals(found.timestamp(), EPOCH + 42_000);
        checkEquals(consumer.offsetsForTimes(Map.of(where, EPOCH + 1_000_000)).get(where), null);
        checkEquals(consumer.beginningOffsets(List.of(where)), Map.of(where, 0L));
        checkEquals(consumer.endOffsets(List.of(where)), Map.of(where, 100L));
    }

    private void seek() throws Exception {
        String topic = create(1);
        sendNumbers(producer(), topic, 100);
        KafkaConsumer<byte[], byte[]> consumer = consumer("max.poll.records", "10");
        TopicPartition where = new TopicPartition(topic, 0);
        assign(consumer, topic, 0, 90);
        checkNumbers(read(consumer, 10), 90);
        consumer.seekToBeginning(List.of(where));
        checkNumbers(read(consumer, 10), 0);
        consumer.seekToEnd(List.of(where));
        checkEquals(consumer.position(where), 100L);
    }

    private void outOfRange() throws Exception {
        String topic = create(1);
        sendNumbers(producer(), topic, 3);
        KafkaConsumer<byte[], byte[]> consumer = consumer("auto.offset.reset", "none");
        assign(consumer, topic, 0, 1000);
        try {
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (System.nanoTime() < deadline) {
                consumer.poll(Duration.ofMillis(200));
            }
        } catch (OffsetOutOfRangeException expected) {
            checkEquals(expected.offsetOutOfRangePartitions(), Map.of(new TopicPartition(topic, 0), 1000L));
            return;
        }
        throw new AssertionError("no OffsetOutOfRangeException");
    }

    private void logAppendTime() throws Exception {
        String topic = create(1, "message.timestamp.type", "LogAppendTime");
        long before = System.currentTimeMillis();
        RecordMetadata answer = producer("compression.type", "zstd")
            .send(new ProducerRecord<>(topic, 0, 1L, null, bytes("value"))).get(30, TimeUnit.SECONDS);
        check(answer.timestamp() >= before - 1000, "the producer receives the append time, not " + answer.timestamp());
        KafkaConsumer<byte[], byte[]> consumer = consumer();
        assign(consumer, topic, 0, 0);
        ConsumerRecord<byte[], byte[]> record = read(consumer, 1).get(0);
        checkEquals(record.timestampType(), TimestampType.LOG_APPEND_TIME);
        checkEquals(record.timestamp(), answer.timestamp());
    }

    private void readCommittedPlain() throws Exception {
        String topic = create(1);
        sendNumbers(producer(), topic, 10);
        KafkaConsumer<byte[], byte[]> consumer = consumer("isolation.level", "read_committed");
        assign(consumer, topic, 0, 0);
        checkNumbers(read(consumer, 10), 0);
    }

    private void autoCreate() throws Exception {
        String topic = unique("java-auto");
        producer().send(new ProducerRecord<>(topic, bytes("value"))).get(30, TimeUnit.SECONDS);
        check(admin.listTopics().names().get().contains(topic), "the topic was not created");
    }

    private void patternSubscription() throws Exception {
        String topic = create(1);
        sendNumbers(producer(), topic, 1);
        KafkaConsumer<byte[], byte[]> consumer = consumer("group.id", unique("group"));
        consumer.subscribe(java.util.regex.Pattern.compile("^" + topic + "$"));
        checkNumbers(read(consumer, 1), 0);
    }

    // ---------------------------------------------------------------- groups

    private void groupCommitAndResume() throws Exception {
        String topic = create(1);
        String group = unique("group");
        sendNumbers(producer(), topic, 20);
        TopicPartition where = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> first = consumer("group.id", group, "max.poll.records", "12")) {
            first.subscribe(List.of(topic));
            checkNumbers(read(first, 12), 0);
            first.commitSync(Map.of(where, new OffsetAndMetadata(12, "half way")));
        }
        KafkaConsumer<byte[], byte[]> second = consumer("group.id", group);
        second.subscribe(List.of(topic));
        checkNumbers(read(second, 8), 12);
        checkEquals(second.committed(Set.of(where)).get(where).metadata(), "half way");
        second.commitAsync();
        second.enforceRebalance();
        pollUntil(List.of(second), () -> second.groupMetadata().generationId() > 1);
    }

    private void groupOfThree(String assignor) throws Exception {
        String topic = create(6);
        String group = unique("group");
        String strategy = "org.apache.kafka.clients.consumer." + assignor + "Assignor";
        List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            members.add(consumer("group.id", group, "partition.assignment.strategy", strategy, "heartbeat.interval.ms", "300"));
            members.get(n).subscribe(List.of(topic));
        }
        pollUntil(members, () -> members.stream().allMatch(one -> one.assignment().size() == 2));
        checkEquals(owned(members), Set.of(0, 1, 2, 3, 4, 5));
        members.remove(0).close();
        pollUntil(members, () -> members.stream().allMatch(one -> one.assignment().size() == 3));
        checkEquals(owned(members), Set.of(0, 1, 2, 3, 4, 5));
    }

    private static Set<Integer> owned(List<KafkaConsumer<byte[], byte[]>> members) {
        Set<Integer> partitions = new HashSet<>();
        members.forEach(one -> one.assignment().forEach(where -> partitions.add(where.partition())));
        return partitions;
    }

    private void staticMember() throws Exception {
        String topic = create(2);
        String group = unique("group");
        String[] settings = {"group.id", group, "session.timeout.ms", "30000", "heartbeat.interval.ms", "300", "group.instance.id", ""};
        List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();
        for (String name : List.of("a", "b")) {
            settings[7] = name;
            members.add(consumer(settings));
            members.get(members.size() - 1).subscribe(List.of(topic));
        }
        pollUntil(members, () -> members.stream().allMatch(one -> one.assignment().size() == 1));
        Set<TopicPartition> owned = members.get(0).assignment();
        int generation = members.get(1).groupMetadata().generationId();
        members.get(0).close();
        settings[7] = "a";
        members.set(0, consumer(settings));
        members.get(0).subscribe(List.of(topic));
        pollUntil(members, () -> members.get(0).assignment().equals(owned));
        checkEquals(members.get(1).groupMetadata().generationId(), generation);
    }
}
