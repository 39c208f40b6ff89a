"""The one way into a container whose network is "none": a relay beside it, in the same network namespace.

It is one long-lived process for each start of the server, in a container of its own: the server's container gets
nothing mounted for it, and no command is ever run inside.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tritonchaos import native
from tritonchaos.containers.container import Container
from tritonchaos.containers.engine import Engine
from tritonchaos.containers.spec import ContainerSpec, Mount
from tritonchaos.errors import TargetError, TargetUnavailable, TemplateError

_SOURCE: Final = Path(__file__).with_name("relay.c")
_PROGRAM: Final = "/tritonchaos/relay"
_SOCKETS: Final = "/tritonchaos/sockets"
_READY_S: Final = 20.0
_MEMORY_BYTES: Final = 512 << 20
# What the relay does for a socket of that name; for any other it only carries bytes (see relay.c).
HTTP: Final = "http"
GRPC: Final = "grpc"
HANDED_OVER: Final = "handed_over"
_MARKS: Final = {HTTP: "!", HANDED_OVER: "^"}


def relay_program(
    compile_program: Callable[[str, Sequence[Path], Sequence[str]], Path] = native.compile_program,
) -> Path:
    """Compile the relay, or find it in the cache.

    Raises:
        TargetUnavailable: There is no C compiler for it.
    """
    try:
        return compile_program("relay", [_SOURCE], native.WARNINGS)
    except TemplateError as error:
        raise TargetUnavailable(
            f"network none needs a small relay, which cannot be compiled: {error.message}",
            hint="install gcc and libc6-dev, or publish the server's ports on 127.0.0.1: network: publish",
        ) from error


class Relay:
    """A running relay.

    Args:
        program: What `relay_program` gave.
        beside: Id of the container whose network it shares.
        spec: Image, name, labels and user of its container; the rest is set here.
        folder: Existing empty folder of this machine for its sockets.
        ports: Name of a socket -> port of 127.0.0.1 in the container. `HTTP` and `HANDED_OVER` tell how connecting
            went, and the latter gives the connection away.

    Raises:
        TargetError: It does not come up; nothing of it is left.
    """

    def __init__(
        self,
        engine: Engine,
        program: Path,
        beside: str,
        spec: ContainerSpec,
        folder: Path,
        ports: Mapping[str, int],
        log_file: Path,
    ) -> None:
        self._container = Container(engine, _complete(spec, beside, program, folder, ports), log_file)
        self._engine = engine
        # Sockets are reached through this handle: the path of a run directory may be longer than an address may be.
        self._folder = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._container.start()
            self._wait_until_ready(folder, ports)
        except BaseException:
            self.close()
            raise

    def path(self, name: str) -> str:
        """Path of a socket, for this process only."""
        return f"/proc/self/fd/{self._folder}/{name}"

    def check(self) -> None:
        """Raise `TargetError` if it has ended: what the server does cannot be seen any more."""
        if self._container.ended() is not None:
            raise TargetError("the relay into the container's network ended: " + self._last_words())

    def cut(self) -> None:
        """Let nothing through any more, as a network does that swallows packets; not what was handed over."""
        self._engine.api.pause(self._container.id)

    def join(self) -> None:
        """Let everything through again."""
        self._engine.api.unpause(self._container.id)

    def close(self) -> None:
        """End it and remove it; harmless when repeated."""
        self._container.remove()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def _wait_until_ready(self, folder: Path, ports: Mapping[str, int]) -> None:
        end = time.monotonic() + _READY_S
        while not all((folder / name).is_socket() for name in ports):
            self.check()
            if time.monotonic() >= end:
                raise TargetError(f"the relay made no sockets in {_READY_S:g} s: {self._last_words()}")
            time.sleep(0.005)

    def _last_words(self) -> str:
        return " | ".join(self._container.log_lines()[-3:]) or "it said nothing"


def _complete(spec: ContainerSpec, beside: str, program: Path, folder: Path, ports: Mapping[str, int]) -> ContainerSpec:
    return ContainerSpec(
        image=spec.image,
        name=spec.name,
        labels=spec.labels,
        user=spec.user,
        users=spec.users,
        security=spec.security,
        entrypoint=(_PROGRAM,),
        command=(_SOCKETS, *(f"{name}={port}{_MARKS.get(name, '')}" for name, port in ports.items())),
        has_init=False,
        network=f"container:{beside}",
        mounts=(Mount(str(program), _PROGRAM), Mount(str(folder), _SOCKETS, is_writable=True)),
        memory_bytes=_MEMORY_BYTES,
    )
