"""Runs several scenarios, and the cells of those that vary, as one set with one exit code and one summary."""

from tritonchaos.running_sets.document import SCHEMA, SET_FILE, set_document
from tritonchaos.running_sets.planning import folder_names, plan
from tritonchaos.running_sets.records import Entry, Planned, SetRun
from tritonchaos.running_sets.reporting import is_set, read_set, report_set
from tritonchaos.running_sets.running import run_set, worst

__all__ = [
    "Entry",
    "Planned",
    "SCHEMA",
    "SET_FILE",
    "SetRun",
    "folder_names",
    "is_set",
    "plan",
    "read_set",
    "report_set",
    "run_set",
    "set_document",
    "worst",
]
