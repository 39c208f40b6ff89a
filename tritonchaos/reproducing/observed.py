"""Tables of what a recorded run saw, and the sentence that says what it should have seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tritonchaos.observations import Answer, NoAnswer, StepFinished
from tritonchaos.reproducing.claims import seen_of
from tritonchaos.reproducing.course import Part, plain_expectation
from tritonchaos.reproducing.program.expecting import unmet
from tritonchaos.reproducing.program.sizes import amount
from tritonchaos.reproducing.recorded import Recorded
from tritonchaos.summary import TableBlock, TableRow

_ROWS: Final = 24
_REPLY_CHARACTERS: Final = 240


def observed_rows(recorded: Recorded, recipe: Mapping[str, Any], parts: Sequence[Part]) -> list[dict[str, str]]:
    """What the recorded run saw: post-unload readings for a growth, else step by step."""
    if "metric" in recipe["claim"]:
        return [row for block in recorded.finished.blocks for row in _block_rows(block, recipe["claim"]["metric"])]
    return list(_step_rows(parts))


def _block_rows(block: TableBlock, metric: str) -> Iterator[dict[str, str]]:
    for row in block.first:
        yield _row(row, metric)
    if block.left_out is not None:
        least, most = block.left_out.least.get(metric, 0), block.left_out.most.get(metric, 0)
        told = f"{block.left_out.rows} more, {amount(metric, least)} to {amount(metric, most)}"
        yield {
            "phase": block.phase,
            "arm": block.arm.value,
            "cycle": "...",
            "load": "",
            metric: told,
            "over the baseline": "",
        }
    for row in block.last:
        yield _row(row, metric)


def _row(row: TableRow, metric: str) -> dict[str, str]:
    used, delta = row.used.get(metric), row.delta.get(metric)
    return {
        "phase": row.phase,
        "arm": row.arm.value,
        "cycle": str(row.cycle),
        "load": row.load_reply[:_REPLY_CHARACTERS],
        metric: "not read" if used is None else amount(metric, used),
        "over the baseline": "" if delta is None else amount(metric, delta),
    }


def _step_rows(parts: Sequence[Part]) -> Iterator[dict[str, str]]:
    seen: set[int] = set()
    count = 0
    for part in parts:
        if id(part) in seen:  # a part that is tried again
            continue
        seen.add(id(part))
        for step in part.finished:
            if step.reply is not None and count < _ROWS:
                count += 1
                yield _step_row(step)


def _step_row(step: StepFinished) -> dict[str, str]:
    found = unmet({"expect": plain_expectation(step.spec.expect)}, seen_of(step))
    return {
        "where": str(step.position),
        "step": step.spec.label(),
        "expected": _wanted(step),
        "observed": _answered(step),
        "as expected": "yes" if found is None else f"no: {found[1]}"[:160],
    }


def _wanted(step: StepFinished) -> str:
    expect = step.spec.expect
    if expect.error is not None:
        return f"an error with {expect.error!r}"[:120]
    return {"ok": "200", "any": "anything"}.get(expect.kind, "as the scenario says")


def _answered(step: StepFinished) -> str:
    reply = step.reply
    if isinstance(reply, NoAnswer):
        return f"no answer ({reply.reason}) in {reply.elapsed_ns / 1e9:.1f} s"
    if isinstance(reply, Answer):
        seen = seen_of(step)
        stuck = f", the model stayed {seen['stuck']}" if "stuck" in seen else ""
        return f"{reply.status} {' '.join(str(seen.get('text', '')).split())}".strip()[:120] + stuck
    return ""


_EXPECTED: Final[Mapping[str, str]] = {
    "growth": "does not grow with the number of cycles, also of failed loads, once the server is warm",
    "retained": "comes back to its level after the first cycles",
    "no_answer": "is answered before its deadline, with success or with an error that names the cause",
    "crash": "the server lives until it is told to stop, and answers every call",
    "will_not_stop": "the server stops by itself within its exit timeout after SIGTERM",
    "left": "nothing stays behind after the server's end",
    "inconsistent": "repository index, model ready and metadata agree after each load and unload",
    "slow": "the steps take no longer than the scenario allows",
    "unmet": "the step does what the scenario expects of it",
}


def expected_sentence(recipe: Mapping[str, Any]) -> str:
    """What should have been seen, in one sentence."""
    claim = recipe["claim"]
    subject = claim.get("metric") or claim.get("step") or ""
    sentence = _EXPECTED[claim["by"]]
    return f"{subject} {sentence}".strip() if claim["by"] in ("growth", "retained", "no_answer") else sentence
