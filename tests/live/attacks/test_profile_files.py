# SPDX-License-Identifier: GPL-3.0-or-later
"""Root records a program of another user, which names files for the page's source lines that its user
may not read, that are no files, or that are no Python."""
import os

import pytest

from environment import OK
from files_support import (  # noqa: F401 (fixtures)
    FRAME, USER, folder, give, needs_root, program, run, theirs, write)

pytestmark = needs_root
LINE = b"only_here = 'a line of the file'\n"


def page_of(folder, path):
    """The page that root gets of a program that says it is from that file."""
    with program(FRAME, str(path)) as process:
        done = run(process.pid, "flamegraph", "-m", "wall", "-d", "300ms", "-o", folder / "run.html")
    assert done.returncode == OK and not done.stderr, done
    return (folder / "run.html").read_bytes()


def test_source_of_its_user_is_read(folder, theirs):
    page = page_of(folder, write(theirs / "own.py", LINE, 0o600, USER, USER))
    assert b"only_here" in page and (folder / "run.html").stat().st_mode & 0o777 == 0o600


def test_source_that_only_root_may_read(folder):
    assert b"only_here" not in page_of(folder, write(folder / "hidden.py", LINE, 0o600))


def test_link_to_a_file_of_root(folder, theirs):
    os.symlink(write(folder / "hidden.py", LINE, 0o600), theirs / "link.py")
    assert b"only_here" not in page_of(folder, theirs / "link.py")


@pytest.mark.parametrize("name", ["notes.txt", "secret.py", "my-passwords/x.py", "API_TOKEN.py"])
def test_files_that_are_not_handed_on(folder, theirs, name):
    path = theirs / name
    path.parent.mkdir(exist_ok=True)
    assert b"only_here" not in page_of(folder, write(path, LINE))


def test_words_that_only_look_like_secrets(folder, theirs):
    assert b"only_here" in page_of(folder, write(theirs / "tokenizer.py", LINE))


def test_what_is_no_file(folder, theirs):
    os.mkfifo(theirs / "pipe.py")
    give(theirs / "pipe.py")
    (theirs / "folder.py").mkdir()
    for path in (theirs / "pipe.py", theirs / "folder.py", "/dev/zero", "", "/" * 5000 + ".py"):
        page_of(folder, path)


def test_large_and_broken(folder, theirs):
    assert b"only_here" not in page_of(folder, write(theirs / "large.py", LINE + b"#" * (5 << 20)))
    page = page_of(folder, write(theirs / "broken.py", b"</script>\xff\xfe\x1b[2J" + b"x" * 100000))
    assert page.count(b"</script>") == 3 and page.isascii() is False and len(page) < 100000
    data = page[page.index(b'id="data">'):page.rindex(b"<script")]
    assert data.isascii() and b"\\u003c/script>" in data
