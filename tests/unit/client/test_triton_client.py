"""What a real tritonserver cannot be made to answer: garbage, silence, closed and dribbling connections."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tritonchaos.client import GoneResult, TritonClient, parse_index, wait_until_gone
from tritonchaos.errors import UsageError
from tritonchaos.observations import Answer, ModelState, NoAnswer, Reply

Script = Callable[[socket.socket], None]


class FakeServer:
    """Accepts connections one after the other and runs one script on each; the last one again for further ones."""

    def __init__(self, *scripts: Script) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self._scripts = scripts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.done = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                script = self._scripts[min(self.connections, len(self._scripts) - 1)]
                self.connections += 1
                with contextlib.suppress(OSError):  # the client has gone
                    script(connection)

    def close(self) -> None:
        self.done.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


Serve = Callable[..., tuple[TritonClient, FakeServer]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    started: list[tuple[TritonClient, FakeServer]] = []

    def start(*scripts: Script) -> tuple[TritonClient, FakeServer]:
        server = FakeServer(*scripts)
        client = TritonClient(f"http://127.0.0.1:{server.port}")
        started.append((client, server))
        return client, server

    yield start
    for client, server in started:
        client.close()
        server.close()


def receive_request(connection: socket.socket) -> bytes:
    """Read one whole request, its body too."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if not part:
            raise ConnectionResetError
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def answering(*responses: bytes) -> Script:
    """One response to each request, then close."""

    def script(connection: socket.socket) -> None:
        for response in responses:
            receive_request(connection)
            connection.sendall(response)

    return script


def response(body: bytes, status: str = "200 OK", extra: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode() + body


def reason(reply: Reply) -> str:
    assert isinstance(reply, NoAnswer)
    assert reply.elapsed_ns > 0
    return reply.reason


# --- no answer -----------------------------------------------------------------------------------


def test_refused_when_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert reason(TritonClient(f"http://127.0.0.1:{port}").live(5)) == "refused"


def test_closed_before_an_answer(serve: Serve) -> None:
    client, server = serve(receive_request)
    assert reason(client.load("m", 5)) == "closed"
    assert server.connections == 1


def test_closed_in_the_body(serve: Serve) -> None:
    client, _ = serve(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789"))
    assert reason(client.index(5)) == "closed: after 10 of 100 body bytes"


def test_reset(serve: Serve) -> None:
    def script(connection: socket.socket) -> None:
        receive_request(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    client, _ = serve(script)
    assert reason(client.unload("m", 5)) == "reset"


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"no line end and then the end",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n",
        b"x" * 200_000,
    ],
)
def test_garbage(serve: Serve, sent: bytes) -> None:
    client, _ = serve(answering(sent))
    assert reason(client.live(5)).startswith("garbage: ")


def test_silence_ends_at_the_deadline(serve: Serve) -> None:
    waiting = threading.Event()
    client, _ = serve(lambda connection: (receive_request(connection), waiting.wait(30)))
    reply = client.load("m", 0.1)
    waiting.set()
    assert reason(reply) == "deadline"
    assert reply.elapsed_ns >= 90_000_000


def test_a_dribbling_body_ends_at_the_deadline(serve: Serve) -> None:
    stop = threading.Event()

    def script(connection: socket.socket) -> None:
        receive_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        # Each byte comes well before a time-out per read would end the call.
        while not stop.wait(0.02):
            connection.sendall(b"x")

    client, _ = serve(script)
    reply = client.live(0.2)
    stop.set()
    assert reason(reply) == "deadline"


def test_a_body_that_is_never_taken_ends_at_the_deadline(
    serve: Serve,
) -> None:
    stop = threading.Event()
    client, _ = serve(lambda _: stop.wait(30))
    reply = client.request("POST", "/v2", 0.2, body=bytes(64 << 20))
    stop.set()
    assert reason(reply) == "deadline"


def test_a_spent_deadline_sends_nothing(serve: Serve) -> None:
    client, _ = serve(answering(response(b"")))
    assert reason(client.live(0)) == "deadline"


def test_close_from_another_thread_ends_a_waiting_call(
    serve: Serve,
) -> None:
    stop = threading.Event()

    def script(connection: socket.socket) -> None:
        receive_request(connection)
        closer = threading.Timer(0.05, client.close)
        closer.start()
        stop.wait(30)
        closer.join()

    client, _ = serve(script)
    reply = client.load("m", 30)
    stop.set()
    assert reason(reply).startswith("closed")


# --- answers -------------------------------------------------------------------------------------


def test_one_connection_carries_many_calls(serve: Serve) -> None:
    client, server = serve(answering(response(b"a"), response(b"b", "400 Bad Request"), response(b"c")))
    replies = [client.load("m", 5), client.load("m", 5), client.load("m", 5)]
    assert [(reply.status, reply.body) for reply in replies if isinstance(reply, Answer)] == [
        (200, b"a"),
        (400, b"b"),
        (200, b"c"),
    ]
    assert server.connections == 1


def test_a_connection_known_to_be_closed_is_opened_again(
    serve: Serve,
) -> None:
    client, _ = serve(answering(response(b"1")), answering(response(b"2")))
    assert isinstance(client.load("m", 5), Answer)
    server_side_is_closed = client._connection._socket
    assert server_side_is_closed is not None
    server_side_is_closed.settimeout(5)
    assert server_side_is_closed.recv(1, socket.MSG_PEEK) == b""
    reply = client.load("m", 5)
    assert isinstance(reply, Answer)
    assert reply.body == b"2"


def test_only_harmless_calls_are_sent_again(serve: Serve) -> None:
    def answer_once_then_close(connection: socket.socket) -> None:
        receive_request(connection)
        connection.sendall(response(b"first"))
        receive_request(connection)

    client, server = serve(answer_once_then_close, answer_once_then_close)
    assert isinstance(client.live(5), Answer)
    again = client.live(5)
    assert isinstance(again, Answer)
    assert again.body == b"first"
    assert server.connections == 2
    assert reason(client.load("m", 5)) == "closed"
    assert server.connections == 2


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nA: b\r\n\r\n",
            b"abcde",
        ),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil closed", b"until closed"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", b"ok"),
    ],
)
def test_forms_of_a_response(serve: Serve, sent: bytes, body: bytes) -> None:
    client, _ = serve(answering(sent))
    reply = client.live(5)
    assert isinstance(reply, Answer)
    assert reply.body == body


