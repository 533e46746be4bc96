import static org.apache.kafka.streams.CloseOptions.GroupMembershipOperation.LEAVE_GROUP;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.StreamsMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/**
 * Counts words: {@code java WordCount HOST:PORT APPLICATION STATE_DIR [NAME=VALUE...]}, where the rest is Streams' configuration.
 *
 * Reads lines from the topic {@code APPLICATION-lines}, regroups them by word (a repartition topic), counts in a store (with a
 * changelog), looks each word up in a table of {@code APPLICATION-known} (co-partitioned topics), and writes every
 * single count to {@code APPLICATION-counts}. The cache is off, so each word's counts are written as 1, 2, 3 and so on. The line
 * {@code !shutdown} causes an exception, for which the program stops the whole application.
 *
 * It prints a line for every change of its state, and answers commands on standard input, one per line: {@code tasks}, {@code store},
 * {@code hosts}, {@code close}. The end of the input closes it too.
 */
public final class WordCount {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final String STORE = "counts";
    private static final String SHUTDOWN = "!shutdown";

    private WordCount() {
    }

    public static void main(String[] arguments) throws Exception {
        String application = arguments[1];
        Properties properties = new Properties();
        properties.putAll(Map.of(
            StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0],
            StreamsConfig.APPLICATION_ID_CONFIG, application,
            StreamsConfig.STATE_DIR_CONFIG, arguments[2],
            StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0",
            StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "100",
            StreamsConfig.REPLICATION_FACTOR_CONFIG, "1",
            StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest",
            StreamsConfig.producerPrefix(ProducerConfig.LINGER_MS_CONFIG), "5"));
        for (String setting : Arrays.asList(arguments).subList(3, arguments.length)) {
            String[] parts = setting.split("=", 2);
            properties.put(parts[0], parts[1]);
        }
        KafkaStreams streams = new KafkaStreams(topology(application).build(properties), properties);
        streams.setStateListener((now, before) -> say("STATE " + now));
        streams.setUncaughtExceptionHandler(error -> {
            say("ERROR " + error + " caused by " + error.getCause());
            return String.valueOf(error.getCause()).contains(SHUTDOWN)
                ? StreamThreadExceptionResponse.SHUTDOWN_APPLICATION
                : StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String command = commands.readLine(); command != null; command = commands.readLine()) {
            if (!obey(streams, command)) {
                break;
            }
        }
        say("CLOSED " + streams.close(CloseOptions.timeout(PATIENCE).withGroupMembershipOperation(LEAVE_GROUP)));
    }

    private static StreamsBuilder topology(String application) {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> text = Consumed.with(Serdes.String(), Serdes.String());
        KStream<String, String> lines = builder.stream(application + "-lines", text);
        KTable<String, String> known = builder.table(application + "-known", text);
        KTable<String, Long> counts = lines
            .flatMapValues(WordCount::words)
            .groupBy((key, word) -> word, Grouped.with("by-word", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(STORE).withKeySerde(Serdes.String()));
        counts.toStream()
            .leftJoin(known, (count, value) -> count)
            .to(application + "-counts", Produced.with(Serdes.String(), Serdes.Long()));
        return builder;
    }

    private static List<String> words(String line) {
        if (line.equals(SHUTDOWN)) {
            throw new IllegalStateException(SHUTDOWN);
        }
        return Arrays.asList(line.split(" "));
    }

    private static boolean obey(KafkaStreams streams, String command) {
        switch (command) {
            case "tasks" -> tasks(streams);
            case "store" -> store(streams);
            case "hosts" -> hosts(streams);
            case "close" -> {
                return false;
            }
            default -> say("UNKNOWN " + command);
        }
        return true;
    }

    private static void tasks(KafkaStreams streams) {
        StringBuilder active = new StringBuilder();
        StringBuilder standby = new StringBuilder();
        for (ThreadMetadata thread : streams.metadataForLocalThreads()) {
            thread.activeTasks().forEach(task -> active.append(' ').append(task.taskId()));
            thread.standbyTasks().forEach(task -> standby.append(' ').append(task.taskId()));
        }
        say("TASKS active" + active + " standby" + standby);
    }

    private static void store(KafkaStreams streams) {
        StringBuilder found = new StringBuilder();
        try {
            ReadOnlyKeyValueStore<String, Long> store =
                streams.store(StoreQueryParameters.fromNameAndType(STORE, QueryableStoreTypes.<String, Long>keyValueStore()));
            try (KeyValueIterator<String, Long> all = store.all()) {
                while (all.hasNext()) {
                    KeyValue<String, Long> entry = all.next();
                    found.append(' ').append(entry.key).append('=').append(entry.value);
                }
            }
        } catch (RuntimeException error) {
            say("STORE not now: " + error.getMessage());
            return;
        }
        say("STORE" + found);
    }

    private static void hosts(KafkaStreams streams) {
        StringBuilder found = new StringBuilder();
        for (StreamsMetadata host : streams.streamsMetadataForStore(STORE)) {
            found.append(' ').append(host.hostInfo().host()).append(':').append(host.hostInfo().port());
            host.topicPartitions().stream().map(Object::toString).sorted().forEach(at -> found.append(',').append(at));
        }
        say("HOSTS" + found);
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
