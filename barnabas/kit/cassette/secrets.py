"""Removes passwords, tokens and credentials from requests before they are written to a cassette.

Requests are also compared without them, so a client may log in with another password.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.tools.dump.secrets import HIDDEN, is_password

SECRET: Final = frozenset(
    {
        "authBytes",  # SaslAuthenticate: passwords, proofs and bearer tokens
        "hmac",  # the password of a delegation token
        "requestData",  # Envelope: a whole request
        "responseData",
        "salt",
        "saltedPassword",
    }
)
"""Fields of bytes, by their names in JSON; no message has a field of such a name that is no secret."""


def without_secrets(body: Any) -> Any:
    """The JSON of a message: secret bytes are empty, values of config keys that are passwords are `[hidden]`."""
    if isinstance(body, list):
        return [without_secrets(part) for part in body]
    if not isinstance(body, dict):
        return body
    public = {name: "" if name in SECRET and value else without_secrets(value) for name, value in body.items()}
    if isinstance(public.get("name"), str) and isinstance(public.get("value"), str) and is_password(public["name"]):
        public["value"] = HIDDEN
    return public
