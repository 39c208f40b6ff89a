"""One HTTP/1.1 keep-alive connection whose every call ends at a deadline, whatever the other side does."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tritonchaos.observations import Answer, NoAnswer, Reply

_CHUNK_BYTES: Final = 1 << 20
_LINE_LIMIT_BYTES: Final = 1 << 16
_HEADER_LIMIT: Final = 200
# A small request goes out in one packet; copying a large body only to join it to its header costs more than it saves.
_JOIN_BELOW_BYTES: Final = 1 << 16
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] (\d{3})(?: .*)?\Z", re.DOTALL)
_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Exchange:
    """A reply and the headers that came with it, names in lower case; no headers where there was no answer."""

    reply: Reply
    headers: Mapping[str, str] = field(default_factory=dict)


class _Lost(Exception):
    """The call cannot be finished; `reason` is worded as in `NoAnswer`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Deadline:
    """An instant on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self._end_ns = time.monotonic_ns() + round(seconds * _NS)

    def left_s(self) -> float:
        """Return the seconds that are left, always more than 0; raise `_Lost` if none are."""
        left_ns = self._end_ns - time.monotonic_ns()
        if left_ns <= 0:
            raise _Lost("deadline")
        return left_ns / _NS


class HttpConnection:
    """A connection to one host and port, opened when first needed and again after it was lost. For one thread.

    Args:
        host: Name or address.
        port: TCP port.
        unix_path: Unix socket of a relay to that host and port. The first byte of a connection through it is 0, or
            the errno with which the relay could not connect. A relay that hands the connection over does so with that
            byte.
    """

    def __init__(self, host: str, port: int, unix_path: str | None = None) -> None:
        self._host = host
        self._port = port
        self._unix_path = unix_path
        self._socket: socket.socket | None = None
        self._host_header = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def exchange(
        self,
        method: str,
        path: str,
        deadline_s: float,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        may_repeat: bool = False,
    ) -> Exchange:
        """Send a request and read its whole response.

        Args:
            deadline_s: Seconds for all of it: connecting, sending, waiting, reading.
            headers: Beyond Host and Content-Length, which are set here unless given.
            may_repeat: Sending it twice does no harm, so it is sent again when a connection that was kept open turns
                out to have been closed before any byte of a response.

        Returns:
            Never raises for what the other side did. `elapsed_ns` is the time from the first byte sent to the last
            byte read; where nothing was sent, the time until that was known.
        """
        deadline = _Deadline(deadline_s)
        head = self._head(method, path, headers or {}, len(body))
        is_reused = self._is_usable()
        call = _Call(deadline)
        try:
            return self._attempt(call, method, head, body)
        except _Lost as lost:
            self.close()
            can_repeat = may_repeat and is_reused and not call.has_response and lost.reason in {"closed", "reset"}
            if not can_repeat:
                return Exchange(NoAnswer(lost.reason, call.elapsed_ns()))
        call = _Call(deadline)
        try:
            return self._attempt(call, method, head, body)
        except _Lost as lost:
            self.close()
            return Exchange(NoAnswer(lost.reason, call.elapsed_ns()))

    def close(self) -> None:
        """Close the connection; the next call opens a new one. A call that waits in another thread ends "closed"."""
        taken, self._socket = self._socket, None
        if taken is None:
            return
        # Closing alone would leave a thread that waits on this socket waiting; the other side may have been faster.
        with contextlib.suppress(OSError):
            taken.shutdown(socket.SHUT_RDWR)
        taken.close()

    def _attempt(self, call: _Call, method: str, head: bytes, body: bytes) -> Exchange:
        try:
            return self._exchange(call, method, head, body)
        except TimeoutError:
            raise _Lost("deadline") from None
        except (ConnectionResetError, BrokenPipeError, ConnectionAbortedError):
            raise _Lost("reset") from None
        except OSError as error:
            # The socket was closed by `close` in another thread.
            raise _Lost(f"closed: {error.strerror or error}") from None

    def _exchange(self, call: _Call, method: str, head: bytes, body: bytes) -> Exchange:
        connection = self._socket or self._open(call.deadline)
        self._socket = connection
        call.start(connection)
        call.send(head, body)
        status, headers = call.read_head()
        answer_body, can_stay = call.read_body(method, status, headers)
        answer = Answer(status, answer_body, call.elapsed_ns())
        if not can_stay:
            self.close()
        return Exchange(answer, headers)

    def _open(self, deadline: _Deadline) -> socket.socket:
        return self._connect(deadline) if self._unix_path is None else _connect_to_relay(self._unix_path, deadline)

    def _connect(self, deadline: _Deadline) -> socket.socket:
        try:
            addresses = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise _Lost(f"refused: {error.strerror or error}") from None
        reason = "refused: no address"
        for family, kind, protocol, _, address in addresses:
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(deadline.left_s())
                connection.connect(address)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except ConnectionRefusedError:
                reason = "refused"
            except TimeoutError:
                reason = "deadline"
            except OSError as error:
                reason = f"refused: {error.strerror or error}"
            except BaseException:
                connection.close()
                raise
            connection.close()
        raise _Lost(reason)

    def _is_usable(self) -> bool:
        """Is there an open connection with nothing to read? Anything readable now is its end, or nobody's answer."""
        if self._socket is None:
            return False
        poll = select.poll()
        try:
            poll.register(self._socket, select.POLLIN)
            if not poll.poll(0):
                return True
        except (OSError, ValueError):
            pass
        self.close()
        return False

    def _head(self, method: str, path: str, headers: Mapping[str, str], body_bytes: int) -> bytes:
        given = {name.lower() for name in headers}
        lines = [f"{method} {path} HTTP/1.1"]
        if "host" not in given:
            lines.append(f"Host: {self._host_header}")
        if "content-length" not in given and (body_bytes or method not in {"GET", "HEAD"}):
            lines.append(f"Content-Length: {body_bytes}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")


