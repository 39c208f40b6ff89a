"""What killed runs left on the engine: containers, networks and volumes, found by label."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from tritonchaos.containers.container import remove_container
from tritonchaos.containers.engine import Engine, asking, connect, find_engine_address
from tritonchaos.containers.labels import RUN, owner_state
from tritonchaos.errors import TargetUnavailable

ON_ENGINE: Final = frozenset({"container", "network", "volume"})


@dataclass(frozen=True, slots=True)
class LeftOnEngine:
    """One thing of ours whose maker has ended.

    Attributes:
        kind: "container", "network" or "volume".
        run: Mark of the run that it belongs to.
    """

    kind: str
    id: str
    name: str
    run: str


def find_left(environment: Mapping[str, str] = os.environ) -> list[LeftOnEngine]:
    """List what killed runs of this user left on the engine; nothing where no engine answers."""
    try:
        engine = connect(find_engine_address(environment))
    except TargetUnavailable:
        return []
    with closing(engine):
        return left_on(engine)


def left_on(engine: Engine) -> list[LeftOnEngine]:
    """List what killed runs of this user left on an engine; nothing of a run that lives, or may live."""
    with asking("list what is on it"):
        found = list(_labelled(engine.api))
    return [LeftOnEngine(kind, i, name, of[RUN]) for kind, i, name, of in found if owner_state(of) == "dead"]


def remove_left(kind: str, found_id: str, environment: Mapping[str, str] = os.environ) -> None:
    """Remove one of `find_left`; harmless if it is gone.

    Raises:
        TargetError: The engine refused, or does not answer.
    """
    from docker.errors import NotFound

    with closing(connect(find_engine_address(environment))) as engine:
        if kind == "container":
            remove_container(engine, found_id)
            return
        remove = engine.api.remove_network if kind == "network" else engine.api.remove_volume
        with asking(f"remove the {kind} {found_id}"):
            try:
                remove(found_id)
            except NotFound:
                return


def _labelled(api: Any) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    only_ours = {"label": RUN}
    for one in api.containers(all=True, filters=only_ours):
        yield "container", one["Id"], one["Names"][0].lstrip("/"), one["Labels"]
    for one in api.networks(filters=only_ours):
        yield "network", one["Id"], one["Name"], one["Labels"]
    for one in api.volumes(filters=only_ours).get("Volumes") or ():
        yield "volume", one["Name"], one["Name"], one["Labels"]
