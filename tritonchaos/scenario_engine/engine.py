"""Walks a schedule, phase by phase and cycle by cycle, against a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tritonchaos.observations import (
    Arm,
    CycleFinished,
    CycleStarted,
    NoAnswer,
    PhaseSkipped,
    PhaseStopped,
    StepFinished,
)
from tritonchaos.plugins import Advice, LaunchSpec, Recorder, Target, Watch
from tritonchaos.post_unload import CycleReading, is_flat, primary_metrics, settle_quantum
from tritonchaos.repository import ModelRepository
from tritonchaos.sampling import Sampling
from tritonchaos.scenario_engine.interrupt import Interrupt
from tritonchaos.scenario_engine.journal import Journal, Observer
from tritonchaos.scenario_engine.measuring import Measuring
from tritonchaos.scenario_engine.server import ServerLife, Started
from tritonchaos.scenario_engine.stepping import Surroundings, Track
from tritonchaos.scenario_engine.tracks import running
from tritonchaos.schedule import Cycle, Schedule, ScheduledPhase, ScheduledStep
from tritonchaos.templates import ServedModel

# Steps that make sense when the server has crashed or hangs.
_NEEDS_NO_SERVER: Final = frozenset({"stop_server", "sample", "settle", "wait"})
# A hung load holds one of Triton's 4 load threads and one of 8 HTTP threads for good.
_HUNG_CALLS_AT_MOST: Final = 2


@dataclass(frozen=True, slots=True)
class EngineParts:
    """Everything outside that a walk needs; made before it, closed after it.

    Attributes:
        commit: Make what was recorded so far safe on disk; called after every cycle.
        uses_gpu: A variant that needs a GPU is served, so that device memory decides `until: flat`.
        watch: The stopping rule for `until: verdict`, if a checker offers one.
        probes: A checker needs index, readiness and metadata after each load and unload.
        started: Called after each start of the server, with metric -> why it cannot be read of it.
    """

    target: Target
    launch: LaunchSpec
    repository: ModelRepository
    models: Mapping[str, ServedModel]
    sampling: Sampling
    store: Recorder
    commit: Callable[[], None]
    clock_ns: Callable[[], int]
    sample_count: int
    settle_at_most_s: float
    uses_gpu: bool
    watch: Watch | None
    probes: bool
    gpu_uuids: tuple[str, ...]
    started: Started
    observers: Sequence[Observer] = ()


@dataclass(slots=True)
class Outcome:
    """How a walk ended.

    Attributes:
        ended_by: None if it ran to its end, else "crash", "hang" or "interrupted".
    """

    ended_by: str | None = None
    has_leak: bool = False
    hung_calls: int = field(default=0)


class _PhaseEnds(Exception):
    """Nothing more is to be asked of the server in this phase: it crashed, it hangs, or the user wants an end."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def walk(schedule: Schedule, parts: EngineParts, interrupt: Interrupt) -> Outcome:
    """Run a schedule and record everything; whatever happens, the server is stopped and its end recorded.

    In this order: the "idle" reading without a server; the server is started and the "ready" reading taken; the
    sampling thread runs; each phase: tracks beside it begin, its `before` steps, its cycles (steps, settle window,
    the stopping rule), its `after` steps; the server is stopped; the "after_exit" reading; what was left behind is
    recorded; all is committed.

    Raises:
        TritonChaosError: tritonchaos could not do its work; what was recorded until then is kept.
        KeyboardInterrupt: The user asked a second time; the server is stopped all the same.
    """
    walker = _Walker(parts, interrupt)
    try:
        walker.begin()
        for phase in schedule.phases:
            walker.run_phase(phase)
        walker.end()
    finally:
        walker.close()
    return walker.outcome


