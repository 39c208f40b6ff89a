"""Bundles of real runs, unpacked elsewhere and run by a Python that has nothing of ours, against a real server."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.recorded_runs import TEMPLATE_SCENARIO, hanging_events, write_run
from tests.server.cli import Called, run_scenario, tritonchaos
from tritonchaos.errors import TargetUnavailable
from tritonchaos.local_server.installation import find_installation
from tritonchaos.native import missing_compiler
from tritonchaos.plugins import load_plugins
from tritonchaos.reproducing import BundleOptions, write_bundle
from tritonchaos.templates import find_template

load_plugins()

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(missing_compiler() is not None, reason="the planted backend needs a C compiler"),
]
CRASH = """scenario: crash
target: [{local: {}}]
models:
  ident: {template: identity, variant: planted, parameters: {abort_every_nth_load: 2}}
phases:
  - phase: loads
    cycles: 2
    each: [{load: ident}, {wait: 20ms}, {infer: ident}, {unload: ident}]
check: [server_alive]
"""
AT_ONCE = """scenario: at-once
target: [{local: {}}]
models:
  late: {template: identity, variant: planted, parameters: {plant: [{what: fail, at: execute, text: out of order}]}}
  bad: {template: identity, variant: planted, parameters: {plant: [{what: wrong_output, every: 3}]}}
phases:
  - phase: calls
    cycles: 2
    before: [{load: {model: bad, via: grpc}}]
    each:
      - load: late
      - wait: 200ms
      - together: {steps: [{infer: late}, {request: {path: /v2/health/live}}]}
      - unload: late
    meanwhile:
      - track: traffic
        rate: 50/s
        each: [{infer: bad}]
        start: {at: {step: load late, when: finished}}
        stop: {times: 6}
check: [expectations, server_alive]
"""
PILING_UP = """scenario: piling-up
target: [{local: {}}]
models: {ident: {template: identity, variant: planted, parameters: {plant: [PLANT]}}}
phases:
  - {phase: good, arm: control, cycles: 4, each: [{load: {model: ident, record: load}}, {wait: 20ms}, {unload: ident}]}
  - phase: wrong
    cycles: 12
    before: [{edit_config: {model: ident, set: {"output[0].data_type": TYPE_INT32}}}]
    each: [{load: {model: ident, record: load, expect: {error: datatype}}}, {unload: ident}]
  - {phase: end, steps: [{stop_server: {}}]}
