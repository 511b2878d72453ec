# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing server` and the tables of inference servers, on a program with the classes of vLLM."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import support
from environment import wait_until

STANDIN = Path(__file__).parent / "vllm_standin.py"
OLDEST, NEWEST = support.one_per_version((3, 8))[0], support.one_per_version((3, 8), (3, 13))[-1]
SERVER = 24


def probing(*words, env=None):
    done = subprocess.run([support.BINARY, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False, env=dict(os.environ, **env or {}))
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@contextlib.contextmanager
def server(state, count=0, interpreter=NEWEST, nvcc="", standin=STANDIN, socket=""):
    env = dict(interpreter.env, STANDIN_NVCC=str(nvcc), STANDIN_ZMQ=socket)
    with support.Program([interpreter.exe, standin, state, count], env=env, start_new_session=True) as program:
        try:
            yield json.loads(program.line())
        finally:
            with contextlib.suppress(ProcessLookupError):  # the error says more
                os.killpg(program.pid, signal.SIGKILL)


def rows(pid, query):
    code, out, err = probing("-t", pid, "query", "-f", "json", query)
    assert code == 0, err
    return json.loads(out)


def verdict(pid):
    """The sentence, and how sure it is. A guess is no reason for a script to act."""
    code, out, err = probing("server", pid, "--json")
    assert err == "", err
    found = json.loads(out)["findings"]
    assert code == (SERVER if found and found[0]["confidence"] != "low" else 0) and len(found) <= 1, (code, found)
    return (found[0]["sentence"], found[0]["confidence"]) if found else (None, None)


def why(pid):
    code, out, _ = probing("why", "--json", pid)
    [target] = json.loads(out)["targets"]
    found = [each["sentence"] for each in target["findings"] if each["rule"] == "server"]
    assert code >= 10 or not found
    return found


# What is found, with each number of a process replaced by its name in the program's line.
SENTENCES = {
    "kv": r"no request can be admitted to engine core \(CORE\): 0 of 1000 blocks of the KV cache are free, held by 4 running "
          r"requests; 12 requests have waited for up to 3 m \d+ s",
    "deferred": r"nothing is admitted to engine core \(CORE\): 16 of 16 slots are held by 16 requests in "
                r"WAITING_FOR_REMOTE_KVS for up to 3 m \d+ s, and 11 requests wait behind",
    "transfer": r"nothing runs in engine core \(CORE\): 3 requests in WAITING_FOR_REMOTE_KVS for up to 3 m \d+ s",
    "grammar": r"nothing runs in engine core \(CORE\): 5 requests in WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR for up to .*",
    "reply": r"a reply was lost: engine core \(CORE\) waits for its workers, and all 2 wait for work; the oldest request is .*",
    "dead": r"1 of 2 workers of engine core \(CORE\) has ended: PID \(worker\); 8 requests wait",
    "spin": r"worker TP1 \(PID\) does not answer: it is in `(WorkerProc\.)?execute_model` .*; engine core \(CORE\) waits for it, and "
            r"1 of 2 workers wait for work; the oldest request is 3 m \d+ s old",
    "ring": r"worker TP1 \(PID\) does not answer and has not read 10 messages of the ring in shared memory: it is in .*; engine core "
            r"\(CORE\) waits for it, and 1 of 2 workers wait for work; .*",
    "compile": r"worker TP1 \(PID\) has been compiling for \d+.* with nvcc \(pid \d+\), in .*; 8 requests wait",
    "full": r"27 requests of API server \(WEB\) are not in engine core \(CORE\), which waits for work: they did not get there, or no output "
            r"has come back; .*",
    "reader": r"27 requests of API server \(WEB\) are not in engine core \(CORE\), which waits for work: thread \d+ \S.*, which takes them from "
              r"the sockets, is in `evict` .*; the oldest .*",
    "behind": r"27 requests of API server \(WEB\) are not in engine core \(CORE\), which waits for work: the scheduler has ended "
              r"them, and the outputs have not arrived; .*",
    "gone": r"16 requests of engine core \(CORE\) are no longer in API server \(WEB\): the clients are gone, and the oldest is .*",
    "blocked": r"the event loop of API server \(WEB\) has been blocked for .* by `block_loop` vllm_standin.py:\d+; it has 3 requests",
    "starved": r"the event loop of API server \(WEB\) waits for the GIL, which thread \d+ tokenizer holds in .*; it has 3 requests",
}
CERTAIN = {"dead", "compile", "blocked"}


@pytest.mark.parametrize("state", SENTENCES)
def test_a_wedge_is_named(state, tmp_path):
    nvcc = tmp_path / "nvcc"
    shutil.copy(shutil.which("sleep"), nvcc)
    with server(state, nvcc=nvcc) as pids:
        names = {"CORE": pids["core"], "WEB": pids["api"], "PID": pids["workers"][1]}
        expected = re.sub("CORE|WEB|PID", lambda match: str(names[match.group()]), SENTENCES[state])

        def is_found(pid):
            """Processes need a moment to get where they stay; what waits for the GIL does so most of the time."""
            sentence, confidence = verdict(pid)
            assert sentence is None or confidence in ("medium", "high" if state in CERTAIN else "medium")
            return sentence is not None and re.fullmatch(expected, sentence)
        # From each of its processes, and by `why`.
        for pid in (pids["core"], pids["api"], pids["workers"][0]):
            wait_until(lambda pid=pid: is_found(pid))
        wait_until(lambda: [each for each in why(pids["core"]) if re.fullmatch(expected, each)])


@pytest.mark.parametrize("state, what", [("ended", r" \(engine core\)"), ("reaped", "")])
def test_the_engine_core_has_ended(state, what):
    """Its parent has not taken notice, or has."""
    with server(state) as pids:
        expected = r"1 of 1 child processes of API server \(%d\) has ended: %d%s; 27 requests wait" % (pids["api"], pids["core"], what)
        wait_until(lambda: re.fullmatch(expected, verdict(pids["api"])[0] or ""))
        assert verdict(pids["api"])[1] == "high" and re.fullmatch(expected, why(pids["api"])[0])


def test_a_long_step_is_no_wedge():
    """Requests may be old on a busy server. A token of the last seconds says that it goes on; where nothing notes when
    tokens are made, the finding is a guess, and no reason to restart the server."""
    with server("step") as pids:
        assert verdict(pids["core"]) == (None, None)
    with server("unknown") as pids:
        def is_guessed():
            sentence, confidence = verdict(pids["core"])
            return sentence and "worker TP1" in sentence and confidence == "low"
        wait_until(is_guessed)
        assert check(pids["api"], "60s") == (0, "ok")


def test_waits_of_the_processes():
    """Which process waits for which."""
    def edges(pid):
        found = json.loads(probing("server", pid, "--json")[1])["processes"]
        return {(each["pid"], wait["pid"], wait["kind"]) for each in found for wait in each["waits_for"]}
    with server("ring") as pids:
        first, late = pids["workers"]
        wait_until(lambda: edges(pids["core"]) == {(pids["core"], late, "answer"), (first, pids["core"], "work")})
        assert "\n" + 30 * " " + "waits for worker TP1 (%d): answer\n" % late in probing("server", late)[1]
        # The table has the ring by which they do.
        edge = "SELECT kind, peer_pid FROM wait.edges"
        wait_until(lambda: rows(first, edge) == [{"kind": "ring", "peer_pid": pids["core"]}])
        wait_until(lambda: rows(pids["core"], edge) == [{"kind": "ring", "peer_pid": late}])
    with server("idle", standin=STANDIN.with_name("sglang_standin.py")) as pids:
        wait_until(lambda: edges(pids["scheduler"]) == {(pids["scheduler"], pids["tokenizer"], "work"),
                                                        (pids["detokenizer"], pids["scheduler"], "work")})


def test_a_detokenizer_behind():
    """Of SGLang: its scheduler has nothing to do, and its tokenizer manager waits for outputs."""
    with server("behind", standin=STANDIN.with_name("sglang_standin.py")) as pids:
        expected = (r"27 requests of tokenizer manager \(%(tokenizer)d\) are not in scheduler TP0 \(%(scheduler)d\), which waits for work: "
                    r"their outputs wait for detokenizer \(%(detokenizer)d\), which is in `(DetokenizerManager\.)?decode` .*; the "
                    r"oldest is 3 m \d+ s old" % pids)
        for name in ("tokenizer", "scheduler", "detokenizer"):
            wait_until(lambda pid=pids[name]: re.fullmatch(expected, verdict(pid)[0] or ""))
        names = {each["pid"]: each["program"] for each in json.loads(probing("list", "--json")[1])}
        assert [names[pids[each]] for each in ("tokenizer", "scheduler", "detokenizer")] == [
            "SGLang 0.5 tokenizer manager", "SGLang 0.5 scheduler TP0", "SGLang 0.5 detokenizer"]
    with server("idle", standin=STANDIN.with_name("sglang_standin.py")) as pids:
        assert verdict(pids["scheduler"]) == (None, None)


def test_a_scheduler_of_sglang_has_ended():
    """Nothing has a record of it."""
    with server("dead", standin=STANDIN.with_name("sglang_standin.py")) as pids:
        expected = r"1 of the child processes of tokenizer manager \(%(tokenizer)d\) has ended: %(scheduler)d \(scheduler\); 27 requests wait" % pids
        for name in ("tokenizer", "detokenizer"):
            wait_until(lambda pid=pids[name]: re.fullmatch(expected, verdict(pid)[0] or ""))


# Of SGLang, whose cache gives back what no request holds.
OF_SGLANG = {
    "slots": r"nothing is admitted to scheduler TP0 \(PID\): 4 of 4 slots are held by running requests that do not go on, whose last "
             r"token is 1 m \d+ s old; 23 requests wait; preemption is off",
    "kv": r"no request can be admitted to scheduler TP0 \(PID\): 0 of 1000 tokens of the KV cache are free, held by 4 running requests; "
          r"23 requests have waited for up to 3 m \d+ s; preemption is off",
    "preempting": r"no request can be admitted to scheduler TP0 \(PID\): 0 of 1000 tokens of .* for up to 3 m \d+ s",
    "cached": None, "prealloc": r"nothing runs in scheduler TP0 \(PID\): 3 requests in prealloc for up to 3 m \d+ s",
}


@pytest.mark.parametrize("state", OF_SGLANG)
def test_requests_of_sglang(state):
    with server(state, standin=STANDIN.with_name("sglang_standin.py")) as pids:
        expected = OF_SGLANG[state]
        if expected:
            wait_until(lambda: re.fullmatch(expected.replace("PID", str(pids["scheduler"])), verdict(pids["scheduler"])[0] or ""))
        else:
            assert verdict(pids["scheduler"]) == (None, None)
        [kv] = rows(pids["scheduler"], "SELECT total, free, cached FROM inference.kv")
        free, cached = {"slots": (300, 100), "prealloc": (300, 100), "cached": (300, 300)}.get(state, (0, 0))
        assert kv == {"total": 1000, "free": free, "cached": cached}


# Far above what the stand-in has.
LIMITS = {"kv": "request=1000", "transfer": "transfer=1000", "compile": "loop=1000", "blocked": "loop=1000", "reply": "token=1000"}


@pytest.mark.parametrize("state", LIMITS)
def test_limits(state, tmp_path, monkeypatch):
    nvcc = tmp_path / "nvcc"
    shutil.copy(shutil.which("sleep"), nvcc)
    with server(state, nvcc=nvcc) as pids:
        wait_until(lambda: verdict(pids["core"])[0])
        monkeypatch.setenv("PROBING_LIMITS", LIMITS[state])
        # Something else may be said of it: that a worker does not answer, that requests are in one process only.
        assert not re.search("no request can be admitted|nothing runs|has been compiling|blocked|lost", verdict(pids["core"])[0] or "")
        monkeypatch.setenv("PROBING_LIMITS", "requests=3")
        code, _, err = probing("server", pids["core"])
        assert code == 2 and "PROBING_LIMITS: 'requests=3' is no limit" in err


@pytest.mark.parametrize("state", ["healthy", "idle", "far"])
def test_a_healthy_server_is_left_alone(state):
    with server(state) as pids:
        for _ in range(3):
            for pid in (pids["api"], pids["core"], *pids["workers"]):
                assert verdict(pid) == (None, None)


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)), ids=repr)
def test_requests_queues_and_kv(interpreter):
    with server("kv", interpreter=interpreter) as pids:
        found = rows(pids["core"], "SELECT * FROM inference.requests ORDER BY id")
        assert [each["id"] for each in found] == ["chatcmpl-%04d" % number for number in range(16)]
        assert [each["state"] for each in found] == ["RUNNING"] * 4 + ["WAITING"] * 12
        assert [each["queue"] for each in found] == ["running"] * 4 + ["waiting"] * 12
        assert [each["slot"] for each in found] == [*range(4), *range(12)]
        assert [each["prompt_tokens"] for each in found] == [*range(100, 116)]
        assert [each["blocks"] for each in found] == [5] * 4 + [0] * 12 and {each["priority"] for each in found} == {0}
        assert all(200 < each["age"] < 1000 for each in found)
        assert {(each["part"], each["class"]) for each in found} == {("engine core", "vllm.v1.request.Request")}
        [kv] = rows(pids["core"], "SELECT * FROM inference.kv")
        assert kv == {"total": 1000, "free": 0, "cached": 1, "block_size": 16, "part": "engine core"}
        counts = rows(pids["core"], "SELECT name, count, max_count FROM inference.queues WHERE count IS NOT NULL")
        assert [(each["name"], each["count"], each["max_count"]) for each in counts] == [
            ("running", 4, 16), ("waiting", 12, None), ("skipped", 0, None), ("input", 0, None), ("output", 0, None)]
        assert rows(pids["api"], "SELECT count(*) AS n, min(part) AS part FROM inference.requests") == [
            {"n": 16, "part": "API server"}]
        assert rows(pids["workers"][0], "SELECT count(*) AS n FROM inference.requests") == [{"n": 0}]


