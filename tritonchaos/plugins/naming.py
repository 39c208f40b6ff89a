"""What every plug-in has, and the types of its fields."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, ClassVar, Protocol

from pydantic import BeforeValidator, WithJsonSchema

from tritonchaos.units import parse_bytes, parse_seconds

# What plug-in fields are annotated with when the scenario file may give them with a unit.
Seconds = Annotated[
    float,
    BeforeValidator(parse_seconds),
    WithJsonSchema({"type": ["number", "string"], "description": 'Seconds, or a time with a unit such as "30s".'}),
]
ByteCount = Annotated[
    int,
    BeforeValidator(parse_bytes),
    WithJsonSchema({"type": ["integer", "string"], "description": 'Bytes, or a size with a unit such as "64MiB".'}),
]


class Contract(str, Enum):
    """Does a step stay within what Triton documents?"""

    DOCUMENTED = "documented"
    UNDOCUMENTED = "undocumented"


class Named(Protocol):
    """What every plug-in has; the first line of its docstring is its help."""

    name: ClassVar[str]
