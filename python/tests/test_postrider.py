"""The package against a real daemon. tests/cli/python.sh starts this, with BIN in the environment."""
import asyncio
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing
import unittest
from dataclasses import fields, is_dataclass
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "python"))

import postrider  # noqa: E402

BIN = os.environ.get("BIN", os.path.join(ROOT, "build"))
SCRIPT = """
import sys, time
sys.path.insert(0, %r)
import postrider
with postrider.job() as j:
    assert j.inside and j.id and j.dir
    for epoch in range(1, int(sys.argv[2]) + 1):
        time.sleep(float(sys.argv[3]))
        j.report(epoch, 0.5 + 0.1 * epoch)
        if j.should_stop():
            print("stopped after", epoch, "with batch", sys.argv[1], flush=True)
            break
""" % os.path.join(ROOT, "python")


class Daemon:
    def __init__(self, **settings):
        self.folder = tempfile.TemporaryDirectory()
        self.dir = self.folder.name
        self.socket = os.path.join(self.dir, "s")
        with open(os.path.join(self.dir, "job.py"), "w") as f:
            f.write(SCRIPT)
        model = os.path.join(self.dir, "m.model")
        subprocess.run([os.path.join(BIN, "postrider"), "train", os.path.join(ROOT, "configs/profiles/two-cores/runs.csv"),
                        "-q", "--model", "hybrid", "--set", "trees=20", "-o", model], check=True)
        params = {"network": {"kind": "word", "values": ["lenet5", "simplenet"], "default": "simplenet"},
                  "samples": {"kind": "integer", "min": 100, "max": 60000, "default": 12000},
                  "epochs": {"kind": "integer", "min": 1, "max": 1000000, "default": 2},
                  "pause": {"kind": "number", "min": 0, "max": 60, "default": 0.01}}
        config = {"socket": self.socket, "state_dir": os.path.join(self.dir, "state"), "model": model,
                  "outside_load": False, "cores": 2, "slots": 2, "kill_grace_s": 5,
                  "types": {"script": {"argv": [sys.executable, os.path.join(self.dir, "job.py"), "{batch}", "{epochs}", "{pause}"],
                                       "params": params, "epochs_param": "epochs", "early_stop": True,
                                       "batches": [64, 128, 256, 512]},
                            "abroad": {"params": {"network": params["network"], "samples": params["samples"],
                                                  "epochs": params["epochs"]}, "batches": [64, 128]}}, **settings}
        self.config = os.path.join(self.dir, "config.json")
        with open(self.config, "w") as f:
            json.dump(config, f)
        self.log = open(os.path.join(self.dir, "log"), "ab")
        self.start()

    def start(self):
        self.process = subprocess.Popen([os.path.join(BIN, "postriderd"), "--config", self.config],
                                        stderr=self.log)
        for _ in range(300):
            try:
                with postrider.Client(self.socket) as c:
                    c.hello()
                return
            except postrider.NotReachable:
                time.sleep(0.05)
        raise RuntimeError(open(os.path.join(self.dir, "log")).read())

    def stop(self):
        self.process.terminate()
        self.process.wait(20)

    def clear(self):
        """Nothing of one test is in the way of the next."""
        with postrider.Client(self.socket) as c:
            for j in list(c.list(["queued", "running"])):
                try:
                    c.cancel(j.job)
                    c.wait(j.job, 20)
                except postrider.PostriderError:
                    pass

    def close(self):
        self.clear()
        self.stop()
        self.log.close()
        self.folder.cleanup()


def setUpModule():
    global daemon
    daemon = Daemon()


def tearDownModule():
    daemon.close()


