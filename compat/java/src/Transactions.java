import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TransactionalIdNotFoundException;

/** Scenarios of {@link Compat}: the transactional producer, its readers and its administration. */
final class Transactions {
    private final Compat compat;
    private final Admin admin;

    Transactions(Compat compat, Admin admin) {
        this.compat = compat;
        this.admin = admin;
    }

    Map<String, Compat.Scenario> scenarios() {
        Map<String, Compat.Scenario> scenarios = new java.util.LinkedHashMap<>();
        scenarios.put("transaction_commit", this::commit);
        scenarios.put("transaction_abort", this::abort);
        scenarios.put("transaction_stable_offset", this::stableOffset);
        scenarios.put("transaction_across_topics", this::acrossTopics);
        scenarios.put("transaction_large", this::large);
        scenarios.put("transaction_empty", this::empty);
        scenarios.put("transaction_abort_before_anything_is_sent", this::abortBeforeAnythingIsSent);
        scenarios.put("transaction_after_a_failed_send", this::afterAFailedSend);
        scenarios.put("transaction_fencing", this::fencing);
        scenarios.put("transaction_successor_aborts", this::successorAborts);
        scenarios.put("transaction_timeout", this::timeout);
        scenarios.put("transaction_timeout_too_long", this::timeoutTooLong);
        scenarios.put("transaction_offsets", this::offsets);
        scenarios.put("transaction_offsets_of_a_stale_member", this::offsetsOfAStaleMember);
        scenarios.put("transaction_pending_offsets", this::pendingOffsets);
        scenarios.put("transaction_epochs", this::epochs);
        scenarios.put("admin_transactions", this::adminTransactions);
        scenarios.put("admin_abort_transaction", this::adminAbortTransaction);
        scenarios.put("admin_fence_producers", this::adminFenceProducers);
        return scenarios;
    }

    // ---------------------------------------------------------------- building blocks

    private KafkaProducer<byte[], byte[]> producer(String id, String... pairs) {
        List<String> all = new ArrayList<>(List.of("transactional.id", id, "max.block.ms", "30000"));
        all.addAll(List.of(pairs));
        KafkaProducer<byte[], byte[]> producer = compat.producer(all.toArray(new String[0]));
        producer.initTransactions();
        return producer;
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, int partition, String... values) {
        for (String value : values) {
            producer.send(new ProducerRecord<>(topic, partition, null, Compat.bytes(value)));
        }
    }

