"""The time line and the cycles as the page's script takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tritonchaos.html_page.log_lines import LogLines
from tritonchaos.html_page.markup import shown
from tritonchaos.html_page.step_replies import outcome_of, step_reply
from tritonchaos.html_page.time_line import Cycle, TimeLine
from tritonchaos.observations import Position, StepFinished


class Texts:
    """Numbers each different text, so that the page carries it once."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of a text."""
        return self.texts.setdefault(text, len(self.texts))


def lanes_data(line: TimeLine, texts: Texts) -> list[dict[str, Any]]:
    """Return each lane as its label and its marks, [start ms, length ms, outcome, count, text, cycle]."""
    return [
        {
            "label": shown(label),
            "exact": lane.is_exact,
            "marks": [
                [_ms(m.start_ns), _ms(m.end_ns - m.start_ns), m.outcome, m.count, texts.number(m.text), m.place]
                for m in lane.marks
            ],
        }
        for label, lane in line.lanes.items()
    ]


def cycles_data(line: TimeLine, log: LogLines, texts: Texts) -> list[dict[str, Any]]:
    """Return the cycles that can be shown one by one, with their steps and their lines of the log."""
    found = []
    for cycle in line.cycles:
        lines = log.between(*cycle.log) if cycle.log else (0, 0)
        faults = texts.number("; ".join(cycle.faults)) if cycle.faults else None
        entry = {
            "faults": faults,
            "place": cycle.place,
            "at": cycle.at,
            "phase": shown(cycle.phase),
            "cycle": cycle.number,
            "log": lines,
        }
        found.append({**entry, "steps": _steps_data(cycle.steps, texts)})
    return found


def outside_data(line: TimeLine, texts: Texts) -> list[list[Any]]:
    """Return the main track's steps outside cycles as [step, where it stands]."""
    return [[*_step_data(step, texts), texts.number(str(step.position))] for step in line.outside]


def _steps_data(steps: Iterable[StepFinished], texts: Texts) -> list[list[Any]]:
    return [_step_data(step, texts) for step in steps]


def _step_data(step: StepFinished, texts: Texts) -> list[Any]:
    """[label, start ms, length ms, outcome, reply]."""
    label, reply = texts.number(shown(step.spec.label())), texts.number(step_reply(step))
    return [label, _ms(step.started_ns), _ms(step.t_ns - step.started_ns), outcome_of(step), reply]


def _ms(ns: int) -> float:
    return round(ns / 1e6, 2)


def dearest_first(line: TimeLine, positions: Sequence[Position | None]) -> list[Cycle]:
    """Return the kept cycles, those of findings first."""
    wanted = {(at.phase, at.cycle) for at in positions if at is not None}
    return sorted(line.cycles, key=lambda cycle: (cycle.phase, cycle.number) not in wanted)


def edits_at(line: TimeLine, position: Position | None) -> tuple[str, ...]:
    """Return the edits that were in force in the cycle of a finding."""
    if position is None or position.cycle is None:
        return ()
    at = (position.phase, position.cycle)
    return next((cycle.faults for cycle in line.cycles if (cycle.phase, cycle.number) == at), ())
