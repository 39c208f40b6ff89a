"""ISSUE.md: the report of a finding in the layout of Triton's issue template, ready to paste."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tritonchaos.reporters.markdown_text import code, fenced, plain, table
from tritonchaos.reproducing.course import Part, flat
from tritonchaos.reproducing.docker_run import docker_line, image_sentence
from tritonchaos.reproducing.model_files import ModelFiles
from tritonchaos.reproducing.model_tensors import tensors_in_words
from tritonchaos.reproducing.observed import expected_sentence, observed_rows
from tritonchaos.reproducing.program.sizes import amount
from tritonchaos.reproducing.recorded import Recorded
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
DIFFERENT: Final = (
    "If nothing is reproduced, that difference may be why, so the program then says that it cannot tell (3) and never "
    "that nothing is there."
)
_CODES: Final = "exit code 1: reproduced, 0: not reproduced, 3: cannot tell"


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
    yield f"Triton {_cell(version)}, {how}: {_cell(origin)}."
    rows = [(code(name), _cell(value)) for name, value in versions(recorded).items()]
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
    yield "\n".join(
        [
            "1. Unpack the attached bundle and go into its folder.",
            f"2. {image_sentence(recorded)}",
            "3. Run it; client and server are in the container, nothing is published:",
        ]
    )
    yield fenced([docker_line(recorded)])
    yield f"Without Docker: `python3 repro.py --server /path/to/tritonserver`. {_CODES[0].upper()}{_CODES[1:]}."
    yield "Models:"
    yield "\n".join(_models(recorded, recipe, files))
    yield "What it does:"
    yield "\n".join(f"{number}. {line}" for number, line in enumerate(_steps(recipe), 1))
    if recipe["differences"]:
        yield "The recorded run did otherwise:"
        yield "\n".join(f"- {plain(line)}" for line in recipe["differences"])
        yield DIFFERENT
    yield from _configs(recipe, files)


def _models(recorded: Recorded, recipe: Mapping[str, Any], files: ModelFiles) -> Iterator[str]:
    """Framework, inputs and outputs of each model."""
    variants = recorded.finished.history.facts.variants
    for model, state in sorted(recipe["models"].items()):
        variant = variants.get(model, "own")
        kind = {"own": "the user's own", "planted": "a stand-in with defects of known size"}.get(
            variant, f"variant {variant}"
        )
        if model in files.stand_ins:
            kind = "a stand-in for a model that is not handed on"
        config = files.files.get(f"{state}/{model}/config.pbtxt", b"").decode("utf-8", "replace")
        yield f"- {code(model)} ({plain(kind)}): {code(tensors_in_words(config))}"


def _steps(recipe: Mapping[str, Any]) -> Iterator[str]:
    mode, flags = recipe["server"]["mode"], " ".join(f"--{n}={v}" for n, v in recipe["server"]["flags"].items())
    yield f"Start tritonserver with {code(f'--model-control-mode={mode} {flags}'.strip())}."
    for block in recipe["blocks"]:
        steps = "; ".join(_step_in_words(step) for step in block["each"])
        count = "once" if block["cycles"] == 1 else f"{block['cycles']} times"
        times = f"{count} ({block['arm']} cycles): " if block["cycles"] else ""
        tracks = recipe["beside"].get(block["phase"], [])
        beside = "".join(f", while {_track_in_words(track)}" for track in tracks)
        yield f"{plain(block['phase'])}: {times}{steps}{beside}."
    yield "Stop tritonserver with SIGTERM."


def _track_in_words(track: Mapping[str, Any]) -> str:
    steps = "; ".join(_step_in_words(step) for step in track["each"])
    clients = "1 client does" if track["workers"] == 1 else f"{track['workers']} clients do"
    rate = f" {track['rate']:g} times a second" if track["rate"] else " again and again"
    start, stop = track["start"], track["stop"]
    begins = f", from {code(str(start['step']))} of {plain(start['track'])} on" if start else ""
    ends = f", for {stop['after_s']:g} s" if "after_s" in stop else f", {stop['times']} times" if stop else ""
    return f"{clients}{rate}{begins}{ends}: {steps}"


def _step_in_words(step: Mapping[str, Any]) -> str:
    do, model = step["do"], code(str(step.get("model", "")))
    if do == "use":
        return f"bring the files of {model} into the state {code(str(step['state']))}"
    if do == "wait":
        return f"wait {step['seconds']} s"
    if do == "together":
        return f"at the same time: {'; '.join(_step_in_words(one) for one in step['steps'])}"
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
        used = [s["state"] for s in _all_steps(recipe) if s["do"] == "use" and s["model"] == model]
        for state in dict.fromkeys(state for state in used if state != start):
            yield f"What {code(state)} changes in {code(model)}:"
            yield fenced(_changes(files, start, state, model) or ["nothing in files that are handed on"])


def _all_steps(recipe: Mapping[str, Any]) -> list[dict[str, Any]]:
    tracks = [track for one in recipe["beside"].values() for track in one]
    return [step for each in (*recipe["blocks"], *tracks) for step in flat(each["each"])]


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


def _expected(finding: Finding, recipe: Mapping[str, Any]) -> Iterator[str]:
    yield "**Expected behavior**"
    yield plain(expected_sentence(recipe)) + "."
    yield (
        "The bundle also runs the clean twin (`python3 repro.py --clean-twin`): the same calls without the cause, "
        "which must say that nothing is reproduced."
    )
