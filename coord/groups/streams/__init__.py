"""Streams groups: the coordinator assigns the tasks of Kafka Streams applications (KIP-1071)."""
