"""Who may talk to the running app."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest


def socket_status(url: str, **headers: str) -> int:
    """The HTTP status of asking for the app's WebSocket; 101 is a yes."""
    port = urlsplit(url).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    asked = {
        "Host": f"127.0.0.1:{port}",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        **headers,
    }
    try:
        connection.request("GET", "/_stcore/stream", headers=asked)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 101),
        ({"Origin": "http://evil.example"}, 403),
        # a page elsewhere whose name was made to point at this machine
        ({"Host": "evil.example:80", "Origin": "http://evil.example:80"}, 403),
    ],
)
def test_only_pages_of_this_machine_reach_the_app(app: Any, headers: dict[str, str], status: int) -> None:
    assert socket_status(app.url, **headers) == status


def test_the_app_opens_and_asks_no_other_host(app: Any, visit: Callable[..., Any], watch: Any) -> None:
    visit(app)
    assert len(watch.requests) > 5
    assert any(url.startswith("ws://127.0.0.1") for url in watch.requests)
    assert watch.foreign() == []
    assert watch.page_errors == []


def test_the_server_prints_its_address_and_no_traceback(app: Any, visit: Callable[..., Any]) -> None:
    visit(app)
    assert f"GRAFT Lab: {app.url}" in app.output()
    assert "Traceback" not in app.output()
