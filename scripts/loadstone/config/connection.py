"""How the requests of a variant reach it: TLS, protocol, address and reuse of connections (`Connection`).

In: the keys ``tls``, ``protocol``, ``resolve`` and ``keepalive`` of a variant. Out: what load generators and the
identity check need. Private keys are read into memory and never recorded.
"""

import re
import ssl
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from loadstone.errors import LoadstoneError

HTTP1, HTTP2, H2C = "http1", "http2", "h2c"
_PORTS = {"http": 80, "https": 443}
_LARGEST_PORT = 65535
_KEYS = ("tls", "protocol", "resolve", "keepalive")
_NOT_SENT = {"k6": (H2C,), "artillery": (HTTP2, H2C)}
FILES = ("ca", "cert", "key")


_CERTIFICATE = re.compile(r"-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----.*?-----END \1-----", re.DOTALL)


@dataclass(frozen=True)
class Connection:
    """The connection settings of a variant. `ca`, `cert` and `key` are PEM texts; None and "" are not declared.

    `protocol` is None where TLS negotiates it, `resolve` is the ``ADDRESS:PORT`` to connect to. `files` are those of
    the client's certificate and key. `redirect_hosts` are the hosts that a redirect may lead to, besides those of this
    machine; None: any.
    """

    ca: str | None = None
    insecure: bool = False
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None
    protocol: str | None = None
    resolve: str | None = None
    keepalive: bool = True
    files: tuple[str, str] | None = None
    redirect_hosts: tuple[str, ...] | None = None

    @classmethod
    def of(cls, declared: Mapping[str, Any], where: str) -> Self:
        """Read the settings and files of a declared variant; `where` is its key, for messages.

        Raises LoadstoneError for a file that can't be read or used.
        """
        tls = declared.get("tls", {})
        texts: dict[str, Any] = {name: _read(Path(tls[name]), f"{where}.tls.{name}") for name in FILES if name in tls}
        others = {name: tls[name] for name in ("insecure", "server_name") if name in tls}
        others |= {name: declared[name] for name in _KEYS[1:] if name in declared}
        for name in texts.keys() & {"ca", "cert"}:  # of a private key beside the certificates nothing is passed on
            certificates = [found[0] for found in _CERTIFICATE.finditer(texts[name])]
            if not certificates:
                raise LoadstoneError(f"{where}.tls.{name}: {tls[name]} holds no certificate")
            texts[name] = "\n".join([*certificates, ""])
        if "ENCRYPTED" in texts.get("key", ""):
            raise LoadstoneError(f"{where}.tls.key: {tls['key']} is encrypted; give a key without a passphrase")
        found = cls(**texts, **others, files=(tls["cert"], tls["key"]) if "cert" in tls else None)
        try:
            if texts:
                found.ssl_context()
        except (OSError, ValueError) as error:
            names = " and ".join(f"{where}.tls.{name} ({tls[name]})" for name in texts)
            raise LoadstoneError(f"{names} can't be used: {error}") from None
        return found

    def used_by(self, generator: str) -> Self:
        """As a load generator uses it: Artillery offers TLS nothing but HTTP/1.1."""
        return replace(self, protocol=HTTP1) if generator == "artillery" else self

    def settings(self) -> dict[str, Any]:
        """As `paced` and `serial` read it (envs/tools/connection), without what is not declared."""
        found = {name: getattr(self, name) for name in (*FILES, "insecure", "server_name", "protocol", "resolve")}
        declared = {name: value for name, value in (found | {"close": not self.keepalive}).items() if value}
        return declared if self.redirect_hosts is None else declared | {"hosts": list(self.redirect_hosts)}

    def ssl_context(self) -> ssl.SSLContext:
        """The TLS settings as a context of Python. Raises OSError and ValueError for files that can't be used."""
        context = ssl.create_default_context(cadata=self.ca)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.files:
            context.load_cert_chain(*self.files)
        return context


def _read(path: Path, where: str) -> str:
    try:
        text = path.read_bytes().decode("ascii", "ignore")  # comments may be in any encoding
    except (OSError, ValueError) as error:
        raise LoadstoneError(f"{where}: {path} can't be read: {getattr(error, 'strerror', None) or error}") from None
    if "-----BEGIN " not in text:
        raise LoadstoneError(f"{where}: {path} is not a PEM file")
    return text


def recorded(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The declared settings as they are recorded: names of files, no contents. Empty where none is declared."""
    return {name: declared[name] for name in _KEYS if name in declared}


def faults(where: str, declared: Mapping[str, Any], generator: str) -> Iterator[str]:
    """Settings of a declared variant that contradict each other or its URL, or that a load generator can't keep to."""
    try:
        host_port(declared["url"])
    except ValueError as error:
        yield f"{where}.url: {error}"
        return
    if address(declared.get("resolve", ":1"))[1] > _LARGEST_PORT:
        yield f"{where}.resolve: the port is out of range"
    scheme, tls, protocol = urlsplit(declared["url"]).scheme, declared.get("tls", {}), declared.get("protocol")
    if tls and scheme == "http":
        yield f"{where}.tls: has no effect, because the URL begins with http://"
    if "ca" in tls and tls.get("insecure"):
        yield f"{where}.tls: ca has no effect with insecure: true"
    if ("cert" in tls) != ("key" in tls):
        yield f"{where}.tls: cert and key need each other"
    if protocol == H2C and scheme == "https":
        yield f"{where}.protocol: h2c is HTTP/2 without TLS; use http2, or a URL that begins with http://"
    if protocol == HTTP2 and scheme == "http":
        yield f"{where}.protocol: http2 needs TLS; use h2c, or a URL that begins with https://"
    if protocol == H2C and declared.get("keepalive") is False:
        yield f"{where}.keepalive: false is not possible with protocol: h2c"
    if protocol in _NOT_SENT.get(generator, ()):
        yield f"{where}.protocol: the generator {generator} does not send {protocol}"


def strangers(where: str, declared: Mapping[str, Any], allowed: Collection[str]) -> Iterator[str]:
    """The hosts of a variant that may not be attacked, so that a typo never attacks somebody else's server."""
    hosts = {"url": host_port(declared["url"])[0]}
    if "resolve" in declared:
        hosts["resolve"] = address(declared["resolve"])[0]
    for name, host in hosts.items():
        if not is_allowed(host, allowed):
            yield (
                f"{where}.{name}: {host} is not in target.allow, so it is not attacked. If it is yours, add to target: "
                f"allow: [{', '.join((*allowed, host))}]"
            )


def is_allowed(host: str, allowed: Collection[str]) -> bool:
    """Whether an external host may be attacked: it is listed, or an address of this machine only."""
    return host.lower() in {"localhost", *map(str.lower, allowed)} or (
        is_address(host) and ip_address(host).is_loopback
    )


def is_address(host: str) -> bool:
    """Whether a host is an IP address, not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def host_port(url: str) -> tuple[str, int]:
    """Host and port of a URL. Raises ValueError when it has no valid port."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or _PORTS[parts.scheme]


def address(resolve: str) -> tuple[str, int]:
    """Host and port of ``ADDRESS:PORT``; an IPv6 address is in brackets."""
    host, _, port = resolve.rpartition(":")
    return host.strip("[]"), int(port)
