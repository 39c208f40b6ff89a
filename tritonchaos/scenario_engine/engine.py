"""Walks a schedule, phase by phase and cycle by cycle, against a real server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tritonchaos.observations import (
    Arm,
    CycleFinished,
    CycleStarted,
    NoAnswer,
    Note,
    PhaseSkipped,
    PhaseStopped,
    Position,
    StepFinished,
)
from tritonchaos.plugins import Advice
from tritonchaos.post_unload import CycleReading
from tritonchaos.scenario_engine.amplifying import Amplifier
from tritonchaos.scenario_engine.ending import Ending
from tritonchaos.scenario_engine.hang_evidence import HangEvidence
from tritonchaos.scenario_engine.interrupt import Interrupt
from tritonchaos.scenario_engine.journal import Journal
from tritonchaos.scenario_engine.measuring import Measuring
from tritonchaos.scenario_engine.memory_guard import MemoryGuard
from tritonchaos.scenario_engine.parts import EngineParts, Outcome
from tritonchaos.scenario_engine.recovery import Recovery
from tritonchaos.scenario_engine.server import ServerLife
from tritonchaos.scenario_engine.stepping import Surroundings, Track
from tritonchaos.scenario_engine.together import apply
from tritonchaos.scenario_engine.tracks import running
from tritonchaos.schedule import Cycle, Schedule, Scheduled, ScheduledPhase, ScheduledStep, plain

# Steps that make sense when the server has crashed or hangs.
_NEEDS_NO_SERVER: Final = frozenset({"stop_server", "sample", "settle", "wait", "trim", "rung"})
# A hung load holds one of Triton's 4 load threads and one of 8 HTTP threads for good: before the third comes, restart.
_HUNG_CALLS_AT_MOST: Final = 2
_TRIM_S: Final = 5.0


class _PhaseEnds(Exception):
    """Nothing more is to be asked of this server: it crashed, it hangs, its GPU is full, or the user wants an end.

    Attributes:
        left: Steps of the same cycle or block that were not applied.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.left: tuple[ScheduledStep, ...] = ()


def walk(schedule: Schedule, parts: EngineParts, interrupt: Interrupt) -> Outcome:
    """Run a schedule and record everything; whatever happens, the server is stopped and its end recorded.

    In this order: the "idle" reading without a server; the server is started and the "ready" reading taken; the
    sampling thread runs; each phase: tracks beside it begin, its `before` steps, its cycles (steps, settle window,
    the stopping rule), its `after` steps; the server is stopped; the "after_exit" reading; what was left behind is
    recorded; all is committed.

    After a crash or a hang the server is started again and the next cycle, or the next phase, goes on; unless that was
    done too often, the user asked for an end, or nothing is left that needs a server.

    Raises:
        TritonChaosError: tritonchaos could not do its work; what was recorded until then is kept.
        KeyboardInterrupt: The user asked a second time; the server is stopped all the same.
    """
    walker = _Walker(schedule.phases, parts, interrupt)
    try:
        walker.begin()
        for number in range(len(schedule.phases)):
            walker.run_phase(number)
        walker.end()
    finally:
        walker.close()
    return walker.outcome