    /** All values of a partition that an isolation level shows. */
    private List<String> values(String topic, int partition, String isolation) {
        TopicPartition where = new TopicPartition(topic, partition);
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = compat.consumer("isolation.level", isolation)) {
            consumer.assign(List.of(where));
            long end = consumer.endOffsets(List.of(where)).get(where);
            consumer.seekToBeginning(List.of(where));
            long deadline = System.nanoTime() + Compat.PATIENCE.toNanos();
            while (consumer.position(where) < end) {
                Compat.check(System.nanoTime() < deadline, "the partition does not end");
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    values.add(Compat.text(record.value()));
                }
            }
        }
        return values;
    }

    private List<String> committed(String topic) {
        return values(topic, 0, "read_committed");
    }

    /** Readers see a transaction when its markers are written, which may be after the commit was answered. */
    private void checkCommitted(String topic, List<String> expected) {
        long deadline = System.nanoTime() + Compat.PATIENCE.toNanos();
        List<String> found = committed(topic);
        while (!found.equals(expected) && System.nanoTime() < deadline) {
            found = committed(topic);
        }
        Compat.checkEquals(found, expected);
    }

    private static void checkThrows(Collection<Class<? extends Throwable>> expected, Runnable call) {
        try {
            call.run();
        } catch (RuntimeException error) {
            boolean fits = expected.stream().anyMatch(kind -> kind.isInstance(error) || kind.isInstance(error.getCause()));
            Compat.check(fits, "failed with " + error + " because of " + error.getCause());
            return;
        }
        throw new AssertionError("did not fail");
    }

    private TransactionDescription described(String id) throws Exception {
        return admin.describeTransactions(List.of(id)).description(id).get(30, TimeUnit.SECONDS);
    }

    private void waitForState(String id, TransactionState state) throws Exception {
        long deadline = System.nanoTime() + Compat.PATIENCE.toNanos();
        while (described(id).state() != state) {
            Compat.check(System.nanoTime() < deadline, "is " + described(id) + ", not " + state);
        }
    }

    private long end(String topic, IsolationLevel isolation) throws Exception {
        TopicPartition where = new TopicPartition(topic, 0);
        return admin.listOffsets(Map.of(where, OffsetSpec.latest()), new ListOffsetsOptions(isolation))
            .partitionResult(where).get(30, TimeUnit.SECONDS).offset();
    }

    // ---------------------------------------------------------------- outcomes

    private void commit() throws Exception {
        String topic = compat.create(1);
        KafkaProducer<byte[], byte[]> producer = producer(Compat.unique("id"));
        producer.beginTransaction();
        send(producer, topic, 0, "a", "b");
        producer.flush();
        checkCommitted(topic, List.of());
        Compat.checkEquals(values(topic, 0, "read_uncommitted"), List.of("a", "b"));
        producer.commitTransaction();
        checkCommitted(topic, List.of("a", "b"));
    }

    private void abort() throws Exception {
        String topic = compat.create(1);
        KafkaProducer<byte[], byte[]> producer = producer(Compat.unique("id"));
        for (int round = 0; round < 4; round++) {
            producer.beginTransaction();
            send(producer, topic, 0, "aborted-" + round);
            producer.flush();
            producer.abortTransaction();
            producer.beginTransaction();
            send(producer, topic, 0, "committed-" + round);
            producer.commitTransaction();
        }
        checkCommitted(topic, List.of("committed-0", "committed-1", "committed-2", "committed-3"));
        Compat.checkEquals(values(topic, 0, "read_uncommitted").size(), 8);
    }

    private void stableOffset() throws Exception {
        String topic = compat.create(1);
        KafkaProducer<byte[], byte[]> one = producer(Compat.unique("id"));
        KafkaProducer<byte[], byte[]> other = producer(Compat.unique("id"));
        one.beginTransaction();
        send(one, topic, 0, "one");
        one.flush();
        other.beginTransaction();
        send(other, topic, 0, "other");
        other.commitTransaction();
        Compat.checkEquals(end(topic, IsolationLevel.READ_COMMITTED), 0L);
        checkCommitted(topic, List.of());
        one.abortTransaction();
        long deadline = System.nanoTime() + Compat.PATIENCE.toNanos(); // the marker follows the answer
        while (end(topic, IsolationLevel.READ_COMMITTED) != end(topic, IsolationLevel.READ_UNCOMMITTED)) {
            Compat.check(System.nanoTime() < deadline, "readers are held back");
        }
        checkCommitted(topic, List.of("other"));
    }

    private void acrossTopics() throws Exception {
        List<String> topics = List.of(compat.create(3), compat.create(2));
        KafkaProducer<byte[], byte[]> producer = producer(Compat.unique("id"), "compression.type", "lz4");
        for (String outcome : List.of("committed", "aborted")) {
            producer.beginTransaction();
            for (int partition = 0; partition < 3; partition++) {
                send(producer, topics.get(0), partition, outcome);
            }
            send(producer, topics.get(1), 1, outcome);
            producer.flush();
            if (outcome.equals("committed")) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
        for (int partition = 0; partition < 3; partition++) {
            Compat.checkEquals(values(topics.get(0), partition, "read_committed"), List.of("committed"));
        }
        Compat.checkEquals(values(topics.get(1), 1, "read_committed"), List.of("committed"));
    }

    private void large() throws Exception {
        String topic = compat.create(1);
        KafkaProducer<byte[], byte[]> producer = producer(Compat.unique("id"), "batch.size", "1000", "linger.ms", "0");
        producer.beginTransaction();
        List<String> sent = new ArrayList<>();
        for (int n = 0; n < 10_000; n++) {
            sent.add("" + n);
        }
        send(producer, topic, 0, sent.toArray(new String[0]));
        producer.commitTransaction();
        checkCommitted(topic, sent);
    }

    private void empty() throws Exception {
        String topic = compat.create(1);
        KafkaProducer<byte[], byte[]> producer = producer(Compat.unique("id"));
        for (int round = 0; round < 3; round++) {
            producer.beginTransaction();
            producer.commitTransaction();
            producer.beginTransaction();
            producer.abortTransaction();
        }
        producer.beginTransaction();
        send(producer, topic, 0, "a");
        producer.commitTransaction();
        checkCommitted(topic, List.of("a"));
    }

    /**
     * An abort while the markers of the previous transaction are written, before any other request of its own.
     *
     * The client decides that nothing is left to send before it takes the EndTxn from its queue (Sender,
     * maybeSendAndPollTransactionalRequest of 4.4.0). When send() and abortTransaction() come in between, the record stays
     * in its buffer, its future is not done when the abort is, and the next transaction sends it.
     */
    private void abortBeforeAnythingIsSent() throws Exception {
        String topic = compat.create(3);
        KafkaProducer<byte[], byte[]> producer = producer(Compat.unique("id"), "linger.ms", "1000");
        List<String> expected = new ArrayList<>();
        for (int round = 0; round < 20; round++) {
            producer.beginTransaction();
            for (int partition = 0; partition < 3; partition++) {
                send(producer, topic, partition, "committed-" + round);
            }
            producer.commitTransaction();
            expected.add("committed-" + round);
            producer.beginTransaction();
            Future<RecordMetadata> aborted = producer.send(new ProducerRecord<>(topic, 0, null, Compat.bytes("aborted-" + round)));
            producer.abortTransaction();
            if (!aborted.isDone()) {
                expected.add("aborted-" + round);
            }
        }
        producer.beginTransaction();
        send(producer, topic, 0, "last");
        producer.commitTransaction();
        expected.add("last");
        checkCommitted(topic, expected);
    }

    private void afterAFailedSend() throws Exception {
        String topic = compat.create(1, "max.message.bytes", "1000");
        KafkaProducer<byte[], byte[]> producer = producer(Compat.unique("id"));
        producer.beginTransaction();
        send(producer, topic, 0, "a");
        producer.flush(); // in one batch with the next it would be split, and the client's commit never end
        send(producer, topic, 0, "x".repeat(5000));
        producer.flush();
        checkThrows(List.of(RecordTooLargeException.class), producer::commitTransaction);
        producer.abortTransaction();
        producer.beginTransaction();
        send(producer, topic, 0, "b");
        producer.commitTransaction();
        checkCommitted(topic, List.of("b"));
    }

    // ---------------------------------------------------------------- fencing and time

    private void fencing() throws Exception {
        String topic = compat.create(1);
        String id = Compat.unique("id");
        KafkaProducer<byte[], byte[]> zombie = producer(id);
        zombie.beginTransaction();
        send(zombie, topic, 0, "zombie");
        zombie.flush();
        KafkaProducer<byte[], byte[]> successor = producer(id);
        successor.beginTransaction();
        send(successor, topic, 0, "successor");
        successor.commitTransaction();
        checkThrows(List.of(ProducerFencedException.class, InvalidProducerEpochException.class), zombie::commitTransaction);
        checkCommitted(topic, List.of("successor"));
        successor.beginTransaction();
        send(successor, topic, 0, "continues");
        successor.commitTransaction();
        checkCommitted(topic, List.of("successor", "continues"));
    }

    private void successorAborts() throws Exception {
        String topic = compat.create(1);
        String id = Compat.unique("id");
        KafkaProducer<byte[], byte[]> dead = producer(id);
        dead.beginTransaction();
        send(dead, topic, 0, "left open");
        dead.flush();
        dead.close(Duration.ZERO);
        Compat.checkEquals(end(topic, IsolationLevel.READ_COMMITTED), 0L);
        producer(id);
        Compat.checkEquals(described(id).state(), TransactionState.EMPTY);
        Compat.checkEquals(end(topic, IsolationLevel.READ_COMMITTED), 2L);
        checkCommitted(topic, List.of());
    }

    private void timeout() throws Exception {
        String topic = compat.create(1);
        String id = Compat.unique("id");
        KafkaProducer<byte[], byte[]> producer = producer(id, "transaction.timeout.ms", "1000");
        producer.beginTransaction();
        send(producer, topic, 0, "late");
        producer.flush();
        waitForState(id, TransactionState.COMPLETE_ABORT);
        checkThrows(
            List.of(ProducerFencedException.class, InvalidProducerEpochException.class, InvalidTxnStateException.class),
            producer::commitTransaction
        );
        Compat.checkEquals(end(topic, IsolationLevel.READ_COMMITTED), 2L);
        checkCommitted(topic, List.of());
    }

    private void timeoutTooLong() {
        try {
            producer(Compat.unique("id"), "transaction.timeout.ms", "900001");
        } catch (KafkaException error) { // the client wraps the broker's error, and keeps its text only
            Compat.check(error.getMessage().contains("transaction timeout is larger"), "failed with " + error);
            return;
        }
        throw new AssertionError("did not fail");
    }

    // ---------------------------------------------------------------- offsets

    private KafkaConsumer<byte[], byte[]> member(String group, String topic) {
        KafkaConsumer<byte[], byte[]> consumer = compat.consumer("group.id", group, "isolation.level", "read_committed");
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private void offsets() throws Exception {
        String source = compat.create(1);
        String target = compat.create(1);
        String group = Compat.unique("group");
        TopicPartition where = new TopicPartition(source, 0);
        compat.sendNumbers(compat.producer(), source, 10);
        KafkaProducer<byte[], byte[]> producer = producer(Compat.unique("id"));
        KafkaConsumer<byte[], byte[]> consumer = member(group, source);
        Compat.read(consumer, 10);
        for (String outcome : List.of("aborted", "committed")) {
            producer.beginTransaction();
            send(producer, target, 0, outcome);
            producer.sendOffsetsToTransaction(Map.of(where, new OffsetAndMetadata(7, outcome)), consumer.groupMetadata());
            if (outcome.equals("aborted")) {
                producer.abortTransaction();
                Compat.check(consumer.committed(Set.of(where)).get(where) == null, "an aborted offset is committed");
            } else {
                producer.commitTransaction();
            }
        }
        Compat.checkEquals(consumer.committed(Set.of(where)).get(where), new OffsetAndMetadata(7, "committed"));
        checkCommitted(target, List.of("committed"));
    }

    private void offsetsOfAStaleMember() throws Exception {
        String source = compat.create(1);
        String group = Compat.unique("group");
        TopicPartition where = new TopicPartition(source, 0);
        compat.sendNumbers(compat.producer(), source, 3);
        KafkaProducer<byte[], byte[]> producer = producer(Compat.unique("id"));
        KafkaConsumer<byte[], byte[]> consumer = member(group, source);
        Compat.read(consumer, 3);
        ConsumerGroupMetadata current = consumer.groupMetadata();
        consumer.close();
        Compat.read(member(group, source), 3); // another member has the partition now
        producer.beginTransaction();
        checkThrows(List.of(CommitFailedException.class), () -> {
            producer.sendOffsetsToTransaction(Map.of(where, new OffsetAndMetadata(3)), current);
            producer.commitTransaction();
        });
        producer.abortTransaction();
        Compat.check(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(where) == null, "committed");
    }

    /** An offset of an open transaction delays readers that require stable offsets, as consumers do. */
    private void pendingOffsets() throws Exception {
        String source = compat.create(1);
        String group = Compat.unique("group");
        TopicPartition where = new TopicPartition(source, 0);
        KafkaProducer<byte[], byte[]> producer = producer(Compat.unique("id"));
        producer.beginTransaction();
        KafkaConsumer<byte[], byte[]> unsubscribed = compat.consumer("group.id", group);
        producer.sendOffsetsToTransaction(Map.of(where, new OffsetAndMetadata(5)), unsubscribed.groupMetadata());
        producer.flush();
        KafkaConsumer<byte[], byte[]> reader = compat.consumer("group.id", group);
        checkThrows(
            List.of(org.apache.kafka.common.errors.TimeoutException.class),
            () -> reader.committed(Set.of(where), Duration.ofSeconds(1))
        );
        producer.commitTransaction();
        Compat.checkEquals(reader.committed(Set.of(where)).get(where), new OffsetAndMetadata(5));
    }

    // ---------------------------------------------------------------- KIP-890 and administration

    /** transaction.version 2: every transaction has its own epoch. */
    private void epochs() throws Exception {
        Compat.checkEquals(
            (int) admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("transaction.version").maxVersionLevel(), 2
        );
        String topic = compat.create(1);
        String id = Compat.unique("id");
        KafkaProducer<byte[], byte[]> producer = producer(id);
        List<Integer> epochs = new ArrayList<>();
        for (int round = 0; round < 4; round++) {
            producer.beginTransaction();
            send(producer, topic, 0, "" + round);
            producer.flush();
            epochs.add(described(id).producerEpoch());
            if (round % 2 == 0) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
        int first = epochs.get(0);
        Compat.checkEquals(epochs, List.of(first, first + 1, first + 2, first + 3));
    }

    private void adminTransactions() throws Exception {
        String topic = compat.create(2);
        String id = Compat.unique("id");
        checkMissing(id);
        KafkaProducer<byte[], byte[]> producer = producer(id, "transaction.timeout.ms", "54321");
        Compat.checkEquals(described(id).state(), TransactionState.EMPTY);
        producer.beginTransaction();
        send(producer, topic, 1, "a");
        producer.flush();
        TransactionDescription open = described(id);
        Compat.checkEquals(open.state(), TransactionState.ONGOING);
        Compat.checkEquals(open.transactionTimeoutMs(), 54321L);
        Compat.checkEquals(open.topicPartitions(), Set.of(new TopicPartition(topic, 1)));
        Compat.check(open.transactionStartTimeMs().isPresent(), "no start");
        Compat.check(listed(new ListTransactionsOptions()).contains(id), "not listed");
        Compat.check(listed(new ListTransactionsOptions().filterStates(Set.of(TransactionState.ONGOING))).contains(id), "not as open");
        Compat.check(!listed(new ListTransactionsOptions().filterStates(Set.of(TransactionState.EMPTY))).contains(id), "as empty");
        Compat.check(!listed(new ListTransactionsOptions().filterOnDuration(600_000)).contains(id), "as long");
        Compat.check(listed(new ListTransactionsOptions().filterProducerIds(Set.of(open.producerId()))).equals(Set.of(id)), "by id");
        Compat.check(listed(new ListTransactionsOptions().filterOnTransactionalIdPattern(id + ".*")).equals(Set.of(id)), "by pattern");
        producer.commitTransaction();
        waitForState(id, TransactionState.COMPLETE_COMMIT);
    }

    private void checkMissing(String id) throws Exception {
        Compat.checkFails(TransactionalIdNotFoundException.class, wrapped(id));
    }

    private java.util.concurrent.Future<?> wrapped(String id) {
        return admin.describeTransactions(List.of(id)).description(id);
    }

    private Set<String> listed(ListTransactionsOptions options) throws Exception {
        return admin.listTransactions(options).all().get(30, TimeUnit.SECONDS).stream()
            .map(TransactionListing::transactionalId).collect(Collectors.toSet());
    }

    private void adminAbortTransaction() throws Exception {
        String topic = compat.create(1);
        TopicPartition where = new TopicPartition(topic, 0);
        KafkaProducer<byte[], byte[]> producer = producer(Compat.unique("id"));
        producer.beginTransaction();
        send(producer, topic, 0, "hangs");
        producer.flush();
        ProducerState state = admin.describeProducers(List.of(where)).partitionResult(where).get().activeProducers().get(0);
        Compat.checkEquals(state.currentTransactionStartOffset().getAsLong(), 0L);
        admin.abortTransaction(
            new AbortTransactionSpec(where, state.producerId(), (short) state.producerEpoch(), state.coordinatorEpoch().orElse(0))
        ).all().get(30, TimeUnit.SECONDS);
        Compat.checkEquals(end(topic, IsolationLevel.READ_COMMITTED), 2L);
        checkCommitted(topic, List.of());
    }

    private void adminFenceProducers() throws Exception {
        String topic = compat.create(1);
        String id = Compat.unique("id");
        KafkaProducer<byte[], byte[]> producer = producer(id);
        producer.beginTransaction();
        send(producer, topic, 0, "fenced");
        producer.flush();
        admin.fenceProducers(List.of(id)).all().get(30, TimeUnit.SECONDS);
        checkThrows(List.of(ProducerFencedException.class, InvalidProducerEpochException.class), producer::commitTransaction);
        checkCommitted(topic, List.of());
    }
}
