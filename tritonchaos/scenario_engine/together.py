"""Runs steps that are started together, each on a thread and a client of its own."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from tritonchaos.observations import Answer, StepFinished
from tritonchaos.scenario_engine.stepping import Surroundings, Track
from tritonchaos.schedule import Scheduled, ScheduledStep, ScheduledTogether


def apply(scheduled: Scheduled, track: Track, around: Surroundings) -> list[StepFinished]:
    """Apply one step on its track, or several together; return what was recorded, in the order of the schedule."""
    if isinstance(scheduled, ScheduledStep):
        return [track.apply(scheduled)]
    finished = _run_together(scheduled, around)
    if finished[0].position.track == "main":
        _look_after(finished, track, around)
    return finished


def _look_after(finished: list[StepFinished], track: Track, around: Surroundings) -> None:
    """Take the reading and the probes of the whole group when all of it is done.

    What the index says between two calls that are both under way is nobody's promise. So a model that several steps of
    the group have touched is probed at the first of them to end: a probe is held against the step that ended last.
    """
    if any(step.spec.name == "load" and _is_good(step) for step in finished):
        around.measuring.take_loaded()
    if not around.probes or not around.server.is_running:
        return
    touched: dict[str, list[StepFinished]] = {}
    for step in finished:
        if step.spec.name in ("load", "unload") and step.spec.model is not None:
            touched.setdefault(step.spec.model, []).append(step)
    first = min(finished, key=lambda step: step.t_ns)
    for model, steps in touched.items():
        track.probe((steps[0] if len(steps) == 1 else first).position, model)


def _run_together(group: ScheduledTogether, around: Surroundings) -> list[StepFinished]:
    alone = replace(around, probes=False, takes_loaded=False)
    finished: dict[int, StepFinished] = {}
    errors: list[BaseException] = []
    begin = threading.Barrier(len(group.steps))

    def run(number: int, step: ScheduledStep) -> None:
        try:
            track = Track(alone)
            try:
                begin.wait()
                time.sleep(number * group.gap_s)
                finished[number] = track.apply(step)
            finally:
                track.close()
        except BaseException as error:  # carried to the thread that waits, which raises it
            begin.abort()
            errors.append(error)

    threads = [
        threading.Thread(target=run, args=(number, step), name=f"together {number}", daemon=True)
        for number, step in enumerate(group.steps)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((error for error in errors if not isinstance(error, threading.BrokenBarrierError)), errors[0])
    return [finished[number] for number in sorted(finished)]


def _is_good(step: StepFinished) -> bool:
    return isinstance(step.reply, Answer) and step.reply.status == 200
