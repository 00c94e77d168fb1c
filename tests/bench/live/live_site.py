"""A daemon for a bench that looks at it from outside: started in a new folder, filled with jobs, stopped.

The benches of this folder print one JSON object on standard output, as the scripts of ../peers do:
{"ours": NUMBER, "what": "...", "also": true or false}. Where something is not installed they print
{"installed": false}."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


def missing(what):
    print(json.dumps({"installed": False, "what": what}))
    sys.exit(0)


def answer(ours, what, also=True):
    print(json.dumps({"ours": ours, "what": what, "also": bool(also)}))


def percentile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(p / 100.0 * len(ordered)))]


class Site:
    """postriderd with HTTP on a free port. `model`: with a model trained on the measured profile; `curves`: which also knows the
    accuracy of each epoch."""

    def __init__(self, binaries, tenants=0, slots=2, model=True, types=None, curves=False):
        self.dir = tempfile.mkdtemp(prefix="postrider-live.")
        os.chmod(self.dir, 0o755)
        self.binaries = binaries
        self.socket = os.path.join(self.dir, "s")
        config = {
            "socket": self.socket, "socket_mode": "0666", "state_dir": os.path.join(self.dir, "state"),
            "cores": 2, "slots": slots, "max_queued": 100000, "outside_load": False, "idle_timeout_s": 0,
            "advise_timeout_s": 86400, "policy": "postrider" if model else "fixed:64",
            "http": {"listen": "127.0.0.1:0", "max_connections": 1000},
            "types": types or {"digits": {
                "batches": [64, 128, 256, 512],
                "params": {"network": {"kind": "word", "values": ["lenet5", "simplenet"], "default": "simplenet"},
                           "epochs": {"kind": "integer", "min": 1, "max": 100, "default": 4},
                           "samples": {"kind": "integer", "min": 100, "max": 60000, "default": 12000}}}}}
        if tenants:
            config["tenants"] = {"tenant%04d" % i: {"users": [20000 + i], "weight": 1 + i % 3}
                                 for i in range(tenants)}
        if model:
            config["model"] = os.path.join(self.dir, "m.model")
            table = os.path.join(ROOT, "configs/profiles/two-cores")
            subprocess.run([os.path.join(binaries, "postrider"), "train", os.path.join(table, "runs.csv"), "-q",
                            "--policy", "postrider", "-o", config["model"]]
                           + (["--curves", os.path.join(table, "curves.csv")] if curves else []), check=True)
        self.config = os.path.join(self.dir, "config.json")
        with open(self.config, "w") as f:
            json.dump(config, f)
        self.process = None
        self.start()

    def start(self):
        self.log = open(os.path.join(self.dir, "log"), "ab")
        self.process = subprocess.Popen([os.path.join(self.binaries, "postriderd"), "--config", self.config],
                                        stderr=self.log, stdout=self.log)
        until = time.monotonic() + 30
        while True:
            with open(os.path.join(self.dir, "log")) as f:
                text = f.read()
            if "listening on" in text[getattr(self, "seen", 0):]:
                break
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the daemon does not start: " + text[-500:])
            time.sleep(0.02)
        self.port = int(re.findall(r"HTTP on .*, port (\d+)", text)[-1])
        self.seen = len(text)

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)
            self.process = None
            self.log.close()

    def close(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @contextlib.contextmanager
    def connected(self, uid=None):
        """A connection, as another user where we may be one: the kernel notes who connects."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if uid is not None and os.geteuid() == 0:
            os.seteuid(uid)
        try:
            s.connect(self.socket)
        finally:
            if uid is not None and os.getuid() == 0:
                os.seteuid(0)
        with s, s.makefile("rwb") as f:
            f.readline()
            yield f

    def ask(self, request, uid=None):
        with self.connected(uid) as f:
            f.write(json.dumps(request).encode() + b"\n")
            f.flush()
            return json.loads(f.readline())

    def fill(self, jobs, tenants=1, **members):
        """Jobs that their owner never starts, `jobs` in all, of so many users."""
        line = json.dumps(dict({"op": "submit", "type": "digits", "mode": "advise"}, **members)).encode() + b"\n"
        for i in range(tenants):
            n = jobs // tenants + (i < jobs % tenants)
            with self.connected(20000 + i if tenants > 1 else None) as f:
                for begin in range(0, n, 100):
                    count = min(100, n - begin)
                    f.write(line * count)
                    f.flush()
                    for _ in range(count):
                        reply = json.loads(f.readline())
                        if not reply["ok"]:
                            raise RuntimeError(str(reply))
