"""The parameter `plant`: defects of known size, checked here so that a mistake is told before a server starts.

The planted backend reads the same list as JSON, with the same names (`planted/plant_read.c`). The catalogue is
docs/planted.md.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from tritonchaos.units import parse_bytes

_KEPT: Final = frozenset({"release_every", "held"})
_ON_DEVICE: Final = _KEPT | {"gpu"}
# What can be planted -> the fields that it has beside those that all have.
WHATS: Final[Mapping[str, frozenset[str]]] = {
    "host_bytes": _KEPT | {"bytes"},
    "pinned_bytes": _ON_DEVICE | {"bytes"},
    "device_bytes": _ON_DEVICE | {"bytes"},
    "streams": _ON_DEVICE | {"count"},
    "events": _ON_DEVICE | {"count"},
    "modules": _ON_DEVICE | {"count"},
    "fds": _KEPT | {"count"},
    "threads": _KEPT | {"count"},
    "temp_files": _KEPT | {"count", "bytes"},
    "fail": frozenset({"code", "text"}),
    "sleep": frozenset({"ms"}),
    "spin": frozenset({"ms", "until_file"}),
    "hang": frozenset({"until_file"}),
    "abort": frozenset(),
    "segfault": frozenset(),
    "exit": frozenset({"status"}),
    "wrong_output": frozenset(),
    "wrong_size": frozenset(),
    "wrong_version": frozenset(),
    "respond_twice": frozenset(),
    "never_respond": frozenset(),
}
_ONLY_ANSWERS: Final = frozenset({"wrong_output", "wrong_size", "wrong_version", "respond_twice", "never_respond"})
_REQUIRED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("host_bytes", "pinned_bytes", "device_bytes"), "bytes"),
    "sleep": "ms",
    "exit": "status",
}
# In the order in which they come.
PLACES: Final = (
    "backend_initialize",
    "model_initialize",
    "before_validation",
    "instance_initialize",
    "execute",
    "instance_finalize",
    "model_finalize",
)
_KNOWS_OUTCOME: Final = frozenset({"instance_initialize", "instance_finalize", "model_finalize"})
_HAS_INSTANCE: Final = frozenset({"before_validation", "instance_initialize"})
WHENS: Final = ("always", "failed", "good")
# The names of TRITONSERVER_Error_Code, in its order.
CODES: Final = (
    "unknown",
    "internal",
    "not_found",
    "invalid_arg",
    "unavailable",
    "unsupported",
    "already_exists",
    "cancelled",
)


def read_plants(value: Any) -> list[dict[str, Any]]:
    """Check a list of plants and write its sizes as bytes; the fields that were not given stay away.

    Raises:
        ValueError: Something is wrong with one of them; the text says with which, what was found and what was expected.
    """
    if not isinstance(value, list | tuple):
        raise ValueError(f"found {value!r}, expected a list such as [{{what: host_bytes, bytes: 1MiB, when: failed}}]")
    return [_read_plant(entry, f"plant[{number}]") for number, entry in enumerate(value)]


def _read_plant(entry: Any, where: str) -> dict[str, Any]:
    if not isinstance(entry, Mapping) or "what" not in entry:
        raise ValueError(f"{where}: found {entry!r}, expected a mapping with the field what")
    what = _choice(entry["what"], WHATS, f"{where}.what")
    allowed = {**dict.fromkeys(_COMMON), **dict.fromkeys(sorted(WHATS[what]))}
    read: dict[str, Any] = {}
    for name, value in entry.items():
        if name not in allowed:
            raise ValueError(f"{where}: {what} has no field {name!r}; {_nearest(str(name), allowed)}")
        read[str(name)] = _READERS[name](value, f"{where}.{name}")
    required = _REQUIRED.get(what)
    if required is not None and required not in read:
        raise ValueError(f"{where}: {what} needs the field {required}")
    _check_together(read, where)
    return read


def _check_together(read: Mapping[str, Any], where: str) -> None:
    what = read["what"]
    place = read.get("at", "execute" if what in _ONLY_ANSWERS else "instance_initialize")
    if read.get("when", "always") != "always" and place not in _KNOWS_OUTCOME:
        raise ValueError(f"{where}.when: at {place} no load has failed or succeeded yet, expected always")
    if what in _ONLY_ANSWERS and place != "execute":
        raise ValueError(f"{where}.at: found {place!r}, expected execute, where answers are made")
    if read.get("held") and place not in _HAS_INSTANCE:
        raise ValueError(f"{where}.held: expected an instance's initialisation, found at: {place}")
    if read.get("held") and read.get("release_every"):
        raise ValueError(f"{where}.held: expected either it or release_every")
    if place == "backend_initialize":
        raise ValueError(
            f"{where}.at: no model is known at backend_initialize; plant there with the server's environment variable "
            "TRITONCHAOS_PLANT, which takes the same list as JSON"
        )


def _nearest(name: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return (f"did you mean {close[0]!r}? " if close else "") + f"expected one of {', '.join(names)}"


def _choice(value: Any, names: Iterable[str], where: str) -> str:
    if value not in (known := list(names)):
        raise ValueError(f"{where}: found {value!r}; {_nearest(str(value), known)}")
    return str(value)


def _choices(names: Iterable[str]) -> Callable[[Any, str], str]:
    return lambda value, where: _choice(value, names, where)


def _whole(smallest: int, largest: int = 2**62) -> Callable[[Any, str], int]:
    def read(value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not smallest <= value <= largest:
            raise ValueError(f"{where}: found {value!r}, expected a whole number from {smallest} to {largest}")
        return value

    return read


def _bytes(value: Any, where: str) -> int:
    try:
        return _whole(1)(parse_bytes(value), where)
    except ValueError as error:
        raise ValueError(str(error) if str(error).startswith(where) else f"{where}: {error}") from None


def _probability(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError(f"{where}: found {value!r}, expected a number above 0 and at most 1")
    return value


def _truth(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{where}: found {value!r}, expected true or false")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{where}: found {value!r}, expected a text")
    return value


_COMMON: Final = ("what", "at", "when", "every", "after", "cap", "probability", "seed")
_READERS: Final[Mapping[Any, Callable[[Any, str], Any]]] = {
    "what": _choices(WHATS),
    "at": _choices(PLACES),
    "when": _choices(WHENS),
    "every": _whole(1),
    "after": _whole(0),
    "cap": _whole(0),
    "probability": _probability,
    "seed": _whole(0),
    "bytes": _bytes,
    "count": _whole(1),
    "gpu": _whole(0),
    "release_every": _whole(1),
    "held": _truth,
    "ms": _whole(0),
    "status": _whole(0, 255),
    "code": _choices(CODES),
    "text": _text,
    "until_file": _text,
}
