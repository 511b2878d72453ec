# SPDX-License-Identifier: GPL-3.0-or-later
"""Read-only interfaces run no code in a target and change no setting of it: every entrance for SQL, with
every changing statement."""
import json
import re
import shutil
import subprocess
import urllib.parse

import pytest

import debuggers
import jobs
import library
import remote
import support
from gateway_client import Gateway
from terminal import environment

PYTHON = "/usr/bin/python3"
PRODUCT = [folder for folder in support.ROOT.iterdir()
           if folder.is_dir() and folder.name not in ("tests", "build", "build-aux", "docs", "web")]

SOURCE = """
import time
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


class Job:
    """Two ranks, and files that appear if a rank, or we, executed the attack."""

    def __init__(self, ranks, folder):
        self.ranks, self.folder = ranks, folder
        self.pid = ranks[0].pid
        self.gateways, self.service = {}, None
        self.attacks = {
            "expression": "SELECT * FROM python.`open('%s', 'w').close()`" % (folder / "ran"),
            "expression in an expression": "SELECT (SELECT count(*) FROM python.\"open('%s', 'w')\")" % (folder / "ran"),
            "setting": "SET probing.sample_rate = 0.25",
            "attach": "ATTACH '%s' AS evil" % (folder / "attached"),
            "load_extension": "SELECT load_extension('%s')" % (folder / "evil.so"),
            "pragma": "PRAGMA temp_store_directory = '%s'" % folder,
        }

    def unchanged(self):
        """No file was made, and nothing of ours is in the ranks."""
        for rank in self.ranks:
            with open("/proc/%d/maps" % rank.pid, encoding="utf-8") as maps:
                if "probing-agent" in maps.read():
                    return False
        return not list(self.folder.iterdir())

    def gateway(self, *words):
        if words not in self.gateways:
            self.gateways[words] = Gateway(self.pid, *words)
        return self.gateways[words]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    with jobs.ranks(PYTHON, 2, source=SOURCE) as ranks, support.Program([PYTHON, "-c", SOURCE]) as other:
        running = Job(ranks, tmp_path_factory.mktemp("made"))
        other.line()
        # That one has the agent, which serves it.
        with remote.Service(other.pid) as service:
            running.service = service
            yield running
            for gateway in running.gateways.values():
                gateway.stop()


def command(*words, text=None):
    """(True if refused, the message)"""
    given = {"input": text} if text is not None else {"stdin": subprocess.DEVNULL}
    done = subprocess.run([support.BINARY, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120, check=False, env=environment(PROBING_AUTH_TOKEN=remote.TOKEN), text=True, **given)
    return done.returncode != 0, done.stdout


def from_file(job, sql, tmp_path):
    (tmp_path / "x.sql").write_text(sql)
    return command(job.pid, "query", "-i", tmp_path / "x.sql")


def request(method, path, *words):
    def ask(job, sql, _):
        place = path.replace("{id}", str(job.pid))
        if method == "GET":
            answer = job.gateway(*words).ask("%s?%s" % (place, urllib.parse.urlencode({"sql": sql})))
        else:
            answer = job.gateway(*words).ask(place, {"sql": sql}, headers={"Probing-Request": "1"})
        return answer.status >= 400, answer.text
    return ask


CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}


def mcp_messages(sql):
    return [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {**CALL, "params": {"name": "query", "arguments": {"sql": sql}}}]


def mcp(*words):
    def ask(job, sql, _):
        done = subprocess.run([support.BINARY, "mcp", str(job.pid), *words], check=True, timeout=120, text=True,
                              input="".join(json.dumps(message) + "\n" for message in mcp_messages(sql)),
                              stdout=subprocess.PIPE, env=environment())
        result = json.loads(done.stdout.splitlines()[-1])["result"]
        return result["isError"], result["content"][0]["text"]
    return ask


def mcp_of_gateway(*words):
    def ask(job, sql, _):
        result = job.gateway(*words).ask("/mcp", mcp_messages(sql)[-1]).json["result"]
        return result["isError"], result["content"][0]["text"]
    return ask


def by_library(method):
    def ask(job, sql, _):
        try:
            with library.Session(job.pid) as session:
                return False, str(method(session, sql))
        except library.Error as error:
            return True, str(error)
    return ask


def python(code):
    """Python with the package, in a process of its own; @code has the SQL in SQL, the pid in PID."""
    def ask(job, sql, _):
        done = subprocess.run([PYTHON, "-c", "SQL, PID = %r, %d\n%s" % (sql, job.pid, code)], check=False, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                              env=environment(PYTHONPATH=str(support.ROOT / "package")))
        return done.returncode != 0, done.stdout
    return ask


def script(job, sql, tmp_path):
    (tmp_path / "x.py").write_text("import probing\nfor row in probing.current().query(%r): print(row)\n" % sql)
    return command(job.pid, "script", tmp_path / "x.py")


def in_debugger(debugger):
    def ask(job, sql, _):
        if not shutil.which(debugger):
            pytest.skip("%s is not installed" % debugger)
        run = debuggers.gdb if debugger == "gdb" else debuggers.lldb
        # Debuggers have a meaning of their own for backquotes.
        session = run("probing query " + sql.replace("`", '"'), arguments=("-p", job.pid))
        text = session.out + session.err
        return "only read" in text or "not authorized to use function" in text, text
    return ask


def recording(job, sql, tmp_path):
    assert not command(job.pid, "perf", "-d", "100ms", "-o", tmp_path / "x.profile")[0]
    return python("import probing\nwith probing.attach(%r) as p: print(p.query(SQL))" % str(tmp_path / "x.profile"))(
        job, sql, tmp_path)


ROUTES = [("GET", "/v1/targets/{id}/query"), ("POST", "/v1/targets/{id}/query"), ("GET", "/v1/query"),
          ("POST", "/v1/query"), ("GET", "/query"), ("POST", "/query")]
POWERS = [(), ("--read-only",), ("--allow-write",)]

ENTRANCES = {
    "query, by a pipe": lambda job, sql, _: command(job.pid, "query", text=sql),
    "query -": lambda job, sql, _: command(job.pid, "query", "-", text=sql),
    "query -i": from_file,
    "query --watch, by a pipe": lambda job, sql, _: command(job.pid, "query", "--watch", "1", "-", text=sql),
    "query of two": lambda job, sql, _: command("-t", job.pid, "-t", job.ranks[1].pid, "query", sql),
    "query --all": lambda job, sql, _: command("-t", "/^%s .*rank.py/" % PYTHON, "query", "--all", sql),
    "query of no target": lambda job, sql, _: command("query", sql),
    "a served process, by a pipe": lambda job, sql, _: command("-t", job.service.address, "query", "-", text=sql),
    "cluster query": lambda job, sql, _: command("cluster", "query", sql, jobs.ADDRESS),
    "cluster rows": lambda job, sql, _: command("cluster", "rows", "--json", sql, jobs.ADDRESS),
    "cluster query, global": lambda job, sql, _: command(
        "cluster", "query", sql.replace("python.", "global.python."), jobs.ADDRESS),
    "cluster query, global, served": lambda job, sql, _: command(
        "cluster", "query", "--hosts", job.service.address, sql.replace("python.", "global.python.")),
    "probing_query()": by_library(lambda session, sql: session.query(sql)),
    "probing_print()": by_library(lambda session, sql: session.print(sql, "json")),
    "probing.query()": python("import probing\nprint(probing.query(SQL))"),
    "attach().query()": python("import probing\nwith probing.attach(PID) as p: print(p.query(SQL))"),
    "attach() of a recording": recording,
    "script": script,
    "gdb": in_debugger("gdb"),
    "lldb": in_debugger("lldb"),
    **{"%s %s %s" % (method, path, " ".join(words)): request(method, path, *words)
       for method, path in ROUTES for words in POWERS},
    **{"POST /mcp %s" % " ".join(words): mcp_of_gateway(*words) for words in POWERS},
    "mcp": mcp(),
    "mcp --allow-write": mcp("--allow-write"),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_every_entrance_only_reads(job, entrance, tmp_path):
    for attack, sql in job.attacks.items():
        refused, text = ENTRANCES[entrance](job, sql, tmp_path)
        assert refused, (attack, text)
        assert job.unchanged(), (attack, text)
        if attack in ("expression", "setting") and "no target" not in text and "global" not in entrance:
            assert "only reads" in text or "recording" in entrance, (attack, text)


def test_what_is_refused_says_what_to_do(job):
    for sql in (job.attacks["expression"], job.attacks["setting"]):
        refused, text = command(job.pid, "query", text=sql)
        assert refused and "this query only reads" in text and "'probing PID eval'" in text and "--allow-code" in text, text
        refused, text = command("-t", job.pid, "-t", job.ranks[1].pid, "query", sql)
        assert refused and "a query of several targets only reads" in text, text
    refused, text = command("-t", job.pid, "-t", job.ranks[1].pid, "query", "--allow-code", "SELECT 1")
    assert refused and "--allow-code is for one target that is named" in text, text
    assert job.unchanged()


def test_requests_that_read_load_nothing(job):
    """All gateway requests without the right to change targets, and each tool that claims to only read."""
    gateway = job.gateway("--read-only")
    paths = gateway.ask("/v1/openapi.json").json["paths"]
    slow = ("/v1/targets/{id}/events", "/v1/overview")
    for path, methods in paths.items():
        place = re.sub(r"\{(\w+)\}", lambda name: {"id": str(job.pid), "skill": "hang"}.get(name[1], "x"), path)
        if "get" in methods and path not in slow:
            gateway.ask(place + "?duration=0.1&expression=__name__&sql=SELECT+1")
            assert job.unchanged(), path
        if "post" in methods and methods["post"].get("description") == "Only with --allow-write.":
            assert gateway.ask(place, {}, headers={"Probing-Request": "1"}).status == 403, path


def test_typed_sql_and_asked_for(job, tmp_path):
    """The opposite: a user who types an expression for one target has requested it. Last, since it loads
    the agent."""
    with support.Program([PYTHON, "-c", SOURCE]) as program:
        program.line()
        for words, text in (((), None), (("--allow-code",), True)):
            sql = "SELECT * FROM python.`6 * 7`"
            failed, said = command(program.pid, "query", "-f", "tsv", *words, *([] if text else [sql]),
                                   **({"text": sql} if text else {}))
            assert not failed and said.split() == ["value", "42"], said
            sql = "SET probing.sample_rate = 0.25"
            failed, said = command(program.pid, "query", *words, *([] if text else [sql]),
                                   **({"text": sql} if text else {}))
            assert not failed, said
        assert "0.25" in command(program.pid, "config", "probing.sample_rate")[1]


# Where SQL is run, or handed to `query`; which of the entrances above go through it, or why none does.
RUNS_SQL = {
    "cli/commands/query/query.c": "query -",
    "cli/commands/cluster/query.c": "cluster query",
    "cli/commands/snapshot.c": "its own statements",
    "cli/commands/run/save.c": "its own statements",
    "cli/commands/skill.c": "statements of gateway/skills/",
    "gateway/metrics/read.c": "its own statements",
    "gateway/metrics/otlp_spans.c": "its own statements",
    "lib/library.c": "probing_query()",
    "sql/engine/session.c": "the engine",
    "sql/engine/declare.c": "the engine",
    "sql/engine/guard.c": "the engine",
    "sql/engine/session.h": "the engine",
    "sql/engine/statement.c": "the engine",
    "sql/engine/extension_tables.c": "the engine",
    "sql/engine/json_rows.c": "its own statements",
    "profile/store/write/condition.c": "perf --when: a database of its own, without targets; tests/live/profile/test_when.py",
    "profile/store/write/statements.c": "its own statements",
    "profile/store/write/write_batch.c": "its own statements",
    "profile/store/write/rename_stacks.c": "its own statements",
    "profile/store/load/database.c": "its own statements",
}
HANDS_SQL = {
    "cli/commands/query/query.c": "query -",
    "cli/commands/cluster/cluster.c": "cluster query",
    "cluster/reach/reach.c": "cluster query, global, served",
    "clickhouse/server.c": "a database elsewhere, which is told readonly=1; tests/live/cluster/test_clickhouse.py",
    "gateway/mcp/tools.c": "mcp",
    "gateway/routes.c": "GET /v1/targets/{id}/query ",
    "gateway/openapi.c": "no command: where a parameter stands",
    "gdbplugin/core/commands/query.py": "gdb",
    "package/probing/__init__.py": "no command: the name of probing.query()",
    "package/probing/_rows.py": "probing.query()",
}
FUNCTIONS = {"probing_query": "probing_query()", "probing_prepare": "probing_query()", "probing_print": "probing_print()"}
PYTHON_FUNCTIONS = {
    "package/probing/_rows.py query": "probing.query()",
    "package/probing/live.py query": "attach() of a recording",
    "package/probing/target.py query": "attach().query()",
    "package/probing/target.py _rows": "attach().query()",
    "package/probing/target.py _print": "attach().query()",
    "gdbplugin/core/commands/query.py unquoted": "gdb",
    "gdbplugin/core/completion.py rows": "its own statements",
    "gdbplugin/core/session.py query": "gdb",
    "gdbplugin/core/session.py print": "gdb",
    "gdbplugin/core/session.py _text": "gdb",
}


def sources(*endings):
    for folder in PRODUCT:
        for file in sorted(folder.rglob("*")):
            if file.suffix in endings:
                yield str(file.relative_to(support.ROOT)), file.read_text(encoding="utf-8")


def test_no_entrance_is_missing(job):
    """A new place that takes SQL has to have its row here."""
    found = {name for name, text in sources(".c", ".h")
             if re.search(r"\b(prb_session_create|probing_create|sqlite3_prepare_v[23]|sqlite3_exec)\(", text)
             and name != "lib/probing.h"}
    assert found == set(RUNS_SQL)
    found = {name for name, text in sources(".c", ".py") if '"query"' in text}
    assert found == set(HANDS_SQL)
    # The one command that may allow changes.
    found = {name for name, text in sources(".c", ".py") if re.search(r"\bprb_session_allow_changes\(|--allow-code", text)}
    assert found == {"cli/commands/query/query.c", "sql/engine/session.c", "sql/engine/changes.c"}
    header = (support.ROOT / "lib" / "probing.h").read_text(encoding="utf-8")
    assert set(re.findall(r"(probing_\w+)\(struct probing \*p, const char \*sql", header)) == set(FUNCTIONS)
    assert len(re.findall(r"const char \*sql\b", header)) == len(FUNCTIONS)
    found = {"%s %s" % (name, function) for name, text in sources(".py")
             for function in re.findall(r"def (\w+)\([^)]*\bsql\b", text)}
    assert found == set(PYTHON_FUNCTIONS)
    paths = job.gateway().ask("/v1/openapi.json").json["paths"]
    found = {(method.upper(), path) for path, methods in paths.items() for method, said in methods.items()
             if '"sql"' in json.dumps(said.get("parameters", [])) + json.dumps(said.get("requestBody", {}))}
    documented = {(method, path) for method, path in ROUTES if path != "/query"}
    assert found | {("GET", "/query"), ("POST", "/query")} == documented | {("GET", "/query"), ("POST", "/query")}
    asked = job.gateway("--allow-write").ask("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).json
    assert [tool["name"] for tool in asked["result"]["tools"] if "sql" in tool["inputSchema"]["properties"]] == ["query"]
    named = {*RUNS_SQL.values(), *HANDS_SQL.values(), *FUNCTIONS.values(), *PYTHON_FUNCTIONS.values()}
    reasons = ("its own", "the engine", "statements of", "perf --when", "a database", "no command")
    assert {name for name in named if not name.startswith(reasons)} <= set(ENTRANCES)
