"""The messages of Kafka 4.4.0, one module for each family of APIs, declared with Kafka's version ranges."""
