import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.TokenInformation;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.ControllerRegistration;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.ScramCredentialData;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.raft.VoterSet;

/** A metadata image as JSON, every field of it: what `image_form.py` makes of the image of Barnabas. */
final class ImageForm {
    private static final HexFormat HEX = HexFormat.of();
    private final ObjectMapper json;

    ImageForm(ObjectMapper json) {
        this.json = json;
    }

    ObjectNode of(MetadataImage image, VoterSet voters, int kraftVersion) {
        ObjectNode form = json.createObjectNode();
        ObjectNode features = form.putObject("features");
        image.features().metadataVersion().ifPresent(found -> features.put("metadata.version", found.featureLevel()));
        image.features().finalizedVersions().forEach(features::put);
        ObjectNode brokers = form.putObject("brokers");
        image.cluster().brokers().forEach((id, broker) -> brokers.set(key(id, broker.id()), broker(broker)));
        ObjectNode controllers = form.putObject("controllers");
        image.cluster().controllers().forEach((id, one) -> controllers.set(key(id, one.id()), controller(one)));
        ObjectNode topics = form.putObject("topics");
        image.topics().topicsByName().forEach((name, topic) -> topics.set(name, topic(topic)));
        ObjectNode ids = form.putObject("topic_ids");
        image.topics().topicsById().forEach((id, topic) -> ids.put(hex(id), topic.name()));
        ObjectNode configs = form.putObject("configs");
        image.configs().resourceData().forEach((resource, found) ->
            configs.set(text(resource), json.valueToTree(found.data())));
        ObjectNode quotas = form.putObject("quotas");
        image.clientQuotas().entities().forEach((entity, found) -> {
            ObjectNode values = quotas.putObject(json.valueToTree(new TreeMap<>(entity.entries())).toString());
            found.quotas().forEach((name, value) -> values.put(name, Double.doubleToRawLongBits(value)));
        });
        form.put("next_producer_id", image.producerIds().nextProducerId());
        ObjectNode acls = form.putObject("acls");
        image.acls().acls().forEach((id, acl) -> acls.set(hex(id), acl(acl)));
        ObjectNode scram = form.putObject("scram");
        image.scram().mechanisms().forEach((mechanism, users) ->
            users.forEach((user, found) -> scram.set(mechanism.type() + ":" + user, scram(found))));
        ObjectNode tokens = form.putObject("tokens");
        image.delegationTokens().tokens().forEach((id, token) -> tokens.set(id, token(token.tokenInformation())));
        form.put("kraft_version", kraftVersion);
        form.set("voters", voters == null ? null : voters(voters.toVotersRecord((short) 0)));
        return form;
    }

    private static String key(int id, int idOfValue) {
        return id == idOfValue ? Integer.toString(id) : id + " is " + idOfValue;
    }

    private static String hex(Uuid id) {
        return HEX.toHexDigits(id.getMostSignificantBits()) + HEX.toHexDigits(id.getLeastSignificantBits());
    }

    private static String text(ConfigResource resource) {
        return resource.type().id() + ":" + resource.name();
    }

    private ArrayNode hexes(Collection<Uuid> ids) {
        ArrayNode found = json.createArrayNode();
        ids.forEach(id -> found.add(hex(id)));
        return found;
    }

    private ObjectNode broker(BrokerRegistration broker) {
        ObjectNode form = json.createObjectNode();
        form.put("epoch", broker.epoch());
        form.put("incarnation_id", hex(broker.incarnationId()));
        form.set("listeners", listeners(broker.listeners()));
        form.set("features", ranges(broker.supportedFeatures()));
        form.put("rack", broker.rack().orElse(null));
        form.put("fenced", broker.fenced());
        form.put("in_controlled_shutdown", broker.inControlledShutdown());
        form.put("is_migrating_zk_broker", isMigrating(broker));
        form.set("directories", hexes(broker.directories()));
        List<Uuid> cordoned = broker.cordonedDirectories();
        form.set("cordoned_directories", cordoned == null ? null : hexes(cordoned));
        return form;
    }

