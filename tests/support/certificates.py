"""Certificates for tests of TLS, made with openssl."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"


def write_certificates(folder: Path, subjects: Mapping[str, str]) -> None:
    """Write an authority, ca.crt, and for each name a certificate of it for 127.0.0.1, such as a.crt and a.key.

    The file a.encrypted holds that key with a passphrase.
    subjects: the subject of each name, as openssl writes it. The test is skipped without openssl.
    """
    uses = "-addext keyUsage=critical,keyCertSign"  # Python 3.13 and newer refuse an authority that does not state them
    _openssl(folder, f"req -x509 {_KEY} -keyout ca.key -out ca.crt -subj /CN=ca -days 2 {uses}")
    (folder / "ext").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid", "utf-8")
    for name, subject in subjects.items():
        _openssl(folder, f"req {_KEY} -keyout {name}.key -out {name}.csr -subj {subject}")
        signed = f"-CA ca.crt -CAkey ca.key -CAcreateserial -out {name}.crt -days 2 -extfile ext"
        _openssl(folder, f"x509 -req -in {name}.csr {signed}")
        _openssl(folder, f"pkey -in {name}.key -aes256 -passout pass:secret -out {name}.encrypted")


def _openssl(folder: Path, words: str) -> None:
    try:
        subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
