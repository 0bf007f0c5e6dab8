"""URLs of http and https."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit


def http_parts(url: str) -> SplitResult | None:
    """The parts of a URL of http or https with a host and a valid port; None of any other text.

    >>> http_parts("http://a:8081/x").port, http_parts("http://a:b"), http_parts("a:8081")
    (8081, None, None)
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname else None
