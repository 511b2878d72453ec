# SPDX-License-Identifier: GPL-3.0-or-later
"""Panels of the page that change a target or walk over its objects, in Chromium."""
import contextlib
import json
import os
import subprocess
import sys

import pytest

import packages
import support
from environment import PROGRAMS
from gateway_client import Gateway, wait_until
from served_program import program  # noqa: F401 (a fixture)
from web_page import MARKS, Page, opened, page  # noqa: F401 (fixtures)

sys.path.append(str(support.HERE / "memory"))
import training  # noqa: E402

pytestmark = MARKS


def paused(pid):
    """The holder of the pause, as shown to another shell."""
    run = subprocess.run([support.BINARY, "list", "--json"], stdout=subprocess.PIPE, check=True)
    [one] = [one for one in json.loads(run.stdout) if one["pid"] == pid]
    return one["paused"]


@pytest.fixture(scope="module")
def gateway(program, tmp_path_factory):
    with Gateway(program.pid, "--allow-write", XDG_STATE_HOME=str(tmp_path_factory.mktemp("state"))) as running:
        yield running


def run(page, code):
    """Types it into the console, and runs it by keys."""
    page.wait("!!document.getElementById('code') && !document.getElementById('evaluate').disabled")
    page.value("document.getElementById('code').focus()")
    page.type(code)
    page.press("Enter", control=True)
    page.wait("document.getElementById('code').value == ''")


def test_what_takes_the_memory(page, program):
    page.show("memory", target=program.pid)
    page.sees("In RAM", "Python objects", "bytearray", "read in")


def test_what_grows(page, program):
    page.show("memory", target=program.pid, growth=1)
    page.push("#grow")
    page.sees("__main__.held", "objects")
    assert page.value("document.getElementById('grown').textContent").startswith("in ")


def test_code_is_run(page, program):
    page.show("console", target=program.pid)
    run(page, "six = 6; print('printed')\n7 * six")
    page.sees("printed", "42")
    run(page, "1 / 0")
    page.sees("ZeroDivisionError")
    run(page, "'<img src=x onerror=alert(1)>'")
    page.sees("<img src=x onerror=alert(1)>")
    assert page.value("document.querySelectorAll('#page img').length") == 0
    # Keys bring back the history and the unfinished line.
    page.type("draft")
    page.press("ArrowUp")
    page.press("ArrowUp")
    assert page.value("document.getElementById('code').value") == "1 / 0"
    page.press("ArrowDown")
    page.press("ArrowDown")
    assert page.value("document.getElementById('code').value") == "draft"
    page.value("document.getElementById('code').value = ''")
    # It is still there after a visit to another panel.
    page.show("sql", target=program.pid)
    page.wait("!!document.getElementById('editor')")
    page.show("console", target=program.pid)
    page.sees("ZeroDivisionError")


SHOWN = "document.querySelector('.xterm-rows')?.textContent.includes(%s)"


def test_a_terminal(page, program):
    """A prompt that is typed in, with completion, history and Ctrl-C; it ends with the panel."""
    page.show("console", target=program.pid)
    page.push("#terminal")
    page.wait(SHOWN % json.dumps("%d >>> " % program.pid))
    page.wait("document.activeElement?.classList.contains('xterm-helper-textarea')")
    page.type("'forty' + 'two'")
    page.press("Enter")
    page.wait(SHOWN % json.dumps("'fortytwo'"))
    page.type("print('run' + 'ning'); [time.sle")
    page.press("Tab")
    page.wait(SHOWN % json.dumps("time.sleep"))
    page.type("(0.01) for _ in iter(int, 1)]")
    page.press("Enter")
    page.wait(SHOWN % json.dumps("running"))
    page.press("c", control=True)
    page.wait(SHOWN % json.dumps("KeyboardInterrupt"))
    page.press("ArrowUp")
    page.press("ArrowUp")
    page.press("Enter")
    page.wait("document.querySelector('.xterm-rows').textContent.split(%s).length == 3" % json.dumps("'fortytwo'"))
    # Keys of the page are keys of the terminal in it.
    page.press("?")
    assert not page.value("document.querySelector('dialog').open")
    # A process's output is shown without links; colours are styles set by a script.
    page.press("u", control=True)
    page.type("print('\\x1b]8;;http://attacker.example/\\x07link\\x1b]8;;\\x07 \\x1b[38;2;1;200;3m<img src=x onerror=alert(1)>\\x1b]2;title\\x07')")
    page.press("Enter")
    page.wait(SHOWN % json.dumps("link <img src=x onerror=alert(1)>"))
    assert page.value("document.querySelectorAll('#repl img, #repl a').length") == 0
    assert "title" not in page.value("document.title")
    for width in (500, 1280):
        page.send("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        page.wait("document.documentElement.scrollWidth <= %d && document.querySelector('.xterm-screen').clientWidth > %d" % (
            width, width - 100))
    page.press("Tab", shift=True)
    page.wait("!document.activeElement.closest('#repl')")
    page.push("#close")
    page.wait("!!document.getElementById('code')")
    wait_until(lambda: not page.gateway.children(), "the command is left")


