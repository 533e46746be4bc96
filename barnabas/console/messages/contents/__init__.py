"""What the bytes of a key or value mean: JSON, MessagePack, Avro, Protobuf, numbers, text; otherwise hexadecimal."""
