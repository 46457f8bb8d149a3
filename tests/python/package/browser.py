"""Headless Chromium for pages of attention: that of tests/web, with what these tests ask of it."""

import importlib.util
import pathlib

_PLACE = pathlib.Path(__file__).parents[2] / "web/browser.py"
_SPEC = importlib.util.spec_from_file_location("web_browser", _PLACE)
_web = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_web)

CHROMIUM = _web.find_chromium()


class Browser(_web.Page):
    def __init__(self, width=1000, height=520):
        super().__init__(_web.Browser(), "about:blank", width, height)
        self.send("Network.enable")

    run, size, errors = _web.Page.ask, _web.Page.resize, property(_web.Page.problems)

    @property
    def requests(self):
        sent = (e for e in self.browser.events if e["method"] == "Network.requestWillBeSent")
        return [e["params"]["request"]["url"][:80] for e in sent]

    def dark(self, dark):
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[theme])

    def open(self, path, ready="window.attnscope"):
        self.go(pathlib.Path(path).absolute().as_uri())
        self.wait_for(ready)
        self.frames(6)

    def frames(self, n=3):
        self.run(
            f"new Promise(done => {{ let n = {n}; const next = () => n-- ? requestAnimationFrame(next) : done(); next() }})"
        )

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.frames()

    def key(self, key):
        text = {} if len(key) > 1 else {"text": key}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frames()

    def close(self):
        self.browser.close()
