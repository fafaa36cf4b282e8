"""A real Kubernetes control plane on free ports of loopback: etcd, API server, controllers, scheduler, and kwok.

kwok stands in for the machines: pods become Ready, and are gone after deletion, at once or after the times of their
annotations `plane/ready-after` and `plane/gone-after`. All come from one binary, built by `make cluster` from `plane/`.
They are started by a Supervisor: nothing survives the process that started them, not even when it is killed.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import yaml
from loadstone.process import Program, Supervisor
from support.checkout import free_ports

from cluster.api import Api, ApiError, wait_until
from cluster.recorder import Recorder

FOLDER = Path(__file__).resolve().parent
MANIFESTS = FOLDER / "manifests"
POD_IPS, SERVICE_IPS = "10.64.0.0/16", "10.96.0.0/16"
_SOURCES = ("go.mod", "go.sum", "main.go", "build.sh")


def binary() -> Path:
    """Where envs/setup.sh puts the binary: in the user's cache, by the hash of what it is built from."""
    key = hashlib.sha256(b"".join((FOLDER / "plane" / name).read_bytes() for name in _SOURCES)).hexdigest()[:16]
    home = os.environ.get("HOME") or FOLDER.parents[1] / ".tools" / "home"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path(home, ".cache"), "plane", key, "plane")


def missing() -> str | None:
    """Why there can be no control plane here."""
    if not binary().exists():
        return "the control plane is not built: make cluster"
    if shutil.which("openssl") is None:
        return "openssl is not on PATH (Debian: apt-get install openssl)"
    return None


