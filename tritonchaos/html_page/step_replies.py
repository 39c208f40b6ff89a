"""What came back for a step, as the page says it."""

from __future__ import annotations

from typing import Final

from tritonchaos.expectation import mismatch
from tritonchaos.html_page.markup import shown
from tritonchaos.observations import Answer, StepFinished
from tritonchaos.summary import reply_text
from tritonchaos.summary.faults import describe_edit

_REPLY_CHARACTERS: Final = 300
OK, REFUSED, UNMET = range(3)


def outcome_of(step: StepFinished) -> int:
    """Tell steps that did not do what they should from those that were refused as they should be, and from the rest."""
    if mismatch(step) is not None:
        return UNMET
    return REFUSED if not isinstance(step.reply, Answer | None) or _is_refused(step) else OK


def _is_refused(step: StepFinished) -> bool:
    return isinstance(step.reply, Answer) and step.reply.status >= 400


def step_reply(step: StepFinished) -> str:
    """Print what came back, and what was expected where it did not."""
    skipped = step.observed.get("skipped")
    text = reply_text(step.reply) if step.reply is not None else str(skipped or _without_reply(step))
    unmet = mismatch(step)
    told = f"; not as expected: {unmet[:_REPLY_CHARACTERS]}" if unmet else ""
    return shown(f"{text[:_REPLY_CHARACTERS]}{told}")


def _without_reply(step: StepFinished) -> str:
    if step.spec.name in ("edit_config", "put_file", "delete_file", "add_version"):
        return describe_edit(step)
    return "done"
