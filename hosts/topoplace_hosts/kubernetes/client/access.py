"""The API server's address and the client's credentials, from a kubeconfig or this pod's service account."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from topoplace import _checks
from topoplace.discovery.text import yaml_tree
from topoplace.errors import KubernetesError, TopologyError
from topoplace_hosts.kubernetes.client.exec_plugin import ExecPlugin
from topoplace_hosts.kubernetes.client.proxies import Proxy, from_environment, proxy
from topoplace_hosts.kubernetes.objects.fields import items, mapping

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REREAD_S = 60.0
"""Seconds between readings of a token file; tokens of service accounts are renewed about once an hour."""
_MOST_BYTES = 1 << 20
_FOR_PROGRAM = "client.authentication.k8s.io/exec"
"""The extension of a cluster whose values, of any type, are for the program of `exec`."""


@dataclass(slots=True)
class Access:
    """The address of an API server, and the credentials for it."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    """The TLS context; None for plain HTTP, which is only allowed on the loopback interface."""
    token: str = ""
    token_file: Path | None = None
    """A file with the token, which is read again every minute."""
    path: str = ""
    """The prefix of the API's paths."""
    plugin: ExecPlugin | None = None
    """A program that supplies the token or the certificate."""
    proxy: Proxy | None = None
    """The proxy to the server; None without one."""
    server_name: str = ""
    """The name in the server's certificate; "" if that is `host`."""
    num_certificates: int = field(default=0, init=False)
    """The number of client certificates that `plugin` has supplied; connections made with an older one must close."""
    _read_at: float = field(default=0.0, init=False)

    def authorization(self) -> str:
        """Return the value of the header Authorization; "" without a token. Load a new certificate, if any."""
        if self.plugin is not None:
            found, is_new = self.plugin.credential()
            self.token = found.token
            if is_new and found.certificate and self.tls is not None:
                try:
                    _load_pem(self.tls, found.certificate, found.key, "the program of exec")
                except KubernetesError:
                    self.plugin.forget()
                    raise
                self.num_certificates += 1
        if self.token_file is not None and (not self.token or time.monotonic() - self._read_at > _REREAD_S):
            self.token = _read(self.token_file).strip()
            self._read_at = time.monotonic()
        return f"Bearer {self.token}" if self.token else ""


def in_cluster(directory: Path = _SERVICE_ACCOUNT) -> Access:
    """Return the access of a pod by its service account; KubernetesError outside a cluster."""
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{what}", "") for what in ("HOST", "PORT"))
    if not host or not port.isdigit():
        raise KubernetesError(
            "not in a pod: KUBERNETES_SERVICE_HOST and _PORT are not set; name a kubeconfig (--kubeconfig)"
        )
    tls = _context(_read(directory / "ca.crt"))
    return Access(host, int(port), tls, token_file=directory / "token")


def from_kubeconfig(path: str | os.PathLike[str]) -> Access:
    """Return the access that the current context of a kubeconfig describes.

    Tokens, token files, client certificates and programs that supply them (`exec`) are supported; passwords are not.
    Proxies come from the kubeconfig, else from the environment. KubernetesError says what is missing.
    """
    file = Path(path)
    text = _read(file)
    try:
        configs = list(yaml_tree.objects(text, "kubeconfig"))
    except (TopologyError, ValueError) as error:
        raise KubernetesError(f"{file}: {error}") from None
    if len(configs) != 1:
        raise KubernetesError(f"{file}: {len(configs)} objects, not the one of a kubeconfig")
    (config,) = configs
    context = _named(config, "contexts", "context", str(config.get("current-context") or ""))
    cluster = _named(config, "clusters", "cluster", str(context.get("cluster") or ""))
    server = _server(cluster, file)
    user = _user(config, context, file)
    tls = None
    if server.scheme == "https":
        tls = _context(_data(cluster, "certificate-authority", file))
        _load_client(tls, user, file)
    token_file = user.get("tokenFile")
    return Access(
        str(server.hostname),
        server.port or (443 if tls else 80),
        tls,
        str(user.get("token") or ""),
        file.parent / str(token_file) if token_file else None,
        server.path.rstrip("/"),
        _plugin(user, cluster, tls, file),
        _proxy(cluster, server, file) if tls else None,
        str(cluster.get("tls-server-name") or ""),
    )