class TestClient(unittest.TestCase):
    def setUp(self):
        self.client = postrider.Client(daemon.socket)
        self.addCleanup(self.client.close)
        self.addCleanup(daemon.clear)

    def test_a_job_from_submit_to_its_result(self):
        answer = self.client.submit("script", {"epochs": 3}, slo="1h", tag="first", value=0.5)
        self.assertEqual(answer.verdict, "promised")
        self.assertTrue(answer.accepted and answer.promised)
        self.assertEqual(answer.job.tag, "first")
        self.assertEqual(answer.job.slo_s, 3600)
        self.assertEqual((answer.job.value, answer.decision.value), (0.5, 0.5))
        self.assertEqual(answer.decision.chosen_candidate.batch, answer.job.batch)
        job = self.client.wait(answer.job.job, timeout="60s")
        self.assertEqual((job.state, job.ok, job.met), ("done", True, True))
        self.assertAlmostEqual(job.accuracy, 0.8)
        self.assertIsNotNone(postrider.types.moment(job.ended_at).tzinfo)
        self.assertEqual(self.client.wait(job.job), self.client.status(job.job))

    def test_a_rejected_job_is_an_answer(self):
        answer = self.client.submit("script", slo=0.001)
        self.assertFalse(answer.accepted)
        self.assertEqual(answer.job.state, "rejected")
        self.assertGreater(answer.decision.smallest_slo_s, 0.001)
        self.assertTrue(all("slo_exceeded" in c.reasons for c in answer.decision.candidates))

    def test_predict_is_the_decision_of_submit(self):
        a = self.client.predict("abroad", {"network": "lenet5"}, slo=900)
        b = self.client.submit("abroad", {"network": "lenet5"}, slo=900, dry_run=True)
        self.assertEqual([c.accuracy for c in a.decision.candidates], [c.accuracy for c in b.decision.candidates])
        self.assertIsNone(a.job)
        self.assertIsNone(b.job)

    def test_many_predictions_come_in_order(self):
        slos = [0.001 if i % 3 else 3600 for i in range(1000)]
        got = list(self.client.predict_many({"type": "abroad", "slo": s} for s in slos))
        self.assertEqual([g.verdict for g in got], ["rejected" if s < 1 else "promised" for s in slos])
        with self.assertRaises(postrider.BadRequest):
            list(self.client.predict_many([{"type": "abroad"}, {"type": "nowhere"}]))

    def test_watch_ends_with_the_job(self):
        answer = self.client.submit("script", {"epochs": 2, "pause": 0.2})
        events = list(self.client.watch(answer.job.job, timeout=60))
        self.assertEqual(events[0].event, "state")
        self.assertEqual(events[-1].event, "finished")
        self.assertEqual(events[-1].job.state, "done")

    def test_explain_has_decisions_and_estimates(self):
        job = self.client.wait(self.client.submit("script", slo=900).job.job, 60)
        e = self.client.explain(job.job)
        self.assertEqual([d.when for d in e.decisions], ["arrival", "start"])
        self.assertTrue(e.estimates)
        self.assertEqual(e.job.job, job.job)

    def test_cancel(self):
        answer = self.client.submit("abroad", mode="advise")
        self.assertEqual(self.client.cancel(answer.job.job).state, "cancelled")
        with self.assertRaises(postrider.PostriderError) as caught:
            self.client.cancel(answer.job.job)
        self.assertEqual(caught.exception.code, "wrong_state")

    def test_a_job_that_its_owner_runs(self):
        answer = self.client.submit("abroad", mode="advise", slo=900)
        started = self.client.started(answer.job.job)
        self.assertEqual(started.job.state, "running")
        self.client.progress(answer.job.job, 0.5)
        self.assertEqual(self.client.finished(answer.job.job, accuracy=0.75).accuracy, 0.75)

    def test_one_key_is_one_job(self):
        first = self.client.submit("abroad", mode="advise", key="k1")
        again = self.client.submit("abroad", mode="advise", key="k1")
        self.assertEqual(first.job.job, again.job.job)
        self.assertTrue(again.duplicate)

    def test_list_pages(self):
        for _ in range(5):
            self.client.submit("abroad", mode="advise")
        ids = [int(j.job) for j in self.client.list()]
        self.assertEqual(ids, sorted(ids, reverse=True))
        self.assertEqual([int(j.job) for j in self.client.list(limit=3)], ids[:3])
        self.assertTrue(all(j.type == "abroad" for j in self.client.list("queued", type="abroad", mine=True)))

    def test_errors_have_codes_and_classes(self):
        with self.assertRaises(postrider.UnknownJob):
            self.client.status(999999)
        with self.assertRaises(postrider.BadRequest) as caught:
            self.client.submit("scrip")
        self.assertEqual((caught.exception.code, caught.exception.field), ("unknown_type", "type"))
        self.assertIn("script", caught.exception.hint)
        with self.assertRaises(postrider.NotReachable):
            postrider.Client(os.path.join(daemon.dir, "nobody")).stats()
        with self.assertRaises(ValueError):
            self.client.submit("script", slo="soon")
        with self.assertRaises(ValueError):
            self.client.submit("script", slo=float("nan"))

    def test_a_configuration_with_comments_names_the_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write('// ours\n{"about": "a // is no \\" comment", // "socket": "/wrong"\n "socket": "/right"}\n')
            with mock.patch.dict(os.environ, {"POSTRIDER_CONFIG": path}):
                os.environ.pop("POSTRIDER_SOCKET", None)
                self.assertEqual(postrider.client.find_socket(), "/right")

    def test_durations(self):
        for text, s in (("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("1-02:03:04", 93784), (7, 7)):
            self.assertEqual(postrider.client.seconds(text), s)

    def test_waiting_has_an_end(self):
        job = self.client.submit("script", {"epochs": 50, "pause": 1}).job.job
        began = time.monotonic()
        with self.assertRaises(postrider.WaitTimeout):
            self.client.wait(job, timeout=0.5)
        self.assertLess(time.monotonic() - began, 5)
        self.client.cancel(job)
        self.assertEqual(self.client.wait(job, 30).state, "cancelled")

    def test_threads_share_a_client(self):
        bad = []

        def ask(slo):
            for _ in range(100):
                if self.client.predict("abroad", slo=slo).decision.slo_s != slo:
                    bad.append(slo)

        threads = [threading.Thread(target=ask, args=(100.0 + i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(bad, [])

    def test_a_restart_is_survived(self):
        job = self.client.submit("script", {"epochs": 4, "pause": 0.5}).job.job
        ended = []
        t = threading.Thread(target=lambda: ended.append(self.client.wait(job, 60)))
        t.start()
        time.sleep(0.5)
        daemon.stop()
        daemon.start()
        t.join(60)
        self.assertEqual(ended[0].state, "done")
        self.assertTrue(self.client.stats()["ok"])  # over a connection that the old daemon had


class TestTypes(unittest.TestCase):
    """The dataclasses have the members that a real daemon sends: no fewer, and no others."""

    REPLY = {"v", "id", "ok", "watching", "more", "jobs"}  # of the line, not of what it is about

    def compare(self, cls, value):
        self.seen.setdefault(cls, set()).update(k for k in value if value[k] is not None)
        types = typing.get_type_hints(cls)
        for name, v in value.items():
            self.assertIn(name, types, "%s has no member %s" % (cls.__name__, name))
            inner = [t for t in typing.get_args(types[name]) if t is not type(None)]
            inner = [a for t in inner for a in (typing.get_args(t) or (t,)) if is_dataclass(a)]
            for part in v if isinstance(v, list) else [v]:
                if inner and part is not None:
                    self.compare(inner[0], part)
                elif isinstance(part, dict):
                    self.assertEqual(name, "params", "%s.%s is no dataclass" % (cls.__name__, name))

    def reply(self, cls, value):
        self.compare(cls, {k: v for k, v in value.items() if k not in self.REPLY})
        for job in value.get("jobs", []):
            self.compare(postrider.Job, job)
        return value

    def wait_for(self, job, what):
        for _ in range(600):
            value = self.reply(postrider.Explanation, self.client.request("status", job=job))["job"]
            if what(value):
                return value
            time.sleep(0.05)
        self.fail("job %s stays %s" % (job, value))

    def submit(self, op="submit", **members):
        answer = self.reply(postrider.Submission, self.client.request(op, **members))
        return answer["job"]["job"] if answer.get("job") else None

    def converse(self):
        t = postrider
        seen = threading.Thread(target=self.listen)
        seen.start()
        self.assertTrue(self.listening.wait(60))
        early = self.submit(type="script", params={"epochs": 6, "samples": 100, "pause": 1.5}, slo_s=6, may_stop=True)
        epochs = {"epochs": 6, "pause": 0.5}
        first = self.submit(type="script", params=epochs, slo_s=900, tag="t", key="k", chance=0.5, max_memory_mb=4000,
                            batches=[64, 128], retry=1, index=3, confidence=0.8, value=0.5)
        self.submit(type="script", key="k")  # a duplicate
        self.submit(type="script", params={"network": "lenet5"}, epochs="1..4", slo_s=900)  # epochs to choose
        last = self.submit(type="script", after=first, after_ok=True)
        self.submit(type="script", after=[first, last])
        self.submit("predict", type="script", epochs="4..6", slo_s=0.5)  # an offer
        self.submit("predict", type="script", params={"epochs": 900000}, slo_s=900)  # beyond the model
        self.submit("predict", type="script", params={"epochs": 1}, slo_s=900)  # outside its table
        self.submit(type="script", params={"epochs": 90}, slo_s=0.001)  # rejected
        self.wait_for(first, lambda j: j["progress"] and j["estimate"])
        self.submit("predict", type="script", slo_s=900, priority=-1)  # behind the others
        waits = [self.submit(type="script", params=epochs) for _ in range(3)]
        self.wait_for(waits[-1], lambda j: j["waiting"])
        for job in waits:
            self.client.request("cancel", job=job)
        self.wait_for(last, lambda j: j["state"] == "done")
        self.wait_for(early, lambda j: j["state"] == "done")
        self.wait_for(waits[-1], lambda j: j["state"] == "cancelled")
        own = self.submit(type="abroad", mode="advise")
        self.submit("started", job=own)
        for op, members in (("progress", {"done": 0.5}), ("finished", {"accuracy": 0.5})):
            self.reply(t.Explanation, self.client.request(op, job=own, **members))
        for job in (first, early):
            self.reply(t.Explanation, self.client.request("explain", job=job))
        self.reply(t.Submission, self.client.request("list", limit=50))
        seen.join(60)
        self.assertFalse(seen.is_alive())

    def listen(self):
        """Until the advised job, which is the last, has ended."""
        c = postrider.client._Connection(self.own.socket, 120)
        try:
            c.send(b'{"op":"watch"}\n')
            self.reply(postrider.Submission, c.read())
            self.listening.set()
            while True:
                e = self.reply(postrider.Event, c.read())
                if e["event"] == "finished" and e["job"]["mode"] == "advise":
                    return
        except Exception as e:  # an assertion of this thread is one of the test
            self.problem = e
        finally:
            self.listening.set()
            c.close()

    def test_every_member_that_the_daemon_sends_is_there(self):
        self.seen, self.problem, self.listening = {}, None, threading.Event()
        self.own = Daemon(policy="postrider:price=0.0001")
        self.addCleanup(self.own.close)
        self.client = postrider.Client(self.own.socket)
        self.addCleanup(self.client.close)
        self.converse()
        self.assertIsNone(self.problem)
        # What this daemon has no reason to say: no job breaks another's promise, none is killed, no type knows its
        # memory or its learning rate or has gpus, no context is new to the model, and its decisions leave nothing out.
        # No type steers: tests/cli/steer.sh has one.
        rare = {"steered", "passed_over", "with_more_time", "why", "cost", "job", "breaks", "behind", "signal", "memory_mb", "gpus", "devices", "lr", "probe"}
        for cls, members in self.seen.items():
            missing = {f.name for f in fields(cls)} - members - rare
            self.assertEqual(missing, set(), "%s: the daemon never said them" % cls.__name__)


class TestAsync(unittest.TestCase):
    def test_many_at_once_over_one_connection(self):
        async def run():
            async with postrider.AsyncClient(daemon.socket) as c:
                slos = [100.0 + i for i in range(200)]
                got = await asyncio.gather(*(c.predict("abroad", slo=s) for s in slos))
                self.assertEqual([g.decision.slo_s for g in got], slos)
                with self.assertRaises(postrider.UnknownJob):
                    await c.status(10 ** 6)
                answer = await c.submit("script", {"epochs": 2}, slo="1h")
                job = await c.wait(answer.job.job, timeout=60)
                self.assertEqual(job.state, "done")
                self.assertEqual((await c.explain(job.job)).job.job, job.job)
                seen = []
                long = await c.submit("script", {"epochs": 50, "pause": 1})
                with self.assertRaises(postrider.WaitTimeout):
                    await c.wait(long.job.job, timeout=0.3)
                await c.cancel(long.job.job)
                async for e in c.watch(long.job.job):
                    seen.append(e.event)
                self.assertTrue(seen)

        asyncio.run(run())

    def test_no_daemon(self):
        async def run():
            with self.assertRaises(postrider.NotReachable):
                await postrider.AsyncClient(os.path.join(daemon.dir, "nobody")).stats()

        asyncio.run(run())


class TestTraining(unittest.TestCase):
    def job_in(self, folder, text="", **env):
        """A job whose folder says `text`."""
        path = os.path.join(folder, "next")
        with open(path, "w") as f:
            f.write(text)
        with mock.patch.dict(os.environ, {"POSTRIDER_NEXT": path, **env}):
            return postrider.job(self.out, batch=8, lr=0.5, epochs=3), path

    def test_outside_the_daemon_a_script_trains_with_what_it_was_given(self):
        self.out = io.StringIO()
        with postrider.job(self.out, batch=8, lr=0.5, epochs=3) as j:
            self.assertEqual([(e, j.batch, j.lr, j.last) for e in j.epochs()], [(1, 8, 0.5, 3), (2, 8, 0.5, 3), (3, 8, 0.5, 3)])
        with self.assertRaisesRegex(ValueError, "batch"):
            postrider.job(self.out).batch
        with self.assertRaisesRegex(ValueError, "epochs"):
            list(postrider.job(self.out).epochs())
        with mock.patch.dict(os.environ, {"POSTRIDER_START": "batch=16 last=4"}):
            j = postrider.job(self.out, batch=8, lr=0.5)
        self.assertEqual((j.batch, j.lr, j.last), (16, 0.5, 4))

    def test_a_report_is_answered_or_the_job_goes_on(self):
        self.out = io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            j, path = self.job_in(folder, "batch=16 lr=0.1 last=9\n", POSTRIDER_START="batch=16 lr=0.1 last=9")
            j.report(1, 0.5)
            self.assertNotIn("asks", self.out.getvalue())  # it has not looked at the batch
            self.assertEqual(j.batch, 16)
            began = time.monotonic()
            j.report(2, 0.5)  # nobody answers
            self.assertLess(time.monotonic() - began, 0.5)
            self.assertEqual((j.batch, j.lr, j.last), (16, 0.1, 9))
            with open(path + ".new", "w") as f:
                f.write("batch=64 lr=0.4 last=7\nafter=3\n")
            os.rename(path + ".new", path)
            began = time.monotonic()
            j.report(3, 0.6)
            self.assertLess(time.monotonic() - began, postrider.training.ANSWER_S)
            self.assertEqual((j.batch, j.lr, j.last), (64, 0.4, 7))
            for nonsense in ("", "batch=x", "batch=0", "\0" * 300, "after=9"):
                with open(path, "w") as f:
                    f.write(nonsense)
                j.report(4, 0.6)
                self.assertEqual((j.batch, j.lr, j.last), (64, 0.4, 7))
            os.remove(path)
            j.report(5, 0.6)
            self.assertEqual(j.batch, 64)
        lines = [json.loads(s) for s in self.out.getvalue().splitlines()]
        self.assertEqual([s.get("batch") for s in lines[:4]], [None, 16, 16, 64])
        self.assertTrue(all(s["asks"] is True for s in lines[1:]))

    def test_a_job_that_would_be_late_stops_after_an_epoch(self):
        with postrider.Client(daemon.socket) as c:
            answer = c.submit("script", {"epochs": 6, "samples": 100, "pause": 1.5}, slo=6, may_stop=True)
            self.assertEqual(answer.verdict, "promised")
            job = c.wait(answer.job.job, 60)
            self.assertEqual(job.state, "done")
            self.assertIsNotNone(job.stopped_epoch)
            self.assertLess(job.stopped_epoch, 6)
            with open(os.path.join(daemon.dir, "state/jobs", job.job, "stdout")) as f:
                self.assertIn("stopped after", f.read())

    def test_outside_the_daemon_it_is_the_same(self):
        out = io.StringIO()
        with postrider.job(out) as j:
            self.assertFalse(j.inside)
            j.report(1, 0.25, loss=float("nan"), note="x")
            self.assertFalse(j.should_stop())
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
            self.assertTrue(j.should_stop())
        self.assertEqual(json.loads(out.getvalue()), {"epoch": 1, "accuracy": 0.25, "loss": None, "note": "x"})
        self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)

    def test_in_a_thread_there_are_no_signals_and_no_harm(self):
        got = []

        def run():
            with postrider.job(io.StringIO()) as j:
                j.report(1, 1)
                got.append(j.should_stop())

        t = threading.Thread(target=run)
        t.start()
        t.join()
        self.assertEqual(got, [False])

    def example(self, name, module, *args):
        if not importlib.util.find_spec(module):
            self.skipTest(module + " is not installed")
        done = subprocess.run([sys.executable, os.path.join(ROOT, "python/examples", name), *args], text=True,
                              capture_output=True, env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
        self.assertEqual(done.returncode, 0, done.stderr[-500:])
        lines = [json.loads(x) for x in done.stdout.splitlines()]
        self.assertEqual([x["epoch"] for x in lines], [1, 2, 3])
        return lines[-1]["accuracy"]

    def test_the_example_with_scikit_learn_learns(self):
        self.assertGreater(self.example("sklearn_digits.py", "sklearn", "32", "3"), 0.8)

    def test_the_example_with_pytorch_runs(self):
        self.assertGreater(self.example("torch_digits.py", "torch", "32", "3"), 0.4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
