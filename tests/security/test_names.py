"""Distinguished names as Java prints them, and the rules that make principals of them."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier

from barnabas.broker.security.certificate import parse_certificate, subject_name
from barnabas.broker.security.principal_mapping import NoMatchingRuleError, PrincipalMapping
from barnabas.wire.configdef import ConfigError
from tests.support.cases import for_each
from tests.support.security.certificates import Authority

CA = Authority()


def printed(*relative: x509.RelativeDistinguishedName) -> str:
    return subject_name(parse_certificate(CA.sign(x509.Name(relative)).der))


def one(oid: ObjectIdentifier, value: str, kind: _ASN1Type | None = None) -> x509.RelativeDistinguishedName:
    return x509.RelativeDistinguishedName([x509.NameAttribute(oid, value, kind)])


def test_the_last_part_comes_first_and_keywords_are_those_of_rfc_2253() -> None:
    """The expected texts are results of X500Principal.getName() of Java 17."""
    assert (
        printed(
            one(NameOID.COUNTRY_NAME, "DE"),
            one(NameOID.STATE_OR_PROVINCE_NAME, "Bayern"),
            one(NameOID.LOCALITY_NAME, "München"),
            one(NameOID.ORGANIZATION_NAME, "Data, Ltd"),
            one(NameOID.ORGANIZATIONAL_UNIT_NAME, "R+D=<x>"),
            one(NameOID.STREET_ADDRESS, 'a"b\\c;d'),
            one(NameOID.DOMAIN_COMPONENT, "example", _ASN1Type.IA5String),
            one(NameOID.USER_ID, "u1"),
            one(NameOID.COMMON_NAME, " #kafka "),
        )
        == 'CN=\\ \\#kafka\\ ,UID=u1,DC=example,STREET=a\\"b\\\\c\\;d,OU=R\\+D\\=\\<x\\>,O=Data\\, Ltd,'
        "L=München,ST=Bayern,C=DE"
    )


def test_other_types_are_numbers_with_the_value_in_hexadecimal() -> None:
    mail = one(NameOID.EMAIL_ADDRESS, "a@b", _ASN1Type.IA5String)
    assert printed(mail, one(NameOID.COMMON_NAME, "x")) == "CN=x,1.2.840.113549.1.9.1=#1603614062"
    assert printed(one(ObjectIdentifier("2.999.1"), "v")) == "2.999.1=#0c0176"


def test_parts_of_one_relative_name_are_joined_by_plus() -> None:
    both = [x509.NameAttribute(NameOID.COMMON_NAME, "a"), x509.NameAttribute(NameOID.USER_ID, "b")]
    assert set(printed(x509.RelativeDistinguishedName(both)).split("+")) == {"CN=a", "UID=b"}


def test_a_bmp_string_is_read_as_by_java_17() -> None:
    """It takes the bytes for UTF-8, whatever the type of the string is."""
    assert printed(one(NameOID.COMMON_NAME, "Łb", _ASN1Type.BMPString)) == "CN=\x01A\\00b"


DUKE = "CN=Duke, OU=ServiceUsers, O=Org, C=US"


@for_each(
    ("rules", "distinguished", "expected"),
    [
        ("DEFAULT", DUKE, DUKE),
        ("RULE:^CN=(.*?), OU=ServiceUsers.*$/$1/L, DEFAULT", DUKE, "duke"),
        ("RULE:^CN=(.*?), OU=ServiceUsers.*$/$1/U", DUKE, "DUKE"),
        ("RULE:^CN=(.*?), OU=ServiceUsers.*$/$1/", DUKE, "Duke"),
        ("RULE:^CN=(.*?), OU=(.*?), O=(.*?), C=(.*?)$/$1@$2.$4.$5/", DUKE, "Duke@ServiceUsers.US.$5"),
        ("RULE:^cn=(.*)$/$1/, RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L, DEFAULT", DUKE, "duke"),
        (r"RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/", "CN=abc", "abc"),
        (r"RULE:^CN=(.*?)\/x.*$/$1\/y/", "CN=abc/x,O=b", "abc/y"),
        ("RULE:^CN=([0-9]+),.*$/$1/, DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("RULE:.*/constant/", "CN=a", "constantconstant"),  # as in Java: `.*` is replaced at the end once more
    ],
)
def test_rules(rules: str, distinguished: str, expected: str) -> None:
    assert PrincipalMapping(rules).name_of(distinguished) == expected


def test_a_name_without_a_rule_is_refused() -> None:
    with pytest.raises(NoMatchingRuleError, match="No rules apply to CN=a"):
        PrincipalMapping("RULE:^CN=b$/b/").name_of("CN=a")


@for_each("rules", ["deny", "DEFAULTS", "RULE:a/", "RULE:[/x/", "RULE:^CN=(.*)$/$1", "RULE:a/b/LU"])
def test_rules_that_are_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"Invalid rule: .*ssl\.principal\.mapping\.rules"):
        PrincipalMapping(rules)
