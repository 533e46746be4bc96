"""What clients do and send beside messages: connections, partitioners, loads of brokers, telemetry."""
