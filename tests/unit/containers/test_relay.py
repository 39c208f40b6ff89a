"""The relay, with a server on 127.0.0.1 of this machine: what comes through it is told as it would be without it."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.local_server import wait_for
from tritonchaos.client.http_connection import HttpConnection
from tritonchaos.containers.relay import relay_program
from tritonchaos.observations import Answer, NoAnswer

SHORT = b"HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\nabc"
Answering = Callable[[socket.socket], None]


class Listening:
    """A TCP server that treats each connection in one way."""

    def __init__(self, answering: Answering) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._answering = answering
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._answering(connection)

    def close(self) -> None:
        # Closing alone would leave the thread in accept, and the port open.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def relayed(tmp_path: Path) -> Iterator[Callable[[int], HttpConnection]]:
    """Makes a connection to a port through a relay."""
    started: list[subprocess.Popen[bytes]] = []
    folder = os.open(tmp_path, os.O_PATH)
    path = f"/proc/self/fd/{folder}/http"

    def to(port: int) -> HttpConnection:
        started.append(subprocess.Popen([relay_program(), str(tmp_path), f"http={port}!"]))
        assert wait_for((tmp_path / "http").is_socket)
        return HttpConnection("localhost", port, unix_path=path)

    yield to
    for process in started:
        process.terminate()
        assert process.wait(10) == 0
    os.close(folder)


def read_request(connection: socket.socket) -> bytes:
    """Read until a request's head is there, and the body that it says."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += connection.recv(65536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length")), 0)
    while len(body) < length:
        body += connection.recv(1 << 20)
    return body


def test_status_and_body_of_any_size_come_through_both_ways(relayed: Callable[[int], HttpConnection]) -> None:
    def echo(connection: socket.socket) -> None:
        for _ in range(2):
            body = read_request(connection)
            connection.sendall(b"HTTP/1.1 418 x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    server = Listening(echo)
    connection = relayed(server.port)
    body = os.urandom(20 << 20)
    for sent in (body, b"again, over the same connection"):
        reply = connection.exchange("POST", "/", 60, body=sent).reply
        assert isinstance(reply, Answer)
        assert (reply.status, reply.body == sent) == (418, True)
    server.close()


@pytest.mark.parametrize(
    ("answering", "reason"),
    [
        (lambda connection: read_request(connection), "closed"),
        (lambda connection: connection.sendall(b"not HTTP\r\n"), "garbage: status line"),
        (
            lambda connection: connection.sendall(b"HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\nabc"),
            "closed: after 3 of 9",
        ),
        (lambda connection: (read_request(connection), connection.recv(1)), "deadline"),
    ],
)
def test_silence_and_garbage_keep_their_names(
    relayed: Callable[[int], HttpConnection], answering: Answering, reason: str
) -> None:
    server = Listening(answering)
    reply = relayed(server.port).exchange("POST", "/", 1, body=b"x").reply
    assert isinstance(reply, NoAnswer)
    assert reply.reason.startswith(reason)
    server.close()


def test_a_refused_connection_is_told_from_a_closed_one(relayed: Callable[[int], HttpConnection]) -> None:
    server = Listening(lambda connection: None)
    server.close()
    connection = relayed(server.port)
    reply = connection.exchange("GET", "/", 10).reply
    assert isinstance(reply, NoAnswer)
    assert reply.reason == "refused"


def test_without_a_relay_the_connection_is_refused(tmp_path: Path) -> None:
    reply = HttpConnection("localhost", 80, unix_path=str(tmp_path / "absent")).exchange("GET", "/", 10).reply
    assert isinstance(reply, NoAnswer)
    assert reply.reason == "refused"


def test_many_connections_do_not_hinder_each_other(relayed: Callable[[int], HttpConnection]) -> None:
    held = threading.Event()

    def serve(connection: socket.socket) -> None:
        read_request(connection)
        threading.Thread(target=answer_later, args=(connection.dup(),), daemon=True).start()

    def answer_later(connection: socket.socket) -> None:
        with connection:
            if first.is_set():
                connection.sendall(b"HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n")
                return
            first.set()
            held.wait(30)

    first = threading.Event()
    server = Listening(serve)
    silent = relayed(server.port)
    waiting = threading.Thread(target=silent.exchange, args=("POST", "/", 20))
    waiting.start()
    assert first.wait(10)
    other = HttpConnection("localhost", 80, unix_path=silent._unix_path)
    assert isinstance(other.exchange("POST", "/", 10).reply, Answer)
    held.set()
    waiting.join()
    server.close()
