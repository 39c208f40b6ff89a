"""Walks the recipe, judges, and says so."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from typing import Any

from tritonchaos.reproducing.program.beside import Beside
from tritonchaos.reproducing.program.building import HERE, build_models
from tritonchaos.reproducing.program.calls import call, read_index
from tritonchaos.reproducing.program.gpu import open_gpu
from tritonchaos.reproducing.program.judging import WORDS, ended, is_shown, judge
from tritonchaos.reproducing.program.server import CannotTell, Installation, Server, find_server
from tritonchaos.reproducing.program.sizes import CANNOT_TELL, amount
from tritonchaos.reproducing.program.steps import Steps


class Walk:
    """One run of the recipe.

    Attributes:
        run: What was seen, as `judge` takes it.
    """

    def __init__(self, recipe: dict[str, Any], server: Server, states: str, gpu: Any) -> None:
        self.recipe, self.server = recipe, server
        self.steps = Steps(server, states, gpu, recipe["probes"])
        self.run: dict[str, Any] = {
            "steps": self.steps.seen,
            "beside": [],
            "beside_counts": {},
            "differences": recipe["differences"],
            "cycles": [],
            "exit_code": None,
            "hang": [],
            "cut_short": "",
        }

    def go(self) -> None:
        """Start the server, walk all blocks, stop the server."""
        if not self.recipe["sends_files"]:
            for model, state in self.recipe["models"].items():
                self.steps.do_use({"model": model, "state": state})
        self.steps.start_server()
        for phase, blocks in itertools.groupby(self.recipe["blocks"], key=lambda block: block["phase"]):
            with Beside(self.steps, phase, self.recipe["beside"].get(phase, []), self.run):
                goes_on = all(self.run_block(block) for block in blocks)
            if not goes_on:
                break
        self.run["exit_code"] = self.server.exit_code()
        self.run["stop"] = self.server.stop()
        with open(self.server.log, "rb") as log:
            self.run["log"] = log.read().decode("utf-8", "replace")

    def run_block(self, block: dict[str, Any]) -> bool:
        """Run the cycles of one block; False: it was seen already, or nothing more can be asked of this server."""
        for cycle in range(max(1, block["cycles"])):
            number = block["first_cycle"] + cycle
            where = {"phase": block["phase"], "arm": block["arm"], "cycle": number if block["cycles"] else None}
            mismatch = ""
            for step in block["each"]:
                for seen in self.steps.apply_all(step, where):
                    if seen.get("mismatch") and not mismatch:
                        mismatch = "{}: {}".format(seen["step"], seen["mismatch"])
                    if self.is_over(seen):
                        return False
            if block["cycles"]:
                self.finish_cycle(block, number, mismatch)
                if is_shown(self.recipe["claim"], self.run):
                    return False
        return True

    def finish_cycle(self, block: dict[str, Any], cycle: int, mismatch: str) -> None:
        """Take the post-unload reading of a cycle."""
        used, unsettled = self.steps.readings.settle(self.recipe["sample_count"], self.recipe["settle_s"])
        self.run["cycles"].append(
            {
                "phase": block["phase"], "arm": block["arm"], "cycle": cycle, "is_warm_up": block["is_warm_up"],
                "start": self.server.starts, "used": used, "unsettled": unsettled, "mismatch": mismatch,
            }
        )  # fmt: skip
        print_cycle(self.run["cycles"][-1], self.recipe["shown"], self.run["steps"])

    def is_over(self, seen: dict[str, Any]) -> bool:
        """Look whether the server crashed or hangs; then it can be asked no more."""
        if seen.get("no_answer", "deadline") != "deadline":
            try:
                self.server.process.wait(2.0)  # type: ignore[union-attr]
            except subprocess.TimeoutExpired:
                pass
        if self.server.exit_code() is not None and not seen["step"].startswith(
            ("stop_server", "signal", "use", "wait")
        ):
            self.run["cut_short"] = "the server " + ended(self.server.exit_code())
            self.run["last"] = seen["step"]
        elif seen.get("no_answer") or seen.get("stuck"):
            self.run["cut_short"] = "{} hung".format(seen["step"])
            self.run["hang"] = self.look_at_hang()
        return bool(self.run["cut_short"])

    def look_at_hang(self) -> list[str]:
        """Who still answers."""
        live = call(self.server.port, "GET", "/v2/health/live", 5.0)["status"]
        index = read_index(self.server.port)
        entries = ["{} {}".format(entry.get("name"), entry.get("state", "")) for entry in index or []]
        return ["live over HTTP: {}".format(live), "index: {}".format(", ".join(entries) or index)]


def print_cycle(cycle: dict[str, Any], shown: list[str], steps: list[dict[str, Any]]) -> None:
    """Print one line of the table of post-unload readings."""
    of_cycle = [s for s in steps if (s["phase"], s["cycle"]) == (cycle["phase"], cycle["cycle"])]
    loads = [str(s["status"]) for s in of_cycle if s["step"].startswith("load") and "status" in s]
    used = ["{} {}".format(name, amount(name, cycle["used"][name])) for name in shown if name in cycle["used"]]
    parts = [cycle["arm"], "{} {}".format(cycle["phase"], cycle["cycle"]), "load " + ",".join(loads)] + used
    print("  ".join(parts) + ("  NOT AS EXPECTED: " + cycle["mismatch"] if cycle["mismatch"] else ""), flush=True)


def clean_twin(recipe: dict[str, Any]) -> dict[str, Any]:
    """The same run without the defect's cause: plants taken out; else no edit made and no file or signal sent."""
    if not recipe["twin"]:
        raise CannotTell("this finding has no clean twin: nothing was planted, edited, sent along or signalled")
    twin: dict[str, Any] = json.loads(json.dumps(recipe))
    twin["server"]["env"].pop("TRITONCHAOS_PLANT", None)
    states = recipe["twin"]["states"]
    twin["differences"] = []
    for block in twin["blocks"] + [track for tracks in twin["beside"].values() for track in tracks]:
        block["each"] = [step for step in block["each"] if step["do"] not in recipe["twin"]["without"]]
        for step in [one for each in block["each"] for one in each.get("steps", [each])]:
            if step.get("state") in states:
                step["state"] = states[step["state"]]
            if recipe["twin"]["loads_succeed"]:
                step.update({"expect": {"kind": "ok"}} if "expect" in step else {})
                step.pop("config", None)
                step.pop("files", None)
    twin["sends_files"] = twin["sends_files"] and not recipe["twin"]["loads_succeed"]
    twin["models"] = {model: states.get(state, state) for model, state in recipe["models"].items()}
    return twin


