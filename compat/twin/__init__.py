"""The differential tester: the same requests go to Apache Kafka and to Barnabas, and their answers are compared."""
