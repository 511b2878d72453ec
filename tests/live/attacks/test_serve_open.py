# SPDX-License-Identifier: GPL-3.0-or-later
"""`serve --open`: the token of a gateway on the way to the browser, where other users could read it."""
import os
import re
import stat
import subprocess

import pytest

import browser
import support
from gateway_client import Gateway, wait_until
from sockets_support import SYSTEM_PYTHON, as_attacker

LOOK = """
import glob, sys
token = sys.stdin.read()
for name in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ") + sys.argv[1:]:
    try:
        text = open(name, "rb").read()
    except OSError:
        continue
    print(name if token.encode() in text else "", end="")
"""


@pytest.fixture
def opened(tmp_path):
    """A gateway with a stand-in for the browser: (the gateway, the browser's arguments, its pid)."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "run").mkdir(mode=0o700)
    tool, said = tmp_path / "bin" / "xdg-open", tmp_path / "said"
    # It keeps its command line, as browsers do.
    tool.write_text("#!/bin/sh\necho $$ \"$@\" >\"$SAID.new\" && mv \"$SAID.new\" \"$SAID\"\n"
                    "exec /usr/bin/python3 -c 'import time; time.sleep(1000)' \"$@\" >/dev/null 2>&1\n")
    tool.chmod(0o755)
    with support.Program(["/usr/bin/python3", "-c", "print('ready', flush=True); input()"]) as program:
        program.line()
        with Gateway(program.pid, "--open", PATH="%s:%s" % (tool.parent, os.environ["PATH"]), SAID=str(said),
                     XDG_RUNTIME_DIR=str(tmp_path / "run")) as gateway:
            wait_until(said.exists, "no browser was started")
            pid, told = said.read_text().split(None, 1)
            try:
                yield gateway, told.strip(), int(pid)
            finally:
                os.kill(int(pid), 9)


def test_the_token_is_on_no_command_line(opened):
    gateway, told, pid = opened
    assert gateway.token not in told
    wait_until(lambda: b"time.sleep" in open("/proc/%d/cmdline" % pid, "rb").read(), "it has not begun")
    for name in os.listdir("/proc"):
        if name.isdigit():
            for file in ("cmdline", "environ"):
                try:
                    with open("/proc/%s/%s" % (name, file), "rb") as text:
                        assert gateway.token.encode() not in text.read(), name
                except OSError:
                    continue


def test_the_file_leads_there_and_goes_away(opened):
    gateway, told, _ = opened
    file = told[len("file://"):] if told.startswith("file://") else told
    with open(file, encoding="utf-8") as page:
        text = page.read()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(file)).st_mode) == 0o700
    [address] = set(re.findall(r'(?:url=|href=")([^"]+)"', text))
    assert address == "%s/?token=%s" % (gateway.url.rstrip("/"), gateway.token)
    assert gateway.ask("/?token=" + gateway.token, token=False).status == 303
    gateway.stop()
    assert not os.path.exists(file)


@pytest.mark.skipif(os.geteuid() != 0 or not SYSTEM_PYTHON, reason="needs root, and the system's Python for the other user")
def test_another_user_learns_nothing(opened):
    gateway, told, _ = opened
    done = subprocess.run([SYSTEM_PYTHON, "-c", LOOK, told], input=gateway.token, stdout=subprocess.PIPE, text=True, cwd="/",
                          preexec_fn=as_attacker, timeout=60, check=True)
    assert done.stdout == ""
    assert subprocess.run(["cat", told], stdout=subprocess.PIPE, preexec_fn=as_attacker, check=False).stdout == b""


@pytest.mark.skipif(not browser.COMMAND, reason="chromium is not installed")
def test_a_browser_comes_in(opened):
    """It comes from a file, which is another site, and is let in all the same."""
    gateway, told, _ = opened
    with browser.Browser() as page:
        page.open(told)
        page.wait("location.href == %r" % (gateway.url.rstrip("/") + "/"))
        page.wait("!document.querySelector('form[action=\"/login\"]') && document.readyState == 'complete'")
        assert page.value("fetch('/v1').then(answer => answer.status)") == 200

