"""A small service: it answers each line with `pong` or what it knows of itself; `server.py PORT [WAY]`."""

import os
import re
import socketserver
import sys
import time
from pathlib import Path


def thp() -> str:
    """Whether the kernel may give this process huge pages."""
    return re.search(r"^THP_enabled:\s+(\d)", Path("/proc/self/status").read_text(), re.MULTILINE)[1]


class Handler(socketserver.StreamRequestHandler):
    """Answers the lines of a connection."""

    def handle(self) -> None:
        """Reads lines until the client closes."""
        for line in self.rfile:
            if line == b"die\n":
                os.abort()
            known = f"thp={thp()} tunables={os.environ.get('GLIBC_TUNABLES', '')}\n"
            self.wfile.write(b"pong\n" if line == b"ping\n" else known.encode())


if __name__ == "__main__":
    way = sys.argv[2] if len(sys.argv) > 2 else ""
    if way == "dies":
        sys.exit("cannot start")
    if way == "silent":
        time.sleep(60)
    if way == "setup" and Path("made-before").read_text() != "by setup\n":
        sys.exit("the folder has no file of the setup")
    memory = b"\1" * (64 << 20)
    socketserver.TCPServer.allow_reuse_address = True
    with socketserver.TCPServer(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        print("listening", flush=True)
        server.serve_forever()
