# SPDX-License-Identifier: GPL-3.0-or-later
"""What is redacted holds no secret that a process was given: by its command line, its environment, or in its variables."""
import io
import json
import os
import re
import shutil
import subprocess
import tarfile

import pytest

import debuggers
import environment as machine
import jobs
import library
import remote
import support
from gateway_client import Gateway
from terminal import environment

PYTHON = "/usr/bin/python3"
UNKNOWN = 16  # what a hang is
HEADER = 88  # of a snapshot; what follows is compressed
# No part of a secret stands in the code, where constants would be told on purpose.
SOURCE = """
import sys, time
def work(password, token):
    print("ready", flush=True)
    while True:
        time.sleep(1000)
def made(what):
    return "".join(map(chr, what))
work(made(%r), {"token": made(%r)})
"""
ARGUMENT, OPTION, SHORT, VARIABLE, IN_A_DICT, ENVIRONMENT, CODE, TITLE = SECRETS = [
    "argv-7d1f0c-secret", "option-0a7c31-secret", "short-52b1aa-secret", "variable-c0ffee-secret", "dict-facade-secret",
    "environ-9e3b1d-secret", "code-41d2b7-secret", "title-6ab0e2-secret"]


def source():
    return SOURCE % (list(map(ord, VARIABLE)), list(map(ord, IN_A_DICT)))


class Rank:
    """One process with secrets; a job of its own."""

    def __init__(self, folder, kind):
        file = folder / "train.py"
        file.write_text(source())
        words = {"arguments": [PYTHON, file, "--password", ARGUMENT, "--token=" + OPTION, "-p" + SHORT],
                 "option first": [PYTHON, "-Xsecret" + OPTION, file, "--password", ARGUMENT],
                 "code": [PYTHON, "-c", source() + "# " + CODE, ARGUMENT],
                 "code beside its option": [PYTHON, "-c" + source() + "# " + CODE, ARGUMENT],
                 "title": ["bash", "-c", 'exec -a "worker: --token %s" "$@"' % TITLE, "bash", PYTHON, file, ARGUMENT],
                 }[kind]
        self.program = support.Program(words, env=dict(
            os.environ, MASTER_ADDR=jobs.ADDRESS, MASTER_PORT="29501", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1",
            API_TOKEN=ENVIRONMENT))
        assert self.program.line() == "ready"
        self.pid = self.program.pid
        support.wait_for_sleep(self.pid, "nanosleep", timeout=60)


def probing(*words, **given):
    done = subprocess.run([support.BINARY, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=120, env=environment(PROBING_AUTH_TOKEN=remote.TOKEN), **given)
    assert done.returncode in (0, UNKNOWN), done
    return done.stdout


def snapshot(rank, folder):
    probing(rank.pid, "snapshot", "--redact", "-o", folder / "x.snapshot")
    return (folder / "x.snapshot").read_bytes()


def bundle(rank, folder):
    probing("cluster", "hang", jobs.ADDRESS, "--save", folder / "x.probing", "--redact")
    return (folder / "x.probing").read_bytes()


def by_gateway(rank, _):
    with Gateway(rank.pid) as gateway:
        answer = gateway.ask("/v1/targets/%d/snapshot?redact=1" % rank.pid)
    assert answer.status == 200, answer
    return answer.body


def by_assistant(rank, folder):
    messages = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "snapshot", "arguments": {"redact": True}}}]
    said = probing("mcp", rank.pid, cwd=folder, input="".join(json.dumps(each) + "\n" for each in messages).encode())
    assert not json.loads(said.splitlines()[-1])["result"]["isError"], said
    return (folder / ("probing-%d.snapshot" % rank.pid)).read_bytes()


def by_library(rank, folder):
    with library.Session(rank.pid) as session:
        library.check(library.LIBRARY.probing_snapshot(session.pointer, str(folder / "x.snapshot").encode(), 1))
    return (folder / "x.snapshot").read_bytes()


