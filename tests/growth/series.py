"""Labelled series: read from a file, or made by a generator."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tritonchaos.observations import Arm

HERE = Path(__file__).parent
PUBLIC, RECORDED = HERE / "public.jsonl", HERE / "recorded.jsonl"
OWN_RECORDED = tuple(sorted((HERE.parent / "recorded").glob("growth_*.jsonl")))


@dataclass(frozen=True)
class Series:
    """Readings with the truth about them.

    `bytes_per_cycle` is the true growth per treatment cycle; None where it is not known or not constant.
    """

    name: str
    kind: str
    label: str
    values: list[int]
    arms: str
    quantum: int
    channel: str = "device"
    footprint: int = 0
    bytes_per_cycle: float | None = 0.0

    @property
    def arm_list(self) -> list[Arm]:
        return [Arm.CONTROL if letter == "C" else Arm.TREATMENT for letter in self.arms]

    @property
    def interleaved(self) -> bool:
        return sum(before != after for before, after in pairwise(self.arms)) > 2


def read(path: Path) -> list[Series]:
    return [_series(json.loads(line)) for line in path.read_text().splitlines()]


def _series(fields: dict) -> Series:
    # the growth of a square root has no rate of its own
    rate = None if fields["kind"] == "l_decel_sqrt" else fields["bytes_per_cycle"]
    return Series(
        name=fields["id"],
        kind=fields["kind"],
        label=fields["label"],
        values=[int(value) for value in fields["values"]],
        arms=fields["arms"],
        quantum=fields["quantum"],
        channel=fields["channel"],
        footprint=fields.get("footprint", 0),
        bytes_per_cycle=rate,
    )
