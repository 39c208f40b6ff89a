"""Shows how far the fetching of an image is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, TextIO

from tritonchaos.units import format_bytes

_EVERY_S: Final = 10.0
_EVERY_ON_TERMINAL_S: Final = 0.2
_BAR: Final = 30


class PullProgress:
    """Takes the engine's messages while it fetches an image.

    Args:
        stream: Where it is shown.
        image: The image's name.
    """

    def __init__(self, stream: TextIO, image: str) -> None:
        self._stream = stream
        self._image = image
        self._layers: dict[str, tuple[int, int]] = {}
        self._next_s = 0.0
        self._is_terminal = stream.isatty()
        self._has_drawn = False

    def __call__(self, message: Mapping[str, Any]) -> None:
        """Take one message; show where it is if it was not shown lately."""
        detail = message.get("progressDetail") or {}
        layer = str(message.get("id", ""))
        if message.get("status") == "Downloading" and detail.get("total"):
            self._layers[layer] = (int(detail.get("current", 0)), int(detail["total"]))
        elif message.get("status") in ("Download complete", "Pull complete") and layer in self._layers:
            total = self._layers[layer][1]
            self._layers[layer] = (total, total)
        now_s = time.monotonic()
        if self._layers and now_s >= self._next_s:
            self._next_s = now_s + (_EVERY_ON_TERMINAL_S if self._is_terminal else _EVERY_S)
            self._show()

    def close(self) -> None:
        """Leave the line of the bar."""
        if self._has_drawn:
            self._stream.write("\n")

    def text(self) -> str:
        """How far it is, of the layers that are known so far."""
        got = sum(current for current, _ in self._layers.values())
        total = sum(total for _, total in self._layers.values())
        return f"fetching {self._image}: {format_bytes(got)} of {format_bytes(total)}, {len(self._layers)} layers"

    def _show(self) -> None:
        if not self._is_terminal:
            self._stream.write(f"{self.text()}\n")
        else:
            got, total = (sum(numbers) for numbers in zip(*self._layers.values(), strict=True))
            filled = _BAR * got // max(total, 1)
            self._stream.write(f"\r[{'#' * filled}{'.' * (_BAR - filled)}] {self.text()}\x1b[K")
            self._has_drawn = True
        self._stream.flush()
