"""What clients learn about the cluster: versions, brokers, topics and their partitions."""
