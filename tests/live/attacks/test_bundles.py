# SPDX-License-Identifier: GPL-3.0-or-later
"""A bundle is an archive that anybody may have made, and a file that root writes: an error, never more."""
import io
import json
import os
import tarfile

import pytest

import jobs
import support
from files_support import USER, folder, needs_root, write  # noqa: F401 (fixtures)

OK, FAILED, USAGE, UNSUPPORTED, PERMISSION = range(5)
EVIL = "\x1b]0;owned\x07\x1b[2J\u202e"
COMMANDS = (("dump",), ("query", "SELECT 1 FROM python.threads"), ("cluster", "hang"),
            ("cluster", "nodes", "--json"))


@pytest.fixture(name="members", scope="module")
def fixture_members(tmp_path_factory):
    """The members of a good bundle, by their names."""
    file = tmp_path_factory.mktemp("bundle") / "good.probing"
    with jobs.ranks("/usr/bin/python3", 2):
        jobs.cluster("cluster", "hang", jobs.ADDRESS, "--save", file)
    with tarfile.open(file) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}


def member(name, data=b"", **fields):
    """A member of an archive; `fields` are set in its header."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.USTAR_FORMAT) + data + b"\0" * (-len(data) % 512)


def bundle(path, parts, end=b"\0" * 1024):
    path.write_bytes(b"".join(parts) + end)
    return path


def good(members):
    return [member(name, data) for name, data in members.items()]


def is_refused(path, *says):
    for words in COMMANDS:
        done = jobs.cluster(path, *words)
        assert done.returncode in (FAILED, USAGE, UNSUPPORTED), (words, done)
        assert not says or any(word in done.stderr for word in says), (words, done)
        assert "\x1b" not in done.stdout + done.stderr


def test_the_good_one_is_read(members, tmp_path):
    path = bundle(tmp_path / "a.probing", good(members))
    assert jobs.cluster(path, "dump").returncode == OK


@pytest.mark.parametrize("extra, says", [
    (member("../../../tmp/owned", b"x"), "a member that no bundle has"),
    (member("/etc/cron.d/owned", b"x"), "a member that no bundle has"),
    (member("rank-0.snapshot/../x", b"x"), "a member that no bundle has"),
    (member("rank-00.snapshot", b"x"), "a member that no bundle has"),
    (member("rank--1.snapshot", b"x"), "a member that no bundle has"),
    (member("rank-99999999.snapshot", b"x"), "a member that no bundle has"),
    (member("rank-5.snapshot", type=tarfile.SYMTYPE, linkname="/etc/shadow"),
     "a member that no bundle has"),
    (member("rank-5.snapshot", type=tarfile.LNKTYPE, linkname="rank-0.snapshot"),
     "a member that no bundle has"),
    (member("rank-5.snapshot", type=tarfile.CHRTYPE, devmajor=1, devminor=5),
     "a member that no bundle has"),
    (member("rank-5.snapshot", type=tarfile.DIRTYPE), "a member that no bundle has"),
    (member("rank-0.snapshot", b"x"), "a member comes twice"),
    (member("looks-0.json", b"{}"), "a member comes twice"),
    (member(EVIL, b"x"), "a member that no bundle has"),
], ids=str)
def test_members_that_no_bundle_has(members, tmp_path, extra, says):
    is_refused(bundle(tmp_path / "a.probing", [*good(members), extra]), says)
    assert sorted(os.listdir(tmp_path)) == ["a.probing"]


@pytest.mark.parametrize("size", [8 << 30, (1 << 33) - 1, 1 << 20])
def test_sizes_beyond_the_file(members, tmp_path, size):
    header = tarfile.TarInfo("rank-5.snapshot")
    header.size = min(size, (1 << 33) - 1)
    parts = [*good(members), header.tobuf(tarfile.USTAR_FORMAT)]
    is_refused(bundle(tmp_path / "a.probing", parts), "a member that is longer than the file")


def test_headers_that_lie(members, tmp_path):
    first, *rest = good(members)
    changed = bytearray(rest[0])
    for at, byte in ((0, 1), (124, 0xFF), (148, ord("9")), (156, ord("x")), (257, 0), (345, ord("/"))):
        broken = bytearray(changed)
        broken[at] = byte
        is_refused(bundle(tmp_path / "a.probing", [first, bytes(broken), *rest[1:]]),
                   "a member that no bundle has", "a member without a size")
    is_refused(bundle(tmp_path / "a.probing", good(members), end=b""), "the file ends early")
    is_refused(bundle(tmp_path / "a.probing", [member("probing-bundle", b"9\n"), *rest]),
               "another version")
    is_refused(bundle(tmp_path / "a.probing", [first, *[
        member("rank-%d.snapshot" % number) for number in range((1 << 17) + 1)]]),
        "too many members")


def looks(members, **changes):
    document = json.loads(members["looks-0.json"])
    document.update(changes)
    return json.dumps(document).encode()


@pytest.mark.parametrize("text", [
    b"", b"[]", b"{", b"\xff\xfe", b'{"format": 2}', b"[" * 100000, b'{"a":' * 100000,
    b'{"format": 2, "format": 2, "job": "x", "ranks": []}',
    b'{"format": 2, "job": "x", "ranks": [{"rank": -1, "pid": 1}]}',
    b'{"format": 2, "job": "x", "ranks": [{"rank": 1e300, "pid": 1}]}',
    b'{"format": 2, "job": "x", "ranks": [{"rank": 0, "pid": -1}]}',
    b'{"format": 2, "job": "x", "ranks": [5]}',
], ids=range(12))
def test_looks_that_make_no_sense(members, tmp_path, text):
    path = bundle(tmp_path / "a.probing", good({**members, "looks-0.json": text}))
    for words in (("cluster", "hang"), ("cluster", "nodes")):
        done = jobs.cluster(path, *words)
        assert done.returncode == FAILED and "cannot be understood" in done.stderr, done


def test_texts_in_looks_are_no_orders_for_a_terminal(members, tmp_path):
    """The job, hosts, commands, frames: all texts come from the author of the file."""
    document = json.loads(members["looks-0.json"])
    document.update(job=EVIL, host=EVIL)
    for rank in document["ranks"]:
        rank.update(command=EVIL, error=None, worker=EVIL, cycle=EVIL, holder=EVIL, state="T",
                    movement=99, local_rank=-5)
        for thread in rank["threads"]:
            thread.update(name=EVIL, state=EVIL, waits_for=EVIL, gil=EVIL, error=EVIL)
    for frame in document["frames"]:
        frame.update(func=EVIL, qualname=EVIL, module=EVIL, file=EVIL, kind=77)
    text = json.dumps(document).encode()
    path = bundle(tmp_path / "a.probing", good({**members, "looks-0.json": text}))
    for words in (("dump",), ("cluster", "hang"), ("cluster", "nodes"), ("cluster", "dump", "--all")):
        done = jobs.cluster(path, *words)
        assert "owned" in done.stdout, done
        assert not set("\x1b\x07\u202e") & set(done.stdout + done.stderr), done


def test_a_damaged_snapshot_harms_its_rank_only(members, tmp_path):
    broken = bytearray(members["rank-1.snapshot"])
    broken[len(broken) // 2] ^= 0xFF
    path = bundle(tmp_path / "a.probing", good({**members, "rank-1.snapshot": bytes(broken)}))
    done = jobs.cluster(path, "query", "-f", "tsv", "SELECT _target, func FROM python.backtrace")
    assert "%s/1" % path in done.stderr and "%s/0\tstep" % path in done.stdout, done
    assert jobs.cluster("%s/1" % path, "dump").returncode == FAILED


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.probing")
    assert jobs.cluster(tmp_path / "pipe.probing", "dump").returncode != OK
    assert jobs.cluster("/dev/zero/3", "dump").returncode != OK
    assert jobs.cluster(tmp_path / "pipe.probing/3", "dump").returncode != OK


@needs_root
@pytest.mark.parametrize("chain", [False, True], ids=["link", "link to a link"])
def test_root_saves_to_no_link_of_another_user(folder, chain):  # noqa: F811
    sticky = folder / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    secret = write(folder / "secret", b"only root\n", 0o600)
    path = sticky / "hang.probing"
    link = sticky / "other" if chain else path
    os.symlink(secret, link)
    os.chown(link, USER, USER, follow_symlinks=False)
    if chain:
        os.symlink("other", path)
    with jobs.ranks("/usr/bin/python3", 1):
        done = jobs.cluster("cluster", "hang", jobs.ADDRESS, "--save", path)
    assert done.returncode == PERMISSION and "symbolic link of user" in done.stderr, done
    assert secret.read_bytes() == b"only root\n"


@needs_root
def test_hosts_cannot_save_ranks_that_are_not_theirs(folder, members):  # noqa: F811
    """The first host has rank 0; the second, which is hostile, says that it has it too."""
    (folder / "odd.json").write_bytes(b"".join(good(members)) + b"\0" * 1024)
    (folder / "ssh").write_text(jobs.SSH % (folder / "odd.json"))
    os.chmod(folder / "ssh", 0o755)
    env = dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]))
    file = folder / "all.probing"
    done = jobs.cluster("cluster", "hang", "--hosts", "odd1,odd2", "--save", file, "--json", env=env)
    assert json.loads(done.stdout)["saved_ranks"] == 2, done
    with tarfile.open(fileobj=io.BytesIO(file.read_bytes())) as archive:
        assert sorted(archive.getnames()) == [
            "looks-0.json", "looks-1.json", "probing-bundle", "rank-0.snapshot", "rank-1.snapshot"]
    assert support.BINARY and jobs.cluster(file, "dump").returncode == OK
