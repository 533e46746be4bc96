import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * Reads worlds of quota settings, one JSON object per line: changes of settings, then questions and uses. Writes for
 * each question who shares the quota and its limit, and for each use how long Kafka's broker would throttle the client.
 */
public class Quotas {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answers(JSON.readTree(line)));
        }
    }

    private static ObjectNode answers(JsonNode world) throws Exception {
        ClientQuotaManagerConfig config =
            new ClientQuotaManagerConfig(world.get("windows").asInt(), world.get("window_s").asInt());
        try (Metrics metrics = new Metrics()) {
            ClientQuotaManager manager = world.get("type").asText().equals("CONTROLLER_MUTATION")
                ? new ControllerMutationQuotaManager(config, metrics, Time.SYSTEM, "", Optional.empty())
                : new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, Time.SYSTEM, "");
            try {
                world.get("changes").forEach(change -> manager.updateQuota(
                    user(change.get("user")), client(change.get("client")),
                    change.get("limit").isNull()
                        ? Optional.empty() : Optional.of(Quota.upperBound(change.get("limit").asDouble()))));
                ObjectNode result = JSON.createObjectNode();
                ArrayNode tags = result.putArray("tags");
                ArrayNode limits = result.putArray("limits");
                for (JsonNode question : world.get("questions")) {
                    Session session = session(question.get("user").asText());
                    String client = question.get("client").asText();
                    Map<String, String> found = manager.getOrCreateQuotaSensors(session, client).metricTags();
                    tags.addArray().add(found.get("user")).add(found.get("client-id"));
                    double limit = manager.quota(session.principal, client).bound();
                    if (limit == Long.MAX_VALUE) limits.addNull(); else limits.add(limit);
                }
                ArrayNode throttled = result.putArray("throttled");
                for (JsonNode use : world.get("uses")) {
                    throttled.add(manager.recordAndGetThrottleTimeMs(session(use.get("user").asText()),
                        use.get("client").asText(), use.get("value").asDouble(), use.get("at").asLong()));
                }
                return result;
            } finally {
                manager.shutdown();
            }
        }
    }

    private static Session session(String user) throws Exception {
        return new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user), InetAddress.getLoopbackAddress());
    }

    /** A user of a setting: an empty list for any user, null for none. */
    private static Optional<ClientQuotaEntity.ConfigEntity> user(JsonNode name) {
        if (name.isNull()) return Optional.empty();
        return Optional.of(
            name.isArray() ? ClientQuotaManager.DEFAULT_USER_ENTITY : new ClientQuotaManager.UserEntity(name.asText()));
    }

    private static Optional<ClientQuotaEntity.ConfigEntity> client(JsonNode name) {
        if (name.isNull()) return Optional.empty();
        return Optional.of(name.isArray()
            ? ClientQuotaManager.DEFAULT_USER_CLIENT_ID : new ClientQuotaManager.ClientIdEntity(name.asText()));
    }
}
