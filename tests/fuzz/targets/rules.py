"""Rules that an administrator or a client writes: principals of certificates, hosts and filters of ACLs, filters of
quotas, regular expressions of subscriptions, patterns of client metrics, forwarded principals.

Only ConfigError, KafkaError, ProtocolError and ValueError, each where it is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.broker.security.principal_mapping import NoMatchingRuleError, PrincipalMapping
from barnabas.coord.client_metrics.matching import SELECTORS, is_match, parse_match
from barnabas.coord.groups.consumer.regex import compiled
from barnabas.coord.quotas.filter import QuotaFilter
from barnabas.coord.security.acl_filters import filter_of
from barnabas.coord.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from barnabas.coord.security.host_patterns import java_host, matches_host, parse_range
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.messages.quotas import DescribeClientQuotasRequest
from barnabas.wire.messages.security.acls import DescribeAclsRequest
from barnabas.wire.principal import KafkaPrincipal
from tests.fuzz.targets import Input, is_sayable, pieces

MAX_BYTES = 512
DN = "CN=kafka1,OU=broker,O=Barnabas,L=Bern,C=CH"
HOSTS = ("10.0.0.1", "2001:db8:0:0:0:0:0:1", "fe80::1%eth0", "", "localhost")
ACL = Acl(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "*", Operation.READ, Permission.ALLOW)


def _principal_rules(source: Input) -> None:
    name = source.text()
    try:
        mapping = PrincipalMapping(source.text())
        is_sayable(mapping.name_of(DN), mapping.name_of(name))
    except (ConfigError, NoMatchingRuleError) as error:
        is_sayable(str(error))


def _host(source: Input) -> None:
    pattern, host = source.text(), source.text()
    for name in (*HOSTS, host):
        matches_host(pattern, name)
    java_host(pattern)
    try:
        is_ipv6, first, last = parse_range(pattern)
    except ValueError:
        assert not any(matches_host(pattern, host) for host in HOSTS if host != pattern and pattern != "*")
        return
    assert 0 <= first <= last < 1 << (128 if is_ipv6 else 32)


def _acl_filter(source: Input) -> None:
    version = 1 + source.number(3)
    try:
        request = DescribeAclsRequest.decode(source.rest, version)
    except ProtocolError:
        return
    acl_filter = filter_of(request)
    if acl_filter.unknown_part is None:
        acl_filter.matches(ACL)


def _quota_filter(source: Input) -> None:
    version = source.number(2)
    try:
        quota_filter = QuotaFilter(DescribeClientQuotasRequest.decode(source.rest, version))
    except (ProtocolError, KafkaError):
        return
    for entity in ((("user", "a"), ("client-id", None)), (("ip", "1.2.3.4"),), ()):
        quota_filter.selects(entity)


def _regex(source: Input) -> None:
    text = source.text()
    try:
        pattern = compiled(text)
    except KafkaError as error:
        is_sayable(str(error))
        return
    for topic in ("", "orders", "a" * 249, source.text()):
        pattern.fullmatch(topic)


def _metrics_match(source: Input) -> None:
    items = [source.text() for _ in range(3)]
    try:
        patterns = parse_match(items)
    except KafkaError as error:
        is_sayable(str(error))
        return
    client = dict.fromkeys(SELECTORS, "librdkafka")
    is_match(patterns, client)


def _principal(source: Input) -> None:
    try:
        principal = KafkaPrincipal.from_bytes(source.rest)
    except ProtocolError:
        return
    assert KafkaPrincipal.from_bytes(principal.to_bytes()) == principal


KINDS: tuple[Callable[[Input], None], ...] = (
    _principal_rules,
    _host,
    _acl_filter,
    _quota_filter,
    _regex,
    _metrics_match,
    _principal,
)


def check(data: bytes) -> None:
    """The first byte is the kind of rule."""
    source = Input(data)
    KINDS[source.number(len(KINDS))](source)


def seeds() -> Iterator[bytes]:
    """The examples of Kafka's documentation."""
    for rules in (
        "DEFAULT",
        r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L, DEFAULT",
        r"RULE:CN=([^,ADEFLTU,]+)(,.*|$)/$1@\/x/U,RULE:.*/\$0$9/",
    ):
        yield b"\0" + pieces("CN=a,O=b", rules)
    for pattern in ("10.0.0.0/8", "2001:db8::/32", "::ffff:1.2.3.4/96", "*", "01.2.3.4", "1.2.3.4/33"):
        yield b"\x01" + pieces(pattern, "10.1.2.3")
    request = DescribeAclsRequest(
        resource_type_filter=2, pattern_type_filter=2, operation=1, permission_type=1, resource_name_filter="orders"
    )
    for version in (1, 2, 3):
        yield b"\x02" + bytes((version - 1,)) + request.encode(version)
    for version in (0, 1):
        yield b"\x03" + bytes((version,)) + DescribeClientQuotasRequest(strict=True).encode(version)
    for regex in ("orders.*", "(a+)+$", r"\p{L}{1,1000}", "[", "(?i)x|y{2,}"):
        yield b"\x04" + pieces(regex, "orders.eu")
    yield b"\x05" + pieces("client_software_name=lib.*", "client_id=a|b", "client_software_version=[0-9.]+")
    yield b"\x06" + KafkaPrincipal("User", "alice", True).to_bytes()