def _plugin(
    user: Mapping[str, Any], cluster: Mapping[str, Any], tls: ssl.SSLContext | None, file: Path
) -> ExecPlugin | None:
    """Return the program that has a user's credentials; None if there is none. Its answers go to no plain server."""
    given = user.get("exec")
    if given is None:
        return None
    if not isinstance(given, yaml_tree.Fields) or tls is None:
        raise KubernetesError(f"{file}: exec of a user needs a command, and a server that is encrypted")
    authority = _data(cluster, "certificate-authority", file)
    described = {
        key: str(cluster[key]) for key in ("server", "tls-server-name", "proxy-url") if cluster.get(key)
    }
    if authority:
        described["certificate-authority-data"] = base64.b64encode(authority.encode()).decode()
    try:
        plugin = ExecPlugin(given, described, file.parent)
        extensions = [mapping(one, "extensions") for one in items(cluster.get("extensions"), "extensions")]
    except KubernetesError as error:
        raise KubernetesError(f"{file}: {error}") from None
    if plugin.wants_cluster and any(one.get("name") == _FOR_PROGRAM for one in extensions):
        raise KubernetesError(f"{file}: the extension {_FOR_PROGRAM} of a cluster is not supported")
    return plugin


def _proxy(cluster: Mapping[str, Any], server: SplitResult, file: Path) -> Proxy | None:
    url = str(cluster.get("proxy-url") or "")
    try:
        return proxy(url) if url else from_environment(str(server.hostname), server.port or 443)
    except (KubernetesError, ValueError) as error:
        raise KubernetesError(f"{file}: {error}") from None


def _server(cluster: Mapping[str, Any], file: Path) -> SplitResult:
    """Return the URL of a cluster's server, which is encrypted unless it is this host."""
    if str(cluster.get("insecure-skip-tls-verify")).lower() == "true":
        raise KubernetesError(
            f"{file}: insecure-skip-tls-verify is not supported; name the certificate authority"
        )
    server = urlsplit(str(cluster.get("server") or ""))
    if server.scheme not in ("http", "https") or not server.hostname:
        raise KubernetesError(
            f"{file}: server = {_checks.shown(cluster.get('server'))} is not an http or https URL"
        )
    if server.scheme == "http" and server.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise KubernetesError(f"{file}: {server.hostname} is not this host, and http is not encrypted")
    return server


def _user(config: Mapping[str, Any], context: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
    if not context.get("user"):
        return {}
    user = _named(config, "users", "user", str(context["user"]))
    if strange := sorted({"auth-provider", "username", "password"} & user.keys()):
        raise KubernetesError(
            f"{file}: {strange[0]} of a user is not supported; use a token, a certificate or exec"
        )
    return user


def _named(config: Mapping[str, Any], listed: str, kind: str, name: str) -> Mapping[str, Any]:
    """Return what a kubeconfig says of the context, cluster or user of this name."""
    for one in config.get(listed) or ():
        if isinstance(one, yaml_tree.Fields) and one.get("name") == name:
            found = one.get(kind)
            if isinstance(found, yaml_tree.Fields):
                return found
    raise KubernetesError(f"kubeconfig: {listed} has no {_checks.shown(name)}")


def _data(entry: Mapping[str, Any], key: str, file: Path) -> str:
    """Return a certificate or key that an entry has as data or as the name of a file; "" if it has none."""
    if encoded := entry.get(f"{key}-data"):
        try:
            return base64.b64decode(str(encoded), validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            raise KubernetesError(f"{file}: {key}-data is not base64 of a PEM text") from None
    return _read(file.parent / str(entry[key])) if entry.get(key) else ""


def load_pair(context: ssl.SSLContext, certificate: str, key: str | None = None) -> None:
    """Load the client certificate of a PEM file into a context; the key is in the file `key`, else in the same file.

    OSError if they cannot be used, also if the key is encrypted: OpenSSL would ask for its passphrase and wait.
    """

    def refuse() -> str:
        raise OSError("the key is encrypted")

    context.load_cert_chain(certificate, key, password=refuse)


def _context(authority: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=authority or None)
    except ssl.SSLError as error:
        raise KubernetesError(f"the certificate authority cannot be read: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _load_client(context: ssl.SSLContext, user: Mapping[str, Any], file: Path) -> None:
    certificate, key = (_data(user, f"client-{what}", file) for what in ("certificate", "key"))
    if certificate:
        _load_pem(context, certificate, key, str(file))


def _load_pem(context: ssl.SSLContext, certificate: str, key: str, what: str) -> None:
    with tempfile.NamedTemporaryFile(
        "w", suffix=".pem"
    ) as both:  # ssl reads files only; this one is ours alone
        both.write(f"{certificate}\n{key}\n")
        both.flush()
        try:
            load_pair(context, both.name)
        except (ssl.SSLError, OSError) as error:
            raise KubernetesError(f"{what}: the client certificate cannot be used: {error}") from None


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise KubernetesError(f"{path} has more than {_MOST_BYTES} bytes")
        return path.read_text("utf-8")
    except OSError as error:
        raise KubernetesError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise KubernetesError(f"{path}: {error}") from None