def check_missing(recipe: dict[str, Any], states: str) -> None:
    """Stop if files that were not handed on are still not there."""
    for missing in recipe["missing"]:
        if not os.path.exists(os.path.join(states, missing["path"])):
            told = "the file models/{} ({} bytes, sha256 {}) is not part of this bundle; put it there and run again"
            raise CannotTell(told.format(missing["path"], missing["bytes"], missing["sha256"][:16]))


def read_arguments() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description="Reproduces one finding on a tritonserver; needs nothing but Python.")
    parser.add_argument(
        "--server", default="", help="path of tritonserver (default: PATH, /opt/tritonserver, the wheel)"
    )
    parser.add_argument("--ld-library-path", default="", help="folders with libraries that the server needs")
    parser.add_argument(
        "--clean-twin", action="store_true", help="run without the defect's cause; must say not reproduced"
    )
    parser.add_argument(
        "--log-verbose", action="store_true", help="let the server log verbosely; with --out the log is kept"
    )
    parser.add_argument("--out", default="", help="folder for observed.json and server.log of this run")
    return parser.parse_args()


def walk(recipe: dict[str, Any], arguments: argparse.Namespace, work: str) -> dict[str, Any]:
    """Prepare everything, run, and return what was seen."""
    states = os.path.join(work, "states")
    shutil.copytree(os.path.join(HERE, "models"), states)
    for path in recipe["empty_folders"]:
        os.makedirs(os.path.join(states, path), exist_ok=True)
    installation = Installation(find_server(arguments.server), arguments.ld_library_path)
    build_models(recipe["build"], states, os.path.join(work, "build"), installation.environment({}, work))
    check_missing(recipe, states)
    planted = os.path.join(HERE, "planted") if recipe["planted"] else ""
    backends = installation.lay_out_backends(os.path.join(work, "backends"), planted)
    for name in recipe["variables"]:
        if name not in os.environ:
            print("the recorded run set the variable {}, which is not set now".format(name), flush=True)
    gpu = open_gpu()
    print(
        "{}; device memory by {}".format(installation.binary, gpu.name if gpu is not None else "nothing: no GPU"),
        flush=True,
    )
    server = Server(installation, recipe, work, backends)
    try:
        walked = Walk(recipe, server, states, gpu)
        walked.go()
        return walked.run
    finally:
        server.end()


def main() -> int:
    """Run the recipe and return 1 reproduced, 0 not reproduced, 3 cannot tell."""
    arguments = read_arguments()
    recipe: dict[str, Any] = RECIPE  # type: ignore[name-defined]  # noqa: F821
    print("{}: {}".format(recipe["finding"]["kind"], recipe["finding"]["title"]), flush=True)
    for line in recipe["differences"]:
        print("the recorded run did otherwise: " + line, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    work = tempfile.mkdtemp(prefix="repro-")
    run: dict[str, Any] = {}
    try:
        if arguments.log_verbose:
            recipe["server"]["flags"]["log-verbose"] = "1"
        run = walk(clean_twin(recipe) if arguments.clean_twin else recipe, arguments, work)
        code, lines = judge(recipe["claim"], run)
    except CannotTell as error:
        code, lines = CANNOT_TELL, [str(error)]
    except Exception as error:
        traceback.print_exc()
        code, lines = CANNOT_TELL, ["this program failed: {!r}".format(error)]
    finally:
        keep(arguments.out, work, run)
        shutil.rmtree(work, ignore_errors=True)
    twin = " (clean twin)" if arguments.clean_twin else ""
    print("\n".join(["{}{}".format(WORDS[code], twin)] + ["  " + line for line in lines]), flush=True)
    return code


def keep(out: str, work: str, run: dict[str, Any]) -> None:
    """Keep what was observed, if a folder was named for it."""
    if not out:
        return
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "observed.json"), "w") as file:
        told = {name: value for name, value in run.items() if name not in ("log", "beside_counts")}
        json.dump(told, file, indent=1)
    if os.path.exists(os.path.join(work, "server.log")):
        shutil.copy(os.path.join(work, "server.log"), os.path.join(out, "server.log"))


if __name__ == "__main__":
    sys.exit(main())