check: [leftovers, {latency: {at_most: 60ms}}, server_alive]
"""


@pytest.fixture(scope="module")
def server() -> Path:
    try:
        return find_installation(None).binary
    except TargetUnavailable as error:
        pytest.skip(str(error))


def unpacked(called: Called, folder: Path) -> Path:
    """The bundle of a run's worst finding, in a folder of its own."""
    assert called.exit_code == 1, called.shown()
    made = tritonchaos("repro", called.folder, "-o", folder / "made" / "bundle", cwd=folder)
    assert made.returncode == 0, made.stderr
    with tarfile.open(folder / "made" / "bundle.tar.gz") as tar:
        tar.extractall(folder / "elsewhere", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    shutil.rmtree(folder / "made" / "bundle")
    shutil.rmtree(called.folder)
    return folder / "elsewhere" / "bundle"


def with_library(bundle: Path) -> Path:
    """As on a machine without a compiler: the planted backend's library is put beside its sources."""
    served = find_template("identity").serve("ident", {}, "planted")
    shutil.copy(served.backends["planted"] / "libtriton_planted.so", bundle / "planted")
    return bundle


def run_program(bundle: Path, server: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run repro.py with an empty environment: no package is found, not even those of this Python."""
    command = [sys.executable, "-I", "-S", "repro.py", "--server", str(server), *options]
    environment = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=bundle, env=environment, capture_output=True, text=True, timeout=200)


def check(bundle: Path, server: Path, told: str) -> None:
    """It says reproduced, with numbers, and of the clean twin not reproduced; nothing is left in the bundle."""
    before = sorted(path.relative_to(bundle) for path in bundle.rglob("*"))
    found = run_program(bundle, server)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "\nREPRODUCED\n" in found.stdout
    assert told in found.stdout
    twin = run_program(bundle, server, "--clean-twin")
    assert twin.returncode == 0, twin.stdout + twin.stderr
    assert "\nNOT REPRODUCED (clean twin)\n" in twin.stdout
    assert sorted(path.relative_to(bundle) for path in bundle.rglob("*")) == before


def test_a_planted_leak(tmp_path: Path, server: Path) -> None:
    bundle = unpacked(run_scenario("planted-leak", tmp_path), tmp_path)
    check(bundle, server, "12 cycles of the treatment arm")


def test_a_hang(tmp_path: Path, server: Path) -> None:
    """The run itself is literal: a real one would wait for the same call, and take the stacks of a hung server."""
    plant = [{"what": "hang", "when": "failed"}]
    served = find_template("identity").serve("ident", {"plant": plant}, "planted")
    scenario = TEMPLATE_SCENARIO.replace("flags: {", "flags: {exit-timeout-secs: 1, ")
    run = write_run(tmp_path / "run", hanging_events(deadline_s=2.0), model=served.files, scenario=scenario)
    bundle = write_bundle(run, tmp_path / "bundle", BundleOptions()).folder
    check(with_library(bundle), server, "load ident was not answered within its deadline of 2 s (wrong, cycle 0)")


def test_a_crash_by_verify(tmp_path: Path, server: Path) -> None:
    bundle = with_library(unpacked(run_scenario(CRASH, tmp_path), tmp_path))
    for options, code, word in (((), 1, "reproduced"), (("--clean-twin",), 0, "not reproduced")):
        done = tritonchaos("verify", bundle, "--server-path", server, *options, cwd=tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
        assert done.stdout.endswith(f"bundle: {word}\n")


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Called:
    return run_scenario(AT_ONCE, tmp_path_factory.mktemp("at-once"))


def bundle_of(called: Called, kind: str, folder: Path) -> Path:
    [finding] = called.findings(kind)
    made = write_bundle(called.folder, folder / "bundle", BundleOptions(finding=finding["id"]))
    return with_library(made.folder)


def test_what_happens_at_the_same_time_and_over_grpc(tmp_path: Path, server: Path, at_once: Called) -> None:
    """The server that no longer has the defect is never told to be clean: perhaps it needs gRPC."""
    bundle = bundle_of(at_once, "wrong_error", tmp_path)
    check(bundle, server, "infer late: answered 500 out of order, expected 200")
    [clean] = (bundle / "models").glob("*-clean/late")
    shutil.rmtree(clean.parents[1] / clean.parent.name.removesuffix("-clean") / "late")
    shutil.copytree(clean, clean.parents[1] / clean.parent.name.removesuffix("-clean") / "late")
    fixed = run_program(bundle, server)
    assert fixed.returncode == 3, fixed.stdout + fixed.stderr
    assert "load bad went over gRPC; here it goes over HTTP" in fixed.stdout


def test_a_track_with_a_beginning_and_an_end_of_its_own(tmp_path: Path, server: Path, at_once: Called) -> None:
    check(bundle_of(at_once, "wrong_output", tmp_path), server, "recorded: infer bad: OUTPUT")


@pytest.mark.long
@pytest.mark.parametrize(
    ("plant", "kind", "told"),
    [
        ("{what: threads, when: failed}", "leftover", "server_threads grew by 12"),
        ("{what: fds, count: 2, when: failed}", "leftover", "server_fds grew by"),
        ("{what: temp_files, bytes: 8KiB, when: good}", "leftover", "of kind temp stayed behind"),
        ("{what: sleep, ms: 90, when: failed}", "slowdown", "median of load over 12 cycles"),
    ],
)
def test_what_piles_up_stays_behind_or_takes_long(
    tmp_path: Path, server: Path, plant: str, kind: str, told: str
) -> None:
    called = run_scenario(PILING_UP.replace("PLANT", plant), tmp_path)
    check(bundle_of(called, kind, tmp_path), server, told)


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "kind", "told"),
    [
        ("health-during-load", "slowdown", "took "),
        ("override-load", "wrong_state", "answered 200: yes, READY in the index: no"),
        ("failed-reload", "will_not_stop", "Exit timeout expired"),
    ],
)
def test_every_finding_of_a_shipped_scenario(tmp_path: Path, server: Path, scenario: str, kind: str, told: str) -> None:
    called = run_scenario(scenario, tmp_path)
    assert kind in called.kinds(), called.shown()
    for number, finding in enumerate(called.findings(kind)):
        bundle = write_bundle(called.folder, tmp_path / str(number), BundleOptions(finding=finding["id"])).folder
        check(bundle, server, told)


@pytest.mark.long
def test_a_missing_model_file(tmp_path: Path, server: Path) -> None:
    bundle = unpacked(run_scenario("missing-model-file", tmp_path), tmp_path)
    check(bundle, server, "without_model_file, cycle 0")
