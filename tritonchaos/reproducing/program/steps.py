"""Applies the steps of the recipe, one after the other, and keeps what was seen."""

from __future__ import annotations

import base64
import os
import re
import signal
import threading
import time
from typing import Any

from tritonchaos.reproducing.program.calls import call, error_text, post, probe, read_index, wait_until_gone
from tritonchaos.reproducing.program.expecting import unmet
from tritonchaos.reproducing.program.files import bring_into_state
from tritonchaos.reproducing.program.inference import infer
from tritonchaos.reproducing.program.readings import Readings, descendants, is_stub, state_of
from tritonchaos.reproducing.program.server import CannotTell, Server


class Steps:
    """Applies steps to one server.

    Args:
        probes: After each load and unload, ask what the server says of the model, as the recorded run did.

    Attributes:
        seen: One record for each step that asked the server something.
        tell: Hears of each step before and after it is done.
    """

    def __init__(self, server: Server, states: str, gpu: Any, probes: bool) -> None:
        self.server, self.states, self.gpu, self.probes = server, states, gpu, probes
        self.seen: list[dict[str, Any]] = []
        self.tell: Any = None
        self.turn = 0

    def start_server(self) -> None:
        """Start it unless it runs."""
        if self.server.exit_code() is not None or not self.server.starts:
            self.server.start()
        self.readings = Readings(
            self.server.pid, self.gpu, self.server.shm_prefix, self.server.temp, self.server.shm_before
        )

    def apply_all(self, step: dict[str, Any], where: dict[str, Any]) -> list[dict[str, Any]]:
        """Apply one step, or those that are started together; the probes of these come when all of them are done."""
        if step["do"] != "together":
            return [self.apply(step, where, self.probes)]
        found: dict[int, dict[str, Any]] = {}
        begin = threading.Barrier(len(step["steps"]))

        def run(number: int, one: dict[str, Any]) -> None:
            begin.wait()
            time.sleep(number * step["gap_s"])
            found[number] = dict(self.apply(one, where, False), ended=time.monotonic())

        threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(step["steps"])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(found) < len(threads):
            raise CannotTell("a step of those that are started together failed: {}".format(label_of(step["steps"][0])))
        if self.probes and self.server.exit_code() is None:
            self.probe_group(step["steps"], found)
        return [found[number] for number in sorted(found)]

    def probe_group(self, steps: list[dict[str, Any]], found: dict[int, dict[str, Any]]) -> None:
        """Ask of each model that was loaded or unloaded; the record is that of its first step to end."""
        touched = [number for number, step in enumerate(steps) if step["do"] in ("load", "unload")]
        for model in {steps[number]["model"] for number in touched}:
            own = [number for number in touched if steps[number]["model"] == model]
            first = found[min(own, key=lambda number: found[number]["ended"])]
            told = probe(self.server.port, model)
            for number in own:
                found[number].update({"group_probe": told} if found[number] is not first else {"probe": told})

    def apply(self, step: dict[str, Any], where: dict[str, Any], probes: bool) -> dict[str, Any]:
        """Apply one step; the record says what was asked, where, and what came back."""
        seen: dict[str, Any] = dict(where, step=label_of(step), deadline_s=step.get("deadline_s"))
        if step.get("record"):
            seen["record"] = step["record"]
        if self.tell is not None:
            self.tell(where.get("track", "main"), step, "started")
        log_start = os.path.getsize(self.server.log)
        seen.update(getattr(self, "do_" + step["do"])(step) or {})
        if self.tell is not None:
            self.tell(where.get("track", "main"), step, "finished")
        if seen.get("status") is not None and ((probes and step["do"] in ("load", "unload")) or step.get("probe")):
            seen["probe"] = probe(self.server.port, step["model"])
        if "expect" in step:
            self.look(step, seen, log_start)
            found = unmet(step, seen)
            seen["unmet"], seen["mismatch"] = found if found is not None else ("", "")
        if "status" in seen or seen.get("mismatch"):
            self.seen.append(seen)
        return seen

    # --- steps that ask the server -----------------------------------------------------------------

    def do_load(self, step: dict[str, Any]) -> dict[str, Any]:
        """Load a model, with a configuration and files of its own if the step has them."""
        parameters = {}
        if step.get("config") is not None:
            parameters["config"] = step["config"]
        for path in step.get("files", []):
            with open(os.path.join(self.states, step["state"], step["model"], path), "rb") as file:
                parameters["file:" + path] = base64.b64encode(file.read()).decode()
        return self.control(step, "load", parameters)

    def do_unload(self, step: dict[str, Any]) -> dict[str, Any]:
        """Unload a model, then wait until the index shows it gone."""
        seen = self.control(step, "unload", {"unload_dependents": True} if step.get("unload_dependents") else {})
        if seen["status"] == 200:
            state, gone_s = wait_until_gone(
                self.server.port, step["model"], max(step["deadline_s"] - seen["took_s"], 0.1)
            )
            if gone_s is None:
                seen["stuck"] = state
            seen["gone_s"] = gone_s
        return seen

    def control(self, step: dict[str, Any], what: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """One call of the model repository API."""
        path = "/v2/repository/models/{}/{}".format(step["model"], what)
        answer = post(self.server.port, path, step["deadline_s"], {"parameters": parameters} if parameters else {})
        return seen_of(answer)

    def do_infer(self, step: dict[str, Any]) -> dict[str, Any]:
        """Send inference requests; the first bad one ends them."""
        seen: dict[str, Any] = {}
        for _ in range(step.get("count", 1)):
            self.turn += 1
            answer = infer(self.server.port, step, self.turn)
            seen = seen_of(answer)
            for name in ("match", "why"):
                if name in answer and (name != "why" or answer["status"] == 200):
                    seen[name] = answer[name]
            seen["answered_by"] = answer.get("model_version", "")
            if seen["status"] != 200 or not seen.get("match", True):
                break
        return seen

    def do_request(self, step: dict[str, Any]) -> dict[str, Any]:
        """Send a request as it is written."""
        body = base64.b64decode(step["body"])
        return seen_of(call(self.server.port, step["method"], step["path"], step["deadline_s"], body, step["headers"]))

    def do_wait_for(self, step: dict[str, Any]) -> dict[str, Any]:
        """Wait until a model has a state, or the server is live or ready."""
        end = time.monotonic() + step["deadline_s"]
        while not self.is_reached(step):
            if time.monotonic() > end:
                return {"stuck": "short of what was waited for: {}".format(step.get("server") or step.get("state"))}
            time.sleep(0.02)
        return {}

    def is_reached(self, step: dict[str, Any]) -> bool:
        """Say whether what `wait_for` waits for is there."""
        if step.get("server"):
            return bool(call(self.server.port, "GET", "/v2/health/" + step["server"], 5.0)["status"] == 200)
        found = [
            entry.get("state", "") for entry in read_index(self.server.port) or [] if entry["name"] == step["model"]
        ]
        if step["state"] == "ABSENT":
            return not set(found) & {"READY", "LOADING", "UNLOADING"}
        return bool(step["state"] in found)

    # --- steps beside the server -------------------------------------------------------------------

    def do_wait(self, step: dict[str, Any]) -> None:
        """Do nothing for a while."""
        time.sleep(step["seconds"])

    def do_use(self, step: dict[str, Any]) -> None:
        """Bring a model directory into another state."""
        source = os.path.join(self.states, step["state"], step["model"])
        place = os.path.join(self.server.repository, step["model"])
        aside = os.path.join(self.server.work, "aside-{}".format(threading.get_ident()))
        bring_into_state(source, place, aside)

    def do_settle(self, step: dict[str, Any]) -> None:
        """A settle window in the middle of a cycle; its reading is not used."""
        self.readings.settle(3, 2.0)

    def do_signal(self, step: dict[str, Any]) -> None:
        """Send a signal to the server or to its stubs."""
        below = [pid for pid in descendants(self.server.pid) if is_stub(pid)]
        for pid in below if step["process"] == "stub" else [self.server.pid]:
            os.kill(pid, getattr(signal, step["signal"]))

    def do_pause(self, step: dict[str, Any]) -> None:
        """Stop the server's processes where they are; they go on after the time, or with `unpause`."""
        self.send_all(signal.SIGSTOP)
        if step.get("seconds") is not None:
            time.sleep(step["seconds"])
            self.send_all(signal.SIGCONT)

    def do_unpause(self, step: dict[str, Any]) -> None:
        """Let them go on."""
        self.send_all(signal.SIGCONT)

    def send_all(self, number: int) -> None:
        """Send a signal to the server and all below it."""
        for pid in [self.server.pid] + descendants(self.server.pid):
            try:
                os.kill(pid, number)
            except OSError:
                continue

    def do_restart_server(self, step: dict[str, Any]) -> None:
        """Stop the server and start it again; every series of readings begins anew."""
        self.server.stop()
        self.start_server()

    def do_stop_server(self, step: dict[str, Any]) -> None:
        """Stop the server."""
        self.server.stop()

    def do_start_server(self, step: dict[str, Any]) -> None:
        """Start the server unless it runs."""
        self.start_server()

    # --- what an expectation names beyond the reply ------------------------------------------------

    def look(self, step: dict[str, Any], seen: dict[str, Any], log_start: int) -> None:
        """Look at the index, health, processes and log lines that the step's `expect` names."""
        expect, model = step["expect"], step.get("model", "")
        if expect.get("state") or expect.get("reason") is not None or expect.get("version") is not None:
            index = read_index(self.server.port) or []
            order = ("UNAVAILABLE", "UNLOADING", "LOADING", "READY")
            for entry in sorted(
                index, key=lambda entry: order.index(entry["state"]) if entry.get("state") in order else -1
            ):
                seen.setdefault("index", {})[entry["name"]] = entry.get("state") or "ABSENT"
            own = [entry for entry in index if entry["name"] == model]
            seen["reason"] = "; ".join(entry["reason"] for entry in own if entry.get("reason"))
            seen["versions"] = [entry.get("version", "") for entry in own if entry.get("state") == "READY"]
        for name in ("live", "ready"):
            if expect.get(name) is not None:
                seen[name] = call(self.server.port, "GET", "/v2/health/" + name, 5.0)["status"]
        if expect.get("processes"):
            seen["processes"] = self.count_processes(expect["processes"])
        if expect.get("log") is not None or expect.get("not_log") is not None:
            seen["log"] = self.read_log(log_start, expect.get("log"))

    def count_processes(self, wanted: dict[str, int]) -> dict[str, int]:
        """Count processes by role; stubs that were replaced end about a second later."""
        end = time.monotonic() + 4.0
        while True:
            below = [pid for pid in descendants(self.server.pid) if state_of(pid) not in ("", "Z", "X")]
            stubs = sum(is_stub(pid) for pid in below)
            found = {"server": int(self.server.exit_code() is None), "stub": stubs, "other": len(below) - stubs}
            if all(found[role] == count for role, count in wanted.items()) or time.monotonic() > end:
                return found
            time.sleep(0.05)

    def read_log(self, start: int, wanted: str | None) -> str:
        """What was logged since a position; a wanted line is waited for a moment."""
        end = time.monotonic() + 0.5
        while True:
            with open(self.server.log, "rb") as log:
                log.seek(start)
                text = log.read().decode("utf-8", "replace")
            if wanted is None or re.search(wanted, text) or time.monotonic() > end:
                return text
            time.sleep(0.02)


def seen_of(answer: dict[str, Any]) -> dict[str, Any]:
    """What is kept of an answer."""
    seen: dict[str, Any] = {"status": answer["status"], "took_s": round(answer["took_s"], 6)}
    if answer["status"] is None:
        seen["no_answer"] = answer["why"]
    elif answer["status"] >= 400:
        seen["text"] = error_text(answer)
    return seen


def label_of(step: dict[str, Any]) -> str:
    """A step at a glance, such as "load ident" or "request /v2/health/live"."""
    return "{} {}".format(step["do"], step.get("model") or step.get("path") or "").strip()
