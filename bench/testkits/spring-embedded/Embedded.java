import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import org.springframework.kafka.test.EmbeddedKafkaKraftBroker;

/** Starts the embedded broker with the keys of the argument (JSON), prints READY, its address and milliseconds. */
public class Embedded {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> keys = new ObjectMapper().readValue(arguments[0], new TypeReference<>() {});
        try {
            long began = System.nanoTime();
            EmbeddedKafkaKraftBroker broker = new EmbeddedKafkaKraftBroker(1, 1);
            broker.brokerProperties(keys);
            broker.afterPropertiesSet();
            long took = (System.nanoTime() - began) / 1_000_000;
            System.out.println("READY " + broker.getBrokersAsString() + " " + took);
            while (System.in.read() >= 0) {}
            Runtime.getRuntime().halt(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            Runtime.getRuntime().halt(1); // threads of a half-started broker would hold the process
        }
    }
}
