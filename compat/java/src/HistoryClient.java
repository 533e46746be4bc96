import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Semaphore;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * One client process that writes a history for compat/checker: {@code java HistoryClient write|copy|read|share NAME=VALUE...}.
 *
 * The settings are those of compat/exactly_once; SIGTERM ends it cleanly; it may be killed at any time.
 */
public final class HistoryClient {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration CALL = Duration.ofSeconds(20);
    /** How long a record may wait for metadata: as long as for its acknowledgement (delivery.timeout.ms). */
    private static final Duration DELIVERY = Duration.ofSeconds(120);
    private static final int OUTSTANDING = 500;

    private final Map<String, String> options;
    private final FileOutputStream history;
    private final Random chance;
    private volatile boolean isOver;

    private HistoryClient(Map<String, String> options) throws IOException {
        this.options = options;
        this.history = new FileOutputStream(options.get("history"), true);
        this.chance = new Random((options.get("seed") + " " + options.get("process")).hashCode());
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (String argument : List.of(arguments).subList(1, arguments.length)) {
            options.put(argument.substring(0, argument.indexOf('=')), argument.substring(argument.indexOf('=') + 1));
        }
        HistoryClient client = new HistoryClient(options);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            client.isOver = true;
            try {
                main.join();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
        switch (arguments[0]) {
            case "write" -> client.write();
            case "copy" -> client.copy();
            case "read" -> client.read();
            case "share" -> client.share();
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        client.event("closed", "");
    }

    // ---------------------------------------------------------------- the history

    /** Writes an event; the fields are JSON, each with a leading comma. */
    private synchronized void event(String type, String fields) {
        String line = "{\"at\": " + System.nanoTime() / 1e9 + ", \"process\": " + quoted(options.get("process"))
            + ", \"type\": \"" + type + "\"" + fields + "}\n";
        try {
            history.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char one : text.toCharArray()) {
            quoted.append(one < ' ' ? " " : one == '"' || one == '\\' ? "\\" + one : String.valueOf(one));
        }
        return quoted.append('"').toString();
    }

    private static String field(String name, String value) {
        return ", \"" + name + "\": " + quoted(value);
    }

    private static <T> String rows(String name, Iterable<T> all, Function<T, String> row) {
        return ", \"" + name + "\": " + StreamSupport.stream(all.spliterator(), false)
            .map(one -> "[" + row.apply(one) + "]").collect(Collectors.joining(", ", "[", "]"));
    }

    private static String place(TopicPartition partition) {
        return quoted(partition.topic()) + ", " + partition.partition();
    }

    private static String value(String topic, int partition, String value) {
        return field("topic", topic) + ", \"partition\": " + partition + field("value", value);
    }

    private static String offsets(String group, Map<TopicPartition, OffsetAndMetadata> offsets) {
        return field("group", group)
            + rows("offsets", offsets.entrySet(), one -> place(one.getKey()) + ", " + one.getValue().offset());
    }

    private void note(String what, Throwable error) {
        event("note", field("text", what + ": " + error));
    }

    // ---------------------------------------------------------------- clients

    private Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", options.get("bootstrap"));
        properties.put("reconnect.backoff.ms", "20");
        properties.put("reconnect.backoff.max.ms", "200");
        properties.put("retry.backoff.ms", "20");
        properties.put("retry.backoff.max.ms", "200");
        properties.put("default.api.timeout.ms", String.valueOf(CALL.toMillis()));
        return properties;
    }

    private KafkaConsumer<String, String> consumer(List<String> topics, String group) {
        Properties properties = properties();
        properties.put("group.id", group);
        properties.put("isolation.level", "read_committed");
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        properties.put("max.poll.records", "40");
        properties.put("fetch.max.wait.ms", "50");
        properties.put("group.protocol", options.getOrDefault("protocol", "classic"));
        if (properties.get("group.protocol").equals("classic")) {
            int sessionMs = Integer.parseInt(options.get("session_ms"));
            properties.put("session.timeout.ms", String.valueOf(sessionMs));
            properties.put("heartbeat.interval.ms", String.valueOf(sessionMs / 5));
        }
        KafkaConsumer<String, String> consumer =
            new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(topics, new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                event("assigned", rows("partitions", partitions, HistoryClient::place));
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                event("revoked", rows("partitions", partitions, HistoryClient::place));
            }
        });
        return consumer;
    }

    private KafkaProducer<String, String> producer(String transactionalId) {
        Properties properties = properties();
        properties.put("linger.ms", "1");
        properties.put("max.block.ms", String.valueOf((transactionalId == null ? DELIVERY : CALL).toMillis()));
        if (transactionalId != null) {
            properties.put("transactional.id", transactionalId);
            properties.put("transaction.timeout.ms", "20000");
        }
        return new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
    }

    private ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) {
        ConsumerRecords<String, String> records = consumer.poll(POLL);
        if (!records.isEmpty()) {
            event("poll", field("isolation", "read_committed") + rows("records", records, one ->
                quoted(one.topic()) + ", " + one.partition() + ", " + one.offset() + ", " + quoted(one.value())));
        }
        return records;
    }

    private static Map<TopicPartition, OffsetAndMetadata> next(ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        for (ConsumerRecord<String, String> record : records) {
            next.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        return next;
    }

    private Map<TopicPartition, OffsetAndMetadata> committed(KafkaConsumer<String, String> consumer, String group) {
        double since = System.nanoTime() / 1e9;
        Set<TopicPartition> assigned = new HashSet<>(consumer.assignment());
        Map<TopicPartition, OffsetAndMetadata> found = consumer.committed(assigned);
        event("fetched_offsets", field("group", group) + ", \"since\": " + since + rows("offsets", assigned, one ->
            place(one) + ", " + (found.get(one) == null ? -1 : found.get(one).offset())));
        return found;
    }

    /** Calls until it succeeds, fails with an error that is not retriable, or the process is stopped. */
    private void again(Runnable call) {
        while (true) {
            try {
                call.run();
                return;
            } catch (RetriableException error) {
                if (isOver) {
                    throw error;
                }
            }
        }
    }

    // ---------------------------------------------------------------- roles

    private void write() throws InterruptedException {
        String topic = options.get("source");
        int partitions = Integer.parseInt(options.get("partitions"));
        double rate = Double.parseDouble(options.get("rate"));
        long began = System.nanoTime();
        int number = 0;
        Semaphore outstanding = new Semaphore(OUTSTANDING);
        try (KafkaProducer<String, String> producer = producer(null)) {
            while (!isOver) {
                if (number > (System.nanoTime() - began) / 1e9 * rate || !outstanding.tryAcquire()) {
                    Thread.sleep(5);
                    continue;
                }
                send(producer, topic, chance.nextInt(partitions), options.get("process") + "/" + number++, outstanding);
            }
        }
    }

    private void send(
        KafkaProducer<String, String> producer, String topic, int partition, String number, Semaphore outstanding
    ) {
        String what = value(topic, partition, number);
        event("send", what);
        producer.send(new ProducerRecord<>(topic, partition, null, number), (answer, error) -> {
            outstanding.release();
            if (error == null) {
                event("sent", what + ", \"offset\": " + answer.offset());
            } else {
                note(number, error);
            }
        });
    }

    private void copy() {
        String transactionalId = options.get("group") + "-" + options.get("slot");
        while (!isOver) {
            try (
                KafkaConsumer<String, String> consumer = consumer(List.of(options.get("source")), options.get("group"));
                KafkaProducer<String, String> producer = producer(transactionalId)
            ) {
                again(producer::initTransactions);
                for (int number = 0; !isOver; number++) {
                    step(options.get("process") + "/" + System.identityHashCode(producer) + "/" + number, producer, consumer);
                }
            } catch (KafkaException error) {
                note("starting over", error);
            }
        }
    }

    private void step(String txn, KafkaProducer<String, String> producer, KafkaConsumer<String, String> consumer) {
        ConsumerRecords<String, String> records = poll(consumer);
        if (records.isEmpty()) {
            return;
        }
        event("begin", field("txn", txn));
        producer.beginTransaction();
        try {
            transaction(txn, producer, consumer, records);
        } catch (ProducerFencedException | OutOfOrderSequenceException | AuthorizationException error) {
            throw error;
        } catch (KafkaException error) {
            note(txn, error);
            abort(txn, producer, consumer);
        }
    }

    private void transaction(
        String txn, KafkaProducer<String, String> producer, KafkaConsumer<String, String> consumer,
        ConsumerRecords<String, String> records
    ) {
        String target = options.get("target");
        for (ConsumerRecord<String, String> record : records) {
            String what = value(target, record.partition(), record.value()) + field("txn", txn);
            event("send", what);
            producer.send(new ProducerRecord<>(target, record.partition(), null, record.value()), (answer, error) -> {
                if (error == null) {
                    event("sent", what + ", \"offset\": " + answer.offset());
                }
            });
        }
        if (chance.nextInt(10) == 0) {
            abort(txn, producer, consumer);
            return;
        }
        String offsets = offsets(options.get("group"), next(records)) + field("txn", txn);
        event("committing_offsets", offsets);
        again(() -> producer.sendOffsetsToTransaction(next(records), consumer.groupMetadata()));
        event("committed_offsets", offsets);
        event("committing", field("txn", txn));
        again(producer::commitTransaction);
        event("committed", field("txn", txn));
    }

    private void abort(String txn, KafkaProducer<String, String> producer, KafkaConsumer<String, String> consumer) {
        again(producer::abortTransaction);
        event("aborted", field("txn", txn));
        for (Map.Entry<TopicPartition, OffsetAndMetadata> one : committed(consumer, options.get("group")).entrySet()) {
            long offset = one.getValue() == null ? 0 : one.getValue().offset();
            event("seek", field("topic", one.getKey().topic()) + ", \"partition\": " + one.getKey().partition()
                + ", \"offset\": " + offset);
            consumer.seek(one.getKey(), offset);
        }
    }

    private void share() {
        Properties properties = properties();
        properties.put("group.id", options.get("share_group"));
        properties.put("share.acknowledgement.mode", "explicit");
        properties.put("max.poll.records", "40");
        try (
            KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(properties, new StringDeserializer(), new StringDeserializer())
        ) {
            consumer.subscribe(List.of(options.get("source")));
            while (!isOver) {
                try {
                    shareBatch(consumer, consumer.poll(POLL));
                } catch (KafkaException error) {
                    note("share", error);
                }
            }
        }
    }

    /** One delivery, and its acknowledgements. */
    private void shareBatch(KafkaShareConsumer<String, String> consumer, ConsumerRecords<String, String> records) {
        if (records.isEmpty()) {
            return;
        }
        String group = field("group", options.get("share_group"));
        event("acquired", group + rows("records", records, one ->
            place(one) + ", " + quoted(one.value()) + ", " + one.deliveryCount().get()));
        Map<ConsumerRecord<String, String>, AcknowledgeType> kinds = new LinkedHashMap<>();
        for (ConsumerRecord<String, String> record : records) {
            int drawn = chance.nextInt(10);
            kinds.put(record, drawn == 0 ? AcknowledgeType.RELEASE : drawn == 1 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
        }
        event("acknowledging", group + rows("records", kinds.entrySet(), HistoryClient::acknowledgement));
        kinds.forEach(consumer::acknowledge);
        Set<TopicPartition> taken = new HashSet<>();
        consumer.commitSync(CALL).forEach((where, error) -> {
            if (error.isEmpty()) {
                taken.add(where.topicPartition());
            }
        });
        kinds.keySet().removeIf(one -> !taken.contains(new TopicPartition(one.topic(), one.partition())));
        event("acknowledged", group + rows("records", kinds.entrySet(), HistoryClient::acknowledgement));
    }

    private static String place(ConsumerRecord<String, String> record) {
        return quoted(record.topic()) + ", " + record.partition() + ", " + record.offset();
    }

    private static String acknowledgement(Map.Entry<ConsumerRecord<String, String>, AcknowledgeType> one) {
        return place(one.getKey()) + ", " + quoted(one.getValue().toString());
    }

    private void read() {
        String group = options.get("group") + "-readers";
        try (KafkaConsumer<String, String> consumer = consumer(List.of(options.get("source"), options.get("target")), group)) {
            while (!isOver) {
                ConsumerRecords<String, String> records = poll(consumer);
                if (records.isEmpty()) {
                    continue;
                }
                try {
                    event("committing_offsets", offsets(group, next(records)));
                    again(() -> consumer.commitSync(next(records)));
                    event("committed_offsets", offsets(group, next(records)));
                    committed(consumer, group);
                } catch (RetriableException | CommitFailedException | RebalanceInProgressException error) {
                    note("commit", error);
                }
            }
        }
    }
}
