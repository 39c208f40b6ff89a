"""Which edits of the model repository were in force in each cycle."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tritonchaos.observations import CycleFinished, CycleStarted, Event, History, StepFinished
from tritonchaos.observations.skimming import skim
from tritonchaos.summary.stretches import stretches_of

FAULTS: Final = "faults"
_EDITS: Final = frozenset({"edit_config", "put_file", "delete_file", "add_version"})
_RESTORE: Final = "restore"
_LONGEST: Final = 120


class FaultFollower:
    """Follows the edits of the main track; the same model restored is whole again.

    A run whose cycles are alike need not be shown to it whole: `observations.skimming` shows it one cycle of each kind.

    """

    kinds: Final = (CycleStarted, StepFinished, CycleFinished)
    kept: Final = 0  # of single events

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()
        self._in_force: dict[str, list[str]] = {}
        self._now: tuple[str, ...] = ()
        self._in_cycle: tuple[str, ...] = ()
        self._made: tuple[str, ...] | None = None
        self._is_open = False

    def see(self, event: Event) -> None:
        """Take the next event."""
        if isinstance(event, CycleStarted):
            self._in_cycle, self._is_open = self._now, True
        elif isinstance(event, StepFinished):
            self._see_step(event)
        elif isinstance(event, CycleFinished) and self._is_open:
            self._made, self._is_open = self._in_cycle, False

    def state(self) -> Hashable:
        """Return all that decides what the next event does."""
        in_force = tuple((model, tuple(edits)) for model, edits in self._in_force.items())
        return in_force, self._now, self._in_cycle, self._is_open

    def resume(self, state: Any) -> None:
        """Go on from a state, as if what led to it had been seen."""
        in_force, self._now, self._in_cycle, self._is_open = state
        self._in_force = {model: list(edits) for model, edits in in_force}

    def made(self) -> tuple[str, ...] | None:
        """Return the edits of the cycle that was finished since this was asked before, or that goes on; else None."""
        made, self._made = self._made, None
        return self._in_cycle if made is None and self._is_open else made

    def _see_step(self, step: StepFinished) -> None:
        model = step.spec.model
        if step.spec.name == _RESTORE:
            for restored in [model] if model is not None else list(self._in_force):
                self._in_force.pop(restored, None)
        elif step.spec.name in _EDITS and model is not None:
            edits = self._in_force.setdefault(model, [])
            if (edit := describe_edit(step)) not in edits:
                edits.append(edit)
        else:
            return
        self._now = tuple(edit for edits in self._in_force.values() for edit in edits)
        # What was edited within a cycle was in force in it, also when it was put right again before the cycle's end.
        self._in_cycle = tuple(dict.fromkeys([*self._in_cycle, *self._now]))


@dataclass(frozen=True, slots=True)
class Faults:
    """The edits that were in force in each cycle.

    Attributes:
        numbers: For each finished cycle the place in `sets` of what was in force in it, shape [cycles].
        sets: Sets of edits; () where none was in force.
        by_stretch: The same for each stretch (see `stretches_of`), finished or not; () where there is no cycle.
    """

    numbers: array[int]
    sets: Sequence[tuple[str, ...]]
    by_stretch: array[int]

    def of(self, place: int) -> tuple[str, ...]:
        """Return the edits of one finished cycle."""
        return self.sets[self.numbers[place]]

    def of_stretch(self, at: int) -> tuple[str, ...]:
        """Return those of the cycle of a stretch."""
        return self.sets[self.by_stretch[at]]


def faults_of(history: History) -> Faults:
    """Find the edits of all cycles of a run; they are looked for once."""
    return history.once("faults of cycles", _find)


def _find(history: History) -> Faults:
    import numpy

    stretches = stretches_of(history)
    if history.stretches is not None:
        history.followed(FAULTS, FaultFollower)
    made = history.made(FAULTS) or skim(stretches.cut, [FaultFollower()])[0]
    sets: list[tuple[str, ...]] = list(dict.fromkeys(value or () for value in made.values))
    numbers = numpy.array([sets.index(value or ()) for value in made.values], numpy.uint32)[made.numbers]
    of_cycles = numbers[numpy.asarray(stretches.finished)]
    return Faults(array("I", of_cycles.tobytes()), sets, array("I", numbers.tobytes()))


def describe_edit(step: StepFinished) -> str:
    """Print an edit at a glance: "ident: output[0].data_type = TYPE_INT32"."""
    text = f"{step.spec.model}: {', '.join(_changes(step.spec.name, step.spec.fields))}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _changes(name: str, fields: Mapping[str, Any]) -> Iterator[str]:
    if name == "edit_config":
        for path, value in dict(fields.get("set") or {}).items():
            yield f"{path} removed" if value is None else f"{path} = {value}"
    elif name == "add_version":
        yield f"version {fields.get('version')} added"
    else:
        yield f"{fields.get('path')} {'deleted' if name == 'delete_file' else 'replaced'}"


@dataclass(frozen=True, slots=True)
class FaultBand:
    """A run of cycles with the same edits in force.

    Attributes:
        first, last: Places among the finished cycles, from 0, both within the band.
    """

    first: int
    last: int
    faults: tuple[str, ...]


def fault_bands(faults: Faults) -> tuple[FaultBand, ...]:
    """Put neighbouring cycles with the same edits together."""
    import numpy

    numbers = numpy.asarray(faults.numbers)
    ends = [*(numpy.flatnonzero(numbers[1:] != numbers[:-1]).tolist()), *([len(numbers) - 1] if len(numbers) else [])]
    firsts = [0, *(end + 1 for end in ends)]
    return tuple(FaultBand(first, last, faults.of(first)) for first, last in zip(firsts, ends, strict=False))
