"""Bodies of requests, read whole before a request is served: bounded in size, in time and in all.

A request that changes something is small (a form, a record, a schema file), so its body is read into memory, its CSRF
token is looked up there, and the page gets it as one message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

import anyio
from starlette.requests import Request

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
MAX_LOGIN_BYTES: Final = 8 * 1024
MAX_ALL_BYTES: Final = 64 * 1024 * 1024
"""Bytes of all bodies that are being read or served."""
BODY_S: Final = 30.0
"""How long a body may take, seconds."""
MAX_FIELDS: Final = 2_000
CSRF_FIELD: Final = "csrf"


class RefusedError(Exception):
    """A request is not served; `status` and one sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Bodies:
    """The bodies that are in memory now."""

    def __init__(self, *, most: int = MAX_ALL_BYTES, time_s: float = BODY_S) -> None:
        self._most = most
        self._time_s = time_s
        self.held = 0
        """Bytes in memory."""

    async def read(self, scope: Scope, receive: Receive, most: int) -> bytes:
        """The body of a request, which is held until `release`. `RefusedError` if it is too large or too slow."""
        announced = _announced(scope)
        if announced is not None and announced > most:
            raise _too_large(most)
        body = bytearray()
        try:
            with anyio.fail_after(self._time_s):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise RefusedError(400, "The connection was closed before the end of the request.")
                    piece = message.get("body", b"")
                    if len(body) + len(piece) > most:
                        raise _too_large(most)
                    if self.held + len(piece) > self._most:
                        raise RefusedError(503, "Too many large requests are being served: try again in a moment.")
                    self.held += len(piece)
                    body += piece
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            self.held -= len(body)
            raise RefusedError(408, f"The request was not complete after {self._time_s:g} s.") from None
        except BaseException:
            self.held -= len(body)
            raise

    def release(self, body: bytes) -> None:
        """A request with this body was served."""
        self.held -= len(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """The messages of a request whose body was read: the body, then those that follow (a disconnect)."""
    is_sent = False

    async def again() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def csrf_token_in(scope: Scope, content_type: str, body: bytes) -> str:
    """The CSRF token in a form's field; empty if there is none. `RefusedError` for a form that cannot be read."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind == "application/x-www-form-urlencoded":
            fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
            return next((value for name, value in fields if name == CSRF_FIELD), "")
        if kind == "multipart/form-data":
            request = Request(scope, replayed(body, _nothing))
            async with request.form(max_files=16, max_fields=MAX_FIELDS, max_part_size=MAX_BODY_BYTES) as form:
                value = form.get(CSRF_FIELD, "")
                return value if isinstance(value, str) else ""
    except Exception as error:  # python-multipart has no common class of errors
        raise RefusedError(400, f"The form cannot be read: {error}") from None
    return ""


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def _announced(scope: Scope) -> int | None:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return None


def _too_large(most: int) -> RefusedError:
    return RefusedError(413, f"The request is larger than {most // 1024:,} KiB, which is the limit of the console.")
