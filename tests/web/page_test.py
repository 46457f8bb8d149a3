"""Drives the page in Chromium by mouse, keys, fingers and files, step by step; the steps of a function share a page.

    page_test.py FOLDER [NAME…]     FOLDER has the page; steps whose function begins with a NAME, else all. Exit status 0 if all pass.

Pictures of failed steps are kept in FOLDER/../failed.
"""
import base64
import contextlib
import json
import pathlib
import re
import sys
import threading
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Browser, Page, find_chromium
from serve import serve

FAILED = []
PASSED = []


class Steps:
    """Runs the steps of a function and counts them; after a failed one the rest of the function is not run."""

    def __init__(self, browser, address, pictures):
        self.browser, self.address, self.pictures = browser, address, pictures
        self.page = None

    def open(self, tail="", **options):
        """Opens the page and waits for the program."""
        self.page = Page(self.browser, self.address + tail, **options)
        return self.started()

    def started(self):
        self.page.wait_for("attnscopePage.counts.firstFrame", 60)
        self.page.settle()
        return self.page

    @contextlib.contextmanager
    def step(self, name):
        begin = time.monotonic()
        try:
            yield
            problems = self.page.problems() if self.page else []
            assert not problems, problems
        except Exception as error:
            FAILED.append(name)
            self.pictures.mkdir(parents=True, exist_ok=True)
            path = self.pictures / (re.sub(r"\W+", "-", name) + ".png")
            with contextlib.suppress(Exception):
                self.page.picture(path)
            state = ""
            with contextlib.suppress(Exception):
                state = f"; the program says {self.page.ask('attnscopePage.state()')}"
            print(f"FAILED  {name}: {type(error).__name__}: {error}{state}; picture: {path}", flush=True)
            raise
        PASSED.append(name)
        print(f"passed  {name} ({time.monotonic() - begin:.1f} s)", flush=True)


def title(page):
    return page.ask("document.title")


def state(page):
    return page.ask("attnscopePage.state()")


def sentence(page):
    return page.ask("document.getElementById('sentence').textContent")


def choose(page, *path):
    """Clicks along menus."""
    for name in path:
        page.click(name)


def link_of(page):
    """Returns the link that File → Copy link copies."""
    choose(page, "menu/File", "menu/file/link")
    return page.ask("navigator.clipboard.readText()")


def session_of(link):
    """Returns the session in a link."""
    packed = link.split("#s=")[1]
    return json.loads(zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), -15))


def cell(page, matrix, row, column, n_rows=6, n_columns=6):
    """Returns the center of a cell of a heatmap."""
    left, top, right, bottom = page.wait_for(f"attnscopePage.landmarks()[{json.dumps(matrix)}]")
    return left + (right - left) * (column + 0.5) / n_columns, top + (bottom - top) * (row + 0.5) / n_rows


def editing(t):
    page = t.open("#preset=000-causal")
    with t.step("a link opens a preset"):
        assert "strip/weights" in page.landmarks()
        assert "•" not in title(page)
    with t.step("a number is dragged, and its effect is in a link"):
        page.drag("edit/cell/1/0", 60, 0)
        assert title(page).startswith("•"), title(page)
        first = link_of(page)
        assert first.startswith(t.address + "#s="), first[:80]
    with t.step("undo and redo by keys"):
        page.press("Ctrl+Z")
        assert not title(page).startswith("•"), title(page)
        page.press("Ctrl+Shift+Z")
        assert session_of(link_of(page)) == session_of(first)
    with t.step("a number is typed"):
        page.press("E")
        page.type("2.5")
        page.press("Enter")
        page.press("Escape")
        assert "2.5" in json.dumps(session_of(link_of(page)))
    with t.step("a cell is pinned and told to screen readers"):
        page.click(cell(page, "strip/weights", 3, 1))
        page.mouse("mouseMoved", 640, 5)
        page.settle()
        assert "inspector/value" in page.landmarks()
        assert re.search(r"\d", sentence(page)), sentence(page)
    with t.step("a switch, and the keyboard layout's letter for it"):
        before = session_of(link_of(page))
        page.press("C")
        assert session_of(link_of(page)) != before
        page.press("C")
        assert session_of(link_of(page)) == before
    with t.step("pages and heads by clicks"):
        page.click("tabs/Heads")
        assert "heads/name/0" in page.landmarks()
        page.click("tabs/Stages")
    with t.step("the light theme, kept over a reload"):
        page.press("T")
        page.settle()
        time.sleep(1)
        assert "light" in page.ask("JSON.stringify(localStorage)")
    with t.step("unsaved work is offered after a reload"):
        time.sleep(1.5)
        page.ask("onbeforeunload = null; removeEventListener; 0")
        page.reload()
        t.started()
        page.wait_for("Object.keys(attnscopePage.landmarks()).some(name => name.startsWith('dialog/'))", 10)
        page.press("Enter")
        page.settle()
        assert title(page).startswith("•"), title(page)


def idleness(t):
    page = t.open("#preset=multi-head")
    with t.step("idle, it draws no frame"):
        time.sleep(6)  # it looks for unsaved work of pages that are ending
        before = state(page)["frames"]
        time.sleep(4)
        assert state(page)["frames"] == before


