"""gRPC calls in the words of HTTP, against a gRPC server that says what it is told to."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tritonchaos.client import TritonClient
from tritonchaos.client.grpc_calls import GrpcCalls, reply_of
from tritonchaos.errors import UsageError
from tritonchaos.expectation import error_text
from tritonchaos.observations import Answer, NoAnswer

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")


@pytest.mark.parametrize(
    ("code", "text", "status"),
    [
        ("INTERNAL", "failed to load 'm', failed to poll from model repository", 500),
        ("NOT_FOUND", "Request for unknown model: 'm' is not found", 404),
        ("UNAVAILABLE", "Server is stopping, scheduler for 'm' is not ready", 503),
        ("UNAVAILABLE", "Request timeout expired", 503),
        ("UNIMPLEMENTED", "unsupported", 501),
        ("INVALID_ARGUMENT", "load failed for model 'm': version 1 is at UNAVAILABLE state", 400),
        ("ALREADY_EXISTS", "shared memory region", 400),
        ("UNKNOWN", "anything", 400),
        ("CANCELLED", "request was cancelled by the model", 400),
    ],
)
def test_an_error_of_the_server_has_the_status_and_the_text_that_it_has_over_http(code: str, text: str, status: int):
    reply = reply_of(f"StatusCode.{code}", text, 7)
    assert isinstance(reply, Answer)
    assert (reply.status, error_text(reply), reply.elapsed_ns) == (status, text, 7)


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        ("DEADLINE_EXCEEDED", "Deadline Exceeded", "deadline"),
        ("UNAVAILABLE", "Stream removed (Socket closed)", "reset: Stream removed (Socket closed)"),
        ("UNAVAILABLE", "recvmsg:Connection reset by peer", "reset: recvmsg:Connection reset by peer"),
        ("INTERNAL", "Received RST_STREAM with error code 2", "reset: Received RST_STREAM with error code 2"),
        ("UNAVAILABLE", "failed to connect to all addresses; last error: x", "refused: failed to connect"),
        ("CANCELLED", "Stream removed (Channel closed!)", "closed"),
        ("INTERNAL", "Exception deserializing response!", "garbage: Exception deserializing"),
    ],
)
def test_what_the_library_says_when_nobody_answered_is_no_answer(code: str, text: str, reason: str):
    reply = reply_of(f"StatusCode.{code}", text, 7)
    assert isinstance(reply, NoAnswer)
    assert reply.reason.startswith(reason)


class Server:
    """Answers the calls of Triton's gRPC service as a test says."""

    def __init__(self) -> None:
        from tritonclient.grpc import service_pb2, service_pb2_grpc

        self.seen: list[Any] = []
        self.waiting = threading.Event()
        self.go_on = threading.Event()
        told = self

        class Servicer(service_pb2_grpc.GRPCInferenceServiceServicer):
            def RepositoryModelLoad(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
                told.seen.append(request)
                if request.model_name == "slow":
                    told.waiting.set()
                    told.go_on.wait(20)
                if request.model_name == "missing":
                    context.abort(grpc.StatusCode.INTERNAL, "failed to poll")
                return service_pb2.RepositoryModelLoadResponse()

            def RepositoryModelUnload(self, request: Any, context: Any) -> Any:  # noqa: N802
                told.seen.append(request)
                return service_pb2.RepositoryModelUnloadResponse()

            def ModelInfer(self, request: Any, context: Any) -> Any:  # noqa: N802
                response = service_pb2.ModelInferResponse(model_name=request.model_name, model_version="3")
                shape = request.inputs[0].shape
                response.outputs.add(name="OUT", datatype="FP32", shape=shape if request.model_name == "m" else [9])
                response.raw_output_contents.append(request.raw_input_contents[0])
                return response

        self._server = grpc.server(ThreadPoolExecutor(4))
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Servicer(), self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def stop(self) -> None:
        self.go_on.set()
        self._server.stop(0).wait(10)


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.stop()


@pytest.fixture
def calls(server: Server) -> Iterator[GrpcCalls]:
    opened = GrpcCalls(server.address)
    yield opened
    opened.close()


def test_config_and_files_are_sent_as_over_http(server: Server, calls: GrpcCalls):
    assert isinstance(calls.load("m", 10, config="{}", files={"1/model.py": b"\x00x"}), Answer)
    assert server.seen[0].parameters["config"].string_param == "{}"
    assert server.seen[0].parameters["file:1/model.py"].bytes_param == b"\x00x"
    assert isinstance(calls.unload("m", 10, unload_dependents=True), Answer)
    assert server.seen[1].parameters["unload_dependents"].bool_param


def test_a_refusal_is_an_answer_and_a_passed_deadline_is_none(server: Server, calls: GrpcCalls):
    refused = calls.load("missing", 10)
    assert isinstance(refused, Answer)
    assert (refused.status, refused.body) == (500, b'{"error": "failed to poll"}')
    late = calls.load("slow", 0.1)
    assert isinstance(late, NoAnswer)
    assert late.reason == "deadline"
    assert late.elapsed_ns >= 100_000_000


def test_an_inference_comes_back_with_who_answered(calls: GrpcCalls):
    values = np.array([[1.5, 2.5]], np.float32)
    reply, outputs = calls.infer("m", {"IN": values}, (), 10)
    assert isinstance(reply, Answer)
    assert json.loads(reply.body) == {"model_name": "m", "model_version": "3"}
    assert outputs is not None
    np.testing.assert_array_equal(outputs["OUT"], values)


def test_outputs_that_cannot_be_read_are_garbage(calls: GrpcCalls):
    reply, outputs = calls.infer("wrong shape", {"IN": np.zeros(2, np.float32)}, (), 10)
    assert isinstance(reply, NoAnswer)
    assert reply.reason.startswith("garbage: inference response")
    assert outputs is None


def test_closing_ends_a_call_that_waits_and_the_next_call_opens_anew(server: Server):
    client = TritonClient("http://127.0.0.1:9", server.address)
    replies: list[Any] = []
    waiting = threading.Thread(target=lambda: replies.append(client.over("grpc").load("slow", 20)))
    waiting.start()
    assert server.waiting.wait(10)
    began = time.monotonic()
    client.close()
    waiting.join(20)
    assert not waiting.is_alive() and time.monotonic() - began < 15
    assert isinstance(replies[0], NoAnswer) and replies[0].reason == "closed"
    assert isinstance(client.over("grpc").load("m", 10), Answer)
    client.close()


def test_a_port_where_nobody_listens_refuses():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    calls = GrpcCalls(f"127.0.0.1:{port}")
    reply = calls.load("m", 10)
    calls.close()
    assert isinstance(reply, NoAnswer)
    assert reply.reason.startswith("refused")


def test_without_an_address_nobody_can_be_asked():
    with pytest.raises(UsageError, match="no gRPC address"):
        TritonClient("http://127.0.0.1:9").over("grpc")
