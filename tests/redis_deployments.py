"""Redis as it is run: a cluster, sentinels, TLS; each of real servers, on free ports of loopback."""

from pathlib import Path

import redis

from tests.certificate import make_certificate
from tests.redis_server import RedisServer
from tests.waiting import PATIENCE, wait_until

SLOTS = 16384


class Cluster:
    """Servers that share the keys; each is a primary."""

    def __init__(self, directory, *, servers=3, program=None):
        self.servers = []
        for number in range(servers):
            folder = Path(directory, f"node-{number}")
            folder.mkdir()
            self.servers.append(RedisServer(folder, cluster=True, program=program))
        clients = [server.client for server in self.servers]
        for number, client in enumerate(clients):
            first, last = SLOTS * number // servers, SLOTS * (number + 1) // servers - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            if number:
                to = self.servers[0]
                client.execute_command("CLUSTER", "MEET", "127.0.0.1", to.port, to.bus_port)
        wait_until(lambda: all(self._is_whole(client) for client in clients))

    def _is_whole(self, client):
        told = client.execute_command("CLUSTER INFO")
        return told["cluster_state"] == "ok" and int(told["cluster_size"]) == len(self.servers)

    @property
    def uri(self):
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"redis+cluster://{hosts}"

    @property
    def client(self):
        return redis.RedisCluster("127.0.0.1", self.servers[0].port, socket_timeout=PATIENCE)

    def move(self, key):
        """Give the slot of ``key``, with all that is in it, to the next server."""
        from redis.crc import key_slot

        slot = key_slot(key.encode())
        ends = [SLOTS * (number + 1) // len(self.servers) for number in range(len(self.servers))]
        here = next(number for number, end in enumerate(ends) if slot < end)
        source, target = self.servers[here], self.servers[(here + 1) % len(self.servers)]
        ids = [s.client.execute_command("CLUSTER MYID").decode() for s in (source, target)]
        target.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        keys = source.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100)
        for each in keys:
            source.client.execute_command("MIGRATE", "127.0.0.1", target.port, each, 0, 5000)
        for server in (target, source):
            server.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[1])

    def stop(self):
        for server in self.servers:
            server.stop()


class Sentinels:
    """A primary and a replica, and sentinels that make the one the other when it dies."""

    service = "robots"

    def __init__(self, directory, *, sentinels=3, program=None):
        folders = [Path(directory, name) for name in ("primary", "replica")]
        for folder in folders:
            folder.mkdir()
        self.primary = RedisServer(folders[0], program=program)
        follows = ["--replicaof", "127.0.0.1", str(self.primary.port)]
        self.replica = RedisServer(folders[1], *follows, program=program)
        self.sentinels = []
        for number in range(sentinels):
            folder = Path(directory, f"sentinel-{number}")
            folder.mkdir()
            config = folder / "sentinel.conf"
            config.write_text(
                f"sentinel monitor {self.service} 127.0.0.1 {self.primary.port} {sentinels // 2 + 1}\n"
                # A primary that a busy machine keeps waiting is none that died.
                f"sentinel down-after-milliseconds {self.service} {1000 * PATIENCE}\n"
                f"sentinel failover-timeout {self.service} 5000\n"
            )
            self.sentinels.append(RedisServer(folder, sentinel=config, program=program))
        wait_until(self._know_each_other)

    def _told(self):
        return [server.client.sentinel_master(self.service) for server in self.sentinels]

    def _know_each_other(self):
        linked = self.replica.client.info("replication")["master_link_status"] == "up"
        return linked and all(
            told["num-other-sentinels"] == len(self.sentinels) - 1 and told["num-slaves"] == 1
            for told in self._told()
        )

    @property
    def uri(self):
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.sentinels)
        return f"redis+sentinel://{hosts}/{self.service}"

    def fail_over(self):
        """Kill the primary, and wait until the replica has its place."""
        self.primary.stop()
        self.sentinels[0].client.sentinel_failover(self.service)
        wait_until(lambda: all(told["port"] == self.replica.port for told in self._told()))

    def stop(self):
        for server in (*self.sentinels, self.replica, self.primary):
            server.stop()


class TLS(RedisServer):
    """A server that talks nothing but TLS, with a certificate that is its own CA."""

    def __init__(self, directory, *, program=None):
        self.ca = own = make_certificate(Path(directory, "redis.pem")).as_posix()
        files = ["--tls-cert-file", own, "--tls-key-file", own, "--tls-ca-cert-file", own]
        no_clients = ["--tls-auth-clients", "no"]
        super().__init__(directory, *files, *no_clients, tls=True, program=program)

    @property
    def uri(self):
        return f"rediss://127.0.0.1:{self.port}/0?ssl_ca_certs={self.ca}"
