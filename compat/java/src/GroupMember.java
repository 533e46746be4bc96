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
import org.apache.kafka.common.utils.Utils;

/**
 * One member of a group as a separate process, so that it can be killed: {@code java GroupMember NAME=VALUE...} with
 * bootstrap, group, topic, diary, session_ms, protocol (classic or consumer), perhaps strategy, instance and config, a
 * client.properties. It writes the diary described in tests/clients/groups/group_member.py. On SIGTERM it leaves the
 * group and ends.
 */
public final class GroupMember implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(200);

    private final Map<String, String> options;
    private final FileOutputStream diary;
    private volatile boolean isOver;

    private GroupMember(Map<String, String> options) throws IOException {
        this.options = options;
        this.diary = new FileOutputStream(options.get("diary"), true);
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (String argument : arguments) {
            options.put(argument.substring(0, argument.indexOf('=')), argument.substring(argument.indexOf('=') + 1));
        }
        GroupMember member = new GroupMember(options);
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

    private void run() throws IOException {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings())) {
            consumer.subscribe(List.of(options.get("topic")), this);
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

    private Properties settings() throws IOException {
        Properties settings = options.containsKey("config") ? Utils.loadProps(options.get("config")) : new Properties();
        settings.put("bootstrap.servers", options.get("bootstrap"));
        settings.put("group.id", options.get("group"));
        settings.put("group.protocol", options.getOrDefault("protocol", "classic"));
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("reconnect.backoff.max.ms", "500");
        if (options.containsKey("instance")) {
            settings.put("group.instance.id", options.get("instance"));
        }
        if (settings.get("group.protocol").equals("classic")) {
            settings.put("session.timeout.ms", options.get("session_ms"));
            settings.put("heartbeat.interval.ms", "1000");
            settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer."
                + (options.getOrDefault("strategy", "range").equals("range") ? "Range" : "CooperativeSticky") + "Assignor");
        }
        return settings;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        writePartitions("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        writePartitions("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        writePartitions("lost", partitions);
    }

    private void writePartitions(String event, Collection<TopicPartition> partitions) {
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
