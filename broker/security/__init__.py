"""Who a connection belongs to and what it may do: TLS, SASL, authorization and quotas, over `coord.security`."""
