"""Says whether what was seen is the recorded finding: the same kind, at the same step, of the same size."""

from __future__ import annotations

import re
from typing import Any

from tritonchaos.reproducing.program.sizes import (
    CANNOT_TELL,
    NOT_REPRODUCED,
    REPRODUCED,
    judge_growth,
    judge_retained,
)
from tritonchaos.reproducing.program.slowness import judge_slow

WORDS = {REPRODUCED: "REPRODUCED", NOT_REPRODUCED: "NOT REPRODUCED", CANNOT_TELL: "CANNOT TELL"}
FATAL = (4, 6, 7, 8, 11)


def judge(claim: dict[str, Any], run: dict[str, Any]) -> tuple[int, list[str]]:
    """Compare a run with the recorded finding.

    Args:
        claim: What was recorded; "by" names the rule.
        run: {"steps", "cycles", "exit_code" (while it should have run), "stop", "log", "cut_short"}.

    Returns:
        The exit code, and sentences with the numbers.
    """
    code, lines = RULES[claim["by"]](claim, run)
    if code == NOT_REPRODUCED and run.get("differences"):
        told = ["the recorded run did otherwise, and that may matter: {}".format(line) for line in run["differences"]]
        return CANNOT_TELL, lines + told
    if code == NOT_REPRODUCED and run.get("cut_short") and claim["by"] != "will_not_stop":
        return CANNOT_TELL, lines + ["the run did not come to its end: {}".format(run["cut_short"])]
    return code, lines


def is_shown(claim: dict[str, Any], run: dict[str, Any]) -> bool:
    """Say whether an answer was seen that is the finding, so that nothing more needs to be asked."""
    return claim["by"] in ("unmet", "inconsistent") and RULES[claim["by"]](claim, run)[0] == REPRODUCED


def asked_of(claim: dict[str, Any], run: dict[str, Any]) -> list[dict[str, Any]]:
    """What was seen of the claim's step, on its track; of a track the first and those that were not as expected."""
    track = claim.get("track", "")
    steps = run.get("beside", []) if track else run["steps"]
    return [seen for seen in steps if seen["step"] == claim["step"] and seen.get("track", "") == track]


def count_of(claim: dict[str, Any], run: dict[str, Any], asked: list[dict[str, Any]]) -> int:
    """How often the claim's step was done in its phase."""
    key = (claim["phase"], claim.get("track", ""), claim["step"])
    return max(len(asked), int(run.get("beside_counts", {}).get(key, 0)))


# --- calls, crashes, stops -----------------------------------------------------------------------


def judge_no_answer(claim: dict[str, Any], run: dict[str, Any]) -> tuple[int, list[str]]:
    """A call without an answer, or a model that stays LOADING or UNLOADING."""
    asked = asked_of(claim, run)
    hung = [seen for seen in asked if seen.get("no_answer") == "deadline" or seen.get("stuck") or is_silent(seen)]
    if hung:
        first = hung[0]
        what = "was not answered within its deadline"
        if first.get("stuck"):
            what = "left the model {} past its deadline".format(first["stuck"])
        elif is_silent(first):
            what = "was the last that the server answered, within its deadline"
        line = "{} {} of {:g} s ({})".format(first["step"], what, first["deadline_s"], place_of(first))
        return REPRODUCED, [line] + run.get("hang", [])
    if run["exit_code"] is not None:
        return CANNOT_TELL, ["the server ended instead: {}".format(ended(run["exit_code"]))]
    on_trial = [seen for seen in asked if seen["phase"] == claim["phase"]]
    if not on_trial:
        return CANNOT_TELL, ["{} was never asked in phase {}".format(claim["step"], claim["phase"])]
    slowest = max(on_trial, key=lambda seen: seen.get("took_s", 0.0))
    told = slowest.get("no_answer") or "status {}".format(slowest.get("status"))
    return NOT_REPRODUCED, [
        "{} was answered {} times, the slowest in {:.3g} s ({}); recorded: no answer within {:g} s".format(
            claim["step"], count_of(claim, run, on_trial), slowest.get("took_s", 0.0), told, claim["deadline_s"]
        )
    ]


def is_silent(seen: dict[str, Any]) -> bool:
    """Say whether nothing was answered any more after a step."""
    told = seen.get("probe")
    return told is not None and told["index"] is None and told["ready"] is None and told["metadata"] is None


def judge_crash(claim: dict[str, Any], run: dict[str, Any]) -> tuple[int, list[str]]:
    """The server's end by a signal or an exit status that nobody asked for."""
    found = run["exit_code"]
    if found is None and run["stop"].get("was_running") and is_fatal(run["stop"]["exit_code"]):
        found = run["stop"]["exit_code"]
    printed = {int(number) for number in re.findall(r"Signal \((\d+)\) received", run["log"])}
    wanted = claim["exit_code"]
    lines = ["recorded: the server {} during {}".format(ended(wanted), claim["step"] or "its stop")]
    if found is None and claim.get("survived") and -wanted in printed:
        return REPRODUCED, lines + ["it printed signal {} and went on".format(-wanted)]
    if found is None:
        return NOT_REPRODUCED, lines + ["it lived through {} steps and stopped by itself".format(len(run["steps"]))]
    last = run.get("last") or (run["steps"][-1]["step"] if run["steps"] else "no step")
    lines.append("found: it {} during {}".format(ended(found), last))
    is_same = found == wanted or (wanted is None and found is not None)
    if is_same and (not claim["step"] or last == claim["step"] or claim["any_step"]):
        return REPRODUCED, lines
    return CANNOT_TELL, lines + ["another crash than the recorded one"]


