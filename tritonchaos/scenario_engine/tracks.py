"""Tracks beside the main one: several workers, in a closed loop or at a rate, with a start and an end of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Final

from tritonchaos.observations import NoAnswer, Note, StepFinished
from tritonchaos.scenario_engine.gate import Gate
from tritonchaos.scenario_engine.rounds import Round, Rounds
from tritonchaos.scenario_engine.stepping import Surroundings, Track
from tritonchaos.scenario_engine.tally import Tally
from tritonchaos.scenario_engine.together import apply
from tritonchaos.schedule import ScheduledTrack

_WITHOUT_ANSWER_S: Final = 0.1


@contextmanager
def running(tracks: Sequence[ScheduledTrack], around: Surroundings) -> Iterator[None]:
    """Run tracks in threads of their own while the block lasts; the first error of one is raised at its end."""
    ending = threading.Event()
    errors: list[BaseException] = []
    with ExitStack() as closing:
        traffic = [_Traffic(track, around, ending, errors) for track in tracks]
        for one in traffic:
            closing.enter_context(one.running())
        yield
    if errors:
        raise errors[0]


class _Traffic:
    """One track with its workers.

    Args:
        ending: The phase is over.
        errors: Takes what went wrong in a worker.
    """

    def __init__(
        self, scheduled: ScheduledTrack, around: Surroundings, ending: threading.Event, errors: list[BaseException]
    ) -> None:
        self._scheduled = scheduled
        self._around = around
        self._ending = ending
        self._errors = errors
        self._rounds = Rounds(scheduled.entry.rate, scheduled.entry.stop, time.monotonic)
        self._tally = Tally(around.journal.record)
        self._begun = threading.Condition()

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [
            threading.Thread(target=self._work, name=f"track {self._scheduled.name} {number}", daemon=True)
            for number in range(self._scheduled.entry.workers)
        ]
        with self._waiting_for_its_start():
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                self._ending.set()
                with self._begun:
                    self._begun.notify_all()
                for thread in threads:
                    thread.join()
                self._tally.close()
        self._note_if_it_never_began()

    @contextmanager
    def _waiting_for_its_start(self) -> Iterator[None]:
        rule = self._scheduled.entry.start
        if rule is None:
            self._begin(0.0)
            yield
            return
        with self._around.moments.watched(rule, lambda: self._begin(rule.offset_s)):
            yield

    def _begin(self, offset_s: float) -> None:
        with self._begun:
            self._rounds.begin(offset_s)
            self._begun.notify_all()

    def _note_if_it_never_began(self) -> None:
        rule = self._scheduled.entry.start
        if rule is not None and not self._rounds.begins:
            track, step = (
                f"track {self._scheduled.name} of {self._scheduled.phase}",
                f"step {rule.step} of {rule.track}",
            )
            text = f"{track} never started: {step} has not {rule.when}"
            self._around.journal.record(Note(self._around.journal.now_ns(), text))

    def _work(self) -> None:
        try:
            worker = _Worker(self._scheduled, self._around, self._rounds, self._tally, self._ending)
            begins = 0
            while not self._ending.is_set():
                begins = self._wait_for_begin(begins)
                worker.run_rounds()
            worker.close()
        except BaseException as error:  # carried to the main thread, which raises it
            self._errors.append(error)

    def _wait_for_begin(self, known: int) -> int:
        """Wait until the track begins once more than is known, or the phase is over."""
        with self._begun:
            self._begun.wait_for(lambda: self._ending.is_set() or self._rounds.begins > known)
            return self._rounds.begins


class _Worker:
    """One loop of a track, with a client of its own."""

    def __init__(
        self,
        scheduled: ScheduledTrack,
        around: Surroundings,
        rounds: Rounds,
        tally: Tally,
        ending: threading.Event,
    ) -> None:
        self._scheduled = scheduled
        self._around = replace(around, take=self._take)
        self._gate: Gate = around.server.gate
        self._rounds = rounds
        self._tally = tally
        self._ending = ending
        self._late_ns = 0
        self._track: Track | None = None
        self._start_number = 0
        self._is_cut = False

    def run_rounds(self) -> None:
        """Take rounds until there are no more, or the phase is over."""
        while not self._ending.is_set():
            one = self._rounds.next()
            if one is None:
                return
            if self._wait_until_due(one):
                self._run(one)

    def close(self) -> None:
        """Close the connection."""
        if self._track is not None:
            self._track.close()

    def _wait_until_due(self, one: Round) -> bool:
        if one.due_s is None:
            self._late_ns = 0
            return True
        while (left_s := one.due_s - time.monotonic()) > 0:
            if self._ending.wait(left_s):
                return False
        self._late_ns = round(-left_s * 1e9) if self._scheduled.entry.rate is not None else 0
        return True

    def _run(self, one: Round) -> None:
        for step in self._scheduled.iteration(one.number):
            if not self._gate.is_open:
                self._late_ns = 0  # it is nobody's lateness that no server runs
            if not self._gate.enter(self._ending):
                return
            try:
                finished = apply(step, self._client_track(), self._around)
            finally:
                self._gate.leave()
            if any(isinstance(step.reply, NoAnswer) for step in finished):
                # A server that is gone answers each request at once; do not spin until it is back.
                self._ending.wait(_WITHOUT_ANSWER_S)
                self._is_cut = True

    def _client_track(self) -> Track:
        """A track that talks to the server that runs now."""
        start_number = self._around.measuring.start_number
        if self._track is None:
            self._track = Track(self._around)
        elif self._is_cut or start_number != self._start_number:
            self._track.renew_client()
            if start_number != self._start_number:
                self._rounds.go_on_from_now()
        self._start_number, self._is_cut = start_number, False
        return self._track

    def _take(self, finished: StepFinished) -> StepFinished | None:
        if isinstance(finished.reply, NoAnswer) and not self._gate.is_open:
            finished = replace(finished, observed={**finished.observed, "skipped": "the server was stopped meanwhile"})
        return self._tally.take(finished, self._late_ns)
