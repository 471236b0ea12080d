"""The unit in docs/operations.md starts as it is written: on a read-only system, without a home."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from configparser import ConfigParser
from pathlib import Path

import pytest

import covey
from covey.kernels.bundle import cache_directory
from tests.docs.pages import ROOT, blocks, unit_of

NOT_ALLOWED = 97
"""What the script ends with where this machine lets nobody mount."""
SOMEONE = 65534
"""A user without rights."""

# A mount namespace as systemd makes one for these directives; what it is about is in the test below. $PLACES is what a
# checkout needs that an installed package has in /opt/covey: it is shown where it is, be it below a directory that is
# hidden. The command is run as $USER_ID, or as root where that user can't read it even so.
SCRIPT = f"""
root=$1; venv=$2; etc=$3; state=$4; shift 4
try() {{ "$@" || exit {NOT_ALLOWED}; }}
hide() {{ if [ -d "$root$1" ]; then try mount -t tmpfs -o mode="$2" tmpfs "$root$1"; fi; }}
show() {{
    printf '%s\\n' "$PLACES" | while read -r place; do
        if [ ! -e "$root$place" ]; then
            mkdir -p "$root$place"; try mount --bind "$place" "$root$place"
            try mount -o remount,bind,ro "$root$place"
        fi
    done || exit $?
}}
try mount --make-rprivate /
try mount --rbind / "$root"
hide /opt 0755; mkdir "$root/opt/covey"; try mount --bind "$venv" "$root/opt/covey"
try mount --bind "$etc" "$root/etc"
hide /var/lib 0755; mkdir "$root/var/lib/$state"
for home in /home /root /run/user; do hide "$home" 0755; done
show
findmnt -rn -o TARGET | grep "^$root" | grep -v "^$root/\\(proc\\|sys\\|dev\\)" | while read -r place; do
    try mount -o remount,bind,ro "$place"
done
if [ "$PRIVATE_TMP" = true ]; then
    hide /tmp 1777; hide /var/tmp 1777; show
fi
if touch "$root/usr/written" 2> /dev/null; then echo "the system can be written" >&2; exit 1; fi
someone="setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups"
if [ "$USER_ID" = 0 ] || ! chroot "$root" $someone "$PYTHON" -c "import covey.network.server" 2> /dev/null; then
    USER_ID=0; someone=
fi
try mount -t tmpfs -o mode=0700,uid=$USER_ID,gid=$USER_ID tmpfs "$root/var/lib/$state"
# Kernels that were edited since they were compiled for the package needn't be compiled once more.
if [ "$PRIVATE_TMP" = true ] && [ -d "$KERNELS" ]; then
    (umask 077; mkdir -p "$root/tmp/covey-$USER_ID/covey-kernels")
    cp -r "$KERNELS" "$root/tmp/covey-$USER_ID/covey-kernels/"
    chown -R "$USER_ID:$USER_ID" "$root/tmp/covey-$USER_ID"
fi
cd /
exec chroot "$root" env -i PATH=/usr/bin:/bin STATE_DIRECTORY="/var/lib/$state" $someone "$@"
"""


def unit() -> ConfigParser:
    """The unit as the page has it."""
    return unit_of(next(one for one in blocks(ROOT / "docs" / "operations.md") if one.file_name == "covey.service"))


def etc(directory: Path) -> Path:
    """What there is of /etc: the page's configuration, with another port, and who is who."""
    (directory / "covey").mkdir(parents=True)
    block = next(block for block in blocks(ROOT / "docs" / "operations.md") if block.file_name == "a.toml")
    (directory / "covey" / "a.toml").write_text(block.text.replace("port = 7400", "port = 0"))
    for name in ("passwd", "group", "ld.so.cache", "nsswitch.conf", "hosts", "localtime"):
        if Path("/etc", name).exists():
            shutil.copy(Path("/etc", name), directory / name)
    return directory


def places() -> list[str]:
    """Where the interpreter, the packages that are installed and covey are, by the names that they are called by."""
    named = [sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(covey.__file__).parents[1])]
    return list(dict.fromkeys(one for name in named for one in (name, os.path.realpath(name))))


def test_the_unit_starts_as_it_is_written(tmp_path: Path) -> None:
    if any(shutil.which(program) is None for program in ("unshare", "mount", "findmnt", "chroot")):
        pytest.skip("mount namespaces are made by unshare, mount, findmnt and chroot")
    service = dict(unit()["Service"])
    assert (service["ProtectSystem"], service["ProtectHome"]) == ("strict", "true")
    user = SOMEONE if os.getuid() == 0 and shutil.which("setpriv") else 0
    (tmp_path / "root").mkdir()
    (tmp_path / "script").write_text(SCRIPT)
    broker = subprocess.Popen(
        ["unshare", *(["-m"] if os.getuid() == 0 else ["-r", "-m"]), "sh", str(tmp_path / "script"),
         str(tmp_path / "root"), sys.prefix, str(etc(tmp_path / "etc")), service["StateDirectory"],
         *shlex.split(service["ExecStart"])],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PRIVATE_TMP": service.get("PrivateTmp", ""), "KERNELS": str(cache_directory()),
             "USER_ID": str(user), "PYTHON": sys.executable, "PLACES": "\n".join(places())},
    )  # fmt: skip
    try:
        assert broker.stdout is not None
        line = broker.stdout.readline()
        if not line:
            _, said = broker.communicate(timeout=20)
            if broker.returncode in (1, NOT_ALLOWED) and ("unshare failed" in said or broker.returncode == NOT_ALLOWED):
                pytest.skip(f"this machine allows no mount namespaces: {said.strip().splitlines()[-1:]}")
            pytest.fail(said)
        found = re.search(r"listens on ws://(127\.0\.0\.1:\d+)", line)
        assert found is not None, line
        with urllib.request.urlopen(f"http://{found[1]}/readyz", timeout=20) as answer:
            assert answer.read() == b"ok\n"
        assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
        broker.send_signal(signal.SIGHUP)
        assert broker.stderr is not None
        # Where kernels were edited since they were compiled, it says so first.
        assert any("reloaded: /etc/covey/a.toml" in line for line in broker.stderr)
        broker.terminate()
        assert broker.wait(timeout=20) == 0
    finally:
        broker.kill()
        broker.communicate()
