"""Chromium without a display, driven by the DevTools protocol over a pipe: mouse, keys, fingers, files and pictures."""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

ARGUMENTS = """--headless=new --no-first-run --no-default-browser-check --disable-background-networking --use-angle=swiftshader
--enable-unsafe-swiftshader --hide-scrollbars --mute-audio --remote-debugging-pipe""".split()
MODIFIERS = {"Alt": 1, "Ctrl": 2, "Meta": 4, "Shift": 8}
CODES = {"Ctrl": ("Control", "ControlLeft", 17), "Shift": ("Shift", "ShiftLeft", 16), "Alt": ("Alt", "AltLeft", 18),
         "Enter": ("Enter", "Enter", 13), "Escape": ("Escape", "Escape", 27), "Tab": ("Tab", "Tab", 9),
         "Backspace": ("Backspace", "Backspace", 8), "Delete": ("Delete", "Delete", 46), "Left": ("ArrowLeft", "ArrowLeft", 37),
         "Up": ("ArrowUp", "ArrowUp", 38), "Right": ("ArrowRight", "ArrowRight", 39), "Down": ("ArrowDown", "ArrowDown", 40),
         "Space": (" ", "Space", 32), "PageUp": ("PageUp", "PageUp", 33), "PageDown": ("PageDown", "PageDown", 34), "F1": ("F1", "F1", 112)}


