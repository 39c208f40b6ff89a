"""Keeps the verdict of a run beside it, so that reports of a long run need not judge it again.

A kept verdict counts only where judging again would give the same: by the same code, of the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tritonchaos
from tritonchaos.judging import build_checkers, finish_judged, judge_history, verdict_of
from tritonchaos.observations import History, RunFacts
from tritonchaos.store import from_plain, open_history, read_facts, to_plain
from tritonchaos.summary import FinishedRun
from tritonchaos.verdict import CHECKER_FAILED, Verdict

FILE: Final = "judged.json"
# All that judging reads; what a killed run left in a journal would have to be copied first, so such a run is not kept.
_JUDGED: Final = ("run.db", "server.log", "scenario.yaml")
_JOURNALS: Final = ("run.db-wal", "run.db-journal")
_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Basis:
    """What a verdict rests on, as digests; compared before it is believed.

    Attributes:
        version: Of tritonchaos, for people; `code` tells versions apart.
        code: Of tritonchaos itself and of checkers that came from elsewhere.
        run: Of what was judged.
    """

    version: str
    code: str
    run: str


def judge_again(folder: Path) -> FinishedRun:
    """Judge a run directory and keep the verdict beside it.

    Raises:
        StoreError: It is not a run directory, or cannot be read.
    """
    basis = basis_of(folder, read_facts(folder))
    history = open_history(folder)
    verdict = verdict_of(history)
    _keep(folder, basis, history, verdict)
    return finish_judged(history, verdict)


def judge_unless_kept(folder: Path, say: Callable[[str], None] | None = None) -> FinishedRun:
    """Take the verdict that is kept beside a run; judge where there is none that counts. Nothing is written.

    Args:
        say: Takes why a kept verdict does not count.

    Raises:
        StoreError: It is not a run directory, or cannot be read.
    """
    return _judged_before(folder, say) or judge_history(open_history(folder))


def judge_again_unless_kept(folder: Path, say: Callable[[str], None] | None = None) -> FinishedRun:
    """The same, and keep the verdict."""
    return _judged_before(folder, say) or judge_again(folder)


def _judged_before(folder: Path, say: Callable[[str], None] | None) -> FinishedRun | None:
    facts = read_facts(folder)
    if not (folder / FILE).is_file():
        return None
    verdict, why_not = _find(folder, basis_of(folder, facts))
    if verdict is not None:
        return finish_judged(open_history(folder), verdict)
    if say is not None:
        say(f"judging {folder} again: {why_not}")
    return None


def basis_of(folder: Path, facts: RunFacts) -> Basis | None:
    """Return what a verdict of a run would rest on now; None where that cannot be told.

    To be asked before the run is read: what changes later then makes a difference.
    """
    if any((folder / name).exists() for name in _JOURNALS):
        return None
    try:
        code = _digest(_code_files(facts))
        run = _digest((name, folder / name) for name in _JUDGED if (folder / name).exists())
    except OSError:
        return None
    return Basis(tritonchaos.__version__, code, run)


def _keep(folder: Path, basis: Basis | None, history: History, verdict: Verdict) -> None:
    """Keep a verdict, or remove an older one where this one is not to be kept; a folder may be read-only."""
    path = folder / FILE
    is_whole = not history.interrupted and not any(a.reason.startswith(CHECKER_FAILED) for a in verdict.assessments)
    try:
        if basis is None or not is_whole:
            path.unlink(missing_ok=True)
            return
        beside = path.with_name(f".{FILE}")
        beside.write_text(json.dumps(_document(basis, verdict), indent=1) + "\n", encoding="utf-8")
        beside.replace(path)
    except OSError:
        return


def _find(folder: Path, basis: Basis | None) -> tuple[Verdict | None, str]:
    """Return the kept verdict, or else why it does not count."""
    try:
        kept: Any = json.loads((folder / FILE).read_bytes())
        if basis is None or kept["basis"] != to_plain(basis):
            return None, _difference(kept["basis"], basis)
        verdict: Verdict = from_plain(Verdict, kept["verdict"])
        is_intact = kept == _document(basis, verdict)
        return (verdict, "") if is_intact else (None, f"{FILE} is damaged")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None, f"{FILE} is damaged"


def _document(basis: Basis, verdict: Verdict) -> dict[str, Any]:
    plain = to_plain(verdict)
    digest = hashlib.blake2b(json.dumps(plain).encode()).hexdigest()
    return {"basis": to_plain(basis), "verdict": plain, "verdict_digest": digest}


def _difference(kept: Any, now: Basis | None) -> str:
    if now is None or kept.get("run") != now.run:
        return "the run has changed since it was judged"
    if kept.get("version") != now.version:
        return f"it was judged by tritonchaos {kept.get('version')}"
    return "it was judged by other code"


def _code_files(facts: RunFacts) -> Iterator[tuple[str, Path]]:
    """Yield the source files of tritonchaos, and of the checks of a run that came from elsewhere.

    Raises:
        OSError: There is no source.
    """
    ours = Path(tritonchaos.__file__).parent
    files = sorted(ours.rglob("*.py"))
    if not files:
        raise OSError("tritonchaos has no source files here")
    # Another Python may add up numbers in another way.
    yield f"python {sys.version_info[0]}.{sys.version_info[1]}", files[0]
    yield from ((str(path.relative_to(ours)), path) for path in files)
    for name, checker in build_checkers(facts.checks):
        yield name, Path(str(getattr(sys.modules.get(type(checker).__module__), "__file__", None)))


def _digest(files: Iterator[tuple[str, Path]]) -> str:
    """Digest names, sizes and bytes."""
    digest = hashlib.blake2b(digest_size=32)
    for name, path in files:
        digest.update(f"{name}\0{path.stat().st_size}\0".encode("utf-8", "surrogatepass"))
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    return digest.hexdigest()
