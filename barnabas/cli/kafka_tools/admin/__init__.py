"""Kafka's tools for topics, configs, ACLs, replicas, transactions and the cluster as a whole."""
