"""By which way requests reach a server in a container: the shortest that leads to it, unless it is to be cut off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.docker.engine_state import unchanged
from tests.local_server import new_launch
from tritonchaos.client import TritonClient
from tritonchaos.errors import TritonChaosBug
from tritonchaos.observations import Answer, NoAnswer
from tritonchaos.targets.docker import DockerTarget

pytestmark = pytest.mark.docker

NONE = "over connections that a relay beside the container made and handed over"
PUBLISH = "over the container's own address"


@pytest.mark.parametrize(("network", "way"), [("none", NONE), ("publish", PUBLISH)])
def test_where_nothing_is_cut_off_requests_go_past_relay_and_proxy(
    tmp_path: Path, cpu_image: str, network: str, way: str
) -> None:
    with unchanged(tmp_path):
        target = DockerTarget(cpu_image, network=network)
        running = target.start(replace(new_launch(tmp_path), may_cut_network=False))
        client = TritonClient(running.url, running.grpc)
        try:
            assert target.describe()["container_reached"] == way
            assert isinstance(client.live(10), Answer)
            assert isinstance(client.live_grpc(10), Answer)
            with pytest.raises(TritonChaosBug, match="was not to cut it"):
                target.faults().cut_network()
            client.close()
            assert target.stop().exit_code == 0
            assert isinstance(client.live(10), NoAnswer)
        finally:
            client.close()
            target.stop()
