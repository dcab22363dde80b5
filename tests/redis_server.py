"""A Redis of the tests' own, on a free port, that can be stopped, paused and filled."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.waiting import PATIENCE, wait_until

_PORTS = 20
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
        self.directory = directory
        self.arguments = arguments
        self.process = None
        # Another program may take a free port before Redis does.
        for _ in range(_PORTS):
            self.port = free_port()
            if self._begin():
                return
        said = self.log.read_text() if self.log.exists() else "nothing"
        raise RuntimeError(f"redis-server did not start on any of {_PORTS} ports: {said}")

    @property
    def log(self):
        return Path(self.directory, f"redis-{self.port}.log")

    @property
    def uri(self):
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def client(self):
        import redis

        return redis.Redis(port=self.port, socket_timeout=PATIENCE)

    def start(self):
        wait_until(self._begin)

    def _begin(self):
        """Start it, and return whether it did start: another program may have the port."""
        log = self.log
        log.unlink(missing_ok=True)
        own = f"--port {self.port} --bind 127.0.0.1 --appendonly no".split()
        own += ["--save", "", "--dir", str(self.directory), "--logfile", str(log)]
        self.process = subprocess.Popen([PROGRAM, *own, *self.arguments])

        # What answers at the port may be the other program.
        def is_ready():
            return log.exists() and "Ready to accept connections" in log.read_text()

        wait_until(lambda: self.process.poll() is not None or is_ready())
        return self.process.poll() is None

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        """Stop it; all that it held is lost."""
        self.resume()
        self.process.kill()
        self.process.wait()
