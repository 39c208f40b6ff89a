"""Finds and removes what a killed run left: processes, shared memory, scratch folders."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonchaos.containers.leftovers import ON_ENGINE, find_left, remove_left
from tritonchaos.errors import StoreError
from tritonchaos.processes import end, is_running, remove_shared_memory, shared_memory, stubs_below
from tritonchaos.store import read_remembered, running_pid


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that a run left behind.

    Attributes:
        kind: "process", "shm", "scratch", "model" (put into the repository of a server that is not ours), or
            "container", "network", "volume" of a container engine.
        what: Process id, shared memory name, folder, or the engine's id.
        start_ticks: Of a process; it is only ended if this still matches, since process ids are used again.
    """

    run: str
    kind: str
    what: str
    start_ticks: int = 0
    name: str = ""


def find_leftovers(runs_folder: Path) -> list[Leftover]:
    """List what runs below a folder left behind; runs whose tritonchaos is still alive are passed over."""
    # Containers first: what else is left is mounted into them.
    left = [Leftover(one.run, one.kind, one.id, name=one.name) for one in find_left()]
    return left + [leftover for folder in _run_folders(runs_folder) for leftover in _of_run(folder)]


def _run_folders(runs_folder: Path) -> Iterator[Path]:
    """Yield the folder itself if it is a run, and the runs in it and in the sets in it."""
    for pattern in ("run.db", "*/run.db", "*/*/run.db"):
        for path in sorted(runs_folder.glob(pattern)):
            if not any(part.is_symlink() for part in (path.parent, path.parent.parent) if part != runs_folder):
                yield path.parent


def _of_run(folder: Path) -> Iterator[Leftover]:
    try:
        remembered = read_remembered(folder)
    except StoreError:  # not a run directory, or nothing of it was written
        return
    if running_pid(folder) is not None:
        return
    server = remembered.get("server", {})
    if server and is_running(server["pid"], server["start_ticks"]):
        yield Leftover(folder.name, "process", str(server["pid"]), server["start_ticks"])
    scratch = (folder / "scratch").resolve()
    for stub in stubs_below(scratch):
        yield Leftover(folder.name, "process", str(stub.pid), stub.start_ticks)
    prefix = remembered.get("shm_prefix", "")
    for region in shared_memory(prefix) if prefix else ():
        yield Leftover(folder.name, "shm", region.name)
    if scratch.exists():
        yield Leftover(folder.name, "scratch", str(scratch))
    staging = remembered.get("staging", "")
    if staging and Path(staging).exists():
        yield Leftover(folder.name, "scratch", staging)
    for place, inode in remembered.get("shared_models", {}).items():
        if Path(place).is_dir() and Path(place).stat().st_ino == inode:
            yield Leftover(folder.name, "model", place)


def remove(leftover: Leftover) -> None:
    """End the process, remove the shared memory, the folder, or what is on the engine."""
    if leftover.kind == "process":
        end(int(leftover.what), leftover.start_ticks, signal.SIGKILL)
    elif leftover.kind == "shm":
        remove_shared_memory(leftover.what)
    elif leftover.kind in ON_ENGINE:
        remove_left(leftover.kind, leftover.what)
    else:
        shutil.rmtree(leftover.what, ignore_errors=True)