@pytest.mark.parametrize("interpreter", [OLDEST, NEWEST], ids=repr)
def test_list_names_the_processes(interpreter):
    with server("kv", interpreter=interpreter) as pids:
        names = {each["pid"]: each["program"] for each in json.loads(probing("list", "--json")[1])}
        assert [names[pids["api"]], names[pids["core"]], *(names[pid] for pid in pids["workers"])] == [
            "vLLM 0.33 API server", "vLLM 0.33 engine core", "vLLM 0.33 worker TP0", "vLLM 0.33 worker TP1"]
        found = rows(pids["workers"][0], "SELECT pid, engine, version, part, role, requests FROM inference.servers")
        assert [(each["pid"], each["part"], each["role"], each["requests"]) for each in found] == [
            (pids["api"], "API server", "frontend", 16), (pids["core"], "engine core", "scheduler", 16),
            (pids["workers"][0], "worker TP0", "worker", 0), (pids["workers"][1], "worker TP1", "worker", 0)]
        assert {(each["engine"], each["version"]) for each in found} == {("vLLM", "0.33.0")}


def check(pid, still):
    code, out, _ = probing("check", "--json", "--still", still, pid)
    return code, json.loads(out)["state"]


def test_a_health_check_of_the_requests():
    with server("reply") as pids:
        # No token for a hundred seconds.
        wait_until(lambda: check(pids["api"], "60s") == (SERVER, "server"))
        assert check(pids["api"], "10m") == (0, "ok")
    with server("healthy") as pids:
        assert check(pids["api"], "60s") == (0, "ok")


