"""Says how many times the steps of a measured cycle are done before its reading: more, where nothing moves."""

from __future__ import annotations

from typing import Final

from tritonchaos.plugins import Advice
from tritonchaos.schedule import Cycle, ScheduledPhase

# A reading sees steps of a page; 32 loads before each make a leak of a 32nd of a page per load as plain as a page.
MOST_REPEATS: Final = 32


class Amplifier:
    """Doubles as the stopping rule asks for it, where the phase allows it.

    Attributes:
        repeats: For the next cycle, or the next pair of them.
    """

    def __init__(self, phase: ScheduledPhase) -> None:
        self._may = phase.amplify
        self.repeats = 1

    def see(self, cycle: Cycle, advice: Advice) -> None:
        """Take what the stopping rule says after a cycle.

        Advice on a cycle that was run before the last doubling took effect (the second of a pair) is not news.
        """
        is_news = not cycle.is_warm_up and cycle.repeats == self.repeats
        if self._may and is_news and advice is Advice.DOUBLE_LOADS:
            self.repeats = min(2 * self.repeats, MOST_REPEATS)
