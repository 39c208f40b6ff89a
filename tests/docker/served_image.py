"""A registry on 127.0.0.1 that serves one small image whose content can change under its tag."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

_V2 = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class ServedImage:
    """What the registry has; `put` gives the tag a new content and returns its digest.

    Source: Docker Registry HTTP API V2; Image Manifest V2, Schema 2.
    """

    def __init__(self, name: str, tag: str) -> None:
        self._name = name
        self._tag = tag
        self.pages: dict[str, tuple[str, bytes]] = {"/v2/": ("application/json", b"{}")}
        self.address = ""

    @property
    def reference(self) -> str:
        return f"{self.address}/{self._name}:{self._tag}"

    def put(self, text: bytes) -> str:
        layer = _layer(text)
        blob = gzip.compress(layer)
        rootfs = {"type": "layers", "diff_ids": [digest_of(layer)]}
        config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}).encode()
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": _V2,
                "config": {"mediaType": _CONFIG, "size": len(config), "digest": digest_of(config)},
                "layers": [{"mediaType": _LAYER, "size": len(blob), "digest": digest_of(blob)}],
            }
        ).encode()
        for content in (config, blob):
            self.pages[f"/v2/{self._name}/blobs/{digest_of(content)}"] = ("application/octet-stream", content)
        for name in (self._tag, digest_of(manifest)):
            self.pages[f"/v2/{self._name}/manifests/{name}"] = (_V2, manifest)
        return digest_of(manifest)


def _layer(text: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        file = tarfile.TarInfo("content")
        file.size = len(text)
        tar.addfile(file, io.BytesIO(text))
    return packed.getvalue()


@contextmanager
def served_image(name: str, tag: str) -> Iterator[ServedImage]:
    image = ServedImage(name, tag)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, content = image.pages.get(self.path, ("", b""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind or "text/plain")
            if "/manifests/" in self.path and kind:
                self.send_header("Docker-Content-Digest", digest_of(content))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    image.address = f"127.0.0.1:{server.server_port}"
    try:
        yield image
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
