"""A Redis of the tests' own, on a free port, that can be stopped, paused and filled."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")


def needs_redis():
    """Skip the test where there is no Redis; fail it where there has to be one."""
    if PROGRAM is None:
        why = "no redis-server: apt-get install redis-server, or any Redis or Valkey on the PATH"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)


class RedisServer:
    def __init__(self, directory, *arguments):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.directory = directory
        self.arguments = arguments
        self.process = None
        self.start()

    @property
    def uri(self):
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def client(self):
        import redis

        return redis.Redis(port=self.port, socket_timeout=5)

    def start(self):
        self.process = subprocess.Popen(
            [
                PROGRAM,
                "--port",
                str(self.port),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
                "--dir",
                str(self.directory),
                *self.arguments,
            ],
            stdout=subprocess.DEVNULL,
        )
        for _ in range(200):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError("redis-server does not answer")

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        """Stop it; all that it held is lost."""
        self.resume()
        self.process.kill()
        self.process.wait()
