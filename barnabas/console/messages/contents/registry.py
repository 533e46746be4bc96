"""A Schema Registry of Confluent's API: schemas by id, with those that they refer to.

Schemas never change, so they are kept (`MOST_KEPT`); that one could not be had is kept for `FAILED_S`, so that a page
of records waits once for a registry that does not answer.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import OrderedDict
from functools import lru_cache
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from barnabas.console.messages.contents.avro import AvroSchema
    from barnabas.console.messages.contents.protobuf import ProtobufSchema

MOST_KEPT = 1000
MOST_REFERENCES = 200
MAX_ANSWER_BYTES = 4 * 1024 * 1024
TIMEOUT_S = 5.0
FAILED_S = 10.0

Kept = tuple[str, "AvroSchema | ProtobufSchema | None"]


class HttpRegistry:
    """The registry at an address; a user and a password may be in it. ValueError if it is no address."""

    def __init__(self, url: str) -> None:
        self._address = url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the address of a Schema Registry is http://HOST:PORT, not {url!r}")
        host = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
        address = host if parts.port is None else f"{host}:{parts.port}"
        self.url = urlunsplit((parts.scheme, address, parts.path.rstrip("/"), "", ""))
        """Without user and password."""
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if parts.username is not None:
            pair = f"{parts.username}:{parts.password or ''}"
            self._headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        self._failed: dict[int, tuple[float, str]] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[object, ...]:
        """Another process keeps the schemas that it has read itself."""
        return _registry, (self._address,)

    def schema(self, schema_id: int) -> Kept:
        """The kind (AVRO, PROTOBUF or JSON) and the schema. ValueError with a sentence."""
        with self._lock:
            kept = self._kept.get(schema_id)
            failed_at, reason = self._failed.get(schema_id, (0.0, ""))
        if kept is not None:
            return kept
        if reason and monotonic() - failed_at < FAILED_S:
            raise ValueError(reason)
        try:
            kept = self._load(schema_id)
        except ValueError as error:
            with self._lock:
                if len(self._failed) >= MOST_KEPT:
                    self._failed.clear()
                self._failed[schema_id] = monotonic(), str(error)
            raise
        with self._lock:
            self._kept[schema_id] = kept
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return kept

    def _load(self, schema_id: int) -> Kept:
        registered = self._get(f"/schemas/ids/{schema_id}")
        kind = registered.get("schemaType") or "AVRO"
        text = str(registered.get("schema"))
        references: dict[str, str] = {}
        self._add_references(registered, references)
        if kind == "AVRO":
            from barnabas.console.messages.contents.avro import AvroSchema

            return kind, AvroSchema(text, references)
        if kind == "PROTOBUF":
            from barnabas.console.messages.contents.protobuf import ProtobufSchema

            return kind, ProtobufSchema.from_text(f"id-{schema_id}.proto", text, references)
        if kind == "JSON":
            return kind, None
        raise ValueError(f"schema {schema_id} of the registry is of the unknown type {kind!r}")

    def _add_references(self, registered: dict[str, Any], references: dict[str, str]) -> None:
        """Add the texts of the schemas that one refers to, each behind its own references."""
        for reference in registered.get("references") or ():
            name = str(reference.get("name"))
            if name in references:
                continue
            if len(references) >= MOST_REFERENCES:
                raise ValueError(f"the schema refers to more than {MOST_REFERENCES} others")
            subject, version = quote(str(reference.get("subject")), safe=""), int(reference.get("version") or 0)
            referred = self._get(f"/subjects/{subject}/versions/{version}")
            references[name] = ""  # a circle ends here
            self._add_references(referred, references)
            del references[name]
            references[name] = str(referred.get("schema"))

    def _get(self, path: str) -> dict[str, Any]:
        request = Request(self.url + path, headers=self._headers)  # noqa: S310 (http or https: checked)
        try:
            with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
                body = response.read(MAX_ANSWER_BYTES + 1)
        except HTTPError as error:
            raise ValueError(f"the Schema Registry answered {error.code} for {path}") from None
        except OSError as error:
            raise ValueError(f"the Schema Registry at {self.url} cannot be reached: {error}") from None
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if len(body) > MAX_ANSWER_BYTES or not isinstance(answer, dict):
            raise ValueError(f"the Schema Registry's answer for {path} is no JSON object")
        return answer


@lru_cache(4)
def _registry(url: str) -> HttpRegistry:
    return HttpRegistry(url)
