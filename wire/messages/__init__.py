"""Every message of Kafka 4.4.0, one module an API family. Each is declared once, with Kafka's own version ranges."""
