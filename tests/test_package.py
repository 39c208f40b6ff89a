"""The package as users get it: a wheel that carries scenarios, model templates and C sources, and starts fast."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Modules that a command's help must not pay for.
HEAVY = ("numpy", "tritonclient", "pynvml", "docker", "google.protobuf", "grpc", "pydantic", "yaml", "psutil")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return next(out.glob("tritonchaos-*.whl"))


def test_the_wheel_carries_what_it_needs(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for scenario in (ROOT / "scenarios").glob("*.yaml"):
        assert f"tritonchaos/shipped_data/scenarios/{scenario.name}" in names
    for source in (ROOT / "tritonchaos" / "planted").glob("*.[ch]"):
        assert f"tritonchaos/planted/{source.name}" in names
    for part in ("page.css", "page.js", "charts.js", "vendor/uPlot.iife.min.js", "vendor/uPlot.LICENSE"):
        assert f"tritonchaos/html_page/{part}" in names
    for part in ("shipped_data/docker/images.yaml", "workers/build_in_place.sh", "containers/relay.c"):
        assert f"tritonchaos/{part}" in names
    assert "tritonchaos/shipped_data/model_templates/identity/tensorrt/build.include/cuda_runtime_api.h" in names
    assert "tritonchaos/py.typed" in names
    assert any(name.startswith("tritonchaos/shipped_data/model_templates/identity/") for name in names)
    assert not any(name.startswith("tests/") for name in names)


def test_list_works_from_an_installed_wheel_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    zipfile.ZipFile(wheel).extractall(site)
    listed = subprocess.run(
        [sys.executable, "-m", "tritonchaos", "list"],
        cwd=empty,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert listed.returncode == 0, listed.stderr
    for name in ("failed-load", "identity", "local", "edit_config", "memory_growth", "nvml"):
        assert f"  {name} " in listed.stdout
    assert list(empty.iterdir()) == []


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\nsys.argv = ['tritonchaos', '--help']\n"
        "from tritonchaos.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('heavy:', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "heavy: []", done.stdout + done.stderr
