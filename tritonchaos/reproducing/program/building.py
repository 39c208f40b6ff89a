"""Builds model files that are not handed on: a plan fits one GPU and one TensorRT only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

from tritonchaos.reproducing.program.server import CannotTell

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD_S = 900.0


def build_models(orders: list[dict[str, Any]], states: str, work: str, environment: dict[str, str]) -> None:
    """Build each file once and put it into every state; its builder has ended before the server starts."""
    built: dict[str, str] = {}
    for order in orders:
        inside = os.path.join(order["state"], order["model"], order["file"])
        target = os.path.join(states, inside)
        if os.path.exists(target):
            continue
        key = json.dumps([order["folder"], order["file"], order["parameters"]], sort_keys=True)
        if key not in built:
            print("building {} with {}".format(inside, order["folder"]), flush=True)
            built[key] = build(order, os.path.join(work, str(len(built))), environment, inside)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(built[key], target)


def build(order: dict[str, Any], folder: str, environment: dict[str, str], inside: str) -> str:
    """Build one file, with Python and the library's module if this machine has them, else with its C++ compiler."""
    shutil.copytree(os.path.join(HERE, order["folder"]), folder)
    name = os.path.basename(order["file"])
    script = ["sh", os.path.join(folder, "build_in_place.sh")]
    printed = run_script(script + ["identify"], environment)
    way_file = os.path.join(folder, "way")
    if os.path.exists(way_file):
        with open(way_file) as file:
            way = file.read().strip()
        printed = run_script(script + [way, name] + arguments_of(way, order["parameters"]), environment)
    if not os.path.exists(os.path.join(folder, name)):
        told = "models/{} could not be built here; build it elsewhere, put it there, and run again:\n{}"
        raise CannotTell(told.format(inside, printed[-2000:]))
    return os.path.join(folder, name)


def arguments_of(way: str, parameters: dict[str, Any]) -> list[str]:
    """Spell the parameters as the builder takes them."""
    if way == "python":
        return [json.dumps(parameters)]
    spelled = {
        name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in parameters.items()
    }
    return ["{}={}".format(name, value) for name, value in spelled.items()]


def run_script(command: list[str], environment: dict[str, str]) -> str:
    """Run a builder and return what it printed."""
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=BUILD_S,
    )
    return done.stdout.decode("utf-8", "replace")
