"""What passes between the clients of a cluster and its broker, decoded: recorded, changed by rules, and checked."""
