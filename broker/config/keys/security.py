"""TLS, SASL and OAuth."""

from __future__ import annotations

from barnabas.wire.configdef import (
    HIGH,
    LOW,
    MEDIUM,
    PER_BROKER,
    boolean,
    class_name,
    double,
    integer,
    list_of,
    long,
    password,
    short,
    string,
)

SASL_CLIENT_CALLBACK_HANDLER_CLASS = class_name(
    "sasl.client.callback.handler.class", None, MEDIUM, "Java class of the SASL client's callbacks."
)
SASL_ENABLED_MECHANISMS = list_of(
    "sasl.enabled.mechanisms",
    ("GSSAPI",),
    "",
    MEDIUM,
    "SASL mechanisms that clients may use.",
    dynamic=PER_BROKER,
    used=True,
)
SASL_JAAS_CONFIG = password(
    "sasl.jaas.config",
    MEDIUM,
    "JAAS configuration: which login module, with which users.",
    dynamic=PER_BROKER,
    used=True,
)
SASL_KERBEROS_KINIT_CMD = string(
    "sasl.kerberos.kinit.cmd", "/usr/bin/kinit", "", MEDIUM, "Path of the kinit command.", dynamic=PER_BROKER
)
SASL_KERBEROS_MIN_TIME_BEFORE_RELOGIN = long(
    "sasl.kerberos.min.time.before.relogin",
    60000,
    "",
    MEDIUM,
    "Time between two attempts to refresh a Kerberos login.",
    dynamic=PER_BROKER,
)
SASL_KERBEROS_PRINCIPAL_TO_LOCAL_RULES = list_of(
    "sasl.kerberos.principal.to.local.rules",
    ("DEFAULT",),
    "",
    MEDIUM,
    "Rules that turn a Kerberos principal into a short name.",
    dynamic=PER_BROKER,
)
SASL_KERBEROS_SERVICE_NAME = string(
    "sasl.kerberos.service.name", None, "", MEDIUM, "Kerberos name of the broker.", dynamic=PER_BROKER
)
SASL_KERBEROS_TICKET_RENEW_JITTER = double(
    "sasl.kerberos.ticket.renew.jitter",
    0.05,
    "",
    MEDIUM,
    "Random part of the time until a Kerberos ticket is renewed.",
    dynamic=PER_BROKER,
)
SASL_KERBEROS_TICKET_RENEW_WINDOW_FACTOR = double(
    "sasl.kerberos.ticket.renew.window.factor",
    0.8,
    "",
    MEDIUM,
    "Part of a Kerberos ticket's life after which it is renewed.",
    dynamic=PER_BROKER,
)
SASL_LOGIN_CALLBACK_HANDLER_CLASS = class_name(
    "sasl.login.callback.handler.class", None, MEDIUM, "Java class of the SASL login's callbacks."
)
SASL_LOGIN_CLASS = class_name("sasl.login.class", None, MEDIUM, "Java class of the SASL login.")
SASL_LOGIN_CONNECT_TIMEOUT_MS = integer(
    "sasl.login.connect.timeout.ms", None, "", LOW, "Time to wait for a connection to the authentication provider."
)
SASL_LOGIN_READ_TIMEOUT_MS = integer(
    "sasl.login.read.timeout.ms", None, "", LOW, "Time to wait for an answer of the authentication provider."
)
SASL_LOGIN_REFRESH_BUFFER_SECONDS = short(
    "sasl.login.refresh.buffer.seconds",
    300,
    "",
    MEDIUM,
    "Time before its expiry at which a credential is refreshed at the latest.",
    dynamic=PER_BROKER,
)
SASL_LOGIN_REFRESH_MIN_PERIOD_SECONDS = short(
    "sasl.login.refresh.min.period.seconds",
    60,
    "",
    MEDIUM,
    "Minimum time between two refreshes of a credential.",
    dynamic=PER_BROKER,
)
SASL_LOGIN_REFRESH_WINDOW_FACTOR = double(
    "sasl.login.refresh.window.factor",
    0.8,
    "",
    MEDIUM,
    "Part of a credential's life after which it is refreshed.",
    dynamic=PER_BROKER,
)
SASL_LOGIN_REFRESH_WINDOW_JITTER = double(
    "sasl.login.refresh.window.jitter",
    0.05,
    "",
    MEDIUM,
    "Random part of the time until a credential is refreshed.",
    dynamic=PER_BROKER,
)
SASL_LOGIN_RETRY_BACKOFF_MAX_MS = long(
    "sasl.login.retry.backoff.max.ms", 10000, "", LOW, "Maximum wait between two attempts to log in."
)
SASL_LOGIN_RETRY_BACKOFF_MS = long(
    "sasl.login.retry.backoff.ms", 100, "", LOW, "First wait between two attempts to log in."
)
SASL_MECHANISM_CONTROLLER_PROTOCOL = string(
    "sasl.mechanism.controller.protocol", "GSSAPI", "", HIGH, "SASL mechanism towards controllers.", used=True
)
SASL_MECHANISM_INTER_BROKER_PROTOCOL = string(
    "sasl.mechanism.inter.broker.protocol",
    "GSSAPI",
    "",
    MEDIUM,
    "SASL mechanism between brokers.",
    dynamic=PER_BROKER,
    used=True,
)
SASL_OAUTHBEARER_ALLOW_UNVERIFIED_AUDIENCE = boolean(
    "sasl.oauthbearer.allow.unverified.audience",
    False,
    MEDIUM,
    "Whether tokens are accepted without a check of their audience.",
    used=True,
)
SASL_OAUTHBEARER_ALLOW_UNVERIFIED_ISSUER = boolean(
    "sasl.oauthbearer.allow.unverified.issuer",
    False,
    MEDIUM,
    "Whether tokens are accepted without a check of their issuer.",
    used=True,
)
SASL_OAUTHBEARER_ASSERTION_ALGORITHM = string(
    "sasl.oauthbearer.assertion.algorithm",
    "RS256",
    "(case insensitive) [ES256, RS256]",
    MEDIUM,
    "Algorithm that signs an assertion.",
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_AUD = string(
    "sasl.oauthbearer.assertion.claim.aud", None, "", MEDIUM, "Audience claim of an assertion."
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_EXP_SECONDS = integer(
    "sasl.oauthbearer.assertion.claim.exp.seconds", 300, "[0,...,86400]", LOW, "Seconds until an assertion expires."
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_ISS = string(
    "sasl.oauthbearer.assertion.claim.iss", None, "", MEDIUM, "Issuer claim of an assertion."
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_JTI_INCLUDE = boolean(
    "sasl.oauthbearer.assertion.claim.jti.include", False, MEDIUM, "Whether an assertion has a unique id."
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_NBF_SECONDS = integer(
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    60,
    "[0,...,3600]",
    LOW,
    "Seconds before now from which an assertion holds.",
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_SUB = string(
    "sasl.oauthbearer.assertion.claim.sub", None, "", MEDIUM, "Subject claim of an assertion."
)
SASL_OAUTHBEARER_ASSERTION_FILE = string(
    "sasl.oauthbearer.assertion.file", None, "", MEDIUM, "File with a ready assertion."
)
SASL_OAUTHBEARER_ASSERTION_PRIVATE_KEY_FILE = string(
    "sasl.oauthbearer.assertion.private.key.file", None, "", MEDIUM, "File with the key that signs an assertion."
)
SASL_OAUTHBEARER_ASSERTION_PRIVATE_KEY_PASSPHRASE = password(
    "sasl.oauthbearer.assertion.private.key.passphrase", MEDIUM, "Passphrase of the key that signs an assertion."
)
SASL_OAUTHBEARER_ASSERTION_TEMPLATE_FILE = string(
    "sasl.oauthbearer.assertion.template.file", None, "", MEDIUM, "File with headers and claims of an assertion."
)
SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_ID = string(
    "sasl.oauthbearer.client.credentials.client.id", None, "", MEDIUM, "Client id of the client credentials grant."
)
SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_SECRET = password(
    "sasl.oauthbearer.client.credentials.client.secret", MEDIUM, "Client secret of the client credentials grant."
)
SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS = integer(
    "sasl.oauthbearer.clock.skew.seconds", 30, "", LOW, "Difference of clocks that is tolerated in tokens.", used=True
)
SASL_OAUTHBEARER_EXPECTED_AUDIENCE = list_of(
    "sasl.oauthbearer.expected.audience", (), "", HIGH, "Audiences that a token may be for.", used=True
)
SASL_OAUTHBEARER_EXPECTED_ISSUER = string(
    "sasl.oauthbearer.expected.issuer", None, "", HIGH, "Issuer that a token must come from.", used=True
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS = long(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    3_600_000,
    "",
    LOW,
    "Time between two refreshes of the keys that verify tokens.",
    used=True,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS = long(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    10000,
    "",
    LOW,
    "Maximum wait between two attempts to get the keys.",
    used=True,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS = long(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    100,
    "",
    LOW,
    "First wait between two attempts to get the keys.",
    used=True,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_URL = string(
    "sasl.oauthbearer.jwks.endpoint.url", None, "", MEDIUM, "URL of the keys that verify tokens.", used=True
)
SASL_OAUTHBEARER_JWT_RETRIEVER_CLASS = class_name(
    "sasl.oauthbearer.jwt.retriever.class",
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    MEDIUM,
    "Java class that requests tokens.",
)
SASL_OAUTHBEARER_JWT_VALIDATOR_CLASS = class_name(
    "sasl.oauthbearer.jwt.validator.class",
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    MEDIUM,
    "Java class that checks tokens.",
)
SASL_OAUTHBEARER_SCOPE = string("sasl.oauthbearer.scope", None, "", MEDIUM, "Scope requested with a token.")
SASL_OAUTHBEARER_SCOPE_CLAIM_NAME = string(
    "sasl.oauthbearer.scope.claim.name", "scope", "", LOW, "Claim that holds the scope.", used=True
)
SASL_OAUTHBEARER_SUB_CLAIM_NAME = string(
    "sasl.oauthbearer.sub.claim.name", "sub", "", LOW, "Claim that holds the subject.", used=True
)
SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL = string(
    "sasl.oauthbearer.token.endpoint.url",
    None,
    "",
    MEDIUM,
    "Where this node has the token with which it logs in at other nodes: file:///PATH. It is read again from time to "
    "time.",
    used=True,
)
SASL_SERVER_CALLBACK_HANDLER_CLASS = class_name(
    "sasl.server.callback.handler.class",
    None,
    MEDIUM,
    "Java class of the SASL server's callbacks: only Kafka's own.",
    used=True,
)
SASL_SERVER_MAX_RECEIVE_SIZE = integer(
    "sasl.server.max.receive.size", 524_288, "", MEDIUM, "Largest SASL message before authentication.", used=True
)
SSL_ALLOW_DN_CHANGES = boolean(
    "ssl.allow.dn.changes", False, LOW, "Whether a new certificate may have another distinguished name.", used=True
)
SSL_ALLOW_SAN_CHANGES = boolean(
    "ssl.allow.san.changes", False, LOW, "Whether a new certificate may have other alternative names.", used=True
)
SSL_CIPHER_SUITES = list_of(
    "ssl.cipher.suites",
    (),
    "",
    MEDIUM,
    "Cipher suites that are allowed; empty is the library's choice.",
    dynamic=PER_BROKER,
    used=True,
)
SSL_CLIENT_AUTH = string(
    "ssl.client.auth",
    "none",
    "[required, requested, none]",
    MEDIUM,
    "Whether clients must, may or need not show a certificate.",
    dynamic=PER_BROKER,
    used=True,
)
SSL_ENABLED_PROTOCOLS = list_of(
    "ssl.enabled.protocols",
    ("TLSv1.2", "TLSv1.3"),
    "",
    MEDIUM,
    "TLS versions that are allowed.",
    dynamic=PER_BROKER,
    used=True,
)
SSL_ENDPOINT_IDENTIFICATION_ALGORITHM = string(
    "ssl.endpoint.identification.algorithm",
    "https",
    "",
    LOW,
    "How the host name of a peer's certificate is checked.",
    dynamic=PER_BROKER,
    used=True,
)
SSL_ENGINE_FACTORY_CLASS = class_name(
    "ssl.engine.factory.class", None, LOW, "Java class that makes TLS engines.", dynamic=PER_BROKER
)
SSL_KEY_PASSWORD = password("ssl.key.password", MEDIUM, "Password of the private key.", dynamic=PER_BROKER, used=True)
SSL_KEYMANAGER_ALGORITHM = string(
    "ssl.keymanager.algorithm", "SunX509", "", MEDIUM, "Java algorithm of the key manager.", dynamic=PER_BROKER
)
SSL_KEYSTORE_CERTIFICATE_CHAIN = password(
    "ssl.keystore.certificate.chain", MEDIUM, "Certificate chain, as PEM text.", dynamic=PER_BROKER, used=True
)
SSL_KEYSTORE_KEY = password("ssl.keystore.key", MEDIUM, "Private key, as PEM text.", dynamic=PER_BROKER, used=True)
SSL_KEYSTORE_LOCATION = string(
    "ssl.keystore.location", None, "", MEDIUM, "File with private key and certificate.", dynamic=PER_BROKER, used=True
)
SSL_KEYSTORE_PASSWORD = password(
    "ssl.keystore.password", MEDIUM, "Password of the key store.", dynamic=PER_BROKER, used=True
)
SSL_KEYSTORE_TYPE = string(
    "ssl.keystore.type", "JKS", "", MEDIUM, "Format of the key store.", dynamic=PER_BROKER, used=True
)
SSL_PRINCIPAL_MAPPING_RULES = string(
    "ssl.principal.mapping.rules",
    "DEFAULT",
    "",
    LOW,
    "Rules that turn a distinguished name into a short name.",
    used=True,
)
SSL_PROTOCOL = string(
    "ssl.protocol", "TLSv1.3", "", MEDIUM, "TLS version to start from.", dynamic=PER_BROKER, used=True
)
SSL_PROVIDER = string("ssl.provider", None, "", MEDIUM, "Java security provider for TLS.", dynamic=PER_BROKER)
SSL_SECURE_RANDOM_IMPLEMENTATION = string(
    "ssl.secure.random.implementation", None, "", LOW, "Java source of randomness for TLS.", dynamic=PER_BROKER
)
SSL_TRUSTMANAGER_ALGORITHM = string(
    "ssl.trustmanager.algorithm", "PKIX", "", MEDIUM, "Java algorithm of the trust manager.", dynamic=PER_BROKER
)
SSL_TRUSTSTORE_CERTIFICATES = password(
    "ssl.truststore.certificates", MEDIUM, "Trusted certificates, as PEM text.", dynamic=PER_BROKER, used=True
)
SSL_TRUSTSTORE_LOCATION = string(
    "ssl.truststore.location", None, "", MEDIUM, "File with trusted certificates.", dynamic=PER_BROKER, used=True
)
SSL_TRUSTSTORE_PASSWORD = password(
    "ssl.truststore.password", MEDIUM, "Password of the trust store.", dynamic=PER_BROKER, used=True
)
SSL_TRUSTSTORE_TYPE = string(
    "ssl.truststore.type", "JKS", "", MEDIUM, "Format of the trust store.", dynamic=PER_BROKER, used=True
)
