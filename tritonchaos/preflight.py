"""What can be seen to go wrong before a server is started: edits that lead nowhere, no shared memory."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from tritonchaos.choosing import Chosen, choose, usable_target
from tritonchaos.errors import ConfigTextError, TargetUnavailable
from tritonchaos.pbtxt import edit
from tritonchaos.plugins import HasRunLine, LaunchSpec, Target
from tritonchaos.scenario import Scenario, TargetEntry
from tritonchaos.schedule import Schedule, ScheduledStep, plain
from tritonchaos.templates import ServedModel
from tritonchaos.units import MIB, format_bytes

_REPLACE: Final = frozenset({"put_file", "delete_file"})
_CONFIG: Final = "config.pbtxt"
_SHARED_MEMORY: Final = Path("/dev/shm")
# The python backend takes 1 MiB for each stub and grows it by 1 MiB (its README, "shm-default-byte-size").
_NEEDED_PER_MODEL: Final = 2 * MIB


def check_edits(schedule: Schedule, models: Mapping[str, ServedModel], model_repository: Path | None) -> None:
    """Try every edit of a config.pbtxt on its text.

    Raises:
        ConfigTextError: A field path that ModelConfig does not have, or a text that cannot be edited.
    """
    first = _texts_of(model_repository) | {name: _text(model.files.get(_CONFIG, b"")) for name, model in models.items()}
    texts = dict(first)
    for step in _edits(schedule):
        model = step.spec.model
        if step.spec.name == "edit_config" and model in texts:
            texts[model] = _edited(model, texts[model], step)
        elif step.spec.name == "restore":
            texts.update(first if model is None else {model: first[model]} if model in first else {})
        elif step.spec.name in _REPLACE and step.spec.fields["path"] == _CONFIG and model is not None:
            # What a file of the user's says is not looked into: edits after it are tried when they are made.
            text = step.spec.fields.get("text")
            texts.update({} if text is None else {model: text})
            texts = {name: one for name, one in texts.items() if name != model or text is not None}


def _edited(model: str, text: str, step: ScheduledStep) -> str:
    try:
        return edit(text, step.spec.fields["set"])
    except ConfigTextError as error:
        where = f"edit_config of {model} in phase {step.position.phase}, {_CONFIG}"
        raise ConfigTextError(f"{where}: {error.message}", hint=error.hint) from None


def _edits(schedule: Schedule) -> Iterator[ScheduledStep]:
    """Steps in the order in which they run, with the first cycle of each arm standing for all."""
    for phase in schedule.phases:
        yield from plain(phase.before())
        for cycle in islice(phase.cycles(), phase.warm_up_cycles + 2):
            yield from plain(cycle.steps)
        yield from plain(phase.steps())
        yield from plain(phase.after())


def _texts_of(model_repository: Path | None) -> dict[str, str]:
    files = model_repository.glob(f"*/{_CONFIG}") if model_repository is not None else ()
    return {file.parent.name: _text(file) for file in files}


def _text(content: bytes | Path) -> str:
    return (content.read_bytes() if isinstance(content, Path) else content).decode("utf-8", "replace")


def starting_lines(scenario: Scenario, run_folder: Path, template_folders: Sequence[Path]) -> Iterator[str]:
    """How the server of a run would be started: the chosen target, and its command where it is one that people know.

    No image is fetched for it.

    Args:
        run_folder: Run directory; it need not exist.

    Raises:
        TargetUnavailable, TemplateError: As a run would.
    """
    chosen = choose(scenario, template_folders, _without_fetching)
    yield from (f"skipped {what}: {why}" for what, why in chosen.skipped)
    yield f"target {chosen.target.name}"
    if not isinstance(chosen.target, HasRunLine):
        return
    scratch = run_folder.absolute() / "scratch"
    launch = LaunchSpec(
        repository=scratch / "model_repository",
        scratch=scratch,
        temp=scratch / "tmp",
        log_file=run_folder.absolute() / "server.log",
        shm_prefix=f"tc_{secrets.token_hex(4)}_",
        backends={name: path for model in chosen.models.values() for name, path in model.backends.items()},
    )
    yield chosen.target.run_line(launch.with_settings(scenario.server.settings()))


def _without_fetching(entry: TargetEntry) -> Target:
    return usable_target(replace(entry, fields={**entry.fields, "pull": "never"}) if entry.name == "docker" else entry)


def check_shared_memory(chosen: Chosen) -> None:
    """See that the stubs of python models will get their shared memory here.

    A stub that does not get it makes the server refuse a load that is in order: that would be a finding of this
    machine, not of the server.

    Raises:
        TargetUnavailable: /dev/shm is too full.
    """
    stubs = sum(variant == "python" for variant in chosen.variants.values())
    if chosen.target.name != "local" or not stubs or not _SHARED_MEMORY.is_dir():
        return
    free = shutil.disk_usage(_SHARED_MEMORY).free
    if free < stubs * _NEEDED_PER_MODEL:
        raise TargetUnavailable(
            f"{_SHARED_MEMORY} has {format_bytes(free)} free; {stubs} python models need "
            f"{format_bytes(stubs * _NEEDED_PER_MODEL)}",
            hint="remove what killed runs left (`tritonchaos clean`), or give the container a larger --shm-size",
        )
