"""``untwist review`` in a process of its own, which can be killed."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager

from helpers.patience import PATIENCE


class Review:
    """A review of data.csv in a process of its own, with the address that it says."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "untwist.commands.main", "review", "data.csv", "--label", "y", "--no-browser"]

        def hear():
            signal.signal(signal.SIGINT, signal.default_int_handler)

        self.process = subprocess.Popen(
            [*command, "--threads", "1", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        self.watchdog = threading.Timer(PATIENCE, self.process.kill)
        self.watchdog.start()
        self.said = ""
        self.address = None
        for line in self.process.stderr:
            self.said += line
            if found := re.match(r"Review at (http://127\.0\.0\.1:\d+/\S+/)", line):
                self.address = found[1]
                break

    def post(self, **decision):
        request = urllib.request.Request(
            f"{self.address}decisions", json.dumps(decision).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def end(self, how):
        """Send a signal; returns the exit status and what was said on standard output."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=PATIENCE)
        self.said += err
        self.watchdog.cancel()
        return self.process.returncode, out


@contextmanager
def open_reviews():
    """What starts reviews, none of which outlives the context."""
    running = []

    def begin(*arguments):
        running.append(Review(*arguments))
        return running[-1]

    yield begin
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()
        one.watchdog.cancel()
