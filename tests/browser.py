"""A headless Chromium, driven over a pipe by the DevTools protocol; the standard library is all that it takes."""

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
REQUIRED = "DUALOGIC_BROWSER"
SECONDS = 300.0
# The protocol is spoken on the descriptors 3 and 4, which only the child itself can put in place.
CHILD = (
    "import fcntl, os, sys; ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]; "
    "os.dup2(ends[0], 3); os.dup2(ends[1], 4); os.execv(sys.argv[3], sys.argv[3:])"
)
KEYS = {"Tab": 9, " ": 32, "ArrowDown": 40, "ArrowUp": 38, "Enter": 13}

CONTRAST = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const one of document.querySelectorAll("h1, h2, h3, p, li, label, summary, th, td, figcaption, code, svg text, select")) {
    if (!one.textContent.trim() || !one.getClientRects().length) continue;
    const style = getComputedStyle(one);
    const [a, b] = [light(parse(one instanceof SVGElement ? style.fill : style.color)), light(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([one.tagName, one.textContent.slice(0, 30), ratio]);
  }
  return poor;
})()
"""
"""Texts that are hard to read on what is behind them: less than 4.5 to 1."""


def find_browser():
    """The program; without one the test is skipped, or fails where one must be there."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        message = f"needs a Chromium: apt-get install chromium-headless-shell, or any of {', '.join(NAMES)} on the PATH"
        if os.environ.get(REQUIRED) == "required":
            pytest.fail(message)
        pytest.skip(message)
    return found


@contextlib.contextmanager
def open_browser():
    program = find_browser()
    read, child_writes = os.pipe()
    child_reads, write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        call = [sys.executable, "-c", CHILD, str(child_reads), str(child_writes), program, *options, f"--user-data-dir={profile}"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(call, pass_fds=(child_reads, child_writes), **quiet)
        os.close(child_reads)
        os.close(child_writes)
        try:
            yield Browser(read, write)
        finally:
            process.terminate()
            process.wait(SECONDS)
            os.close(read)
            os.close(write)


class Browser:
    """Sends commands and keeps the events that came meanwhile."""

    def __init__(self, read, write):
        self.read, self.write = read, write
        self.numbers, self.buffer, self.events = itertools.count(1), b"", []

    def call(self, method, session=None, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method, session):
        while not any(event.get("method") == method and event.get("sessionId") == session for event in self.events):
            self.events.append(self.receive())

    def receive(self):
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(self.read, 1 << 20) if ready else b""
            assert part, "the browser said nothing, or went away"
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, file, width=1280, height=900, scheme="light"):
        return Page(self, file, width, height, scheme)


class Page:
    """A tab with a file in it."""

    def __init__(self, browser, file, width, height, scheme):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.media(scheme=scheme)
        self.call("Page.navigate", url=file.as_uri())
        browser.wait_for("Page.loadEventFired", self.session)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def media(self, kind="", scheme="light"):
        self.call("Emulation.setEmulatedMedia", media=kind, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def ask(self, expression):
        """The value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, *keys):
        for key in keys:
            shared = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
            typed = {"text": key} if key == " " else {}
            self.call("Input.dispatchKeyEvent", type="keyDown" if typed else "rawKeyDown", **shared, **typed)
            self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def print(self):
        """A PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def troubles(self):
        """What the browser complained about, and what it was asked to fetch from anywhere but this file."""
        self.ask("0")  # so that all events before have come
        found = []
        for event in (event for event in self.browser.events if event.get("sessionId") == self.session):
            method, values = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(values["exceptionDetails"])
            elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning"):
                found.append(values["args"])
            elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
                found.append(values["entry"])
            elif method == "Network.requestWillBeSent" and not values["request"]["url"].startswith(("file:", "data:", "about:")):
                found.append(values["request"]["url"])
        return found
