"""Runs the build script of a model template in a process that ends with it, so that nothing of it stays in memory.

Usage: build_model.py identify SCRIPT
       build_model.py build SCRIPT OUT PARAMETERS

SCRIPT is a Python file with `identify() -> dict`, what its output depends on beside the parameters, and
`build(out: Path, parameters: dict) -> dict`, which writes the file and says what is in it. PARAMETERS is JSON. The last
line of the output is what the function gave, as JSON; anything else is for people.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType


def load(script: Path) -> ModuleType:
    """Import a Python file."""
    spec = importlib.util.spec_from_file_location("build_script", script)
    if spec is None or spec.loader is None:
        raise ImportError(f"{script} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(arguments: list[str]) -> int:
    """Call the function that is asked for and print what it gives."""
    command, script, *rest = arguments
    module = load(Path(script))
    told = module.identify() if command == "identify" else module.build(Path(rest[0]), json.loads(rest[1]))
    sys.stdout.write("\n" + json.dumps(told, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
