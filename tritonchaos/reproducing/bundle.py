"""Writes the bundle of a finding: a folder, and the same as a .tar.gz whose bytes depend on the run alone."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import secrets
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tritonchaos import __version__
from tritonchaos.errors import StoreError
from tritonchaos.observations.server_log import ServerLog
from tritonchaos.redaction import Redactor
from tritonchaos.reproducing.assembling import assemble
from tritonchaos.reproducing.docker_run import docker_line, image_sentence
from tritonchaos.reproducing.issue import DIFFERENT, issue_text, versions
from tritonchaos.reproducing.model_files import ModelFiles, Wishes
from tritonchaos.reproducing.observed import expected_sentence, observed_rows
from tritonchaos.reproducing.program.server import CC_LINE
from tritonchaos.reproducing.recipe import FORMAT_VERSION, make_recipe, secret_values
from tritonchaos.reproducing.recorded import Recorded, choose_finding, read_recorded
from tritonchaos.reproducing.shell_script import shell_script
from tritonchaos.units import MIB
from tritonchaos.verdict import Finding

MANIFEST: Final = "manifest.json"
PROGRAM: Final = "repro.py"
SCRIPT: Final = "repro.sh"
_LOG_START_BYTES: Final = 1 * MIB
_LOG_END_BYTES: Final = 3 * MIB
_PLANTED: Final = Path(__file__).resolve().parents[1] / "planted"


@dataclass(frozen=True, slots=True)
class BundleOptions:
    """What is wanted in a bundle.

    Attributes:
        finding: Id of the finding, or its beginning; None: the worst.
        include_weights: Model files other than texts too.
        stand_in: A template with the same inputs and outputs in place of the user's own models.
    """

    finding: str | None = None
    include_weights: bool = False
    stand_in: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A bundle that was written."""

    folder: Path
    archive: Path
    finding: Finding
    taken: tuple[str, ...]


def write_bundle(run: Path, out: Path, options: BundleOptions) -> Written:
    """Write the bundle of one finding of a run into `out` and `out`.tar.gz.

    Raises:
        StoreError: The run cannot be read, or something stands where the bundle is to be written.
        UsageError: The run has no such finding, or it is one that a bundle cannot show.
    """
    archive = out.with_name(out.name + ".tar.gz")
    _refuse_existing(out, archive)
    recorded = read_recorded(run)
    finding = choose_finding(recorded, options.finding)
    redactor = _redactor(recorded)
    files = _contents(recorded, finding, redactor, Wishes(options.include_weights, options.stand_in))
    try:
        _write_folder(out, files)
        archive.write_bytes(_packed(out.name, files))
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}", hint="choose another place with --out") from error
    return Written(out, archive, finding, tuple(f"{t.count} x {t.kind} in {t.where}" for t in redactor.taken))


def _refuse_existing(out: Path, archive: Path) -> None:
    for place in (out, archive):
        if place.exists() or place.is_symlink():
            raise StoreError(f"{place} exists already", hint="name another place with --out, or remove it")
    if not out.name or out.name in (".", ".."):
        raise StoreError(f"found the output folder {str(out)!r}, expected a new folder", hint="such as --out my-bundle")


def _redactor(recorded: Recorded) -> Redactor:
    history = recorded.finished.history
    known = frozenset(value for name, value in history.facts.target.items() if "version" in name)
    models = frozenset(edit.model for edit in recorded.edits)
    redactor = Redactor(values=secret_values(recorded), versions=known, names=models)
    redactor.learn(_texts(recorded))
    return redactor


def _texts(recorded: Recorded) -> Iterator[str]:
    """Every text of the run that may give a name away."""
    history = recorded.finished.history
    yield from history.facts.target.values()
    yield json.dumps(recorded.scenario, default=str)
    yield _shortened(history.log).decode("utf-8", "replace")
    for file in sorted((recorded.folder / "repository").glob("*/*/config.pbtxt")):
        yield file.read_text(encoding="utf-8", errors="replace")


