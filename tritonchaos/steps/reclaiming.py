"""Find out who holds memory that did not come back: give back what can be given back, and read after each attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tritonchaos.plugins import STEPS, Contract, Workbench


@STEPS.register
@dataclass(frozen=True, slots=True)
class Trim:
    """Make the server's allocators give back what they keep (malloc_trim, CUDA memory pools), read before and after.

    A target that cannot is passed over; the step then says why.
    """

    name: ClassVar[str] = "trim"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    def apply(self, bench: Workbench) -> None:
        """Take the readings "before_trim" and "after_trim", each when memory has settled."""
        why_not = bench.readings.around_trim(lambda: bench.server.trim(bench.deadline_s))
        if why_not:
            bench.observe(skipped=why_not)


@STEPS.register
@dataclass(frozen=True, slots=True)
class Rung:
    """Take a settled reading of the reclaim ladder; `ladder` of a phase writes these steps.

    Attributes:
        after: What was done just before.
    """

    name: ClassVar[str] = "rung"
    contract: ClassVar[Contract] = Contract.DOCUMENTED

    after: Literal["start", "good_load", "unload_all", "exit"]

    def apply(self, bench: Workbench) -> None:
        """Settle, then take the reading "ladder_<after>"."""
        bench.readings.settle()
        bench.readings.take(f"ladder_{self.after}")
