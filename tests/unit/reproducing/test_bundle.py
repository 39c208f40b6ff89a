"""Bundles of literal runs: what is in them, what is not, and runs that none can be made of."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.builders import CONTROL, run
from tests.recorded_runs import CONFIG, TEMPLATE_SCENARIO, hanging_events, leaking_events, write_run
from tritonchaos.errors import StoreError, UsageError
from tritonchaos.plugins import load_plugins
from tritonchaos.reproducing import BundleOptions, write_bundle
from tritonchaos.reproducing.model_files import build_sources
from tritonchaos.reproducing.program.building import build_models
from tritonchaos.reproducing.program.server import CannotTell
from tritonchaos.reproducing.unpacking import opened
from tritonchaos.units import MIB

load_plugins()
TOKEN = "ghp_" + "a1B2" * 9
OWN_SCENARIO = TEMPLATE_SCENARIO.replace("{template: identity, variant: planted}", "{path: ./m}")


def bundle(folder: Path, events, options: BundleOptions | None = None, **how) -> Path:
    write_run(folder / "run", events, **how)
    return write_bundle(folder / "run", folder / "bundle", options or BundleOptions()).folder


def recipe_of(folder: Path) -> dict:
    namespace: dict = {}
    text = (folder / "repro.py").read_text()
    start = text.index("RECIPE = ")
    exec(text[start : text.index("# ---", start)], namespace)
    return namespace["RECIPE"]


def everything(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


# --- what is in it -------------------------------------------------------------------------------


def test_a_leak_is_made_small_and_keeps_its_edit(tmp_path: Path) -> None:
    recipe = recipe_of(bundle(tmp_path, leaking_events(40)))
    done = [(b["phase"], b["arm"], b["cycles"], [s["do"] for s in b["each"]]) for b in recipe["blocks"]]
    assert done == [
        ("baseline", "control", 8, ["load", "unload"]),
        ("wrong", "treatment", 0, ["use"]),
        ("wrong", "treatment", 12, ["load", "unload"]),
    ]
    assert recipe["claim"]["by"] == "growth"
    assert recipe["claim"]["bytes_per_cycle"] == pytest.approx(2**20, rel=0.1)
    assert recipe["server"]["flags"] == {"disable-auto-complete-config": "true"}


def test_the_models_are_there_before_and_after_the_edit_and_without_plants(tmp_path: Path) -> None:
    folder = bundle(tmp_path, leaking_events())
    recipe = recipe_of(folder)
    edited = next(step["state"] for block in recipe["blocks"] for step in block["each"] if step["do"] == "use")
    before = (folder / "models" / recipe["models"]["ident"] / "ident" / "config.pbtxt").read_text()
    after = (folder / "models" / edited / "ident" / "config.pbtxt").read_text()
    clean = (folder / "models" / recipe["twin"]["states"][edited] / "ident" / "config.pbtxt").read_text()
    assert before == CONFIG
    assert after == CONFIG.replace('"OUTPUT" data_type: TYPE_FP32', '"OUTPUT" data_type: TYPE_INT32')
    assert clean == after.replace("1048576", "0").replace('[{\\"what\\": \\"fds\\"}]', "[]")
    assert (folder / "planted" / "planted.c").is_file()


def test_the_issue_has_what_the_template_asks_for(tmp_path: Path) -> None:
    issue = (bundle(tmp_path, leaking_events()) / "ISSUE.md").read_text()
    wanted = ("**Description**", "**Triton Information**", "**To Reproduce**", "**Expected behavior**", "**Observed**")
    assert [heading for heading in wanted if heading not in issue] == []
    for piece in (
        "2.51.0",
        "backend planted, inputs INPUT FP32 [16], outputs OUTPUT FP32 [16]",
        "docker run",
        "--network none",
        'backend: "planted"',
        "+output",
        "| wrong | treatment | 0 |",
    ):
        assert piece in issue.replace("\\", ""), piece


def test_a_hang_ends_with_the_call_that_hangs(tmp_path: Path) -> None:
    recipe = recipe_of(bundle(tmp_path, hanging_events()))
    place = {"step": "load ident", "phase": "wrong", "track": ""}
    assert recipe["claim"] == {"by": "no_answer", **place, "deadline_s": 8.0}
    [*_, tries] = recipe["blocks"]
    assert [step["do"] for step in tries["each"]] == ["load", "wait", "unload"]
    assert tries["cycles"] == 3


def test_every_finding_can_be_chosen(tmp_path: Path) -> None:
    events = hanging_events()
    events[-1] = run().stop(forced=True, signal="SIGKILL").events[0]
    folder = write_run(tmp_path / "run", events)
    first = write_bundle(folder, tmp_path / "a", BundleOptions())
    assert first.finding.kind == "hang"
    ids = {f["id"]: f["kind"] for f in json.loads((first.folder / "results.json").read_text())["findings"]}
    other = next(name for name, kind in ids.items() if kind == "will_not_stop")
    second = write_bundle(folder, tmp_path / "b", BundleOptions(finding=other[:6]))
    assert recipe_of(second.folder)["claim"] == {"by": "will_not_stop"}


def test_the_bytes_depend_on_the_run_alone(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", leaking_events())
    one = write_bundle(folder, tmp_path / "x" / "same", BundleOptions())
    shutil.copytree(folder, tmp_path / "copy")
    two = write_bundle(tmp_path / "copy", tmp_path / "y" / "same", BundleOptions())
    assert one.archive.read_bytes() == two.archive.read_bytes()


def test_the_archive_holds_the_folder_and_nobodys_name(tmp_path: Path) -> None:
    folder = bundle(tmp_path, leaking_events())
    with tarfile.open(tmp_path / "bundle.tar.gz") as tar:
        members = tar.getmembers()
    assert {m.name for m in members} == {f"bundle/{p.relative_to(folder)}" for p in folder.rglob("*") if p.is_file()}
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "", "", 0)}


def test_the_manifest_names_every_file_and_the_bundle_opens(tmp_path: Path) -> None:
    folder = bundle(tmp_path, leaking_events())
    with opened(tmp_path / "bundle.tar.gz") as (_, manifest):
        for name, digest in manifest["files"].items():
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert manifest["format_version"] == 1


# --- what is not in it ---------------------------------------------------------------------------


def test_what_must_not_be_seen_is_nowhere(tmp_path: Path) -> None:
    log = f"opened /home/alice/acme/models from 10.1.2.3 on gpu-box-17, key {TOKEN}, alice@acme.com, Triton 2.51.0.1\n"
    env = "server: {env: {S3_KEY: s3cr3t-value-1, MALLOC_ARENA_MAX: '2'}, flags"
    scenario = TEMPLATE_SCENARIO.replace("server: {flags", env)
    model = {"config.pbtxt": f"# by alice, see /home/alice/acme\n{CONFIG}".encode(), "1/engine.json": b"{}"}
    target = {"url": "http://gpu-box-17:8000", "server_path": "/home/alice/bin/tritonserver"}
    folder = bundle(tmp_path, leaking_events(), log=log, scenario=scenario, model=model, target=target)
    text = everything(folder)
    for secret in ("alice", "acme", "10.1.2.3", "gpu-box-17", TOKEN, "s3cr3t-value-1"):
        assert secret not in text, secret
    assert "Triton 2.51.0.1" in text
    recipe = recipe_of(folder)
    assert recipe["server"]["env"] == {"MALLOC_ARENA_MAX": "2"}
    assert recipe["variables"] == ["S3_KEY"]
    told = (folder / "REDACTED.md").read_text()
    assert "server.log: 1 x token" in told
    assert "variable S3_KEY" in told


def test_weights_of_own_models_stay_out_unless_wanted(tmp_path: Path) -> None:
    weights = b"\x00\x01weights\xff"
    model = {"config.pbtxt": CONFIG.encode(), "1/model.onnx": weights, "1/model.py": b"x = 1\n"}
    own = {"scenario": OWN_SCENARIO, "model": model, "variant": "own"}
    folder = bundle(tmp_path, leaking_events(), **own)
    recipe = recipe_of(folder)
    state = recipe["models"]["ident"]
    assert b"weights" not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.suffix == ".onnx")
    assert (folder / "models" / state / "ident" / "1" / "model.py").read_text() == "x = 1\n"
    digest = hashlib.sha256(weights).hexdigest()
    assert recipe["missing"][0] == {"path": f"{state}/ident/1/model.onnx", "bytes": len(weights), "sha256": digest}
    whole = write_bundle(tmp_path / "run", tmp_path / "whole", BundleOptions(include_weights=True)).folder
    assert (whole / "models" / state / "ident" / "1" / "model.onnx").read_bytes() == weights
    assert recipe_of(whole)["missing"] == []
    assert recipe_of(whole)["differences"] == []


def test_a_text_that_something_is_taken_out_of_is_another_model(tmp_path: Path) -> None:
    model = {"config.pbtxt": CONFIG.encode(), "1/model.py": b"HOST = 'db7.acme.internal'\n"}
    folder = bundle(tmp_path, leaking_events(), scenario=OWN_SCENARIO, model=model, variant="own")
    assert recipe_of(folder)["differences"] == ["ident/1/model.py had texts that are taken out here"]


def test_a_stand_in_has_the_same_inputs_and_outputs(tmp_path: Path) -> None:
    text = 'platform: "onnxruntime_onnx"\n' + CONFIG.replace('backend: "planted"\n', "")
    own = {"scenario": OWN_SCENARIO, "model": {"config.pbtxt": text.encode(), "1/model.onnx": b"\0"}, "variant": "own"}
    folder = bundle(tmp_path, leaking_events(), BundleOptions(stand_in=True), **own)
    recipe = recipe_of(folder)
    model = folder / "models" / recipe["models"]["ident"] / "ident"
    served = json.loads((model / "1" / "engine.json").read_text())
    assert served["outputs"] == [{"name": "OUTPUT", "datatype": "FP32", "dims": [16], "copies": "INPUT"}]
    config = (model / "config.pbtxt").read_text()
    assert recipe["differences"] == ["ident was served; here a stand-in is, with the same inputs and outputs"]
    assert 'backend: "planted"' in config
    assert "onnx" not in config
    assert recipe["planted"]
    assert recipe["missing"] == []


def test_a_model_that_nothing_can_stand_in_for_is_told(tmp_path: Path) -> None:
    text = CONFIG.replace('"OUTPUT" data_type: TYPE_FP32 dims: [16]', '"OUTPUT" data_type: TYPE_FP32 dims: [7]')
    own = {"scenario": OWN_SCENARIO, "model": {"config.pbtxt": text.encode()}, "variant": "own"}
    with pytest.raises(UsageError, match="output OUTPUT is like none of its inputs"):
        bundle(tmp_path, leaking_events(), BundleOptions(stand_in=True), **own)


# --- what none can be made of --------------------------------------------------------------------


def refused(folder: Path, out: Path, error: type[Exception] = StoreError) -> str:
    with pytest.raises(error) as caught:
        write_bundle(folder, out, BundleOptions())
    assert not out.exists()
    return str(caught.value)


def test_a_run_without_findings(tmp_path: Path) -> None:
    events = run().start().phase("baseline", CONTROL, "host_private_bytes", [1]).stop().events
    assert "has no findings" in refused(write_run(tmp_path / "run", events), tmp_path / "b", UsageError)


def test_a_run_with_zero_cycles(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", run().start().stop().events)
    assert "has no findings" in refused(folder, tmp_path / "b", UsageError)


def test_an_id_that_is_not_there(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", leaking_events())
    with pytest.raises(UsageError, match="found 0 findings with the id 'zzz'"):
        write_bundle(folder, tmp_path / "b", BundleOptions(finding="zzz"))


@pytest.mark.parametrize("name", ["run.db", "scenario.yaml", "repository/edits.jsonl"])
def test_an_incomplete_run(tmp_path: Path, name: str) -> None:
    folder = write_run(tmp_path / "run", leaking_events())
    (folder / name).unlink()
    assert name.rpartition("/")[2] in refused(folder, tmp_path / "b")


def test_an_archive_without_a_state_or_with_a_name_that_leads_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", leaking_events())
    edits = folder / "repository" / "edits.jsonl"
    shutil.rmtree(next((folder / "repository").glob("0002-*")))
    assert "incomplete" in refused(folder, tmp_path / "b")
    edits.write_text(json.dumps({"label": "add-x", "model": "x", "folder": "../.."}) + "\n")
    assert "damaged" in refused(folder, tmp_path / "b")
    edits.write_text("{")
    assert "damaged" in refused(folder, tmp_path / "b")


@pytest.mark.parametrize("name", ["server.log", "scenario.yaml", "repository"])
def test_a_run_with_a_link_to_something_else(tmp_path: Path, name: str) -> None:
    folder = write_run(tmp_path / "run", leaking_events())
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    assert "is a link" in refused(folder, tmp_path / "b")


def test_a_link_among_the_models_files_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("not-for-you")
    folder = write_run(tmp_path / "run", leaking_events())
    for model in (folder / "repository").glob("*/ident/1"):
        (model / "model.py").symlink_to(tmp_path / "secret.py")
    made = write_bundle(folder, tmp_path / "b", BundleOptions()).folder
    assert "not-for-you" not in everything(made)


def test_a_damaged_run(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", leaking_events())
    whole = (folder / "run.db").read_bytes()
    (folder / "run.db").write_bytes(whole[: len(whole) // 2])
    assert "damaged" in refused(folder, tmp_path / "b")


def test_a_run_of_a_newer_format(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", leaking_events())
    with sqlite3.connect(folder / "run.db") as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'format_version'")
    database.close()
    assert "newer tritonchaos" in refused(folder, tmp_path / "b")


def test_an_output_that_exists(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", leaking_events())
    (tmp_path / "b").mkdir()
    with pytest.raises(StoreError, match="exists already"):
        write_bundle(folder, tmp_path / "b", BundleOptions())
    (tmp_path / "b").rmdir()
    (tmp_path / "b.tar.gz").write_text("mine")
    assert "exists already" in refused(folder, tmp_path / "b")
    assert (tmp_path / "b.tar.gz").read_text() == "mine"


def with_phase(text: str) -> str:
    each = "each: [{load: ident}, {unload: ident}]"
    return TEMPLATE_SCENARIO.replace(f"cycles: 20, {each}", f"cycles: 20, {text.replace('EACH', each)}")


def test_traffic_beside_the_cycles_is_done_beside_them(tmp_path: Path) -> None:
    phase = "EACH, meanwhile: [{track: t, workers: 2, rate: 50/s, each: [{infer: ident}]}]"
    [track] = recipe_of(bundle(tmp_path, leaking_events(), scenario=with_phase(phase)))["beside"]["wrong"]
    assert (track["track"], track["workers"], track["rate"], track["start"], track["stop"]) == ("t", 2, 50.0, {}, {})
    [infer] = track["each"]
    assert infer["inputs"] == [{"name": "INPUT", "datatype": "FP32", "shape": [16]}]
    assert infer["equal"] == {"OUTPUT": "INPUT"}


def test_a_track_keeps_its_own_beginning_and_end(tmp_path: Path) -> None:
    start = "start: {at: {step: load, when: finished, offset: 20ms}}, stop: {times: 5}"
    phase = f"EACH, meanwhile: [{{track: t, each: [{{repeat: {{times: 2, steps: [{{load: ident}}]}}}}], {start}}}]"
    [track] = recipe_of(bundle(tmp_path, leaking_events(), scenario=with_phase(phase)))["beside"]["wrong"]
    assert track["start"] == {"track": "main", "step": "load", "when": "finished", "offset_s": 0.02}
    assert track["stop"] == {"times": 5}
    assert [step["do"] for step in track["each"]] == ["load", "load"]


def test_steps_that_start_together_stay_together(tmp_path: Path) -> None:
    phase = "each: [{together: {gap: 5ms, steps: [{load: ident}, {unload: ident}]}}]"
    recipe = recipe_of(bundle(tmp_path, leaking_events(), scenario=with_phase(phase)))
    [group] = next(block["each"] for block in recipe["blocks"] if block["cycles"] == 20 or block["cycles"] == 12)
    assert (group["do"], group["gap_s"]) == ("together", 0.005)
    assert [step["do"] for step in group["steps"]] == ["load", "unload"]
    assert "differences" in recipe and not recipe["differences"]


@pytest.mark.parametrize(
    ("track", "told"),
    [
        ("infer: {model: ident, via: grpc}", "infer ident went over gRPC; here it goes over HTTP"),
        ("cut_network: {for: 1s}", "cut_network is left out: it is done to a container from outside"),
        ("edit_config: {model: ident, set: {a: 1}}", "edit_config ident is left out: repro.py has no such step"),
    ],
)
def test_what_is_done_otherwise_is_told(tmp_path: Path, track: str, told: str) -> None:
    phase = with_phase(f"EACH, meanwhile: [{{track: t, each: [{{{track}}}, {{wait: 1s}}]}}]")
    folder = bundle(tmp_path, leaking_events(), scenario=phase)
    assert recipe_of(folder)["differences"] == [told]
    for name in ("README.md", "ISSUE.md"):
        text = " ".join((folder / name).read_text().replace("\\", "").split())
        assert f"did otherwise: - {told}" in text
        assert "cannot tell (3)" in text


def test_the_limits_of_the_container_are_in_its_line(tmp_path: Path) -> None:
    target = "target: [{docker: {image: a, shm_size: 64MiB, memory: 2GiB, init: false}}]"
    scenario = TEMPLATE_SCENARIO.replace("target: [{local: {}}]", target)
    facts = {"target": "docker", "image": "a:1", "image_digest": "sha256:" + "0" * 64}
    folder = bundle(tmp_path, leaking_events(), scenario=scenario, target=facts)
    [line, *_] = [line for line in (folder / "repro.py").read_text().splitlines() if "docker run" in line]
    assert f"--shm-size {64 * MIB} --memory {2048 * MIB} --user" in line
    assert "a:1@sha256:000" in line
    assert "process 1 of its container" in recipe_of(folder)["differences"][0]


# --- repro.sh ------------------------------------------------------------------------------------


def test_a_finding_of_answers_alone_has_a_script_with_curl(tmp_path: Path) -> None:
    scenario = TEMPLATE_SCENARIO.replace("variant: planted", "variant: python")
    folder = bundle(tmp_path, hanging_events(), scenario=scenario, variant="python")
    script = (folder / "repro.sh").read_text()
    assert "ask POST /v2/repository/models/ident/load 8" in script
    assert script.count("use 0") == 2
    subprocess.run(["sh", "-n", folder / "repro.sh"], check=True)


def test_a_leak_has_none(tmp_path: Path) -> None:
    assert not (bundle(tmp_path, leaking_events()) / "repro.sh").exists()


# --- files that are built ------------------------------------------------------------------------


def test_a_plan_is_built_where_it_is_served(tmp_path: Path) -> None:
    scenario = TEMPLATE_SCENARIO.replace("variant: planted", "parameters: {dims: [16]}")
    model = {"config.pbtxt": CONFIG.replace("planted", "tensorrt").encode(), "1/model.plan": b"\0plan"}
    folder = bundle(tmp_path, leaking_events(), scenario=scenario, model=model, variant="tensorrt")
    assert list(folder.rglob("model.plan")) == []
    [first, second] = recipe_of(folder)["build"]
    assert first["file"] == second["file"] == "1/model.plan"
    assert first["parameters"]["dims"] == [16]
    for name in ("build_in_place.sh", "build_model.py", "build.py", "build.cc"):
        assert (folder / first["folder"] / name).is_file()
    whole = write_bundle(tmp_path / "run", tmp_path / "whole", BundleOptions(include_weights=True)).folder
    assert [path.read_bytes() for path in whole.rglob("model.plan")] == [b"\0plan"] * 2


BUILDER = """
def identify():
    return {"library": "l", "version": "1", "device": "cpu"}