class _Walker:
    def __init__(self, phases: Sequence[ScheduledPhase], parts: EngineParts, interrupt: Interrupt) -> None:
        self._phases = phases
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
        self._hangs = HangEvidence(self._server, parts, self._journal, interrupt.pause)
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
        self._trimmed_start = 0
        self._hung_calls = (0, 0)  # start of the server, and calls that it left without an answer
        self.outcome = Outcome()
        self._recovery = Recovery(self._server, parts, self._journal, interrupt, self.outcome)
        self._guard = MemoryGuard(parts.sampling.capacities if parts.uses_gpu else dict)

    # --- begin and end ---------------------------------------------------------------------------

    def begin(self) -> None:
        if self._server.is_ours:
            self._server.measure_without_it()
            self._measuring.take("idle")
        self._server.start()
        self._main = Track(self._around)
        self._parts.commit()

    def end(self) -> None:
        self._measuring.at(None)
        self._trim_before_stop()
        self._server.stop()
        if self._server.is_ours and not self._after_exit_taken:
            self._measuring.take("after_exit")
        self._measuring.record_missed()
        self._parts.commit()

    def _trim_before_stop(self) -> None:
        """See once for each start of a server what its allocators only keep; not of one that hangs."""
        start_number = self._measuring.start_number
        is_asked = self._parts.launch.may_trim and self._trimmed_start != start_number
        if (
            is_asked
            and self._server.is_running
            and self._server.can_trim
            and self.outcome.ended_by not in ("crash", "hang", "interrupted")
        ):
            self._trimmed_start = start_number
            self._measuring.around_trim(lambda: self._server.trim(_TRIM_S))

    def close(self) -> None:
        """Stop the server on any way out."""
        self._server.stop()
        self._parts.commit()

    # --- phases ----------------------------------------------------------------------------------

    def run_phase(self, number: int) -> None:
        phase = self._phases[number]
        skip = self._why_skipped(phase)
        if skip:
            self._journal.record(PhaseSkipped(self._journal.now_ns(), phase.name, skip))
            return
        try:
            self._run_steps(phase.restart())
            with running(phase.tracks, self._around):
                self._run_steps(phase.before())
                last_arm = self._run_cycles(phase, number)
                self._run_steps(phase.steps())
                self._run_steps(phase.after(last_arm))
        except _PhaseEnds as ends:
            self._leave_phase(phase, number, ends)
        self._parts.commit()

    def _leave_phase(self, phase: ScheduledPhase, number: int, ends: _PhaseEnds) -> None:
        """Go on with the next phase if a fresh server can be had, else let the run end."""
        self.outcome.seen.add(ends.reason)
        left = (*ends.left, *(plain(phase.after()) if phase.kind == "cycles" else ()))
        if not (self._is_server_needed_after(number) and self._restart(ends.reason, left)):
            self.outcome.ended_by = self.outcome.ended_by or ends.reason

    def _why_skipped(self, phase: ScheduledPhase) -> str:
        if phase.name in self._parts.skipped_phases:
            return self._parts.skipped_phases[phase.name]
        ended_by = self.outcome.ended_by
        if phase.when is None:
            if ended_by is None or not _needs_server(phase):
                return ""
            return f"the run ended early: {ended_by}"
        happened = self.outcome.has_leak if phase.when == "leak" else phase.when in self.outcome.seen
        return "" if happened else f"no {phase.when} was seen"

    def _run_cycles(self, phase: ScheduledPhase, number: int) -> Arm | None:
        """Run cycles until the phase's rule says enough; return the arm of the last one."""
        if phase.kind != "cycles":
            return None
        rule = Ending(phase, self._parts.uses_gpu)
        amplifier = Amplifier(phase)
        for cycle in phase.cycles(lambda: amplifier.repeats):
            if self._interrupt.is_asked:
                self._stop_phase(phase, rule.cycles, self._interrupt.reason)
                raise _PhaseEnds(self._interrupt.reason)
            try:
                reading = self._run_cycle(phase, cycle)
            except _PhaseEnds as ends:
                if not self._goes_on_after(ends, phase, number, cycle):
                    self._stop_phase(phase, rule.cycles, ends.reason)
                    raise
                continue
            advice = self._ask_watch(reading)
            amplifier.see(cycle, advice)
            reason = rule.see(cycle, reading, advice)
            if reason:
                self._stop_phase(phase, rule.cycles, reason)
                return cycle.arm
            self._look_at_memory(phase, rule.cycles, reading)
        return cycle.arm

    def _ask_watch(self, reading: CycleReading) -> Advice:
        watch = self._parts.watch
        if watch is None:
            return Advice.GO_ON
        advice = watch.see(reading)
        self.outcome.has_leak = watch.has_leak
        return advice

    def _look_at_memory(self, phase: ScheduledPhase, cycles: int, reading: CycleReading) -> None:
        """End the run while the server still lives, if the next loads would fill the GPU."""
        nearly_full = self._guard.see(reading)
        if nearly_full:
            self._journal.record(Note(self._journal.now_ns(), nearly_full))
            self._stop_phase(phase, cycles, "memory")
            raise _PhaseEnds("memory")

    def _run_cycle(self, phase: ScheduledPhase, cycle: Cycle) -> CycleReading:
        self._measuring.before_next()
        self._journal.record(
            CycleStarted(self._journal.now_ns(), phase.name, cycle.arm, cycle.number, cycle.is_warm_up)
        )
        self._run_steps(cycle.steps)
        self._measuring.settle_cycle(phase.name, cycle.arm, cycle.number)
        # What was read of a server that has ended meanwhile is no level of memory.
        if self._server.has_ended(Position(phase.name, cycle.arm, cycle.number, "main", len(cycle.steps)), None):
            raise _PhaseEnds("crash")
        finished = CycleFinished(self._journal.now_ns(), phase.name, cycle.number)
        reading = self._journal.finish_cycle(finished)
        self._parts.commit()
        return reading

    def _stop_phase(self, phase: ScheduledPhase, cycles: int, reason: str) -> None:
        self._journal.record(PhaseStopped(self._journal.now_ns(), phase.name, cycles, reason))

    # --- restart ---------------------------------------------------------------------------------

    def _goes_on_after(self, ends: _PhaseEnds, phase: ScheduledPhase, number: int, cycle: Cycle) -> bool:
        """Start the server again for the next cycle, or for the phases to come; False: the phase ends here."""
        self.outcome.seen.add(ends.reason)
        has_more = not phase.is_last(cycle) or self._is_server_needed_after(number)
        return has_more and self._restart(ends.reason, ends.left)

    def _is_server_needed_after(self, number: int) -> bool:
        return any(phase.when is None and _needs_server(phase) for phase in self._phases[number + 1 :])

    def _restart(self, reason: str, left: Iterable[ScheduledStep]) -> bool:
        assert self._main is not None
        return self._recovery.restart(self._main, reason, left)

    # --- steps -----------------------------------------------------------------------------------

    def _run_steps(self, steps: Iterable[Scheduled]) -> None:
        assert self._main is not None
        waiting = iter(steps)
        for scheduled in waiting:
            if isinstance(scheduled, ScheduledStep) and scheduled.spec.name == "stop_server":
                self._trim_before_stop()
            for finished in apply(scheduled, self._main, self._around):
                self._note_reading(finished)
                try:
                    self._look_for_end(finished)
                except _PhaseEnds as ends:
                    ends.left = tuple(plain(waiting))
                    raise

    def _note_reading(self, finished: StepFinished) -> None:
        if finished.spec.name == "sample" and finished.spec.fields.get("name") == "after_exit":
            self._after_exit_taken = True
        if finished.spec.name == "trim":
            self._trimmed_start = self._measuring.start_number

    def _look_for_end(self, finished: StepFinished) -> None:
        if self._server.has_ended(finished.position, finished.reply):
            raise _PhaseEnds("crash")
        if not _is_hung(finished):
            return
        self._hangs.collect(finished.position)
        if finished.spec.expect.kind != "any" or self._count_hung_call() >= _HUNG_CALLS_AT_MOST:
            raise _PhaseEnds("hang")

    def _count_hung_call(self) -> int:
        """Count the calls that hung on the server that runs now."""
        start_number, count = self._hung_calls
        now = self._measuring.start_number
        self._hung_calls = (now, count + 1 if start_number == now else 1)
        return self._hung_calls[1]


def _needs_server(phase: ScheduledPhase) -> bool:
    """A phase with cycles asks the server by its nature; one of plain steps may not."""
    return phase.kind == "cycles" or any(step.spec.name not in _NEEDS_NO_SERVER for step in plain(phase.steps()))


def _is_hung(finished: StepFinished) -> bool:
    reply = finished.reply
    if isinstance(reply, NoAnswer):
        return reply.reason.startswith("deadline")
    return "stuck" in finished.observed
