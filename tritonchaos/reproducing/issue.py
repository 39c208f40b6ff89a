"""ISSUE.md: the report of a finding in the layout of Triton's issue template, ready to paste."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tritonchaos.observations import Answer, NoAnswer, StepFinished
from tritonchaos.reporters.markdown_text import code, fenced, plain, table
from tritonchaos.reproducing.claims import seen_of
from tritonchaos.reproducing.course import Part, plain_expectation
from tritonchaos.reproducing.model_files import ModelFiles
from tritonchaos.reproducing.program.expecting import unmet
from tritonchaos.reproducing.program.sizes import amount
from tritonchaos.reproducing.recorded import Recorded
from tritonchaos.summary import TableBlock, TableRow
from tritonchaos.verdict import Finding

_EVIDENCE_LINES: Final = 40
_CONFIG_LINES: Final = 120
_HARMLESS: Final = re.compile(r"-?[\w.]+(?: [\w.,]+)*|")
# Facts of the target that a reader of an issue asks for.
_FACTS: Final = frozenset(
    {
        "target",
        "image",
        "image_id",
        "image_digest",
        "engine",
        "server_origin",
        "server_command",
        "machine",
        "kernel",
        "cpu_count",
    }
)
_ROWS: Final = 24
_REPLY_CHARACTERS: Final = 240
_CODES: Final = "exit code 1: reproduced, 0: not reproduced, 3: cannot tell"


def docker_line(recorded: Recorded, uses_gpu: bool) -> str:
    """The command that runs repro.py inside the official image, client and server in one container."""
    facts = recorded.finished.history.facts.target
    image = facts.get("image", "")
    digest = facts.get("image_digest", "")
    if image and "@" not in image and digest.startswith("sha256:"):
        image = f"{image}@{digest}"
    gpus = "--gpus all " if uses_gpu else ""
    return (
        f'docker run --rm --init {gpus}--network none --shm-size 1g --user "$(id -u):$(id -g)" '
        f'-v "$PWD":/repro:ro -w /tmp {image or "$IMAGE"} python3 /repro/repro.py'
    )


def image_sentence(recorded: Recorded) -> str:
    """Say which image the docker line means."""
    facts = recorded.finished.history.facts.target
    if facts.get("image"):
        digest = facts.get("image_digest", "")
        how = (
            "by its digest"
            if "@" in facts["image"] or digest.startswith("sha256:")
            else f"which has no digest ({digest})"
        )
        return f"The image is that of the recorded run, {how}."
    version = facts.get("triton_version") or "the version below"
    return f"The recorded run used a tritonserver outside a container: set IMAGE to an image with Triton {version}."


def issue_text(
    recorded: Recorded, finding: Finding, recipe: Mapping[str, Any], files: ModelFiles, parts: Sequence[Part]
) -> str:
    """Write the whole report."""
    sections = (
        _description(recorded, finding),
        _information(recorded, finding),
        _to_reproduce(recorded, recipe, files),
        _observed(recorded, finding, recipe, parts),
        _expected(finding, recipe),
    )
    return "\n\n".join(text for section in sections for text in section) + "\n"


def _description(recorded: Recorded, finding: Finding) -> Iterator[str]:
    yield f"# {plain(finding.kind)}: {plain(finding.title)}"
    yield "**Description**"
    yield _in_words(finding)
    if finding.evidence:
        yield fenced(list(finding.evidence[:_EVIDENCE_LINES]))
    if finding.undocumented:
        yield "The step that led here goes outside Triton's documented rules."
    if finding.known:
        yield f"Perhaps the same as {plain(finding.known)}."
    about = recorded.scenario.get("about")
    if about:
        yield f"Scenario after {plain(str(about))}."


def _in_words(finding: Finding) -> str:
    where = f" First seen at {plain(str(finding.position))}." if finding.position is not None else ""
    if finding.bytes_per_cycle is None:
        return f"{plain(finding.title)}.{where}"
    metric = finding.metric or ""
    low, high = finding.interval_bytes_per_cycle or (finding.bytes_per_cycle, finding.bytes_per_cycle)
    interval = f"95 % interval {amount(metric, low)} to {amount(metric, high)}"
    return f"{code(metric)} grows by {amount(metric, finding.bytes_per_cycle)} per {finding.per} ({interval}).{where}"


def _information(recorded: Recorded, finding: Finding) -> Iterator[str]:
    facts = recorded.finished.history.facts
    yield "**Triton Information**"
    version = facts.target.get("triton_version") or "not known"
    origin = facts.target.get("image") or facts.target.get("server_origin") or facts.target.get("target", "")
    how = "container" if facts.target.get("image") else "not a container"
    yield f"Triton {plain(version)}, {how}: {plain(origin)}."
    rows = [(code(name), plain(value)) for name, value in versions(recorded).items()]
    yield table(("", ""), rows)
    variants = ", ".join(f"{plain(model)}: {plain(variant)}" for model, variant in facts.variants.items())
    yield f"Served variants: {variants or 'none'}."


def versions(recorded: Recorded) -> dict[str, str]:
    """What was used, by name."""
    facts = recorded.finished.history.facts
    known = {name: value for name, value in facts.target.items() if value and _is_version(name)}
    return {**known, "tritonchaos": facts.tritonchaos_version, "scenario": facts.scenario, "seed": str(facts.seed)}


def _is_version(name: str) -> bool:
    is_named = name in _FACTS or name.endswith("_version") or name.startswith(("gpu_", "driver", "cuda", "container_"))
    return is_named and name != "gpu_uuids"


def _to_reproduce(recorded: Recorded, recipe: Mapping[str, Any], files: ModelFiles) -> Iterator[str]:
    yield "**To Reproduce**"
    uses_gpu = recorded.finished.history.facts.uses_gpu
    yield "\n".join(
        [
            "1. Unpack the attached bundle and go into its folder.",
            f"2. {image_sentence(recorded)}",
            "3. Run it; client and server are in the container, nothing is published:",
        ]
    )
    yield fenced([docker_line(recorded, uses_gpu)])
    yield f"Without Docker: `python3 repro.py --server /path/to/tritonserver`. {_CODES[0].upper()}{_CODES[1:]}."
    yield "What it does:"
    yield "\n".join(f"{number}. {line}" for number, line in enumerate(_steps(recipe), 1))
    yield from _configs(recipe, files)


def _steps(recipe: Mapping[str, Any]) -> Iterator[str]:
    mode, flags = recipe["server"]["mode"], " ".join(f"--{n}={v}" for n, v in recipe["server"]["flags"].items())
    yield f"Start tritonserver with {code(f'--model-control-mode={mode} {flags}'.strip())}."
    for block in recipe["blocks"]:
        steps = "; ".join(_step_in_words(step) for step in block["each"])
        count = "once" if block["cycles"] == 1 else f"{block['cycles']} times"
        times = f"{count} ({block['arm']} cycles): " if block["cycles"] else ""
        yield f"{plain(block['phase'])}: {times}{steps}."
    yield "Stop tritonserver with SIGTERM."


def _step_in_words(step: Mapping[str, Any]) -> str:
    do, model = step["do"], code(str(step.get("model", "")))
    if do == "use":
        return f"bring the files of {model} into the state {code(str(step['state']))}"
    if do == "wait":
        return f"wait {step['seconds']} s"
    error = step.get("expect", {}).get("error")
    refused = f" (must be refused with {code(str(error))})" if error else ""
    if do == "unload":
        return f"unload {model}, and wait until the repository index shows it gone"
    if do == "request":
        return f"{step['method']} {code(str(step['path']))}"
    return f"{plain(do.replace('_', ' '))} {model if step.get('model') else ''}".rstrip() + refused


def _configs(recipe: Mapping[str, Any], files: ModelFiles) -> Iterator[str]:
    """The configuration of each model as it begins, and what the edits change in it."""
    texts = {path: body for path, body in files.files.items() if path.endswith("/config.pbtxt")}
    for model, start in sorted(recipe["models"].items()):
        first = _lines(texts.get(f"{start}/{model}/config.pbtxt", b""))
        yield f"config.pbtxt of {code(model)}:"
        yield fenced(first[:_CONFIG_LINES])
        used = [s["state"] for b in recipe["blocks"] for s in b["each"] if s["do"] == "use" and s["model"] == model]
        for state in dict.fromkeys(state for state in used if state != start):
            yield f"What {code(state)} changes in {code(model)}:"
            yield fenced(_changes(files, start, state, model) or ["nothing in files that are handed on"])


def _changes(files: ModelFiles, start: str, state: str, model: str) -> list[str]:
    before = {p.partition("/")[2]: b for p, b in files.files.items() if p.startswith(f"{start}/{model}/")}
    after = {p.partition("/")[2]: b for p, b in files.files.items() if p.startswith(f"{state}/{model}/")}
    lines = [f"{path} is deleted" for path in sorted(before.keys() - after.keys())]
    for path in sorted(after):
        if before.get(path) != after[path]:
            old, new = _lines(before.get(path, b"")), _lines(after[path])
            lines += list(difflib.unified_diff(old, new, path, path, lineterm="", n=1))
    return lines[:_CONFIG_LINES]


def _lines(body: bytes) -> list[str]:
    return body.decode("utf-8", "replace").splitlines()


# --- tables --------------------------------------------------------------------------------------


def _observed(recorded: Recorded, finding: Finding, recipe: Mapping[str, Any], parts: Sequence[Part]) -> Iterator[str]:
    yield "**Observed**"
    rows = observed_rows(recorded, recipe, parts)
    if "metric" in recipe["claim"]:
        yield (
            f"Post-unload readings, each the median of {recipe['sample_count']} samples that lie within one page "
            "quantum, taken when the index shows the model in none of READY, LOADING, UNLOADING:"
        )
    yield table(tuple(rows[0]) if rows else ("",), [tuple(_cell(value) for value in row.values()) for row in rows])


def _cell(text: str) -> str:
    """Sizes and words as they are: a backslash before each point makes a table hard to read before it is rendered."""
    return text if _HARMLESS.fullmatch(text) else plain(text)


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
    "unmet": "the step does what the scenario expects of it",
}


def expected_sentence(recipe: Mapping[str, Any]) -> str:
    """What should have been seen, in one sentence."""
    claim = recipe["claim"]
    subject = claim.get("metric") or claim.get("step") or ""
    sentence = _EXPECTED[claim["by"]]
    return f"{subject} {sentence}".strip() if claim["by"] in ("growth", "retained", "no_answer") else sentence


def _expected(finding: Finding, recipe: Mapping[str, Any]) -> Iterator[str]:
    yield "**Expected behavior**"
    yield plain(expected_sentence(recipe)) + "."
    yield (
        "The bundle also runs the clean twin (`python3 repro.py --clean-twin`): the same calls without the cause, "
        "which must say that nothing is reproduced."
    )
