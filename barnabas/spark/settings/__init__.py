"""The keys of a job's TOML file, checked before Spark starts: the job's own ones, columns, TLS and SASL."""
