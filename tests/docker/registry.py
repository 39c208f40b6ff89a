"""A registry of one image on 127.0.0.1, which an engine asks over plain HTTP."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


@contextmanager
def registry(name: str, tag: str) -> Iterator[tuple[str, str]]:
    """Serve a manifest list under a name and tag; gives "127.0.0.1:PORT/name:tag" and its digest.

    Source: Docker Registry HTTP API V2, "Pulling an image manifest".
    """
    platform = {"architecture": "amd64", "os": "linux"}
    entry = {"mediaType": _MANIFEST, "size": 2, "digest": f"sha256:{'0' * 64}", "platform": platform}
    body = json.dumps({"schemaVersion": 2, "mediaType": _LIST, "manifests": [entry]}).encode()
    digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
    pages = {"/v2/": b"{}", f"/v2/{name}/manifests/{tag}": body, f"/v2/{name}/manifests/{digest}": body}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", _LIST)
            self.send_header("Docker-Content-Digest", digest)
            self.send_header("Content-Length", str(len(page or b"")))
            self.end_headers()
            if self.command == "GET" and page:
                self.wfile.write(page)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}/{name}:{tag}", digest
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
