"""Headless Chromium, driven over its debugging pipe with the standard library alone."""

import base64
import json
import os
import shutil
import subprocess
import tempfile

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    def __init__(self, width=1000, height=520, dark=False):
        to_child, self._out = os.pipe()
        self._into, from_child = os.pipe()
        self._folder = tempfile.mkdtemp(prefix="attnscope-browser-")

        def connect():  # Chromium reads from 3 and writes to 4
            a, b = os.dup(to_child), os.dup(from_child)
            os.dup2(a, 3)
            os.dup2(b, 4)

        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._folder}",
        ]
        self._process = subprocess.Popen(
            [CHROMIUM, *options, "about:blank"],
            preexec_fn=connect,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._id, self._rest, self._session = 0, b"", None
        self.errors, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(domain + ".enable")
        self.size(width, height)
        self.dark(dark)

    def call(self, method, **params):
        self._id += 1
        message = {"id": self._id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _read(self):
        while b"\0" not in self._rest:
            part = os.read(self._into, 1 << 20)
            if not part:
                raise RuntimeError("Chromium has ended")
            self._rest += part
        raw, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(raw)
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(message["params"]["exceptionDetails"].get("exception", {}).get("description", "?"))
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"][:80])
        return message

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, dark):
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )

    def open(self, path, ready="window.attnscope"):
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}")
        poll = f"let x; try {{ x = {ready} }} catch {{}} x ? done() : Date.now() > end ? fail(new Error('not ready')) : setTimeout(look, 20)"
        self.run(
            f"new Promise((done, fail) => {{ const end = Date.now() + 30000, look = () => {{ {poll} }}; look() }})"
        )
        self.frames(6)

    def run(self, code):
        result = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description"))
        return result["result"].get("value")

    def frames(self, n=3):
        self.run(
            f"new Promise(done => {{ let n = {n}; const next = () => n-- ? requestAnimationFrame(next) : done(); next() }})"
        )

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.frames()

    def key(self, key):
        text = {} if len(key) > 1 else {"text": key}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frames()

    def shot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        try:
            self._session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self._process.wait(10)
        os.close(self._out)
        os.close(self._into)
        shutil.rmtree(self._folder, ignore_errors=True)
