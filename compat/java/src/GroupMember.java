import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One member of a group as a separate process, so that it can be killed: {@code java GroupMember NAME=VALUE...} with
 * bootstrap, group, topic, diary, session_ms, protocol (classic or consumer), perhaps strategy and instance. It writes
 * the diary described in tests/clients/group_member.py. On SIGTERM it leaves the group and ends.
 */
public final class GroupMember implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(200);

    private final Map<String, String> told;
    private final FileOutputStream diary;
    private volatile boolean isOver;

    private GroupMember(Map<String, String> told) throws IOException {
        this.told = told;
        this.diary = new FileOutputStream(told.get("diary"), true);
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> told = new HashMap<>();
        for (String argument : arguments) {
            told.put(argument.substring(0, argument.indexOf('=')), argument.substring(argument.indexOf('=') + 1));
        }
        GroupMember member = new GroupMember(told);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            member.isOver = true;
            try {
                main.join();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(0);
        }));
        member.run();
    }

    private void run() {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings())) {
            consumer.subscribe(List.of(told.get("topic")), this);
            while (!isOver) {
                try {
                    ConsumerRecords<String, String> records = consumer.poll(POLL);
                    for (ConsumerRecord<String, String> record : records) {
                        write("record", "\"partition\": " + record.partition() + ", \"offset\": " + record.offset()
                            + ", \"value\": \"" + record.value() + "\"");
                    }
                    if (!records.isEmpty()) {
                        consumer.commitSync();
                    }
                } catch (KafkaException error) {
                    String text = String.valueOf(error).replaceAll("[\"\\\\\\n]", " ");
                    write("error", "\"texts\": [\"" + text + "\"], \"fatal\": false");
                }
            }
        }
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", told.get("bootstrap"));
        settings.put("group.id", told.get("group"));
        settings.put("group.protocol", told.getOrDefault("protocol", "classic"));
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("reconnect.backoff.max.ms", "500");
        if (told.containsKey("instance")) {
            settings.put("group.instance.id", told.get("instance"));
        }
        if (settings.get("group.protocol").equals("classic")) {
            settings.put("session.timeout.ms", told.get("session_ms"));
            settings.put("heartbeat.interval.ms", "1000");
            settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer."
                + (told.getOrDefault("strategy", "range").equals("range") ? "Range" : "CooperativeSticky") + "Assignor");
        }
        return settings;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tell("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        tell("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        tell("lost", partitions);
    }

    private void tell(String event, Collection<TopicPartition> partitions) {
        String numbers = partitions.stream().map(one -> String.valueOf(one.partition())).sorted()
            .collect(Collectors.joining(", "));
        write(event, "\"partitions\": [" + numbers + "]");
    }

    private void write(String event, String values) {
        try {
            diary.write(("{\"event\": \"" + event + "\", " + values + "}\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }
}
