"""Tracks beside the main one: closed loops that run until the phase's main track is done."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tritonchaos.observations import NoAnswer
from tritonchaos.scenario_engine.stepping import Surroundings, Track
from tritonchaos.schedule import ScheduledTrack

_WITHOUT_SERVER_S: Final = 0.1


@contextmanager
def running(tracks: Sequence[ScheduledTrack], around: Surroundings) -> Iterator[None]:
    """Run tracks in threads of their own while the block lasts; the first error of one is raised at its end."""
    ending = threading.Event()
    errors: list[BaseException] = []
    threads = [
        threading.Thread(target=_loop, args=(track, around, ending, errors), name=f"track {track.name}", daemon=True)
        for track in tracks
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def _loop(
    scheduled: ScheduledTrack, around: Surroundings, ending: threading.Event, errors: list[BaseException]
) -> None:
    try:
        track = Track(around)
        number = 0
        while not ending.is_set():
            for step in scheduled.iteration(number):
                if ending.is_set():
                    break
                finished = track.apply(step)
                if isinstance(finished.reply, NoAnswer):
                    # A server that is gone answers each request at once; do not spin until it is back.
                    ending.wait(_WITHOUT_SERVER_S)
                    track.renew_client()
            number += 1
    except BaseException as error:  # carried to the main thread, which raises it
        errors.append(error)
