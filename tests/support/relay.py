"""A wire between a client and a server of HTTP: what was asked is noted, and it can be cut at a request of choice."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from support.checkout import free_ports

_LINE = re.compile(rb"^([A-Z]+) (\S+) HTTP/1\.1\r\n", re.MULTILINE)

Asked = tuple[str, str]  # method, and path with query


class Relay:
    """`at` is asked about each request before it is passed on: False cuts the wire there, and for good."""

    def __init__(self, server: int) -> None:
        (self.port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.asked: list[Asked] = []
        self.at: Callable[[Asked], bool] = lambda _: True
        self.mends = False  # whether the wire is whole again after it was cut
        self._server, self._cut = server, False
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def forget(self) -> None:
        """From here on anew, with a whole wire."""
        with self._lock:
            self.asked, self.at, self._cut = [], lambda _: True, False

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self._server)) as server:
            threading.Thread(target=self._back, args=(server, client), daemon=True).start()
            while data := client.recv(1 << 16):
                if not self._passes(data):
                    client.shutdown(socket.SHUT_RDWR)
                    return
                server.sendall(data)

    def _passes(self, data: bytes) -> bool:
        with self._lock:
            for method, path in _LINE.findall(data):
                asked = method.decode(), path.decode()
                self.asked.append(asked)
                self._cut = (self._cut and not self.mends) or not self.at(asked)
            return not self._cut

    @staticmethod
    def _back(server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


@contextmanager
def relayed(endpoint: str) -> Iterator[Relay]:
    """A wire to the server at an address of this machine."""
    relay = Relay(int(endpoint.rpartition(":")[2]))
    try:
        yield relay
    finally:
        relay.close()
