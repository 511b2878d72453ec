# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option that names a file or folder to write: used by root in a folder like /tmp, where another
user has put a symbolic link first. The options come from the help, so that a new one needs a row here."""
import os
import re
import stat
from pathlib import Path

import pytest

import jobs
import support
from commands import COMMANDS
from environment import OK, PERMISSION
from files_support import PYTHON, USER, folder, needs_root, program, run, write  # noqa: F401 (fixtures)
from test_later_features import BUSY, sticky  # noqa: F401 (fixture)

PACKAGE = support.ROOT / "package"
AGENT = Path(support.BINARY).with_name("libprobing-agent.so")
SECRET = b"only root may read this line\n"
NOWHERE = "clickhouse://127.0.0.1:1/none"
READ = "it is only read"
PROFILE = ("perf", "--duration", "0.2")

# Root's commands, with PID for a process and PATH for the link; "…/" marks a folder that is written to.
FILES = {
    ("performance", "--output"): [
        *(("PID", *PROFILE, "-o", "PATH" + end) for end in (
            ".profile", ".html", ".svg", ".pb.gz", ".collapsed", ".speedscope.json", ".otlp")),
        ("PID", *PROFILE, "--ring", "9s", "-o", "PATH.profile"),
        ("PID", "perf", "--background", "--duration", "1", "-o", "PATH.profile"),
        ("PID", *PROFILE, "--when", "1", "-o", "PATH.profile")],
    ("flamegraph", "--output"): [("PID", "flamegraph", "--duration", "0.2", "-o", "PATH" + end)
                                 for end in (".html", ".profile")],
    ("symbolize", "--output"): [("RECORDING", "symbolize", "--from", "OWN", "-o", "PATH.profile")],
    ("memory", "--output"): [("PID", "memory", "--sites", "0.2s", "-o", "PATH.html")],
    ("memory", "--snapshot-gpu"): [("PID", "memory", "--snapshot-gpu", "PATH", "-d", "0.1s")],
    ("snapshot", "--output"): [("PID", "snapshot", "-o", "PATH")],
    ("export", "--textfile"): [("export", "prometheus", "PID", "--textfile", "PATH")],
    ("run", "--output"): [("run", "--timeout", "0.5", "--grace", "0.1", "-o", "PATH", "--", PYTHON, "-c",
                           "import time; time.sleep(60)")],
    ("cluster", "--save"): [("RANKS", "cluster", "hang", "--save", "PATH")],
    ("cluster", "--output"): [("RANKS", "cluster", "perf", "--duration", "0.2", "-o", "PATH" + end)
                              for end in (".profile", ".html")],
    ("inject", "--token-file"): [("PID", "inject", "--listen", "127.0.0.1:0", "--token-file", "PATH")],
    ("serve", "--token-file"): [("PID", "serve", "-a", "127.0.0.1:0", "--token-file", "PATH")],
    ("serve", "--address"): [("PID", "serve", "-a", "unix:PATH")],
    ("node", "--listen"): [("node", "--listen", "unix:PATH", "--state", "OWN")],
    ("node", "--listen-token"): [("node", "--listen", "127.0.0.1:0", "--listen-token", "PATH", "--state", "OWN")],
}
FOLDERS = {
    ("record", "--output"): [("PID", "record", "-o", "PATH")],
    ("watch", "--output"): [("watch", "PID", "-o", "PATH")],
    ("serve", "--dashboards"): [("PID", "serve", "-a", "127.0.0.1:0", "--dashboards", "PATH")],
    ("cluster", "--state"): [("cluster", "ship", "--to", NOWHERE, "--state", "PATH")],
    ("node", "--state"): [("node", "--crashes", "--state", "PATH"), ("node", "--watch-jobs", "--state", "PATH")],
}
# All other options whose value is a place; "*" is each command.
OTHERS = {
    ("*", "--exe"): READ, ("*", "--sysroot"): READ, ("*", "--library-path"): READ,
    ("*", "--token-file"): "a client's: it is only read",
    ("symbolize", "--from"): READ,
    ("performance", "--annotate"): READ, ("flamegraph", "--annotate"): READ,
    ("performance", "--diff"): READ, ("flamegraph", "--diff"): READ, ("memory", "--diff"): READ,
    ("cluster", "--host-file"): READ, ("serve", "--host-file"): READ, ("why", "--host-file"): READ,
    ("cluster", "--bring"): "it is written on other machines, into a fresh folder",
    ("serve", "--bring"): "it is written on other machines, into a fresh folder",
    ("why", "--bring"): "it is written on other machines, into a fresh folder",
    ("cluster", "--ras"): "an address of the network", ("serve", "--ras"): "an address of the network",
    ("why", "--ras"): "an address of the network",
    ("cluster", "--password-file"): READ, ("node", "--password-file"): READ,
    ("*", "--script"): READ, ("debug", "--debugpy"): READ,
    ("query", "--input"): READ, ("eval", "--file"): READ,
    ("debug", "--dap"): "an address of the network", ("debug", "--address"): "an address of the network",
    ("dap", "--listen"): "an address of the network",
    ("inject", "--library"): READ,
    ("inject", "--listen"): "an address of the network", ("dap", "--listen"): "an address of the network",
    ("inject", "--address"): "an address of the network",
    ("inject", "--define"): "crash.folder: the target writes, with its own rights; test_crash_records.py",
    ("serve", "--cert"): READ, ("serve", "--key"): READ,
}
REFUSED = re.compile(rb"is a symbolic link of user %d|exists already|belongs to another user" % USER)
PLACE = re.compile(r"\b(FILE|FOLDER|PATH|DIRS?|ADDR(ESS)?|SOCKET|K=V)\b")


def completed():
    """(command, option) pairs that a shell completes with names of files."""
    command = None
    for line in run("completion", "zsh").stdout.decode().splitlines():
        begins = re.match(r"\t\t([a-z|]+)\) _arguments", line)
        command = begins[1].split("|")[0] if begins else command
        option = re.search(r"(--[a-z-]+)'?\[.*:[^:]*_files", line)
        if option:
            yield command, option[1]


def places():
    """(command, option) pairs whose value is a place, by its name or by its completion."""
    found = {each for each in completed() if each[1] != "--target"}
    for command in COMMANDS:
        text = run("help", command).stdout.decode()
        for option, value in re.findall(r"^ +(?:-., )?(--[a-z-]+)[ =](\S+)  +", text, re.M):
            if PLACE.search(value):
                found.add((command, option))
    return found


def test_every_option_that_names_a_place_has_a_row():
    known = {*FILES, *FOLDERS, *OTHERS}
    found = places()
    assert not {each for each in found if each not in known and ("*", each[1]) not in known}
    assert not {each for each in known if each[0] != "*" and each not in found
                and ("*", each[1]) not in known}, "rows of missing options"


def rows(table):
    return [pytest.param(words, id="%s%s-%d" % (*name, number))
            for name, all_words in table.items() for number, words in enumerate(all_words)]


def link_of_another(path, target):
    os.symlink(target, path)
    os.chown(path, USER, USER, follow_symlinks=False)


def way_by_anothers_link(kind, folder, sticky, target):  # noqa: F811
    """A folder that leads to the target, if a link of another user is followed."""
    if kind == "folder of theirs":  # where nobody else may put a link
        theirs = folder / "of-theirs"
        theirs.mkdir()
        link_of_another(theirs / "way", target)
        os.chown(theirs, USER, USER)
        return theirs / "way"
    link_of_another(sticky / "way", target)
    if kind == "direct":
        return sticky / "way"
    own = folder / "links"
    own.mkdir()
    text = sticky / "way" if kind == "link to it" else os.path.join("..", sticky.name, "way")
    (own / "way").symlink_to(text)
    return own / "way"


def a_sticky_one(path):
    path.mkdir()
    (path / "sticky").mkdir()
    (path / "sticky").chmod(0o1777)
    return path, path / "sticky"


WAYS = ["direct", "link to it", "relative link to it", "folder of theirs"]


def attempt(words, path, own):
    """Runs it, as root, with a process that is busy or with a rank of a job."""
    values = {"PATH": str(path), "OWN": str(own)}
    if "RANKS" in words:
        with jobs.ranks("/usr/bin/python3", 1):
            values["RANKS"] = None
            given = [word for word in words if word != "RANKS"]
            return run(*given[:2], jobs.ADDRESS, *(each.replace("PATH", str(path)) for each in given[2:]))
    with program(BUSY, "burn", "burn.py") as process:
        values["PID"] = str(process.pid)
        if "RECORDING" in words:
            own.mkdir(exist_ok=True)
            values["RECORDING"] = str(own / "made.profile")
            assert not run(values["PID"], *PROFILE, "-o", values["RECORDING"]).returncode
        return run(*(re.sub("PID|PATH|OWN|RECORDING", lambda found: values[found[0]], word) for word in words),
                   timeout=60)


def path_of(words):
    """The end that the row gives the name."""
    return next(word for word in words if "PATH" in word).partition("PATH")[2]


@needs_root
@pytest.mark.parametrize("words", rows(FILES))
def test_a_file_of_root_behind_anothers_link(folder, sticky, words):  # noqa: F811
    secret = write(folder / "secret", SECRET, 0o600)
    before = os.stat(secret)
    link_of_another(str(sticky / "out") + path_of(words), secret)
    done = attempt(words, sticky / "out", folder / "own")
    assert done.returncode != OK, done
    assert REFUSED.search(done.stderr), done
    assert secret.read_bytes() == SECRET and os.stat(secret).st_ino == before.st_ino
    assert stat.S_IMODE(os.stat(secret).st_mode) == 0o600
    assert os.listdir(sticky) == ["out" + path_of(words)]


@needs_root
@pytest.mark.parametrize("words", rows(FILES))
def test_nothing_is_made_behind_anothers_link(folder, sticky, words):  # noqa: F811
    """Dangling links, and links within the path."""
    private = folder / "private"
    private.mkdir(0o700)
    end = path_of(words)
    link_of_another(str(sticky / "out") + end, private / "new")
    os.symlink(str(sticky / "out") + end, str(folder / "last") + end)
    ways = [way_by_anothers_link(kind, *a_sticky_one(folder / kind.replace(" ", "-")), private) for kind in WAYS]
    for path in (sticky / "out", folder / "last", *(way / "out" for way in ways)):
        done = attempt(words, path, folder / "own")
        assert done.returncode != OK and REFUSED.search(done.stderr), (path, done)
        assert not os.listdir(private), (path, done)


@needs_root
@pytest.mark.parametrize("words", rows(FOLDERS))
@pytest.mark.parametrize("kind", WAYS)
@pytest.mark.parametrize("below", ["", "/deeper"], ids=["link", "on the way"])
def test_a_folder_of_root_behind_anothers_link(folder, sticky, words, below, kind):  # noqa: F811
    private = folder / "private"
    private.mkdir(0o700)
    done = attempt_rings(words, str(way_by_anothers_link(kind, folder, sticky, private)) + below)
    assert done.returncode == PERMISSION, done
    assert b"is a symbolic link of user %d" % USER in done.stderr, done
    assert not os.listdir(private)


def attempt_rings(words, path):
    """With a process that has a ring, and wrote rows to it."""
    ringed = [PYTHON, str(support.HERE / "programs" / "stored.py"), str(PACKAGE)]
    environment = {"PATH": os.environ["PATH"], "PROBING_AGENT": str(AGENT), "PROBING_DATA_DIR": os.path.dirname(
        os.path.dirname(path)) + "/own"}
    with support.Program(ringed, env=environment) as process:
        assert process.line().startswith("ready"), "it has no ring"
        process.send(b"10\n")
        process.line()
        return run(*(word.replace("PATH", path).replace("PID", str(process.pid)) for word in words),
                   timeout=60)
