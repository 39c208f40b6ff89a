"""Take a named reading, or a settle window, in the middle of a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from tritonchaos.plugins import STEPS, Contract, Workbench


@STEPS.register
@dataclass(frozen=True, slots=True)
class Sample:
    """Take one reading of all metrics under a name of its own.

    Attributes:
        reading: The name; written `name` in the scenario, which as an attribute is the step's own.
    """

    name: ClassVar[str] = "sample"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    reading: Annotated[str, Field(alias="name", min_length=1)]

    def apply(self, bench: Workbench) -> None:
        """Read and record."""
        bench.readings.take(self.reading)


@STEPS.register
@dataclass(frozen=True, slots=True)
class Settle:
    """Wait until memory readings have settled, and record them."""

    name: ClassVar[str] = "settle"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    def apply(self, bench: Workbench) -> None:
        """Take a settle window."""
        bench.readings.settle()
