package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Base64;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class OrdersTest {
    private static Barnabas broker;

    @BeforeAll
    static void start() throws Exception {
        broker = new Barnabas();
    }

    @AfterAll
    static void stop() throws Exception {
        broker.close();
    }

    private static void placeOrder(String bootstrap, int id) { // your code
        try (var producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("orders", Integer.toString(id), "{\"id\": " + id + "}"));
        }
    }

    @Test
    void anOrderIsWritten() throws Exception {
        try (var kafka = broker.open()) {
            placeOrder(kafka.bootstrap, 7);
            JsonNode found = kafka.perform("wait_for_records", Map.of("topic", "orders", "count", 1));
            assertTrue(found.get("enough").asBoolean());
            byte[] value = Base64.getDecoder().decode(found.get("records").get(0).get("value").asText());
            assertEquals("{\"id\": 7}", new String(value));
        }
    }

    @Test
    void anotherTestHasNoneOfIt() throws Exception {
        try (var kafka = broker.open()) {
            assertEquals(0, kafka.perform("records", Map.of("topic", "orders")).get("records").size());
        }
    }
}