def test_metrics():
    with server("kv") as pids:
        code, out, err = probing("export", "prometheus", pids["core"])
        assert code == 0, err
        found = dict(re.findall(r'^probing_(inference_\w+)\{.*?pid="%d".*?\} (.*)$' % pids["core"], out, re.M))
        assert 200 < float(found["inference_oldest_request_seconds"]) < 1000
        assert float(found["inference_kv_free_blocks"]) == float(found["inference_recently_admitted_requests"]) == 0
        assert re.search(r'probing_inference_requests\{[^}]*queue="waiting"[^}]*\} 12$', out, re.M), out
        assert re.search(r'probing_finding\{[^}]*rule="server"', out), out


def test_admissions_are_counted():
    with server("healthy") as pids:
        # What ends is replaced at once, in the running list.
        out = probing("export", "prometheus", pids["core"])[1]
        assert re.search(r'^probing_inference_recently_admitted_requests\{pid="%d"\} 16$' % pids["core"], out, re.M), out
        out = probing("export", "prometheus", pids["api"])[1]
        assert not re.search(r"^probing_inference_recently_admitted_requests\{", out, re.M)


def test_an_assistant_is_told():
    with server("kv") as pids:
        asked = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
                 {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
                     "name": "server", "arguments": {"target": str(pids["workers"][0])}}},
                 {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
                     "name": "skill", "arguments": {"target": str(pids["core"]), "name": "server"}}}]
        done = subprocess.run([support.BINARY, "mcp"], input="".join(json.dumps(each) + "\n" for each in asked).encode(),
                              stdout=subprocess.PIPE, check=True)
        answers = {each["id"]: each["result"] for each in map(json.loads, done.stdout.splitlines())}
        assert not answers[2]["isError"] and "no request can be admitted" in answers[2]["content"][0]["text"]
        assert not answers[3]["isError"] and "chatcmpl-0000" in answers[3]["content"][0]["text"]


