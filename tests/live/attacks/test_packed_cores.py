# SPDX-License-Identifier: GPL-3.0-or-later
"""A compressed core that is small and has much in it: root unpacks it to a disk that others need."""
import gzip
import lzma
import os
import subprocess

import pytest

import support
from environment import needs
from files_support import needs_root

MIB = 1 << 20
FORMATS = {"gzip": lambda path: gzip.open(path, "wb", 1), "xz": lambda path: lzma.open(path, "wb", preset=0)}
FULL = "cannot unpack %s: after "
LONG = "cannot unpack %s: it has over 1000 times as much content as it is long"


def packed(path, kind, mib, piece):
    """Writes a packed file of so many MiB, and gives how long it is."""
    if kind == "zstd":
        with open(path, "wb") as out, subprocess.Popen(["zstd", "-q", "-c", "-3"], stdin=subprocess.PIPE,
                                                        stdout=out) as zstd:
            for _ in range(mib):
                zstd.stdin.write(piece)
            zstd.stdin.close()
    else:
        with FORMATS[kind](path) as file:
            for _ in range(mib):
                file.write(piece)
    return os.path.getsize(path)


def on_a_disk(mib, path):
    """The dump of a core on a disk of that size, and the least free space meanwhile."""
    script = """
        mount -t tmpfs -o size=%dm none /mnt && cd / || exit 99
        TMPDIR=/mnt "$@" & dump=$!
        least=999999999
        while kill -0 $dump 2>/dev/null; do
            free=$(stat -f -c '%%a' /mnt)
            [ "$free" -lt "$least" ] && least=$free
        done
        wait $dump
        echo "$? $least $(stat -f -c '%%a %%S' /mnt)"
    """ % mib
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", support.BINARY, str(path), "dump"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                          check=False)
    code, least, after, block = map(int, done.stdout.split())
    return code, least * block, after * block, done.stderr.decode()


@needs_root
@needs("no mount namespaces here", "unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt")
@pytest.mark.parametrize("kind", ["zstd", "gzip", "xz"])
def test_others_keep_room_on_the_disk(tmp_path, kind):
    """Content that cannot be packed well: there is not room for all of it, and a part of the disk stays free."""
    path = tmp_path / "core.packed"
    packed(path, kind, 80, os.urandom(MIB // 8) * 8)
    code, least, after, said = on_a_disk(60, path)
    assert code == 1 and FULL % path in said and "set TMPDIR" in said, said
    assert least >= 3 * MIB, least
    assert after >= 59 * MIB


@needs_root
@needs("no mount namespaces here", "unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt")
def test_a_core_that_is_a_thousand_times_its_length(tmp_path):
    path = tmp_path / "core.zst"
    size = packed(path, "zstd", 1500, b"\1" * MIB)
    assert size < MIB
    code, least, after, said = on_a_disk(1200, path)
    assert code == 1 and LONG % path in said and "unpack it first: zstd -d" in said, said
    assert least >= (1200 - 256) * MIB - 1000 * size - 2 * MIB
    assert after >= 1199 * MIB


@needs_root
@needs("no mount namespaces here", "unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt")
def test_zeros_take_no_room(tmp_path):
    """A process with much memory that it never used has a core that is packed to nothing: that is read."""
    path = tmp_path / "core.zst"
    packed(path, "zstd", 1500, bytes(MIB))
    code, least, _, said = on_a_disk(100, path)
    assert code == 1 and "cannot unpack" not in said and "ELF" in said, said
    assert least >= 98 * MIB
