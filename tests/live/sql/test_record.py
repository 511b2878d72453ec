# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing record`: rows dropped by rings are stored, and one table has both."""

import contextlib
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest
import support

PACKAGE = Path(__file__).resolve().parents[3] / "package"
AGENT = Path(support.BINARY).with_name("libprobing-agent.so")
PART = 10000  # rows; the ring has room for some 34,000
ALL = "SELECT count(*) AS n, count(DISTINCT number) AS different, min(number) AS first, max(number) AS last, " \
    "sum(length(text)) AS bytes, count(DISTINCT kind) AS kinds FROM user.stored"

WRONG = "SELECT count(*) AS n FROM user.stored WHERE kind IS NOT 'kind' || (number % 7)"


def expected(count):
    return {"n": count, "different": count, "first": 0, "last": count - 1,
            "bytes": sum(number % 50 for number in range(count)), "kinds": min(count, 7)}


def cold_files(folder):
    return sorted(folder.glob("*.cold"))


class Writer:
    """A process with a ring of much that is dropped."""

    def __init__(self, folder, python="/usr/bin/python3"):
        environment = {"PROBING_DATA_DIR": str(folder), "PROBING_AGENT": str(AGENT), "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen(
            [str(python), str(support.HERE / "programs" / "stored.py"), str(PACKAGE)], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)
        self.pid, self.count = self.process.pid, 0
        self.ring = Path(self.process.stdout.readline().split()[1])
        self.folder = self.ring.parent

    def write(self, count=PART):
        self.process.stdin.write("%d\n" % count)
        self.process.stdin.flush()
        self.count = int(self.process.stdout.readline())

    def cold(self):
        return cold_files(self.folder)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def writer(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    made = Writer(folder)
    yield made
    made.end()


def recorder(*words, **options):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PROBING_")}
    return subprocess.Popen([support.BINARY, "record", *map(str, words)], env=environment,
                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)


def ended(process):
    _, err = process.communicate(timeout=60)
    return process.returncode, err.decode()


def query(probing, target, sql=ALL, folder=None):
    """Also of a process that has ended, whose folder is found by PROBING_DATA_DIR."""
    done = probing(target, "query", "-f", "json", sql,
                   env={"PROBING_DATA_DIR": str(folder)} if folder else None)
    assert done.code == 0, done
    return json.loads(done.out)[0]


def stored_chunks(probing, folder):
    """Rows that cold files have."""
    rows = 0
    for path in cold_files(folder):
        done = probing(path, "query", "-f", "json", "SELECT count(*) AS n FROM user.stored")
        rows += json.loads(done.out)[0]["n"] if done.code == 0 else 0
    return rows


def write_while_stored(probing, writer, parts):
    """No more than the ring holds is written before the recorder has caught up."""
    for _ in range(parts):
        writer.write()
        while stored_chunks(probing, writer.folder) < writer.count - 1500:
            time.sleep(0.02)


def test_a_name_that_looks_like_the_end(probing, tmp_path):
    """A process may have any name, also the kernel's mark of an ended one."""
    folder, python = tmp_path / "data", tmp_path / "a) Z b"
    folder.mkdir(mode=0o700)
    python.symlink_to("/usr/bin/python3")
    named = Writer(folder, python)
    process = recorder(named.pid)
    try:
        named.write()
        while stored_chunks(probing, named.folder) < named.count - 1500:
            assert process.poll() is None, ended(process)
            time.sleep(0.02)
    finally:
        named.end()
    code, err = ended(process)
    assert code == 0 and "dropped" not in err, err
    assert query(probing, named.folder) == expected(named.count)


def test_all_rows_before_and_after_the_end(probing, writer):
    process = recorder(writer.pid)
    write_while_stored(probing, writer, 6)
    assert query(probing, writer.pid) == expected(writer.count)
    late = query(probing, writer.pid, "SELECT count(*) AS n FROM user.stored WHERE timestamp > now() + 3600")
    assert late == {"n": 0}
    writer.end()
    code, err = ended(process)
    assert code == 0 and "chunks of 1 rings" in err and "dropped" not in err, err
    assert query(probing, writer.pid, folder=writer.folder.parent) == expected(writer.count)
    # Without the ring, which the last part was copied of.
    writer.ring.unlink()
    assert query(probing, writer.folder) == expected(writer.count)
    listed = probing("list", "--dead", "--json", env={"PROBING_DATA_DIR": str(writer.folder.parent)})
    assert writer.pid in [row["pid"] for row in json.loads(listed.out)]


def test_killed_recorders_lose_and_invent_nothing(probing, writer):
    for _ in range(6):
        process = recorder(writer.pid)
        write_while_stored(probing, writer, 1)
        process.kill()
        ended(process)
    files = writer.cold()
    assert len(files) > 1
    # A part left half written by a killed recorder does not count.
    with files[-1].open("ab") as file:
        file.write(b"\1\0\0\0\xff\0\0\0" + b"x" * 50)
    assert query(probing, writer.pid) == expected(writer.count)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = recorder(writer.pid)
        writer.write()
        while not support.catches(process.pid, number):
            assert process.poll() is None, ended(process)
        process.send_signal(number)
        code, err = ended(process)
        assert code == 0 and "stored" in err
    assert query(probing, writer.pid) == expected(writer.count)
    # A damaged part is left out, wherever the damage is.
    whole = files[0].read_bytes()
    frame = whole.index(b"\x28\xb5\x2f\xfd")  # the first one, of strings
    for place in [frame + 12] + [len(whole) * part // 16 for part in range(1, 16)]:
        with files[0].open("r+b") as file:
            file.seek(place)
            file.write(b"\0" * 64)
        row = query(probing, writer.pid)
        assert row["n"] == row["different"] < writer.count and row["last"] == writer.count - 1, place
        assert query(probing, writer.pid, WRONG)["n"] == 0, place
        files[0].write_bytes(whole)
    assert query(probing, writer.pid) == expected(writer.count)


def frames(data):
    """Where the zstd frames of a cold file begin."""
    at, found = -1, []
    while (at := data.find(b"\x28\xb5\x2f\xfd", at + 1)) >= 0:
        found.append(at)
    return found


def test_what_is_damaged_is_read_from_the_ring(probing, writer):
    """While the ring has it yet. Chunks that a cold file has are not read from there again."""
    process = recorder(writer.pid)
    writer.write()
    while stored_chunks(probing, writer.folder) < writer.count - 1500:
        time.sleep(0.02)
    process.terminate()
    assert ended(process)[0] == 0
    file, = writer.cold()
    whole = file.read_bytes()
    for number, frame in enumerate(frames(whole)[1:]):  # the first is of strings
        file.write_bytes(whole[:frame + 12] + bytes(16) + whole[frame + 28:])
        assert query(probing, writer.pid) == expected(writer.count), number
    for chunks in ("first", "all but the last", "all"):
        parts = frames(whole)[1:]
        damaged = bytearray(whole)
        for frame in {"first": parts[:1], "all but the last": parts[:-1], "all": parts}[chunks]:
            damaged[frame + 12:frame + 28] = bytes(16)
        file.write_bytes(damaged)
        assert query(probing, writer.pid) == expected(writer.count), chunks


def test_a_part_that_claims_gigabytes(writer):
    """It takes no memory, and the other parts are read."""
    process = recorder(writer.pid)
    writer.write()
    while not writer.cold():
        time.sleep(0.02)
    process.terminate()
    assert ended(process)[0] == 0
    file, = writer.cold()
    with file.open("r+b") as cold:
        end = cold.seek(0, os.SEEK_END)
        for kind, number in ((1, 1 << 20), (2, 0)):
            # struct prb_cold_part, with bounds that say that its rows are wanted; then a hole.
            cold.write(struct.pack("<IIQ", kind, 0x80000000, number) + b"\xff" * 16)
            end = cold.seek(0x80000000, os.SEEK_CUR)
        cold.truncate(end)
    assert file.stat().st_size > 1 << 32 and file.stat().st_blocks * 512 < 8 << 20

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    done = subprocess.run([support.BINARY, str(writer.pid), "query", "-f", "json", ALL], preexec_fn=limit,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                          check=False)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)[0] == expected(writer.count)


def test_another_folder_and_what_is_too_old(probing, writer, tmp_path):
    output = tmp_path / "cold"
    output.mkdir(mode=0o700)
    process = recorder(writer.pid, "-o", output)
    for _ in range(5):
        writer.write()
        time.sleep(0.1)
    writer.end()
    assert ended(process)[0] == 0
    folder, = output.iterdir()
    assert query(probing, folder)["last"] == writer.count - 1 and not writer.cold()
    other = Writer(writer.folder.parent)
    try:
        old = other.folder / "user.other.0000000000000000.cold"
        shutil.copy(str(next(folder.iterdir())), str(old))
        os.utime(str(old), (1, 1))
        process = recorder(other.pid, "--keep", "1h")
        other.write()
        while old.exists():
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        other.end()
    assert ended(process)[0] == 0 and other.cold()


def test_a_full_disk(probing, writer):
    """Here a limit of the size of files: it is reported, and the process runs on."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))

    process = recorder(writer.pid, preexec_fn=limit, restore_signals=False)
    writer.write(3 * PART)
    while not writer.cold():
        time.sleep(0.02)
    writer.end()
    code, err = ended(process)
    assert code == 0 and err.count("File too large") == 1, err
    rows = query(probing, writer.folder)
    assert rows["n"] == rows["different"] and rows["last"] == writer.count - 1


def test_processes_that_are_started_later(probing, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    code = "import subprocess, sys; sys.stdin.readline(); sys.exit(subprocess.call([sys.executable, %r, %r]))" % (
        str(support.HERE / "programs" / "stored.py"), str(PACKAGE))
    environment = {"PROBING_DATA_DIR": str(folder), "PROBING_AGENT": str(AGENT), "PATH": os.environ["PATH"]}
    with subprocess.Popen(["/usr/bin/python3", "-u", "-c", code], env=environment, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, bufsize=0) as parent:
        process = recorder(parent.pid, "--subprocesses")
        parent.stdin.write(b"begin\n")
        path = Path(parent.stdout.readline().split()[1].decode())
        parent.stdin.write(b"3000\n")
        parent.stdout.readline()
        while not list(path.parent.glob("*.cold")):
            assert process.poll() is None
            time.sleep(0.02)
        parent.stdin.close()
    assert ended(process)[0] == 0
    path.unlink()
    assert query(probing, path.parent)["n"] > 2000


def test_others_go_on_when_one_has_ended(probing, writer):
    """Its descriptors are closed, and are not those of rings still being stored."""
    other = Writer(writer.folder.parent)
    process = recorder(writer.pid, other.pid)
    fds = Path("/proc/%d/fd" % process.pid)
    try:
        write_while_stored(probing, writer, 1)
        write_while_stored(probing, other, 1)
        before = len(list(fds.iterdir()))
        writer.end()
        while len(list(fds.iterdir())) > before - 3:
            assert process.poll() is None
            time.sleep(0.02)
        write_while_stored(probing, other, 6)
    finally:
        other.end()
    code, err = ended(process)
    assert code == 0 and err.startswith("probing: stored ") and "chunks of 2 rings" in err, err
    for each in (writer, other):
        assert query(probing, each.folder) == expected(each.count)


def follows(fds, pid):
    """True if the recorder with these descriptors has the folder of that process open."""
    for fd in fds.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(str(fd)).split(" ")[0].split("/")[:3] == ["", "proc", str(pid)]:
                return True
    return False


def test_a_child_that_outlives_its_parent(probing, tmp_path):
    """It writes to the ring of its parent, which has ended."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    environment = {"PROBING_DATA_DIR": str(folder), "PROBING_AGENT": str(AGENT), "PATH": os.environ["PATH"]}
    with subprocess.Popen(["/usr/bin/python3", str(support.HERE / "programs" / "stored.py"), str(PACKAGE), "fork"],
                          env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as parent:
        path = Path(parent.stdout.readline().split()[1].decode())
        child = int(parent.stdout.readline().split()[1])
        process = recorder(parent.pid, "--subprocesses")
        fds = Path("/proc/%d/fd" % process.pid)
        while not follows(fds, child):
            assert process.poll() is None
            time.sleep(0.02)
        parent.kill()
        parent.wait()
        while follows(fds, parent.pid):
            assert process.poll() is None
            time.sleep(0.02)
        for part in range(1, 7):
            parent.stdin.write(b"%d\n" % PART)
            assert parent.stdout.readline() == b"%d\n" % (part * PART)
            while stored_chunks(probing, path.parent) < part * PART - 1500:
                assert process.poll() is None
                time.sleep(0.02)
        assert query(probing, path.parent)["n"] == 6 * PART
        parent.stdin.close()
    code, err = ended(process)
    assert code == 0 and "chunks of 1 rings" in err and "dropped" not in err, err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_has_room_later(probing, writer, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir(mode=0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(disk)], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs root that may mount")
    try:
        full = disk / "full"
        with full.open("wb", 0) as file, pytest.raises(OSError):
            while True:
                file.write(b"x" * 4096)
        process = recorder(writer.pid, "-o", disk)
        writer.write()
        assert b"No space left on device" in process.stderr.readline()
        full.unlink()
        output = disk / writer.folder.name
        writer.write()
        while probing(output, "query", "-f", "json", ALL).code or \
                query(probing, output)["n"] < writer.count - 1500:
            assert process.poll() is None
            time.sleep(0.02)
        writer.end()
        code, err = ended(process)
        assert code == 0 and err.startswith("probing: stored "), err
        assert query(probing, output) == expected(writer.count)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_hundred_dead_processes(probing, writer, newest):
    process = recorder(writer.pid)
    write_while_stored(probing, writer, 1)
    writer.end()
    ended(process)
    base = writer.folder.parent
    for number in range(100):
        place = base / ("%d-1" % (4194000 + number))
        place.mkdir(mode=0o700)
        for path in writer.cold():
            shutil.copy(str(path), str(place))
    env = {"PROBING_DATA_DIR": str(base)}
    listed = json.loads(probing("list", "--dead", "--json", env=env).out)
    assert len([row for row in listed if row["folder"].startswith(str(base))]) == 101
    assert query(probing, 4194007, folder=base)["n"] == query(probing, 4194001, folder=base)["n"] > 0
    code = "import sys; sys.path.insert(0, %r); import probing; probing.event('a')" % str(PACKAGE)
    subprocess.run([newest.exe, "-c", code], check=True, env=dict(
        newest.env, PROBING_AGENT=str(AGENT), PROBING_RETENTION_DAYS="0", **env))
    assert len(list(base.iterdir())) == 1


@pytest.mark.parametrize("words, text", [
    ([], "no target given"), (["-o", "x.svg", "1"], "is a picture"),
    (["/nonexistent.ring"], "nonexistent")])
def test_mistakes(probing, words, text):
    done = probing("record", *words)
    assert done.code and text in done.err, done
