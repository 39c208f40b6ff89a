"""The template identity on a real tritonserver: loads, refusals in TensorRT's words, planted defects, inference."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.local_server import LocalServer, start_local_server
from tritonchaos import native
from tritonchaos.templates import ServedModel, find_template
from tritonchaos.templates.tensors import DATATYPES
from tritonchaos.units import MIB

pytestmark = pytest.mark.server

DATATYPE_REFUSAL = "unexpected datatype TYPE_FP32 for inference output 'OUTPUT', expecting TYPE_INT32"


# --- a server of the target `local`, spoken to without our client ----------------------------------


@dataclass
class Server:
    folder: Path
    port: int
    local: LocalServer

    def call(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def load(self, model: str) -> tuple[int, str]:
        status, body, _ = self.call("POST", f"/v2/repository/models/{model}/load")
        return status, json.loads(body)["error"] if body else ""

    def unload(self, model: str) -> None:
        assert self.call("POST", f"/v2/repository/models/{model}/unload")[0] == 200
        deadline = time.monotonic() + 30
        while self.state(model) in {"READY", "LOADING", "UNLOADING"}:
            assert time.monotonic() < deadline, f"{model} is still {self.state(model)}"
            time.sleep(0.002)

    def state(self, model: str) -> str:
        index = json.loads(self.call("POST", "/v2/repository/index")[1])
        return next((entry.get("state", "") for entry in index if entry["name"] == model), "")

    def infer(self, served: ServedModel, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        import tritonclient.http as triton

        tensors = []
        for tensor in served.inputs:
            value = triton.InferInput(tensor.name, list(inputs[tensor.name].shape), tensor.datatype)
            value.set_data_from_numpy(inputs[tensor.name], binary_data=True)
            tensors.append(value)
        wanted = [triton.InferRequestedOutput(tensor.name, binary_data=True) for tensor in served.outputs]
        body, header_length = triton.InferenceServerClient.generate_request_body(tensors, outputs=wanted)
        headers = {} if header_length is None else {"Inference-Header-Content-Length": str(header_length)}
        status, answer, answered = self.call("POST", f"/v2/models/{served.name}/infer", body, headers)
        assert status == 200, answer[:500]
        length = answered.get("Inference-Header-Content-Length")
        result = triton.InferenceServerClient.parse_response_body(answer, header_length=length and int(length))
        return {tensor.name: result.as_numpy(tensor.name) for tensor in served.outputs}

    def put(self, served: ServedModel) -> None:
        folder = self.folder / "repository" / served.name
        shutil.rmtree(folder, ignore_errors=True)
        for name, content in served.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.read_bytes())

    def edit(self, served: ServedModel, old: str, new: str) -> None:
        """Replace the last occurrence in config.pbtxt, which is the output's."""
        config = self.folder / "repository" / served.name / "config.pbtxt"
        before, found, after = config.read_text().rpartition(old)
        assert found
        config.write_text(before + new + after)

    def private_bytes(self) -> int:
        rollup = Path(f"/proc/{self.local.pid}/smaps_rollup").read_text()
        return sum(int(kib) * 1024 for kib in re.findall(r"^Private_Dirty:\s+(\d+) kB", rollup, re.MULTILINE))

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    why = native.missing_compiler()
    planted = None if why else find_template("identity").serve("any", {}, "planted").backends["planted"]
    folder = tmp_path_factory.mktemp("triton")
    backends = {} if planted is None else {"planted": planted}
    local = start_local_server(folder, backends=backends, flags={"disable-auto-complete-config": True})
    try:
        yield Server(folder, urlsplit(local.running.url).port or 0, local)
    finally:
        local.stop()