def _connect_to_relay(path: str, deadline: _Deadline) -> socket.socket:
    """Connect through a relay; a connection that it could not make is told as it would be without it."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(deadline.left_s())
        connection.connect(path)
        connection.settimeout(deadline.left_s())
        told, handed_over, _, _ = socket.recv_fds(connection, 1, 1, socket.MSG_CMSG_CLOEXEC)
        if handed_over:
            connection.close()
            return socket.socket(fileno=handed_over[0])
        if told == b"\0":
            return connection
        reason = _told_by_relay(told[0] if told else errno.ECONNRESET)
    except (ConnectionRefusedError, FileNotFoundError):
        reason = "refused"
    except TimeoutError:
        reason = "deadline"
    except OSError as error:
        reason = f"refused: {error.strerror or error}"
    except BaseException:
        connection.close()
        raise
    connection.close()
    raise _Lost(reason)


def _told_by_relay(number: int) -> str:
    return "refused" if number == errno.ECONNREFUSED else f"refused: {os.strerror(number)}"


class _Call:
    """One request on its way and the response as far as it has come."""

    def __init__(self, deadline: _Deadline) -> None:
        self.deadline = deadline
        self._socket: socket.socket
        self._buffer = b""
        self._start_ns = time.monotonic_ns()
        self.has_response = False

    def start(self, connection: socket.socket) -> None:
        self._socket = connection
        self._start_ns = time.monotonic_ns()

    def elapsed_ns(self) -> int:
        return time.monotonic_ns() - self._start_ns

    def send(self, head: bytes, body: bytes) -> None:
        parts = (head + body,) if len(body) < _JOIN_BELOW_BYTES else (head, body)
        try:
            for part in parts:
                self._socket.settimeout(self.deadline.left_s())
                self._socket.sendall(part)
        except (ConnectionResetError, BrokenPipeError):
            # A server may answer before it has read a body that it will not take (413), and close: read that answer.
            # Where there is none, reading fails the same way.
            pass

    def read_head(self) -> tuple[int, dict[str, str]]:
        """Return status and headers of the final response; interim ones (1xx) are passed over."""
        status = 100
        headers: dict[str, str] = {}
        while status // 100 == 1:
            status = self._status()
            headers = self._headers()
        return status, headers

    def read_body(self, method: str, status: int, headers: Mapping[str, str]) -> tuple[bytes, bool]:
        """Return the body, and whether the connection can carry another call."""
        can_stay = "close" not in headers.get("connection", "").lower()
        if method == "HEAD" or status in {204, 304}:
            return b"", can_stay
        if "chunked" in headers.get("transfer-encoding", "").lower():
            body = self._chunked()
        elif "content-length" in headers:
            body = self._exactly(_whole_number(headers["content-length"], 10, "content length"))
        else:
            return self._until_closed(), False
        return body, can_stay and not self._buffer

    def _status(self) -> int:
        line = self._line()
        match = _STATUS_LINE.match(line)
        if match is None:
            raise _Lost(f"garbage: status line {line[:80]!r}")
        return int(match[1])

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        while line := self._line():
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon or len(headers) >= _HEADER_LIMIT:
                raise _Lost(f"garbage: header {line[:80]!r}")
            headers[name.strip().lower()] = value.strip()
        return headers

    def _chunked(self) -> bytes:
        parts = []
        while size := _whole_number(self._line().split(b";")[0].decode("latin-1"), 16, "chunk size"):
            parts.append(self._exactly(size))
            if self._line():
                raise _Lost("garbage: chunk longer than its size")
        while self._line():
            pass  # trailer fields say nothing that is used here
        return b"".join(parts)

    def _line(self) -> bytes:
        while b"\n" not in self._buffer:
            if len(self._buffer) > _LINE_LIMIT_BYTES:
                raise _Lost(f"garbage: line of more than {_LINE_LIMIT_BYTES} bytes {self._buffer[:80]!r}")
            received = self._receive(_LINE_LIMIT_BYTES)
            if not received:
                looks_like_http = b"HTTP/1.".startswith(self._buffer[:7]) or not self._buffer
                raise _Lost("closed" if looks_like_http else f"garbage: {self._buffer[:80]!r}, then closed")
            self._buffer += received
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.removesuffix(b"\r")

    def _exactly(self, count: int) -> bytes:
        """Return the next `count` bytes. Memory is taken as they come, so that a false length costs none."""
        parts = [self._buffer[:count]]
        self._buffer = self._buffer[count:]
        missing = count - len(parts[0])
        while missing:
            received = self._receive(min(missing, _CHUNK_BYTES))
            if not received:
                raise _Lost(f"closed: after {count - missing} of {count} body bytes")
            parts.append(received)
            missing -= len(received)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _until_closed(self) -> bytes:
        parts, self._buffer = [self._buffer], b""
        while received := self._receive(_CHUNK_BYTES):
            parts.append(received)
        return b"".join(parts)

    def _receive(self, most: int) -> bytes:
        self._socket.settimeout(self.deadline.left_s())
        received = self._socket.recv(most)
        self.has_response = self.has_response or bool(received)
        return received


def _whole_number(text: str, base: int, what: str) -> int:
    try:
        number = int(text.strip(), base)
    except ValueError:
        number = -1
    if number < 0:
        raise _Lost(f"garbage: {what} {text[:80]!r}")
    return number
