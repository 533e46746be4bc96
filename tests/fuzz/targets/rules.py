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
from barnabas.wire.messages.acls import DescribeAclsRequest
from barnabas.wire.messages.quotas import DescribeClientQuotasRequest
from barnabas.wire.principal import KafkaPrincipal
from tests.fuzz.targets import Input, is_sayable, pieces

MAX_BYTES = 512
DN = "CN=kafka1,OU=broker,O=Barnabas,L=Bern,C=CH"
HOSTS = ("10.0.0.1", "2001:db8:0:0:0:0:0:1", "fe80::1%eth0", "", "localhost")
ACL = Acl(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "*", Operation.READ, Permission.ALLOW)


def _principal_rules(given: Input) -> None:
    name = given.text()
    try:
        mapping = PrincipalMapping(given.text())
        is_sayable(mapping.name_of(DN), mapping.name_of(name))
    except (ConfigError, NoMatchingRuleError) as error:
        is_sayable(str(error))


def _host(given: Input) -> None:
    pattern, host = given.text(), given.text()
    for one in (*HOSTS, host):
        matches_host(pattern, one)
    java_host(pattern)
    try:
        is_ipv6, first, last = parse_range(pattern)
    except ValueError:
        assert not any(matches_host(pattern, host) for host in HOSTS if host != pattern and pattern != "*")
        return
    assert 0 <= first <= last < 1 << (128 if is_ipv6 else 32)


def _acl_filter(given: Input) -> None:
    version = 1 + given.number(3)
    try:
        request = DescribeAclsRequest.decode(given.rest, version)
    except ProtocolError:
        return
    found = filter_of(request)
    if found.unknown_part is None:
        found.matches(ACL)


def _quota_filter(given: Input) -> None:
    version = given.number(2)
    try:
        found = QuotaFilter(DescribeClientQuotasRequest.decode(given.rest, version))
    except (ProtocolError, KafkaError):
        return
    for entity in ((("user", "a"), ("client-id", None)), (("ip", "1.2.3.4"),), ()):
        found.selects(entity)


def _regex(given: Input) -> None:
    text = given.text()
    try:
        pattern = compiled(text)
    except KafkaError as error:
        is_sayable(str(error))
        return
    for topic in ("", "orders", "a" * 249, given.text()):
        pattern.fullmatch(topic)


def _metrics_match(given: Input) -> None:
    items = [given.text() for _ in range(3)]
    try:
        patterns = parse_match(items)
    except KafkaError as error:
        is_sayable(str(error))
        return
    client = dict.fromkeys(SELECTORS, "librdkafka")
    is_match(patterns, client)


def _principal(given: Input) -> None:
    try:
        found = KafkaPrincipal.from_bytes(given.rest)
    except ProtocolError:
        return
    assert KafkaPrincipal.from_bytes(found.to_bytes()) == found


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
    given = Input(data)
    KINDS[given.number(len(KINDS))](given)


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
