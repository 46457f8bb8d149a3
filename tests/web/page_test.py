"""Drives the page in Chromium by mouse, keys, fingers and files, step by step; the steps of a function share a page.

    page_test.py FOLDER [NAME…]     FOLDER has the page; steps whose function begins with a NAME, else all. Exit status 0 if all pass.

Pictures of failed steps are kept in FOLDER/../failed.
"""
import array
import base64
import contextlib
import io
import json
import math
import pathlib
import re
import struct
import sys
import threading
import time
import zipfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from browser import Browser, Page, find_chromium
from serve import serve

WEIGHTS_ARE_FETCHED = "performance.getEntriesByType('resource').some(entry => entry.name.endsWith('.safetensors'))"
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


def packed(session):
    """Returns a session as in a link."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.urlsafe_b64encode(deflate.compress(json.dumps(session).encode()) + deflate.flush()).decode().rstrip("=")


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
        page.reload()
        t.started()
        page.click("dialog/look0")
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
        page.ask("navigator.clipboard.writeText('1.25\\t-3\\n0.5\\t8')")
        page.click("edit/cell/0/0")
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
        assert not title(page).startswith("•"), title(page)
    with t.step("a dropped session is opened"):
        page.go("about:blank")
        page.go(t.address)
        t.started()
        page.drop(page.downloads / "mine.json", 640, 400)
        page.wait_for("attnscopePage.state().title === 'mine.json'")
        page.drag("edit/cell/0/0", 1, 0)
        assert session_of(link_of(page)).keys() >= saved.keys() - {"view"}, state(page)
    formats = {"csv": b"", "npy": b"\x93NUMPY", "npz": b"PK", "svg": b"<svg", "png": b"\x89PNG"}
    with t.step("Export makes tables and pictures as downloads"):
        for k, (ending, beginning) in enumerate(formats.items()):
            page.press("Ctrl+E")
            page.click(f"dialog/form/{k}")
            page.click("dialog/confirm")
            content = page.downloaded_with(ending)
            assert content.lstrip().startswith(beginning) or b"<svg" in content[:200], (ending, content[:60])
    with t.step("a picture has the pixels of a canvas"):
        width, height = struct.unpack(">II", page.downloaded_with("png")[16:24])
        assert width > 300 and height > 100, (width, height)
    with t.step("several files come as one zip"):
        page.press("Ctrl+E")
        page.click("dialog/form/0")
        page.click("dialog/what/2")
        page.click("dialog/confirm")
        with zipfile.ZipFile(io.BytesIO(page.downloaded_with("zip"))) as archive:
            assert len(archive.namelist()) > 5 and archive.testzip() is None
    with t.step("what a page cannot make gets one line"):
        page.press("Ctrl+E")
        page.click("dialog/form/5")
        page.click("dialog/confirm")
        page.wait_for("attnscopePage.state().message.includes('PDF')")
        page.press("Escape")
    with t.step("a dropped file that is none gets one line"):
        path = page.downloads / "none.json"
        path.write_text("{")
        page.drop(path, 640, 400)
        page.wait_for("attnscopePage.state().message.includes('none.json')")


def two_pages(t):
    page = t.open("#preset=000-causal")
    with t.step("a second page leaves the work of the first alone"):
        page.drag("edit/cell/1/0", 60, 0)
        time.sleep(1.5)
        first, page = page, t.open("#preset=000-causal", context=page.context)
        time.sleep(2)
        assert not any(name.startswith("dialog/") for name in page.landmarks())
        page.close()
    with t.step("the work of a page that was closed is offered by the next"):
        first.close()
        page = t.open("#preset=000-causal", context=first.context)
        page.click("dialog/look0")
        assert title(page).startswith("•"), title(page)


def embedding(t):
    page = t.open("?embed#preset=multi-head&view=heads&head=1")
    with t.step("embedded, it has no menus and no sides"):
        names = page.landmarks()
        assert "heads/name/1" in names and "menu/File" not in names and "region/model" not in names, sorted(names)


def looking(t):
    page = t.open("#preset=multi-head")
    with t.step("a menu is opened and searched"):
        choose(page, "menu/View")
        assert any(name.startswith("menu/") and "/" in name[5:] for name in page.landmarks())
        page.press("Escape")
    with t.step("a snapshot is compared"):
        page.press("Ctrl+Shift+C") if "tabs/Compare" not in page.landmarks() else page.click("tabs/Compare")
        page.settle()
        assert page.ask("attnscopePage.state().message") is not None


def learning(t):
    page = t.open()
    with t.step("the start page fetches no weights"):
        page.picture()
        assert not page.ask(WEIGHTS_ARE_FETCHED)
    with t.step("a model learns between frames"):
        page.press("4", settles=False)
        page.wait_for("attnscopePage.landmarks()['tabs/Learn']")
        page.settle()
        page.press("Space", settles=False)
        before = page.picture()
        time.sleep(3)
        assert page.picture() != before
    with t.step("a key pauses it"):
        page.press("Space")
        assert page.ask("attnscopePage.counts.longest") < 3000  # also on a busy machine


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
    with t.step("two fingers zoom into a map and pan it"):
        numbers = [[math.sin(3 * i + j) for j in range(3)] for i in range(64)]
        page.go(t.address + "#s=" + packed({"attnscope": 1, "tokens": [f"t{i}" for i in range(64)], "embeddings": numbers}))
        page.click("dialog/discard")
        page.wait_for("attnscopePage.state().title === 'Linked session'")
        page.settle()
        x, y = cell(page, "strip/scores", 3, 1)
        before = page.picture()
        page.touch("touchStart", (x - 10, y), (x + 10, y))
        for k in range(1, 15):
            page.touch("touchMove", (x - 10 - 3 * k, y), (x + 10 + 3 * k, y))
        page.touch("touchEnd")
        page.settle()
        assert page.picture() != before
        page.press("F")  # fits the map again
    with t.step("a long press opens a menu"):
        page.click("side/edit")
        page.touch("touchStart", page.place("edit/token/1"))
        time.sleep(0.8)
        page.touch("touchEnd")
        page.settle()
        assert any(name.startswith("edit/token_menu/") for name in page.landmarks())


def sizes(t):
    page = t.open("#preset=multi-head")
    with t.step("the window follows the page's size and ratio"):
        for width, height, ratio in ((1000, 640, 1), (1280, 800, 2)):
            page.resize(width, height, ratio)
            page.wait_for(f"document.getElementById('canvas').width === {ratio * width}")
            page.settle()
            assert page.landmarks()["region/status"][2:] == [width, height], page.landmarks()["region/status"]


def whole_models(t):
    page = t.open("#preset=000-causal")
    with t.step("the tiny GPT is fetched when it is opened"):
        assert not page.ask(WEIGHTS_ARE_FETCHED)
        choose(page, "menu/File", "menu/File/New", "menu/File/New/Whole model", "menu/model/tiny_gpt")
        page.wait_for("attnscopePage.landmarks()['layers/2.3']", 60)
        assert page.ask(WEIGHTS_ARE_FETCHED)
    with t.step("a head of it is ablated"):
        page.click("layers/2.3")
        page.press("X")
        page.wait_for("attnscopePage.landmarks()['whole/edit/2.3']")
    with t.step("a prompt is typed"):
        page.click("whole/prompt")
        page.press("Ctrl+A")
        page.type("It is a truth")
        page.press("Enter")
        page.wait_for("!attnscopePage.landmarks()['whole/token/13']")


def is_there(page, name):
    return name in page.landmarks()


def is_seen_to_work(page, name):
    """Returns whether frames change while a part of the window shows that something is being computed."""
    page.wait_for(f"attnscopePage.landmarks()[{json.dumps(name)}]")
    page.ask("attnscopePage.counts.longest = 0")
    pictures = set()
    while is_there(page, name) and len(pictures) < 3:
        pictures.add(page.picture())
    return len(pictures) == 3 and is_there(page, name) and page.ask("attnscopePage.counts.longest") < 500  # also on a busy machine


def unlike_any(page):
    """Drops tensors on the page of compare that no bug explains."""
    page.press("Ctrl+E")
    page.click("dialog/form/2")
    page.click("dialog/what/1")
    page.click("dialog/confirm")
    path = page.downloads / "unlike.npz"
    with zipfile.ZipFile(io.BytesIO(page.downloaded_with("npz"))) as right, zipfile.ZipFile(path, "w") as wrong:
        content = right.read("output.npy")
        head = content.index(b"\n") + 1
        numbers = array.array("d", content[head:])
        wrong.writestr("output.npy", content[:head] + array.array("d", [math.sin(3 * x + k) for k, x in enumerate(numbers)]).tobytes())
    page.click("tabs/Compare")
    page.drop(path, 640, 400, settles=False)


def long_work(t):
    page = t.open("#preset=multi-head")
    with t.step("a bug search goes on between frames until it is stopped"):
        unlike_any(page)
        assert is_seen_to_work(page, "compare/stop")
        page.click("compare/stop", settles=False)
        page.wait_for("attnscopePage.landmarks()['compare/search']", 5)
    with t.step("a number is dragged while it searches"):
        page.click("compare/search", settles=False)
        page.wait_for("attnscopePage.landmarks()['compare/stop']")
        x, y = page.place("edit/cell/1/0", settles=False)
        page.mouse("mouseMoved", x, y)
        page.mouse("mousePressed", x, y, "left", 1)
        for k in range(20):
            page.mouse("mouseMoved", x + 2 * k, y, "left")
        page.mouse("mouseReleased", x + 40, y, "left", 1)
        page.settle()
        assert title(page).startswith("•"), title(page)
    with t.step("a map of patches is stopped and keeps what is there"):
        page.press("Ctrl+Z")
        choose(page, "menu/File", "menu/File/New", "menu/File/New/Whole model", "menu/model/tiny_gpt")
        page.wait_for("attnscopePage.landmarks()['layers/2.3']", 60)
        choose(page, "menu/Compare", "menu/whole/two_prompts")
        text = "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife"
        for name, words in (("first", text), ("second", text.replace("man", "good")), ("answer", " the"), ("against", " a")):
            page.click("prompts/" + name)
            page.press("Ctrl+A")
            page.type(words)
            page.press("Enter", settles=name != "against")
        assert is_seen_to_work(page, "prompts/run")
        page.click("prompts/run", settles=False)
        page.settle()
        stopped = page.picture()
        time.sleep(0.5)
        assert is_there(page, "prompts/run") and page.picture() == stopped
    with t.step("it goes on to its end"):
        page.click("prompts/run")
        page.wait_for("!attnscopePage.landmarks()['prompts/run']", 60)


def one_stack(t):
    page = t.open("#preset=multi-head")
    with t.step("a browser that cannot switch stacks works through a bug search at once"):
        page.send("Page.addScriptToEvaluateOnNewDocument", source="delete WebAssembly.Suspending")
        page.reload()
        t.started()
        unlike_any(page)
        page.wait_for("attnscopePage.landmarks()['compare/first']", 60)
        page.settle()
        assert not is_there(page, "compare/stop")


def refusal(t):
    with t.step("without WebGL 2 the page says so in one sentence"):
        browser = Browser("--disable-3d-apis")
        t.page = None
        page = Page(browser, t.address)
        page.wait_for("document.getElementById('message').textContent.includes('WebGL 2')")
        browser.close()


SCENARIOS = [editing, idleness, lessons, texts, files, two_pages, embedding, looking, touching, sizes, learning, whole_models, long_work, one_stack, refusal]


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
            with contextlib.suppress(Exception):
                steps.page.close()
    steps.browser.close()
    print(f"{len(PASSED)} steps passed, {len(FAILED)} failed")
    return 1 if FAILED or not PASSED else 0


if __name__ == "__main__":
    sys.exit(main())
