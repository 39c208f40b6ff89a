"""References to images as people write them."""

from __future__ import annotations

import pytest

from tritonchaos.containers.images import parse_reference
from tritonchaos.errors import UsageError

DIGEST = "sha256:" + "5" * 64


@pytest.mark.parametrize(
    ("text", "name", "tag", "digest"),
    [
        ("tritonserver", "tritonserver", "latest", ""),
        ("nvcr.io/nvidia/tritonserver:26.07-py3", "nvcr.io/nvidia/tritonserver", "26.07-py3", ""),
        (f"nvcr.io/nvidia/tritonserver:26.07-py3@{DIGEST}", "nvcr.io/nvidia/tritonserver", "26.07-py3", DIGEST),
        (f"localhost:5000/a/b@{DIGEST}", "localhost:5000/a/b", "", DIGEST),
        ("localhost:5000/a", "localhost:5000/a", "latest", ""),
    ],
)
def test_name_tag_and_digest(text: str, name: str, tag: str, digest: str):
    reference = parse_reference(text)
    assert (reference.name, reference.tag, reference.digest) == (name, tag, digest)
    assert parse_reference(str(reference)) == reference
    assert reference.pinned == (f"{name}@{digest}" if digest else f"{name}:{tag}")


@pytest.mark.parametrize("text", ["", "A:B:c", "a@sha256:12", f"a@{DIGEST}0", "a b", "-a", "a:", "../a", "a\n"])
def test_what_is_no_image_is_refused(text: str):
    with pytest.raises(UsageError, match="expected NAME"):
        parse_reference(text)
