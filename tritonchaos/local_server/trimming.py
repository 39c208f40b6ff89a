"""Lets a running tritonserver give back what its allocators keep, by a library of ours that is preloaded into it."""

from __future__ import annotations

import os
import select
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tritonchaos import native
from tritonchaos.errors import TemplateError

_NAME: Final = "tritonchaos_trimmer"
_SOURCE: Final = Path(__file__).with_name("trimmer.c")
_FLAGS: Final = ("-pthread", "-ldl")


class Trimmer:
    """The library and its two fifos, for one start of a server.

    Args:
        folder: Where the fifos are made; what it held is removed.
        compile_shared: Compiles the library for the place where the server runs.

    Attributes:
        why_not: Why the server cannot be told; "" if it can.
    """

    def __init__(
        self, folder: Path, compile_shared: Callable[[str, Sequence[Path], Sequence[str]], Path] = native.compile_shared
    ) -> None:
        self._folder = folder
        self._compile_shared = compile_shared
        self.why_not = ""

    def environment(self, asked: dict[str, str]) -> dict[str, str]:
        """Return an environment in which the server gets the library; as it was where that cannot be.

        Args:
            asked: All of the server's environment.
        """
        try:
            library = self._compile_shared(_NAME, [_SOURCE], _FLAGS)
        except TemplateError as error:
            self.why_not = f"the library that calls malloc_trim was not built: {error.message}"
            return asked
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        for name in ("ask", "answer"):
            os.mkfifo(self._folder / name)
        preloaded = ":".join(filter(None, (str(library), asked.get("LD_PRELOAD", ""))))
        return {**asked, "LD_PRELOAD": preloaded, "TRITONCHAOS_TRIM": str(self._folder)}

    def trim(self, deadline_s: float) -> str:
        """Ask for it and wait until it is done; return why it was not, "" if it was."""
        if self.why_not:
            return self.why_not
        answer = os.open(self._folder / "answer", os.O_RDONLY | os.O_NONBLOCK)
        try:
            # Without a reader this fails at once: then nobody in the server waits.
            ask = os.open(self._folder / "ask", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            os.close(answer)
            return "the server did not take the library that calls malloc_trim"
        try:
            os.write(ask, b"t")
            return _wait_for_line(answer, deadline_s)
        finally:
            os.close(ask)
            os.close(answer)


def _wait_for_line(answer: int, deadline_s: float) -> str:
    end = time.monotonic() + deadline_s
    poll = select.poll()
    poll.register(answer, select.POLLIN)
    while (left_s := end - time.monotonic()) > 0:
        if poll.poll(left_s * 1000) and os.read(answer, 64):
            return ""
        time.sleep(0.001)  # a fifo whose other end has gone is readable at once, and empty
    return f"malloc_trim did not return within {deadline_s:g} s"
