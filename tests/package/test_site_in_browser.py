"""The site in a real browser: nothing is cut off, however narrow the window, and what is copied can be run."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from helpers.browser import Browser, find_chromium

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium here: as root on Debian, apt-get install chromium"),
]
SCREENSHOTS = Path(__file__).parents[2] / "results/screenshots/site"
LOOKED_AT = ["", "settings/", "command-line/", "reference/classifier/", "reading-an-audit/", "arena/"]
#: The first elements that reach beyond the window and that no box around them scrolls to; and the page, if it is wider.
CUT_OFF = """(() => {
  const width = document.documentElement.clientWidth;
  const scrolls = element => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  const boxes = element => element === document.body ? [] : [element, ...boxes(element.parentElement)];
  const isOutside = element => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && (box.right > width + 1 || box.left < -1);
  };
  return [...document.querySelectorAll(".md-content *"), document.documentElement]
    .filter(element => element === document.documentElement ? element.scrollWidth > width
      : isOutside(element) && !boxes(element).slice(1).some(scrolls))
    .slice(0, 5).map(element => `${element.tagName} ${element.textContent.trim().slice(0, 40)}`);
})()"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    one = Browser(tmp_path_factory.mktemp("downloads"))
    yield one
    one.close()


@pytest.mark.parametrize("width", [1200, 400])
def test_nothing_is_cut_off(browser, site, address, width):
    cut_off = {}
    for page in site.rglob("index.html"):
        name = page.parent.relative_to(site).as_posix()
        browser.open(f"{address}{name}/", width=width)
        cut_off[name] = browser.run(CUT_OFF)
    assert len(cut_off) > 30
    assert {name: found for name, found in cut_off.items() if found} == {}


def test_what_is_too_wide_would_be_seen(browser, address):
    browser.open(address, width=400)
    browser.run("document.querySelector('.md-content p').style.width = '500px'")
    assert browser.run(CUT_OFF)[0].startswith("P untwist learns")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 400])
def test_pages_are_light_or_dark_as_the_reader_has_it(browser, address, width, dark):
    for page in LOOKED_AT:
        browser.open(address + page, width=width, dark=dark)
        browser.run("localStorage.clear()")  # The site keeps what it showed before.
        browser.open(address + page, width=width, dark=dark)
        browser.wait_for(f"document.body.dataset.mdColorScheme === '{'slate' if dark else 'default'}'")
        name = page.strip("/").replace("/", "-") or "index"
        browser.take_picture(SCREENSHOTS / f"{name}-{width}-{'dark' if dark else 'light'}.png")


def test_prompts_and_outputs_are_not_copied(browser, address):
    browser.open(address)
    browser.wait_for("document.querySelector('[data-md-type=copy]') !== null")
    browser.run(
        "document.execCommand = () => { window.copied = document.activeElement.value; return true; };"
        "navigator.clipboard.writeText = async text => { window.copied = text; }"
    )
    browser.run("document.querySelector('.highlight:has(.gp) [data-md-type=copy]').click()")
    lines = browser.wait_for("window.copied").splitlines()
    assert lines[0] == "from sklearn.datasets import load_digits"
    assert lines[-1] == "print(model.noise_)"
    assert not [line for line in lines if line.startswith((">>>", "right on", "wrong labels"))]
