"""Records in Kafka's internal logs: of coordinators, of the cluster's metadata, of Raft, and of every partition."""
