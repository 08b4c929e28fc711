"""Options of subcommands that answer over HTTP: address, certificate, and clients."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


def add_protection(parser: argparse.ArgumentParser) -> None:
    """Add --tls, --client-ca and --token-file, which `tls` and `token` read."""
    parser.add_argument("--tls", metavar="CERT,KEY", help="PEM files of the server's certificate and its key")
    parser.add_argument(
        "--client-ca", metavar="FILE", help="require clients to have a certificate from this authority"
    )
    parser.add_argument(
        "--token-file", metavar="FILE", help="require requests to carry the token in this file"
    )


def listened(text: str, flag: str) -> tuple[str, int]:
    """Return the address and the port in the value of an option."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 1 << 16 and host):
        raise ValueError(f"{flag} = {text[:60]!r} is not an address and a port, as in 127.0.0.1:8888")
    return host.strip("[]"), int(port)


def tls(arguments: argparse.Namespace) -> ssl.SSLContext | None:
    """Return the TLS context of --tls and --client-ca; None without them."""
    from topoplace_hosts.kubernetes.extender.running import server_tls

    if arguments.tls is None:
        if arguments.client_ca is not None:
            raise ValueError("--client-ca has an effect only with --tls")
        return None
    certificate, comma, key = arguments.tls.partition(",")
    if not comma:
        raise ValueError(f"--tls = {arguments.tls[:60]!r} is not a certificate and a key, as in a.crt,a.key")
    for flag, name in (("--tls", certificate), ("--tls", key), ("--client-ca", arguments.client_ca)):
        if name is not None:
            _check_readable(flag, name)
    _check_authority(arguments.client_ca)
    try:
        return server_tls(certificate, key, arguments.client_ca)
    except OSError as error:
        raise ValueError(f"--tls {certificate},{key}: {_pair_fault(error)}") from None


def _check_readable(flag: str, name: str) -> None:
    """Raise ValueError with the option and the name of the file if it cannot be read."""
    try:
        with open(name, "rb") as file:
            file.read(1)
    except (OSError, ValueError) as error:
        raise ValueError(f"{flag} {name!r}: {getattr(error, 'strerror', None) or error}") from None


def _check_authority(name: str | None) -> None:
    """Raise ValueError unless the file `name` of --client-ca has a certificate; None is no file."""
    import ssl

    try:
        if name is not None:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(name)
    except OSError as error:
        raise ValueError(f"--client-ca {name}: no certificate in PEM ({error.strerror or error})") from None


def _pair_fault(error: OSError) -> str:
    """Return in words why a certificate and a key cannot be used."""
    import ssl

    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key is not that of the certificate"
    return f"not a certificate and its key in PEM ({error})"


def token(arguments: argparse.Namespace) -> str:
    """Return the token in the file of --token-file; "" without one."""
    path: str | None = arguments.token_file
    if path is None:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            token = file.read(1 << 16).strip()
    except OSError as error:
        raise ValueError(f"--token-file {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"--token-file {path}: {error}") from None
    if not token or not token.isascii():
        raise ValueError(f"--token-file {path}: no token of ASCII characters")
    return token
