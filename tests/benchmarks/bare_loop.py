"""A bare loop of raw HTTP calls, in a process of its own: what the server costs without tritonchaos.

Standard library only, one kept connection, no checks beyond the status. `python bare_loop.py '{"do": …}'` prints JSON.
"""

from __future__ import annotations

import base64
import json
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

# Finer than tritonchaos looks, so that the bare loop never waits longer for the server.
_LOOK_AGAIN_S = 0.0002


class Connection:
    """One connection to a server.

    Args:
        relay: Unix socket of the relay of `network: none`, which makes the connection and hands it over; None: TCP.
    """

    def __init__(self, host: str, port: int, relay: str | None) -> None:
        self._host = f"{host}:{port}"
        self._socket = socket.create_connection((host, port)) if relay is None else _handed_over(relay)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
        """Send one request and return the body of a 200; anything else ends the program."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        self._socket.sendall(head.encode() + body)
        received = b""
        while b"\r\n\r\n" not in received:
            part = self._socket.recv(1 << 16)
            if not part:
                sys.exit(f"bare loop: the server closed the connection during {path}")
            received += part
        answer_head, _, answer = received.partition(b"\r\n\r\n")
        lines = answer_head.lower().split(b"\r\n")
        length = int(next(line.split(b":")[1] for line in lines if line.startswith(b"content-length:")))
        while len(answer) < length:
            answer += self._socket.recv(1 << 16)
        if b" 200 " not in lines[0] + b" ":
            sys.exit(f"bare loop: {path} was answered with {lines[0]!r}")
        return answer


def _handed_over(relay: str) -> socket.socket:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(relay)
        _, handed_over, _, _ = socket.recv_fds(connection, 1, 1)
    if not handed_over:
        sys.exit("bare loop: the relay handed no connection over")
    return socket.socket(fileno=handed_over[0])


def cycle(server: Connection, model: str, wait_s: float) -> None:
    """Load, wait, unload, and look at the index until the model is gone."""
    server.call("POST", f"/v2/repository/models/{model}/load")
    time.sleep(wait_s)
    server.call("POST", f"/v2/repository/models/{model}/unload")
    while any(entry.get("state") in {"READY", "UNLOADING"} for entry in _index(server, model)):
        time.sleep(_LOOK_AGAIN_S)


def _index(server: Connection, model: str) -> list[dict[str, Any]]:
    return [entry for entry in json.loads(server.call("POST", "/v2/repository/index")) if entry["name"] == model]


def _times_ns(act: Callable[[], object], count: int) -> list[int]:
    times = []
    for _ in range(count):
        began = time.monotonic_ns()
        act()
        times.append(time.monotonic_ns() - began)
    return times


def _infer_rate(server: Connection, job: dict[str, Any]) -> float:
    """Send one prepared request again and again and compare each whole answer with the first; per second."""
    body = base64.b64decode(job["body"])
    headers = f"Content-Type: application/octet-stream\r\nInference-Header-Content-Length: {job['header_bytes']}\r\n"
    path = f"/v2/models/{job['model']}/infer"
    first = server.call("POST", path, body, headers)
    began, count = time.monotonic(), 0
    while time.monotonic() - began < job["seconds"]:
        if server.call("POST", path, body, headers) != first:
            sys.exit("bare loop: two answers to the same request differ")
        count += 1
    return count / (time.monotonic() - began)


def main() -> None:
    job = json.loads(sys.argv[1])
    server = Connection(job["host"], job["port"], job["relay"])
    if job["do"] == "cycles":
        cycle(server, job["model"], job["wait_s"])
        print(json.dumps(_times_ns(lambda: cycle(server, job["model"], job["wait_s"]), job["count"])))
    else:
        print(json.dumps(_infer_rate(server, job)))


if __name__ == "__main__":
    main()
