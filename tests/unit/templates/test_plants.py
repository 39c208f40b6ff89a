from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tritonchaos
from tritonchaos import native
from tritonchaos.errors import TemplateError
from tritonchaos.templates import find_template
from tritonchaos.templates.plants import CODES, PLACES, WHATS, WHENS, read_plants

PLANTED = Path(tritonchaos.__file__).parent / "planted"
# A value that the field may have, for a plant that is kept at an instance's initialisation.
VALUES: dict[str, Any] = {
    "at": "instance_initialize",
    "when": "failed",
    "every": 3,
    "after": 10,
    "cap": 5,
    "probability": 0.25,
    "seed": 7,
    "bytes": 4096,
    "count": 2,
    "gpu": 1,
    "release_every": 4,
    "held": False,
    "ms": 250,
    "status": 3,
    "code": "not_found",
    "text": 'say "no"\n',
    "until_file": "/tmp/go",
}
ANSWERS = {"wrong_output", "wrong_size", "respond_twice", "never_respond"}
GOOD = [
    *({"what": what, **{name: VALUES[name] for name in fields}} for what, fields in WHATS.items()),
    *({"what": "fail", "at": place} for place in PLACES if place != "backend_initialize"),
    *({"what": "fail", "code": code} for code in CODES),
    *({"what": "abort", "when": when} for when in WHENS),
    {"what": "fds", **{name: VALUES[name] for name in ("at", "when", "every", "after", "cap", "probability", "seed")}},
    {"what": "host_bytes", "bytes": 1, "held": True, "at": "before_validation"},
    {"what": "spin"},
    {"what": "hang", "at": "execute"},
]
WRONG = [
    ({}, "field what"),
    ("fds", "field what"),
    ({"what": "fd"}, "did you mean 'fds'"),
    ({"what": ["fds"]}, "found \\['fds'\\]"),
    ({"what": "fds", "bytes": 5}, "fds has no field 'bytes'"),
    ({"what": "fds", "cuont": 5}, "did you mean 'count'"),
    ({"what": "host_bytes"}, "host_bytes needs the field bytes"),
    ({"what": "host_bytes", "bytes": 0}, r"plant\[0\].bytes: found 0"),
    ({"what": "sleep"}, "sleep needs the field ms"),
    ({"what": "exit"}, "exit needs the field status"),
    ({"what": "exit", "status": 256}, "to 255"),
    ({"what": "fds", "every": 0}, "whole number from 1"),
    ({"what": "fds", "cap": -1}, "whole number from 0"),
    ({"what": "fds", "count": 1.5}, "found 1.5"),
    ({"what": "fds", "probability": 0}, "above 0"),
    ({"what": "fds", "probability": 1.1}, "at most 1"),
    ({"what": "fds", "held": "yes"}, "true or false"),
    ({"what": "fds", "held": True, "at": "execute"}, "held: expected an instance's initialisation"),
    ({"what": "fds", "held": True, "release_every": 2}, "either it or release_every"),
    ({"what": "fds", "when": "failed", "at": "execute"}, "no load has failed or succeeded yet"),
    ({"what": "fds", "at": "instance"}, "found 'instance'"),
    ({"what": "wrong_output", "at": "model_finalize"}, "expected execute"),
    ({"what": "fail", "code": "bad"}, "found 'bad'"),
    ({"what": "fail", "text": 5}, "expected a text"),
]


@pytest.mark.parametrize("plant", GOOD, ids=json.dumps)
def test_a_good_plant_is_read_as_it_is(plant: dict[str, Any]) -> None:
    plant = without_conflict(plant)
    assert read_plants([plant]) == [plant]


def test_sizes_are_bytes_in_the_end() -> None:
    assert read_plants([{"what": "host_bytes", "bytes": "1.5MiB"}]) == [{"what": "host_bytes", "bytes": 1572864}]


@pytest.mark.parametrize(("plant", "complaint"), WRONG, ids=str)
def test_a_wrong_plant_is_refused(plant: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_plants([plant])


def test_the_number_of_the_wrong_one_is_said() -> None:
    with pytest.raises(ValueError, match=r"plant\[1\]\.what: found 'x'"):
        read_plants([{"what": "fds"}, {"what": "x"}])


@pytest.mark.parametrize("value", [{"what": "fds"}, "fds", None, 3])
def test_it_is_a_list(value: Any) -> None:
    with pytest.raises(ValueError, match="expected a list such as"):
        read_plants(value)


def test_at_backend_initialize_the_other_way_is_named() -> None:
    with pytest.raises(ValueError, match="TRITONCHAOS_PLANT"):
        read_plants([{"what": "fds", "at": "backend_initialize"}])


def test_a_scenario_names_the_parameter_and_the_plant() -> None:
    with pytest.raises(TemplateError, match=r"parameter 'plant': plant\[0\].what: found 'fd'"):
        find_template("identity").serve("m", {"plant": [{"what": "fd"}]}, "planted")


def test_python_has_no_plants() -> None:
    with pytest.raises(TemplateError, match="'plant' has no effect"):
        find_template("identity").serve("m", {"plant": [{"what": "fds"}]}, "python")


# --- the reader in C agrees ------------------------------------------------------------------------

PROBE = """
#include <string.h>
#include "plant.h"
#include "tally.h"
struct tally *tally_for(const char *key, uint64_t seed) { (void)seed; return (struct tally *)key; }
const char *read_error(const char *text)
{
    static struct message why;
    struct plants plants = {0};
    message_clear(&why);
    bool is_read = plants_read(&plants, "m", text, &why);
    plants_free(&plants);
    return is_read ? "" : why.text;
}
"""


@pytest.fixture(scope="module")
def c_error(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    if why := native.missing_compiler():
        pytest.skip(why)
    source = tmp_path_factory.mktemp("c") / "probe.c"
    source.write_text(PROBE)
    sources = [source, *(PLANTED / name for name in ("plant_read.c", "json.c", "message.c"))]
    library = ctypes.CDLL(str(native.compile_shared("plant_probe", sources, [f"-I{PLANTED}"])))
    library.read_error.restype = ctypes.c_char_p
    return lambda text: library.read_error(text.encode()).decode()


def test_c_reads_what_python_reads(c_error: Callable[[str], str]) -> None:
    for plant in GOOD:
        assert c_error(json.dumps([without_conflict(plant)])) == "", plant
    assert c_error("[]") == ""
    assert c_error('[{"what": "fds", "at": "backend_initialize"}]') == ""


def test_c_refuses_what_python_refuses(c_error: Callable[[str], str]) -> None:
    for plant, _ in WRONG:
        assert c_error(json.dumps([{"what": "fds"}, plant])).startswith("planted: plant[1]"), plant
    for text in ("", "{}", "[", "[1", '[{"what": "fds"}] x', '[{"what": "fds", "count": 99999999999999999999}]'):
        assert c_error(text).startswith("planted: "), text


def without_conflict(plant: dict[str, Any]) -> dict[str, Any]:
    """Drop what a field does not go with, where all fields of a kind are given."""
    return {name: value for name, value in plant.items() if not (name == "held" and value is False)}
