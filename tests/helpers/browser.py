"""Headless Chromium for tests, spoken to over a pipe in its own protocol: no driver, no port, no package."""

import base64
import json
import os
import select
import shlex
import shutil
import subprocess
import tempfile
import time

from helpers.patience import PATIENCE

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]


def find_chromium():
    """Where Chromium is, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)


class Browser:
    """One page; what it asked the network for and what it complained about is kept."""

    def __init__(self, folder):
        self.folder = folder
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        there_read, self._write = os.pipe()
        self._read, there_write = os.pipe()
        command = [find_chromium(), *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(  # The protocol is spoken on the descriptors 3 and 4.
            ["bash", "-c", f"exec {shlex.join(command)} 3<&{there_read} 4>&{there_write}"],
            pass_fds=(there_read, there_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there_read)
        os.close(there_write)
        self._number = 0
        self._rest = b""
        self._session = None
        self.requests = []
        self.complaints = []
        self._loaded = False
        (page,) = [one for one in self.send("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        self._session = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def send(self, method, **arguments):
        self._number += 1
        message = {"id": self._number, "method": method, "params": arguments}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._read_message()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _read_message(self):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            piece = os.read(self._read, 1 << 20) if ready else b""
            assert piece, "Chromium does not answer"
            self._rest += piece
        first, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(first)
        self._note(message.get("method"), message.get("params"))
        return message

    def _note(self, event, about):
        if event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"].get("exception", about["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(about["args"])
        elif event == "Log.entryAdded":
            self.complaints.append(about["entry"]["text"])
        elif event == "Page.javascriptDialogOpening":
            self.complaints.append(about["message"])
        elif event == "Page.loadEventFired":
            self._loaded = True

    def open(self, path, *, width=1280, height=900, dark=False):
        """Load a file from disk, and forget what earlier ones did."""
        self.requests = []
        self.complaints = []
        self._loaded = False
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Page.navigate", url=path.as_uri())
        while not self._loaded:
            self._read_message()

    def run(self, script):
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key):
        """Press a key of the keyboard, as a person would."""
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        text = {"Enter": "\r", " ": " "}.get(key, "")
        named = {"key": key, "code": {" ": "Space"}.get(key, key), "windowsVirtualKeyCode": codes[key]}
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **named)
        self.send("Input.dispatchKeyEvent", type="keyUp", **named)

    def write(self, text):
        """Write text into what has the focus."""
        self.send("Input.insertText", text=text)

    def take_picture(self, path):
        """Write a screenshot of the whole page."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))

    def take_download(self, name):
        """The bytes of a file once it has come; the file is removed."""
        end = time.monotonic() + PATIENCE
        while not (self.folder / name).exists() and time.monotonic() < end:
            time.sleep(0.05)
        content = (self.folder / name).read_bytes()
        (self.folder / name).unlink()
        return content

    def close(self):
        self._session = None
        try:
            self.send("Browser.close")
        finally:
            os.close(self._write)
            os.close(self._read)
            self._process.wait(PATIENCE)
            self._profile.cleanup()
