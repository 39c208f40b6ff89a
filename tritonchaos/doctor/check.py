"""What one look at the machine gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        ok: True: as wanted. False: missing or broken, and most runs need it. None: only some runs need it.
        found: What is there, or why it cannot be used.
        what_to_do: "" where nothing is to be done.
    """

    name: str
    ok: bool | None
    found: str
    what_to_do: str = ""
