"""Which edits of the model repository were in force in each cycle."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tritonchaos.observations import CycleFinished, CycleStarted, Event, StepFinished

_EDITS: Final = frozenset({"edit_config", "put_file", "delete_file", "add_version"})
_RESTORE: Final = "restore"
_LONGEST: Final = 120


@dataclass(slots=True)
class FaultFollower:
    """Follows the edits of the main track; the same model restored is whole again.

    Attributes:
        of_cycles: For each finished cycle, in order, the edits that were in force in it; shape [cycles].
    """

    of_cycles: list[tuple[str, ...]] = field(default_factory=list)
    _in_force: dict[str, list[str]] = field(default_factory=dict)
    _now: tuple[str, ...] = ()
    _in_cycle: tuple[str, ...] = ()
    _made: tuple[str, ...] | None = None

    @property
    def in_cycle(self) -> tuple[str, ...]:
        """Edits that were in force in the cycle that goes on, or went on last."""
        return self._in_cycle

    def see(self, event: Event) -> None:
        """Take the next event."""
        if isinstance(event, CycleStarted):
            self._in_cycle = self._now
        elif isinstance(event, StepFinished):
            self._see_step(event)
        elif isinstance(event, CycleFinished):
            self._made = self._in_cycle
            self.of_cycles.append(self._in_cycle)

    def state(self) -> Hashable:
        """Return all that decides what the next event does."""
        return tuple((model, tuple(edits)) for model, edits in self._in_force.items()), self._now, self._in_cycle

    def resume(self, state: Any) -> None:
        """Go on from a state, as if what led to it had been seen; `of_cycles` stays as it is."""
        in_force, self._now, self._in_cycle = state
        self._in_force = {model: list(edits) for model, edits in in_force}

    def made(self) -> tuple[str, ...] | None:
        """Return the edits of the last cycle that was finished since this was asked before; None if none was."""
        made, self._made = self._made, None
        return made

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


def fault_bands(of_cycles: Sequence[tuple[str, ...]]) -> tuple[FaultBand, ...]:
    """Put neighbouring cycles with the same edits together."""
    bands: list[FaultBand] = []
    for place, faults in enumerate(of_cycles):
        if bands and bands[-1].faults == faults:
            bands[-1] = FaultBand(bands[-1].first, place, faults)
        else:
            bands.append(FaultBand(place, place, faults))
    return tuple(bands)
