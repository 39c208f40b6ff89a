"""One tritonserver over HTTP, and over gRPC where a call asks for it."""

from __future__ import annotations

from tritonchaos.client.model_calls import ModelCalls
from tritonchaos.client.starting import wait_until_live
from tritonchaos.client.triton_client import (
    HELD_STATES,
    HOW_TO_GET_GRPC,
    GoneResult,
    TritonClient,
    parse_index,
    wait_until_gone,
)

__all__ = [
    "HELD_STATES",
    "HOW_TO_GET_GRPC",
    "GoneResult",
    "ModelCalls",
    "TritonClient",
    "parse_index",
    "wait_until_gone",
    "wait_until_live",
]
