"""The target `docker` on a real engine: what the local target does, seen from outside a container."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from tests.docker.engine_state import unchanged
from tests.server.cli import Called, run_scenario

pytestmark = pytest.mark.docker


@pytest.fixture(autouse=True)
def nothing_stays(engine: str, tmp_path: Path) -> Iterator[None]:
    with unchanged(tmp_path):
        yield


def judged(called: Called) -> list[tuple[str, str | None, str]]:
    found = called.results["assessments"]
    return [(one["checker"], one["metric"], one["status"]) for one in found]


def test_failed_load_compiled_in_the_image_gives_the_verdict_of_the_local_target(
    tmp_path: Path, cpu_image: str, server_here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    with monkeypatch.context() as without_compiler:
        # Nothing is in the cache, and this machine has no compiler: what is ours can only come from the image's.
        without_compiler.setenv("TRITONCHAOS_CACHE", str(tmp_path / "cache"))
        without_compiler.setenv("CC", "/no/such/cc")
        there = run_scenario("failed-load", tmp_path / "there", "--target", "docker", "--image", cpu_image)
    here = run_scenario("failed-load", tmp_path / "here", "--target", "local")
    assert there.exit_code == here.exit_code == 0, there.shown() + here.shown()
    assert judged(there) == judged(here)
    facts = there.results["target"]
    assert facts["compiled"] == "relay, triton_planted, tritonchaos_trimmer in a container of the image"
    assert facts["image"] == cpu_image
    assert facts["image_id"].startswith("sha256:")
    assert facts["image_digest"] == "none: built on this machine"
    assert facts["triton_version"] == "2.51.0"
    assert facts["container_network"] == "none"
    assert facts["container_reached"].endswith("handed over")
    assert facts["container_loosened"] == "nothing"
    assert "--disable-auto-complete-config" in facts["server_command"]
    assert "processes 4096" in facts["container_limits"]
    assert b"Started HTTPService" in (there.folder / "server.log").read_bytes()


def test_a_planted_leak_is_found_through_published_ports(tmp_path: Path, cpu_image: str) -> None:
    called = run_scenario("planted-leak", tmp_path, "--image", cpu_image, "--set", "target.network=publish")
    assert called.exit_code == 1, called.shown()
    assert called.findings("leak")[0]["metric"] == "host_private_bytes"


def test_a_python_model_with_its_stub_is_read_from_outside(tmp_path: Path, cpu_image: str) -> None:
    scenario = """\
scenario: python-in-a-container
seed: 1
models:
  ident: {template: identity, variant: python, parameters: {datatype: FP32, dims: [4]}}
phases:
  - phase: loads
    cycles: 3
    each: [{load: ident}, {infer: {model: ident, expect: {processes: {stub: 1}}}}, {unload: ident}]
check: [leftovers, server_alive, expectations]
"""
    called = run_scenario(scenario, tmp_path, "--image", cpu_image)
    assert called.exit_code == 0, called.shown()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--image", "tritonchaos/absent:1", "--pull", "never"], "tritonchaos/absent:1 is not on this machine"),
        (["--image", "{cpu_image}@sha256:" + "0" * 64], "the pin does not match: {cpu_image} is pinned to sha256:000"),
        pytest.param(
            ["--image", "{cpu_image}", "--set", "target.gpu_access=toolkit"],
            "a GPU is asked for, but there is none",
            marks=pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU"),
        ),
        (["--image", "tritonchaos/debian:bookworm", "--set", "target.gpus=[]"], "has no tritonserver that runs"),
        (["--target", "docker", "--set", "target.docker.engine=unix:///no/socket"], "there is no /no/socket"),
    ],
)
def test_what_cannot_be_had_is_told_and_nothing_else_is_tried(
    tmp_path: Path, cpu_image: str, options: list[str], told: str
) -> None:
    given = [option.format(cpu_image=cpu_image) for option in options]
    called = run_scenario("failed-load", tmp_path, *given)
    assert called.exit_code == 4, called.shown()
    assert told.format(cpu_image=cpu_image) in called.stderr


DOCKERFILE = "FROM {base}\nUSER 0\nRUN rm -f /usr/bin/cc /usr/bin/gcc /usr/bin/clang\n"
WITHOUT_COMPILER = "tritonchaos-test/without-compiler:1"


def test_for_an_image_without_a_compiler_this_machines_is_taken(tmp_path: Path, cpu_image: str) -> None:
    file = io.BytesIO(DOCKERFILE.format(base=cpu_image).encode())
    with closing(docker.from_env()) as client:
        client.images.build(fileobj=file, tag=WITHOUT_COMPILER, rm=True, forcerm=True)
        try:
            called = run_scenario("planted-leak", tmp_path, "--image", WITHOUT_COMPILER)
        finally:
            client.images.remove(WITHOUT_COMPILER, force=True)
    assert called.exit_code == 1, called.shown()
    assert called.results["target"]["compiled"] == "triton_planted, tritonchaos_trimmer on this machine"
    assert "triton_planted was compiled on this machine: the image has no C compiler" in called.results["notes"]
