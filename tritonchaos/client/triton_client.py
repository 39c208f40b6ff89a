"""Talks to one tritonserver over HTTP, and over gRPC where asked for; returns replies, never raises for them."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from tritonchaos.client.grpc_calls import GrpcCalls
from tritonchaos.client.http_connection import Exchange, HttpConnection
from tritonchaos.client.inference_encoding import NamedTensor, decode_response, encode_request
from tritonchaos.client.model_calls import ModelCalls
from tritonchaos.errors import UsageError
from tritonchaos.observations import Answer, ModelState, NoAnswer, Reply

if TYPE_CHECKING:
    import numpy as np

# A model in one of these states is not gone. Source: Triton's model repository extension, "Index".
HELD_STATES: Final = frozenset({"READY", "LOADING", "UNLOADING"})

# Pauses between two looks at the index: an in-process model is gone in about 1 ms, a python model in about 1.2 s.
_FIRST_PAUSE_S: Final = 0.0005
_LONGEST_PAUSE_S: Final = 0.01
HOW_TO_GET_GRPC: Final = "pip install 'tritonchaos[grpc]'"
_ENDS_A_PATH: Final = re.compile(r"[\x00-\x20\x7f/?]")
_INFERENCE_HEADER_LENGTH: Final = "inference-header-content-length"


class TritonClient:
    """Calls to one tritonserver, over HTTP unless said otherwise.

    One client per thread: its connection carries one call at a time.

    Args:
        url: Base URL, "http://HOST:PORT"; or "http+unix:///PATH", a socket behind which a relay stands.
        grpc: "HOST:PORT" of the gRPC endpoint, or None.

    Raises:
        UsageError: The URL is not an http URL with a host.
    """

    def __init__(self, url: str, grpc: str | None = None) -> None:
        self.url = url
        self.grpc = grpc
        self._prefix, self._connection = _connection(url)
        self._calls: GrpcCalls | None = None

    # --- the server ---

    def live(self, deadline_s: float) -> Reply:
        """GET /v2/health/live."""
        return self._get("/v2/health/live", deadline_s)

    def ready(self, deadline_s: float) -> Reply:
        """GET /v2/health/ready; with strict readiness one failed load keeps it at 400 until that model loads well."""
        return self._get("/v2/health/ready", deadline_s)

    def server_metadata(self, deadline_s: float) -> Reply:
        """GET /v2: name, version and extensions of the server."""
        return self._get("/v2", deadline_s)

    def index(self, deadline_s: float) -> Reply:
        """POST /v2/repository/index; read it with `parse_index`."""
        return self._exchange("POST", "/v2/repository/index", deadline_s, may_repeat=True).reply

    def live_grpc(self, deadline_s: float) -> Reply | None:
        """Ask ServerLive over gRPC, on a channel of its own that is closed again.

        Returns:
            None if there is no gRPC endpoint or grpcio is not installed.
        """
        if self.grpc is None:
            return None
        try:
            calls = GrpcCalls(self.grpc)
        except ImportError:
            return None
        try:
            return calls.live(deadline_s)
        finally:
            calls.close()

    def over(self, via: str) -> ModelCalls:
        """Return whom to ask: this client itself for "http", for "grpc" one with the same calls over a channel.

        Raises:
            UsageError: There is no gRPC endpoint, or grpcio is not installed.
        """
        if via == "http":
            return self
        if self._calls is None:
            self._calls = self._open_grpc()
        return self._calls

    def _open_grpc(self) -> GrpcCalls:
        if self.grpc is None:
            raise UsageError(f"the server at {self.url} has no gRPC address", hint="give the target its `grpc`")
        try:
            return GrpcCalls(self.grpc)
        except ImportError as error:
            raise UsageError(f"gRPC cannot be used: {error}", hint=HOW_TO_GET_GRPC) from None

    # --- one model ---

    def load(
        self,
        model: str,
        deadline_s: float,
        config: str | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> Reply:
        """POST /v2/repository/models/MODEL/load.

        Args:
            config: Model configuration as JSON text, in place of config.pbtxt.
            files: Path below the model directory, such as "1/model.py" -> content; needs `config`.
        """
        parameters: dict[str, object] = {} if config is None else {"config": config}
        for path, content in (files or {}).items():
            parameters[f"file:{path}"] = base64.b64encode(content).decode()
        return self._repository(model, "load", parameters, deadline_s)

    def unload(self, model: str, deadline_s: float, unload_dependents: bool = False) -> Reply:
        """POST /v2/repository/models/MODEL/unload; it answers before the model is gone (see `wait_until_gone`)."""
        return self._repository(model, "unload", {"unload_dependents": True} if unload_dependents else {}, deadline_s)

    def model_ready(self, model: str, deadline_s: float, version: str = "") -> Reply:
        """GET /v2/models/MODEL[/versions/VERSION]/ready."""
        return self._get(f"{_model_path(model, version)}/ready", deadline_s)

    def metadata(self, model: str, deadline_s: float, version: str = "") -> Reply:
        """GET /v2/models/MODEL[/versions/VERSION]."""
        return self._get(_model_path(model, version), deadline_s)

    def config(self, model: str, deadline_s: float, version: str = "") -> Reply:
        """GET /v2/models/MODEL[/versions/VERSION]/config."""
        return self._get(f"{_model_path(model, version)}/config", deadline_s)

    def statistics(self, model: str, deadline_s: float, version: str = "") -> Reply:
        """GET /v2/models/MODEL[/versions/VERSION]/stats."""
        return self._get(f"{_model_path(model, version)}/stats", deadline_s)

    def infer(
        self,
        model: str,
        inputs: Mapping[str, np.ndarray[Any, Any]],
        outputs: Sequence[NamedTensor],
        deadline_s: float,
        version: str = "",
        datatypes: Mapping[str, str] | None = None,
    ) -> tuple[Reply, dict[str, np.ndarray[Any, Any]] | None]:
        """POST /v2/models/MODEL[/versions/VERSION]/infer with the binary tensor data extension.

        Args:
            inputs: Tensors by name, with their full shape.
            outputs: What to ask for; empty: every output.
            datatypes: Triton datatype by input where the NumPy dtype does not tell it (BF16 is carried as float32).

        Returns:
            The reply, and the tensors by name where its status is 200 (arrays that share the reply's bytes and are
            read-only). A 200 that cannot be decoded is no answer: "garbage: …".
        """
        body, header_length = encode_request(inputs, outputs, datatypes or {})
        headers = {"Content-Type": "application/octet-stream"}
        if header_length is not None:
            headers["Inference-Header-Content-Length"] = str(header_length)
        done = self._exchange("POST", f"{_model_path(model, version)}/infer", deadline_s, headers, body)
        if not isinstance(done.reply, Answer) or done.reply.status != 200:
            return done.reply, None
        try:
            return done.reply, decode_response(done.reply.body, done.headers.get(_INFERENCE_HEADER_LENGTH))
        except Exception as error:  # the body is the server's: whatever cannot be read in it is its doing
            detail = f"garbage: inference response: {type(error).__name__}: {error}"
            return NoAnswer(detail[:400], done.reply.elapsed_ns), None

    # --- anything else ---

    def request(
        self,
        method: str,
        path: str,
        deadline_s: float,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Reply:
        """Send any request, well-formed or not; the path is sent as it is."""
        return self._exchange(method, path, deadline_s, headers, body).reply

    def close(self) -> None:
        """Close all connections. Needed before SIGTERM: one open connection makes it take the whole exit timeout."""
        self._connection.close()
        taken, self._calls = self._calls, None
        if taken is not None:
            taken.close()

    def _get(self, path: str, deadline_s: float) -> Reply:
        return self._exchange("GET", path, deadline_s, may_repeat=True).reply

    def _repository(self, model: str, verb: str, parameters: Mapping[str, object], deadline_s: float) -> Reply:
        body = json.dumps({"parameters": parameters}).encode() if parameters else b""
        path = f"/v2/repository/models/{_in_path(model)}/{verb}"
        return self._exchange("POST", path, deadline_s, {"Content-Type": "application/json"}, body).reply

    def _exchange(
        self,
        method: str,
        path: str,
        deadline_s: float,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        may_repeat: bool = False,
    ) -> Exchange:
        return self._connection.exchange(
            method, f"{self._prefix}{path}", deadline_s, headers, body, may_repeat=may_repeat
        )


# --- the repository index ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GoneResult:
    """Did a model go away?

    Attributes:
        gone: It is in none of READY, LOADING, UNLOADING.
        state, reason: Of its index entry at the end; "" where there is none. While it is not gone, the state that
            holds it.
        after_ns: Time from the call of `wait_until_gone` to its end.
        no_answer: The server's last silence, if it did not answer; then `gone` is False: nothing is known.
    """

    gone: bool
    state: str
    reason: str
    after_ns: int
    no_answer: NoAnswer | None = None


def parse_index(reply: Reply) -> tuple[ModelState, ...] | None:
    """Read the repository index; None if the reply is not a good index."""
    if not isinstance(reply, Answer) or reply.status != 200:
        return None
    try:
        entries = json.loads(reply.body)
        return tuple(
            ModelState(
                name=str(entry["name"]),
                version=str(entry.get("version", "")),
                state=str(entry.get("state", "")),
                reason=str(entry.get("reason", "")),
            )
            for entry in entries
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):  # the last: nested without an end
        return None


def wait_until_gone(client: TritonClient, model: str, deadline_s: float) -> GoneResult:
    """Poll the repository index until a model is in none of READY, LOADING and UNLOADING.

    A model that was loaded from `file:` content has no index entry while it is served (seen on 2.51), so a missing
    entry counts only if the model's ready endpoint does not say 200. Ends early when the server refuses connections.
    """
    start_ns = time.monotonic_ns()
    end_ns = start_ns + round(deadline_s * 1e9)
    pause_s = _FIRST_PAUSE_S
    while True:
        left_s = (end_ns - time.monotonic_ns()) / 1e9
        found = _look_once(client, model, max(left_s, _LONGEST_PAUSE_S), start_ns)
        has_server = found.no_answer is None or not found.no_answer.reason.startswith("refused")
        if found.gone or not has_server or time.monotonic_ns() + pause_s * 1e9 >= end_ns:
            return found
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)


def _look_once(client: TritonClient, model: str, deadline_s: float, start_ns: int) -> GoneResult:
    reply = client.index(deadline_s)
    index = parse_index(reply)
    if index is None:
        return GoneResult(False, "", "", time.monotonic_ns() - start_ns, _silence(reply))
    entries = sorted(
        (entry for entry in index if entry.name == model), key=lambda entry: entry.state not in HELD_STATES
    )
    if entries:
        gone = entries[0].state not in HELD_STATES
        return GoneResult(gone, entries[0].state, entries[0].reason, time.monotonic_ns() - start_ns)
    reply = client.model_ready(model, deadline_s)
    if isinstance(reply, NoAnswer):
        return GoneResult(False, "", "", time.monotonic_ns() - start_ns, reply)
    gone = reply.status != 200
    return GoneResult(gone, "" if gone else "READY", "", time.monotonic_ns() - start_ns)


def _silence(reply: Reply) -> NoAnswer:
    if isinstance(reply, NoAnswer):
        return reply
    return NoAnswer(f"garbage: status {reply.status}, not a repository index", reply.elapsed_ns)


# --- details ----------------------------------------------------------------------------------------


def _connection(url: str) -> tuple[str, HttpConnection]:
    """Prefix of all paths, and the connection to a base URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError as error:  # a port beyond 65535, a bracket that does not close
        raise UsageError(f"found server URL {url!r}, expected http://HOST:PORT ({error})") from None
    if parts.username is not None:
        raise UsageError("found a user in the server URL, expected http://HOST:PORT: nobody is logged in as")
    if parts.scheme == "http+unix" and not parts.netloc and parts.path:
        return "", HttpConnection("localhost", 80, unix_path=unquote(parts.path))
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"found server URL {url!r}, expected http://HOST:PORT")
    return parts.path.rstrip("/"), HttpConnection(parts.hostname, port)


def _model_path(model: str, version: str) -> str:
    path = f"/v2/models/{_in_path(model)}"
    return f"{path}/versions/{_in_path(version)}" if version else path


def _in_path(name: str) -> str:
    """A name as part of a path, as it is but for what would end it: Triton (seen on 2.51) decodes no %20."""
    return _ENDS_A_PATH.sub(lambda found: quote(found[0], safe=""), name)
