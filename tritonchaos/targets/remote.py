"""A tritonserver that somebody else started."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import Field

from tritonchaos import processes
from tritonchaos.client import HELD_STATES, TritonClient, parse_index, wait_until_gone
from tritonchaos.errors import SamplerError, TargetUnavailable
from tritonchaos.local_server.listening import Listener, find_listener, is_this_machine
from tritonchaos.nvml import NoNvml, open_nvml, visible_gpus
from tritonchaos.observations import Answer, ModelState, NoAnswer, Reply
from tritonchaos.plugins import TARGETS, LaunchSpec, RepositoryPlace, RunningServer, Stop
from tritonchaos.processes import Process, ProcessStat

_CALL_S: Final = 5.0
_UNLOAD_S: Final = 15.0
_SHOWN_BYTES: Final = 200


@TARGETS.register
@dataclass
class RemoteTarget:
    """Use a tritonserver that is up already, in model control mode explicit; it is never started, stopped or killed.

    Attributes:
        url: Its HTTP address, "http://HOST:PORT".
        grpc: Its gRPC address, "HOST:PORT"; none: nothing is asked over gRPC.
        repository: Its model repository folder, if this machine sees it too: the scenario's models are put in and
            removed at the end, nothing else in it is touched. None: model files are sent with every load.
        backends_it_has: Backends that it has, such as [python], written `backends` in the scenario. Triton cannot be
            asked for them; without this the variant of each model must be named.
        tensorrt_version: Of its TensorRT, such as "10.13.3"; without it no engine plan is built for it.
    """

    name: ClassVar[str] = "remote"

    url: str
    grpc: str | None = None
    repository: Path | None = None
    backends_it_has: Annotated[tuple[str, ...], Field(alias="backends")] = ()
    tensorrt_version: str | None = None

    def __post_init__(self) -> None:
        self._version = ""
        self._listener: Listener | None = None
        self._server: ProcessStat | None = None
        self._models: tuple[str, ...] = ()

    @property
    def abilities(self) -> frozenset[str]:
        """Of what not every target can do: to be asked over gRPC. Neither the server nor its log are ours."""
        return frozenset({"grpc"} if self.grpc else ())

    def check(self) -> None:
        """Ask the server whether it is one that can be tested so.

        Raises:
            UsageError: The URL is none.
            TargetUnavailable: It is down, no Triton, or not in model control mode explicit; or the repository folder
                cannot be written.
        """
        client = TritonClient(self.url)
        try:
            self._check_server(client)
        finally:
            client.close()
        if self.repository is not None:
            _check_folder(self.repository)

    def check_models(self, names: Collection[str]) -> None:
        """Refuse names of models that the server has already; the others are unloaded by `stop`.

        Raises:
            TargetUnavailable: A model has such a name, loaded or not.
        """
        client = TritonClient(self.url)
        try:
            taken = {entry.name for entry in self._index(client) if _is_somebodys(entry)} & set(names)
            taken |= {name for name in names if _status(client.model_ready(name, _CALL_S)) == 200}
        finally:
            client.close()
        if self.repository is not None:
            taken |= {name for name in names if (self.repository / name).exists()}
        if taken:
            raise TargetUnavailable(
                f"the server at {self.url} has a model {', '.join(sorted(taken))} already, which is not to be touched",
                hint="give the scenario's model another name, or take that one away",
            )
        self._models = tuple(names)

    def describe(self) -> Mapping[str, str]:
        """Facts for the report; "process" says which process is read, or why none."""
        here = self._is_here()
        facts = {
            "target": self.name,
            "url": self.url,
            "triton_version": self._version,
            "gpu_uuids": ",".join(self._gpu_uuids()) if here else "",
            "model_files": "sent with every load" if self.repository is None else "in the server's repository folder",
        }
        if self.tensorrt_version:
            facts["tensorrt_version"] = self.tensorrt_version
        if not here:
            return {**facts, "process": "not known: the server runs on another machine, nothing can be read of it"}
        server, why_not = self._find_process().process, self._find_process().why_not
        is_known = server is not None
        facts["process"] = f"{server.command} {server.pid}" if server else f"not known: {why_not}; device readings only"
        return {**facts, "cpu_count": str(os.cpu_count() or "")} if is_known else facts

    def backends(self) -> frozenset[str] | None:
        """Backends that the scenario says it has; None: not known, so that variants must be named."""
        return frozenset(self.backends_it_has) or None

    def repository_place(self) -> RepositoryPlace:
        """The server's own folder, or none at all."""
        return RepositoryPlace(shared=self.repository, sends_files=self.repository is None)

    def start(self, launch: LaunchSpec) -> RunningServer:
        """Make sure that it is still there and that it sees the models which were put into its repository.

        Raises:
            TargetUnavailable: It is not there any more, or its repository is another folder.
        """
        client = TritonClient(self.url)
        try:
            self._check_server(client)
            if self.repository is not None:
                self._check_repository(client, self.repository)
        finally:
            client.close()
        here = self._is_here()
        self._listener = None  # it may have been started anew since
        self._server = self._find_process().process if here else None
        pid = self._server.pid if self._server else None
        return RunningServer(self.url, self.grpc, pid, is_ours=False, is_here=here)

    def exit_code(self) -> int | None:
        """Never known: only a parent learns it (see `has_vanished`)."""
        return None

    def has_vanished(self) -> bool:
        """Tell whether its process has ended, or, where that is not known, whether it refuses connections."""
        if self._server is not None:
            return not processes.is_running(self._server.pid, self._server.start_ticks)
        client = TritonClient(self.url)
        try:
            reply = client.live(_CALL_S)
        finally:
            client.close()
        return isinstance(reply, NoAnswer) and reply.reason.startswith("refused")

    def processes(self) -> list[Process]:
        """The server and what it started, where they can be seen."""
        server = self._server
        if server is None or not processes.is_running(server.pid, server.start_ticks):
            return []
        below = processes.descendants(server.pid)
        return [Process(server.pid, "server"), *(Process(p.pid, "stub" if p.is_stub else "other") for p in below)]

    def stop(self) -> Stop:
        """Unload the scenario's models, so that the server is left as it was found; it runs on."""
        client = TritonClient(self.url)
        try:
            for model in self._models:
                reply = client.unload(model, _UNLOAD_S)
                if isinstance(reply, NoAnswer) or wait_until_gone(client, model, _UNLOAD_S).no_answer is not None:
                    break
        finally:
            client.close()
        return Stop(signal="", exit_code=None, forced=False)

    # --- what it answers -------------------------------------------------------------------------

    def _check_server(self, client: TritonClient) -> None:
        live = client.live(_CALL_S)
        if isinstance(live, NoAnswer):
            raise self._unavailable(f"does not answer ({live.reason})", "is the server up, and is this its HTTP port?")
        self._version = self._ask_version(client)
        if live.status != 200:
            raise self._unavailable(f"is not live (status {live.status})", "wait until it is up")
        # A model that cannot exist: in explicit mode that is answered 200 and does nothing (seen on 2.51).
        unload = client.unload(f"tritonchaos-{secrets.token_hex(8)}", _CALL_S)
        if _status(unload) != 200:
            raise self._unavailable(
                f"does not let models be loaded and unloaded ({_shown(unload)})",
                "start it with --model-control-mode=explicit",
            )
        self._index(client)

    def _ask_version(self, client: TritonClient) -> str:
        """Version from the server's metadata, whose extensions tell that it is a Triton."""
        reply = client.server_metadata(_CALL_S)
        try:
            told = json.loads(reply.body) if isinstance(reply, Answer) else {}
            if "model_repository" in told["extensions"]:
                return str(told["version"])
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        raise self._unavailable(
            f"is no Triton with a repository API (GET /v2: {_shown(reply)})", "give the HTTP port of a tritonserver"
        )

    def _index(self, client: TritonClient) -> tuple[ModelState, ...]:
        reply = client.index(_CALL_S)
        index = parse_index(reply)
        if index is None:
            raise self._unavailable(
                f"has no repository index ({_shown(reply)})", "its repository API must not be restricted"
            )
        return index

    def _check_repository(self, client: TritonClient, repository: Path) -> None:
        """Triton lists every folder of its repository, loaded or not."""
        seen = {entry.name for entry in self._index(client)}
        unseen = [name for name in self._models if (repository / name).is_dir() and name not in seen]
        if unseen:
            raise self._unavailable(
                f"does not see {', '.join(unseen)} in {repository}",
                "`repository` must be the folder that the server was given with --model-repository, as it is called "
                "on this machine",
            )

    def _unavailable(self, what: str, hint: str) -> TargetUnavailable:
        return TargetUnavailable(f"{self.url} {what}", hint=hint)

    # --- where it runs ---------------------------------------------------------------------------

    def _is_here(self) -> bool:
        return is_this_machine(urlsplit(self.url).hostname or "")

    def _find_process(self) -> Listener:
        if self._listener is None:
            self._listener = find_listener(urlsplit(self.url).port or 80)
        return self._listener

    def _gpu_uuids(self) -> tuple[str, ...]:
        """GPUs that it can use; every one of the machine where its environment cannot be read."""
        server = self._find_process().process
        nvml = open_nvml()
        if isinstance(nvml, NoNvml):
            return ()
        try:
            return visible_gpus(nvml.gpus(), processes.environment(server.pid) if server else {}).uuids
        except SamplerError:
            return ()
        finally:
            nvml.close()


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise TargetUnavailable(
            f"there is no model repository folder {folder} on this machine",
            hint="leave `repository` out, and model files are sent with every load",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TargetUnavailable(
            f"the model repository folder {folder} cannot be written by this user",
            hint="run as its owner; or leave `repository` out, and model files are sent with every load",
        )


def _is_somebodys(entry: ModelState) -> bool:
    """A folder in its repository has no state until it is loaded; what is left of a model that is gone has one."""
    return entry.state in HELD_STATES or not entry.state


def _status(reply: Reply) -> int | None:
    return reply.status if isinstance(reply, Answer) else None


def _shown(reply: Reply) -> str:
    if isinstance(reply, NoAnswer):
        return f"no answer: {reply.reason}"
    text = reply.body[:_SHOWN_BYTES].decode("utf-8", "replace").strip()
    return f"status {reply.status}: {text}" if text else f"status {reply.status}"