def find_chromium():
    """Returns the path of Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """A Chromium with a profile of its own."""

    def __init__(self, *arguments):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        own = ["--no-sandbox"] if os.geteuid() == 0 else []
        to_browser, self.to = os.pipe()
        self.come, from_browser = os.pipe()

        def connect():  # its ends are 3 and 4
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen([find_chromium(), *ARGUMENTS, *own, *arguments, f"--user-data-dir={self.folder.name}", "about:blank"],
                                        stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, close_fds=False, preexec_fn=connect)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.n_sent, self.events = b"", 0, []
        self.send("Browser.getVersion")

    def send(self, method, session=None, **parameters):
        """Sends a command and returns its result."""
        self.n_sent += 1
        message = {"id": self.n_sent, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while (answer := self.receive()).get("id") != self.n_sent:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def receive(self):
        while b"\0" not in self.buffer:
            some = os.read(self.come, 1 << 20)
            if not some:
                raise RuntimeError("the browser has ended")
            self.buffer += some
        one, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(one)

    def close(self):
        self.send("Browser.close")
        self.process.wait(20)
        self.folder.cleanup()


class Page:
    """A page in a context of its own, or in another page's; lengths are CSS pixels."""

    def __init__(self, browser, address, width=1280, height=800, ratio=1, context=None, is_touch=False):
        self.browser = browser
        self.downloads = pathlib.Path(tempfile.mkdtemp(dir=browser.folder.name))
        self.context = context or browser.send("Target.createBrowserContext")["browserContextId"]
        browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads), browserContextId=self.context)
        browser.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"], browserContextId=self.context)
        self.target = browser.send("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        self.send("Page.enable")
        self.send("Runtime.enable")
        self.send("Log.enable")
        self.resize(width, height, ratio)
        if is_touch:
            self.send("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
        self.go(address)

    def send(self, method, **parameters):
        return self.browser.send(method, session=self.session, **parameters)

    def resize(self, width, height, ratio=1):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False)

    def go(self, address):
        self.send("Page.navigate", url=address)

    def reload(self):
        """Reloads the page, and leaves it although it may have unsaved work."""
        self.ask("window.isLeft = true")
        self.send("Page.reload")
        for _ in range(20):
            if any(e["method"] == "Page.javascriptDialogOpening" and e.get("sessionId") == self.session for e in self.browser.events):
                self.browser.events = [e for e in self.browser.events if e["method"] != "Page.javascriptDialogOpening"]
                self.send("Page.handleJavaScriptDialog", accept=True)
                break
            self.send("Target.getTargetInfo")
            time.sleep(0.05)
        for _ in range(200):
            try:
                if self.ask("!window.isLeft"):
                    return
            except RuntimeError:  # between the pages
                pass
            time.sleep(0.05)
        raise TimeoutError("the page has not been reloaded")

    def ask(self, expression):
        """Returns the value of an expression in JavaScript, awaited."""
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", answer["exceptionDetails"]["text"]))
        return answer["result"].get("value")

    def wait_for(self, expression, seconds=30):
        """Waits until an expression is true; returns its value, or raises TimeoutError."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.ask(f"(() => {{ try {{ return {expression} }} catch {{ return null }} }})()"):
                return value
            time.sleep(0.03)
        raise TimeoutError(f"{expression} is not true after {seconds} s")

    def settle(self):
        """Waits until the program draws no more frames and no job is left."""
        self.wait_for("attnscopePage.isIdle()")

    def landmarks(self):
        return self.ask("attnscopePage.landmarks()")

    def place(self, name, settles=True):
        """Waits for a part of the window, which may move in its first frames, and returns its center."""
        self.wait_for(f"attnscopePage.landmarks()[{json.dumps(name)}]")
        if settles:
            self.settle()
        left, top, right, bottom = self.wait_for(f"attnscopePage.landmarks()[{json.dumps(name)}]")
        return (left + right) / 2, (top + bottom) / 2

    def mouse(self, kind, x, y, button="none", clicks=0, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=clicks, **more)

    def click(self, name, button="left", clicks=1, settles=True):
        x, y = self.place(name, settles) if isinstance(name, str) else name
        self.mouse("mouseMoved", x, y)
        for count in range(1, clicks + 1):
            self.mouse("mousePressed", x, y, button, count)
            self.mouse("mouseReleased", x, y, button, count)
        if settles:
            self.settle()

    def drag(self, name, right, down, steps=20):
        x, y = self.place(name) if isinstance(name, str) else name
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, "left", 1)
        for k in range(1, steps + 1):
            self.mouse("mouseMoved", x + right * k / steps, y + down * k / steps, "left")
            time.sleep(0.01)
        self.mouse("mouseReleased", x + right, y + down, "left", 1)
        self.settle()

    def touch(self, kind, *points):
        self.send("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)])

    def press(self, keys, settles=True):
        """Presses a key with modifiers: "Ctrl+Shift+C", "Enter"; waits until the program draws no more unless it goes on drawing."""
        *held, name = keys.split("+") if keys != "+" else ["+"]
        modifiers = sum(MODIFIERS[each] for each in held)
        for each in held:
            key, code, number = CODES[each]
            self.send("Input.dispatchKeyEvent", type="rawKeyDown", key=key, code=code, windowsVirtualKeyCode=number, modifiers=modifiers)
        is_shifted = "Shift" in held
        key, code, number = CODES.get(name) or (name.upper() if is_shifted else name.lower(),
                                                 f"Digit{name}" if name.isdigit() else f"Key{name.upper()}", ord(name.upper()))
        has_text = len(key) == 1 and not modifiers & 7
        commands = {"a": ["selectAll"], "c": ["copy"], "x": ["cut"], "v": ["paste"]}.get(key, []) if modifiers == 2 else []
        self.send("Input.dispatchKeyEvent", type="keyDown" if has_text else "rawKeyDown", key=key, code=code, windowsVirtualKeyCode=number,
                  modifiers=modifiers, commands=commands, **({"text": key} if has_text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=code, windowsVirtualKeyCode=number, modifiers=modifiers)
        for each in reversed(held):
            key, code, number = CODES[each]
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=code, windowsVirtualKeyCode=number)
        if settles:
            self.settle()

    def type(self, text):
        """Types characters one by one, as a keyboard does."""
        for c in text:
            self.send("Input.dispatchKeyEvent", type="keyDown", key=c, text=c, windowsVirtualKeyCode=ord(c.upper()) if c.isalnum() else 0)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=c)
        self.settle()

    def drop(self, path, x, y, settles=True):
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.send("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)
        if settles:
            self.settle()

    def downloaded(self, name, seconds=20):
        """Waits for a download and returns its bytes."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            path = self.downloads / name
            if path.exists() and not list(self.downloads.glob("*.crdownload")):
                return path.read_bytes()
            self.ask("1")
            time.sleep(0.05)
        raise TimeoutError(f"no download {name} but {sorted(p.name for p in self.downloads.iterdir())}")

    def downloaded_with(self, ending, seconds=20):
        """Waits for a download whose name ends with .ending and returns its bytes."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := list(self.downloads.glob(f"*.{ending}")):
                return self.downloaded(found[0].name)
            self.ask("1")
            time.sleep(0.05)
        raise TimeoutError(f"no download *.{ending} but {sorted(p.name for p in self.downloads.iterdir())}")

    def picture(self, path=None):
        """Returns the page as PNG."""
        data = base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])
        if path:
            pathlib.Path(path).write_bytes(data)
        return data

    def problems(self):
        """Returns uncaught exceptions and errors in the console so far."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            if event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error":
                found.append(" ".join(str(each.get("value", each.get("description"))) for each in event["params"]["args"]))
        return found

    def close(self):
        self.browser.send("Target.closeTarget", targetId=self.target)
