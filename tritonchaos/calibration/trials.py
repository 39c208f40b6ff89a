"""The trials of a calibration: what is planted, where, and the scenario that plants it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from tritonchaos.units import KIB, MIB, format_bytes

HOST, DEVICE = "planted", "planted_gpu"
VARIANTS: Final = (HOST, DEVICE)
AT_MOST: Final = 200  # cycles on trial, as in the shipped scenarios
CONTROL, FAILED_LOADS = "good_loads", "failed_loads"
# Both know that the load has failed, so that good loads stay clean.
PLACES: Final = ("instance_initialize", "model_finalize")
# A leak of so much is that of a whole model: while it is loaded, the model takes as much. Five such steps outgrow what
# identical cycles could use again, from 26 MiB each on, which no other leak shows as soon.
WHOLE_MODEL: Final = 32 * MIB
# Bytes per failed load, in the order of falling size. Below a page of the device they do not divide it: pages then fill
# at uneven intervals, which takes the growth test longest.
_SIZES: Final[Mapping[str, tuple[int, ...]]] = {
    HOST: (WHOLE_MODEL, 4 * MIB, MIB, 256 * KIB, 64 * KIB, 16 * KIB, 4 * KIB),
    DEVICE: (WHOLE_MODEL, 8 * MIB, 2 * MIB, 768 * KIB, 192 * KIB, 48 * KIB),
}
_FIRST_SIZE: Final = {HOST: MIB, DEVICE: 2 * MIB}
_WHAT: Final = {HOST: "host_bytes", DEVICE: "device_bytes"}
# A cache of five entries, as wide as the load threads of Triton (4) and one; a pool that begins to fill late.
_CACHE_ENTRIES: Final = 5
_MOST_RUNS: Final = 10
_POOL_AFTER: Final = 12


class Kind(str, Enum):
    """What is planted. Only a leak may be called one."""

    CLEAN = "clean twin"
    CACHE = "bounded cache"
    POOL = "late pool"
    LEAK = "leak"


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing to try, any number of times.

    Attributes:
        variant: Of the template `identity`: "planted" for host memory, "planted_gpu" for device memory.
        count: Bytes per failed load; 0 for a clean twin.
    """

    variant: str
    kind: Kind
    count: int = 0

    @property
    def footprint_bytes(self) -> int:
        """What the model takes while it is loaded, beside what any model takes."""
        return footprint_bytes(self.count) if self.kind is Kind.LEAK else 0

    @property
    def name(self) -> str:
        """Short, for people and for folders: "leak of 1 MiB"."""
        return self.kind.value if self.kind is Kind.CLEAN else f"{self.kind.value} of {format_bytes(self.count)}"


def footprint_bytes(leak: int) -> int:
    """Return what the model takes while it is loaded in trials of a leak of so many bytes; 0: next to nothing."""
    return leak if leak >= WHOLE_MODEL else 0


@dataclass(frozen=True, slots=True)
class Goal:
    """A trial, and how often it is wanted by then."""

    trial: Trial
    runs: int


def early_goals(variant: str, least_runs: int) -> Iterator[Goal]:
    """Yield what is wanted of one variant first; the first two are what any claim needs.

    Args:
        least_runs: Runs that a claim rests on.
    """
    clean, first = Trial(variant, Kind.CLEAN), Trial(variant, Kind.LEAK, _FIRST_SIZE[variant])
    yield Goal(clean, 1)
    yield Goal(first, least_runs)
    yield Goal(clean, 2)
    yield from (Goal(trial, 1) for trial in (*_bounded(variant), *leaks(variant)))
    yield from (Goal(trial, least_runs) for trial in leaks(variant))


def later_goals(variant: str) -> Iterator[Goal]:
    """Yield what is wanted of one variant then: everything more often, up to ten times."""
    everything = (Trial(variant, Kind.CLEAN), *_bounded(variant), *leaks(variant))
    for runs in range(2, _MOST_RUNS + 1):
        yield from (Goal(trial, runs) for trial in everything)


def quick_goals(variant: str, runs: int) -> Iterator[Goal]:
    """Yield what the claim on the leak that is found soonest rests on.

    Args:
        runs: That agree, without which a margin would have to be added.
    """
    yield Goal(leaks(variant)[0], runs)


def leaks(variant: str) -> list[Trial]:
    """Return the leaks of a variant, the largest first."""
    return [Trial(variant, Kind.LEAK, size) for size in _SIZES[variant]]


def _bounded(variant: str) -> list[Trial]:
    return [Trial(variant, kind, _FIRST_SIZE[variant]) for kind in (Kind.CACHE, Kind.POOL)]


def first_stage(variant: str, least_runs: int) -> list[Goal]:
    """Return the goals without which nothing can be claimed."""
    wanted = early_goals(variant, least_runs)
    return [next(wanted), next(wanted)]


def scenario_values(trial: Trial, target: list[Any], seed: int, place: str) -> dict[str, Any]:
    """Return the scenario of a trial: good loads until they are flat, then failed loads until the verdict.

    It is that of failed-load.yaml, so that what is claimed holds for runs like it.

    Args:
        place: Where the planted backend keeps memory, one of PLACES.
    """
    return {
        "scenario": f"calibrate-{trial.name}".replace(" ", "-"),
        "seed": seed,
        "target": target,
        "server": {"flags": {"disable-auto-complete-config": True}},
        "models": {
            "ident": {
                "template": "identity",
                "variant": trial.variant,
                "parameters": {"datatype": "FP32", "dims": [16], "plant": _plant(trial, place)},
            }
        },
        "phases": [
            {
                "phase": CONTROL,
                "arm": "control",
                "cycles": {"at_least": 3, "at_most": 30, "until": "flat"},
                # 20 ms: an unload at once can crash Triton 2.51, see unload-at-once.yaml
                "each": [{"load": "ident"}, {"wait": "20ms"}, {"unload": "ident"}],
            },
            {
                "phase": FAILED_LOADS,
                "cycles": {"at_least": 6, "at_most": AT_MOST, "until": "verdict"},
                "before": [{"edit_config": {"model": "ident", "set": {"output[0].data_type": "TYPE_INT32"}}}],
                "each": [
                    {"load": {"model": "ident", "expect": {"error": "unexpected datatype TYPE_FP32"}}},
                    {"unload": "ident"},
                ],
            },
        ],
        "check": ["memory_growth", "server_alive", "expectations"],
    }


def _plant(trial: Trial, place: str) -> list[dict[str, Any]]:
    if trial.kind is Kind.CLEAN:
        return []
    what = _WHAT[trial.variant]
    kept = {"what": what, "bytes": trial.count, "when": "failed", "at": place}
    if trial.kind is Kind.CACHE:
        kept["cap"] = _CACHE_ENTRIES
    if trial.kind is Kind.POOL:
        kept |= {"after": _POOL_AFTER, "cap": _CACHE_ENTRIES}
    if trial.footprint_bytes:
        return [{"what": what, "bytes": trial.footprint_bytes, "held": True}, kept]
    return [kept]
