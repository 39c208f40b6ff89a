"""`tritonchaos pin` asks a registry through a real engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.docker.registry import registry
from tritonchaos.cli.app import app
from tritonchaos.errors import TargetUnavailable, UsageError
from tritonchaos.pins import Pin, read_pins

pytestmark = pytest.mark.docker


def pin(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["pin", *arguments])


def test_the_registry_says_what_a_tag_stands_for(engine: str, tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    with registry("nvidia/tritonserver", "26.09-py3") as (image, digest):
        shown = pin(image, "--write", str(file))
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == Pin(image, digest).entry() + "\n"
    assert "said by the registry" in shown.stderr
    assert read_pins(file) == [Pin(image, digest)]


def test_a_tag_that_was_moved_is_not_pinned_silently(engine: str, tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    with registry("nvidia/tritonserver", "26.09-py3") as (image, digest):
        file.write_text(f'images:\n  - {{image: "{image}", digest: "sha256:{"1" * 64}"}}\n')
        shown = pin(image, "--write", str(file))
        assert isinstance(shown.exception, UsageError)
        assert digest in shown.exception.message
        assert pin(image, "--write", str(file), "--replace").exit_code == 0
    assert read_pins(file) == [Pin(image, digest)]


def test_a_tag_that_nobody_knows_is_told(engine: str) -> None:
    with registry("nvidia/tritonserver", "26.09-py3") as (image, _):
        refused = pin(image.replace("26.09", "26.10")).exception
    assert isinstance(refused, TargetUnavailable)
    assert "this machine: has no such image" in refused.message


def test_without_a_registry_an_image_that_was_built_here_has_no_digest(engine: str, cpu_image: str) -> None:
    import docker

    with registry("x", "1") as (image, _):
        name = image.rpartition(":")[0]  # nobody listens there any more after this block
    client = docker.from_env()
    try:
        client.images.get(cpu_image).tag(name, "1")
        refused = pin(f"{name}:1").exception
        client.images.remove(f"{name}:1")
    finally:
        client.close()
    assert isinstance(refused, TargetUnavailable)
    assert "built here, so without a digest" in refused.message