# --- what is in it -------------------------------------------------------------------------------


def _contents(recorded: Recorded, finding: Finding, redactor: Redactor, wishes: Wishes) -> dict[str, bytes]:
    """Path in the bundle -> content; a path that ends in "/" is an empty folder."""
    recipe, models, parts = make_recipe(recorded, finding, redactor, wishes)
    texts = {
        PROGRAM: assemble(_head(recorded, recipe), recipe),
        "ISSUE.md": issue_text(recorded, finding, recipe, models, parts),
        "server.log": _shortened(recorded.finished.history.log).decode("utf-8", "replace"),
        "scenario.yaml": (recorded.folder / "scenario.yaml").read_text(encoding="utf-8", errors="replace"),
    }
    plain = {
        "tables.json": {"expected": expected_sentence(recipe), "observed": observed_rows(recorded, recipe, parts)},
        "results.json": recorded.finished.results,
        "versions.json": versions(recorded),
    }
    files = {
        name: redactor.text(text, name).encode("utf-8", "replace") for name, text in texts.items() if name != PROGRAM
    }
    files[PROGRAM] = texts[PROGRAM].encode()
    files |= {name: _json(redactor.plain(value, name)) for name, value in plain.items()}
    files |= {f"models/{path}": body for path, body in models.files.items()}
    files |= {f"models/{path}/": b"" for path in models.empty_folders}
    files |= models.scripts
    script = shell_script(recipe)
    files |= {SCRIPT: script.encode()} if script is not None else {}
    files |= _planted_sources() if recipe["planted"] else {}
    files["README.md"] = _readme(recorded, recipe, models).encode()
    files["REDACTED.md"] = _redacted(redactor, models, wishes).encode()
    files[MANIFEST] = _json(_manifest(finding, files, recipe))
    return dict(sorted(files.items()))


def _shortened(log: ServerLog) -> bytes:
    """Keep the beginning and the end of a long log."""
    if len(log) <= _LOG_START_BYTES + _LOG_END_BYTES:
        return log[:]
    left_out = len(log) - _LOG_START_BYTES - _LOG_END_BYTES
    return b"%s\n... %d bytes are left out ...\n%s" % (log[:_LOG_START_BYTES], left_out, log[-_LOG_END_BYTES:])


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _planted_sources() -> dict[str, bytes]:
    return {f"planted/{path.name}": path.read_bytes() for path in sorted(_PLANTED.glob("*.[ch]"))}


def _head(recorded: Recorded, recipe: Mapping[str, Any]) -> str:
    finding = recipe["finding"]
    lines = [
        f"Reproduces: {finding['kind']}: {finding['title']}",
        "",
        f"    {docker_line(recorded)}",
        "",
        image_sentence(recorded),
        "",
        "Or, with a tritonserver on this machine:",
        "",
        "    python3 repro.py --server /path/to/tritonserver",
        "",
        "Exit code 1: reproduced. 0: not reproduced. 3: cannot tell, and it says why.",
        "Needs Python 3.8 or later and nothing else.",
        "RECIPE says what is done, and what was found in the recorded run; everything below it does that.",
    ]
    return "\n".join(lines) + "\n"


