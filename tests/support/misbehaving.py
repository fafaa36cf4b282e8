"""Servers on loopback that fail in one way each, and a real Envoy before any of them."""

import re
import socket
import struct
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from support.checkout import PROJECT, free_ports

Behaviour = Callable[[socket.socket, threading.Event], None]

_REQUEST_BYTES = 1 << 16
_CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it"


def silent(connection: socket.socket, ended: threading.Event) -> None:
    """Accepts and never says a word, so that a TLS handshake or a response never comes."""
    ended.wait()


def slow_body(connection: socket.socket, ended: threading.Event) -> None:
    """Sends headers and half of the body, then nothing."""
    connection.recv(_REQUEST_BYTES)
    connection.sendall(_CUT)
    ended.wait()


def cut(connection: socket.socket, _: threading.Event) -> None:
    """Closes in the middle of the body."""
    connection.recv(_REQUEST_BYTES)
    connection.sendall(_CUT)


def closing(connection: socket.socket, _: threading.Event) -> None:
    """Reads the request and closes."""
    connection.recv(_REQUEST_BYTES)


def resetting(connection: socket.socket, _: threading.Event) -> None:
    """Reads the request and resets the connection."""
    connection.recv(_REQUEST_BYTES)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def answering(text: bytes) -> Behaviour:
    """Answers whatever is asked with these bytes."""

    def behave(connection: socket.socket, _: threading.Event) -> None:
        connection.recv(_REQUEST_BYTES)
        connection.sendall(text)

    return behave


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[int]:
    """The port of a server all of whose connections end as `behaviour` has it."""
    ended = threading.Event()

    def handle(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            behaviour(connection, ended)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=handle, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def not_accepting() -> Iterator[int]:
    """A port whose queue of connections is full: the kernel lets a new one wait."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with suppress(BlockingIOError):
                waiting.connect(("127.0.0.1", port))
        yield port


@contextmanager
def envoy_before(port: int, folder: Path) -> Iterator[int]:
    """The port of the demo's Envoy, whose service is at `port`."""
    own, admin = free_ports(2)
    text = (PROJECT / "config/demo/envoy.yaml").read_text()
    config = folder / "envoy.yaml"
    admin_address = f"admin:\n  address: {{socket_address: {{address: 127.0.0.1, port_value: {admin}}}}}\n"
    config.write_text(admin_address + re.sub(r"\b18081\b", str(own), re.sub(r"\b18080\b", str(port), text)))
    options = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]
    with subprocess.Popen([PROJECT / ".venv/bin/envoy", "--config-path", config, *options]) as envoy:
        try:
            _wait(admin, envoy)
            yield own
        finally:
            envoy.terminate()


def _wait(admin: int, envoy: subprocess.Popen[bytes]) -> None:
    while True:
        assert envoy.poll() is None
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{admin}/ready", timeout=5):
            return
        time.sleep(0.02)
