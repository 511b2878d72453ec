# SPDX-License-Identifier: GPL-3.0-or-later
"""A file system that hangs: FUSE whose server has begun, and then answers nothing any more."""
import contextlib
import ctypes
import os
import struct

import pytest

INIT, DETACH = 26, 2


@contextlib.contextmanager
def mounted(folder):
    """Mounts it there. Opening a file in it blocks until the end of the block, and then fails. Gives the
    server's descriptor."""
    if os.getuid():
        pytest.skip("needs root")
    libc = ctypes.CDLL(None, use_errno=True)
    folder = os.fsencode(folder)
    os.makedirs(folder, exist_ok=True)
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        pytest.skip("FUSE cannot be used here: %s" % error)
    try:
        if libc.mount(b"hung", folder, b"fuse", 0, b"fd=%d,rootmode=40000,user_id=0,group_id=0" % device):
            pytest.skip("FUSE cannot be used here: %s" % os.strerror(ctypes.get_errno()))
        try:
            request = os.read(device, 1 << 17)
            operation, unique = struct.unpack_from("<IQ", request, 4)
            assert operation == INIT
            answer = struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 12, 10, 65536, 1, 0, 0, *[0] * 8)
            os.write(device, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
            yield device
        finally:
            libc.umount2(folder, DETACH)
    finally:
        os.close(device)
