"""What the target `remote` says of addresses and folders that it cannot use."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tritonchaos.errors import ScenarioError, TargetUnavailable, UsageError
from tritonchaos.plugins import TARGETS, abilities_of, load_plugins
from tritonchaos.scenario import build_plugin
from tritonchaos.targets.remote import RemoteTarget

load_plugins()

TRITON = b'{"name":"triton","version":"2.51.0","extensions":["model_repository"]}'
Answers = dict[str, tuple[int, bytes]]
Serve = Callable[[Answers], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts HTTP servers that answer as no real tritonserver can be made to."""
    servers: list[ThreadingHTTPServer] = []

    def start(answers: Answers) -> str:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                path = next((path for path in answers if self.path.endswith(path)), "")
                status, body = answers.get(path, (404, b"nothing here"))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815 - the name is http.server's

            def log_message(self, *_: object) -> None: ...

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def good(**changed: tuple[int, bytes]) -> Answers:
    answers = {"/live": (200, b""), "/v2": (200, TRITON), "/unload": (200, b""), "/index": (200, b"[]")}
    return answers | {f"/{name}": answer for name, answer in changed.items()}


def refused(url: str, **fields: object) -> TargetUnavailable:
    with pytest.raises(TargetUnavailable) as caught:
        RemoteTarget(url, **fields).check()  # type: ignore[arg-type]
    return caught.value


def test_a_server_that_answers_as_triton_does_can_be_used(serve: Serve) -> None:
    target = RemoteTarget(serve(good()))
    target.check()
    facts = target.describe()
    assert facts["triton_version"] == "2.51.0"
    assert "no tritonserver" in facts["process"], "its port belongs to this test"
    assert facts["process"].endswith("device readings only")


def test_a_url_that_is_down_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert "does not answer (refused" in refused(f"http://127.0.0.1:{port}").message


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"live": (400, b""), "v2": (200, TRITON)}, "is not live (status 400)"),
        ({"v2": (404, b"no such page")}, "is no Triton with a repository API (GET /v2: status 404: no such page)"),
        ({"v2": (200, b"<html>hello</html>")}, "is no Triton"),
        ({"v2": (200, b'["name"]')}, "is no Triton"),
        ({"v2": (200, b'{"name":"x","version":"1","extensions":["metrics"]}')}, "is no Triton"),
        ({"unload": (503, b'{"error":"not allowed if polling"}')}, "not allowed if polling"),
        ({"index": (200, b"\xff\xfe")}, "has no repository index"),
        ({"index": (403, b"restricted")}, "has no repository index (status 403: restricted)"),
    ],
)
def test_other_answers_say_what_it_is_not(serve: Serve, changed: Answers, complaint: str) -> None:
    assert complaint in refused(serve(good(**changed))).message


def test_something_that_speaks_no_http_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(100)
            connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
            connection.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        assert "does not answer" in refused(f"http://127.0.0.1:{listener.getsockname()[1]}").message
        thread.join()


@pytest.mark.parametrize("url", ["localhost:8000", "https://localhost:8000", "http://", ""])
def test_what_is_no_http_url_is_wrong_usage(url: str) -> None:
    with pytest.raises(UsageError, match="expected http://HOST:PORT"):
        RemoteTarget(url).check()


def test_a_repository_folder_must_be_there(serve: Serve, tmp_path: Path) -> None:
    url = serve(good())
    assert "there is no model repository folder" in refused(url, repository=tmp_path / "absent").message
    RemoteTarget(url, repository=tmp_path).check()


def test_names_of_loaded_and_of_lying_models_are_taken(serve: Serve, tmp_path: Path) -> None:
    index = (
        b'[{"name":"ready","version":"1","state":"READY"},{"name":"lying"},'
        b'{"name":"gone","version":"1","state":"UNAVAILABLE","reason":"unloaded"}]'
    )
    (tmp_path / "folder").mkdir()
    target = RemoteTarget(serve(good(index=(200, index))), repository=tmp_path)
    target.check_models(["gone", "new"])
    for name in ("ready", "lying", "folder"):
        with pytest.raises(TargetUnavailable, match=f"has a model {name} already"):
            target.check_models([name, "new"])


def test_its_fields_are_those_of_the_scenario_file() -> None:
    target = build_plugin(TARGETS, "remote", {"url": "http://h:1", "backends": ["python"]}, "target")
    assert target.backends() == {"python"}
    assert RemoteTarget("http://h:1").backends() is None
    assert abilities_of(target) == frozenset()
    assert abilities_of(RemoteTarget("http://h:1", grpc="h:2")) == {"grpc"}
    with pytest.raises(ScenarioError, match="url"):
        build_plugin(TARGETS, "remote", {}, "target")
