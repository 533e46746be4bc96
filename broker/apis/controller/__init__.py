"""Handlers of the controller listeners, for brokers, other observers of the metadata log and tools.

They are registered with `listener=CONTROLLER` and listed in `registry.CONTROLLER_APIS`. Requests that clients send to
brokers as well are translated by the same functions as there. Source: Kafka 4.4 `ControllerApis`.
"""
