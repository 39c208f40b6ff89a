"""Time stamps of a series, which must not jump back: readings out of order say nothing about growth."""

from __future__ import annotations

from datetime import datetime

from tritonchaos.series.records import SeriesFlaw, shown


class Times:
    """Sees the time stamps of a column, top to bottom; numbers and dates, whatever their unit."""

    def __init__(self) -> None:
        self._before: float | None = None
        self._text = ""

    def see(self, text: str, where: str) -> None:
        """Take the next stamp; one that cannot be read is left out, as nothing else rests on it.

        Raises:
            SeriesFlaw: It is earlier than the one before.
        """
        now = _seconds(text)
        if now is None:
            return
        if self._before is not None and now < self._before:
            raise SeriesFlaw(f"{where}: the time stamp jumps back, {shown(text)} after {shown(self._text)}")
        self._before, self._text = now, text


def _seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        # naive stamps as if they were UTC, so that the machine's own summer time does not matter
        stamp = datetime.fromisoformat(text.strip().replace("/", "-").replace("Z", "+00:00"))
        return (stamp if stamp.tzinfo else datetime.fromisoformat(f"{stamp.isoformat()}+00:00")).timestamp()
    except ValueError:
        return None
