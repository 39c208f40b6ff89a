"""Reading scenario files: what is accepted, and how each mistake is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonchaos.errors import ScenarioError
from tritonchaos.observations import Arm, Expectation
from tritonchaos.plugins import STEPS, Contract, Registry, Seconds, Workbench, load_plugins
from tritonchaos.scenario import Families, Scenario, StepEntry, build_plugin, json_schema, load_scenario, parse_scenario
from tritonchaos.scenario.entries import TogetherEntry
from tritonchaos.scenario.track_rules import StartRule, StopRule
from tritonchaos.shipped import shipped_folder
from tritonchaos.targets.docker import DockerTarget

load_plugins()

# No deadline: how long an example takes says nothing about the reading.
calm = settings(deadline=None, max_examples=60)


@dataclass(frozen=True, slots=True)
class Local:
    """A server of this machine."""

    name: ClassVar[str] = "local"
    server_path: str = ""


@dataclass(frozen=True, slots=True)
class Growth:
    """Judges growth."""

    name: ClassVar[str] = "memory_growth"
    limit: int = 0

    def watch(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Shake:
    """Shake a model.

    Attributes:
        model: Which one.
        pause: How long to wait,
            in between.
    """

    name: ClassVar[str] = "shake"
    contract: ClassVar[Contract] = Contract.UNDOCUMENTED
    model: str
    pause: Seconds = 1.0

    def apply(self, bench: Workbench) -> None: ...


class Plain:
    """Judges plainly."""

    name: ClassVar[str] = "plain"


def families(*more_checkers: type) -> Families:
    steps: Registry[Any] = Registry("steps")
    targets: Registry[Any] = Registry("targets")
    checkers: Registry[Any] = Registry("checkers")
    for name in STEPS.names():
        steps.register(STEPS[name])
    steps.register(Shake)
    targets.register(Local)
    targets.register(DockerTarget)
    for checker in (Growth, Plain, *more_checkers):
        checkers.register(checker)
    return Families(targets=targets, steps=steps, checkers=checkers)


HEAD = "scenario: s\nmodels: {m: {template: identity}, n: {template: identity}}\n"
ONE_PHASE = "phases:\n  - {phase: p, cycles: 2, each: [{load: m}]}\n"


def parse(text: str) -> Scenario:
    return parse_scenario(text, "s.yaml", families=families())


def steps(*written: str) -> str:
    return HEAD + "phases:\n  - phase: p\n    steps:\n" + "".join(f"      - {step}\n" for step in written)


def one(phase: str) -> str:
    return f"{HEAD}phases: [{{phase: p, {phase}}}]\n"


def top(line: str) -> str:
    return f"{HEAD}{line}\n{ONE_PHASE}"


def refusal(text: str) -> str:
    with pytest.raises(ScenarioError) as error:
        parse(text)
    return error.value.message


# --- accepted ------------------------------------------------------------------------------------

DESIGN_EXAMPLE = """
scenario: failed-load
about: https://github.com/triton-inference-server/server/issues/8969
seed: 1
target:
  - docker: {image: "nvcr.io/nvidia/tritonserver:26.07-py3", gpus: [0], shm_size: 1GiB, network: none, user: caller}
  - local: {}
server: {flags: {disable-auto-complete-config: true}}
models:
  ident:
    template: identity
    parameters: {datatype: FP32, dims: [16777216]}
phases:
  - phase: baseline
    arm: control
    cycles: {at_least: 3, at_most: 30, until: flat}
    each: [{load: ident}, {unload: ident}]
  - phase: wrong_output_datatype
    arm: treatment
    cycles: {at_least: 6, at_most: 200, until: verdict}
    before: [{edit_config: {model: ident, set: {"output[0].data_type": TYPE_INT32}}}]
    each:
      - load: {model: ident, expect: {error: "unexpected datatype TYPE_FP32 for inference output 'OUTPUT'"}}
      - unload: ident
  - phase: restored
    arm: control
    cycles: 1
    before: [{restore: ident}]
    each: [{load: ident}, {unload: ident}]
  - phase: after_exit
    steps: [{stop_server: {}}, {sample: {name: after_exit}}]
check: [memory_growth, plain]
"""


def test_the_example_of_the_design_is_read_as_written():
    scenario = parse(DESIGN_EXAMPLE)
    assert [phase.phase for phase in scenario.phases] == ["baseline", "wrong_output_datatype", "restored", "after_exit"]
    assert [(entry.name, entry.missing) for entry in scenario.target] == [
        ("docker", ""),
        ("local", ""),
    ]
    load = scenario.phases[1].each[0]
    assert load.spec.expect == Expectation(
        "fields", error="unexpected datatype TYPE_FP32 for inference output 'OUTPUT'"
    )
    assert scenario.phases[1].before[0].step.set == {"output[0].data_type": "TYPE_INT32"}
    assert scenario.phases[3].steps[1].spec.fields == {"name": "after_exit"}
    assert scenario.server.flags == {"disable-auto-complete-config": True}
    assert scenario.models["ident"].parameters == {"datatype": "FP32", "dims": [16777216]}
    assert scenario.text == DESIGN_EXAMPLE


def test_all_keys_of_this_version_are_read():
    scenario = parse(
        HEAD
        + """
