"""A model file is built in a container of the server's own image, which has gone when the build returns."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import docker as sdk
import pytest

from tritonchaos.errors import TemplateError
from tritonchaos.shipped import shipped_folder
from tritonchaos.targets.docker import DockerTarget
from tritonchaos.templates.building import build_model_file, find_builder

pytestmark = pytest.mark.docker

STAND_IN = Path(__file__).parents[1] / "tensorrt_stand_in"
IDENTITY = shipped_folder("model_templates") / "identity" / "tensorrt"
TAG = "tritonchaos-test/tensorrt-stand-in:1"
DOCKERFILE = """\
FROM {base}
COPY NvInfer.h /usr/include/
COPY nvinfer.cc cuda_runtime_api.h /tmp/
RUN g++ -std=c++17 -shared -fPIC -idirafter /tmp -o /usr/lib/libnvinfer.so.10 /tmp/nvinfer.cc && ldconfig
"""
BY_PYTHON = """
import os, pathlib, sys
def identify():
    version = pathlib.Path("/opt/tritonserver/TRITON_VERSION").read_text().strip()
    return {"library": "lib", "version": version, "device": "cpu"}
def build(out, parameters):
    out.write_text(f"{sys.version_info[:2]} uid {os.getuid()} size {parameters['size']}")
    return {"routes": len(pathlib.Path("/proc/net/route").read_text().splitlines()) - 1}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITONCHAOS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def client(engine: str) -> Iterator[sdk.DockerClient]:
    opened = sdk.from_env()
    yield opened
    assert opened.containers.list(all=True, filters={"label": "tritonchaos.role=build"}) == []
    opened.close()


@pytest.fixture
def tensorrt_image(client: sdk.DockerClient, cpu_image: str, tmp_path: Path) -> Iterator[str]:
    """An image with the stand-in's header and library where the official one has TensorRT's, and no Python module."""
    context = tmp_path / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(DOCKERFILE.format(base=cpu_image))
    for file in (STAND_IN / "NvInfer.h", STAND_IN / "nvinfer.cc", IDENTITY / "build.include" / "cuda_runtime_api.h"):
        shutil.copy(file, context)
    client.images.build(path=str(context), tag=TAG, rm=True, forcerm=True)
    yield TAG
    client.images.remove(TAG, force=True)


def usable(image: str) -> DockerTarget:
    target = DockerTarget(image=image)
    target.check()
    return target


def test_the_image_builds_with_its_own_python_without_network(
    client: sdk.DockerClient, cpu_image: str, tmp_path: Path
) -> None:
    script = tmp_path / "build.py"
    script.write_text(BY_PYTHON)
    target = usable(cpu_image)
    built = build_model_file(script, "model.plan", {"size": 3}, target)
    assert built.file.read_text().startswith("(3, 11) uid ")
    assert built.file.read_text().endswith(" size 3")
    assert built.facts == {"routes": 0}
    builder = find_builder(script, target)
    assert (builder.version, builder.way) == ("2.51.0", "python")
    assert client.images.get(cpu_image).id in builder.place


def test_the_identity_engine_is_compiled_and_built_in_an_image_without_the_python_module(
    client: sdk.DockerClient, tensorrt_image: str
) -> None:
    target = usable(tensorrt_image)
    script = IDENTITY / "build.py"
    parameters = {"datatype": "FP32", "dims": [16777216], "max_batch_size": 0}
    built = build_model_file(script, "model.plan", parameters, target)
    assert built.file.read_text() == "flags 2\nINPUT 0 16777216\nOUTPUT 0 16777216\n"
    assert find_builder(script, target).way == "c++"
    assert build_model_file(script, "model.plan", parameters, target) == built


def test_an_image_without_tensorrt_says_what_both_ways_lack(client: sdk.DockerClient, cpu_image: str) -> None:
    with pytest.raises(TemplateError, match=r"NvInfer\.h: No such file") as caught:
        find_builder(IDENTITY / "build.py", usable(cpu_image))
    assert "neither tensorrt nor tensorrt_rtx can be imported" in caught.value.message
