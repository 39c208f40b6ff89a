"""Steps that run again and again beside the cycles of a phase."""

from __future__ import annotations

import threading
import time
from typing import Any

from tritonchaos.reproducing.program.rounds import Rounds
from tritonchaos.reproducing.program.steps import Steps, label_of

JOIN_S = 60.0
AFTER_NO_ANSWER_S = 0.1
KEPT = 200


class Beside:
    """Threads that do the steps of a phase's tracks; `with` starts and ends them.

    Args:
        main: Steps of the main track, of which a track may wait for one.
        run: Takes what the tracks saw: "beside", the first of each step and those not as expected, and
            "beside_counts", how often each step was done.
    """

    def __init__(self, main: Steps, phase: str, tracks: list[dict[str, Any]], run: dict[str, Any]) -> None:
        self.main, self.phase, self.run, self.tracks = main, phase, run, tracks
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.rounds = {track["track"]: Rounds(track) for track in tracks}
        self.wrong = 0
        self.threads = [
            threading.Thread(target=self.work, args=(track,), daemon=True)
            for track in tracks
            for _ in range(track["workers"])
        ]

    def __enter__(self) -> Beside:
        self.main.tell = self.hear
        for track in self.tracks:
            if not track["start"]:
                self.rounds[track["track"]].begin(0.0)
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for rounds in self.rounds.values():
            with rounds.turned:
                rounds.turned.notify_all()
        for thread in self.threads:
            thread.join(JOIN_S)
        self.main.tell = None
        for (phase, track, step), count in self.run["beside_counts"].items():
            if phase == self.phase:
                print("beside, track {}: {} x {}".format(track, count, step), flush=True)
        if self.threads:
            print("beside, in all: {} steps were not as expected".format(self.wrong), flush=True)

    def hear(self, track: str, step: dict[str, Any], when: str) -> None:
        """A step of a track is about to be done ("started"), or has been ("finished")."""
        for one in self.tracks:
            rule = one["start"]
            names = (step["do"], label_of(step), step.get("number"))
            if rule and (rule["track"], rule["when"]) == (track, when) and rule["step"] in names:
                self.rounds[one["track"]].begin(rule["offset_s"])

    def work(self, track: dict[str, Any]) -> None:
        """One worker: take rounds until everything is over."""
        rounds = self.rounds[track["track"]]
        steps = Steps(self.main.server, self.main.states, None, False)
        steps.tell = self.hear
        while not self.over.is_set():
            taken = rounds.take()
            if taken is None:
                with rounds.turned:
                    rounds.turned.wait_for(lambda: self.over.is_set() or rounds.is_on)
            elif not self.over.wait(max(0.0, taken[1] - time.monotonic())):
                self.do_round(steps, track, taken[0])

    def do_round(self, steps: Steps, track: dict[str, Any], number: int) -> None:
        """Do the steps of one round."""
        where = {"phase": self.phase, "arm": "", "cycle": None, "track": track["track"]}
        for step in track["each"]:
            if self.over.is_set():
                return
            if number % step.get("every", 1) == 0:
                self.keep(steps.apply_all(step, where))
                steps.seen.clear()

    def keep(self, found: list[dict[str, Any]]) -> None:
        """Count steps, and keep the first of each and those that were not as expected."""
        with self.lock:
            counts, kept = self.run["beside_counts"], self.run["beside"]
            for seen in found:
                key = (seen["phase"], seen["track"], seen["step"])
                counts[key] = counts.get(key, 0) + 1
                self.wrong += bool(seen.get("mismatch"))
                if counts[key] == 1 or (seen.get("mismatch") and len(kept) < KEPT):
                    kept.append(seen)
        if any(seen.get("no_answer") for seen in found):
            self.over.wait(AFTER_NO_ANSWER_S)
