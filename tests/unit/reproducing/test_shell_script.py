"""repro.sh, from literal recipes."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tritonchaos.reproducing.shell_script import shell_script

INFER = {"do": "infer", "model": "m", "deadline_s": 5.0, "count": 2, "expect": {"kind": "ok"}}
INPUT = {"name": "IN", "datatype": "FP32", "shape": [1, 2]}


def recipe(*steps: dict[str, Any], by: str = "unmet") -> dict[str, Any]:
    block = {"phase": "p's", "arm": "treatment", "cycles": 1, "each": list(steps)}
    empty = dict.fromkeys(("planted", "build", "missing", "sends_files", "beside"), False)
    server = {"mode": "explicit", "flags": {"log-verbose": "1"}}
    return {**empty, "claim": {"by": by}, "server": server, "models": {"m": "0001"}, "blocks": [block]}


def request(body: bytes) -> dict[str, Any]:
    told = {"method": "POST", "path": "/v2/x?[1]", "headers": {"A": "it's"}, "body": base64.b64encode(body).decode()}
    return {"do": "request", "deadline_s": 5.0, "expect": {"kind": "any"}, **told}


def sent(tmp_path: Path, script: str) -> list[str]:
    """Arguments of each curl that the script calls, one a line."""
    (tmp_path / "models" / "0001" / "m").mkdir(parents=True)
    (tmp_path / "repository").mkdir()
    (tmp_path / "repro.sh").write_text(script)
    curl = tmp_path / "curl"
    curl.write_text(f'#!/bin/sh\nprintf "%s|" "$@" | tr "\\n" " " >>{tmp_path}/sent; echo >>{tmp_path}/sent\n')
    curl.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "REPOSITORY": str(tmp_path / "repository")}
    subprocess.run(["sh", "repro.sh"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    return (tmp_path / "sent").read_text().splitlines()


@pytest.mark.skipif(shutil.which("sh") is None, reason="no shell")
def test_inferences_and_requests_are_sent_word_for_word(tmp_path: Path) -> None:
    script = shell_script(recipe({**INFER, "inputs": [INPUT]}, request(b"@/etc/passwd '$HOME'")))
    assert script is not None
    first, second, third = sent(tmp_path, script)
    assert first == second
    assert '--data-raw|{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,2],"data":[1,1]}]}|' in first
    assert "|http://127.0.0.1:8000/v2/x?[1]|-H|A: it's|--data-raw|@/etc/passwd '$HOME'|" in third


@pytest.mark.parametrize(
    "step",
    [
        {**INFER, "inputs": [{**INPUT, "datatype": "FP16"}]},
        {**INFER, "inputs": [{**INPUT, "shape": [100_000]}]},
        request(b"\xff\xfe"),
        {"do": "load", "model": "m", "config": "{}", "expect": {"kind": "ok"}, "deadline_s": 5.0},
        {"do": "signal", "process": "stub", "signal": "SIGKILL"},
        {"do": "together", "gap_s": 0.0, "steps": []},
    ],
)
def test_what_a_line_cannot_hold_has_no_script(step: dict[str, Any]) -> None:
    assert shell_script(recipe(step)) is None


def test_a_server_that_will_not_stop_has_one_that_says_how_to_stop_it() -> None:
    assert "kill -TERM" in (shell_script(recipe(by="will_not_stop")) or "")
    assert shell_script(recipe(by="growth")) is None
