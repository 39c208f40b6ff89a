"""`tritonchaos schema`: print the JSON Schema of scenario files."""

from __future__ import annotations

import json

import typer

from tritonchaos.cli.options import Plugins


def schema_command(plugin: Plugins = None) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from tritonchaos.plugins import load_plugins
    from tritonchaos.scenario import json_schema

    load_plugins(plugin or ())
    typer.echo(json.dumps(json_schema(), indent=2))
