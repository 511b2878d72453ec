# SPDX-License-Identifier: GPL-3.0-or-later
"""A page in Firefox without a window, spoken to by its remote protocol (Marionette)."""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

COMMAND = shutil.which("firefox-esr") or shutil.which("firefox")
PREFERENCES = {
    "marionette.port": 0, "app.update.enabled": False, "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False, "toolkit.telemetry.enabled": False,
    "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
    "browser.safebrowsing.update.enabled": False, "extensions.update.enabled": False,
    "services.settings.server": "", "network.proxy.type": 1, "network.proxy.socks": "127.0.0.1",
    "network.proxy.socks_port": 9, "ui.prefersReducedMotion": 1, "browser.sessionstore.resume_from_crash": False}


class Firefox:
    """One page; errors() has its console errors."""

    def __init__(self, size=(1280, 800)):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        profile = os.path.join(self._folder.name, "profile")
        os.mkdir(profile)
        with open(os.path.join(profile, "user.js"), "w", encoding="ascii") as file:
            file.writelines("user_pref(%s, %s);\n" % (json.dumps(name), json.dumps(value))
                            for name, value in PREFERENCES.items())
        self._process = subprocess.Popen(
            [COMMAND, "--headless", "--no-remote", "--marionette", "--remote-allow-system-access", "--profile",
             profile, "--width", str(size[0]), "--height", str(size[1]), "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._folder.name, "MOZ_HEADLESS": "1"})
        self.pid = self._process.pid
        self._socket, self._number, self._left = self._connect(os.path.join(profile, "MarionetteActivePort")), 0, b""
        self._receive()  # how it greets
        self.send("WebDriver:NewSession", capabilities={"alwaysMatch": {"acceptInsecureCerts": False}})

    def _connect(self, path):
        end = time.monotonic() + 120
        while True:
            assert time.monotonic() < end and self._process.poll() is None, "Firefox does not start"
            try:
                with open(path, encoding="ascii") as file:
                    return socket.create_connection(("127.0.0.1", int(file.read())), timeout=120)
            except (OSError, ValueError):
                time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def _receive(self):
        while b":" not in self._left or len(self._left.partition(b":")[2]) < int(self._left.partition(b":")[0]):
            data = self._socket.recv(1 << 20)
            assert data, "Firefox has ended"
            self._left += data
        length, _, rest = self._left.partition(b":")
        self._left = rest[int(length):]
        return json.loads(rest[:int(length)])

    def send(self, command, **parameters):
        self._number += 1
        data = json.dumps([0, self._number, command, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(data), data))
        _, number, error, result = self._receive()
        assert number == self._number and not error, error
        return result

    def open(self, path):
        self.send("WebDriver:Navigate", url="file://%s" % path)
        end = time.monotonic() + 60
        # The script of a flame graph is unpacked after that.
        while not self.value("!document.getElementById('packed') || 'probing' in window"):
            assert time.monotonic() < end, self.errors()

    def value(self, expression):
        return self.run("return (%s);" % expression)

    def wait(self, expression):
        end = time.monotonic() + 60
        while not self.value(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.02)

    def run(self, statements):
        """In the page itself, with its globals."""
        return self.send("WebDriver:ExecuteScript", script=statements, args=[], sandbox=None)["value"]

    def errors(self):
        """Its console errors about pages from files."""
        self.send("Marionette:SetContext", value="chrome")
        found = self.run("return Services.console.getMessageArray().filter((each) => each instanceof "
                         "Ci.nsIScriptError && !(each.flags & Ci.nsIScriptError.warningFlag) && "
                         "/^file:/.test(each.sourceName)).map((each) => each.errorMessage);")
        self.send("Marionette:SetContext", value="content")
        return found