def lessons(t):
    page = t.open("#lesson=000.5")
    with t.step("a link opens the fifth step of a lesson"):
        assert "lesson/next" in page.landmarks()
    with t.step("a lesson goes on and is left"):
        page.click("lesson/next")
        page.click("lesson/leave")
        assert "lesson/next" not in page.landmarks()
    with t.step("a link that is wrong gets one line"):
        page.go(t.address + "#preset=nothing")
        page.wait_for("attnscopePage.state().message.includes('nothing')")
        page.go(t.address + "#s=AAAA")
        page.wait_for("attnscopePage.state().message.startsWith('link:')")


def texts(t):
    page = t.open("#preset=000-causal")
    with t.step("numbers are copied and pasted"):
        page.press("E")
        page.press("Escape")
        page.ask("navigator.clipboard.writeText('1.25\\t-3\\n0.5\\t8')")
        page.click("edit/cell/0/0")
        page.press("Escape")
        page.press("Ctrl+V")
        text = json.dumps(session_of(link_of(page)))
        assert "1.25" in text and "-3" in text, state(page)
    with t.step("an input method composes"):
        page.press("Ctrl+Shift+P")
        page.send("Input.imeSetComposition", text="caus", selectionStart=4, selectionEnd=4)
        page.settle()
        page.send("Input.insertText", text="causal")
        page.settle()
        assert any(name.startswith("palette/") for name in page.landmarks())
        page.press("Escape")


def files(t):
    page = t.open("#preset=multi-head")
    with t.step("Save is a download"):
        page.drag("edit/cell/0/0", 40, 0)
        page.press("Ctrl+S")
        page.type("mine")
        page.press("Enter")
        saved = json.loads(page.downloaded("mine.json"))
        assert saved
    with t.step("a dropped session is opened"):
        page.go("about:blank")
        page.go(t.address)
        t.started()
        page.drop(page.downloads / "mine.json", 640, 400)
        page.wait_for("attnscopePage.state().title.includes('mine')")
        assert session_of(link_of(page)) is not None
    with t.step("Export makes a picture"):
        page.press("Ctrl+E")
        page.picture("/tmp/page/export.png")


def touching(t):
    page = t.open("#preset=000-causal", width=1024, height=768, ratio=2, is_touch=True)
    with t.step("a finger drags a number"):
        x, y = page.place("edit/cell/1/0")
        page.touch("touchStart", (x, y))
        for k in range(1, 15):
            page.touch("touchMove", (x + 4 * k, y))
        page.touch("touchEnd")
        page.settle()
        assert title(page).startswith("•"), title(page)
    with t.step("a tap pins a cell"):
        page.touch("touchStart", cell(page, "strip/weights", 3, 1))
        page.touch("touchEnd")
        page.settle()
        assert "inspector/value" in page.landmarks()
    with t.step("a long press opens a menu"):
        page.touch("touchStart", page.place("edit/token/1"))
        time.sleep(0.8)
        page.touch("touchEnd")
        page.settle()
        assert any(name.startswith("edit/token_menu/") for name in page.landmarks())


def sizes(t):
    page = t.open("#preset=multi-head")
    with t.step("the window follows the page's size and ratio"):
        page.resize(1000, 640)
        page.settle()
        assert page.ask("document.getElementById('canvas').width") == 1000
        page.resize(1280, 800, 2)
        page.settle()
        assert page.ask("document.getElementById('canvas').width") == 2560


def whole_models(t):
    page = t.open()
    with t.step("the tiny GPT is fetched when it is opened"):
        fetched = "performance.getEntriesByType('resource').some(entry => entry.name.includes('model.safetensors'))"
        assert not page.ask(fetched)
        choose(page, "menu/File", "menu/File/New", "menu/File/New/Whole model", "menu/model/tiny_gpt")
        page.wait_for("attnscopePage.landmarks()['layers/2.3']", 60)
        assert page.ask(fetched)
    with t.step("a head of it is ablated"):
        page.click("layers/2.3")
        page.settle()
        page.picture("/tmp/page/gpt.png")


SCENARIOS = [editing, idleness, lessons, texts, files, touching, sizes, whole_models]


def why_skipped(folder):
    """Returns why the page cannot be tested, or ""."""
    program = folder / "attnscope.wasm"
    if not program.exists():
        return "scripts/web has built no page"
    if not find_chromium():
        return "Chromium is missing"
    root = pathlib.Path(__file__).parent.parent.parent
    sources = (path for part in ("app", "core", "assets", "shaders", "cmake") for path in (root / part).rglob("*"))
    if any(path.is_file() and path.stat().st_mtime > program.stat().st_mtime for path in sources):
        return "the page is older than its sources; scripts/web builds it"
    return ""


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
    if reason := why_skipped(folder):
        print(f"skipped: {reason}")
        return 77
    server = serve(str(folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    steps = Steps(Browser(), f"http://127.0.0.1:{server.server_port}/", folder.parent / "failed")
    for scenario in SCENARIOS:
        if not names or any(scenario.__name__.startswith(name) for name in names):
            with contextlib.suppress(Exception):
                scenario(steps)
    steps.browser.close()
    print(f"{len(PASSED)} steps passed, {len(FAILED)} failed")
    return 1 if FAILED or not PASSED else 0


if __name__ == "__main__":
    sys.exit(main())
