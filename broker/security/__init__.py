"""The principals of connections and their permissions: TLS, SASL, authorization and quotas, over `coord.security`."""
