"""Give back the input, and the version that answers.

Runs inside Triton's python backend stub, so it imports nothing of tritonchaos.
"""

import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """One model instance."""

    def initialize(self, args):
        """Keep the version that Triton says this is."""
        self.version = int(args["model_version"])

    def execute(self, requests):
        """Answer every request with its own input."""
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        given = pb_utils.get_input_tensor_by_name(request, "INPUT")
        outputs = {
            "OUTPUT": lambda: pb_utils.Tensor("OUTPUT", given.as_numpy()),
            "VERSION": lambda: pb_utils.Tensor("VERSION", numpy.array([self.version], dtype=numpy.int64)),
        }
        wanted = request.requested_output_names()
        return pb_utils.InferenceResponse(output_tensors=[make() for name, make in outputs.items() if name in wanted])
