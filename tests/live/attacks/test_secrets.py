# SPDX-License-Identifier: GPL-3.0-or-later
"""Redacted output contains no secret of a process: from its command line, its environment, or its
variables."""
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import urllib.parse

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
UNKNOWN = 16  # exit code of a hang
HUNG = 124
HEADER = 88  # of a snapshot; the rest is compressed
# The code contains no part of a secret: constants would be shown on purpose.
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
        self.words, self.env = words, dict(
            os.environ, MASTER_ADDR=jobs.ADDRESS, MASTER_PORT="29501", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1",
            API_TOKEN=ENVIRONMENT)
        self.program = support.Program(words, env=self.env)
        self.pid = self.program.pid

    def __enter__(self):
        assert self.program.line() == "ready"
        support.wait_for_sleep(self.pid, "nanosleep", timeout=60)
        return self

    def __exit__(self, *about):
        self.program.__exit__(*about)


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


def none_in(text):
    assert not [secret for secret in SECRETS if secret.encode() in text], text


def ran(rank, folder):
    """The same program once more; the report on stderr is redacted, too."""
    done = subprocess.run([support.BINARY, "run", "--timeout", "2s", "--redact", "-o", folder / "x.probing", "--",
                           *rank.words], env=rank.env, capture_output=True, check=False, timeout=120)
    assert done.returncode == HUNG, done
    none_in(done.stderr)
    return (folder / "x.probing").read_bytes()


def watched(rank, folder):
    os.kill(rank.pid, signal.SIGSTOP)
    done = subprocess.run([support.BINARY, "watch", "--once", "--hang", "1s", "--every", "1s", "--redact", "-o", folder,
                           str(rank.pid)], capture_output=True, check=False, timeout=120)
    os.kill(rank.pid, signal.SIGCONT)
    none_in(done.stdout + done.stderr)
    for report in folder.glob("*.txt"):
        none_in(report.read_bytes())
    [saved] = folder.glob("*.probing")
    return saved.read_bytes()


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
            pytest.skip("%s is not installed" % name)
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
    "run --redact": ran,
    "watch --redact": watched,
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
    with Rank(tmp_path, kind) as rank:
        texts = list(parts(REDACTED[output](rank, tmp_path)))
    assert sum(map(len, texts)) > 1000
    for secret in SECRETS:
        for text in (secret.encode(), secret.encode("utf-16-le")):
            assert not [at for at, part in enumerate(texts) if text in part], (output, secret)


