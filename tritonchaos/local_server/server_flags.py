"""How tritonserver is started: its flags, ports for them, and what its log says of a start that went wrong."""

from __future__ import annotations

import difflib
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from tritonchaos.errors import UsageError
from tritonchaos.plugins import LaunchSpec

HOST: Final = "127.0.0.1"
# Triton's own default is 30 s; it is spent in full whenever something holds the server back.
EXIT_TIMEOUT_S: Final = 10
_FLAG: Final = re.compile(r"^  --([a-z0-9-]+)( <.*)?$", re.MULTILINE)


def parse_help(text: str) -> dict[str, bool]:
    """Read what `tritonserver --help` prints: flag without dashes -> does it take a value?"""
    return {match[1]: match[2] is not None for match in _FLAG.finditer(text)}


def asked_flags(launch: LaunchSpec) -> Iterator[tuple[str, str]]:
    """Flags that a launch asks for, as text; `backend-config`, which may come many times, is left out."""
    for name, value in launch.flags.items():
        if name != "backend-config":
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


def exit_timeout_s(launch: LaunchSpec) -> float:
    """How long the server may take to end what it is doing."""
    return float(launch.flags.get("exit-timeout-secs", EXIT_TIMEOUT_S))


def refuse_unknown(asked: Mapping[str, object], known: Mapping[str, bool]) -> None:
    """A server that meets an unknown flag prints its whole help, in which the cause is lost.

    Raises:
        UsageError: There is a flag that the server does not have.
    """
    for name in asked:
        if name not in known:
            nearest = ", ".join(difflib.get_close_matches(name, known)) or "none"
            raise UsageError(
                f"this tritonserver has no flag {name!r}; nearest: {nearest}",
                hint="flags are written without their dashes, as tritonserver --help names them",
            )


def spell(flags: Mapping[str, str], launch: LaunchSpec, takes_value: Mapping[str, bool]) -> list[str]:
    """Write flags as arguments. One without a value is written bare if true; `backend-config` may come many times."""
    spelled = [f"--backend-config=python,shm-region-prefix-name={launch.shm_prefix}"]
    if "backend-config" in launch.flags:
        spelled.append(f"--backend-config={launch.flags['backend-config']}")
    for name, value in flags.items():
        if takes_value.get(name, True):
            spelled.append(f"--{name}={value}")
        elif value == "true":
            spelled.append(f"--{name}")
    return spelled


def refuse_unloaded_library(log_lines: Iterable[str]) -> None:
    """The dynamic loader goes on without a library of LD_PRELOAD that it cannot find: the run would show nothing.

    Raises:
        UsageError: The log says that a library was not loaded.
    """
    for line in log_lines:
        if line.startswith("ERROR: ld.so: object") and "cannot be preloaded" in line:
            raise UsageError(
                f"the server was started without a library of LD_PRELOAD: {line.removeprefix('ERROR: ')}",
                hint="give its path, or the whole name of a library that the dynamic loader finds, as libjemalloc.so.2",
            )


def free_ports(count: int) -> list[int]:
    """Find TCP ports of 127.0.0.1 that nobody uses now; held together while looking, so that they differ."""
    listeners = [socket.create_server((HOST, 0)) for _ in range(count)]
    try:
        return [listener.getsockname()[1] for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()
