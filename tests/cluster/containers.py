"""Pods of load generators: what a kubelet would do for the Jobs of `kubernetes.generator_pods`.

kwok says that pods run; here the program of each container does, at the address of its pod, with its arguments and
environment. When it ends the pod is Failed or Succeeded, and when the pod goes the program is ended. Needs the network
of `networked_plane`.
"""

import base64
import contextlib
import os
import subprocess
import threading
from pathlib import Path

from support.checkout import PROJECT

from cluster.api import ApiError, Object
from cluster.control_plane import ControlPlane


class Containers:
    """Started by `with`, in the thread whose network is that of the pods. `programs` are by the name of their pod."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self._plane, self._namespace, self._folder = plane, namespace, folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._over: set[str] = set()
        self._addresses: set[str] = set()
        self.programs: dict[str, subprocess.Popen[bytes]] = {}
        self.specs: list[Object] = []

    def __enter__(self) -> "Containers":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for program in self.programs.values():
            program.kill()
            program.wait()

    @property
    def running(self) -> list[subprocess.Popen[bytes]]:
        return [program for program in list(self.programs.values()) if program.poll() is None]

    def _play(self) -> None:
        while not self._ended.wait(0.05):
            with contextlib.suppress(ApiError, OSError):
                pods = {pod["metadata"]["name"]: pod for pod in self._plane.api.all("Pod", self._namespace)}
                self._step(pods)

    def _step(self, pods: dict[str, Object]) -> None:
        for name, pod in pods.items():
            labels = pod["metadata"].get("labels", {})
            if "loadstone/record" in labels and pod["status"].get("podIP") and name not in self.programs:
                self._start(name, pod)
        for name, program in self.programs.items():
            if name not in pods and program.poll() is None:
                program.terminate()
            if name in pods and program.poll() is not None and name not in self._over:
                self._over.add(name)
                phase = "Failed" if program.returncode else "Succeeded"
                status = {"phase": phase, "message": f"exit code {program.returncode}"}
                self._plane.api.patch("Pod", self._namespace, name, {"status": status}, "status")

    def _secret(self, pod: Object, folder: Path) -> Path:
        """The files of the Secret that a pod mounts, in a folder."""
        (name,) = [each["secret"]["secretName"] for each in pod["spec"]["volumes"] if "secret" in each]
        found = self._plane.api.get("Secret", self._namespace, name)
        (folder / "tls").mkdir()
        for file, content in found["data"].items():
            (folder / "tls" / file).write_bytes(base64.b64decode(content))
        return folder / "tls"

    def _address(self, name: str, pod: Object) -> str:
        """The pod's, or another one where kwok has given two pods the same, which it now and then does."""
        address: str = pod["status"]["podIP"]
        if address in self._addresses:
            address = f"10.64.255.{len(self._addresses)}"
            status = {"podIP": address, "podIPs": [{"ip": address}]}
            self._plane.api.patch("Pod", self._namespace, name, {"status": status}, "status")
        self._addresses.add(address)
        return address

    def _start(self, name: str, pod: Object) -> None:
        self.specs.append(pod["spec"])
        (container,) = pod["spec"]["containers"]
        folder = self._folder / name
        folder.mkdir(parents=True)
        mount, *others = container["volumeMounts"]
        command = [*container["command"]]
        assert command[0] == "paced"
        command[0] = str(PROJECT / ".tools/bin/paced")
        for index, argument in enumerate(command):
            if argument == "-listen":
                command[index + 1] = self._address(name, pod) + command[index + 1]
            if argument == "-folder":
                assert command[index + 1] == mount["mountPath"]
                command[index + 1] = str(folder)
            if argument == "-tls":
                assert [command[index + 1]] == [each["mountPath"] for each in others]
                command[index + 1] = str(self._secret(pod, folder))
        environment = {each["name"]: each.get("value", "") for each in container["env"]}
        with (folder / "log").open("wb") as log:
            self.programs[name] = subprocess.Popen(
                command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
