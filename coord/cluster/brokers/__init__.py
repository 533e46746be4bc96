"""Registration, heartbeats and sessions of brokers, and the log directories of their replicas."""
