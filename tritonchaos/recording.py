"""Sets up everything a walk needs around one server, walks, and takes it all down again."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tritonchaos.choosing import Chosen
from tritonchaos.fitting import uses
from tritonchaos.judging import build_checkers, needs_probes, wants_trim
from tritonchaos.observations import Event, RunFacts
from tritonchaos.plugins import SAMPLERS, HasOwnModels, LaunchSpec, RunningServer, Watch, repository_place
from tritonchaos.processes import read_stat
from tritonchaos.repository import ModelRepository, model_names
from tritonchaos.sampling import Sampling
from tritonchaos.scenario import Scenario
from tritonchaos.scenario_engine import EngineParts, Interrupt, Outcome, walk
from tritonchaos.schedule import Schedule
from tritonchaos.store import RunStore


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be recorded, with everything chosen.

    Attributes:
        model_repository: A user's model repository; copied, never touched.
        watch: The stopping rule, if a check offers one; others may look at it while the run goes on.
        observers: Called with each event.
    """

    scenario: Scenario
    schedule: Schedule
    chosen: Chosen
    facts: RunFacts
    model_repository: Path | None
    watch: Watch | None
    observers: tuple[Callable[[Event], None], ...]


def record(order: Order, store: RunStore, interrupt: Interrupt) -> None:
    """Walk the schedule and record it; on any way out nothing is left running and the scratch folder is gone.

    The record is closed as an interrupted run if the walk does not reach its end.
    """
    with ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, store.folder / "scratch", ignore_errors=True)
        launch = _launch(order, store)
        repository = _open_repository(order, launch, store.folder / "repository")
        cleanup.callback(repository.withdraw)
        _fill(repository, order, store)
        clock_ns = _clock()
        samplers = [SAMPLERS[name]() for name in SAMPLERS.names()]
        sampling = Sampling(samplers, clock_ns, store.add_samples, wait_s=_wait_and_pack(store))
        cleanup.callback(sampling.close)
        parts = _parts(order, store, launch, repository, sampling, clock_ns)
        _walk_to_an_end(order.schedule, parts, interrupt, store)


def _walk_to_an_end(schedule: Schedule, parts: EngineParts, interrupt: Interrupt, store: RunStore) -> None:
    outcome = Outcome(ended_by="interrupted")
    try:
        outcome = walk(schedule, parts, interrupt)
    finally:
        parts.sampling.close()  # hands over its last samples before the record is closed
        store.finish(interrupted=outcome.ended_by == "interrupted")


def _wait_and_pack(store: RunStore) -> Callable[[float], None]:
    """Use the time between the readings of a settle window for work that would else lengthen the cycle."""

    def wait_s(seconds: float) -> None:
        end = time.monotonic() + seconds
        store.pack()
        time.sleep(max(0.0, end - time.monotonic()))

    return wait_s


def _clock() -> Callable[[], int]:
    began_ns = time.monotonic_ns()
    return lambda: time.monotonic_ns() - began_ns


def _launch(order: Order, store: RunStore) -> LaunchSpec:
    scratch = (store.folder / "scratch").resolve()
    temp = scratch / "tmp"
    temp.mkdir(parents=True)
    # Short and unlike any other run's: it is the mark by which clean-up knows this run's shared memory.
    prefix = f"tc_{secrets.token_hex(4)}_"
    store.remember("shm_prefix", prefix)
    spec = LaunchSpec(
        repository=scratch / "model_repository",
        scratch=scratch,
        temp=temp,
        log_file=store.log_file.resolve(),
        shm_prefix=prefix,
        backends={name: path for model in order.chosen.models.values() for name, path in model.backends.items()},
        may_trim=wants_trim(build_checkers(order.facts.checks)),
        may_cut_network=uses(order.scenario, "cut_network"),
    )
    return spec.with_settings(order.scenario.server.settings())


def _open_repository(order: Order, launch: LaunchSpec, archive: Path) -> ModelRepository:
    """Open the folder that the models are laid out in; the server reads it unless the files are sent."""
    place = repository_place(order.chosen.target)
    if place.sends_files:
        launch.repository.mkdir()
        return ModelRepository(launch.scratch / "sent_models", archive, sends_files=True)
    if place.shared is not None:
        return ModelRepository(place.shared, archive, shared=True)
    return ModelRepository(launch.repository, archive)


def _fill(repository: ModelRepository, order: Order, store: RunStore) -> None:
    """Lay out the models; what is put into a shared folder is remembered, for clean-up after a kill."""
    if repository.is_shared:
        store.remember("staging", str(repository.staging))
        store.commit()
    if order.model_repository is not None:
        target = order.chosen.target
        if isinstance(target, HasOwnModels):
            target.check_models([*order.chosen.models, *model_names(order.model_repository)])
        repository.copy_from(order.model_repository)
    for name, model in order.chosen.models.items():
        repository.add(name, model.files)
    if repository.is_shared:
        # With the folders' numbers, so that a folder that somebody makes later is never taken for ours.
        folders = {str(place): place.stat().st_ino for place in map(repository.model_dir, repository.models())}
        store.remember("shared_models", folders)
        store.commit()


class _Started:
    """Completes the run's facts with what only a started server can say, and remembers it for clean-up."""

    def __init__(self, order: Order, store: RunStore) -> None:
        self._store = store
        self._facts = order.facts
        self._target = order.chosen.target

    def __call__(self, running: RunningServer, unavailable: Mapping[str, str]) -> None:
        self._facts = replace(
            self._facts,
            target={**self._facts.target, **self._target.describe()},
            unavailable={**self._facts.unavailable, **unavailable},
        )
        self._store.update_facts(self._facts)
        stat = read_stat(running.pid) if running.pid is not None else None
        if stat is not None and running.is_ours:  # what is remembered is ended by clean-up
            self._store.remember("server", {"pid": stat.pid, "start_ticks": stat.start_ticks})
        self._store.commit()


def _keep_evidence(folder: Path, name: str, text: str) -> str:
    """Write a text into the run directory and return its path within it."""
    path = folder / "evidence" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="replace")
    return str(path.relative_to(folder))


def _parts(
    order: Order,
    store: RunStore,
    launch: LaunchSpec,
    repository: ModelRepository,
    sampling: Sampling,
    clock_ns: Callable[[], int],
) -> EngineParts:
    checkers = build_checkers(order.facts.checks)
    uuids = order.facts.target.get("gpu_uuids", "")
    return EngineParts(
        target=order.chosen.target,
        launch=launch,
        repository=repository,
        models=order.chosen.models,
        sampling=sampling,
        store=store,
        commit=store.commit,
        clock_ns=clock_ns,
        sample_count=order.facts.sample_count,
        settle_at_most_s=order.scenario.sample.settle_at_most_s,
        uses_gpu=order.facts.uses_gpu,
        watch=order.watch,
        probes=needs_probes(checkers),
        gpu_uuids=tuple(uuid for uuid in uuids.split(",") if uuid),
        started=_Started(order, store),
        keep_evidence=lambda name, text: _keep_evidence(store.folder, name, text),
        observers=order.observers,
        skipped_phases=order.chosen.skipped_phases,
        restarts_at_most=order.scenario.server.restarts_at_most,
    )