def test_a_terminal_ends_with_its_panel(page, program):
    page.show("console", target=program.pid)
    page.push("#terminal")
    page.wait(SHOWN % json.dumps("%d >>> " % program.pid))
    page.show("sql", target=program.pid)
    wait_until(lambda: not page.gateway.children(), "the command is left")
    # An address opens none.
    page.show("console", target=program.pid)
    page.wait("!!document.getElementById('code')")
    page.push("#terminal")
    page.wait(SHOWN % json.dumps("%d >>> " % program.pid))
    page.press("d", control=True)
    page.sees("It has ended")
    page.send("Page.reload")
    page.wait("!!document.getElementById('code')")


def test_pause_step_and_resume(page, program):
    page.show("debug", target=program.pid)
    page.sees("It runs.")
    page.push("#hold")
    page.sees("Paused by this page", "This page holds paused")
    assert paused(program.pid)
    page.push("#step")
    page.wait("!!document.getElementById('place')")
    page.sees("Stopped in", "web_debugged.py:")
    page.wait("!document.getElementById('out').disabled")
    # Up to the caller of the sleeping function.
    while "work" not in page.value("document.getElementById('place').textContent"):
        page.push("#out")
        page.wait("!document.getElementById('out').disabled")
    # Code sees one state, however long that takes.
    page.show("console", target=program.pid)
    run(page, "len(held) == (__import__('time').sleep(0.2), len(held))[1]")
    page.sees("True")
    page.show("debug", target=program.pid)
    page.push("#resume")
    page.sees("ran again after", "resume")
    assert not paused(program.pid)


def test_a_page_that_is_loaded_anew_holds_nothing(page, program):
    page.show("debug", target=program.pid)
    page.push("#hold")
    page.sees("Paused by this page")
    page.send("Page.reload")
    page.sees("It runs.")
    wait_until(lambda: not paused(program.pid), "it is held yet")


