"""A real browser, headless: Chromium driven by its DevTools protocol over a WebSocket. Standard library only."""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Page:
    """One tab."""

    def __init__(self, address):
        host, rest = address[len("ws://"):].split("/", 1)
        name, port = host.rsplit(":", 1)
        self.socket = socket.create_connection((name, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(("GET /%s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: %s\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n" % (rest, host, key)).encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(65536)
        self.buffer = self.buffer.split(b"\r\n\r\n", 1)[1]
        self.number = 0
        self.events = []

    def close(self):
        if self.socket.fileno() >= 0:
            self.call("Page.close")
            self.socket.close()

    def _take(self, n):
        while len(self.buffer) < n:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise RuntimeError("the browser is gone")
            self.buffer += piece
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def _read(self):
        text = b""
        while True:
            head = self._take(2)
            n = head[1] & 127
            if n == 126:
                n = struct.unpack(">H", self._take(2))[0]
            elif n == 127:
                n = struct.unpack(">Q", self._take(8))[0]
            text += self._take(n)
            if head[0] & 128:
                return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        data = json.dumps({"id": self.number, "method": method, "params": params}).encode()
        mask = os.urandom(4)
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data)) \
            if len(data) < 65536 else b"\xff" + struct.pack(">Q", len(data))
        self.socket.sendall(b"\x81" + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))
        while True:
            v = self._read()
            if v.get("id") == self.number:
                if "error" in v:
                    raise RuntimeError(str(v["error"]))
                return v["result"]
            self.events.append(v)

    def js(self, expression):
        """The value of an expression in the page; a promise is waited for."""
        v = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in v:
            raise RuntimeError(v["exceptionDetails"].get("exception", {}).get("description", str(v["exceptionDetails"])))
        return v["result"].get("value")

    def until(self, expression, seconds=15):
        """Waits until it is true in the page; how long that took, or None."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            try:
                if self.js(expression):
                    return time.monotonic() - began
            except RuntimeError:
                pass
            time.sleep(0.02)
        return None

    def open(self, address, width=1280, height=900, dark=False, reduced=False):
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Log.enable")
        self.size(width, height)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"}])
        self.call("Page.navigate", url=address)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)

    def shot(self, path):
        height = self.js("Math.ceil(document.documentElement.scrollHeight)")
        width = self.js("window.innerWidth")
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def complaints(self):
        """What the console and the security policy had to say."""
        self.js("1")
        found = []
        for e in self.events:
            if e.get("method") == "Runtime.exceptionThrown":
                found.append(str(e["params"]["exceptionDetails"].get("exception", {}).get("description"))[:300])
            if e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] == "error" and \
                    e["params"]["entry"].get("source") in ("security", "javascript"):
                found.append(e["params"]["entry"]["text"][:300])
        return found


class Browser:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="postrider-browser.")
        self.process = subprocess.Popen(
            [find_browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
             "--remote-debugging-port=0", "--remote-allow-origins=*", "--user-data-dir=" + self.dir, "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = os.path.join(self.dir, "DevToolsActivePort")
        until = time.monotonic() + 60
        while not (os.path.exists(port) and open(port).read().count("\n") >= 1):
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError("the browser does not start")
            time.sleep(0.05)
        self.port = int(open(port).read().split()[0])

    def page(self):
        r = urllib.request.Request("http://127.0.0.1:%d/json/new?about:blank" % self.port, method="PUT")
        with urllib.request.urlopen(r, timeout=60) as f:
            return Page(json.load(f)["webSocketDebuggerUrl"])

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