@pytest.fixture(params=["planted", "python"])
def variant(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name == "planted" and (why := native.missing_compiler()):
        pytest.skip(why)
    return name


@pytest.fixture
def planted() -> str:
    if why := native.missing_compiler():
        pytest.skip(why)
    return "planted"


def serve(server: Server, variant: str, name: str, **parameters: object) -> ServedModel:
    served = find_template("identity").serve(name, parameters, variant)
    server.put(served)
    return served


# --- loads that must be refused --------------------------------------------------------------------


def test_a_wrong_output_datatype_is_refused_in_the_words_of_the_tensorrt_backend(server: Server, variant: str) -> None:
    served = serve(server, variant, f"datatype_{variant}")
    assert server.load(served.name) == (200, "")
    server.unload(served.name)
    server.edit(served, "TYPE_FP32", "TYPE_INT32")
    status, error = server.load(served.name)
    assert status == 400
    assert f"{DATATYPE_REFUSAL} for {served.name}_0" in error
    assert server.state(served.name) == "UNAVAILABLE"
    server.unload(served.name)
    server.put(served)
    assert server.load(served.name) == (200, "")
    assert server.state(served.name) == "READY"
    server.unload(served.name)


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        (
            "dims: [16]",
            "dims: [8]",
            "tensor 'OUTPUT': the model expects 1 dimensions (shape [16]) but the model configuration specifies "
            "1 dimensions (shape [8])",
        ),
        (
            "dims: [16]",
            "dims: [2, 8]",
            "tensor 'OUTPUT': the model expects 1 dimensions (shape [16]) but the model configuration specifies "
            "2 dimensions (shape [2,8])",
        ),
        ('"OUTPUT"', '"RESULT"', "unexpected inference output 'RESULT', allowed outputs are: OUTPUT"),
        ('"INPUT"', '"IMAGE"', "unexpected inference input 'IMAGE', allowed inputs are: INPUT"),
        (
            "max_batch_size: 0",
            "max_batch_size: 4",
            "tensor 'INPUT': the model expects 1 dimensions (shape [16]) but the model configuration specifies 2 "
            "dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, "
            "making complete shape [-1,16])",
        ),
    ],
)
def test_a_config_that_does_not_fit_the_engine_is_refused(
    server: Server, variant: str, old: str, new: str, refusal: str
) -> None:
    served = serve(server, variant, f"fit_{variant}_{abs(hash((old, new)))}")
    server.edit(served, old, new)
    status, error = server.load(served.name)
    assert (status, refusal in error) == (400, True), error
    server.unload(served.name)


def test_a_larger_max_batch_size_than_the_engines_is_refused(server: Server, variant: str) -> None:
    served = serve(server, variant, f"batch_{variant}", max_batch_size=4)
    server.edit(served, "max_batch_size: 4", "max_batch_size: 8")
    status, error = server.load(served.name)
    assert (status, "unexpected configuration maximum batch size 8" in error) == (400, True), error
    server.unload(served.name)


def test_a_missing_or_broken_engine_is_refused(server: Server, variant: str) -> None:
    served = serve(server, variant, f"engine_{variant}")
    engine = server.folder / "repository" / served.name / "1" / "engine.json"
    engine.write_text("{")
    status, error = server.load(served.name)
    assert (status, "unable to load engine" in error) == (400, True), error
    engine.unlink()
    status, error = server.load(served.name)
    assert (status, "unable to find" in error and "engine.json" in error) == (400, True), error
    server.unload(served.name)


# --- inference --------------------------------------------------------------------------------------


@pytest.mark.parametrize("datatype", DATATYPES)
def test_planted_gives_back_every_datatype(server: Server, planted: str, datatype: str) -> None:
    served = serve(server, planted, f"identity_{datatype}", datatype=datatype, dims=[3, -1])
    check_identity(server, served)


@pytest.mark.parametrize("datatype", ["FP32", "INT8", "UINT64", "BOOL", "BF16", "FP16", "BYTES"])
def test_python_gives_back_datatypes(server: Server, datatype: str) -> None:
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        pytest.skip("the python stub of 2.51 needs numpy < 2")
    served = serve(server, "python", f"python_{datatype}", datatype=datatype, dims=[3, -1])
    check_identity(server, served)


def check_identity(server: Server, served: ServedModel) -> None:
    assert server.load(served.name) == (200, "")
    for seed in range(3):
        inputs = served.make_inputs(Random(seed))
        outputs = server.infer(served, inputs)
        for name, expected in served.expected(inputs).items():
            assert outputs[name].dtype == expected.dtype
            assert np.array_equal(outputs[name], expected)
    server.unload(served.name)


def test_batches_are_served_and_counted(server: Server, variant: str) -> None:
    served = serve(server, variant, f"batches_{variant}", max_batch_size=8, dims=[2, 3])
    assert served.make_inputs(Random(3))["INPUT"].shape[1:] == (2, 3)
    check_identity(server, served)


def test_dynamic_batching_hands_several_requests_to_one_execution(server: Server, planted: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    served = serve(server, planted, "dynamic", max_batch_size=8, dims=[64])
    config = server.folder / "repository" / served.name / "config.pbtxt"
    config.write_text(config.read_text() + "dynamic_batching { max_queue_delay_microseconds: 20000 }\n")
    assert server.load(served.name) == (200, "")
    requests = [served.make_inputs(Random(seed)) for seed in range(32)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda inputs: server.infer(served, inputs), requests))
    for inputs, outputs in zip(requests, answers, strict=True):
        assert np.array_equal(inputs["INPUT"], outputs["OUTPUT"])
    statistics = json.loads(server.call("GET", f"/v2/models/{served.name}/stats")[1])["model_stats"][0]
    assert statistics["inference_count"] == sum(len(inputs["INPUT"]) for inputs in requests)
    assert statistics["execution_count"] < len(requests)
    server.unload(served.name)


