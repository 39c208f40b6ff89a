"""The relay, with a server on 127.0.0.1 of this machine: what comes through it is told as it would be without it.

So it is also where the relay makes the connection and hands it over.
"""

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


class Relays:
    """Relays to ports of this machine, by their sockets in a folder."""

    def __init__(self, folder: Path, mark: str) -> None:
        self._folder = folder
        self._handle = os.open(folder, os.O_PATH)
        self._mark = mark
        self._started: list[subprocess.Popen[bytes]] = []

    def __call__(self, port: int) -> HttpConnection:
        """Make a connection to a port through a relay."""
        self._started.append(subprocess.Popen([relay_program(), str(self._folder), f"http={port}{self._mark}"]))
        assert wait_for((self._folder / "http").is_socket)
        return HttpConnection("localhost", port, unix_path=f"/proc/self/fd/{self._handle}/http")

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self._started[-1].pid}/fd").iterdir()))

    def end(self) -> None:
        while self._started:
            process = self._started.pop()
            process.terminate()
            assert process.wait(10) == 0

    def close(self) -> None:
        self.end()
        os.close(self._handle)


@pytest.fixture(params=["!", "^"], ids=["relayed", "handed_over"])
def relayed(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Relays]:
    relays = Relays(tmp_path, request.param)
    yield relays
    relays.close()


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


def test_status_and_body_of_any_size_come_through_both_ways(relayed: Relays) -> None:
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
        (lambda connection: (read_request(connection), connection.sendall(b"not HTTP\r\n")), "garbage: status line"),
        (lambda connection: (read_request(connection), connection.sendall(SHORT)), "closed: after 3 of 9"),
        (lambda connection: (read_request(connection), connection.recv(1)), "deadline"),
    ],
)
def test_silence_and_garbage_keep_their_names(relayed: Relays, answering: Answering, reason: str) -> None:
    server = Listening(answering)
    reply = relayed(server.port).exchange("POST", "/", 1, body=b"x").reply
    assert isinstance(reply, NoAnswer)
    assert reply.reason.startswith(reason)
    server.close()


def test_a_refused_connection_is_told_from_a_closed_one(relayed: Relays) -> None:
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


def test_many_connections_do_not_hinder_each_other(relayed: Relays) -> None:
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


@pytest.mark.parametrize(("mark", "goes_on"), [("!", False), ("^", True)])
def test_a_connection_that_was_handed_over_needs_no_relay_any_more(tmp_path: Path, mark: str, goes_on: bool) -> None:
    def answer_twice(connection: socket.socket) -> None:
        for _ in range(2):
            read_request(connection)
            connection.sendall(b"HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n")

    server, relays = Listening(answer_twice), Relays(tmp_path, mark)
    connection = relays(server.port)
    assert isinstance(connection.exchange("POST", "/", 10).reply, Answer)
    relays.end()
    assert isinstance(connection.exchange("POST", "/", 10).reply, Answer) is goes_on
    connection.close()
    relays.close()
    server.close()


def test_a_relay_keeps_nothing_of_what_it_handed_over(tmp_path: Path) -> None:
    held = threading.Event()
    server, relays = Listening(lambda connection: (held.wait(30), None)[1]), Relays(tmp_path, "^")
    connection = relays(server.port)
    before = relays.open_files()
    assert isinstance(connection.exchange("POST", "/", 0.2).reply, NoAnswer)
    assert relays.open_files() == before
    held.set()
    relays.close()
    server.close()