HOSTILE = """
import sys; sys.path.insert(0, %r)
import vllm_standin as v
v.sys.modules["vllm"].__version__ = "9\\x1b[31m" * 50
class Request(v.Request):
    __module__ = "vllm.v1.request"
    status = property(lambda self: 1 / 0)
    def __init__(self, number):
        self.__dict__.update(request_id="\\x1b[31m" * 10 ** 6, priority=2 ** 200, num_prompt_tokens=-5, arrival_time=float("nan"),
                             num_computed_tokens=True, _output_token_ids=self, lora_request=self, lora_name=[self])
scheduler = v.Scheduler(2 ** 70, -1, 2 ** 65)
scheduler.running += [scheduler.running, None, 7, Request(1), Request(2)]
scheduler.waiting = scheduler.skipped_waiting = {Request(3): Request(4)}
scheduler.requests = {number: scheduler for number in range(200000)}
scheduler.kv_cache_manager.block_pool = scheduler
v.BlockPool.__qualname__ = v.Scheduler.__qualname__ = "\\x1b[31m"
core = v.EngineCoreProc(scheduler, v.MultiprocExecutor([v.WorkerProcHandle(pid) for pid in (0, -1, 2 ** 40, 1, scheduler)], None))
def run(self):
    v.title("VLLM::EngineCore\\x1b[31m")
    print(flush=True); input()
run(core)
"""


def test_a_hostile_server():
    """Objects of the right classes with anything in them: an answer comes, and no control character with it."""
    with support.Program([NEWEST.exe, "-c", HOSTILE % str(STANDIN.parent)], env=NEWEST.env) as program:
        program.line()
        for words in (("server", program.pid), ("server", "--json", program.pid), ("list",), ("why", program.pid),
                      ("-t", program.pid, "query", "SELECT * FROM inference.requests LIMIT 9"),
                      ("-t", program.pid, "query", "SELECT * FROM inference.queues; SELECT * FROM inference.kv")):
            code, out, err = probing(*words)
            assert code in (0, 1, SERVER, 20, 21) and "\x1b" not in out + err and len(out) < 100000, (words, code, out[-300:], err[-300:])
        assert program.alive()


def test_no_server():
    with support.Program([NEWEST.exe, "-c", "print(flush=True); input()"], env=NEWEST.env) as program:
        program.line()
        code, out, err = probing("server", program.pid)
        assert code == 1 and out == "" and "no process of an inference server" in err
        code, out, err = probing("-t", program.pid, "query", "SELECT * FROM inference.requests")
        assert code == 0 and "the process is none of an inference server that is known" in err