def judge_will_not_stop(claim: dict[str, Any], run: dict[str, Any]) -> tuple[int, list[str]]:
    """SIGKILL was needed, or the server gave up waiting for its own stop."""
    stop = run["stop"]
    if not stop["was_running"]:
        return CANNOT_TELL, ["the server had ended before it was told to stop: {}".format(ended(stop["exit_code"]))]
    if stop["forced"] or stop["expired"]:
        how = "SIGKILL was needed" if stop["forced"] else "Exit timeout expired"
        return REPRODUCED, ["told to stop with SIGTERM, it ended after {:.1f} s: {}".format(stop["took_s"], how)]
    return NOT_REPRODUCED, ["it stopped by itself {:.2g} s after SIGTERM".format(stop["took_s"])]


def judge_left(claim: dict[str, Any], run: dict[str, Any]) -> tuple[int, list[str]]:
    """Processes, shared memory or temp files that outlive the server."""
    if not run["stop"]["was_running"]:
        return CANNOT_TELL, ["the server had ended before it was told to stop: {}".format(ended(run["exit_code"]))]
    count = run["stop"]["left"][claim["kind"]]
    told = "{} of kind {} stayed behind; recorded: {}".format(count, claim["kind"], claim["count"])
    return (REPRODUCED if count else NOT_REPRODUCED), [told]


# --- answers that are not as they must be --------------------------------------------------------


def judge_unmet(claim: dict[str, Any], run: dict[str, Any]) -> tuple[int, list[str]]:
    """The same expectation of the same step is not met in the same way."""
    asked = [seen for seen in asked_of(claim, run) if seen["phase"] == claim["phase"]]
    missed = [seen for seen in asked if seen["mismatch"]]
    recorded = "recorded: {}: {}".format(claim["step"], claim["text"])
    same = [seen for seen in missed if is_same_mismatch(seen, claim)]
    if same:
        return REPRODUCED, [
            recorded,
            "found {} times, first at {}: {}".format(len(same), place_of(same[0]), same[0]["mismatch"]),
        ]
    if missed:
        return CANNOT_TELL, [recorded, "found something else: {}".format(missed[0]["mismatch"])]
    if not asked:
        return CANNOT_TELL, [recorded, "the step was never reached"]
    return NOT_REPRODUCED, [recorded, "{} times it did what it must".format(count_of(claim, run, asked))]


def is_same_mismatch(seen: dict[str, Any], claim: dict[str, Any]) -> bool:
    """Say whether a step missed its expectation as in the recorded run; of outputs only that they are wrong counts."""
    is_same_text = claim["kind"] == "outputs" or comparable(seen["mismatch"]) == comparable(claim["text"])
    return bool(seen["unmet"] == claim["kind"] and is_same_text)


def judge_inconsistent(claim: dict[str, Any], run: dict[str, Any]) -> tuple[int, list[str]]:
    """Index, model ready and metadata say after the step what they said in the recorded run."""
    asked = [seen for seen in asked_of(claim, run) if "probe" in seen or "group_probe" in seen]
    asked = [seen for seen in asked if seen["phase"] == claim["phase"]]
    recorded = "recorded after {}: {}".format(claim["step"], said(claim["said"]))
    if not asked:
        return CANNOT_TELL, [recorded, "the step was never answered"]
    found = [[seen["status"] == 200] + answers_of(seen.get("probe") or seen["group_probe"]) for seen in asked]
    if claim["said"] in found:
        return REPRODUCED, [recorded, "found {} times of {}".format(found.count(claim["said"]), len(found))]
    torn = [one for one in found if len(set(one[1:])) > 1]
    if torn:
        return CANNOT_TELL, [recorded, "found another contradiction: {}".format(said(torn[0]))]
    return NOT_REPRODUCED, [recorded, "{} times all agreed: {}".format(len(found), said(found[-1]))]


def answers_of(told: dict[str, Any]) -> list[bool]:
    """Whether index, model ready and metadata say that the model is served."""
    return [bool(told["index"]), told["ready"] == 200, told["metadata"] == 200]


def said(answers: list[bool]) -> str:
    """Print (answered 200, index, model ready, metadata)."""
    names = ("answered 200", "READY in the index", "model ready", "metadata")
    return ", ".join("{}: {}".format(name, "yes" if yes else "no") for name, yes in zip(names, answers))


RULES = {
    "growth": judge_growth,
    "retained": judge_retained,
    "slow": judge_slow,
    "no_answer": judge_no_answer,
    "crash": judge_crash,
    "will_not_stop": judge_will_not_stop,
    "left": judge_left,
    "unmet": judge_unmet,
    "inconsistent": judge_inconsistent,
}


# --- words ---------------------------------------------------------------------------------------


def is_fatal(exit_code: int | None) -> bool:
    """Say whether an exit code is of a signal that means a crash."""
    return exit_code is not None and (-exit_code in FATAL or exit_code - 128 in FATAL)


def ended(exit_code: int | None) -> str:
    """Print how the server ended."""
    if exit_code is None:
        return "ended unasked"
    return "died of signal {}".format(-exit_code) if exit_code < 0 else "ended with exit status {}".format(exit_code)


def place_of(seen: dict[str, Any]) -> str:
    """Print where in the run a step was."""
    return seen["phase"] if seen["cycle"] is None else "{}, cycle {}".format(seen["phase"], seen["cycle"])


def comparable(text: str) -> str:
    """A text without what differs from machine to machine: numbers, and folders, of which a bundle names few."""
    text = re.sub(r"(?:<path>|<home>)?(?:/[^\s/'\"]+)*/([^\s/'\",:;()]+)", last_of_path, text)
    return re.sub(r"\d+(\.\d+)?", "#", text.replace("<path>", "").replace("<home>", ""))


def last_of_path(match: Any) -> str:
    """The name of a file; of a folder nothing."""
    name: str = match.group(1)
    return name if "." in name else ""