def test_a_refusal_sent_before_the_body_was_read_is_an_answer(
    serve: Serve,
) -> None:
    def script(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(response(b"too large", "413 Payload Too Large", "Connection: close\r\n"))
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            pass

    client, _ = serve(script)
    reply = client.request("POST", "/v2", 10, body=bytes(8 << 20))
    assert isinstance(reply, Answer)
    assert (reply.status, reply.body) == (413, b"too large")


def test_what_is_sent(serve: Serve) -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        while True:
            seen.append(receive_request(connection))
            connection.sendall(response(b"{}"))

    client, server = serve(script)
    client.load("a/b ü", 5, config="{}", files={"1/model.py": b"\0"})
    client.unload("m", 5, unload_dependents=True)
    client.load("m", 5)
    client.statistics("m", 5, version="3")
    lines = [request.split(b"\r\n", 1)[0].decode() for request in seen]
    assert lines == [
        "POST /v2/repository/models/a%2Fb%20ü/load HTTP/1.1",
        "POST /v2/repository/models/m/unload HTTP/1.1",
        "POST /v2/repository/models/m/load HTTP/1.1",
        "GET /v2/models/m/versions/3/stats HTTP/1.1",
    ]
    bodies = [request.partition(b"\r\n\r\n")[2] for request in seen]
    assert json.loads(bodies[0]) == {"parameters": {"config": "{}", "file:1/model.py": "AA=="}}
    assert json.loads(bodies[1]) == {"parameters": {"unload_dependents": True}}
    assert bodies[2:] == [b"", b""]
    assert f"Host: 127.0.0.1:{server.port}".encode() in seen[0]


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "https://host:8000",
        "http://",
        "http://host:99999",
        "http://host:x",
        "http://[::1",
        "http://a:b@host:1",
    ],
)
def test_a_url_that_is_not_http_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected http://HOST:PORT"):
        TritonClient(url)


# --- what the body says --------------------------------------------------------------------------


def test_an_index_is_parsed() -> None:
    body = b'[{"name":"a","version":"1","state":"READY"},{"name":"b","state":"UNAVAILABLE","reason":"x"},{"name":"c"}]'
    assert parse_index(Answer(200, body, 1)) == (
        ModelState("a", "1", "READY", ""),
        ModelState("b", "", "UNAVAILABLE", "x"),
        ModelState("c", "", "", ""),
    )


@pytest.mark.parametrize(
    "reply",
    [
        NoAnswer("deadline", 1),
        Answer(500, b"[]", 1),
        Answer(200, b"[", 1),
        Answer(200, b"[1]", 1),
        Answer(200, b"7", 1),
    ],
)
def test_what_is_not_an_index_is_none(reply: Reply) -> None:
    assert parse_index(reply) is None


def test_a_good_status_with_a_body_that_is_no_inference_is_no_answer(
    serve: Serve,
) -> None:
    client, _ = serve(answering(response(b"{]", extra="Inference-Header-Content-Length: 2\r\n")))
    reply, outputs = client.infer("m", {"INPUT": np.zeros([2], np.float32)}, [], 5)
    assert reason(reply).startswith("garbage: inference response: ")
    assert outputs is None


def index_of(state: str) -> bytes:
    return response(json.dumps([{"name": "m", "version": "1", "state": state}]).encode())


def test_gone_is_waited_for(serve: Serve) -> None:
    client, _ = serve(answering(index_of("READY"), index_of("UNLOADING"), index_of("UNAVAILABLE")))
    result = wait_until_gone(client, "m", 10)
    assert (result.gone, result.state, result.no_answer) == (True, "UNAVAILABLE", None)


def test_one_version_that_stays_holds_the_model(serve: Serve) -> None:
    entries = [
        {"name": "m", "version": "1", "state": "UNAVAILABLE"},
        {"name": "m", "version": "2", "state": "UNLOADING"},
    ]
    client, _ = serve(answering(*[response(json.dumps(entries).encode())] * 1000))
    result = wait_until_gone(client, "m", 0.05)
    assert (result.gone, result.state) == (False, "UNLOADING")


@pytest.mark.parametrize(("status", "gone"), [("400 Bad Request", True), ("200 OK", False)])
def test_without_an_index_entry_the_ready_endpoint_decides(serve: Serve, status: str, gone: bool) -> None:
    client, _ = serve(answering(*[response(b"[]"), response(b"", status)] * 1000))
    assert wait_until_gone(client, "m", 0.05).gone is gone


def test_a_server_that_has_gone_says_nothing_of_the_model() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    result = wait_until_gone(TritonClient(f"http://127.0.0.1:{port}"), "m", 30)
    assert isinstance(result, GoneResult)
    assert (result.gone, result.no_answer and result.no_answer.reason) == (False, "refused")
