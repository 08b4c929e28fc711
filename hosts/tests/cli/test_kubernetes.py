"""Certificates of `topoplace kubernetes`: what cannot be used is named with its option and its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from certificates import write_certificates
from command_line import Call

EXTENDER = ("kubernetes", "extender", "summit")


@pytest.mark.parametrize(
    ("tls", "authority", "message"),
    [
        ("none.crt,a.key", None, "--tls 'none.crt': No such file or directory"),
        ("a.crt,none.key", None, "--tls 'none.key': No such file or directory"),
        ("a.crt,", None, "--tls '': No such file or directory"),
        ("a.crt,.", None, "--tls '.': Is a directory"),
        ("a.crt,b.key", None, "--tls a.crt,b.key: the key is not that of the certificate"),
        ("a.crt,a.encrypted", None, "--tls a.crt,a.encrypted: the key is encrypted"),
        ("a.crt,text", None, "--tls a.crt,text: not a certificate and its key in PEM ("),
        ("text,a.key", None, "--tls text,a.key: not a certificate and its key in PEM ("),
        ("a.crt,a.key", "none.crt", "--client-ca 'none.crt': No such file or directory"),
        ("a.crt,a.key", "text", "--client-ca text: no certificate in PEM ("),
    ],
)
def test_a_certificate_that_cannot_be_used_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Call,
    tls: str,
    authority: str | None,
    message: str,
) -> None:
    write_certificates(tmp_path, {"a": "/CN=a", "b": "/CN=b"})
    (tmp_path / "text").write_text("no certificate", "utf-8")
    monkeypatch.chdir(tmp_path)
    client = () if authority is None else ("--client-ca", authority)
    done = call(*EXTENDER, "--tls", tls, *client)
    assert done.code == 2
    assert done.err.startswith(f"topoplace: {message}")
    assert done.err.count("\n") == 1
