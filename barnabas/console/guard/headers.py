"""The headers of every response: a strict Content-Security-Policy, no sniffing, frames, referrer for others, caching.

The console's pages have no inline script or style and load nothing from other origins, so a value that gets into a page
as markup against all escaping would still not run.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

CSP: Final = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS: Final[dict[str, str]] = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers send the Origin `null` with the console's own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
HSTS: Final = "max-age=31536000"
"""Over TLS only."""
MAX_FILE_NAME: Final = 120


def attachment(file_name: str) -> str:
    """A Content-Disposition that saves a response under a name, which may be any text, such as a topic's (RFC 6266)."""
    kept = file_name[:MAX_FILE_NAME]
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", kept)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(kept, safe='')}"
