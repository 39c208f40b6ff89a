"""What is collected when a call has hung: who still answers, the index, statistics, the log, and stacks taken twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tritonchaos.client import TritonClient, parse_index
from tritonchaos.errors import TargetError
from tritonchaos.observations import Answer, Evidence, Position, Reply
from tritonchaos.plugins import HasProcesses, HasStacks
from tritonchaos.scenario_engine.journal import Journal
from tritonchaos.scenario_engine.parts import EngineParts
from tritonchaos.scenario_engine.server import ServerLife, last_lines, read_log
from tritonchaos.scenario_engine.stack_summary import count_unmoved, summarise

_PROBE_S: Final = 2.0
_BETWEEN_LOOKS_S: Final = 2.0


class HangEvidence:
    """Collects it, once for each call that hung.

    Args:
        pause: Waits for a number of seconds.
    """

    def __init__(
        self, server: ServerLife, parts: EngineParts, journal: Journal, pause: Callable[[float], None]
    ) -> None:
        self._server = server
        self._parts = parts
        self._journal = journal
        self._pause = pause
        self._collected = 0

    def collect(self, position: Position) -> None:
        """Ask over both protocols whether the server is live, read index and statistics, and look at its threads."""
        self._collected += 1
        client = self._server.client()
        facts = _asked(client)
        client.close()
        told, lines = self._look_at_threads()
        facts["stacks"] = told
        log = tuple(last_lines(read_log(self._parts.launch.log_file)))
        self._journal.record(Evidence(self._journal.now_ns(), position, "hang", facts, log))
        if lines:
            self._journal.record(Evidence(self._journal.now_ns(), position, "stacks", {}, lines))

    def _look_at_threads(self) -> tuple[str, tuple[str, ...]]:
        """Take all stacks twice; return what to say of them at a glance, and which threads did not move."""
        target = self._parts.target
        if not isinstance(target, HasStacks):
            return f"not taken: target {target.name} cannot", ()
        try:
            first = target.stacks()
            self._pause(_BETWEEN_LOOKS_S)
            second = target.stacks()
        except TargetError as error:
            return f"not taken: {error.message}{f'; {error.hint}' if error.hint else ''}", ()
        failed = [text for text in second.values() if text.startswith("not taken")]
        if failed or not second:
            return failed[0] if failed else "not taken: no process is there", ()
        roles = (
            {process.pid: process.role for process in target.processes()} if isinstance(target, HasProcesses) else {}
        )
        named = {pid: f"{roles.get(pid, 'process')} {pid}" for pid in second}
        file = self._parts.keep_evidence(f"hang-{self._collected}.txt", _whole(first, second, named))
        lines = (line for pid, text in second.items() for line in summarise(named[pid], first.get(pid, ""), text))
        return f"{count_unmoved(first, second)}, all stacks in {file}", tuple(lines)


def _asked(client: TritonClient) -> dict[str, str]:
    live_grpc = client.live_grpc(_PROBE_S)
    return {
        "live_http": _shown(client.live(_PROBE_S)),
        "live_grpc": "not asked: grpcio is not installed" if live_grpc is None else _shown(live_grpc),
        "index": _shown_index(client.index(_PROBE_S)),
        "statistics": _shown_statistics(client.request("GET", "/v2/models/stats", _PROBE_S)),
    }


def _whole(first: Mapping[int, str], second: Mapping[int, str], named: Mapping[int, str]) -> str:
    return "\n".join(_pages(first, second, named))


def _pages(first: Mapping[int, str], second: Mapping[int, str], named: Mapping[int, str]) -> Iterator[str]:
    for look, texts in (("first look", first), (f"second look, {_BETWEEN_LOOKS_S:g} s later", second)):
        for pid, text in texts.items():
            yield f"=== {named.get(pid, f'process {pid}')}, {look}\n{text}"


def _shown(reply: Reply) -> str:
    return str(reply.status) if isinstance(reply, Answer) else f"no answer ({reply.reason})"


def _shown_index(reply: Reply) -> str:
    index = parse_index(reply)
    if index is None:
        return _shown(reply)
    shown = (f"{entry.name} {entry.state or 'no state'}" for entry in index)
    return ", ".join(shown) or "empty"


def _shown_statistics(reply: Reply) -> str:
    """Inferences and executions of each model, as the statistics extension counts them."""
    if not isinstance(reply, Answer) or reply.status != 200:
        return _shown(reply)
    try:
        models = json.loads(reply.body)["model_stats"]
        shown = [f"{m['name']} {m['inference_count']} inferences, {m['execution_count']} executions" for m in models]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "not what the statistics extension says"
    return "; ".join(shown) or "no model"
