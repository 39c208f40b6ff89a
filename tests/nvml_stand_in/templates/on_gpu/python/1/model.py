"""Identity that holds device memory in the stand-in's ledger, in the server's name, and leaks some when asked to."""

import json
import os
from pathlib import Path

import triton_python_backend_utils as pb_utils

LEDGER = Path(os.environ["TRITONCHAOS_PLANTED_LEDGER"])


class TritonPythonModel:
    """One model instance."""

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.parameters = {key: int(value["string_value"]) for key, value in config["parameters"].items()}
        self.held = 0
        datatype = config["output"][0]["data_type"]
        if datatype != "TYPE_FP32":
            self.leak()
            raise pb_utils.TritonModelException(
                f"unexpected datatype TYPE_FP32 for inference output 'OUTPUT', expecting {datatype}"
            )
        self.held = self.parameters["model_bytes"]
        self.write("device", self.held)

    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(request, "INPUT") for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", tensor.as_numpy())]) for tensor in tensors]

    def finalize(self):
        self.write("device", -self.held)

    def leak(self):
        if self.parameters["leak_bytes"] and LEDGER.read_text().count('"leak"') < self.parameters["leak_loads"]:
            self.write("device", self.parameters["leak_bytes"], name="leak")

    def write(self, what, count, name="model"):
        # The stub's parent is the server.
        line = {"pid": os.getppid(), "gpu": self.parameters["gpu"], "bytes": count, "what": what, "name": name}
        with LEDGER.open("a") as ledger:
            ledger.write(json.dumps(line) + "\n")
