import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Reads groups, one JSON object per line, and writes each with the assignment of Kafka's assignor. */
public class Assignments {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, PartitionAssignor> ASSIGNORS = Map.of(
        "range", new RangeAssignor(), "uniform", new UniformAssignor(), "simple", new SimpleAssignor());

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode group = (ObjectNode) JSON.readTree(line);
            group.set("assignment", assign(group));
            System.out.println(group);
        }
    }

    private static ObjectNode assign(JsonNode group) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        group.get("members").properties().forEach(entry -> {
            JsonNode member = entry.getValue();
            Set<Uuid> subscribed = new HashSet<>();
            member.get("subscribed").forEach(topic -> subscribed.add(Uuid.fromString(topic.asText())));
            subscriptions.add(subscribed);
            Map<Uuid, Set<Integer>> assigned = new HashMap<>();
            member.get("assigned").properties().forEach(topic -> {
                Set<Integer> partitions = new HashSet<>();
                topic.getValue().forEach(index -> partitions.add(index.asInt()));
                assigned.put(Uuid.fromString(topic.getKey()), partitions);
            });
            members.put(entry.getKey(), new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.ofNullable(member.get("instance").textValue()), subscribed,
                new Assignment(Collections.unmodifiableMap(assigned))));
        });
        SubscriptionType type = subscriptions.size() > 1 ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS;
        SubscribedTopicDescriber topics = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) {
                JsonNode size = group.get("topics").get(topic.toString());
                return size == null ? -1 : size.asInt();
            }

            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        members.forEach((id, member) -> member.partitions().forEach((topic, indexes) -> indexes.forEach(
            index -> owners.computeIfAbsent(topic, any -> new HashMap<>()).put(index, id))));
        ObjectNode result = JSON.createObjectNode();
        ASSIGNORS.get(group.get("assignor").asText())
            .assign(new GroupSpecImpl(members, type, owners), topics).members().forEach((id, member) -> {
                ObjectNode partitions = result.putObject(id);
                member.partitions().forEach((topic, indexes) -> {
                    if (!indexes.isEmpty()) {
                        var list = partitions.putArray(topic.toString());
                        new TreeSet<>(indexes).forEach(list::add);
                    }
                });
            });
        return result;
    }
}
