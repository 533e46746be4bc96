"""Commands on files and bytes, without a broker: segment files, data directories, protocol messages."""
