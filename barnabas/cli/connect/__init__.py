"""How a command reaches a broker: its address, TLS and SASL, from options, the environment, files and profiles."""
