# SPDX-License-Identifier: GPL-3.0-or-later
"""A page in Chromium without a window, spoken to by its DevTools protocol over a pair of pipes."""
import base64
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

COMMAND = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
           "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--disable-background-networking",
           "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--force-prefers-reduced-motion", "about:blank"]


def pipe():
    """Its ends have numbers that the shell does not use when it makes 3 and 4 of them."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high


class Browser:
    """One page of @size pixels; `errors` has its console errors. It may only load files, and addresses
    that begin with @origin.

    It may only ask for files, and for what begins with @origin."""

    def __init__(self, size=(1280, 800), dark=False, origin="file:"):
        self._origin = origin
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._to = pipe()
        self._from, to_write = pipe()
        self._process = subprocess.Popen(
            ["bash", "-c", 'exec "$@" 3<&%d 4>&%d' % (to_read, to_write), "bash", COMMAND,
             "--user-data-dir=" + self._folder.name, "--window-size=%d,%d" % size, *OPTIONS],
            env=dict(os.environ, TMPDIR=self._folder.name), pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.pid = self._process.pid
        self._watch = threading.Timer(300, self._process.kill)
        self._watch.start()
        self._left, self._number, self.errors, self._session = b"", 0, [], None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")
        self.send("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1],
                  deviceScaleFactor=1, mobile=False)
        self.dark(dark)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._watch.cancel()
        os.killpg(self.pid, signal.SIGKILL)  # with all that write below the folder
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._folder.cleanup()

    def _message(self):
        while b"\0" not in self._left:
            data = os.read(self._from, 1 << 20)
            assert data, "the browser has ended"
            self._left += data
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def send(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data):]
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._notice(answer)

    def _notice(self, event):
        kind, what = event.get("method"), event.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.errors.append(what)
        elif kind == "Log.entryAdded" and what["entry"]["level"] == "error":
            # In few words, so that a test that fails shows the address.
            self.errors.append({"entry": {key: what["entry"].get(key) for key in ("source", "text", "url")}})
        elif kind == "Network.requestWillBeSent" and not what["request"]["url"].startswith(
                (self._origin, "data:")):
            self.errors.append(what)
        elif kind == "Page.loadEventFired":
            self._loaded = True

    def open(self, path):
        self.go("file://%s" % path)

    def go(self, address):
        self._loaded = False
        self.send("Page.navigate", url=address)
        while not self._loaded:
            self._notice(self._message())
        # The script of a flame graph is unpacked after that.
        end = time.monotonic() + 60
        while not self.value("!document.getElementById('packed') || 'probing' in globalThis"):
            assert not self.errors and time.monotonic() < end, self.errors

    def wait(self, expression, what="", timeout=60):
        """Until the expression is true; its value. It may fail while another page is loaded."""
        end = time.monotonic() + timeout
        while True:
            try:
                value = self.value(expression)
            except AssertionError:
                value = None
            if value:
                return value
            assert time.monotonic() < end, what or "never: %s\n%s" % (
                expression, self.value("document.body.innerText"))
            time.sleep(0.05)

    def value(self, expression):
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def dark(self, yes):
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if yes else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, x, y):
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key, control=False, shift=False):
        """A key by its name in the DOM: "a", "Enter", "ArrowDown"."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 and not control else None)
        code = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, " ": 32}.get(
            key, ord(key.upper()) if len(key) == 1 else 0)
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=2 * control + 8 * shift,
                      windowsVirtualKeyCode=code, **({"text": text} if text and kind == "keyDown" else {}))

    def screenshot(self, path):
        data = self.send("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