class _Walker:
    def __init__(self, parts: EngineParts, interrupt: Interrupt) -> None:
        self._parts = parts
        self._interrupt = interrupt
        self._journal = Journal(parts.store, parts.clock_ns, parts.sample_count, parts.observers)
        self._measuring = Measuring(
            parts.sampling, self._journal, parts.sample_count, parts.settle_at_most_s, interrupt.pause
        )
        self._server = ServerLife(
            parts.target,
            parts.launch,
            self._journal,
            parts.sampling,
            self._measuring,
            parts.gpu_uuids,
            parts.started,
        )
        self._around = Surroundings(
            server=self._server,
            repository=parts.repository,
            models=parts.models,
            measuring=self._measuring,
            journal=self._journal,
            interrupt=interrupt,
            log_file=parts.launch.log_file,
            probes=parts.probes,
        )
        self._main: Track | None = None
        self._after_exit_taken = False
        self.outcome = Outcome()

    # --- begin and end ---------------------------------------------------------------------------

    def begin(self) -> None:
        self._server.measure_without_it()
        self._measuring.take("idle")
        self._server.start()
        self._main = Track(self._around)
        self._parts.commit()

    def end(self) -> None:
        self._measuring.at(None)
        self._server.stop()
        if not self._after_exit_taken:
            self._measuring.take("after_exit")
        self._parts.commit()

    def close(self) -> None:
        """Stop the server on any way out."""
        self._server.stop()
        self._parts.commit()

    # --- phases ----------------------------------------------------------------------------------

    def run_phase(self, phase: ScheduledPhase) -> None:
        skip = self._why_skipped(phase)
        if skip:
            self._journal.record(PhaseSkipped(self._journal.now_ns(), phase.name, skip))
            return
        try:
            with running(phase.tracks, self._around):
                self._run_steps(phase.before())
                last_arm = self._run_cycles(phase)
                self._run_steps(phase.steps())
                self._run_steps(phase.after(last_arm))
        except _PhaseEnds as ends:
            self.outcome.ended_by = self.outcome.ended_by or ends.reason
        self._parts.commit()

    def _why_skipped(self, phase: ScheduledPhase) -> str:
        ended_by = self.outcome.ended_by
        if phase.when is None:
            if ended_by is None or all(step.spec.name in _NEEDS_NO_SERVER for step in _all_steps(phase)):
                return ""
            return f"the run ended early: {ended_by}"
        happened = self.outcome.has_leak if phase.when == "leak" else ended_by == phase.when
        return "" if happened else f"no {phase.when} was seen"

    def _run_cycles(self, phase: ScheduledPhase) -> Arm | None:
        """Run cycles until the phase's rule says enough; return the arm of the last one."""
        if phase.kind != "cycles":
            return None
        rule = _Ending(phase, self._parts.uses_gpu)
        for cycle in phase.cycles():
            if self._interrupt.is_asked:
                self._stop_phase(phase, rule.cycles, "interrupted")
                raise _PhaseEnds("interrupted")
            reading = self._run_cycle(phase, cycle, rule.cycles)
            reason = rule.see(cycle, reading, self._ask_watch(reading))
            if reason:
                self._stop_phase(phase, rule.cycles, reason)
                return cycle.arm
        return cycle.arm

    def _ask_watch(self, reading: CycleReading) -> Advice:
        watch = self._parts.watch
        if watch is None:
            return Advice.GO_ON
        advice = watch.see(reading)
        self.outcome.has_leak = watch.has_leak
        return advice

    def _run_cycle(self, phase: ScheduledPhase, cycle: Cycle, done: int) -> CycleReading:
        self._measuring.before_next()
        self._journal.record(
            CycleStarted(self._journal.now_ns(), phase.name, cycle.arm, cycle.number, cycle.is_warm_up)
        )
        try:
            self._run_steps(cycle.steps)
        except _PhaseEnds as ends:
            self._stop_phase(phase, done, ends.reason)
            raise
        self._measuring.settle_cycle(phase.name, cycle.arm, cycle.number)
        finished = CycleFinished(self._journal.now_ns(), phase.name, cycle.number)
        reading = self._journal.finish_cycle(finished)
        self._parts.commit()
        return reading

    def _stop_phase(self, phase: ScheduledPhase, cycles: int, reason: str) -> None:
        self._journal.record(PhaseStopped(self._journal.now_ns(), phase.name, cycles, reason))

    # --- steps -----------------------------------------------------------------------------------

    def _run_steps(self, steps: Iterable[ScheduledStep]) -> None:
        assert self._main is not None
        for scheduled in steps:
            finished = self._main.apply(scheduled)
            self._note_reading(finished)
            self._look_for_end(finished)

    def _note_reading(self, finished: StepFinished) -> None:
        if finished.spec.name == "sample" and finished.spec.fields.get("name") == "after_exit":
            self._after_exit_taken = True

    def _look_for_end(self, finished: StepFinished) -> None:
        if self._server.has_ended(finished.position, finished.reply):
            raise _PhaseEnds("crash")
        if not _is_hung(finished):
            return
        self._server.collect_hang_evidence(finished.position)
        self.outcome.hung_calls += 1
        if finished.spec.expect.kind != "any" or self.outcome.hung_calls >= _HUNG_CALLS_AT_MOST:
            raise _PhaseEnds("hang")


def _all_steps(phase: ScheduledPhase) -> Iterator[ScheduledStep]:
    """Steps of a phase of plain steps; a phase with cycles asks the server by its nature."""
    if phase.kind == "cycles":
        yield from next(iter(phase.cycles())).steps
    yield from phase.steps()


def _is_hung(finished: StepFinished) -> bool:
    reply = finished.reply
    if isinstance(reply, NoAnswer):
        return reply.reason.startswith("deadline")
    return "stuck" in finished.observed


class _Ending:
    """Decides after each cycle whether its phase is over before the schedule is.

    Args:
        uses_gpu: `until: flat` looks at device memory.
    """

    def __init__(self, phase: ScheduledPhase, uses_gpu: bool) -> None:
        self._phase = phase
        self._uses_gpu = uses_gpu
        self._levels: dict[str, list[int]] = {}
        self._judged = 0
        self.cycles = 0

    def see(self, cycle: Cycle, reading: CycleReading, advice: Advice) -> str | None:
        """Take a cycle; return why the phase ends now, or None."""
        self.cycles += 1
        if cycle.is_warm_up:
            return None
        self._judged += 1
        for metric in primary_metrics(self._uses_gpu, reading.values):
            self._levels.setdefault(metric, []).append(reading.values[metric])
        if self._judged < self._phase.at_least * self._cycles_per_count():
            return None
        if self._phase.until == "verdict" and advice is not Advice.GO_ON:
            return "verdict"
        return "flat" if self._phase.until == "flat" and self._is_flat() else None

    def _is_flat(self) -> bool:
        """All metrics that decide are flat; without any of them nothing is known to be."""
        return bool(self._levels) and all(
            is_flat(levels, settle_quantum(metric)) for metric, levels in self._levels.items()
        )

    def _cycles_per_count(self) -> int:
        """In a phase of coin-ordered pairs `at_least` counts treatment cycles, each with its control cycle."""
        return 1 if self._phase.arm is not None else 2
