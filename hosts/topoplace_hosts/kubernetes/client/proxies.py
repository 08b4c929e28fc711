"""The proxy to an API server: `proxy-url` of a kubeconfig, or HTTPS_PROXY and NO_PROXY."""

from __future__ import annotations

import base64
import os
import urllib.request
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from topoplace import _checks
from topoplace.errors import KubernetesError


class Proxy(NamedTuple):
    """A proxy that opens tunnels (CONNECT)."""

    host: str
    port: int
    headers: tuple[tuple[str, str], ...] = ()


def proxy(url: str) -> Proxy:
    """Return the proxy at an http URL; KubernetesError for any other URL."""
    found = urlsplit(url)
    if found.scheme != "http" or not found.hostname:
        raise KubernetesError(f"the proxy {_checks.shown(url)} is not an http URL")
    headers: tuple[tuple[str, str], ...] = ()
    if found.username is not None:
        pair = f"{unquote(found.username)}:{unquote(found.password or '')}"
        headers = (("Proxy-Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"),)
    return Proxy(found.hostname, found.port or 80, headers)


def from_environment(host: str, port: int) -> Proxy | None:
    """Return the proxy that HTTPS_PROXY names for a server; None without one, or if NO_PROXY lists the server."""
    url = urllib.request.getproxies_environment().get("https")
    if not url or host == "localhost" or _is_excepted(host, port):
        return None
    return proxy(url if "://" in url else f"http://{url}")


def _is_excepted(host: str, port: int) -> bool:
    listed = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    entries = [one.strip() for one in listed.split(",")]
    if "*" in entries or urllib.request.proxy_bypass(f"{host}:{port}"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or any(_has(one, address) for one in entries)


def _has(network: str, address: IPv4Address | IPv6Address) -> bool:
    try:
        return address in ip_network(network, strict=False)
    except ValueError:
        return False
