"""Build scripts run in processes of their own; what they make is kept and made once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tritonchaos.errors import TemplateError
from tritonchaos.templates.building import build_model_file, find_builder

GOOD = """
import os, pathlib
def identify():
    return {"library": "lib", "version": "1.2", "device": "cpu"}
def build(out, parameters):
    with open(pathlib.Path(__file__).with_name("built"), "a") as log:
        log.write(f"{os.getpid()}\\n")
    print("building", parameters)
    out.write_text(str(parameters["size"]))
    return {"size": parameters["size"]}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITONCHAOS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write_script(folder: Path, text: str = GOOD) -> Path:
    script = folder / "build.py"
    script.write_text(text)
    return script


def builds(script: Path) -> list[str]:
    return script.with_name("built").read_text().splitlines()


def test_a_file_is_built_once_for_what_it_depends_on(tmp_path: Path) -> None:
    script = write_script(tmp_path)
    first = build_model_file(script, "model.plan", {"size": 3})
    assert (first.file.read_text(), first.facts) == ("3", {"size": 3})
    assert build_model_file(script, "model.plan", {"size": 3}) == first
    assert len(builds(script)) == 1
    assert build_model_file(script, "model.plan", {"size": 4}).file.read_text() == "4"
    script.write_text(GOOD + "# edited\n")
    assert build_model_file(script, "model.plan", {"size": 3}).file != first.file


def test_builders_at_once_leave_one_whole_file(tmp_path: Path, cache: Path) -> None:
    script = write_script(tmp_path)
    find_builder(script)
    with ThreadPoolExecutor(4) as threads:
        built = list(threads.map(lambda _: build_model_file(script, "model.plan", {"size": 5}), range(4)))
    assert {b.file.read_text() for b in built} == {"5"}
    assert len(list((cache / "models").iterdir())) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def identify(): raise SystemExit('no such library')", "exit status 1:\nno such library"),
        ("def identify(): return 3", "expected library, version and device"),
        ("import os\ndef identify(): os.kill(os.getpid(), 9)", "failed with signal 9"),
        ("import os\ndef identify(): os._exit(0)", "nothing that can be read"),
        (GOOD.replace('out.write_text(str(parameters["size"]))', ""), "built no model.plan"),
        (GOOD.replace("print(", "print('\\n'.join(map(str, range(99)))); 1/0; print("), "division by zero"),
    ],
)
def test_what_goes_wrong_is_shown(tmp_path: Path, cache: Path, text: str, complaint: str) -> None:
    with pytest.raises(TemplateError) as caught:
        build_model_file(write_script(tmp_path, text), "model.plan", {"size": 3})
    assert complaint in caught.value.message
    assert len(caught.value.message.splitlines()) < 20
    assert list((cache / "models").glob("*")) == [], "a failed build leaves nothing in the cache"


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file")
    with pytest.raises(TemplateError, match="cannot write the cache"):
        build_model_file(write_script(tmp_path), "model.plan", {"size": 3})
