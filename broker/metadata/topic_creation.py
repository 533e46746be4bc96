"""Topics that a broker creates by itself, at a controller in another process: for its clients, and internal ones.

The request goes to the controller, and the caller gets its answer when this broker's own image has the topic, or with
the error of the controller, or REQUEST_TIMED_OUT. A name is requested once, however many callers wait for it. Source:
Kafka's `DefaultAutoTopicCreationManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.general import DEFAULT_REPLICATION_FACTOR, NUM_PARTITIONS
from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.broker.metadata.automatic_topics import automatic_topic, dead_letter_queue
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.metadata.controller_channel import ControllerChannel
    from barnabas.broker.metadata.loader import MetadataLoader

TIMEOUT_S: Final = 30.0
"""How long a creation may take, until the topic is in effect here."""

_EXISTS: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
_BROKER_DEFAULT: Final = -1


class _Waiting:
    """A callback that waits for topics."""

    __slots__ = ("errors", "missing", "then", "timer")

    def __init__(self, missing: set[str], then: Callable[[dict[str, KafkaError]], None]) -> None:
        self.missing = missing
        self.errors: dict[str, KafkaError] = {}
        self.then = then
        self.timer: Timer | None = None


class TopicCreation:
    """Requests topics from the controller, and waits until they are in this broker's image."""

    def __init__(self, loop: Loop, config: ServerConfig, channel: ControllerChannel, loader: MetadataLoader) -> None:
        self._loop = loop
        self._config = config
        self._channel = channel
        self._loader = loader
        self._requested: set[str] = set()
        self._waiting: dict[_Waiting, None] = {}

    def auto_create(self, names: Iterable[str], then: Callable[[Mapping[str, KafkaError]], None]) -> None:
        """Create the topics that are missing; `then` gets the errors by name when all others are in effect."""
        missing = [name for name in dict.fromkeys(names) if not self._loader.has_topic(name)]
        self._create([automatic_topic(name, self._config) for name in missing], then)

    def auto_create_dead_letter_queue(self, name: str, then: Callable[[KafkaError | None], None]) -> None:
        """Create a share group's dead-letter queue unless it exists; then call `then`, with any error."""
        missing = [] if self._loader.has_topic(name) else [dead_letter_queue(name)]
        self._create(missing, lambda errors: then(errors.get(name)))

    def create(self, topics: list[CreatableTopic], then: Callable[[CreateTopicsResponse | KafkaError], None]) -> None:
        """Create topics; `then` gets the controller's answer when the created topics are in effect."""

        def on_response(response: CreateTopicsResponse | KafkaError) -> None:
            if isinstance(response, KafkaError):
                then(response)
                return
            existing = {result.name for result in response.topics if result.error_code in _EXISTS}
            self._when_here(existing, lambda _: then(response))

        self._send(topics, on_response)

    def _create(self, topics: list[CreatableTopic], then: Callable[[dict[str, KafkaError]], None]) -> None:
        waiting = self._when_here({topic.name for topic in topics}, then)
        new = [topic for topic in topics if topic.name not in self._requested]
        if waiting is None or not new:
            return
        names = {topic.name for topic in new}
        self._requested |= names

        def on_response(response: CreateTopicsResponse | KafkaError) -> None:
            self._requested -= names
            self._fail(_errors(names, response))

        self._send([self._with_defaults(topic) for topic in new], on_response)

    def _with_defaults(self, topic: CreatableTopic) -> CreatableTopic:
        """The topic with this broker's defaults in place of the controller's, as in Kafka."""
        if topic.num_partitions == _BROKER_DEFAULT:
            topic.num_partitions = self._config[NUM_PARTITIONS]
        if topic.replication_factor == _BROKER_DEFAULT:
            topic.replication_factor = self._config[DEFAULT_REPLICATION_FACTOR]
        return topic

    def _send(
        self, topics: list[CreatableTopic], on_response: Callable[[CreateTopicsResponse | KafkaError], None]
    ) -> None:
        request = CreateTopicsRequest(topics=topics, timeout_ms=int(TIMEOUT_S * 1000))
        self._channel.send(request, on_response, timeout_s=TIMEOUT_S)

    def _when_here(self, names: set[str], then: Callable[[dict[str, KafkaError]], None]) -> _Waiting | None:
        """Call `then` when the topics are in effect: at once, and return None, or later, and return the wait."""
        waiting = _Waiting({name for name in names if not self._loader.has_topic(name)}, then)
        if not waiting.missing:
            then({})
            return None
        waiting.timer = self._loop.timers.at(self._loop.now() + TIMEOUT_S, lambda: self._out_of_time(waiting))
        self._waiting[waiting] = None
        return waiting

    def applied(self) -> None:
        """The image has changed: call the callbacks whose topics are in effect now."""
        for waiting in list(self._waiting):
            waiting.missing = {name for name in waiting.missing if not self._loader.has_topic(name)}
            self._end_if_done(waiting)

    def _fail(self, errors: Mapping[str, KafkaError]) -> None:
        if not errors:
            return
        for waiting in list(self._waiting):
            failed = waiting.missing & errors.keys()
            waiting.errors.update({name: errors[name] for name in failed})
            waiting.missing -= failed
            self._end_if_done(waiting)

    def _out_of_time(self, waiting: _Waiting) -> None:
        text = "The topic was not created in time."
        waiting.errors.update({name: KafkaError(ErrorCode.REQUEST_TIMED_OUT, text) for name in waiting.missing})
        waiting.missing = set()
        self._end_if_done(waiting)

    def _end_if_done(self, waiting: _Waiting) -> None:
        if waiting.missing or waiting not in self._waiting:
            return
        del self._waiting[waiting]
        if waiting.timer is not None:
            waiting.timer.cancel()
        call_guarded("A callback after the creation of a topic", waiting.then, waiting.errors)

    def close(self) -> None:
        """Fail all callbacks that wait."""
        text = "The broker is shutting down."
        for waiting in list(self._waiting):
            self._fail({name: KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, text) for name in waiting.missing})


def _errors(names: set[str], response: CreateTopicsResponse | KafkaError) -> dict[str, KafkaError]:
    """The errors of a creation by name; a topic that exists already is none."""
    if isinstance(response, KafkaError):
        return dict.fromkeys(names, response)
    return {
        result.name: KafkaError(ErrorCode(result.error_code), result.error_message)
        for result in response.topics
        if result.error_code not in _EXISTS
    }
