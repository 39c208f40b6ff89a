"""The ways by which our requests reach a server in a container: a sure one, and shorter ones that may not be there."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tritonchaos.containers.launching import HOST, Ports
from tritonchaos.containers.relay import GRPC, HANDED_OVER, HTTP, Relay

# On this machine an address answers at once, or not at all: then the packets may go anywhere.
_CONNECT_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class WayIn:
    """A way to the server.

    Attributes:
        url: HTTP base URL.
        grpc: gRPC address.
        name: What the report calls it.
    """

    url: str
    grpc: str
    name: str


def published(network: str, ports: Ports) -> WayIn:
    """Through the ports of this machine's 127.0.0.1."""
    name = "the network of this machine" if network == HOST else "the published port, through the engine's proxy"
    return WayIn(f"http://127.0.0.1:{ports.published_http}", f"127.0.0.1:{ports.published_grpc}", name)


def relayed(relay: Relay) -> WayIn:
    """Through the relay, which can be stopped."""
    return WayIn(f"http+unix://{relay.path(HTTP)}", f"unix:{relay.path(GRPC)}", "a relay beside the container")


def handed_over(relay: Relay) -> WayIn:
    """Over connections that the relay makes and hands over; gRPC's library makes its own, and stays with the relay."""
    name = "connections that a relay beside the container made and handed over"
    return WayIn(f"http+unix://{relay.path(HANDED_OVER)}", f"unix:{relay.path(GRPC)}", name)


def own_addresses(inspected: Mapping[str, Any], ports: Ports) -> Iterator[WayIn]:
    """Yield the container's own addresses that can be reached from here, past the proxy of the published ports.

    They can where the engine's bridge is in our own network, which that of a rootless engine is not. Who answers there
    must be asked for its id: another engine may have given the same address to another container.

    Args:
        inspected: What the engine says of the container.
    """
    networks = inspected.get("NetworkSettings", {}).get("Networks") or {}
    for address in filter(None, (network.get("IPAddress") for network in networks.values())):
        if _answers(address, ports.http):
            yield WayIn(f"http://{address}:{ports.http}", f"{address}:{ports.grpc}", "the container's own address")


def _answers(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), _CONNECT_S).close()
    except OSError:
        return False
    return True