def by_debugger(name):
    def make(rank, folder):
        if not shutil.which(name):
            pytest.skip(name + " is not installed")
        run = debuggers.gdb if name == "gdb" else debuggers.lldb
        session = run("probing snapshot --redact %s" % (folder / "x.snapshot"), arguments=("-p", rank.pid))
        assert (folder / "x.snapshot").exists(), session
        return (folder / "x.snapshot").read_bytes()
    return make


def served(rank, folder):
    with remote.Service(rank.pid) as service:
        probing("-t", service.address, "snapshot", "--redact", "-o", folder / "x.snapshot")
    return (folder / "x.snapshot").read_bytes()


REDACTED = {
    "snapshot --redact": snapshot,
    "snapshot --redact -o -": lambda rank, _: probing(rank.pid, "snapshot", "--redact", "-o", "-"),
    "cluster hang --save --redact": bundle,
    "GET /v1/targets/ID/snapshot?redact=1": by_gateway,
    "the tool snapshot": by_assistant,
    "probing_snapshot()": by_library,
    "gdb": by_debugger("gdb"),
    "lldb": by_debugger("lldb"),
    "a served process": served,
}


def parts(data):
    """The members of a bundle, each as it is without compression; or the one snapshot."""
    if data.startswith(b"probing-bundle"):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive.getmembers():
                inner = archive.extractfile(member).read()
                yield from parts(inner) if member.name.endswith(".snapshot") else [inner]
        return
    yield data[:HEADER]
    yield subprocess.run(["zstd", "-dcq"], input=data[HEADER:], stdout=subprocess.PIPE, check=True).stdout


WAYS = [("arguments", output) for output in REDACTED] + [
    (kind, output) for kind in ("option first", "code", "code beside its option", "title")
    for output in ("snapshot --redact", "cluster hang --save --redact")]


@pytest.mark.parametrize("kind, output", WAYS)
def test_no_secret_is_left(kind, output, tmp_path):
    machine.need("zstd")
    rank = Rank(tmp_path, kind)
    with rank.program:
        texts = list(parts(REDACTED[output](rank, tmp_path)))
    assert sum(map(len, texts)) > 1000
    for secret in SECRETS:
        for text in (secret.encode(), secret.encode("utf-16-le")):
            assert not [at for at, part in enumerate(texts) if text in part], (output, secret)


# Where something is asked to be redacted, and its row.
ASKS = {
    "cli/commands/snapshot.c": "snapshot --redact",
    "cli/commands/cluster.c": "cluster hang --save --redact",
    "gateway/routes.c": "GET /v1/targets/ID/snapshot?redact=1",
    "gateway/mcp_tools.c": "the tool snapshot",
    "gdbplugin/core/commands/snapshot.py": "gdb",
    "lib/probing.h": "probing_snapshot()",
}


def test_no_output_is_missing():
    found = set()
    for folder in support.ROOT.iterdir():
        if not folder.is_dir() or folder.name in ("tests", "build", "docs", "web"):
            continue
        for file in folder.rglob("*"):
            if file.suffix in (".c", ".h", ".py"):
                if re.search(r'[{(]"redact"|\bint redact\) PROBING', file.read_text(encoding="utf-8")):
                    found.add(str(file.relative_to(support.ROOT)))
    assert found == set(ASKS) and set(ASKS.values()) <= set(REDACTED)


def test_one_function_cuts_command_lines():
    """A redacted output that has a command line has it from there."""
    users = {str(file.relative_to(support.ROOT)) for folder in ("base", "target", "cluster", "cli", "dump", "lib", "profile")
             for file in (support.ROOT / folder).rglob("*.c")
             if re.search(r"prb_text_cut_command\(|prb_command_line_cut\(", file.read_text(encoding="utf-8"))}
    assert users == {"base/text.c", "target/snapshot/writer.c", "target/spec/command_line.c", "cluster/job.c"}
