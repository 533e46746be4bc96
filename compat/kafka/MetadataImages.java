import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.ScramImage;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.ControlRecord;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.VoterSet;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.DefaultSupportedConfigChecker;

/**
 * Reads metadata logs, one JSON object per line, and writes the image that Kafka's classes make of each: "log" has its
 * batches, "snapshot" those of a snapshot of the same metadata, both in base64. The answer has
 * <pre>
 * image           after the log; each batch is a delta of its own
 * failed          the number of the batch at which Kafka failed, and what it said; there is no image then
 * snapshot        the records of Kafka's own snapshot of the image, in base64; null if Kafka cannot write one
 * lost            what Kafka's snapshot leaves out, because the metadata.version has no record for it, or why none is
 *                 written
 * after_own       the image after Kafka's snapshot, null if it is the same
 * after_snapshot  the image after "snapshot", null if it is the same; loaded over that of the first half of the log
 * </pre>
 */
public final class MetadataImages {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final LogContext LOG = new LogContext();
    private static final DefaultSupportedConfigChecker CONFIGS = new DefaultSupportedConfigChecker();
    private static final int LARGEST_RECORDS = 16 << 20;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(JSON.readTree(line)));
        }
    }

    private static ObjectNode answer(JsonNode world) {
        ObjectNode answer = JSON.createObjectNode();
        Loaded loaded = new Loaded();
        try {
            loaded.loadLog(bytes(world, "log"));
        } catch (RuntimeException | Error error) {
            answer.putArray("failed").add(loaded.batches).add(root(error).toString());
            return answer;
        }
        JsonNode image = new ImageForm(JSON).of(loaded.image, loaded.voters, loaded.kraftVersion);
        answer.set("image", image);
        snapshots(world, loaded, image, answer);
        return answer;
    }

    private static void snapshots(JsonNode world, Loaded loaded, JsonNode image, ObjectNode answer) {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        ArrayNode lost = JSON.createArrayNode();
        try {
            RecordListWriter writer = new RecordListWriter();
            loaded.image.write(writer, new ImageWriterOptions.Builder(loaded.image)
                .setLossHandler(loss -> lost.add(loss.getMessage())).build());
            records.addAll(writer.records());
            ArrayNode written = JSON.createArrayNode();
            records.forEach(record -> written.add(encoded(record)));
            answer.set("snapshot", written);
            answer.set("lost", lost);
        } catch (RuntimeException error) {
            answer.putNull("snapshot");
            answer.put("lost", error.toString());
            return;
        }
        Loaded own = loaded.middle();
        own.loadSnapshot(records);
        answer.set("after_own", changed(own.image, loaded, image));
        if (world.hasNonNull("snapshot")) {
            Loaded theirs = loaded.middle();
            theirs.loadSnapshot(bytes(world, "snapshot"));
            answer.set("after_snapshot", changed(theirs.image, theirs, image));
        }
    }

    private static JsonNode changed(MetadataImage image, Loaded loaded, JsonNode before) {
        JsonNode form = new ImageForm(JSON).of(image, loaded.voters, loaded.kraftVersion);
        return form.equals(before) ? null : form;
    }

    private static ByteBuffer bytes(JsonNode world, String name) {
        return ByteBuffer.wrap(Base64.getDecoder().decode(world.get(name).asText()));
    }

    private static String encoded(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(buffer));
        return Base64.getEncoder().encodeToString(buffer.array());
    }

    private static Throwable root(Throwable error) {
        return error.getCause() == null ? error : root(error.getCause());
    }

    /** An image that follows a log, as Kafka's MetadataLoader. */
    private static final class Loaded {
        private final MetadataBatchLoader loader;
        private final List<MetadataImage> images = new ArrayList<>();
        private MetadataImage image = MetadataImage.EMPTY;
        private VoterSet voters;
        private int kraftVersion;
        private int batches;

        private Loaded() {
            loader = new MetadataBatchLoader(LOG, Time.SYSTEM, Loaded::fault, (delta, next, manifest) -> image = next,
                CONFIGS);
        }

        private static RuntimeException fault(String message, Throwable cause) {
            throw new IllegalStateException(message, cause);
        }

        /**
         * One that has loaded the first half of the log, but no SCRAM credentials: where all users of a mechanism are
         * replaced by others, ScramDelta loses the others.
         */
        private Loaded middle() {
            Loaded half = new Loaded();
            MetadataImage of = images.isEmpty() ? MetadataImage.EMPTY : images.get(images.size() / 2);
            half.image = new MetadataImage(of.provenance(), of.features(), of.cluster(), of.topics(), of.configs(),
                of.clientQuotas(), of.producerIds(), of.acls(), ScramImage.EMPTY, of.delegationTokens());
            return half;
        }

        private void loadLog(ByteBuffer log) {
            try (RecordsIterator<ApiMessageAndVersion> iterator = iterator(log)) {
                while (iterator.hasNext()) {
                    Batch<ApiMessageAndVersion> batch = iterator.next();
                    batch.controlRecords().forEach(this::control);
                    loader.loadBatch(batch, LeaderAndEpoch.UNKNOWN);
                    loader.maybeFlushBatches(LeaderAndEpoch.UNKNOWN, true);
                    images.add(image);
                    batches++;
                }
            }
        }

        private void loadSnapshot(ByteBuffer snapshot) {
            List<ApiMessageAndVersion> records = new ArrayList<>();
            try (RecordsIterator<ApiMessageAndVersion> iterator = iterator(snapshot)) {
                iterator.forEachRemaining(batch -> {
                    batch.controlRecords().forEach(this::control);
                    records.addAll(batch.records());
                });
            }
            loadSnapshot(records);
        }

        private void loadSnapshot(List<ApiMessageAndVersion> records) {
            MetadataDelta delta = new MetadataDelta.Builder().setImage(image).setSupportedConfigChecker(CONFIGS).build();
            records.forEach(record -> delta.replay(record.message()));
            delta.finishSnapshot();
            image = delta.apply(MetadataProvenance.EMPTY);
        }

        private void control(ControlRecord record) {
            if (record.message() instanceof VotersRecord found) {
                voters = VoterSet.fromVotersRecord(found);
            } else if (record.message() instanceof KRaftVersionRecord found) {
                kraftVersion = found.kRaftVersion();
            }
        }

        private static RecordsIterator<ApiMessageAndVersion> iterator(ByteBuffer batches) {
            return new RecordsIterator<>(MemoryRecords.readableRecords(batches), MetadataRecordSerde.INSTANCE,
                BufferSupplier.NO_CACHING, LARGEST_RECORDS, true, LOG);
        }
    }
}
