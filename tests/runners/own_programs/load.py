"""Loads server.py: `load.py PORT [REQUEST]`; prints throughput and percentiles, and what it knows of both."""

import os
import socket
import sys
import time

from server import thp

REQUESTS = 200

if __name__ == "__main__":
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10) as connection:
        stream = connection.makefile("rw", encoding="ascii")

        def ask(text: str) -> str:
            """Sends a line and returns the answer."""
            stream.write(f"{text}\n")
            stream.flush()
            return stream.readline().strip()

        if len(sys.argv) > 2:
            sys.exit(f"answer: {ask(sys.argv[2])!r}")
        seconds = []
        for _ in range(REQUESTS):
            began = time.perf_counter()
            assert ask("ping") == "pong"
            seconds.append(time.perf_counter() - began)
        print("service", ask("about"))
    print(f"load thp={thp()} tunables={os.environ.get('GLIBC_TUNABLES', '')}")
    seconds.sort()
    print(f"throughput: {REQUESTS / sum(seconds)}")
    for percent in (50, 99, 99.9):
        print(f"p{percent}: {1e3 * seconds[int(len(seconds) * percent / 100)]}")
