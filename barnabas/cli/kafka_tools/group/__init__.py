"""Kafka's tools for groups: kafka-consumer-groups, kafka-share-groups, kafka-groups."""
