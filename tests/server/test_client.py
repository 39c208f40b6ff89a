"""The client against a real tritonserver."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.local_server import IDENTITY, LocalServer, Output, start_local_server, wait_for, write_python_model
from tritonchaos.client import parse_index, wait_until_gone
from tritonchaos.expectation import error_text
from tritonchaos.observations import Answer, ModelState, NoAnswer, Reply

pytestmark = pytest.mark.server

CONFIG = {
    "backend": "python",
    "input": [{"name": "INPUT", "data_type": "TYPE_FP32", "dims": [-1]}],
    "output": [{"name": "OUTPUT", "data_type": "TYPE_FP32", "dims": [-1]}],
}


def answer(reply: Reply) -> Answer:
    assert isinstance(reply, Answer), reply
    return reply


def document(reply: Reply) -> Any:
    assert answer(reply).status == 200, reply
    return json.loads(answer(reply).body)


def entry(server: LocalServer, model: str) -> ModelState | None:
    index = parse_index(server.client.index(10))
    assert index is not None
    return next((state for state in index if state.name == model), None)


def test_the_server_tells_of_itself(shared_server: LocalServer) -> None:
    client = shared_server.client
    assert answer(client.live(10)).status == 200
    assert answer(client.ready(10)).status == 200
    assert document(client.server_metadata(10))["version"] == shared_server.target.describe()["triton_version"]


def test_a_name_is_asked_for_as_it_is_written(shared_server: LocalServer) -> None:
    """Triton decodes no %20: a letter that were sent as one would lead to another model, or to none."""
    client, name = shared_server.client, "modèle+v2@a#1%20"
    write_python_model(shared_server.launch.repository, name, "no Python")
    reply = answer(client.load(name, 30))
    assert f"load failed for model '{name}'" in (error_text(reply) or ""), "a refusal of the model, not of its name"
    assert entry(shared_server, name) is not None
    assert answer(client.unload(name, 10)).status == 200


def test_live_over_grpc(shared_server: LocalServer) -> None:
    pytest.importorskip("grpc")
    reply = shared_server.client.live_grpc(10)
    assert reply is not None
    assert answer(reply).status == 200


def test_an_unknown_model_is_refused(shared_server: LocalServer) -> None:
    reply = answer(shared_server.client.load("unknown", 10))
    assert (reply.status, error_text(reply)) == (500, "failed to load 'unknown', failed to poll from model repository")
    assert answer(shared_server.client.model_ready("unknown", 10)).status == 400
    assert answer(shared_server.client.unload("unknown", 10)).status == 200


def test_a_model_is_loaded_served_and_unloaded(shared_server: LocalServer) -> None:
    client = shared_server.client
    write_python_model(shared_server.launch.repository, "identity")
    assert entry(shared_server, "identity") == ModelState("identity", "", "", "")
    assert answer(client.load("identity", 30)).status == 200
    assert entry(shared_server, "identity") == ModelState("identity", "1", "READY", "")
    assert answer(client.model_ready("identity", 10)).status == 200
    assert answer(client.model_ready("identity", 10, version="2")).status == 400
    assert document(client.metadata("identity", 10, version="1"))["platform"] == "python"
    assert document(client.config("identity", 10))["backend"] == "python"
    tensor = np.arange(5, dtype=np.float32)
    reply, outputs = client.infer("identity", {"INPUT": tensor}, [Output()], 10)
    assert answer(reply).status == 200
    assert outputs is not None
    assert np.array_equal(outputs["OUTPUT"], tensor)
    # The python backend counts an inference after it has answered it.
    assert wait_for(lambda: document(client.statistics("identity", 10))["model_stats"][0]["inference_count"] == 1)
    assert answer(client.unload("identity", 30)).status == 200
    gone = wait_until_gone(client, "identity", 20)
    assert (gone.gone, gone.state, gone.reason) == (True, "UNAVAILABLE", "unloaded")


def test_a_tensor_of_64_mib_comes_back_whole(shared_server: LocalServer) -> None:
    write_python_model(shared_server.launch.repository, "large")
    assert answer(shared_server.client.load("large", 30)).status == 200
    tensor = np.random.default_rng(1).random(1 << 24, dtype=np.float32)
    _, outputs = shared_server.client.infer("large", {"INPUT": tensor}, [Output()], 60)
    assert outputs is not None
    assert np.array_equal(outputs["OUTPUT"], tensor)
    assert not outputs["OUTPUT"].flags.owndata


def test_texts_are_encoded_and_decoded(shared_server: LocalServer) -> None:
    write_python_model(shared_server.launch.repository, "texts", datatype="STRING")
    assert answer(shared_server.client.load("texts", 30)).status == 200
    tensor = np.array([b"a", b"", "ü".encode()], dtype=np.object_)
    _, outputs = shared_server.client.infer("texts", {"INPUT": tensor}, [], 10)
    assert outputs is not None
    assert outputs["OUTPUT"].tolist() == tensor.tolist()


def test_a_refused_inference_gives_no_tensors(shared_server: LocalServer) -> None:
    reply, outputs = shared_server.client.infer("nothing", {"INPUT": np.zeros(1, np.float32)}, [Output()], 10)
    assert answer(reply).status == 404
    assert outputs is None


def test_a_model_of_file_content_is_waited_for_by_its_ready_endpoint(shared_server: LocalServer) -> None:
    client = shared_server.client
    loaded = client.load("from_content", 30, config=json.dumps(CONFIG), files={"1/model.py": IDENTITY.encode()})
    assert answer(loaded).status == 200
    assert entry(shared_server, "from_content") is None
    held = wait_until_gone(client, "from_content", 0.2)
    assert (held.gone, held.state) == (False, "READY")
    assert answer(client.unload("from_content", 30)).status == 200
    assert wait_until_gone(client, "from_content", 20).gone


def test_a_malformed_request_is_answered(shared_server: LocalServer) -> None:
    path = "/v2/repository/models/m/load"
    assert answer(shared_server.client.request("POST", path, 10, body=b"{")).status == 500
    assert answer(shared_server.client.request("GET", "/v3", 10)).status == 404


def test_nothing_is_monkey_patched_by_an_inference(shared_server: LocalServer) -> None:
    code = (
        "import socket, threading; before = socket.socket, threading.Lock;"
        "import tritonclient.http, gevent.monkey;"
        "assert (socket.socket, threading.Lock) == before and not gevent.monkey.saved"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def hanging_server(tmp_path: Path) -> Iterator[LocalServer]:
    """A server that will have to be killed, and is given little time to end by itself."""
    server = start_local_server(tmp_path, flags={"exit-timeout-secs": 1})
    yield server
    server.stop()


def test_a_load_that_hangs_ends_at_its_deadline(hanging_server: LocalServer) -> None:
    # On 2.51 the load of a python model without model.py is never answered, and the server cannot stop any more.
    write_python_model(hanging_server.launch.repository, "hung", code=None)
    reply = hanging_server.client.load("hung", 3)
    if isinstance(reply, Answer):
        pytest.skip(f"this tritonserver answers: {reply}")
    assert reply.reason == "deadline"
    state = entry(hanging_server, "hung")
    assert state is not None
    assert state.state == "LOADING"
    held = wait_until_gone(hanging_server.client, "hung", 0.1)
    assert (held.gone, held.state) == (False, "LOADING")
    assert answer(hanging_server.client.live(10)).status == 200


def test_no_answer_from_a_stopped_server(local_server: LocalServer) -> None:
    local_server.stop()
    reply = local_server.client.live(5)
    assert isinstance(reply, NoAnswer)
    assert reply.reason == "refused"
