# SPDX-License-Identifier: GPL-3.0-or-later
"""The OpenAPI document of `probing serve`: it names all routes, and answers match it."""
import json
import os
import subprocess
import urllib.parse

import pytest

import jobs
import support
from deadlock import deadlocked  # noqa: F401
from gateway_client import Gateway, wait_until

jsonschema = pytest.importorskip("jsonschema")
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]


@pytest.fixture(scope="module")
def program():
    with support.Program([NEWEST.exe, support.HERE / "programs" / "web_debugged.py"],
                         env=dict(os.environ, RANK="3", WORLD_SIZE="8", MASTER_ADDR=jobs.ADDRESS, MASTER_PORT="29542")) as running:
        assert running.line() == "ready"
        yield running


@pytest.fixture(scope="module")
def gateway(program):
    with Gateway(program.pid, "--allow-write") as running:
        yield running


def no_twice(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return dict(pairs)


class Description:
    def __init__(self, text):
        self.document = json.loads(text, object_pairs_hook=no_twice)

    def check(self, method, path, answer):
        """Checks an answer, or one of its lines, against its schema; its value."""
        kinds = self.document["paths"][path][method.lower()]["responses"]
        content = kinds.get(str(answer.status), kinds["default"])["content"]
        assert str(answer.status) in kinds or answer.status >= 400, answer
        [media] = content
        if "schema" not in content[media]:
            return None
        value = answer.json
        self.matches(value, content[media]["schema"])
        return value

    def matches(self, value, schema):
        resolver = jsonschema.RefResolver("", self.document)
        jsonschema.Draft202012Validator(schema, resolver=resolver).validate(value)


@pytest.fixture(scope="module")
def description(gateway):
    return Description(gateway.ask("/v1/openapi.json").text)


def test_it_is_the_one_of_the_docs(description):
    with open(support.ROOT / "docs" / "openapi.json", encoding="utf-8") as file:
        assert json.load(file) == description.document


def test_it_names_what_there_is(gateway, description):
    assert description.document["openapi"].startswith("3.")
    for path, methods in description.document["paths"].items():
        for method in methods:
            asked = path.replace("{id}", "0").replace("{profile}", "p0").replace("{skill}", "hang").replace("{terminal}", "t0").replace(
                "{dashboard}", "none")
            answer = gateway.ask(asked, method=method.upper())
            # JSON answers have a schema.
            for answers in methods[method]["responses"].values():
                for media, content in answers.get("content", {}).items():
                    assert ("schema" in content) == (media in ("application/json", "application/x-ndjson")) or path in (
                        "/mcp", "/v1/openapi.json"), path
            # The error is in the id, or a parameter is missing: never in the address.
            assert answer.status not in (405, 500), (path, answer)
            assert answer.status != 404 or "there is no /" not in answer.text, answer


def sent(gateway, program, path, method, values):
    """A request with these parameters, in its address or its body."""
    path = path.format(id=program.pid, profile="p0", skill="hang", terminal="t0", dashboard="service")
    if method == "get":
        return gateway.ask(path + "?" + urllib.parse.urlencode(values))
    return gateway.ask(path, values)


def wrong_values(schema):
    """Values that the schema refuses."""
    if "enum" in schema:
        yield "x" + schema["enum"][0]
    if schema.get("minLength"):
        yield ""
    if schema.get("minimum"):
        yield schema["minimum"] - (1 if schema["type"] == "integer" else 0.1)
    if "maximum" in schema:
        yield schema["maximum"] + 1
    if schema["type"] == "integer":
        yield 1.5
    if schema["type"] != "string":
        yield "text"


def test_what_the_schema_refuses_is_refused(gateway, program, description):
    """Each parameter with each wrong value, with too little, with too much."""
    tried = 0
    for path, methods in description.document["paths"].items():
        for method, said in methods.items():
            if path in ("/mcp", "/v1/jobs"):  # no parameters
                continue
            body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            assert not body or body["additionalProperties"] is False, path
            query = {one["name"]: one["schema"] for one in said["parameters"] if one["in"] == "query"}
            needed = [one["name"] for one in said["parameters"] if one["in"] == "query" and one["required"]]
            schemas, needed = (body["properties"], body["required"]) if body else (query, needed)
            valid = {name: "x" for name in needed}
            wrong = [{**valid, name: value} for name, schema in schemas.items() for value in wrong_values(schema)]
            wrong += [{name: value for name, value in valid.items() if name != left_out} for left_out in needed]
            wrong += [{**valid, "unknown": 1}] if schemas else []
            # In JSON, types are not converted.
            wrong += [{**valid, name: None} for name in schemas] if body else []
            wrong += [{**valid, name: {"string": 1, "boolean": 1}.get(schema["type"], "1")} for name, schema in schemas.items()] if body else []
            for values in wrong:
                answer = sent(gateway, program, path, method, values)
                assert (answer.status, answer.error["code"]) == (400, "usage"), (path, method, values, answer)
                tried += 1
    assert tried > 100


def test_answers_are_what_it_says(gateway, program, description):
    at = "/v1/targets/%d" % program.pid

    def ask(method, path, body=None, query=""):
        asked = path.replace("/v1/targets/{id}", at).replace("{skill}", "hang") + query
        return description.check(method, path, gateway.ask(asked, body, method))

    for path in ("/v1", "/v1/targets", "/v1/overview", "/v1/tables", "/v1/skills", "/v1/profiles", "/v1/dashboards",
                 "/v1/targets/{id}/skills/{skill}", "/v1/targets/{id}/memory", "/v1/targets/{id}/config"):
        assert ask("GET", path), path
    ask("GET", "/v1/targets/{id}/stacks", query="?locals=1&native=1&source=1")
    job = ask("GET", "/v1/job", query="?all=1&native=1")
    assert len(job.get("ranks", ())) == 1, job
    ask("GET", "/v1/targets/{id}/query", query="?sql=SELECT+1+AS+a,+NULL+AS+b,+'c'+AS+c")
    ask("GET", "/v1/query", query="?sql=SELECT+1.5+AS+a")
    ask("POST", "/v1/targets/{id}/query", {"sql": "SELECT * FROM python.threads"})
    ask("POST", "/v1/query", {"sql": "SELECT nothing FROM nowhere"})
    ask("GET", "/v1/targets/{id}/value", query="?expression=held&max-items=2")
    ask("GET", "/v1/targets/{id}/memory", query="?growth=0.3")
    ask("POST", "/v1/targets/{id}/config", {"key": "probing.sample_rate", "value": "0.5"})
    ask("POST", "/v1/targets/{id}/eval", {"code": "print(1); 1 / 0"})
    ask("POST", "/v1/targets/{id}/eval", {"code": "6 * 7"})


def test_what_is_paused(gateway, program, description):
    """Lines of a pause, and requests meanwhile."""
    at = "/v1/targets/%d" % program.pid
    command = [support.BINARY, str(program.pid), "debug", "--pause", "--json"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as holder:
        lines = [json.loads(holder.stdout.readline())]
        description.check("GET", "/v1/targets", gateway.ask("/v1/targets"))
        for body in ({}, {"time": 0.01}):
            description.check("POST", "/v1/targets/{id}/step", gateway.ask(at + "/step", body))
        description.check("POST", "/v1/targets/{id}/resume", gateway.ask(at + "/resume", {}))
        lines.append(json.loads(holder.stdout.readline()))
    [place] = description.document["paths"]["/v1/targets/{id}/pause"]["post"]["responses"]["200"]["content"].values()
    for line in lines:
        description.matches(line, place["schema"])


def test_recordings(gateway, program, description):
    made = description.check("POST", "/v1/targets/{id}/profiles", gateway.ask(
        "/v1/targets/%d/profiles" % program.pid, {"duration": 600}))
    path = "/v1/profiles/" + made["id"]
    description.check("GET", "/v1/profiles", gateway.ask("/v1/profiles"))
    for body in ({"name": "é" * 80, "note": "slow since noon"}, {}, {"name": "é" * 81}, {"note": ""}):
        named = description.check("POST", "/v1/profiles/{profile}", gateway.ask(path, body))
        assert "error" in named and "at most 80" in named["error"]["message"] if "é" * 81 in body.values() else named["name"], named
    assert named["name"] == "é" * 80 and named["note"] is None, named
    description.check("POST", "/v1/profiles/{profile}/stop", gateway.ask(path + "/stop", {}))
    wait_until(lambda: gateway.ask("/v1/profiles").json["profiles"][0]["state"] == "finished", "it does not stop")
    description.check("GET", "/v1/profiles/{profile}", gateway.ask(path))
    description.check("DELETE", "/v1/profiles/{profile}", gateway.ask(path, method="DELETE"))
    description.check("DELETE", "/v1/profiles/{profile}", gateway.ask(path, method="DELETE"))


def test_targets_of_all_kinds(description, deadlocked, tmp_path):
    """Files, ended processes, unreadable targets, and invalid ones."""
    file = tmp_path / "one.snapshot"
    subprocess.run([support.BINARY, str(deadlocked.pid), "snapshot", "-o", file], check=True, stderr=subprocess.DEVNULL)
    with support.Program(["sleep", "600"]) as other, support.Program(["sleep", "600"]) as gone:
        with Gateway(deadlocked.pid, file, other.pid, gone.pid) as gateway:
            gone.kill()
            wait_until(lambda: gateway.ask("/v1/overview").json["targets"][-1]["ended"], "it does not end")
            for path in ("/v1/targets", "/v1/overview"):
                told = description.check("GET", path, gateway.ask(path))
                assert len(told["targets"]) == 4
            for target in (other.pid, gone.pid, "f1"):
                for what in ("stacks", "memory"):
                    description.check("GET", "/v1/targets/{id}/" + what, gateway.ask("/v1/targets/%s/%s" % (target, what)))
