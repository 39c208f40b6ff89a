"""Takes a container's output out of the engine's stream, with little work: it comes while the server is being timed."""

from __future__ import annotations

from typing import Final, Protocol

_PART_BYTES: Final = 1 << 16
_HEAD_BYTES: Final = 8
_LENGTH_AT: Final = 4


class Readable(Protocol):
    """A stream of bytes; an empty part is its end."""

    def read(self, size: int, /) -> bytes | None: ...


class Writable(Protocol):
    """A file."""

    def write(self, data: bytes, /) -> object: ...


def copy_output(stream: Readable, log: Writable) -> None:
    """Copy what a container says, standard output and error as they come, until the stream ends."""
    frames = Frames()
    while part := stream.read(_PART_BYTES):
        text = frames.take(part)
        if text:
            log.write(text)


class Frames:
    """Takes the frames off a stream that arrives in parts of any size.

    Source: Docker Engine API 1.41, ContainerAttach, "Stream format": 8 bytes before each frame, of which the last four
    are its length, most significant first.
    """

    def __init__(self) -> None:
        self._head = b""
        self._missing = 0

    def take(self, part: bytes) -> bytes:
        """Return what the container said in this part; a frame need not be there as a whole."""
        said = []
        while part:
            if not self._missing:
                part = self._begin(part)
            said.append(part[: self._missing])
            part = part[self._missing :]
            self._missing -= len(said[-1])
        return b"".join(said)

    def _begin(self, part: bytes) -> bytes:
        """Read a frame's head, or what there is of it; return what follows."""
        wanted = _HEAD_BYTES - len(self._head)
        self._head += part[:wanted]
        if len(self._head) == _HEAD_BYTES:
            self._missing = int.from_bytes(self._head[_LENGTH_AT:], "big")
            self._head = b""
        return part[wanted:]
