"""Waits until a server that was just started is live, and sees that it is the one that was meant."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Final

from tritonchaos.client.triton_client import TritonClient
from tritonchaos.observations import Answer, JsonValue, Reply

_CALL_S: Final = 2.0
_PAUSE_S: Final = 0.02


def wait_until_live(url: str, server_id: str, deadline_s: float, look: Callable[[], None]) -> str | None:
    """Ask until the server with an id answers that it is live.

    Another server may have taken the port before ours could: the id tells.

    Args:
        server_id: What the server was given with --id.
        look: Called between two questions; raises what ends the waiting, such as that the server has ended.

    Returns:
        Triton's version; None if it was not live in time.
    """
    client = TritonClient(url)
    end = time.monotonic() + deadline_s
    try:
        while True:
            live = client.live(_CALL_S)
            if isinstance(live, Answer) and live.status == 200:
                told = server_metadata(client.server_metadata(_CALL_S))
                if told.get("name") == server_id:
                    return str(told.get("version", ""))
            look()
            if time.monotonic() >= end:
                return None
            time.sleep(_PAUSE_S)
    finally:
        client.close()


def server_metadata(reply: Reply) -> Mapping[str, JsonValue]:
    """What a server says of itself; {} where it does not."""
    try:
        told = json.loads(reply.body) if isinstance(reply, Answer) else {}
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
