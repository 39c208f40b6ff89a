"""`tritonchaos list`: scenarios, model templates and plug-ins, with their help."""

from __future__ import annotations

import typer

from tritonchaos.cli.options import Plugins


def list_command(plugin: Plugins = None) -> None:
    """List shipped scenarios, model templates and plug-ins; what cannot be used here says why."""
    from tritonchaos.finding_scenarios import shipped_scenarios
    from tritonchaos.plugins import CHECKERS, MISSING, REPORTERS, SAMPLERS, STEPS, TARGETS, load_plugins
    from tritonchaos.templates import find_template, template_names

    load_plugins(plugin or ())
    _print("scenarios", {name: _first_comment(path.read_text()) for name, path in shipped_scenarios().items()})
    _print("model templates", {name: find_template(name).about for name in template_names()})
    for registry in (TARGETS, STEPS, SAMPLERS, CHECKERS, REPORTERS):
        _print(registry.family, {name: registry.help(name) for name in registry.names()})
    _print("not available here", {missing.name: missing.reason for missing in MISSING})


def _print(title: str, entries: dict[str, str]) -> None:
    if not entries:
        return
    typer.echo(f"{title}:")
    width = max(map(len, entries))
    for name, text in entries.items():
        typer.echo(f"  {name:<{width}}  {text}")


def _first_comment(text: str) -> str:
    line = text.partition("\n")[0]
    return line.lstrip("# ") if line.startswith("#") else ""
