"""Pictures of a run for a chat or an issue, drawn by matplotlib (extra `plots`)."""

from tritonchaos.plotting.picture import Format, draw, require_matplotlib

__all__ = ["Format", "draw", "require_matplotlib"]
