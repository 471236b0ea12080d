"""Certificates for tests, by the `openssl` command: one authority, and whoever it signs for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from covey.network import TlsFiles

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates by openssl")


class Authority:
    """Signs certificates for names."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self._directory = directory
        self.certificate = directory / "authority.pem"
        self._key = directory / "authority.key"
        _openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=authority", "-keyout", self._key, "-out", self.certificate,
        )  # fmt: skip

    def sign(self, name: str, names: str = "") -> TlsFiles:
        """A certificate for a name, good for this machine too; or with this name only as the common one, beside
        others."""
        key, request, certificate = (self._directory / f"{name}.{end}" for end in ("key", "csr", "pem"))
        extensions = self._directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names or f'DNS:{name}'},DNS:localhost,IP:127.0.0.1\n")
        _openssl(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
            "-keyout", key, "-out", request,
        )  # fmt: skip
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial",
            "-days", "2", "-extfile", extensions, "-out", certificate,
        )  # fmt: skip
        return TlsFiles(certificate, key, self.certificate)


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