def test_debugpy_is_started(page):
    if subprocess.run(["/usr/bin/python3", "-c", "import debugpy"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        pytest.skip("python3-debugpy is not installed")
    with support.Program(["/usr/bin/python3", PROGRAMS / "web_debugged.py"]) as program:
        assert program.line() == "ready"
        with Gateway(program.pid, "--allow-write") as gateway, Page(gateway) as other:
            other.show("debug", target=program.pid)
            other.push("#debugpy")
            text = other.wait("document.getElementById('launch')?.textContent")
            assert json.loads(text)["configurations"][0]["connect"]["host"] == "127.0.0.1"
            assert not other.errors


def test_nothing_is_changed_unless_that_was_allowed(program):
    with Gateway(program.pid) as gateway, Page(gateway) as page:
        for panel in ("console", "debug"):
            page.show(panel, target=program.pid)
            page.sees("--allow-write")
            assert page.value("document.querySelectorAll('main button').length") == 0
        for path in ("eval", "pause", "resume", "step", "debugpy"):
            answer = gateway.ask("/v1/targets/%d/%s" % (program.pid, path), {"code": "1"} if path == "eval" else {})
            assert (answer.status, answer.error["code"]) == (403, "permission"), answer
        assert not page.errors


ARRAYS = """
import numpy as np
photo = np.zeros((4, 300, 3), "u1")
photo[3, ::3] = [255, 128, 0]
weights = np.linspace(-1, 1, 400).reshape(20, 20)
weights[3] = np.nan
weights[4, 4] = np.inf
print(flush=True)
input()
"""
PIXEL = "[...document.querySelector('.pixels').getContext('2d').getImageData(%d, %d, 1, 1).data].join()"


def test_arrays_as_pictures():
    with support.Program([packages.need("numpy"), "-c", ARRAYS]) as arrays:
        arrays.line()
        with Gateway(arrays.pid) as gateway, Page(gateway) as page:
            page.show("inspect", target=arrays.pid, expression="photo")
            page.push("#value .fold")
            page.sees("4 × 300 × 3 uint8: mean")
            # Each third pixel.
            assert page.value("document.querySelector('.pixels').width") == 100
            assert [page.value(PIXEL % at) for at in ((0, 0), (7, 0), (0, 1), (99, 1))] == ["0,0,0,255"] * 2 + ["255,128,0,255"] * 2
            page.show("inspect", target=arrays.pid, expression="weights")
            page.push("#value .fold")
            page.sees("20 × 20 float64: mean", "20 NaN", "1 infinite", "-1.000 to 1.000")
            assert page.value(PIXEL % (19, 19)) == "255,255,255,255" and page.value(PIXEL % (0, 0)) == "0,0,0,255"
            assert page.value("document.querySelectorAll('.histogram rect').length") == 40
            assert not page.errors


@pytest.fixture(scope="module")
def trained():
    with training.start() as program:
        assert program.line(timeout=100) == "ready"
        yield program, training.rest(program)


def test_torch(trained):
    program, parts = trained
    with Gateway(program.pid) as gateway, Page(gateway) as page:
        page.show("training", target=program.pid)
        page.sees("model", "Transformer", "Tensors", "AdamW", "Steps are not recorded here")
        # The first level is open.
        page.sees("model.layers", "ModuleList")
        page.value("document.querySelector('[aria-label=\"Unfold model.layers\"]').click()")
        page.sees("model.layers.0", "model.layers.1")
        shown = page.value("document.querySelectorAll('#modules .name').length")
        assert shown == len([path for path in parts["modules"] if path.count(".") < 2 or (
            path.startswith("model.layers") and path.count(".") == 2)])
        page.sees("model.embed.weight", "(400, 64)", "gradient")
        assert not page.errors


def test_what_has_no_torch_says_so(page, program):
    page.show("training", target=program.pid)
    page.sees("No module of torch", "0 tensors")


def test_steps_over_time():
    with training.start() as program:
        assert program.line(timeout=100) == "ready"
        subprocess.run([support.BINARY, str(program.pid), "config", "probing.torch.profiling=on"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with Gateway(program.pid) as gateway, Page(gateway) as page:
            sql = "SELECT count(forward) AS n FROM python.torch_step_timing"
            wait_until(lambda: gateway.ask("/v1/targets/%d/query" % program.pid, {"sql": sql}).status == 200 and
                       gateway.query(program.pid, sql)[0]["n"] > 3, "no step is recorded")
            page.show("training", target=program.pid)
            page.wait("!!document.querySelector('#steps .chart canvas')", timeout=100)
            page.sees("step_ms")
            # What a step is made of, the largest part first; the parts are all of it.
            page.wait("!!document.querySelector('#split p')")
            shares = page.value("[...document.querySelector('#split p').textContent.matchAll(/(\\d+) % (\\w+)/g)].map((m) => [Number(m[1]), m[2]])")
            assert 97 <= sum(share for share, _ in shares) <= 103 and shares == sorted(shares, key=lambda one: -one[0]), shares
            assert {"forward", "backward"} <= {name for _, name in shares}, shares
            assert page.value("document.querySelectorAll('.split rect').length") == len(shares)
            assert not page.errors


# Ranks without a wait for each other: rank 1 is late before each optimizer step.
RANKS = """
import os, time, torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
print("ready", flush=True)
while True:
    time.sleep(0.01 + 0.02 * (os.environ["RANK"] == "1"))
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


def test_steps_of_all_ranks():
    training.SYSTEM.check()
    with contextlib.ExitStack() as stack:
        ranks = [stack.enter_context(support.Program([training.PYTHON, "-c", RANKS], env=dict(
            os.environ, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29555"))) for rank in range(2)]
        for one in ranks:
            assert one.line(timeout=100) == "ready"
            subprocess.run([support.BINARY, str(one.pid), "config", "probing.torch.profiling=on"], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with Gateway(*(one.pid for one in ranks)) as gateway, Page(gateway) as page:
            sql = "SELECT count(backward) AS n FROM python.torch_step_timing"
            for one in ranks:
                wait_until(lambda pid=one.pid: gateway.ask("/v1/targets/%d/query" % pid, {"sql": sql}).status == 200 and
                           gateway.query(pid, sql)[0]["n"] > 5, "no step is recorded")
            page.show("training", target=ranks[0].pid)
            page.sees("Steps by rank", "Rank 1 took longest in")
            assert page.value("document.querySelectorAll('.heat g').length") == 2
            assert page.value("document.querySelector('.heat g:last-of-type title').textContent").startswith("rank 1, step ")
            dark = [page.value("Number(document.querySelector('.heat g:nth-of-type(%d) rect:last-of-type').getAttribute('fill-opacity'))"
                               % line) for line in (1, 2)]
            assert dark[0] < dark[1], dark
            assert not page.errors
