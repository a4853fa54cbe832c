"""A registry of container images on this machine, with HTTP or with HTTPS by its own certificate."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

CONFIGURATION = """version: 0.1
storage: {{filesystem: {{rootdirectory: {place}/storage}}}}
http: {{addr: "localhost:{port}"{tls}}}
"""


def make_certificate(place: Path) -> Path:
    """Write a certificate for localhost and its key; returns the certificate.

    Buildah takes a file `*.key` next to a certificate for that of a client.
    """
    command = (
        "openssl",
        "req",
        "-x509",
        "-nodes",
        "-newkey",
        "rsa:2048",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    )
    names = ("-addext", "subjectAltName=DNS:localhost", "-keyout", place / "server", "-out", place / "ca.crt")
    subprocess.run([*command, *names], check=True, capture_output=True)
    return place / "ca.crt"


@contextmanager
def serve(
    unavailable: Callable[[str], NoReturn], place: Path, certificate: Path | None = None
) -> Iterator[str]:
    """Run a registry with its files in a folder; yields its host and port."""
    program = shutil.which("docker-registry")
    if not program:
        unavailable("needs docker-registry (make setup-tests)")
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    tls = (
        f", tls: {{certificate: {certificate}, key: {certificate.with_name('server')}}}"
        if certificate
        else ""
    )
    (place / "config.yml").write_text(CONFIGURATION.format(place=place, port=port, tls=tls))
    with (place / "log").open("w") as log:
        server = subprocess.Popen([program, "serve", place / "config.yml"], stdout=log, stderr=log)
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("localhost", port)) == 0:
                    break
            assert server.poll() is None, (place / "log").read_text()
            time.sleep(0.1)
        yield f"localhost:{port}"
    finally:
        server.terminate()
        server.wait()
