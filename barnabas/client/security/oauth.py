"""Where a token of OAUTHBEARER comes from: a file (KIP-768), or an unsecured one made of JAAS options (KIP-255).

A file is read at every log-in, so a program renews the token by replacing the file. Tokens are not fetched from HTTPS
endpoints: a program that has one writes it to a file.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from time import time
from typing import Final
from urllib.parse import unquote, urlsplit

from barnabas.client.errors import AuthenticationFailed
from barnabas.client.security.jaas import JaasError
from barnabas.coord.security.jaas import LoginModule

URL_KEY: Final = "sasl.oauthbearer.token.endpoint.url"
HANDLERS: Final = ("OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler")
CLAIM: Final = "unsecuredLoginStringClaim_"
LIFETIME: Final = "unsecuredLoginLifetimeSeconds"
DEFAULT_LIFETIME_S: Final = 3600


class TokenError(JaasError):
    """There is no token; the text is one sentence."""


def token_source(keys: Mapping[str, str], login: LoginModule | None) -> Callable[[], str]:
    """Return a function that returns the current token. `TokenError` if no source is named, or it does not exist."""
    handler = keys.get("sasl.login.callback.handler.class", "").rpartition(".")[2]
    if handler and handler not in HANDLERS:
        known = " and ".join(HANDLERS)
        raise TokenError(f"sasl.login.callback.handler.class is a class of Java; only {known} are known")
    url = keys.get(URL_KEY, "")
    if url:
        parts = urlsplit(url)
        if parts.scheme != "file" or not parts.path:
            raise TokenError(f"{URL_KEY} must be file:///PATH of a file with a token: this client asks no servers")
        path = Path(unquote(parts.path))
        return lambda: _read(path)
    options = {} if login is None else login.options
    if f"{CLAIM}sub" not in options:
        raise TokenError(f'OAUTHBEARER needs {URL_KEY}=file:///PATH, or sasl.jaas.config with {CLAIM}sub="NAME"')
    return lambda: _unsecured(options)


def _read(path: Path) -> str:
    try:
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not a token"
        raise AuthenticationFailed(f"{path}: {(reason or '').lower()}") from None
    if not token or any(character.isspace() for character in token):
        raise AuthenticationFailed(f"{path} must have one token and nothing else")
    return token


def _unsecured(options: Mapping[str, str]) -> str:
    """A JSON Web Token without a signature, which only a broker made for tests accepts."""
    now = time()
    claims: dict[str, object] = {
        name.removeprefix(CLAIM): value for name, value in options.items() if name.startswith(CLAIM)
    }
    claims |= {"iat": now, "exp": now + float(options.get(LIFETIME, DEFAULT_LIFETIME_S))}
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(content: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
