# SPDX-License-Identifier: GPL-3.0-or-later
"""Dashboards: those that come with the program, and those that `serve --dashboards FOLDER` keeps as files."""
import json
import os
import stat

import pytest

import support
from gateway_client import Gateway

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
OWN = ["service", "training", "memory", "gpu", "job"]
SOURCE = "import threading\nfor _ in range(3):\n    threading.Thread(target=threading.Event().wait, daemon=True).start()\nprint('ready', flush=True)\ninput()"
BOARD = {"title": "Of the shop", "every": 5, "charts": [
    {"title": "Threads", "sql": "SELECT state, count(*) AS threads FROM python.threads GROUP BY state", "show": "table"}]}


@pytest.fixture(scope="module")
def program():
    with support.Program([NEWEST.exe, "-c", SOURCE]) as running:
        assert running.line() == "ready"
        yield running


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "boards"


@pytest.fixture
def kept(program, folder):
    with Gateway(program.pid, "--dashboards", folder) as running:
        yield running


def save(gateway, name, board):
    return gateway.ask("/v1/dashboards/" + name, {"json": board if isinstance(board, str) else json.dumps(board)})


def names(gateway, **members):
    return [one["name"] for one in gateway.ask("/v1/dashboards").json["dashboards"]
            if all(one[name] == value for name, value in members.items())]


def test_five_come_with_the_program(program):
    """Each of their queries runs for one process and for all, or says that nothing records its table."""
    with Gateway(program.pid) as one, Gateway(program.pid, os.getpid()) as two:
        assert not one.ask("/v1/dashboards").json["folder"]
        assert sorted(names(one, saved=False, error=None)) == sorted(OWN)
        for name in OWN:
            charts = one.ask("/v1/dashboards/" + name).json["charts"]
            assert len(charts) >= 5
            for chart in charts:
                for gateway, path in ((one, "/v1/targets/%d/query" % program.pid), (one, "/v1/query"), (two, "/v1/query")):
                    answer = gateway.ask(path, {"sql": chart["sql"]})
                    missing = answer.status == 422 and answer.error["message"].startswith("no such table: nothing records")
                    assert answer.status == 200 or missing, (name, chart["title"], path, answer)
                    columns = answer.json[0] if answer.status == 200 and answer.json else None
                    assert columns is None or chart.get("series") is None or chart["series"] in columns, chart


def test_one_is_kept_as_a_file(kept, folder):
    assert save(kept, "of-the-shop", BOARD).json == BOARD
    file = folder / "of-the-shop.json"
    assert json.loads(file.read_text("utf-8")) == BOARD
    assert file.read_text("utf-8").endswith("}\n") and "\n  \"title\"" in file.read_text("utf-8")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and os.listdir(folder) == [file.name]
    assert names(kept, saved=True) == ["of-the-shop"] and set(names(kept, saved=False)) == set(OWN)
    # One that somebody has written is there at once.
    (folder / "team.json").write_text(json.dumps({**BOARD, "title": "The team's"}), "utf-8")
    assert kept.ask("/v1/dashboards/team").json["title"] == "The team's"
    # One of the program's is changed, and as it was again without its file.
    before = kept.ask("/v1/dashboards/gpu").json
    assert save(kept, "gpu", BOARD).status == 200 and kept.ask("/v1/dashboards/gpu").json == BOARD
    assert kept.ask("/v1/dashboards/gpu", method="DELETE").status == 200
    assert kept.ask("/v1/dashboards/gpu").json == before
    assert kept.ask("/v1/dashboards/gpu", method="DELETE").status == 404


@pytest.mark.parametrize("board, told", [
    ("{", "no JSON"), ("[]", "JSON object"), ({**BOARD, "more": 1}, "not known"), ({**BOARD, "title": ""}, "'title'"),
    ({**BOARD, "title": 7}, "'title'"), ({**BOARD, "title": "x" * 101}, "'title'"), ({**BOARD, "every": 0.5}, "'every'"),
    ({**BOARD, "every": "5"}, "'every'"), ({**BOARD, "charts": BOARD["charts"] * 25}, "at most 24"),
    ({**BOARD, "charts": [{**BOARD["charts"][0], "show": "pie"}]}, "'show'"), ({**BOARD, "charts": [7]}, "JSON object"),
    ({**BOARD, "charts": [{"title": "a", "show": "table"}]}, "'sql'"), ('{"title": "a", "title": "b"}', "no JSON"),
    (json.dumps({**BOARD, "title": "a\0b"}), "no JSON"), ("[" * 3000, "no JSON"), (" " * 70000, "at most 65536")],
    ids=range(16))
def test_what_is_no_dashboard(kept, folder, board, told):
    answer = save(kept, "wrong", board)
    assert (answer.status, answer.error["code"]) == (422, "invalid") and told in answer.error["message"], answer
    assert not os.listdir(folder)
    # As a file it is named, and harms no other.
    (folder / "wrong.json").write_text(board if isinstance(board, str) else json.dumps(board), "utf-8")
    [wrong] = [one for one in kept.ask("/v1/dashboards").json["dashboards"] if one["name"] == "wrong"]
    assert told in wrong["error"]
    assert (kept.ask("/v1/dashboards/wrong").status, kept.ask("/v1/dashboards/service").status) == (422, 200)


@pytest.mark.parametrize("name", ["..", "%2e%2e", "a%2fb", "A", "a.b", "-a", "x" * 32, "a%00b"])
def test_names_are_no_paths(kept, folder, name):
    assert save(kept, name, BOARD).status in (400, 404, 422)
    assert not os.listdir(folder) and os.listdir(folder.parent) == [folder.name]


def test_what_is_no_file_of_ours_is_not_read(kept, folder):
    secret = folder.parent / "secret.json"
    secret.write_text(json.dumps(BOARD), "utf-8")
    (folder / "link.json").symlink_to(secret)
    (folder / "folder.json").mkdir()
    os.mkfifo(folder / "fifo.json")
    for name in ("link", "folder", "fifo"):
        assert kept.ask("/v1/dashboards/" + name).status >= 400, name
    # What is saved replaces the link.
    assert save(kept, "link", {**BOARD, "title": "new"}).status == 200
    assert json.loads(secret.read_text("utf-8")) == BOARD and not (folder / "link.json").is_symlink()


def test_without_a_folder_nothing_is_kept(program):
    with Gateway(program.pid) as gateway:
        answer = save(gateway, "mine", BOARD)
        assert (answer.status, answer.error["code"]) == (409, "conflict") and "--dashboards" in answer.error["hint"]
        assert gateway.ask("/v1/dashboards/service", method="DELETE").status == 409


def test_a_folder_that_others_may_write_to(program, folder):
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(AssertionError, match="others may write"):
        Gateway(program.pid, "--dashboards", folder)