class ControlPlane:
    """Started by `with`. `kubeconfig` is its administrator's; `calls` is what was asked of the API server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.calls = Recorder(folder / "audit.log", self._mark)
        self._certificates = folder / "certificates"
        self._token = secrets.token_hex(24)
        self._ports = dict(
            zip(("etcd", "peer", "api", "kcm", "scheduler", "kwok", "metrics"), free_ports(7), strict=True)
        )
        self._programs: dict[str, Program] = {}
        self.address = f"https://127.0.0.1:{self._ports['api']}"
        self.api = Api(self.address, self._token, None)

    def __enter__(self) -> "ControlPlane":
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            stack.callback(self._remove_data)
            self._supervisor = stack.enter_context(Supervisor())
            stack.callback(self._kill_all)
            self._start_all()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # --- The API server away and back ---------------------------------------------------------------------------------

    def kill_api(self) -> None:
        """As a power loss would end it: connections are refused."""
        self._programs.pop("kube-apiserver").stop(0)

    def start_api(self) -> None:
        """Start it again at the same address, and wait until it is ready."""
        self._start_api()
        self._wait_for("kube-apiserver", "/readyz")

    @contextlib.contextmanager
    def api_killed(self) -> Iterator[None]:
        """The API server is gone inside of `with`, and back after it."""
        self.kill_api()
        try:
            yield
        finally:
            self.start_api()

    @contextlib.contextmanager
    def api_frozen(self) -> Iterator[None]:
        """The API server takes connections but does not answer inside of `with`."""
        group = self._programs["kube-apiserver"].pid
        os.killpg(group, signal.SIGSTOP)
        try:
            stopped = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
            wait_until(lambda: psutil.Process(group).status() in stopped, "the API server stands still")
            yield
        finally:
            os.killpg(group, signal.SIGCONT)
            self._wait_for("kube-apiserver", "/readyz")

    # --- Pod metrics --------------------------------------------------------------------------------------------------

    @property
    def metrics_file(self) -> Path:
        """What metrics.k8s.io says, as JSON: `{"namespace/pod": {"cpu": "12m", "memory": "34Mi"}}`."""
        return self.folder / "metrics.json"

    def start_metrics(self) -> None:
        """Serve metrics.k8s.io from `metrics_file`, and wait until it is available."""
        if not self.metrics_file.exists():
            self.metrics_file.write_text("{}")
        certificate, key = (self._certificates / f"apiserver.{end}" for end in ("crt", "key"))
        port = str(self._ports["metrics"])
        script = str(FOLDER / "fake_metrics.py")
        self._run("metrics", sys.executable, script, port, str(certificate), str(key), str(self.metrics_file))
        for manifest in yaml.safe_load_all((MANIFESTS / "metrics.yaml").read_text().replace("PORT", port)):
            self.api.apply(manifest)
        wait_until(self._serves_metrics, "metrics.k8s.io")

    def kill_metrics(self) -> None:
        """The metrics API stays registered and answers 503."""
        self._programs.pop("metrics").stop(0)

    def remove_metrics(self) -> None:
        """The cluster has no metrics API, as at first."""
        if "metrics" in self._programs:
            self.kill_metrics()
        with contextlib.suppress(ApiError):
            self.api.delete("APIService", "", "v1beta1.metrics.k8s.io")

    def _serves_metrics(self) -> bool:
        try:
            return "items" in self.api.get("PodMetrics")
        except ApiError:
            return False

    # --- Starting and stopping ----------------------------------------------------------------------------------------

    def _start_all(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._make_keys()
        self._start_etcd()
        self._start_api()
        self._wait_for("kube-apiserver", "/livez")
        self._write_kubeconfig()
        self._start_controllers()
        self._wait_for("kube-apiserver", "/readyz")
        for file in ("node.yaml", "flux.yaml"):
            for manifest in yaml.safe_load_all((MANIFESTS / file).read_text()):
                self.api.apply(manifest)
        wait_until(self._is_ready, f"the control plane (its logs: {self.folder / 'logs'})")

    def _make_keys(self) -> None:
        """Keys for service accounts, and the certificate with which the API server calls aggregated APIs."""
        self._certificates.mkdir()
        (self._certificates / "tokens.csv").write_text(f"{self._token},admin,admin,system:masters\n")
        (self._certificates / "extra").write_text("extendedKeyUsage=clientAuth\n")
        for command in (
            *(f"ecparam -name prime256v1 -genkey -noout -out {name}.key" for name in ("sa", "ca", "proxy")),
            "req -x509 -new -key ca.key -subj /CN=proxy-ca -days 999 -out ca.crt",
            "req -new -key proxy.key -subj /CN=front-proxy-client -out proxy.csr",
            "x509 -req -in proxy.csr -CA ca.crt -CAkey ca.key -set_serial 1 -days 999 -extfile extra -out proxy.crt",
        ):
            subprocess.run(["openssl", *command.split()], cwd=self._certificates, check=True, capture_output=True)

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{self._ports[name]}" for name in ("etcd", "peer"))
        self._plane(
            "etcd",
            "--name=plane",
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=plane={peer}",
        )

    def _start_api(self) -> None:
        keys = self._certificates
        self._plane(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd']}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._ports['api']}",
            f"--cert-dir={keys}",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
            f"--token-auth-file={keys / 'tokens.csv'}",
            f"--service-account-issuer={self.address}",
            f"--service-account-key-file={keys / 'sa.key'}",
            f"--service-account-signing-key-file={keys / 'sa.key'}",
            f"--requestheader-client-ca-file={keys / 'ca.crt'}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={keys / 'proxy.crt'}",
            f"--proxy-client-key-file={keys / 'proxy.key'}",
            f"--service-cluster-ip-range={SERVICE_IPS}",
            f"--audit-policy-file={MANIFESTS / 'audit.yaml'}",
            f"--audit-log-path={self.calls.file}",
            "--audit-log-maxsize=100000",
            "--profiling=false",
        )

    def _start_controllers(self) -> None:
        common = [f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1"]
        # Without a higher limit than usual, 50 pods take 3 s.
        common += ["--kube-api-qps=500", "--kube-api-burst=500", "--authorization-always-allow-paths=*"]
        self._plane(
            "kube-controller-manager",
            *common,
            f"--secure-port={self._ports['kcm']}",
            f"--cert-dir={self._certificates / 'kcm'}",
            f"--service-account-private-key-file={self._certificates / 'sa.key'}",
            f"--root-ca-file={self._certificates / 'apiserver.crt'}",
            f"--flex-volume-plugin-dir={self.folder / 'flex'}",
        )
        self._plane(
            "kube-scheduler",
            *common,
            f"--secure-port={self._ports['scheduler']}",
            f"--cert-dir={self._certificates / 'scheduler'}",
        )
        config = self.folder / "kwok.yaml"
        config.write_bytes(subprocess.run([binary(), "kwok-config"], check=True, capture_output=True).stdout)
        self._plane(
            "kwok",
            f"--kubeconfig={self.kubeconfig}",
            "--manage-all-nodes",
            f"--cidr={POD_IPS}",
            "--node-ip=127.0.0.1",
            f"--node-port={self._ports['kwok']}",
            f"--server-address=127.0.0.1:{self._ports['kwok']}",
            "--node-lease-duration-seconds=40",
            f"--config={config}",
            f"--config={MANIFESTS / 'pods.yaml'}",
        )

    def _plane(self, name: str, *arguments: str) -> None:
        self._run(name, str(binary()), name, *arguments)

    def _run(self, name: str, *command: str) -> None:
        self._programs[name] = Program(command, self._supervisor, self.folder / "logs" / f"{name}.log")

    def _wait_for(self, name: str, path: str) -> None:
        """Wait until the API server says ok at `path`; fails with its last words when it dies."""

        def answers() -> bool:
            program = self._programs[name]
            assert program.exit_code() is None, f"{name} died:\n{program.tail()}"
            with contextlib.suppress(ApiError, OSError):
                return self.api.call("GET", path) == "ok"
            return False

        wait_until(answers, f"{name} ({self.folder / 'logs'})")

    def _is_ready(self) -> bool:
        """Whether pods can be scheduled, namespaces have their service account, and Flux's kinds are served."""
        for name, program in self._programs.items():
            assert program.exit_code() is None, f"{name} died:\n{program.tail()}"
        try:
            conditions = self.api.get("Node", "", "node-0").get("status", {}).get("conditions", [])
            self.api.get("ServiceAccount", "default", "default")
            self.api.all("Kustomization"), self.api.all("HelmRelease")
        except ApiError:
            return False
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def write_kubeconfig(self, file: Path, token: str, namespace: str = "default") -> Path:
        """A kubeconfig for whoever has the token, with one context named `plane`."""
        authority = str(self._certificates / "apiserver.crt")
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "plane",
            "clusters": [{"name": "plane", "cluster": {"server": self.address, "certificate-authority": authority}}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": "user", "namespace": namespace}}],
        }
        file.write_text(json.dumps(content))
        return file

    def _write_kubeconfig(self) -> None:
        self.write_kubeconfig(self.kubeconfig, self._token)
        self.api = Api(self.address, self._token, self._certificates / "apiserver.crt")

    def _mark(self, name: str) -> None:
        """A call that leaves nothing but its trace in the record."""
        with contextlib.suppress(ApiError):
            self.api.get("ConfigMap", "default", name)

    def _kill_all(self) -> None:
        """Its data are thrown away, so nothing is given time to end."""
        for program in self._programs.values():
            program.stop(0)

    def _remove_data(self) -> None:
        for name in ("etcd", "certificates"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
