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
        self._chooser = None
        (page,) = [one for one in self.send("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        self._session = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        self.send("Page.setInterceptFileChooserDialog", enabled=True)

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
        elif event == "Page.fileChooserOpened":
            self._chooser = about["backendNodeId"]

    def open(self, path, *, width=1280, height=900, dark=False):
        """Load a file from disk, or an address, and forget what earlier ones did."""
        self.requests = []
        self.complaints = []
        self._loaded = False
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        while not self._loaded:
            self._read_message()

    def run(self, script):
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, script):
        """The value of an expression once it is true, or not empty."""
        end = time.monotonic() + PATIENCE
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"{script} stays {value!r}"
            time.sleep(0.02)
        return value

    def press(self, *keys):
        """Press keys of the keyboard one after the other, as a person would; a capital letter is one with Shift."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowUp": 38, "ArrowDown": 40}
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            code = f"Key{key.upper()}" if key.isalpha() and len(key) == 1 else {" ": "Space"}.get(key, key)
            named = {"key": key, "code": code, "windowsVirtualKeyCode": codes.get(key) or ord(key[0].upper())}
            held = {"modifiers": 8 if len(key) == 1 and key.isupper() else 0}
            self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **named, **held)
            self.send("Input.dispatchKeyEvent", type="keyUp", **named, **held)

    def press_until(self, key, script):
        """Press a key again and again, until an expression is true."""
        for _ in range(200):
            if self.run(script):
                return
            self.press(key)
        raise AssertionError(f"{script} is not reached by pressing {key}")

    def choose_file(self, path):
        """Choose a file in the dialog that the page has opened."""
        end = time.monotonic() + PATIENCE
        while self._chooser is None and time.monotonic() < end:
            self.run("0")  # Events come with answers.
            time.sleep(0.02)
        self.send("DOM.setFileInputFiles", files=[str(path)], backendNodeId=self._chooser)
        self._chooser = None

    def write(self, text):
        """Write text into what has the focus."""
        self.send("Input.insertText", text=text)

    def take_picture(self, path, selector="html"):
        """Write a screenshot of the whole page, or of one element."""
        box = self.run(
            f"(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect();"
            "return [box.x + scrollX, box.y + scrollY, box.width, box.height]; })()"
        )
        clip = dict(zip(("x", "y", "width", "height"), box, strict=True)) | {"scale": 1}
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