def test_a_request_that_the_engine_cannot_take_gets_an_error(server: Server, variant: str) -> None:
    served = serve(server, variant, f"shape_{variant}", dims=[4])
    config = server.folder / "repository" / served.name / "config.pbtxt"
    config.write_text(config.read_text().replace("dims: [4]", "dims: [-1]"))
    assert server.load(served.name) == (200, "")
    body = {"inputs": [{"name": "INPUT", "datatype": "FP32", "shape": [5], "data": [0, 1, 2, 3, 4]}]}
    status, answer, _ = server.call("POST", f"/v2/models/{served.name}/infer", json.dumps(body).encode())
    assert status >= 400
    assert b"between 4 and 4 but received 5" in answer
    server.unload(served.name)


def test_a_tensor_of_64_mib_comes_back(server: Server, planted: str) -> None:
    served = serve(server, planted, "large", dims=[16777216])
    assert server.load(served.name) == (200, "")
    inputs = served.make_inputs(Random(1))
    assert inputs["INPUT"].nbytes == 64 * MIB
    assert np.array_equal(server.infer(served, inputs)["OUTPUT"], inputs["INPUT"])
    server.unload(served.name)


# --- planted defects ---------------------------------------------------------------------------------


def failed_loads(server: Server, served: ServedModel, count: int) -> int:
    """Fail to load a number of times and return how many private bytes the server grew by."""
    before = server.private_bytes()
    for _ in range(count):
        status, error = server.load(served.name)
        assert (status, DATATYPE_REFUSAL in error) == (400, True), error
        server.unload(served.name)
    return server.private_bytes() - before


def test_failed_loads_retain_what_was_planted(server: Server, planted: str) -> None:
    served = serve(server, planted, "retaining", retain_host_bytes_per_failed_load="1MiB")
    server.edit(served, "TYPE_FP32", "TYPE_INT32")
    failed_loads(server, served, 5)
    assert failed_loads(server, served, 20) == pytest.approx(20 * MIB, rel=0.1)
    assert "planted: retained 1048576 host bytes on purpose (failed load)" in server.log()


def test_small_amounts_are_retained_exactly_too(server: Server, planted: str) -> None:
    served = serve(server, planted, "retaining_little", retain_host_bytes_per_failed_load="16KiB")
    server.edit(served, "TYPE_FP32", "TYPE_INT32")
    failed_loads(server, served, 20)
    assert failed_loads(server, served, 200) == pytest.approx(200 * 16 * 1024, rel=0.1)


def test_good_loads_retain_what_was_planted(server: Server, planted: str) -> None:
    served = serve(server, planted, "retaining_good", retain_host_bytes_per_good_load="1MiB")
    readings = []
    for _ in range(12):
        assert server.load(served.name)[0] == 200
        server.unload(served.name)
        readings.append(server.private_bytes())
    assert readings[-1] - readings[1] == pytest.approx(10 * MIB, rel=0.1)


def test_2000_failed_loads_without_retention_leave_memory_flat(server: Server, planted: str) -> None:
    served = serve(server, planted, "flat")
    server.edit(served, "TYPE_FP32", "TYPE_INT32")
    failed_loads(server, served, 200)
    assert failed_loads(server, served, 2000) < 64 * 1024


def test_the_python_variant_leaves_the_files_that_were_asked_for(server: Server) -> None:
    served = serve(
        server,
        "python",
        "leaving",
        leave_temp_bytes_per_failed_load="1MiB",
        leave_shm_bytes_per_failed_load=4096,
        leave_temp_bytes_per_good_load=10,
    )
    before = set(Path("/dev/shm").glob("tritonchaos_left_*"))
    server.load(served.name)
    server.unload(served.name)
    server.edit(served, "TYPE_FP32", "TYPE_INT32")
    for _ in range(2):
        assert server.load(served.name)[0] == 400
        server.unload(served.name)
    in_shm = set(Path("/dev/shm").glob("tritonchaos_left_*")) - before
    try:
        assert sorted(path.stat().st_size for path in in_shm) == [4096, 4096]
        in_temp = (server.folder / "temp").glob("tritonchaos_left_*")
        assert sorted(path.stat().st_size for path in in_temp) == [10, MIB, MIB]
    finally:
        for path in in_shm:
            path.unlink()
