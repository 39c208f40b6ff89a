"""What came back for a step, as the page says it."""

from __future__ import annotations

from functools import lru_cache
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
    return outcome_and_reply(step)[0]


def step_reply(step: StepFinished) -> str:
    """Print what came back, and what was expected where it did not."""
    return outcome_and_reply(step)[1]


def outcome_and_reply(step: StepFinished) -> tuple[int, str]:
    """Return both at once."""
    unmet, reply = mismatch(step), step.reply
    if reply is None:
        text = _shown(str(step.observed.get("skipped") or _without_reply(step)))
    else:
        text = _shown(reply_text(reply))
    if unmet is not None:
        return UNMET, f"{text}; not as expected: {_shown(unmet)}"
    is_refused = reply is not None and not (isinstance(reply, Answer) and reply.status < 400)
    return REFUSED if is_refused else OK, text


@lru_cache(maxsize=512)  # the same reply comes back cycle after cycle
def _shown(text: str) -> str:
    return shown(text[:_REPLY_CHARACTERS])


def _without_reply(step: StepFinished) -> str:
    if step.spec.name in ("edit_config", "put_file", "delete_file", "add_version"):
        return describe_edit(step)
    return "done"