def _readme(recorded: Recorded, recipe: Mapping[str, Any], models: ModelFiles) -> str:
    lines = [f"# {recipe['finding']['kind']}: {recipe['finding']['title']}", ""]
    lines += [image_sentence(recorded), "", "```sh"]
    lines += [docker_line(recorded)]
    lines += ["python3 repro.py --server /path/to/tritonserver    # without Docker", "python3 repro.py --clean-twin"]
    lines += ["```", "", "Exit code 1: reproduced, 0: not reproduced, 3: cannot tell.", ""]
    lines += ["- `repro.py`: one program, Python's standard library only", "- `models/`: the models in each state"]
    lines += ["- `repro.sh`: the same calls with curl; it judges nothing"] if shell_script(recipe) is not None else []
    lines += ["- `ISSUE.md`: the report, ready to paste", "- `tables.json`: what was expected and observed"]
    lines += ["- `server.log`, `scenario.yaml`, `results.json`, `versions.json`: of the recorded run"]
    lines += ["- `REDACTED.md`: what was taken out", f"- `{MANIFEST}`: every file with its sha256"]
    if recipe["planted"]:
        lines += ["- `planted/`: C sources of the backend, which repro.py compiles with", "", f"      {CC_LINE}"]
    if recipe["differences"]:
        lines += ["", "The recorded run did otherwise:", ""]
        lines += [*(f"- {line}" for line in recipe["differences"]), "", DIFFERENT]
    if models.stand_ins:
        lines += [
            "",
            f"A stand-in is served in place of {', '.join(models.stand_ins)}: run this before you hand it on.",
        ]
    return "\n".join(lines) + "\n"


def _redacted(redactor: Redactor, models: ModelFiles, wishes: Wishes) -> str:
    lines = ["# What was taken out of this bundle", ""]
    lines += [f"- {taken.where}: {taken.count} x {taken.kind}" for taken in redactor.taken] or ["- nothing was found"]
    lines += [
        "",
        "Nothing outside the run directory was read.",
        "Patterns find what they know: look the bundle through before you publish it.",
    ]
    if models.missing:
        lines += ["", "Left out (with `--include-weights` they would be here); repro.py asks for them:", ""]
        lines += [f"- models/{m['path']}, {m['bytes']} bytes, sha256 {m['sha256']}" for m in models.missing]
    if wishes.include_weights:
        lines += ["", "Model files are here as they are, because `--include-weights` was given."]
    return "\n".join(lines) + "\n"


def _manifest(finding: Finding, files: Mapping[str, bytes], recipe: Mapping[str, Any]) -> dict[str, Any]:
    added = [f"models/{missing['path']}" for missing in recipe["missing"]]
    added += [f"models/{order['state']}/{order['model']}/{order['file']}" for order in recipe["build"]]
    added += ["planted/libtriton_planted.so"] if recipe["planted"] else []
    listed = {path: hashlib.sha256(body).hexdigest() for path, body in sorted(files.items()) if not path.endswith("/")}
    return {
        "schema": "tritonchaos.bundle",
        "format_version": FORMAT_VERSION,
        "tritonchaos_version": __version__,
        "program": PROGRAM,
        "finding": {"id": finding.id, "kind": finding.kind},
        "files": listed,
        "may_be_added": sorted(added),
    }


# --- writing -------------------------------------------------------------------------------------


def _write_folder(out: Path, files: Mapping[str, bytes]) -> None:
    """Write beside the place and rename, so that nobody takes half a bundle for a whole one."""
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.parent / f".{out.name}-{secrets.token_hex(4)}"
    try:
        for path, body in files.items():
            place = aside / path
            (place if path.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
            if not path.endswith("/"):
                place.write_bytes(body)
        for name in (PROGRAM, SCRIPT):
            if (aside / name).exists():
                (aside / name).chmod(0o755)
        aside.rename(out)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _packed(name: str, files: Mapping[str, bytes]) -> bytes:
    """The bundle as .tar.gz: names in order, no times, nobody's user."""
    tar_bytes = io.BytesIO()
    with tarfile.open(fileobj=tar_bytes, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, body in files.items():
            member = tarfile.TarInfo(f"{name}/{path}".rstrip("/"))
            member.type = tarfile.DIRTYPE if path.endswith("/") else tarfile.REGTYPE
            member.mode = 0o755 if path.endswith("/") or path in (PROGRAM, SCRIPT) else 0o644
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as squeezed:
        squeezed.write(tar_bytes.getvalue())
    return packed.getvalue()
