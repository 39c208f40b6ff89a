"""What all mappings of the scenario file have in common."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A mapping of the file: one field per key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Keys that a later version will understand.
    later: ClassVar[frozenset[str]] = frozenset()
