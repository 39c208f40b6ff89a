"""Which TensorRT a backend is linked with, told by stand-ins for libnvinfer and the backend."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tritonchaos import native
from tritonchaos.local_server.tensorrt_version import find_tensorrt_version, version_text


@pytest.mark.parametrize(("number", "text"), [(101303, "10.13.3"), (100000, "10.0.0"), (8601, "8.6.1")])
def test_versions_are_written_as_people_do(number: int, text: str) -> None:
    assert version_text(number) == text


@pytest.mark.skipif(native.missing_compiler() is not None, reason="no C compiler")
def test_the_linked_library_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONCHAOS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "nvinfer.c").write_text("int getInferLibVersion(void) { return 101303; }\n")
    (tmp_path / "backend.c").write_text("int getInferLibVersion(void); int f(void) { return getInferLibVersion(); }\n")
    nvinfer = native.compile_shared("nvinfer", [tmp_path / "nvinfer.c"], ["-Wl,-soname,libnvinfer.so.10"])
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libnvinfer.so.10").symlink_to(nvinfer)
    flags = [f"-L{nvinfer.parent}", "-Wl,--no-as-needed", "-lnvinfer"]
    backend = native.compile_shared("triton_tensorrt", [tmp_path / "backend.c"], flags)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "lib")}
    assert find_tensorrt_version(backend.parent, environment) == "10.13.3"
    assert find_tensorrt_version(tmp_path / "absent", environment) is None
    assert find_tensorrt_version(backend.parent, {"PATH": os.environ["PATH"]}) is None, "libnvinfer is not found"
