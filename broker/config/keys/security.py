"""TLS, SASL and OAuth."""

from __future__ import annotations

from barnabas.wire.configdef import (
    HIGH,
    LOW,
    MEDIUM,
    PER_BROKER,
    boolean,
    class_name,
    integer,
    list_of,
    long,
    password,
    string,
)

SASL_ENABLED_MECHANISMS = list_of(
    "sasl.enabled.mechanisms", ("GSSAPI",), "", MEDIUM, "SASL mechanisms that clients may use.", dynamic=PER_BROKER
)
SASL_JAAS_CONFIG = password(
    "sasl.jaas.config", MEDIUM, "JAAS configuration: which login module, with which users.", dynamic=PER_BROKER
)
SASL_MECHANISM_CONTROLLER_PROTOCOL = string(
    "sasl.mechanism.controller.protocol", "GSSAPI", "", HIGH, "SASL mechanism towards controllers."
)
SASL_MECHANISM_INTER_BROKER_PROTOCOL = string(
    "sasl.mechanism.inter.broker.protocol", "GSSAPI", "", MEDIUM, "SASL mechanism between brokers.", dynamic=PER_BROKER
)
SASL_OAUTHBEARER_ALLOW_UNVERIFIED_AUDIENCE = boolean(
    "sasl.oauthbearer.allow.unverified.audience",
    False,
    MEDIUM,
    "Whether tokens are accepted without a check of their audience.",
)
SASL_OAUTHBEARER_ALLOW_UNVERIFIED_ISSUER = boolean(
    "sasl.oauthbearer.allow.unverified.issuer",
    False,
    MEDIUM,
    "Whether tokens are accepted without a check of their issuer.",
)
SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS = integer(
    "sasl.oauthbearer.clock.skew.seconds", 30, "", LOW, "Difference of clocks that is tolerated in tokens."
)
SASL_OAUTHBEARER_EXPECTED_AUDIENCE = list_of(
    "sasl.oauthbearer.expected.audience", (), "", HIGH, "Audiences that a token may be for."
)
SASL_OAUTHBEARER_EXPECTED_ISSUER = string(
    "sasl.oauthbearer.expected.issuer", None, "", HIGH, "Issuer that a token must come from."
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS = long(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    3_600_000,
    "",
    LOW,
    "Time between two refreshes of the keys that verify tokens.",
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS = long(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    10000,
    "",
    LOW,
    "Maximum wait between two attempts to get the keys.",
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS = long(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 100, "", LOW, "First wait between two attempts to get the keys."
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_URL = string(
    "sasl.oauthbearer.jwks.endpoint.url", None, "", MEDIUM, "URL of the keys that verify tokens."
)
SASL_OAUTHBEARER_SCOPE_CLAIM_NAME = string(
    "sasl.oauthbearer.scope.claim.name", "scope", "", LOW, "Claim that holds the scope."
)
SASL_OAUTHBEARER_SUB_CLAIM_NAME = string(
    "sasl.oauthbearer.sub.claim.name", "sub", "", LOW, "Claim that holds the subject."
)
SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL = string(
    "sasl.oauthbearer.token.endpoint.url",
    None,
    "",
    MEDIUM,
    "Where this node has the token with which it logs in at other nodes: file:///PATH. It is read again from time to "
    "time.",
)
SASL_SERVER_CALLBACK_HANDLER_CLASS = class_name(
    "sasl.server.callback.handler.class", None, MEDIUM, "Java class of the SASL server's callbacks: only Kafka's own."
)
SASL_SERVER_MAX_RECEIVE_SIZE = integer(
    "sasl.server.max.receive.size", 524_288, "", MEDIUM, "Largest SASL message before authentication."
)
SSL_ALLOW_DN_CHANGES = boolean(
    "ssl.allow.dn.changes", False, LOW, "Whether a new certificate may have another distinguished name."
)
SSL_ALLOW_SAN_CHANGES = boolean(
    "ssl.allow.san.changes", False, LOW, "Whether a new certificate may have other alternative names."
)
SSL_CIPHER_SUITES = list_of(
    "ssl.cipher.suites",
    (),
    "",
    MEDIUM,
    "Cipher suites that are allowed; empty is the library's choice.",
    dynamic=PER_BROKER,
)
SSL_CLIENT_AUTH = string(
    "ssl.client.auth",
    "none",
    "[required, requested, none]",
    MEDIUM,
    "Whether clients must, may or need not show a certificate.",
    dynamic=PER_BROKER,
)
SSL_ENABLED_PROTOCOLS = list_of(
    "ssl.enabled.protocols", ("TLSv1.2", "TLSv1.3"), "", MEDIUM, "TLS versions that are allowed.", dynamic=PER_BROKER
)
SSL_ENDPOINT_IDENTIFICATION_ALGORITHM = string(
    "ssl.endpoint.identification.algorithm",
    "https",
    "",
    LOW,
    "How the host name of a peer's certificate is checked.",
    dynamic=PER_BROKER,
)
SSL_KEY_PASSWORD = password("ssl.key.password", MEDIUM, "Password of the private key.", dynamic=PER_BROKER)
SSL_KEYSTORE_CERTIFICATE_CHAIN = password(
    "ssl.keystore.certificate.chain", MEDIUM, "Certificate chain, as PEM text.", dynamic=PER_BROKER
)
SSL_KEYSTORE_KEY = password("ssl.keystore.key", MEDIUM, "Private key, as PEM text.", dynamic=PER_BROKER)
SSL_KEYSTORE_LOCATION = string(
    "ssl.keystore.location", None, "", MEDIUM, "File with private key and certificate.", dynamic=PER_BROKER
)
SSL_KEYSTORE_PASSWORD = password("ssl.keystore.password", MEDIUM, "Password of the key store.", dynamic=PER_BROKER)
SSL_KEYSTORE_TYPE = string("ssl.keystore.type", "JKS", "", MEDIUM, "Format of the key store.", dynamic=PER_BROKER)
SSL_PRINCIPAL_MAPPING_RULES = string(
    "ssl.principal.mapping.rules", "DEFAULT", "", LOW, "Rules that turn a distinguished name into a short name."
)
SSL_PROTOCOL = string("ssl.protocol", "TLSv1.3", "", MEDIUM, "TLS version to start from.", dynamic=PER_BROKER)
SSL_TRUSTSTORE_CERTIFICATES = password(
    "ssl.truststore.certificates", MEDIUM, "Trusted certificates, as PEM text.", dynamic=PER_BROKER
)
SSL_TRUSTSTORE_LOCATION = string(
    "ssl.truststore.location", None, "", MEDIUM, "File with trusted certificates.", dynamic=PER_BROKER
)
SSL_TRUSTSTORE_PASSWORD = password(
    "ssl.truststore.password", MEDIUM, "Password of the trust store.", dynamic=PER_BROKER
)
SSL_TRUSTSTORE_TYPE = string("ssl.truststore.type", "JKS", "", MEDIUM, "Format of the trust store.", dynamic=PER_BROKER)