    /** There is no accessor for it. */
    private static boolean isMigrating(BrokerRegistration broker) {
        return broker.toString().contains("isMigratingZkBroker=true");
    }

    private ObjectNode controller(ControllerRegistration controller) {
        ObjectNode form = json.createObjectNode();
        form.put("incarnation_id", hex(controller.incarnationId()));
        form.put("zk_migration_ready", controller.zkMigrationReady());
        form.set("listeners", listeners(controller.listeners()));
        form.set("features", ranges(controller.supportedFeatures()));
        return form;
    }

    private ObjectNode listeners(Map<String, Endpoint> listeners) {
        ObjectNode form = json.createObjectNode();
        listeners.forEach((name, endpoint) -> form.putArray(name).add(endpoint.host()).add(endpoint.port())
            .add(endpoint.securityProtocol() == null ? null : endpoint.securityProtocol().id));
        return form;
    }

    private ObjectNode ranges(Map<String, VersionRange> features) {
        ObjectNode form = json.createObjectNode();
        features.forEach((name, range) -> form.putArray(name).add(range.min()).add(range.max()));
        return form;
    }

    private ObjectNode topic(TopicImage topic) {
        ObjectNode form = json.createObjectNode();
        form.put("name", topic.name());
        form.put("id", hex(topic.id()));
        ObjectNode partitions = form.putObject("partitions");
        topic.partitions().forEach((index, found) -> partitions.set(Integer.toString(index), partition(found)));
        return form;
    }

    private ObjectNode partition(PartitionRegistration partition) {
        ObjectNode form = json.createObjectNode();
        form.set("replicas", json.valueToTree(partition.replicas));
        form.set("directories", hexes(List.of(partition.directories)));
        form.set("isr", json.valueToTree(partition.isr));
        form.set("removing_replicas", json.valueToTree(partition.removingReplicas));
        form.set("adding_replicas", json.valueToTree(partition.addingReplicas));
        form.set("elr", json.valueToTree(partition.elr));
        form.set("last_known_elr", json.valueToTree(partition.lastKnownElr));
        form.put("leader", partition.leader);
        form.put("leader_recovery_state", partition.leaderRecoveryState.value());
        form.put("leader_epoch", partition.leaderEpoch);
        form.put("partition_epoch", partition.partitionEpoch);
        return form;
    }

    private ArrayNode acl(StandardAcl acl) {
        return json.createArrayNode().add(acl.resourceType().code()).add(acl.resourceName())
            .add(acl.patternType().code()).add(acl.principal()).add(acl.host()).add(acl.operation().code())
            .add(acl.permissionType().code());
    }

    private ArrayNode scram(ScramCredentialData data) {
        return json.createArrayNode().add(HEX.formatHex(data.salt())).add(HEX.formatHex(data.storedKey()))
            .add(HEX.formatHex(data.serverKey())).add(data.iterations());
    }

    private ObjectNode token(TokenInformation token) {
        ObjectNode form = json.createObjectNode();
        form.put("token_id", token.tokenId());
        form.put("owner", token.owner().toString());
        form.put("requester", token.tokenRequester().toString());
        ArrayNode renewers = form.putArray("renewers");
        for (KafkaPrincipal renewer : token.renewers()) {
            renewers.add(renewer.toString());
        }
        form.put("issue_timestamp", token.issueTimestamp());
        form.put("max_timestamp", token.maxTimestamp());
        form.put("expiration_timestamp", token.expiryTimestamp());
        return form;
    }

    private ObjectNode voters(VotersRecord record) {
        ObjectNode form = json.createObjectNode();
        record.voters().forEach(voter -> {
            ObjectNode one = form.putObject(Integer.toString(voter.voterId()));
            one.put("directory_id", hex(voter.voterDirectoryId()));
            ObjectNode endpoints = one.putObject("endpoints");
            voter.endpoints().forEach(endpoint ->
                endpoints.putArray(endpoint.name()).add(endpoint.host()).add(endpoint.port()));
            one.putArray("kraft_version").add(voter.kRaftVersionFeature().minSupportedVersion())
                .add(voter.kRaftVersionFeature().maxSupportedVersion());
        });
        return form;
    }
}
