"""The container's own addresses, as engines tell them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tritonchaos.containers.launching import Ports
from tritonchaos.containers.ways_in import own_addresses


@pytest.fixture
def port() -> Iterator[int]:
    """A port on which something listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def inspected(*addresses: str | None) -> dict[str, Any]:
    networks = {f"network-{number}": {"IPAddress": address} for number, address in enumerate(addresses)}
    return {"NetworkSettings": {"Networks": networks}}


def test_an_address_that_answers_is_a_way(port: int) -> None:
    (way,) = own_addresses(inspected("", None, "127.0.0.1"), Ports(port, 8001))
    assert (way.url, way.grpc) == (f"http://127.0.0.1:{port}", "127.0.0.1:8001")


def test_an_address_behind_which_nothing_is_heard_is_none(port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        silent = other.getsockname()[1]
    assert list(own_addresses(inspected("127.0.0.1"), Ports(silent, 8001))) == []


@pytest.mark.parametrize("told", [{}, {"NetworkSettings": {}}, {"NetworkSettings": {"Networks": None}}, inspected()])
def test_a_container_without_an_address_has_none(told: dict[str, Any]) -> None:
    assert list(own_addresses(told, Ports(8000, 8001))) == []
