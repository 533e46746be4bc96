"""`[security]`: what a file may say, what Spark and librdkafka are told, and that no secret is in a sentence."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.errors import PySparkException

from barnabas.spark.errors import MistakeError
from barnabas.spark.failures import sentence_of
from barnabas.spark.jobs import find_job
from barnabas.spark.settings.config import read_config, read_security
from barnabas.spark.settings.security import SECRETS, SecurityTable, checked, secured_broker, security_of
from barnabas.spark.topics.broker import Broker, Security
from tests.support.cases import for_each
from tests.support.security.certificates import Authority

SECRET = "a-secret"
SCRAM = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
LOGIN = {**SCRAM, "sasl.username": "alice", "sasl.password": SECRET}
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
COPY = '[source]\ntopic = "in"\n[target]\ntopic = "out"\n'


@pytest.fixture
def stores(tmp_path):
    """Files of a CA and of a client, whose key is encrypted."""
    authority = Authority()
    client = authority.sign("client")
    (tmp_path / "client.pem").write_text(client.pem(SECRET))
    authority.write(tmp_path / "ca.pem")
    return {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.keystore.location": str(tmp_path / "client.pem"),
        "ssl.key.password": SECRET,
    }


def table(text, tmp_path, job="copy"):
    path = tmp_path / "job.toml"
    path.write_text(COPY + text)
    return read_config(path, find_job(job).config).security


def refusal(given):
    """The sentence about a mistake."""
    with pytest.raises(ValueError) as caught:
        checked(given)
    text = str(caught.value)
    assert "\n" not in text
    assert SECRET not in text
    return text


def test_without_keys_connections_are_as_before():
    broker = secured_broker("here:9092", SecurityTable())
    assert broker.for_spark() == {"kafka.bootstrap.servers": "here:9092"}
    assert broker.for_librdkafka() == {"bootstrap.servers": "here:9092"}
    assert broker.security.protocol == "PLAINTEXT"


def test_a_user_for_spark_and_for_librdkafka():
    broker = Broker("here:9092", checked({**LOGIN, "security.protocol": "sasl_plaintext"}))
    assert broker.for_spark() == {
        "kafka.bootstrap.servers": "here:9092",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{SCRAM_MODULE} required username="alice" password="{SECRET}";',
    }
    assert broker.for_librdkafka() == {"bootstrap.servers": "here:9092", **LOGIN}


def test_a_jaas_line_is_the_same_as_a_user():
    line = f'{SCRAM_MODULE} required username="alice" password="{SECRET}";'
    assert checked({**SCRAM, "sasl.jaas.config": line}) == checked(LOGIN)


@for_each("password", ['a"b', "a\\b", 'a\\"; b', "it's = x;", "ü"])
def test_any_password_survives_the_jaas_line(password):
    once = checked({**LOGIN, "sasl.password": password})
    assert checked(once.for_java()) == once


def test_stores_for_spark_and_for_librdkafka(stores):
    security = checked({**stores, "ssl.endpoint.identification.algorithm": ""})
    java = security.for_java()
    key, chain = java.pop("ssl.keystore.key"), java.pop("ssl.keystore.certificate.chain")
    assert java == {
        "security.protocol": "SSL",
        "ssl.truststore.location": stores["ssl.truststore.location"],
        "ssl.truststore.type": "PEM",
        "ssl.keystore.type": "PEM",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert key.startswith("-----BEGIN PRIVATE KEY-----\n")  # Java before 19 cannot decrypt it
    assert Path(stores["ssl.keystore.location"]).read_text().endswith(chain)
    assert security.for_librdkafka() == {
        "security.protocol": "SSL",
        "ssl.ca.location": stores["ssl.truststore.location"],
        "ssl.certificate.location": stores["ssl.keystore.location"],
        "ssl.key.location": stores["ssl.keystore.location"],
        "ssl.key.password": SECRET,
        "ssl.endpoint.identification.algorithm": "none",
    }
    AdminClient(security.for_librdkafka())  # loads them


def test_stores_in_the_configuration_itself():
    authority = Authority()
    client = authority.sign("client")
    texts = {
        "ssl.truststore.certificates": authority.pem,
        "ssl.keystore.key": client.key_pem(),
        "ssl.keystore.certificate.chain": client.chain_pem,
    }
    security = checked({"security.protocol": "SSL", **texts})
    assert security.for_java().items() >= {**texts, "ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM"}.items()
    assert security.for_librdkafka() == {
        "security.protocol": "SSL",
        "ssl.ca.pem": authority.pem,
        "ssl.key.pem": client.key_pem(),
        "ssl.certificate.pem": client.chain_pem,
    }
    AdminClient(security.for_librdkafka())
    with pytest.raises(KafkaException):
        AdminClient({**security.for_librdkafka(), "ssl.key.pem": "no key"})


def test_keys_may_be_quoted_or_not(tmp_path):
    bare = (
        'security.protocol = "SASL_PLAINTEXT"\nsasl.mechanism = "PLAIN"\nsasl.username = "alice"\nsasl.password = "p"'
    )
    quoted = "\n".join(f'"{key}" = {value}' for key, value in (line.split(" = ") for line in bare.splitlines()))
    first, second = table(f"[security]\n{bare}\n", tmp_path), table(f"[security]\n{quoted}\n", tmp_path)
    assert first == second
    assert first.keys_set()["sasl.mechanism"] == "PLAIN"


def test_values_of_the_environment_and_of_files(tmp_path, monkeypatch):
    monkeypatch.setenv("KAFKA_USER", "alice")
    (tmp_path / "password").write_text(f"{SECRET}\n")
    (tmp_path / "secrets.properties").write_text(f"password = {SECRET}\n")
    for reference in (f"${{directory:{tmp_path}:password}}", f"${{file:{tmp_path}/secrets.properties:password}}"):
        settings = {**SCRAM, "sasl.username": "${env:KAFKA_USER}", "sasl.password": reference}
        assert checked(settings) == checked(LOGIN)
    line = f'{SCRAM_MODULE} required username="${{env:KAFKA_USER}}" password="${{directory:{tmp_path}:password}}";'
    assert checked({**SCRAM, "sasl.jaas.config": line}) == checked(LOGIN)


def test_a_file_of_kafkas_clients_and_keys_that_replace_its(tmp_path):
    path = tmp_path / "client.properties"
    line = f'{PLAIN_MODULE} required \\\n  username="alice" \\\n  password="{SECRET}";'
    path.write_text(
        f"bootstrap.servers=other:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={line}"
    )
    settings = security_of(table(f'[security]\nfile = "{path}"\nsecurity.protocol = "SASL_PLAINTEXT"\n', tmp_path))
    assert settings == checked({**LOGIN, "sasl.mechanism": "PLAIN"})
    path.write_text("security.protocol=SSL\nssl.provider=x\n")
    with pytest.raises(ValueError, match=r"does not take ssl.provider of .*client.properties.*; it takes security."):
        security_of(SecurityTable(file=str(path)))


@for_each(
    ("given", "sentence"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is one of PLAINTEXT, SSL,"),
        ({"sasl.mechanism": "PLAIN"}, "sasl.mechanism has no effect with security.protocol PLAINTEXT: set SASL_PLAIN"),
        ({**LOGIN, "ssl.truststore.location": "x"}, "ssl.truststore.location has no effect with security.protocol SA"),
        ({**LOGIN, "sasl.mechanism": "GSSAPI"}, "sasl.mechanism is one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, not G"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
        (SCRAM, "sasl.username is missing"),
        ({**SCRAM, "sasl.username": "alice"}, "sasl.password is missing"),
        ({**LOGIN, "sasl.jaas.config": f'{SECRET} required a="b";'}, "sasl.jaas.config and sasl.username exclude"),
        ({**SCRAM, "sasl.jaas.config": f'{PLAIN_MODULE} required password="{SECRET}";'}, "needs the login module of"),
        ({**SCRAM, "sasl.jaas.config": f'{SCRAM_MODULE} required password="{SECRET}"'}, "not terminated by semi-colon"),
        ({**SCRAM, "sasl.jaas.config": f'{SCRAM_MODULE} required password="{SECRET}";'}, "has no username"),
        ({**SCRAM, "sasl.jaas.config": f'{SCRAM_MODULE} required tokenauth="true";'}, "has an option tokenauth"),
        ({**LOGIN, "sasl.password": "${env:NOT_SET_HERE}"}, "sasl.password: the variable NOT_SET_HERE of"),
        ({**LOGIN, "sasl.password": "${vault:a:b}"}, "names no provider; there are env, file, directory"),
        ({**LOGIN, "sasl.password": "${file:/nowhere:a}"}, "sasl.password: /nowhere cannot be read: No such file"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/nowhere"}, "/nowhere cannot be read: No such file"),
        ({"security.protocol": "SSL", "ssl.truststore.type": "JKS"}, "ssl.truststore.type is PEM, not JKS"),
        ({"security.protocol": "SSL", "ssl.truststore.certificates": SECRET}, "the truststore has no certificate"),
        ({"security.protocol": "SSL", "ssl.keystore.key": SECRET}, "ssl.keystore.key needs ssl.keystore.certificate"),
        ({"security.protocol": "SSL", "ssl.key.password": SECRET}, "ssl.key.password has no effect without"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldap"}, "is https or empty, not ldap"),
    ],
)  # fmt: skip
def test_mistakes(given, sentence):
    assert sentence in refusal(given)


def test_stores_that_cannot_be_used(stores):
    assert "ssl.key.password is missing: the private key is encrypted" in refusal(without(stores, "ssl.key.password"))
    assert "does not decrypt the private key" in refusal({**stores, "ssl.key.password": f"not {SECRET}"[:5]})
    ca = stores["ssl.truststore.location"]
    assert f"{ca} has no private key as PKCS #8" in refusal({**stores, "ssl.keystore.location": ca})
    both = {**stores, "ssl.truststore.certificates": SECRET}
    assert "ssl.truststore.location and ssl.truststore.certificates exclude each other" in refusal(both)


def without(given, key):
    return {name: value for name, value in given.items() if name != key}


@for_each(
    ("text", "sentence"),
    [
        ('sasl.pasword = "a-secret"', r"\[security\] has no key sasl.pasword; did you mean sasl.password\?; there are"),
        ("ssl.provider = 'x'", r"\[security\] has no key ssl.provider"),
        ('sasl.password = ["a-secret"]', r"\[security\] sasl.password: input should be a valid string$"),
        ("ssl.keystore.password = 'a-secret'", r"\[security\] ssl.keystore.password: stores are PEM here"),
    ],
)  # fmt: skip
def test_mistakes_of_a_file(tmp_path, text, sentence):
    with pytest.raises(MistakeError, match=sentence) as caught:
        table(f"[security]\n{text}\n", tmp_path)
    assert SECRET not in f"{caught.value} {caught.value.__cause__}"


def test_a_table_is_not_a_text(tmp_path):
    (tmp_path / "job.toml").write_text(f'security = "{SECRET}"\n{COPY}')
    with pytest.raises(MistakeError, match=r"security is a table, \[security\]$"):
        read_config(tmp_path / "job.toml", find_job("copy").config)


def test_the_other_cluster_of_a_copy_has_its_own_table(tmp_path):
    login = 'security.protocol = "SASL_PLAINTEXT"\nsasl.mechanism = "PLAIN"\nsasl.username = "a"\nsasl.password = "b"\n'
    job = find_job("copy")
    (tmp_path / "job.toml").write_text(f'{COPY}bootstrap = "other:9092"\n[target.security]\n{login}')
    (topic,) = job.topics(read_config(tmp_path / "job.toml", job.config))
    assert topic.broker.for_librdkafka()["sasl.username"] == "a"
    (tmp_path / "job.toml").write_text(f"{COPY}[target.security]\n{login}")
    with pytest.raises(MistakeError, match=r"\[target\] has a table security, which is for another cluster"):
        read_config(tmp_path / "job.toml", job.config)
    (tmp_path / "job.toml").write_text(f'{COPY}bootstrap = "other:9092"\n[target.security]\nsasl.username = "a"\n')
    with pytest.raises(MistakeError, match=r"\[target.security\] sasl.username has no effect"):
        job.topics(read_config(tmp_path / "job.toml", job.config))


def test_the_security_of_any_file_can_be_read(tmp_path):
    (tmp_path / "job.toml").write_text(f'{COPY}[security]\nsecurity.protocol = "SSL"\n')
    assert read_security(tmp_path / "job.toml").keys_set() == {"security.protocol": "SSL"}


def test_no_text_of_an_object_has_a_value(tmp_path):
    lines = "\n".join(f"{key} = '{SECRET}'" for key in sorted(SECRETS))
    assert SECRET not in repr(table(f"[security]\n{lines}\n", tmp_path))
    broker = Broker("here:9092", checked(LOGIN))
    assert SECRET not in f"{broker} {broker!r} {broker.security}"
    assert pickle.loads(pickle.dumps(broker)) == broker
    assert hash(Security()) == hash(checked({}))


def test_javas_refusal_is_not_told_as_a_missing_broker():
    text = (
        "org.apache.kafka.common.KafkaException: Failed to create new KafkaAdminClient\n"
        "Caused by: org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed\n\tat x"
    )
    sentence = str(sentence_of(PySparkException(text), "here:9092"))
    assert sentence == "the broker at here:9092 cannot be used with these keys of TLS and SASL: Authentication failed"


def test_a_mistake_ends_the_command_before_anything_is_started(command, tmp_path):
    (tmp_path / "job.toml").write_text(f'checkpoint = "c"\n{COPY}[security]\nsasl.password = "{SECRET}"\n')
    done = command("run", "copy", "--config", "job.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("barnabas pipeline: [security] sasl.password has no effect")
    assert SECRET not in done.stderr
    done = command("status", "--config", "job.toml")
    assert done.returncode == 2
