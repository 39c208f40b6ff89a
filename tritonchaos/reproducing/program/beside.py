"""Steps that run again and again beside the cycles of a block."""

from __future__ import annotations

import threading
from typing import Any

from tritonchaos.reproducing.program.server import Server
from tritonchaos.reproducing.program.steps import Steps

JOIN_S = 60.0
AFTER_NO_ANSWER_S = 0.05


class Beside:
    """Threads that each do the steps of one track until they are told to end; `with` starts and ends them."""

    def __init__(self, server: Server, states: str, tracks: list[dict[str, Any]]) -> None:
        self.over = threading.Event()
        self.counts: dict[str, list[int]] = {track["track"]: [0, 0] for track in tracks}
        self.failures: list[str] = []
        self.threads = [
            threading.Thread(target=self.run, args=(Steps(server, states, None), track), daemon=True)
            for track in tracks
            for _ in range(track["workers"])
        ]

    def __enter__(self) -> Beside:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(JOIN_S)
        for track, (count, wrong) in self.counts.items():
            print("beside, track {}: {} steps, {} not as expected".format(track, count, wrong), flush=True)

    def run(self, steps: Steps, track: dict[str, Any]) -> None:
        """Do the rounds of one worker."""
        counts = self.counts[track["track"]]
        where = {"phase": track["track"], "arm": "", "cycle": None}
        while not self.over.is_set():
            for step in track["each"]:
                seen = steps.apply(step, where)
                steps.seen.clear()
                counts[0] += 1
                counts[1] += bool(seen.get("mismatch"))
                if seen.get("no_answer"):
                    self.over.wait(AFTER_NO_ANSWER_S)
            self.over.wait(track["pause_s"])