def build(out, parameters):
    out.write_text(repr(parameters["dims"]))
    return {}
"""


def test_it_is_built_once_for_all_states(tmp_path: Path, capfd) -> None:
    scripts = tmp_path / "build" / "x"
    (tmp_path / "template").mkdir()
    (tmp_path / "template" / "build.py").write_text(BUILDER)
    for name, body in build_sources(tmp_path / "template" / "build.py"):
        scripts.mkdir(parents=True, exist_ok=True)
        (scripts / name).write_bytes(body)
    order = {"model": "m", "file": "1/model.plan", "folder": str(scripts), "parameters": {"dims": [16]}}
    orders = [order | {"state": state} for state in ("a", "b")]
    build_models(orders, str(tmp_path / "states"), str(tmp_path / "work"), dict(os.environ))
    assert [(tmp_path / "states" / s / "m" / "1" / "model.plan").read_text() for s in ("a", "b")] == ["[16]"] * 2
    assert capfd.readouterr().out.count("building") == 1


def test_what_cannot_be_built_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "build_in_place.sh").write_text("echo no compiler; exit 1")
    order = {"state": "a", "model": "m", "file": "1/model.plan", "folder": str(tmp_path / "x"), "parameters": {}}
    with pytest.raises(CannotTell, match=r"models/a/m/1/model.plan could not be built here[^§]*no compiler"):
        build_models([order], str(tmp_path / "states"), str(tmp_path / "work"), dict(os.environ))
