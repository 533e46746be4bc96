"""The controller of a single node: validates requests and returns metadata records.

It changes nothing itself. The caller writes the records to the metadata log, replays them into the image and only then
sends the response, so that a topic is visible when its creator gets the response. Source: Kafka 4.4
`QuorumController`, `ControllerApis`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from barnabas.coord.cluster.changes.acl_changes import create_acls, delete_acls
from barnabas.coord.cluster.changes.config_changes import Change, ConfigChanges
from barnabas.coord.cluster.changes.config_describe import ConfigDescriber
from barnabas.coord.cluster.changes.config_schema import BrokerSettings, ConfigSchema
from barnabas.coord.cluster.changes.feature_changes import FeatureChanges, FeatureUpdate
from barnabas.coord.cluster.changes.topic_changes import NO_TOPIC_ID, TopicChanges, TopicDefaults, duplicates
from barnabas.coord.cluster.changes.topic_settings import TopicSettings
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.node_records import ELR_FEATURE, SUPPORTED_FEATURES
from barnabas.coord.cluster.partitions.elr_changes import elr_disabled_steps, elr_end_steps, elr_safety_records
from barnabas.coord.cluster.resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, ConfigResource
from barnabas.coord.security.scram_changes import alter_credentials_in_steps
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import UpdateFeaturesRequest, UpdateFeaturesResponse
from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.wire.messages.configs import ConfigResource as ListedResource
from barnabas.wire.messages.security.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.wire.messages.security.sasl import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse
from barnabas.wire.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.wire.schema import Message
from barnabas.wire.steps import result_of
from barnabas.wire.types import Uuid

if TYPE_CHECKING:
    from barnabas.wire.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

R_co = TypeVar("R_co", covariant=True)

Charge = Callable[[int], None]
"""Counts partitions that are created or deleted for the quota of a client (KIP-599)."""

ITEMS_PER_STEP: Final = 20
"""The number of topics or resources that are validated in one step, in a change that makes few records for each."""

LISTED_TYPES: Final = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


class Outcome(NamedTuple, Generic[R_co]):
    """Records to write, and the response to send after they are replayed."""

    records: list[Message]
    response: R_co


class LocalController:
    """Validates requests against the current image.

    A method whose name ends with `_in_steps` yields after a step of a millisecond at most; the image must not change
    meanwhile.
    """

    any_broker = False
    """Whether configs of all brokers are changed here, not only this node's."""

    def __init__(
        self,
        image: ClusterImage,
        schema: ConfigSchema,
        settings: BrokerSettings,
        node_id: int,
        new_uuid: Callable[[], Uuid],
    ) -> None:
        self.image = image
        self._node_id = node_id
        self._new_uuid = new_uuid
        self._topic_settings = TopicSettings(image, schema, settings, node_id)
        self._changes = ConfigChanges(image, schema, settings, node_id, any_broker=self.any_broker)
        self._describer = ConfigDescriber(image, schema, settings, node_id)

    # Topics

    def create_topics(self, request: CreateTopicsRequest, defaults: TopicDefaults) -> Outcome[CreateTopicsResponse]:
        """CreateTopics (19). KafkaError POLICY_VIOLATION for too many partitions in all."""
        return result_of(self.create_topics_in_steps(request, defaults))

    def create_topics_in_steps(
        self, request: CreateTopicsRequest, defaults: TopicDefaults, charge: Charge | None = None
    ) -> Generator[None, None, Outcome[CreateTopicsResponse]]:
        """`create_topics`, in steps.

        `charge` is called with the partitions of each valid topic; KafkaError if they are too many for a quota.
        """
        changes = self._topic_changes(defaults, charge)
        changes.check_number_of_partitions(request.topics)
        twice = duplicates(topic.name for topic in request.topics)
        results = [
            _failed_creation(name, KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
            for name in sorted(twice)
        ]
        for topic in request.topics:
            if topic.name not in twice:
                try:
                    results.append((yield from changes.create(topic)))
                except KafkaError as error:
                    results.append(_failed_creation(topic.name, error))
                yield
        records = [] if request.validate_only else changes.records
        return Outcome(records, CreateTopicsResponse(topics=results))

    def delete_topics_in_steps(
        self, request: DeleteTopicsRequest, charge: Charge | None = None
    ) -> Generator[None, None, Outcome[DeleteTopicsResponse]]:
        """DeleteTopics (20), by names up to version 5, by names or ids from 6 on."""
        changes = self._topic_changes(TopicDefaults(1, 1), charge)
        states = [DeleteTopicState(name=name) for name in request.topic_names] + request.topics
        named = [state for state in states if (state.name is None) != (state.topic_id == NO_TOPIC_ID)]
        twice = duplicates(map(_name_or_id, named))
        ids = {state.topic_id for state in named if state.name is None}
        results: list[DeletableTopicResult] = []
        for count, state in enumerate(_each_once(states, self._named_in_two_ways(named, ids)), 1):
            try:
                topic = self.image.topics.get(state.name or "")
                if (state.name is None) != (state.topic_id == NO_TOPIC_ID):
                    if _name_or_id(state) in twice:
                        what = "id" if state.name is None else "name"
                        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
                    if topic is not None and topic.topic_id in ids:
                        state = DeleteTopicState(name=state.name, topic_id=topic.topic_id)
                        raise KafkaError(
                            ErrorCode.INVALID_REQUEST,
                            "The provided topic name maps to an ID that was already supplied.",
                        )
                results.append(changes.delete(state))
            except KafkaError as error:
                results.append(_failed_deletion(state, error))
            if count % ITEMS_PER_STEP == 0:
                yield
        return Outcome(changes.records, DeleteTopicsResponse(responses=results))

    def _named_in_two_ways(self, named: Iterable[DeleteTopicState], ids: Collection[Uuid]) -> set[Uuid]:
        """The ids of topics that a request names by their names too."""
        topics = (self.image.topics.get(state.name) for state in named if state.name is not None)
        return {topic.topic_id for topic in topics if topic is not None and topic.topic_id in ids}

    def create_partitions_in_steps(
        self, request: CreatePartitionsRequest, charge: Charge | None = None
    ) -> Generator[None, None, Outcome[CreatePartitionsResponse]]:
        """CreatePartitions (37)."""
        changes = self._topic_changes(TopicDefaults(1, 1), charge)
        twice = duplicates(topic.name for topic in request.topics)
        results = []
        for count, (name, topic) in enumerate({topic.name: topic for topic in request.topics}.items(), 1):
            try:
                if name in twice:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                yield from changes.extend(topic)
                results.append(CreatePartitionsTopicResult(name=name))
            except KafkaError as error:
                text = error.message or None  # a missing topic has no text here
                result = CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=text)
                results.append(result)
            if count % ITEMS_PER_STEP == 0:
                yield
        records = [] if request.validate_only else changes.records
        return Outcome(records, CreatePartitionsResponse(results=results))

    def _topic_changes(self, defaults: TopicDefaults, charge: Charge | None = None) -> TopicChanges:
        return TopicChanges(self.image, self._changes, self._describer, defaults, self._new_uuid, charge)

    # Configs

    def alter_configs_in_steps(
        self, request: AlterConfigsRequest
    ) -> Generator[None, None, Outcome[AlterConfigsResponse]]:
        """AlterConfigs (33): keys that are not in the request are reset to their default."""
        records, responses = yield from self._alter_each(
            request.resources,
            AlterConfigsResponseAlterConfigsResourceResponse,
            lambda resource, configs: self._changes.replace(resource, [(c.name, c.value) for c in configs]),
        )
        records += yield from elr_end_steps(self.image, records)
        return Outcome([] if request.validate_only else records, AlterConfigsResponse(responses=responses))

    def incremental_alter_configs_in_steps(
        self, request: IncrementalAlterConfigsRequest
    ) -> Generator[None, None, Outcome[IncrementalAlterConfigsResponse]]:
        """IncrementalAlterConfigs (44)."""
        records, responses = yield from self._alter_each(
            request.resources,
            IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
            lambda resource, configs: self._changes.apply(
                resource, [Change(c.name, c.config_operation, c.value) for c in configs]
            ),
        )
        records += yield from elr_end_steps(self.image, records)
        return Outcome([] if request.validate_only else records, IncrementalAlterConfigsResponse(responses=responses))

    @staticmethod
    def _alter_each(
        entries: Iterable[Any],
        response_type: Callable[..., Any],
        alter: Callable[[ConfigResource, Iterable[Any]], Iterable[Message]],
    ) -> Generator[None, None, tuple[list[Message], list[Any]]]:
        """The records and the responses of all resources; `alter` makes the records of one or raises KafkaError."""
        entries = list(entries)
        twice = duplicates((entry.resource_type, entry.resource_name) for entry in entries)
        records: list[Message] = []
        responses = []
        for count, entry in enumerate(entries, 1):
            kind, name = resource = (entry.resource_type, entry.resource_name)
            response = response_type(resource_type=kind, resource_name=name, error_message=None)
            try:
                if resource in twice:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                records += alter(resource, entry.configs)
            except KafkaError as error:
                response.error_code, response.error_message = error.code, _message(error)
            responses.append(response)
            if count % ITEMS_PER_STEP == 0:
                yield
        return records, responses

    # ACLs

    def create_acls_in_steps(self, request: CreateAclsRequest) -> Generator[None, None, Outcome[CreateAclsResponse]]:
        """CreateAcls (30)."""
        records, response = yield from create_acls(self.image, request, self._new_uuid)
        return Outcome(records, response)

    def delete_acls_in_steps(self, request: DeleteAclsRequest) -> Generator[None, None, Outcome[DeleteAclsResponse]]:
        """DeleteAcls (31)."""
        records, response = yield from delete_acls(self.image, request)
        return Outcome(records, response)

    # Quotas of clients

    def alter_client_quotas_in_steps(
        self, request: AlterClientQuotasRequest, unknown_hosts: Collection[str] = ()
    ) -> Generator[None, None, Outcome[AlterClientQuotasResponse]]:
        """AlterClientQuotas (49); `unknown_hosts` are the host names in it that do not resolve."""
        from barnabas.coord.cluster.changes.quota_changes import alter_quotas_steps

        records, response = yield from alter_quotas_steps(self.image, request, unknown_hosts)
        return Outcome([] if request.validate_only else records, response)

    # Features and descriptions

    def update_features_in_steps(
        self, request: UpdateFeaturesRequest
    ) -> Generator[None, None, Outcome[UpdateFeaturesResponse]]:
        """UpdateFeatures (57); KafkaError for the first update that is not possible, and then none is made."""
        updates = [
            FeatureUpdate(entry.feature, entry.max_version_level, entry.upgrade_type)
            for entry in request.feature_updates
        ]
        records: list[Message] = [*FeatureChanges(self.image, SUPPORTED_FEATURES, self._node_id).update(updates)]
        elr = {update.level for update in updates if update.name == ELR_FEATURE}
        if elr - {0}:
            records = elr_safety_records(self.image, self._topic_settings.default_min_isr()) + records
        elif elr and self.image.features.get(ELR_FEATURE):
            records = (yield from elr_disabled_steps(self.image)) + records
        return Outcome([] if request.validate_only else records, UpdateFeaturesResponse(error_message=None))

    # Credentials

    def alter_user_scram_credentials_in_steps(
        self, request: AlterUserScramCredentialsRequest
    ) -> Generator[None, None, Outcome[AlterUserScramCredentialsResponse]]:
        """AlterUserScramCredentials (51)."""
        image = self.image
        return Outcome(*(yield from alter_credentials_in_steps(image.scram, request, image.metadata_version)))

    def describe_configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """DescribeConfigs (32) of all resource types but broker loggers, which the broker handles."""
        results = []
        for entry in request.resources:
            result = DescribeConfigsResult(resource_type=entry.resource_type, resource_name=entry.resource_name)
            try:
                result.configs = self._describer.describe(
                    (entry.resource_type, entry.resource_name),
                    entry.configuration_keys,
                    synonyms=request.include_synonyms,
                    documentation=request.include_documentation,
                )
            except KafkaError as error:
                result.error_code, result.error_message = error.code, error.message or ""
            results.append(result)
        return DescribeConfigsResponse(results=results)

    def list_config_resources(self, request: ListConfigResourcesRequest, version: int) -> ListConfigResourcesResponse:
        """ListConfigResources (74): version 0 knows client metrics only (KIP-1142)."""
        types = request.resource_types or (LISTED_TYPES if version >= 1 else (CLIENT_METRICS,))
        if not set(types) <= set(LISTED_TYPES):
            return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        resources = [
            ListedResource(resource_name=name, resource_type=kind)
            for kind in LISTED_TYPES
            if kind in types
            for name in self._resource_names(kind)
        ]
        return ListConfigResourcesResponse(config_resources=resources)

    def _resource_names(self, kind: int) -> Iterable[str]:
        if kind == TOPIC:
            return self.image.topics
        if kind in {BROKER, BROKER_LOGGER}:
            return map(str, sorted(self.image.brokers))
        return sorted(name for other, name in self.image.configs if other == kind)


def _message(error: KafkaError) -> str:
    return error.message or _MESSAGES.get(error.code, error.code.name)


_MESSAGES: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
}


def _failed_creation(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=_message(error))


def _each_once(states: Iterable[DeleteTopicState], two_ways: Collection[Uuid]) -> Iterator[DeleteTopicState]:
    """The states to answer: what is named twice in the same way once, what is named in two ways by its name."""
    seen: set[str | Uuid] = set()
    for state in states:
        if (state.name is None) != (state.topic_id == NO_TOPIC_ID):
            key = _name_or_id(state)
            if key in seen or key in two_ways:
                continue
            seen.add(key)
        yield state


def _failed_deletion(state: DeleteTopicState, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=state.name, topic_id=state.topic_id, error_code=error.code, error_message=_message(error)
    )


def _name_or_id(state: DeleteTopicState) -> str | Uuid:
    return state.topic_id if state.name is None else state.name
