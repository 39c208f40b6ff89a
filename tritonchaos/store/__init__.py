"""The run directory: what a run has seen, on disk while it runs, and read back without a server."""

from tritonchaos.store.exporting import export
from tritonchaos.store.folders import new_run_folder, point_latest, prepare_folder
from tritonchaos.store.locking import running_pid
from tritonchaos.store.plain import from_plain, to_plain
from tritonchaos.store.reading import open_history, read_facts, read_remembered
from tritonchaos.store.sets import SET_FILE, SET_SCHEMA, is_set, read_set
from tritonchaos.store.table_files import FORMATS as EXPORT_FORMATS
from tritonchaos.store.writing import RunStore

__all__ = [
    "EXPORT_FORMATS",
    "RunStore",
    "SET_FILE",
    "SET_SCHEMA",
    "export",
    "from_plain",
    "is_set",
    "new_run_folder",
    "open_history",
    "point_latest",
    "prepare_folder",
    "read_facts",
    "read_remembered",
    "read_set",
    "running_pid",
    "to_plain",
]
