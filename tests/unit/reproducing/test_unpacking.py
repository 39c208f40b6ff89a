"""Bundles that must be refused before anything of them is run."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from tritonchaos.errors import UsageError
from tritonchaos.reproducing.unpacking import opened

PROGRAM = b"print('REPRODUCED')\n"


def manifest(contents: dict[str, bytes], **changes) -> bytes:
    listed = {name: hashlib.sha256(body).hexdigest() for name, body in contents.items()}
    whole = {"schema": "tritonchaos.bundle", "format_version": 1, "program": "repro.py", "files": listed} | changes
    return json.dumps(whole).encode()


def good_files() -> dict[str, bytes]:
    files = {"repro.py": PROGRAM, "models/a/config.pbtxt": b"x"}
    return files | {"manifest.json": manifest(files)}


def pack(path: Path, files: dict[str, bytes], *extra: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, body in files.items():
            member = tarfile.TarInfo(f"bundle/{name}")
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
        for member in extra:
            tar.addfile(member)
    return path


def lay_out(folder: Path, files: dict[str, bytes]) -> Path:
    for name, body in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
    return folder


def refusal(place: Path) -> str:
    with pytest.raises(UsageError) as caught, opened(place):
        pass
    return caught.value.message


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, target, size
    return made


def test_a_good_bundle_is_opened_as_folder_and_as_tar(tmp_path: Path) -> None:
    for place in (pack(tmp_path / "b.tar.gz", good_files()), lay_out(tmp_path / "b", good_files())):
        with opened(place) as (folder, told):
            assert (folder / told["program"]).read_bytes() == PROGRAM


def test_what_was_unpacked_is_removed(tmp_path: Path) -> None:
    with opened(pack(tmp_path / "b.tar.gz", good_files())) as (folder, _):
        pass
    assert not folder.exists()


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (member("bundle/../../evil.py"), "leads out"),
        (member("../evil.py"), "leads out"),
        (member("/tmp/evil.py"), "absolute"),
        (member("bundle/link", tarfile.SYMTYPE, "/etc/passwd"), "link"),
        (member("bundle/link", tarfile.SYMTYPE, "models"), "link"),
        (member("bundle/hard", tarfile.LNKTYPE, "bundle/repro.py"), "link"),
        (member("bundle/pipe", tarfile.FIFOTYPE), "neither a file nor a folder"),
        (member("bundle/device", tarfile.CHRTYPE), "neither a file nor a folder"),
        (member("bundle/./repro.py"), "there twice"),
        (member("bundle/bomb", size=1 << 30), "more than 200 times larger, at least 1 GiB"),
        (member("bundle/bomb", size=1 << 40), "larger than 64 GiB"),
    ],
    ids=[
        *(
            "dots-inside",
            "dots",
            "absolute",
            "symlink",
            "inner-symlink",
            "hard-link",
            "fifo",
            "device",
            "twice",
            "bomb",
        ),
        "huge",
    ],
)
def test_members_that_lead_out_are_refused_and_nothing_is_written(tmp_path: Path, bad, told: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    assert told in refusal(pack(inner / "b.tar.gz", good_files(), bad))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["b.tar.gz", "inner"]


def test_a_folder_with_a_link_is_refused(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "b", good_files())
    (folder / "models" / "etc").symlink_to("/etc")
    assert "is a link" in refusal(folder)


def test_a_file_that_the_manifest_does_not_name_is_refused_unless_it_may_be_added(tmp_path: Path) -> None:
    files = {"repro.py": PROGRAM}
    told = manifest(files, may_be_added=["models/a/1/weights.bin"])
    folder = lay_out(tmp_path / "b", files | {"manifest.json": told, "models/a/1/weights.bin": b"mine"})
    with opened(folder):
        pass
    lay_out(folder, {"models/a/1/model.py": b"evil"})
    assert "found models/a/1/model.py, which its manifest.json does not name" in refusal(folder)


def test_a_manifest_that_names_files_outside_is_refused(tmp_path: Path) -> None:
    files = {"repro.py": PROGRAM}
    listed = {"repro.py": hashlib.sha256(PROGRAM).hexdigest(), "../evil": "0"}
    assert "leads out" in refusal(lay_out(tmp_path / "b", files | {"manifest.json": manifest(files, files=listed)}))


def test_a_damaged_tar_is_refused(tmp_path: Path) -> None:
    whole = pack(tmp_path / "b.tar.gz", good_files())
    whole.write_bytes(whole.read_bytes()[:-40])
    assert "damaged" in refusal(whole)
    whole.write_bytes(b"not a tar")
    assert "damaged" in refusal(whole)


def test_a_missing_or_damaged_manifest_is_refused(tmp_path: Path) -> None:
    assert "found no manifest.json" in refusal(lay_out(tmp_path / "a", {"repro.py": PROGRAM}))
    assert "damaged" in refusal(lay_out(tmp_path / "b", {"repro.py": PROGRAM, "manifest.json": b"{"}))
    assert "damaged" in refusal(lay_out(tmp_path / "c", {"repro.py": PROGRAM, "manifest.json": b'{"files": 3}'}))


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    files = {"repro.py": PROGRAM}
    place = lay_out(tmp_path / "b", files | {"manifest.json": manifest(files, format_version=99)})
    assert "newer tritonchaos; found format 99" in refusal(place)


def test_a_changed_or_missing_file_is_refused(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "b", good_files())
    (folder / "repro.py").write_text("import evil")
    assert "sha256 differs" in refusal(folder)
    (folder / "repro.py").unlink()
    assert "found no repro.py" in refusal(folder)


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    assert "there is no bundle" in refusal(tmp_path / "nothing.tar.gz")
