package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.DescribeClientQuotasRequestData;
import org.apache.kafka.common.metadata.ClientQuotaRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.ClientQuotaImage;
import org.apache.kafka.image.ClientQuotasImage;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Reads worlds, one JSON object per line: AlterClientQuotas requests, then filters of DescribeClientQuotas. Writes the
 * error code of each entry, as Kafka's controller answers, and what each filter selects in Kafka's image.
 */
public class QuotaChanges {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answers(JSON.readTree(line)));
        }
    }

    private static ObjectNode answers(JsonNode world) {
        LogContext log = new LogContext();
        ClientQuotaControlManager manager = new ClientQuotaControlManager(log, new SnapshotRegistry(log));
        ObjectNode result = JSON.createObjectNode();
        ArrayNode codes = result.putArray("codes");
        for (JsonNode request : world.get("requests")) {
            List<ClientQuotaAlteration> alterations = new ArrayList<>();
            request.forEach(entry -> alterations.add(alteration(entry)));
            var outcome = manager.alterClientQuotas(alterations);
            ArrayNode found = codes.addArray();
            for (ClientQuotaAlteration alteration : alterations) {
                ApiError error = outcome.response().get(alteration.entity());
                found.add(error.error().code());
            }
            outcome.records().forEach(record -> manager.replay((ClientQuotaRecord) record.message()));
        }
        Map<ClientQuotaEntity, ClientQuotaImage> entities = new HashMap<>();
        manager.clientQuotaData.forEach((entity, quotas) ->
            entities.put(entity, new ClientQuotaImage(new HashMap<>(quotas))));
        ClientQuotasImage image = new ClientQuotasImage(entities);
        ArrayNode selected = result.putArray("selected");
        world.get("filters").forEach(filter -> selected.add(describe(image, filter)));
        return result;
    }

    private static ClientQuotaAlteration alteration(JsonNode entry) {
        List<ClientQuotaAlteration.Op> ops = new ArrayList<>();
        entry.get("ops").forEach(op -> ops.add(new ClientQuotaAlteration.Op(
            op.get("key").asText(), op.get("value").isNull() ? null : op.get("value").asDouble())));
        Map<String, String> names = new HashMap<>();
        entry.get("entity").properties().forEach(part -> names.put(part.getKey(), part.getValue().textValue()));
        return new ClientQuotaAlteration(new ClientQuotaEntity(names), ops);
    }

    private static JsonNode describe(ClientQuotasImage image, JsonNode filter) {
        DescribeClientQuotasRequestData request = new DescribeClientQuotasRequestData();
        request.setStrict(filter.get("strict").asBoolean());
        filter.get("components").forEach(part -> request.components().add(
            new DescribeClientQuotasRequestData.ComponentData().setEntityType(part.get("type").asText())
                .setMatchType((byte) part.get("match_type").asInt()).setMatch(part.get("match").textValue())));
        try {
            Map<String, Map<String, Double>> found = new TreeMap<>();
            image.describe(request).entries().forEach(entry -> {
                Map<String, String> names = new TreeMap<>();
                entry.entity().forEach(part -> names.put(part.entityType(), part.entityName()));
                Map<String, Double> values = new TreeMap<>();
                entry.values().forEach(value -> values.put(value.key(), value.value()));
                found.put(JSON.valueToTree(names).toString(), values);
            });
            return JSON.valueToTree(found);
        } catch (ApiException error) {
            return JSON.getNodeFactory().numberNode(Errors.forException(error).code());
        }
    }
}
