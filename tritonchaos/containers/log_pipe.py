"""A pipe by which a server in a container writes its own log to ours.

What a container prints goes through two processes of the engine before it comes to us. On a small machine they take the
processor from the very server that is being timed, line by line; a pipe wakes nobody but us.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path
from typing import Final

_PART_BYTES: Final = 1 << 16
# A server whose log is not read fast enough waits; so far it may be ahead: as far as any user may let it (fcntl(2)).
_PIPE_BYTES: Final = 1 << 20
_END_S: Final = 20.0


class LogPipe:
    """A named pipe whose content is appended to a log from now on, until `finish`.

    Args:
        path: Where it is made; nothing is there yet.
        log_file: What comes is appended here.
        mode: Permissions; only the server's user need write.
    """

    def __init__(self, path: Path, log_file: Path, mode: int = 0o600) -> None:
        self.path = path
        os.mkfifo(path)
        path.chmod(mode)
        self._log = log_file.open("ab", buffering=0)
        self._end = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # A writer of our own: else the pipe would end before the server opens it, and between two that write.
        self._held: int | None = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        os.set_blocking(self._end, True)
        with contextlib.suppress(OSError):  # the user has many pipes: the usual size will do
            fcntl.fcntl(self._end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._thread = threading.Thread(target=self._copy, name=f"log pipe {path.name}", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until all is copied that was written by servers that have ended; harmless when repeated."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)
        self._thread.join(_END_S)

    def _copy(self) -> None:
        try:
            while part := os.read(self._end, _PART_BYTES):
                with contextlib.suppress(OSError):  # a full disk must not make the server wait
                    self._log.write(part)
        finally:
            os.close(self._end)
            self._log.close()
