"""The same calls over gRPC, answered in the words of HTTP: who judges a reply need not know the protocol."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tritonchaos.client.inference_encoding import NamedTensor
from tritonchaos.observations import Answer, NoAnswer, Reply

if TYPE_CHECKING:
    import numpy as np

# HTTP status that Triton's HTTP server gives for the error that its gRPC server reports with this code; 400 for others.
# Source: `HttpCodeFromError` and `GrpcStatusUtil` of the server.
_STATUS: Final[Mapping[str, int]] = {"INTERNAL": 500, "NOT_FOUND": 404, "UNAVAILABLE": 503, "UNIMPLEMENTED": 501}
_OTHER_STATUS: Final = 400

# UNAVAILABLE is also what the gRPC library says when nobody answered. These are its words, which Triton never uses
# (seen with grpcio 1.85, and what older ones say).
_NOT_CONNECTED: Final = re.compile(
    r"failed to connect|connection refused|DNS resolution|name resolution", re.IGNORECASE
)
_BROKEN: Final = re.compile(
    r"^stream removed|socket closed|connection (reset|closed|timed out|aborted)|broken pipe|goaway|rst_stream"
    r"|end of file|transport closed|endpoint (read|write)|(ping|keepalive watchdog) timeout|recvmsg|sendmsg",
    re.IGNORECASE,
)
_CLOSED_HERE: Final = re.compile(r"channel closed|closed channel", re.IGNORECASE)
_UNREADABLE: Final = "Exception deserializing response"
_UNWRITABLE: Final = "Exception serializing request"

# One channel is one connection, as it is over HTTP: without the first option channels to one address share one. A call
# is never sent twice, and a server that comes back is found at once.
_CHANNEL: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
)

_Result = TypeVar("_Result")


class GrpcCalls:
    """Load, unload and inference over gRPC: see the methods of the same names of `TritonClient`.

    Errors of the server become answers with the HTTP status of the same error and {"error": text}. `elapsed_ns` also
    holds what the gRPC library takes to pack the request and to unpack the response.

    Args:
        address: "HOST:PORT".
    """

    def __init__(self, address: str) -> None:
        # Imported here: it takes 0.2 s, and only those who ask over gRPC need it.
        import tritonclient.grpc as triton_grpc

        self._grpc = triton_grpc
        self._client = triton_grpc.InferenceServerClient(address, channel_args=list(_CHANNEL))

    def live(self, deadline_s: float) -> Reply:
        """ServerLive."""
        reply, is_live = self._call(lambda: self._client.is_server_live(client_timeout=deadline_s))
        return Answer(400, b"", reply.elapsed_ns) if is_live is False else reply

    def load(
        self,
        model: str,
        deadline_s: float,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> Reply:
        """RepositoryModelLoad."""
        sent = {f"file:{path}": content for path, content in (files or {}).items()}
        reply, _ = self._call(
            lambda: self._client.load_model(model, config=config, files=sent or None, client_timeout=deadline_s)
        )
        return reply

    def unload(self, model: str, deadline_s: float, unload_dependents: bool = False) -> Reply:
        """RepositoryModelUnload."""
        reply, _ = self._call(
            lambda: self._client.unload_model(model, unload_dependents=unload_dependents, client_timeout=deadline_s)
        )
        return reply

    def infer(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray[Any, Any]],
        outputs: Sequence[NamedTensor],
        deadline_s: float,
        version: str = "",
        datatypes: Mapping[str, str] | None = None,
    ) -> tuple[Reply, dict[str, np.ndarray[Any, Any]] | None]:
        """ModelInfer; the body of a good answer names the model and the version that answered, as it does over HTTP."""
        tensors = [self._tensor(name, array, datatypes or {}) for name, array in inputs.items()]
        wanted = [self._grpc.InferRequestedOutput(output.name) for output in outputs]
        reply, result = self._call(
            lambda: self._client.infer(
                model, tensors, model_version=version, outputs=wanted or None, client_timeout=deadline_s
            )
        )
        if result is None:
            return reply, None
        try:
            response = result.get_response()
            arrays = {output.name: result.as_numpy(output.name) for output in response.outputs}
            front = {"model_name": response.model_name, "model_version": response.model_version}
        except Exception as error:  # the response is the server's: whatever cannot be read in it is its doing
            detail = f"garbage: inference response: {type(error).__name__}: {error}"
            return NoAnswer(detail[:400], reply.elapsed_ns), None
        return Answer(200, json.dumps(front).encode(), reply.elapsed_ns), arrays

    def close(self) -> None:
        """Close the channel; a call that waits in another thread ends "closed"."""
        with contextlib.suppress(ValueError):
            self._client.close()

    def _tensor(self, name: str, array: np.ndarray[Any, Any], datatypes: Mapping[str, str]) -> Any:
        from tritonclient.utils import np_to_triton_dtype

        tensor = self._grpc.InferInput(name, list(array.shape), datatypes.get(name) or np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array)
        return tensor

    def _call(self, call: Callable[[], _Result]) -> tuple[Reply, _Result | None]:
        start_ns = time.monotonic_ns()
        try:
            result = call()
        except self._grpc.InferenceServerException as error:
            elapsed_ns = time.monotonic_ns() - start_ns
            if error.status() is None:  # said by the client library of what it was given, not by the server
                raise
            return reply_of(str(error.status()), error.message() or "", elapsed_ns), None
        except ValueError as error:
            elapsed_ns = time.monotonic_ns() - start_ns
            if _CLOSED_HERE.search(str(error)) is None:
                raise
            return NoAnswer("closed", elapsed_ns), None
        return Answer(200, b"", time.monotonic_ns() - start_ns), result


def reply_of(code: str, text: str, elapsed_ns: int) -> Reply:
    """Return what a failed gRPC call is in the words of HTTP.

    Args:
        code: Status code as grpcio prints it, "StatusCode.NOT_FOUND".
        text: Its details.
    """
    name = code.rpartition(".")[2]
    if name == "DEADLINE_EXCEEDED":  # Triton has no error of that code: it is the end of our own time
        return NoAnswer("deadline", elapsed_ns)
    if text.startswith((_UNREADABLE, _UNWRITABLE)):
        return NoAnswer(f"garbage: {text[:200]}", elapsed_ns)
    if name == "CANCELLED" and _CLOSED_HERE.search(text):
        return NoAnswer("closed", elapsed_ns)
    if name == "UNAVAILABLE" and _NOT_CONNECTED.search(text):
        return NoAnswer(f"refused: {text[:200]}", elapsed_ns)
    if name in ("UNAVAILABLE", "UNKNOWN", "INTERNAL", "CANCELLED") and _BROKEN.search(text):
        return NoAnswer(f"reset: {text[:200]}", elapsed_ns)
    return Answer(_STATUS.get(name, _OTHER_STATUS), json.dumps({"error": text}).encode(), elapsed_ns)
