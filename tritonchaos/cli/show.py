"""`tritonchaos show`: everything that happened in a cycle."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tritonchaos.cli.options import RunFolder

if TYPE_CHECKING:
    from tritonchaos.observations import History
    from tritonchaos.summary import CycleEvents

_LINES_AT_ONCE: Final = 1000
_CYCLE = typer.Option(help="Number of the cycle within its phase, from 0.", min=0, envvar="TRITONCHAOS_CYCLE")
_PHASE = typer.Option(help="Name of the phase.", envvar="TRITONCHAOS_PHASE")
_STEP = typer.Option(help="Only the step of this number within the cycle, from 0.", min=0, envvar="TRITONCHAOS_STEP")
_TRACK = typer.Option(
    help="A track beside the main one; --cycle is then the number of its round.", envvar="TRITONCHAOS_TRACK"
)


def show_command(
    run: RunFolder,
    cycle: Annotated[int | None, _CYCLE] = None,
    phase: Annotated[str | None, _PHASE] = None,
    step: Annotated[int | None, _STEP] = None,
    track: Annotated[str, _TRACK] = "main",
) -> None:
    """Print all that happened in a cycle: steps, replies, readings, and the log lines of its time.

    Without --cycle: what a phase did outside its cycles and a line for each of them; without --phase: an overview.
    Each figure of a report names its phase, cycle and step; this is where it comes from.
    """
    from tritonchaos.cli.cycle_text import cycle_lines, overview_lines, phase_lines
    from tritonchaos.cli.output import write
    from tritonchaos.errors import UsageError
    from tritonchaos.store import open_history

    history = open_history(run, most_kept=0)  # only what is printed is wanted
    _check_phase(history, phase)
    if track != "main":
        lines = cycle_lines(history, _round(history, phase, cycle, track), step)
    elif cycle is not None:
        lines = (line for one in _found(history, phase, cycle) for line in cycle_lines(history, one, step))
    elif step is not None and phase is None:
        raise UsageError("--step needs --cycle or --phase: a step is numbered within them")
    else:
        lines = overview_lines(history) if phase is None else phase_lines(history, phase, step)
    while some := list(islice(lines, _LINES_AT_ONCE)):
        write("".join(f"{line}\n" for line in some))


def _check_phase(history: History, phase: str | None) -> None:
    from tritonchaos.errors import UsageError

    names = [known.name for known in history.facts.phases]
    if phase is not None and phase not in names:
        raise UsageError(f"there is no phase {phase!r:.80} in this run", hint=f"it has: {', '.join(names) or 'none'}")


def _found(history: History, phase: str | None, cycle: int) -> list[CycleEvents]:
    from tritonchaos.errors import UsageError
    from tritonchaos.summary import cycle_counts, cycles_of

    if found := list(cycles_of(history, phase, cycle)):
        return found
    counts = cycle_counts(history).items()
    told = ", ".join(f"{name} 0 to {count - 1}" for name, count in counts if phase in (None, name) and count)
    raise UsageError(f"there is no cycle {cycle} in this run", hint=f"it has: {told or 'no cycle at all'}")


def _round(history: History, phase: str | None, cycle: int | None, track: str) -> CycleEvents:
    from tritonchaos.errors import UsageError
    from tritonchaos.summary import at_position

    if phase is None or cycle is None:
        raise UsageError("--track needs --phase and --cycle, the number of its round")
    found = at_position(history, phase, cycle, track)
    if found is None:
        hint = "rounds that went well are recorded as one summary a second"
        raise UsageError(f"nothing is recorded of round {cycle} of track {track!r:.80} in {phase}", hint=hint)
    return found
