"""Images come from a registry as `pull` says, and a pin lets no other image pass."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.docker.served_image import ServedImage, served_image
from tritonchaos.containers.engine import Engine, connect, find_engine_address
from tritonchaos.containers.images import Image, Pull, get_image, parse_reference
from tritonchaos.errors import TargetUnavailable

pytestmark = pytest.mark.docker


@pytest.fixture
def asked(engine: str) -> Iterator[Engine]:
    with closing(connect(find_engine_address(os.environ))) as connected:
        yield connected


@pytest.fixture
def served(asked: Engine) -> Iterator[ServedImage]:
    with served_image("lab/server", "1") as image:
        yield image
        for found in asked.api.images(name=image.reference.rpartition(":")[0]):
            asked.api.remove_image(found["Id"], force=True)


def get(asked: Engine, text: str, pull: Pull = "missing") -> tuple[Image, list[str]]:
    """The image, and what the engine said while it fetched."""
    said: list[str] = []
    image = get_image(asked, parse_reference(text), pull, lambda message: said.append(str(message.get("status"))))
    return image, said


def test_a_tag_alone_is_resolved_and_its_digest_recorded(asked: Engine, served: ServedImage) -> None:
    digest = served.put(b"first" * 1000)
    image, said = get(asked, served.reference)
    assert image.digest == digest
    assert image.exactly == f"{served.reference.rpartition(':')[0]}@{digest}"
    assert "Pull complete" in said
    assert get(asked, served.reference)[1] == []  # it is here: nothing is fetched


def test_always_fetches_what_the_tag_names_now(asked: Engine, served: ServedImage) -> None:
    served.put(b"first")
    get(asked, served.reference)
    second = served.put(b"second")
    assert get(asked, served.reference)[0].digest != second
    assert get(asked, served.reference, "always")[0].digest == second


def test_a_pin_that_does_not_match_what_is_here_is_refused_naming_both(asked: Engine, served: ServedImage) -> None:
    first = served.put(b"first")
    get(asked, served.reference)
    second = served.put(b"second")
    with pytest.raises(TargetUnavailable) as refused:
        get(asked, f"{served.reference}@{second}")
    assert first in refused.value.message
    assert second in refused.value.message
    assert get(asked, f"{served.reference}@{second}", "always")[0].digest == second


def test_a_pinned_image_is_fetched_by_its_digest(asked: Engine, served: ServedImage) -> None:
    first = served.put(b"first")
    served.put(b"second")  # the tag has moved on
    image, _ = get(asked, f"{served.reference}@{first}")
    assert image.digest == first
    assert get(asked, f"{served.reference}@{first}", "never")[0].id == image.id


def test_never_fetches_nothing(asked: Engine, served: ServedImage) -> None:
    served.put(b"first")
    with pytest.raises(TargetUnavailable, match="is not on this machine, and pull is never"):
        get(asked, served.reference, "never")


def test_what_the_registry_does_not_have_is_told(asked: Engine, served: ServedImage) -> None:
    with pytest.raises(TargetUnavailable, match="cannot be fetched"):
        get(asked, served.reference.replace(":1", ":2"))
