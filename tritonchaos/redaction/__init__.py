"""Takes out of texts what a stranger must not see: secrets, people, machines, addresses; pure."""

from tritonchaos.redaction.redactor import Redactor, Taken

__all__ = ["Redactor", "Taken"]