deadline: 5s
server: {mode: explicit, env: {A: x, B: 2}, startup_deadline: 2min, restarts_at_most: 3}
sample: {count: 5, metrics: [host_private_bytes], settle: {at_most: 500ms}}
known: [{server: "<2.60", finding: hang, about: "https://example.org/1"}]
check: [plain, memory_growth: {limit: 3}]
phases:
  - phase: pairs
    when: leak
    warm_up_cycles: 2
    cycles: {at_least: 3, at_most: 9, until: verdict}
    arms:
      mode: coin
      control: {each: [{load: m}]}
      treatment: {before: [restore], each: [{load: {model: m, expect: any, deadline: 1min}}], after: [settle]}
    meanwhile: [{track: traffic, each: [{infer: {model: n, expect: {outputs: match}}}], workers: 1, stop: {with: main}}]
"""
    )
    phase = scenario.phases[0]
    assert phase.arms is not None and phase.cycles is not None
    treatment = phase.arms.treatment
    assert (treatment.each[0].spec.deadline_s, treatment.before[0].spec.deadline_s) == (60.0, 5.0)
    assert (phase.cycles.at_least, phase.cycles.at_most, phase.cycles.until) == (3, 9, "verdict")
    assert phase.meanwhile[0].each[0].spec.expect.outputs == "match"
    assert scenario.server.startup_deadline_s == 120.0
    assert scenario.server.restarts_at_most == 3
    assert dict(scenario.server.env) == {"A": "x", "B": "2"}
    assert (scenario.sample.count, scenario.sample.settle_at_most_s) == (5, 0.5)
    assert scenario.known_entries() == [{"server": "<2.60", "finding": "hang", "about": "https://example.org/1"}]
    assert scenario.check[1].fields == {"limit": 3}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("ok", Expectation()),
        ("any", Expectation("any")),
        ("{status: 400}", Expectation("fields", status=(400,))),
        ("{status: [400, 500], within: 250ms}", Expectation("fields", status=(400, 500), within_s=0.25)),
        ("{version: 2}", Expectation("fields", version=("2",))),
        (
            "{version: [1, '2'], log: a, not_log: b, processes: {stub: 0}, live: true, ready: no}",
            Expectation(
                "fields", version=("1", "2"), log="a", not_log="b", processes={"stub": 0}, live=True, ready=False
            ),
        ),
        ("{state: {m: ABSENT}, reason: unloaded}", Expectation("fields", state={"m": "ABSENT"}, reason="unloaded")),
    ],
)
def test_expect(written: str, expected: Expectation):
    scenario = parse(steps(f"load: {{model: m, expect: {written}}}"))
    assert scenario.phases[0].steps[0].spec.expect == expected


def test_the_three_forms_of_a_step_are_the_same_step():
    entries = parse(steps("shake: m", "shake: {model: m}", "shake: {model: m, via: http}")).phases[0].steps
    assert {entry.step for entry in entries} == {Shake("m")}
    assert entries[0].spec.fields == {"model": "m", "pause": 1.0}
    assert entries[0].spec.undocumented
    assert entries[0].spec.model == "m"


def test_server_options_of_a_phase_are_laid_over_those_of_the_file():
    scenario = parse(
        HEAD
        + "server: {flags: {a: 1, b: 2}, env: {X: x}, ulimits: {nofile: 99, as: 8GiB, core: unlimited}}\n"
        + "phases: [{phase: p, server: {flags: {b: 3}, env: {X: null}, fresh: phase}, steps: [settle]}]\n"
    )
    own = scenario.phases[0].server.over(scenario.server)
    assert (own.flags, own.env, own.fresh) == ({"a": 1, "b": 3}, {"X": None}, "phase")
    assert own.settings().ulimits == {"nofile": 99, "as": 8 * 1024**3, "core": -1}
    assert scenario.server.fresh == "run"


def test_a_server_that_polls_may_be_asked_what_it_refuses():
    text = HEAD + "server: {mode: poll}\nphases: [{phase: p, steps: [load: {model: m, expect: {status: 503}}]}]\n"
    assert parse(text).server.mode == "poll"


def test_a_file_to_put_is_found_beside_the_scenario_and_recorded_as_written(tmp_path: Path):
    (tmp_path / "broken.py").write_text("def (")
    file = tmp_path / "s.yaml"
    file.write_text(steps("put_file: {model: m, path: 1/model.py, from: broken.py}"))
    entry = load_scenario(file, families=families()).phases[0].steps[0]
    assert isinstance(entry, StepEntry)
    assert entry.step.source == str(tmp_path / "broken.py")
    assert entry.spec.fields["from"] == "broken.py"


def test_models_of_a_users_repository_may_be_used():
    text = "scenario: s\nphases:\n  - {phase: p, steps: [{load: theirs}]}\n"
    assert parse_scenario(text, "s.yaml", ["theirs"], families()).phases[0].steps[0].spec.model == "theirs"
    assert "unknown model 'theirs'" in refusal(text)


def test_anchors_and_aliases_of_whole_values():
    scenario = parse(
        HEAD + "phases:\n  - {phase: a, cycles: 1, each: &e [load: m]}\n  - {phase: b, cycles: 1, each: *e}\n"
    )
    assert scenario.phases[0].each == scenario.phases[1].each


def test_words_that_only_look_like_numbers_stay_words():
    scenario = parse(HEAD + "server: {env: {A: 1:30, B: 2026-01-01, C: 010}}\n" + ONE_PHASE)
    assert dict(scenario.server.env) == {"A": "1:30", "B": "2026-01-01", "C": "010"}


# --- refused -------------------------------------------------------------------------------------

REFUSED = {
    "unknown key": (top("chek: []"), "s.yaml:3:1: chek: found the unknown key 'chek'", "did you mean 'check'?"),
    "misspelt step": (steps("lode: m"), "s.yaml:6:9: phases[0].steps[0].lode: found the unknown step 'lode'", "'load'"),
    "misspelt field": (
        steps("load: {modell: m}"),
        "6:16: phases[0].steps[0].load.modell: found the unknown key",
        "'model'?",
    ),
    "missing field": (steps("load"), "6:9: phases[0].steps[0]: found no key 'model'"),
    "wrong type": (steps("load: {model: 5}"), "6:23: phases[0].steps[0].load.model: found 5, expected text"),
    "truth value for a number": (steps("infer: {model: m, count: yes}"), "found true, expected a whole number"),
    "text for a number": (top("seed: '1'"), "3:7: seed: found '1', expected a whole number"),
    "bad unit": (steps("wait: 3 parsecs"), "6:9: phases[0].steps[0].wait.seconds: found '3 parsecs'", "30s"),
    "bad unit in a mapping": (
        steps("load: {model: m, deadline: 5x}"),
        "6:36: phases[0].steps[0].load.deadline: found '5x'",
    ),
    "deadline zero": (steps("load: {model: m, deadline: 0}"), "load.deadline: found 0, expected more than 0"),
    "two steps in one": (steps("{load: m, unload: m}"), "found a mapping with load, unload, expected one step"),
    "option beside the step": (steps("{load: m, expect: any}"), "found a mapping with load, expect", "indent expect"),
    "unknown model": (
        steps("load: mm"),
        "6:15: phases[0].steps[0].load: found the unknown model 'mm', expected one of m, n",
    ),
    "restore of an unknown model": (steps("restore: x"), "found the unknown model 'x'", "--model-repository"),
    "edit of an unknown model": (
        steps("edit_config: {model: x, set: {}}"),
        "edit_config.model: found the unknown model 'x'",
    ),
    "state of an unknown model": (
        steps("load: {model: m, expect: {state: {x: READY}}}"),
        "expect.state.x: found the unknown model 'x'",
    ),
    "bad regular expression": (steps("load: {model: m, expect: {error: '('}}"), "expected a regular expression"),
    "unknown expect": (steps("load: {model: m, expect: okay}"), "found 'okay', expected ok, any or a mapping"),
    "no such status": (steps("load: {model: m, expect: {status: 2}}"), "expect.status: found 2, expected at least 100"),
    "own rule of a step": (steps("wait_for: {}"), "found neither or both of `model` and `server`"),
    "no cycles": (one("each: [settle]"), "phases[0]: found no key 'cycles'"),
    "zero cycles": (one("cycles: 0, each: [settle]"), "cycles: found 0, expected at least 1"),
    "negative cycles": (one("cycles: -2, each: [settle]"), "cycles: found -2, expected at least"),
    "cycles as a truth value": (one("cycles: yes, each: [settle]"), "cycles: found true"),
    "verdict without at_most": (
        HEAD + "check: [memory_growth]\nphases: [{phase: p, cycles: {until: verdict}, each: [settle]}]\n",
        "phases[0].cycles: found no key 'at_most'",
    ),
    "verdict without a check that can give it": (
        HEAD + "check: [plain]\nphases: [{phase: p, cycles: {at_most: 3, until: verdict}, each: [settle]}]\n",
        "phases[0].cycles.until: found verdict with no such check",
        "exactly one check that can end a phase: one of memory_growth",
    ),
    "amplify without a check that can say what is flat": (
        HEAD + "check: [plain]\nphases: [{phase: p, cycles: 3, amplify: true, each: [settle]}]\n",
        "phases[0].amplify: found amplify with no such check",
    ),
    "amplify until flat": (
        one("cycles: {at_most: 3, until: flat}, amplify: true, each: [settle]"),
        "phases[0].amplify: found amplify with until: flat",
    ),
    "amplify of plain steps": (one("steps: [settle], amplify: true"), "phases[0].amplify: found amplify beside steps"),
    "amplify is no number": (one("cycles: 3, amplify: 3, each: [settle]"), "amplify: found 3, expected true or false"),
    "more than until": (
        one("cycles: {at_least: 2, at_most: 3}, each: [settle]"),
        "found no key 'until'",
    ),
    "wrong order": (
        one("cycles: {at_least: 9, at_most: 3, until: flat}, each: [settle]"),
        "found at_least 9 above at_most 3",
    ),
    "each and steps": (one("cycles: 1, each: [settle], steps: [settle]"), "both each and steps"),
    "nothing to do": (one("cycles: 1"), "phases[0]: found none of each, arms, steps"),
    "arm and arms": (
        one("cycles: 1, arm: control, arms: {control: {each: [settle]}, treatment: {each: [settle]}}"),
        "arm: found arm beside arms",
    ),
    "cycles of steps": (one("cycles: 1, steps: [settle]"), "found cycles beside steps"),
    "same phase twice": (HEAD + ONE_PHASE + "  - {phase: p, steps: [settle]}\n", "the phase 'p' a second time"),
    "unknown when": (one("when: leek, steps: [settle]"), "when: found 'leek'", "'leak'"),
    "unknown arm": (one("cycles: 1, arm: contrl, each: [settle]"), "arm: found 'contrl'", "'control'"),
    "no workers": (one("steps: [settle], meanwhile: [{track: t, each: [settle], workers: 0}]"), "workers: found 0"),
    "rate without a time": (
        one("steps: [settle], meanwhile: [{track: t, each: [settle], rate: 5}]"),
        "meanwhile[0].rate: found 5",
        "50/s",
    ),
    "rate of nothing": (
        one("steps: [settle], meanwhile: [{track: t, each: [settle], rate: 0/s}]"),
        "rate: found '0/s'",
    ),
    "start of nothing": (
        one("steps: [settle], meanwhile: [{track: t, each: [settle], start: {}}]"),
        "meanwhile[0].start: found",
        "{at: {track",
    ),
    "start with an unknown track": (
        one("steps: [settle], meanwhile: [{track: t, each: [settle], start: {at: {track: u, step: 0}}}]"),
        "meanwhile[0].start.at.track: found the track 'u'",
        "main",
    ),
    "stop of nothing": (
        one("steps: [settle], meanwhile: [{track: t, each: [settle], stop: {times: 0}}]"),
        "meanwhile[0].stop: found",
        "{after: TIME}",
    ),
    "track main": (
        one("steps: [settle], meanwhile: [{track: main, each: [settle]}]"),
        "meanwhile[0].track: found 'main'",
    ),
    "no phases": (HEAD + "phases: []\n", "phases: found an empty list, expected at least 1 entries"),
    "empty list of steps": (one("steps: []"), "steps: found an empty list"),
    "unknown target": (top("target: [lokal]"), "target[0]: found the unknown target 'lokal'", "'local'"),
    "unknown field of a target": (top("target: [{local: {x: 1}}]"), "target[0].local.x: found the unknown"),
    "docker without an image": (top("target: [{docker: {}}]"), "target[0].docker: found no key 'image'"),
    "docker with an image that is a number": (top("target: [{docker: 5}]"), "target[0].docker", "found 5"),
    "too few processes for a server": (
        top("target: [{docker: {image: a, pids_limit: 100}}]"),
        "found pids_limit 100, expected 4096 or more",
    ),
    "mount without a target": (
        top("target: [{docker: {image: a, mounts: [/data]}}]"),
        "found mount '/data', expected SOURCE:TARGET",
    ),
    "target of a later version": (top("target: [{program: 5}]"), "target[0].program: found 5", "a mapping"),
    "unknown check": (
        HEAD + "check: [memory_grow]\n" + ONE_PHASE,
        "check[0]: found the unknown checker",
        "'memory_growth'",
    ),
    "unknown finding": (top("known: [{finding: hng, about: x}]"), "known[0].finding: found 'hng'", "hang"),
    "bad version range": (top("known: [{server: '2.6', finding: hang, about: x}]"), "found '2.6'", "<2.60"),
    "a flag of ours": (top("server: {flags: {model-control-mode: poll}}"), "flag model-control-mode", "`mode`"),
    "no port": (top("server: {flags: {http-port: 99999}}"), "http-port: 99999", "from 1 to 65535"),
    "no number of seconds": (top("server: {flags: {exit-timeout-secs: soon}}"), "'soon'", "whole number of seconds"),
    "no HTTP": (top("server: {flags: {allow-http: false}}"), "allow-http: false", "over HTTP"),
    "no text for a variable": (top('server: {env: {X: "a\\0b"}}'), "'a\\x00b'", "without a NUL"),
    "flag with dashes": (top("server: {flags: {--x: 1}}"), "found '--x'", "without dashes"),
    "truth value in the environment": (top("server: {env: {A: true}}"), "server.env.A: found true", "quotes"),
    "every outside each": (steps("load: {model: m, every: 2}"), "load.every: found every outside `each`"),
    "every of nothing": (one("cycles: 1, each: [load: {model: m, every: 0}]"), "every: found 0, expected at least 1"),
    "record that is no name": (steps("load: {model: m, record: Load Time}"), "load.record: found 'Load Time'"),
    "repeat without steps": (steps("repeat: {times: 3}"), "repeat: found no key 'steps'"),
    "repeat of nothing": (steps("repeat: {times: 3, steps: []}"), "repeat.steps: found an empty list"),
    "repeat zero times": (steps("repeat: {times: 0, steps: [settle]}"), "repeat.times: found 0"),
    "repeat that is a number": (steps("repeat: 3"), "repeat: found 3, expected a mapping with times, steps, every"),
    "unknown key of repeat": (steps("repeat: {time: 3, steps: [settle]}"), "the unknown key 'time'", "'times'?"),
    "misspelt step inside": (
        steps("repeat: {times: 2, steps: [lode: m]}"),
        "phases[0].steps[0].repeat.steps[0].lode: found the unknown step 'lode'",
    ),
    "misspelt control step": (steps("repeet: {}"), "found the unknown step 'repeet'", "'repeat'"),
    "restart inside together": (
        steps("together: {steps: [restart_server, load: m]}"),
        "together.steps[0]: found the step 'restart_server'",
    ),
    "repeat inside together": (
        steps("together: {steps: [repeat: {times: 2, steps: [load: m]}]}"),
        "together.steps[0]: found steps within steps",
    ),
    "negative gap": (steps("together: {gap: -1, steps: [load: m]}"), "together.gap: found -1"),
    "load of a server that polls": (
        HEAD + "server: {mode: poll}\n" + ONE_PHASE,
        "phases[0].each[0].load: found load of a server with mode: poll",
    ),
    "load inside repeat of a phase without the load API": (
        one("server: {mode: none}, steps: [repeat: {times: 2, steps: [unload: m]}]"),
        "repeat.steps[0].unload: found unload of a server with mode: none",
    ),
    "unknown mode": (
        top("server: {mode: manual}"),
        "server.mode: found 'manual', expected one of explicit, poll, none",
    ),
    "unknown limit": (top("server: {ulimits: {nofiles: 3}}"), "server.ulimits.nofiles", "nofile"),
    "limit that is no size": (top("server: {ulimits: {as: big}}"), "server.ulimits.as: found 'big'", "unlimited"),
    "track beside fresh cycles": (
        one("server: {fresh: cycle}, cycles: 2, each: [load: m], meanwhile: [{track: t, each: [settle]}]"),
        "meanwhile: found meanwhile beside fresh: cycle",
    ),
    "latency as memory": (top("sample: {metrics: [latency_load_ns]}"), "sample.metrics[0]: found the latency"),
    "no template and no path": ("scenario: s\nmodels: {m: {}}\n" + ONE_PHASE, "found neither template nor path"),
    "template and path": ("scenario: s\nmodels: {m: {template: t, path: .}}\n" + ONE_PHASE, "both template and path"),
    "variant of a model of ones own": (
        "scenario: s\nmodels: {m: {path: ., variant: x}}\n" + ONE_PHASE,
        "found variant beside path",
    ),
    "expected outputs of random inputs": (
        "scenario: s\nmodels: {m: {path: ., expect_outputs: none.npz}}\n" + ONE_PHASE,
        "found expect_outputs beside random inputs",
    ),
    "folder that is not there": (
        "scenario: s\nmodels: {m: {path: ./nowhere}}\n" + ONE_PHASE,
        ": models.m.path: found no folder at './nowhere'",
    ),
    "file that is not there": (steps("put_file: {model: m, path: 1/x, from: nowhere}"), "found no file at 'nowhere'"),
    "text and file": (steps("put_file: {model: m, path: 1/x, from: a, text: b}"), "neither or both of `text` and"),
    "path out of the model": (steps("put_file: {model: m, path: ../x, text: b}"), "put_file.path: found '../x'"),
    "deletion out of the model": (steps("delete_file: {model: m, path: /x}"), "delete_file.path: found '/x'"),
    "version that is no number": (steps("add_version: {model: m, version: new}"), "add_version.version: found 'new'"),
    "signal that is none": (steps("signal: {process: stub, signal: KILL}"), "found 'KILL'", "'SIGKILL'"),
    "crash of the server on purpose": (steps("signal: {process: server, signal: SIGSEGV}"), "found SIGSEGV"),
    "request without a path": (steps("request: {path: v2}"), "request.path: found 'v2'"),
    "header with a line": (steps('request: {path: /v2, headers: {A: "b\\nc"}}'), "request.headers.A: found"),
    "bad base64": (steps("request: {path: /v2, body: {base64: '?'}}"), "request.body: found base64 that"),
    "concurrency of nothing": (steps("infer: {model: m, concurrency: [1, 0]}"), "infer.concurrency[1]: found 0"),
    "unknown role": (steps("load: {model: m, expect: {processes: {stubs: 1}}}"), "expect.processes.stubs"),
    "bad version": (steps("load: {model: m, expect: {version: new}}"), "expect.version", "found 'new'"),
    "scenario name that is a path": ("scenario: ../x\n" + ONE_PHASE, "scenario: found '../x'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_place_found_and_expected(case: str):
    text, *told = REFUSED[case]
    message = refusal(text)
    assert [part for part in told if part not in message] == []
    for line in message.splitlines():
        source, number, column, rest = line.split(":", 3)
        assert source == "s.yaml" and number.isdigit() and column.isdigit()
        assert ": found " in rest and ", expected " in rest


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "a\\\\b", "..", ".hidden", "", "a\\0b", " a", "x" * 201, "a..b", "a b", "a?b"]
)
def test_a_model_name_can_never_leave_the_repository(name: str):
    assert "expected a model name" in refusal(f'scenario: s\nmodels: {{"{name}": {{template: t}}}}\n{ONE_PHASE}')


def test_both_ways_are_two_steps_one_after_the_other():
    text = one(
        "cycles: 4, each: [{load: {model: m, via: grpc}}, {infer: {model: m, via: both, every: 2}}, {unload: m},"
        " {together: {steps: [{infer: {model: m, via: both}}, {load: n}]}}]"
    )
    *plain, together = parse(text).phases[0].each
    assert [(e.spec.label(), e.every) for e in plain if isinstance(e, StepEntry)] == [
        ("load m via grpc", 1),
        ("infer m", 2),
        ("infer m via grpc", 2),
        ("unload m", 1),
    ]
    assert isinstance(together, TogetherEntry)
    assert [step.spec.via for step in together.steps] == ["http", "grpc", "http"]


def test_a_wrong_step_beside_one_that_is_two_is_named_at_its_place():
    message = refusal(one("steps: [{together: {steps: [{infer: {model: m, via: both}}, settle]}}]"))
    assert "phases[0].steps[0].together.steps[1]: found the step 'settle'" in message


@pytest.mark.parametrize("label", ["load", "load m", "load m via grpc"])
def test_a_track_may_wait_for_a_step_however_it_is_asked(label: str):
    spec = parse(steps("load: {model: m, via: grpc}")).phases[0].steps[0].spec
    assert StartRule("main", label).is_met_by("main", 0, spec, "started")
    assert not StartRule("main", "load n").is_met_by("main", 0, spec, "started")


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("load: {model: m, via: both}", "load.via: found 'both' for load, expected one of http, grpc"),
        ("unload: {model: m, via: both}", "unload.via: found 'both' for unload"),
        ("wait_for: {model: m, via: grpc}", "wait_for.via: found 'grpc' for wait_for, which does not ask over gRPC"),
        ("request: {path: /v2, via: both}", "(over gRPC there are infer, load, unload)"),
        ("wait: {seconds: 1s, via: grpc}", "'grpc' for wait"),
        ("infer: {model: m, via: gprc}", "infer.via: found 'gprc', expected one of http, grpc, both"),
        ("infer: {model: m, via: [grpc]}", "infer.via: found"),
        ("infer: {model: m, via: both, record: a}", "infer.record: found record beside via: both"),
    ],
)
def test_ways_that_have_no_meaning_are_refused(step: str, told: str):
    message = refusal(steps(step))
    assert told in message
    assert len(message.splitlines()) == 1


LATER = {
    "faults": "faults: 3\n" + ONE_PHASE,
    "ledger": "ledger: {}\n" + ONE_PHASE,
    "localise": "localise: yes\n" + ONE_PHASE,
    "measure": "measure: []\n" + ONE_PHASE,
    "gap": "phases: [{phase: p, steps: [settle], gap: 3}]\n",
}


@pytest.mark.parametrize("key", LATER)
def test_what_later_versions_add_is_refused_as_such(key: str):
    message = refusal(HEAD + LATER[key])
    assert "not in this version" in message
    assert key in message
    assert len(message.splitlines()) == 1


def test_when_a_track_starts_and_stops_and_how_often_it_runs():
    text = one(
        "steps: [load: m], meanwhile: [{track: t, each: [settle], workers: 3, rate: 30/min,"
        " start: {at: {step: load m, when: finished, offset: 5ms}}, stop: {after: 2s}}, {track: u, each: [settle]}]"
    )
    timed, plain = parse(text).phases[0].meanwhile
    assert (timed.workers, timed.rate, timed.stop) == (3, 0.5, StopRule(after_s=2.0))
    assert timed.start == StartRule("main", "load m", "finished", 0.005)
    assert (plain.workers, plain.rate, plain.start, plain.stop) == (1, None, None, StopRule())


def test_a_model_of_ones_own_is_looked_for_beside_the_file(tmp_path: Path):
    (tmp_path / "customer" / "m").mkdir(parents=True)
    file = tmp_path / "s.yaml"
    text = "scenario: s\nmodels: {x: {path: ./customer/m, inputs: %s}}\n" + ONE_PHASE.replace("load: m", "load: x")
    file.write_text(text % "zeros")
    scenario = load_scenario(file, families=families())
    assert (scenario.models["x"].path, scenario.folder) == ("./customer/m", tmp_path)
    file.write_text(text % "inputs.npz")
    with pytest.raises(ScenarioError, match=r"models.x.inputs: found no file at 'inputs.npz'"):
        load_scenario(file, families=families())


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines():
    message = refusal(
        "scenario: 5\nseed: x\nmodels: {m: {}}\ncheck: [nope]\nphases: [{phase: p, cycles: 0, each: [lode]}]\n"
    )
    assert [line.split(":")[1] for line in message.splitlines()] == ["1", "2", "3", "4", "5", "5"]


def test_no_more_than_twenty_mistakes_are_told():
    lines = refusal(steps(*["lode: m"] * 30)).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "s.yaml: and 10 more"


# --- YAML itself ---------------------------------------------------------------------------------

BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(20)
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1:1: (YAML): found an empty document"),
        ("# only a comment\n", "found an empty document"),
        ("- a\n", "found a list of 1, expected a mapping"),
        ("scenario:\n\tb: 1\n", "2:1: (YAML): found a tab, expected spaces"),
        ("a: [1\nb: 2\n", "2:2: (YAML): found a mistake"),
        ("a: 1\n---\nb: 2\n", "2:1: (YAML): found a second document"),
        ("scenario: a\nscenario: b\n", "2:1: scenario: found the key a second time"),
        ("a: \x00\n", "1:4: (YAML): found character 0"),
        ('a: "\\U00110000"\n', "found an impossible escape"),
        ('a: "\\ud800"\n', "a: found half a character"),
        ("a: !!python/object/apply:os.system [x]\n", "1:4: a: found the tag !!python/object/apply:os.system"),
        ("a: *b\n", "found a mistake: found undefined alias"),
        ("a: {<<: {b: 1}}\n", "found the merge key <<"),
        ("1: a\n", "found the key 1, expected a name as key"),
        ("a: 99999999999999999999\n", "expected a whole number of at most 64 bits"),
        ("[" * 5000, "more than 64 levels of nesting"),
        ("a: &a [*a]\n", "more than 64 levels of nesting"),
        (BOMB, "more than 100000 values, aliases written out"),
        ("a: [" + "1," * 200_000 + "]\n", "more than 100000 values"),
        ("a: " + "x" * 1_100_000, "expected at most 1048576"),
    ],
)
def test_yaml_that_cannot_be_a_scenario(text: str, told: str):
    assert told in refusal(text)


def test_a_file_that_is_not_utf8_or_not_there(tmp_path: Path):
    file = tmp_path / "s.yaml"
    file.write_bytes(b"scenario: a\nabout: \xff\n")
    with pytest.raises(ScenarioError, match=r"s\.yaml:2:8: .*found byte 0xff, expected UTF-8"):
        load_scenario(file)
    with pytest.raises(ScenarioError, match="expected a scenario file"):
        load_scenario(tmp_path / "none.yaml")
    with pytest.raises(ScenarioError, match="expected a scenario file"):
        load_scenario(tmp_path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["scenario", "seed", "target", "server", "models", "phases", "sample", "known", "check", "deadline"]
PHASE_KEYS = ["phase", "arm", "cycles", "each", "before", "steps", "arms", "meanwhile", "when", "load", "expect"]


@calm
@given(st.dictionaries(st.sampled_from(KEYS), json_values))
def test_whatever_a_file_says_only_scenario_errors_come_out(raw: Mapping[str, Any]):
    whole = {"scenario": "s", "phases": [{"phase": "p", "steps": ["settle"]}], **raw}
    try:
        parse(json.dumps(whole))
    except ScenarioError as error:
        assert "found" in error.message


@calm
@given(st.dictionaries(st.sampled_from(PHASE_KEYS), json_values), json_values)
def test_whatever_a_phase_says_only_scenario_errors_come_out(phase: Mapping[str, Any], step: Any):
    whole = {"scenario": "s", "phases": [{"phase": "p", "cycles": 1, "each": [{"load": step}, step], **phase}, phase]}
    with pytest.raises(ScenarioError):
        parse(json.dumps(whole))


@calm
@given(st.text(max_size=60))
def test_whatever_a_text_says_only_scenario_errors_come_out(text: str):
    with pytest.raises(ScenarioError):
        parse("? " + text)


# --- plug-ins and the schema ---------------------------------------------------------------------


def test_a_plugin_is_built_from_any_of_its_forms():
    known = families()
    assert build_plugin(known.checkers, "memory_growth", None, "check") == Growth()
    assert build_plugin(known.checkers, "memory_growth", 4, "check") == Growth(4)
    assert build_plugin(known.steps, "shake", {"model": "m", "pause": "2min"}, "step") == Shake("m", 120.0)
    assert isinstance(build_plugin(known.checkers, "plain", {}, "check"), Plain)


@pytest.mark.parametrize(
    ("name", "fields", "told"),
    [
        ("memory_growth", {"limitt": 3}, "check 1: limitt: found the unknown key 'limitt'"),
        ("memory_growth", {"limit": "3"}, "check 1: limit: found '3', expected a whole number"),
        ("memory_growth", [1], "check 1: found a list of 1, expected a mapping with limit"),
        ("plain", {"x": 1}, "check 1: x: found the unknown key 'x'"),
        ("plain", 3, "check 1: found 3, expected nothing"),
        ("plane", None, "check 1: found the unknown checker 'plane'"),
    ],
)
def test_a_plugin_that_cannot_be_built_says_why(name: str, fields: Any, told: str):
    with pytest.raises(ScenarioError) as error:
        build_plugin(families().checkers, name, fields, "check 1")
    assert told in error.value.message


def references(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        found = {schema["$ref"]} if "$ref" in schema else set()
        return found.union(*(references(value) for value in schema.values()))
    return set().union(*(references(item) for item in schema)) if isinstance(schema, list) else set()


def test_the_schema_holds_every_plugin_with_its_fields_and_help():
    schema = json.loads(json.dumps(json_schema(families())))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    forms = schema["$defs"]["step"]["anyOf"]
    assert {form["const"] for form in forms[:-1]} == set(families().steps.names())
    shake = forms[-1]["properties"]["shake"]
    assert shake["description"] == "Shake a model."
    fields = shake["anyOf"][1]
    assert list(fields["properties"]) == ["model", "pause", "expect", "deadline", "via", "every", "record"]
    assert fields["properties"]["pause"]["description"] == "How long to wait, in between."
    assert fields["required"] == ["model"]
    ways = {name: forms[-1]["properties"][name]["anyOf"][1]["properties"]["via"]["enum"] for name in ("shake", "infer")}
    assert ways == {"shake": ["http"], "infer": ["http", "grpc", "both"]}
    assert "memory_growth" in schema["$defs"]["check"]["anyOf"][-1]["properties"]


def test_every_reference_of_the_schema_leads_somewhere():
    schema = json_schema()
    names = {reference.removeprefix("#/$defs/") for reference in references(schema)}
    assert {"step", "check", "target", "Phase"} <= names
    assert names <= set(schema["$defs"])
    assert "x-entry" not in json.dumps(schema)


TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def fits(value: Any, schema: Any, whole: Mapping[str, Any]) -> bool:
    """Does a value fit a schema, as far as the words go that our schema uses?"""
    if isinstance(schema, bool):
        return schema
    types = schema.get("type", list(TYPES))
    own = (
        ("$ref" not in schema or fits(value, whole["$defs"][schema["$ref"].removeprefix("#/$defs/")], whole))
        and value == schema.get("const", value)
        and value in schema.get("enum", [value])
        and any(TYPES[name](value) for name in ([types] if isinstance(types, str) else types))
        and ("anyOf" not in schema or any(fits(value, option, whole) for option in schema["anyOf"]))
    )
    if isinstance(value, list):
        return own and all(fits(item, schema.get("items", True), whole) for item in value)
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        fields = all(fits(item, known.get(key, others), whole) for key, item in value.items())
        is_complete = set(schema.get("required", ())) <= set(value)
        return own and fields and is_complete and len(value) <= schema.get("maxProperties", len(value))
    return own


def test_the_schema_takes_the_example_and_refuses_a_wrong_key_at_any_depth():
    schema = json_schema(families())
    example = yaml.safe_load(DESIGN_EXAMPLE)
    assert fits(example, schema, schema)
    example["phases"][0]["each"][0] = {"load": {"model": "ident", "modell": "x"}}
    assert not fits(example, schema, schema)


def test_the_schema_explains_the_keys_of_the_file():
    schema = json_schema(families())
    assert schema["properties"]["seed"]["description"] == "All randomness of the run comes from it."
    assert "Attributes:" not in json.dumps(schema)


@pytest.mark.parametrize("file", sorted(shipped_folder("scenarios").glob("*.yaml")), ids=lambda file: file.stem)
def test_shipped_scenarios_are_valid(file: Path):
    scenario = load_scenario(file)
    assert scenario.scenario == file.stem
    schema = json_schema()
    assert fits(yaml.safe_load(scenario.text), schema, schema)


def test_arms_default_to_none_in_the_record():
    assert parse(HEAD + ONE_PHASE).phases[0].arm is None
    assert parse(HEAD + ONE_PHASE.replace("cycles", "arm: control, cycles")).phases[0].arm is Arm.CONTROL
