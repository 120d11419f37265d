"""Drives Chromium without a window over a pipe (`--remote-debugging-pipe`): JSON between NUL bytes, no WebSocket, nothing but Python."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Failed(AssertionError):
    """The page is not as it should be."""


def _pipes(to_read, to_write):
    # Chromium reads commands at 3 and writes answers at 4. Both are first moved out of the way.
    def arrange():
        a, b = os.dup2(to_read, 100), os.dup2(to_write, 101)
        os.dup2(a, 3)
        os.dup2(b, 4)
        os.set_inheritable(3, True)
        os.set_inheritable(4, True)

    return arrange


class Browser:
    def __init__(self):
        program = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
        if program is None:
            raise Failed("a browser is needed: apt-get install chromium")
        self.folder = tempfile.mkdtemp(prefix="netdyno-page-")
        commands, self.write = os.pipe()
        self.read, answers = os.pipe()
        self.child = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
             "--hide-scrollbars", f"--user-data-dir={self.folder}/profile", "--remote-debugging-pipe", "about:blank"],
            # It leaves folders in $TMPDIR when it is ended.
            env={**os.environ, "TMPDIR": self.folder},
            preexec_fn=_pipes(commands, answers), pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.pending, self.number, self.answers, self.listeners = b"", 0, {}, []

    def close(self):
        self.child.terminate()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        os.close(self.read)
        os.close(self.write)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def pump(self, seconds):
        """Takes what the browser says within that time."""
        if not select.select([self.read], [], [], seconds)[0]:
            return
        chunk = os.read(self.read, 1 << 20)
        if not chunk:
            raise Failed("the browser has ended")
        *whole, self.pending = (self.pending + chunk).split(b"\0")
        for message in map(json.loads, whole):
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                for listener in self.listeners:
                    listener(message)

    def call(self, method, session=None, **params):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self.write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 60
        while number not in self.answers:
            if time.monotonic() > end:
                raise Failed(f"the browser does not answer {method}")
            self.pump(1)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise Failed(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def page(self):
        return Page(self)


class Page:
    """A tab. `said` has what its console said, errors and what the policy forbids among it; `requests` what it asked for."""

    def __init__(self, browser):
        self.browser, self.said, self.requests = browser, [], []
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.listeners.append(self.listen)
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")

    def listen(self, message):
        if message.get("sessionId") != self.session:
            return
        params = message["params"]
        if message["method"] == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.said.append(details.get("exception", {}).get("description") or details["text"])
        elif message["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.said.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif message["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.said.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif message["method"] == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method, **params):
        return self.browser.call(method, session=self.session, **params)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def run(self, script):
        """What an expression comes to, awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Failed(f"{script}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def until(self, script, what, seconds=30):
        """Waits until an expression is true, and returns it."""
        end = time.monotonic() + seconds
        while True:
            try:
                value = self.run(f"Promise.resolve({script}).then((value) => (value instanceof Node ? true : value))")
            except Failed:
                # The page is being loaded.
                value = None
            if value:
                return value
            if time.monotonic() > end:
                raise Failed(f"{what}: not within {seconds} s; the page says: {self.run('document.body?.innerText')!r:.1500}; its console: {self.said}")
            self.browser.pump(0.05)

    def size(self, width, height=900, dark=False, reduced=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [("prefers-color-scheme", "dark" if dark else "light"), ("prefers-reduced-motion", "reduce" if reduced else "no-preference")]
        self.call("Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features])

    def picture(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def press(self, key, code=None, text=None):
        text = key if text is None and len(key) == 1 else text
        more = {"key": key, **({"code": code} if code else {}), **({"text": text} if text else {})}
        self.call("Input.dispatchKeyEvent", type="keyDown", **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
