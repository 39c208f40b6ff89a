"""What is asked of an engine that tests cannot have: Podman's own API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import docker
import pytest

from tritonchaos.containers.engine import Engine, EngineAddress, EngineFacts, asking
from tritonchaos.errors import TargetError


class Engines:
    """An engine that answers each call in one way and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, object]] = []
        self.status, self.answer = 201, b'"id"'
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                told.asked.append((self.path, json.loads(body)))
                self.send_response(told.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(told.answer)))
                self.end_headers()
                self.wfile.write(told.answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def engine(self, name: str) -> Engine:
        url = f"tcp://127.0.0.1:{self._server.server_port}"
        facts = EngineFacts(name, "4.3.1", "1.41", False, False, "2", frozenset(), ())
        return Engine(EngineAddress(url, "the test"), docker.APIClient(base_url=url, version="1.41"), facts)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def engines() -> Iterator[Engines]:
    made = Engines()
    yield made
    made.close()


def test_podman_is_asked_in_its_own_api_to_limit_memory(engines: Engines) -> None:
    engine = engines.engine("Podman")
    engine.limit_memory("abc", 1 << 30)
    engine.close()
    limits = {"memory": {"limit": 1 << 30, "swap": 1 << 30}}
    assert engines.asked == [("/v4.0.0/libpod/containers/abc/update", limits)]


def test_docker_is_asked_in_its_api(engines: Engines) -> None:
    engines.status, engines.answer = 200, b"{}"
    engine = engines.engine("Docker")
    engine.limit_memory("abc", 1 << 30)
    engine.close()
    assert engines.asked == [("/v1.41/containers/abc/update", {"Memory": 1 << 30, "MemorySwap": 1 << 30})]


def test_what_podman_refuses_is_told(engines: Engines) -> None:
    engines.status, engines.answer = 500, b'{"message": "memory is in use"}'
    engine = engines.engine("Podman")
    with pytest.raises(TargetError, match="could not limit it: memory is in use"), asking("limit it"):
        engine.limit_memory("abc", 1)
    engine.close()
