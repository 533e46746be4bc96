import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Answers questions about ACLs with Kafka's StandardAuthorizer: a set of both in JSON per line, the answers in one. */
public class Acls {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println("answers " + answers(mapper.readTree(line)));
        }
    }

    private static String answers(JsonNode set) throws Exception {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        Map<String, Object> configs = new HashMap<>();
        configs.put("super.users", set.get("super_users").asText());
        configs.put("allow.everyone.if.no.acl.found", set.get("allows").asText());
        Plugin.wrapInstance(authorizer, new Metrics(), "authorizer");
        authorizer.configure(configs);
        for (JsonNode acl : set.get("acls")) {
            authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(
                    ResourceType.fromCode((byte) acl.get(0).asInt()), acl.get(1).asText(),
                    PatternType.fromCode((byte) acl.get(2).asInt()), acl.get(3).asText(), acl.get(4).asText(),
                    AclOperation.fromCode((byte) acl.get(5).asInt()),
                    AclPermissionType.fromCode((byte) acl.get(6).asInt())));
        }
        authorizer.completeInitialLoad();
        StringBuilder found = new StringBuilder();
        for (JsonNode asked : set.get("questions")) {
            found.append(answer(authorizer, asked) == AuthorizationResult.ALLOWED ? '1' : '0');
        }
        return found.toString();
    }

    private static AuthorizationResult answer(StandardAuthorizer authorizer, JsonNode asked) throws Exception {
        Client client = new Client(asked.get(0).asText(), asked.get(1).asText());
        AclOperation operation = AclOperation.fromCode((byte) asked.get(2).asInt());
        ResourceType type = ResourceType.fromCode((byte) asked.get(3).asInt());
        if (asked.get(4).isNull()) {
            return authorizer.authorizeByResourceType(client, operation, type);
        }
        ResourcePattern resource = new ResourcePattern(type, asked.get(4).asText(), PatternType.LITERAL);
        List<Action> actions = new ArrayList<>(List.of(new Action(operation, resource, 1, false, false)));
        return authorizer.authorize(client, actions).get(0);
    }

    private record Client(String user, String host) implements AuthorizableRequestContext {
        public String listenerName() {
            return "PLAINTEXT";
        }

        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        public KafkaPrincipal principal() {
            return new KafkaPrincipal(user.substring(0, user.indexOf(':')), user.substring(user.indexOf(':') + 1));
        }

        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException error) {
                throw new IllegalStateException(error);
            }
        }

        public int requestType() {
            return 0;
        }

        public int requestVersion() {
            return 0;
        }

        public String clientId() {
            return "";
        }

        public int correlationId() {
            return 0;
        }
    }
}
