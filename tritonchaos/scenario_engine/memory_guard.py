"""Says when a GPU is nearly full: out of memory after growth is evidence, not another failure; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tritonchaos.post_unload import CycleReading
from tritonchaos.units import format_bytes

_USED: Final = "nvml_device_used_bytes"
_PROCESS_USED: Final = "nvml_process_used_bytes"
_RESERVED: Final = "nvml_device_reserved_bytes"
# One for the next load, one for what else may come.
_FOOTPRINTS: Final = 2


class MemoryGuard:
    """Compares free memory of each GPU with what a loaded model takes there.

    Args:
        capacities: Gives the total bytes behind each metric that has such a limit.
    """

    def __init__(self, capacities: Callable[[], Mapping[str, int]]) -> None:
        self._capacities = capacities
        self._footprints: dict[str, int] = {}

    def see(self, reading: CycleReading) -> str:
        """Take the next finished cycle; say why the run should stop, or ""."""
        for metric, total in self._capacities().items():
            if not metric.startswith(_USED) or metric not in reading.values:
                continue
            used = reading.values[metric]
            footprint = max(self._footprints.get(metric, 0), _footprint(reading, metric))
            self._footprints[metric] = footprint
            # Where the driver does not tell what is reserved, it is part of what is used.
            free = total - used - reading.values.get(metric.replace(_USED, _RESERVED), 0)
            if footprint > 0 and free < _FOOTPRINTS * footprint:
                shown = f"{format_bytes(free)} free, a loaded model takes {format_bytes(footprint)}"
                return f"the GPU is nearly full ({metric.partition('@')[2] or 'GPU'}: {shown}), so the run stops here"
        return ""


def _footprint(reading: CycleReading, metric: str) -> int:
    """What the cycle's models took while loaded; by the server's own memory where that is known."""
    own = metric.replace(_USED, _PROCESS_USED)
    known = own if own in reading.loaded and own in reading.values else metric
    return reading.loaded.get(known, 0) - reading.values[known]
