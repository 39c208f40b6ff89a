"""repro.py as one file: complete, and of nothing but Python's standard library."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tritonchaos.reproducing.assembling import assemble

RECIPE = {
    "finding": {"kind": "hang", "title": 'a title with "quotes"'},
    "claim": {"by": "will_not_stop"},
    "models": {},
    "blocks": [],
    "differences": [],
    "twin": {},
    "build": [],
    "missing": [],
    "empty_folders": [],
}
TEXT = assemble('Shows a "thing" \\ """and more"""\n', RECIPE)


def test_it_is_valid_for_python_3_8() -> None:
    ast.parse(TEXT, feature_version=(3, 8))


def test_it_imports_the_standard_library_only() -> None:
    nodes = [node for node in ast.walk(ast.parse(TEXT)) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {
        name for n in nodes for name in ([n.module] if isinstance(n, ast.ImportFrom) else [a.name for a in n.names])
    }
    assert {name.partition(".")[0] for name in modules} <= set(sys.stdlib_module_names)


def test_every_name_that_it_uses_is_there() -> None:
    tree = ast.parse(TEXT)
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined |= {(a.asname or a.name).partition(".")[0] for n in ast.walk(tree) if hasattr(n, "names") for a in n.names}
    defined |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    defined |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    assert used - defined - set(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__) == {
        "__file__"
    }


def test_no_name_of_one_part_hides_one_of_another() -> None:
    names = [node.name for node in ast.parse(TEXT).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert sorted(names) == sorted(set(names))


def test_the_recipe_reads_back_as_it_was() -> None:
    for node in ast.parse(TEXT).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "RECIPE":
            assert ast.literal_eval(node.value) == RECIPE
            return
    raise AssertionError("no RECIPE")


@pytest.mark.parametrize("python", [sys.executable, "/usr/bin/python3"])
def test_it_runs_without_anything_and_says_what_is_missing(python: str, tmp_path: Path) -> None:
    if shutil.which(python) is None:
        pytest.skip(f"no {python}")
    (tmp_path / "repro.py").write_text(TEXT)
    (tmp_path / "models").mkdir()
    command = [python, "-I", "-S", str(tmp_path / "repro.py"), "--server", "/nowhere/tritonserver"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"PATH": "/nowhere"})
    assert done.returncode == 3, done.stderr
    assert "no tritonserver at /nowhere/tritonserver" in done.stdout
    assert done.stderr == ""
