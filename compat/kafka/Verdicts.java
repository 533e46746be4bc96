import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

/** Validates batches with Kafka's LogValidator: a batch in hex per line of stdin, an error's name per line of stdout. */
public class Verdicts {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println("verdict " + verdict(HexFormat.of().parseHex(line)).name());
        }
    }

    private static Errors verdict(byte[] bytes) {
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
            CompressionType type = records.firstBatch().compressionType();
            Compression target = type == CompressionType.NONE ? Compression.NONE : Compression.of(type).build();
            new LogValidator(records, new TopicPartition("t", 0), Time.SYSTEM, type, target, false, (byte) 2,
                    TimestampType.CREATE_TIME, Long.MAX_VALUE, Long.MAX_VALUE, 0, AppendOrigin.CLIENT)
                    .validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(0), new NoMetrics(), BufferSupplier.NO_CACHING);
            return Errors.NONE;
        } catch (Exception error) {
            return Errors.forException(error);
        }
    }

    private static class NoMetrics implements LogValidator.MetricsRecorder {
        public void recordInvalidMagic() { }

        public void recordInvalidOffset() { }

        public void recordInvalidSequence() { }

        public void recordInvalidChecksums() { }

        public void recordNoKeyCompactedTopic() { }
    }
}