# The redacting commands, a row for each.
ASKS = {
    "cli/commands/snapshot.c": "snapshot --redact",
    "cli/commands/cluster/cluster.c": "cluster hang --save --redact",
    "cli/commands/run/run.c": "run --redact",
    "cli/commands/run/watch.c": "watch --redact",
    "gateway/routes.c": "GET /v1/targets/ID/snapshot?redact=1",
    "gateway/mcp/tools.c": "the tool snapshot",
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
    assert users == {"base/text.c", "target/snapshot/writer.c", "target/spec/command_line.c", "cluster/jobs/job.c",
                     "cluster/jobs/process_tree.c",
                     "cli/commands/run/round.c"}


# Values that the class of an object leaves out of its repr().
HIDDEN = """
import sys
def made(number):
    return "hidden-%d-" % number + "secret"
class SecretStr:
    def __init__(self, value):
        self._secret_value = value
    def get_secret_value(self):
        return self._secret_value
def work(items):
    print("ready", flush=True)
    sys.stdin.read()
class OtherName:
    def __init__(self, value):
        self.kept = value
    def get_secret_value(self):
        return self.kept
class WithSlots:
    __slots__ = ("kept",)
    __init__, get_secret_value = OtherName.__init__, OtherName.get_secret_value
class SecretList(list):
    def get_secret_value(self):
        return self[0]
class SecretDict(dict):
    def get_secret_value(self):
        return self["key"]
class SecretText(str):
    def get_secret_value(self):
        return str(self)
class SecretBytes(bytes):
    def get_secret_value(self):
        return bytes(self)
items = {"SecretStr": SecretStr(made(0)), "OtherName": OtherName(made(10)), "WithSlots": WithSlots(made(11)),
         "SecretList": SecretList([made(12)]), "SecretDict": SecretDict(key=made(13)), "SecretText": SecretText(made(14)),
         "SecretBytes": SecretBytes(made(15).encode())}
# As the library has them.
class Secret:
    def __init__(self, value):
        self._value = value
    def __repr__(self):
        return "Secret('**********')"
class URL:
    def __init__(self, url):
        from urllib.parse import urlsplit
        self._url, self._components = url, urlsplit(url)
    def __repr__(self):
        return "URL(...)"
class DatabaseURL(URL):
    pass
Secret.__module__ = URL.__module__ = "starlette.datastructures"
items.update(Secret=Secret(made(16)), URL=URL("https://ann:%s@host/" % made(17)), DatabaseURL=DatabaseURL("pg://:%s@h" % made(18)),
             Open=URL("https://host/open?to=a@b"))
try:
    import dataclasses
    @dataclasses.dataclass
    class Login:
        user: str
        password: str = dataclasses.field(default=made(20), repr=False)
    class Derived(Login):
        pass
    items.update(Login=Login("ann", made(1)), Derived=Derived("bob", made(2)), LoginClass=Login, DerivedClass=Derived)
    if sys.version_info >= (3, 10):
        @dataclasses.dataclass(slots=True)
        class Slotted:
            user: str
            password: str = dataclasses.field(repr=False)
        items["Slotted"] = Slotted("cid", made(3))
except (ImportError, SyntaxError):
    pass
try:
    import attr
    @attr.s
    class Account:
        user = attr.ib()
        password = attr.ib(repr=False)
        masked = attr.ib(default=made(21), repr=lambda value: "***")
    @attr.s(slots=True)
    class SlottedAccount:
        user = attr.ib()
        password = attr.ib(repr=False)
    items.update(Account=Account("dan", made(4), made(19)), SlottedAccount=SlottedAccount("eve", made(5)),
                 AccountClass=Account)
except ImportError:
    pass
try:
    import pydantic
    class Settings(pydantic.BaseModel):
        user: str
        password: pydantic.SecretStr
        token: str = pydantic.Field(made(22), repr=False)
        key: pydantic.SecretBytes = b""
    items["Settings"] = Settings(user="fay", password=made(6), token=made(7), key=made(8).encode())
    items["SettingsClass"] = Settings
except ImportError:
    pass
work(items)
"""


class Holder:
    def __init__(self, program, folder):
        assert program.line() == "ready"
        self.pid, self.folder = program.pid, folder
        support.wait_for_all_asleep(self.pid, 1)

    def sql(self, *words):
        return probing(self.pid, "query", "-f", "json", *words).decode()


SQL = {"locals": "SELECT value FROM python.locals", "attributes":
       "SELECT a.value, b.value, b.value_address FROM python.locals l, python.items(l.address) i, "
       "python.attributes(i.value_address) a LEFT JOIN python.attributes(a.value_address) b WHERE l.name = 'items'",
       "items": "SELECT i.value, j.value FROM python.locals l, python.items(l.address) i LEFT JOIN "
       "python.items(i.value_address) j WHERE l.name = 'items'"}
PRINTED = ["items", "items['Login'].password", "vars(items['Login'])", "items['Login'].__dict__", "items['Slotted'].password",
           "items['SecretStr']._secret_value", "items['Derived']", "items['Account'].password", "items['Settings']",
           "items['OtherName'].kept", "items['WithSlots'].kept", "items['SecretList']", "items['SecretList'][0]",
           "items['SecretDict']['key']", "items['SecretText']", "items['SecretBytes']", "items['Secret']._value",
           "items['URL']._url", "items['URL']._components", "items['DatabaseURL']", "items['Open']", "items['Account'].masked",
           *("%s['%sClass']%s" % (text, name, more) for name in ("Login", "Derived", "Account", "Settings")
             for text, more in [("items", ".password"), ("items", ".__dict__"), ("vars(items", ")"), ("items", ".__doc__")]),
           "items['LoginClass'].__dataclass_fields__['password'].default", "items['AccountClass'].__attrs_attrs__",
           "items['SettingsClass'].__pydantic_fields__", "items['SettingsClass'].__signature__",
           "items['Settings'].token", "items['Settings'].password._secret_value"]
VIEWS = {
    "dump": lambda h, *more: probing(h.pid, "dump", "--locals", "--depth", "4", "--max-items", "100", *more).decode(),
    "dump --json": lambda h, *more: probing(h.pid, "dump", "--locals", "--depth", "4", "--max-items", "100", "--json", *more).decode(),
    "backtrace": lambda h, *more: probing(h.pid, "backtrace", "--locals", "--depth", "4", *more).decode(),
    "print": lambda h, *more: "".join(probing_may_fail(h.pid, "print", "--depth", "4", *more, text) for text in PRINTED),
    "query": lambda h, *more: h.sql("--depth", "4", "--max-items", "100", *more, SQL["locals"]),
    "python.attributes": lambda h, *more: h.sql(*more, SQL["attributes"]),
    "python.items": lambda h, *more: h.sql(*more, SQL["items"]),
}


def probing_may_fail(*words):
    done = subprocess.run([support.BINARY, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          timeout=120, env=environment(), text=True)
    return done.stdout


@pytest.fixture(scope="module", params=support.one_per_version((3, 7)), ids=repr)
def holder(request, tmp_path_factory):
    with support.Program([request.param.exe, "-c", HIDDEN], env=request.param.env) as program:
        yield Holder(program, tmp_path_factory.mktemp("hidden"))


@pytest.mark.parametrize("view", VIEWS)
def test_what_a_class_hides_is_hidden(holder, view):
    text = VIEWS[view](holder)
    assert "<hidden>" in text, text
    assert not re.search(r"hidden-\d+-", text), text
    shown = VIEWS[view](holder, "--secrets")
    assert "<hidden>" not in shown and "hidden-0-secret" in shown, shown
    assert view in ("python.attributes", "python.items") or "//host/open" in text, text  # a URL without a user
    # A dataclass that has the repr() of all dataclasses shows as that says.
    assert "hidden-1-secret" in shown or view not in ("print", "python.attributes"), shown


def test_what_a_gateway_and_an_assistant_tell(holder):
    with Gateway(holder.pid) as gateway:
        texts = [gateway.ask("/v1/targets/%d/stacks?locals=1" % holder.pid).text,
                 gateway.query(holder.pid, SQL["attributes"]), gateway.query(holder.pid, SQL["locals"]),
                 *(gateway.ask("/v1/targets/%d/value?depth=4&expression=%s" % (holder.pid, urllib.parse.quote(text))).text
                   for text in PRINTED)]
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        for name, arguments in (("dump", {"locals": True}), ("print_value", {"expression": "items['Login'].password"}),
                                ("query", {"sql": SQL["attributes"]})):
            texts.append(gateway.ask("/mcp", {**call, "params": {"name": name, "arguments": arguments}}).text)
        refused = gateway.ask("/v1/targets/%d/query" % holder.pid, {"sql": "SET probing.values.secrets = 1; " + SQL["attributes"]})
        assert refused.status == 422 and "this query only reads" in refused.text
    assert not re.search(r"hidden-\d+-", str(texts)), texts
    assert "<hidden>" in str(texts)


def test_what_a_snapshot_shows(holder):
    file = holder.folder / "x.snapshot"
    probing(holder.pid, "snapshot", "-o", file)
    for words in (("dump", "--locals"), ("query", SQL["locals"]), ("print", "items['Login']")):
        assert not re.search(r"hidden-\d+-", probing(file, *words).decode())
