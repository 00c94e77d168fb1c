"""The live page in a real browser, and who may see what over HTTP. tests/cli/page.sh starts this, with BIN in the environment.
SHOTS in the environment: a folder for screenshots."""
import http.client
import json
import os
import re
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "bench", "live"), HERE]
from cdp import Browser, find_browser  # noqa: E402
from live_site import Site  # noqa: E402

BIN = os.environ.get("BIN", os.path.join(HERE, "..", "..", "build"))
HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
PARAMS = {"network": {"kind": "word", "values": ["lenet5", "simplenet"], "default": "simplenet"},
          "epochs": {"kind": "integer", "min": 1, "max": 100, "default": 4},
          "samples": {"kind": "integer", "min": 100, "max": 60000, "default": 12000}}
LEARNS = """awk -v n="$1" 'BEGIN {{ for (i = 1; i <= n; i++)
    printf "{{\\"epoch\\":%d,\\"loss\\":%.4f,\\"accuracy\\":%.4f,\\"elapsed_s\\":%.2f}\\n", i, 2 / (1 + 0.3 * i), 1 - 0.5 / (1 + 0.3 * i), 0.1 * i }'
sleep "$2"; echo "the last line" """
TYPES = {"nap": {"argv": ["/bin/sh", "-c", "sleep $1; echo '{{\"epoch\":1,\"accuracy\":0.9}'", "x", "{nap}", "{batch}"],
                 "batches": [64, 128, 256, 512],
                 "params": dict(PARAMS, nap={"kind": "number", "min": 0, "max": 600, "default": 0.05})},
         "learner": {"argv": ["/bin/sh", "-c", LEARNS, "x", "{epochs}", "{nap}", "{batch}"], "batches": [64, 128, 256, 512],
                     "params": dict(PARAMS, epochs={"kind": "integer", "min": 1, "max": 1000, "default": 10},
                                    nap={"kind": "number", "min": 0, "max": 600, "default": 0.05})},
         "digits": {"batches": [64, 128, 256, 512], "params": PARAMS},
         "young": {"batches": [64, 128], "params": PARAMS, "first_after": 1000}}


def setUpModule():
    global site, token
    site = Site(os.path.abspath(BIN), types=TYPES, tenants=2, slots=8, curves=True)
    for i in range(6):
        reply = site.ask({"op": "submit", "type": "nap", "slo_s": 3600 if i else 1e-5})
        assert reply["ok"], reply
    site.running = site.ask({"op": "submit", "type": "nap", "params": {"nap": 600}, "slo_s": 3600})["job"]["job"]
    site.queued = [site.ask({"op": "submit", "type": "digits", "mode": "advise", "tag": HOSTILE if i == 0 else "run %d" % i,
                             "slo_s": 3000})["job"]["job"] for i in range(4)]
    until = time.monotonic() + 30
    while site.ask({"op": "stats"})["jobs"]["done"] < 5 and time.monotonic() < until:
        time.sleep(0.1)
    token = site.ask({"op": "token"})["token"]


def tearDownModule():
    for j in site.ask({"op": "list", "state": ["queued", "running"]})["jobs"]:
        site.ask({"op": "cancel", "job": j["job"]})
    time.sleep(0.5)
    site.close()


def http_ask(method, path, body=None, **headers):
    c = http.client.HTTPConnection("127.0.0.1", site.port, timeout=20)
    c.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
    r = c.getresponse()
    if path == "/api/events" and r.status == 200:
        text = b""
        while b"\n\n" not in text:
            text += r.read1(65536)
        c.close()
        return r, json.loads(text.split(b"\n\n")[0][len(b"data: "):])
    text = r.read()
    c.close()
    return r, json.loads(text) if "json" in r.getheader("Content-Type", "") else text


def bearer(t=None):
    return {"Authorization": "Bearer " + (t or token)}


class TestHttp(unittest.TestCase):
    def test_without_a_token_there_are_sums_only(self):
        r, v = http_ask("GET", "/api/events")
        self.assertEqual(sorted(v), ["known", "now", "stats"])
        self.assertFalse(v["known"])
        self.assertNotIn("tenants", v["stats"])
        self.assertNotIn("types", v["stats"])
        self.assertNotIn("types", v["stats"]["learning"])
        text = json.dumps(v)
        for secret in ("nap", "digits", "lenet5", "simplenet", "tenant0", "uid ", "run 1", "onerror"):
            self.assertNotIn(secret, text)

    def test_the_numbers_are_those_of_stats_list_and_explain(self):
        _, v = http_ask("GET", "/api/events", **bearer())
        _, stats = http_ask("POST", "/api", json.dumps({"op": "stats", "history": True}), **bearer())
        socket_stats = site.ask({"op": "stats", "history": True})
        moving = ("v", "ok", "id", "uptime_s", "rss_mb", "loop", "connections", "store", "tenants", "history", "queue", "decision")
        for key in socket_stats:
            if key not in moving:
                self.assertEqual(stats[key], socket_stats[key], key)
                self.assertEqual(v["stats"][key], socket_stats[key], key)
        for key in ("length", "running", "slots", "slots_used"):
            self.assertEqual(v["stats"]["queue"][key], socket_stats["queue"][key])
        self.assertEqual([t["tenant"] for t in v["stats"]["tenants"]], [t["tenant"] for t in socket_stats["tenants"]])
        self.assertEqual(v["stats"]["history"]["day"][-1]["met"], socket_stats["history"]["day"][-1]["met"])
        jobs = {j["job"]: j for j in site.ask({"op": "list", "limit": 1000})["jobs"]}
        for j in v["running"] + v["next"] + v["ended"]:
            same = dict(jobs[j["job"]])
            for key in ("estimate",):  # seconds from now, so they move
                a, b = same.pop(key), j.pop(key)
                self.assertEqual(a is None, b is None)
                if a:
                    self.assertEqual(sorted(a), sorted(b))
                    self.assertAlmostEqual(a["end_s"], b["end_s"], delta=max(5.0, 0.1 * abs(a["end_s"])))
            self.assertEqual(same, j)
        _, explained = http_ask("POST", "/api", json.dumps({"op": "explain", "job": "2"}), **bearer())
        self.assertEqual(explained, site.ask({"op": "explain", "job": "2"}))

    def test_who_may_do_what(self):
        for headers in ({}, bearer("prt_" + 40 * "0"), bearer("x"), {"Authorization": "Basic eDp5"}):
            r, v = http_ask("POST", "/api", '{"op":"list"}', **headers)
            self.assertEqual(r.status, 401, headers)
        r, v = http_ask("GET", "/api/events", **bearer("nonsense"))
        self.assertEqual(r.status, 401)
        for op in ("drain", "reload", "retrain", "submit", "token", "watch", "rollback"):
            r, v = http_ask("POST", "/api", json.dumps({"op": op}), **bearer())
            self.assertEqual((r.status, v["error"]["code"]), (403, "not_permitted"), op)
        r, v = http_ask("POST", "/api", '{"op":\n"hello"}', **bearer())
        self.assertEqual((v["ok"], v["uid"], v["admin"]), (True, os.getuid(), True))
        r, v = http_ask("POST", "/api", '{"op":"hello"}\n{"op":"drain"}', **bearer())
        self.assertFalse(v["ok"])
        self.assertFalse(site.ask({"op": "stats"})["draining"])

    @unittest.skipIf(os.geteuid() != 0, "needs root, to be another user")
    def test_a_token_has_the_rights_of_its_user_and_no_more(self):
        guest = site.ask({"op": "token"}, uid=20001)["token"]
        r, v = http_ask("POST", "/api", '{"op":"hello"}', **bearer(guest))
        self.assertEqual((v["uid"], v["admin"]), (20001, False))
        for op, job in (("cancel", site.queued[3]), ("output", site.running), ("output", "2")):
            r, v = http_ask("POST", "/api", json.dumps({"op": op, "job": job}), **bearer(guest))
            self.assertEqual(v["error"]["code"], "not_permitted", (op, job))
        r, v = http_ask("POST", "/api", json.dumps({"op": "output", "job": "2"}), **bearer())
        self.assertEqual((v["stdout"], v["curve"][0]["accuracy"]), ('{"epoch":1,"accuracy":0.9}\n', 0.9))
        site.ask({"op": "token", "revoke": True}, uid=20001)
        r, v = http_ask("POST", "/api", '{"op":"hello"}', **bearer(guest))
        self.assertEqual(r.status, 401)
        r, v = http_ask("POST", "/api", '{"op":"hello"}', **bearer())
        self.assertTrue(v["ok"])

    def test_a_token_ends_and_only_its_hash_is_kept(self):
        short = site.ask({"op": "token", "days": 0.001})["token"]  # 86 s
        with open(os.path.join(site.dir, "state", "tokens")) as f:
            text = f.read()
        self.assertNotIn(short[4:], text)
        self.assertEqual(os.stat(os.path.join(site.dir, "state", "tokens")).st_mode & 0o777, 0o600)
        for _ in range(20):
            last = site.ask({"op": "token"}, uid=20000 if os.geteuid() == 0 else None)
        self.assertLessEqual(last["tokens"], 16)
        if os.geteuid() != 0:
            global token
            token = last["token"]

    def test_other_sites_are_refused(self):
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"},
                        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors"}):
            for method, path, body in (("GET", "/api/events", None), ("POST", "/api", '{"op":"hello"}'), ("GET", "/metrics", None)):
                r, v = http_ask(method, path, body, **dict(bearer(), **headers))
                self.assertIn(r.status, (403, 421), (headers, path))

    def test_the_page_allows_nothing_from_elsewhere(self):
        for path in ("/", "/app.js", "/style.css", "/icon.svg"):
            r, text = http_ask("GET", path)
            self.assertEqual(r.status, 200, path)
            policy = r.getheader("Content-Security-Policy")
            self.assertIn("default-src 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(r.getheader("X-Content-Type-Options"), "nosniff")
        r, text = http_ask("GET", "/")
        self.assertNotIn(b"style=", text)
        self.assertNotRegex(text, rb"<script(?![^>]*src=)")
        self.assertNotRegex(text, rb"(src|href)=\"(https?:)?//")
        for path in ("/../state/tokens", "/..%2fstate/tokens", "/page/app.js", "//app.js"):
            self.assertEqual(http_ask("GET", path)[0].status, 404, path)

    def test_bodies_have_a_limit(self):
        try:
            r, v = http_ask("POST", "/api", "x" * 200000, **bearer())
            self.assertIn(r.status, (400, 413))
        except (ConnectionError, http.client.HTTPException):
            pass  # cut off while it was sent
        self.assertTrue(http_ask("POST", "/api", '{"op":"hello"}', **bearer())[1]["ok"])


# What the browser asks the daemon for is asked above as well; a sanitizer has nothing to see in a browser.
@unittest.skipIf(find_browser() is None, "no chromium here")
@unittest.skipIf(os.environ.get("SAN") and not os.environ.get("FULL"), "a sanitizer looks on")
class TestBrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def opened(self, with_token=True, **how):
        page = self.browser.page()
        self.addCleanup(page.close)
        page.open("http://127.0.0.1:%d/%s" % (site.port, "#token=" + token if with_token else ""), **how)
        self.assertIsNotNone(page.until("window.postrider && window.postrider.updates >= 1 && window.postrider.update.known === %s"
                                        % ("true" if with_token else "false"), 30), page.complaints())
        return page

    def test_the_queue_is_there_and_hostile_names_are_text(self):
        page = self.opened()
        self.assertEqual(page.js("location.hash"), "")
        names = page.js("[...document.querySelectorAll('#rows .row')].map((r) => r.textContent)")
        self.assertGreaterEqual(len(names), 5)
        self.assertTrue(any(HOSTILE in n for n in names), names)
        self.assertEqual(page.js("document.title"), "Postrider")
        self.assertEqual(page.js("document.querySelectorAll('#rows img, #rows script').length"), 0)
        self.assertEqual(page.complaints(), [])

    def test_without_a_token_nothing_of_jobs(self):
        page = self.browser.page()
        self.addCleanup(page.close)
        page.open("http://127.0.0.1:%d/" % site.port)
        page.js("sessionStorage.clear()")
        page.call("Page.reload")
        self.assertIsNotNone(page.until("window.postrider && !window.postrider.update.known", 20))
        self.assertFalse(page.js("document.getElementById('sums').hidden"))
        self.assertTrue(page.js("document.getElementById('queue').hidden"))
        for name in ("nap", "young"):
            self.assertNotIn(name, page.js("document.body.innerText"))

    def test_types_with_models_of_their_own_are_told(self):
        page = self.opened()
        self.assertIn("Type young: model none yet, version 0.", page.js("document.getElementById('drift').innerText"))
        self.assertEqual(page.complaints(), [])

    def test_a_decision_is_a_picture(self):
        page = self.opened()
        page.js("document.querySelector('#rows .row').focus()")
        for kind in ("keyDown", "char", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r" if kind == "char" else "",
                      windowsVirtualKeyCode=13)
        self.assertIsNotNone(page.until("document.querySelectorAll('#job .cand').length >= 4"))
        text = page.js("document.getElementById('job').innerText")
        self.assertIn("less accurate", text)
        self.assertIn("chosen", text)
        shown = page.js("[...document.querySelectorAll('#job .cand')].slice(0, 4).map((c) => c.children[4].textContent)")
        d = site.ask({"op": "explain", "job": site.running})["decisions"][-1]
        for c, t in zip(d["candidates"], shown):
            self.assertIn("%.4f" % c["accuracy"], t)
        # by time and accuracy: a dot a candidate, the chosen one is the large one, and the limit is a line
        picture = "document.querySelector('#job-decisions svg')"
        self.assertEqual(page.js(picture + ".querySelectorAll('circle').length"), 4)
        self.assertEqual(page.js(picture + ".querySelectorAll('.won').length"), 1)
        self.assertIn("limit 60 min", page.js(picture + ".textContent"))
        best = max((c for c in d["candidates"]), key=lambda c: c["accuracy"])
        highest = page.js("[...%s.querySelectorAll('circle')].sort((a, b) => a.getAttribute('cy') - b.getAttribute('cy'))[0].textContent" % picture)
        self.assertIn("accuracy %.3f" % best["accuracy"], highest)
        self.assertEqual(page.complaints(), [])

    def panel(self, page, job, more=""):
        page.js("document.querySelector('#ended button[aria-label^=\"job %s:\"], #rows .row[data-job=\"%s\"]').click()" % (job, job))
        self.assertIsNotNone(page.until("window.postriderPanel && window.postriderPanel.job === '%s' %s" % (job, more), 20), page.complaints())

    def test_a_job_has_its_curve_its_limit_and_its_output(self):
        job = site.ask({"op": "submit", "type": "learner", "params": {"nap": 30, "epochs": 12}, "slo_s": 1,
                        "best_effort": True})["job"]["job"]
        page = self.opened()
        self.assertIsNotNone(page.until("!!document.querySelector('#rows .row[data-job=\"%s\"]')" % job, 10))
        self.assertIsNotNone(page.until("window.postrider.update.running.some((j) => j.job === '%s' && j.progress)" % job, 20))
        self.panel(page, job)
        told = site.ask({"op": "output", "job": job})
        self.assertEqual([round(p["accuracy"], 4) for p in told["curve"]][-1], 0.8913)
        self.assertEqual([p["epoch"] for p in told["curve"]], list(range(1, 13)))
        self.assertIsNotNone(page.until("!!document.querySelector('#job-curve .area')", 10), "what was expected, with its band")
        self.assertEqual(page.js("document.querySelectorAll('#job-curve svg .series').length"), 2)
        self.assertIn("accuracy after 12 epochs: 0.891", page.js("document.querySelector('#job-curve desc').textContent").lower())
        # 0.1 s an epoch: the limit of 1 s, less the wait before the start, passes on the way
        self.assertIn("limit 1.0 s", page.js("document.querySelector('#job-curve svg .name').textContent"))
        epoch = float(re.search(r"passes at epoch ([0-9.]+)", page.js("document.getElementById('job-curve').innerText")).group(1))
        self.assertAlmostEqual(epoch, 10 * (1 - site.ask({"op": "status", "job": job})["job"]["wait_s"]), delta=0.1)
        self.assertIn('"epoch":12', page.js("document.getElementById('job-output').textContent"))
        page.js("document.getElementById('job-output').focus()")
        self.assertEqual(page.js("document.activeElement.id"), "job-output")
        site.ask({"op": "cancel", "job": job})
        self.assertIsNotNone(page.until("document.getElementById('job-facts').innerText.includes('cancelled')", 10))
        self.assertEqual(page.complaints(), [])

    def test_a_curve_grows_while_one_looks(self):
        page = self.opened()
        job = site.ask({"op": "submit", "type": "learner", "params": {"nap": 8, "epochs": 4}})["job"]["job"]
        self.assertIsNotNone(page.until("!!document.querySelector('#rows .row[data-job=\"%s\"]')" % job, 10))
        self.panel(page, job)
        self.assertNotIn("the last line", page.js("document.getElementById('job-output').textContent"))
        self.assertIsNotNone(page.until("document.getElementById('job-output').textContent.includes('the last line')", 30))
        self.assertIsNotNone(page.until("document.getElementById('job-facts').innerText.includes('done')", 10))

    def test_five_hundred_epochs_are_there_at_once(self):
        job = site.ask({"op": "submit", "type": "learner", "params": {"nap": 0, "epochs": 500}})["job"]["job"]
        page = self.opened()
        self.assertIsNotNone(page.until("!!document.querySelector('#ended button[aria-label^=\"job %s:\"]')" % job, 20))
        took = []
        while len(took) < 8 and (not took or min(took) >= 200):  # other programs may be in the way
            page.js("window.postriderPanel = null")
            self.panel(page, job)
            took.append(page.js("window.postriderPanel.tookMs"))
        self.assertIn("500 of 500 epochs", page.js("document.getElementById('job-curve').innerText"))
        self.assertLess(min(took), 200, took)

    def test_everything_of_the_panel_is_reached_by_the_keyboard(self):
        page = self.opened()
        self.panel(page, site.running)
        reached = set()
        for _ in range(40):
            for kind in ("keyDown", "keyUp"):
                page.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
            reached.add(page.js("document.activeElement.id || document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"))
            # what is reached is seen to be reached
            self.assertNotEqual(page.js("getComputedStyle(document.activeElement).outlineStyle"), "none", reached)
            if "span-day" in reached:
                break
        for name in ("token", "job-output", "Candidates", "Decision on arrival", "Cancel this job", "span-hour", "span-day"):
            self.assertIn(name, reached)

    def test_tiles_are_of_use_to_a_user(self):
        page = self.opened()
        text = page.js("document.getElementById('tiles').innerText")
        for word in ("promises kept", "running", "waiting", "refused"):
            self.assertIn(word, text)
        for word in ("commit", "decision", "database"):
            self.assertNotIn(word, text)

    def test_it_follows_when_a_job_ends(self):
        page = self.opened()
        job = site.ask({"op": "submit", "type": "nap", "params": {"nap": 0.3}})["job"]["job"]
        self.assertIsNotNone(page.until("window.postrider.update.ended.some((j) => j.job === '%s' && j.state === 'done')" % job, 20))
        self.assertIsNotNone(page.until("document.getElementById('ended').innerText.includes('%s')" % job, 5))
        # An animated place of 124 rows is 15 layouts of the page; the next update would wait for them.
        self.assertEqual(page.js("""new Promise((done) => { const seen = window.postrider.updates; let most = 0;
            const look = () => { most = Math.max(most, document.getAnimations().length);
                window.postrider.updates > seen + 1 ? done(most) : requestAnimationFrame(look); }; look(); })"""), 0)

    def test_it_survives_a_restart(self):
        page = self.opened()
        site.stop()
        self.assertIsNotNone(page.until("document.getElementById('link').className === 'lost'", 20))
        with open(site.config) as f:
            text = f.read()
        with open(site.config, "w") as f:  # at the same address
            f.write(text.replace("127.0.0.1:0", "127.0.0.1:%d" % site.port))
        site.start()
        self.assertIsNotNone(page.until("document.getElementById('link').className === 'live'", 30))
        self.assertIsNotNone(page.until("document.querySelectorAll('#rows .row').length >= 4", 10))

    def test_every_width_light_and_dark(self):
        shots = os.environ.get("SHOTS")
        for dark in (False, True):
            for width in (390, 768, 1280, 1600):
                page = self.opened(width=width, dark=dark)
                page.js("document.querySelector('#rows .row').click()")
                page.until("document.querySelectorAll('#job .cand').length >= 4")
                self.assertLessEqual(page.js("document.documentElement.scrollWidth"), width, "%d px" % width)
                cut = page.js("""[...document.querySelectorAll('main *, header *')].filter((e) => e.getClientRects().length &&
                    !e.closest('.scroll, .track, .axis, #rows, .share, .skip') && e.getBoundingClientRect().right > innerWidth + 0.5)
                    .map((e) => e.outerHTML.slice(0, 80))""")
                self.assertEqual(cut, [], "%d px" % width)
                faint = page.js(CONTRAST)
                self.assertEqual(faint, [], "%d px, %s" % (width, "dark" if dark else "light"))
                if shots:
                    page.shot(os.path.join(shots, "%d-%s.png" % (width, "dark" if dark else "light")))
                page.close()

    def test_names_for_those_who_do_not_see(self):
        page = self.opened(reduced=True)
        unnamed = page.js("""[...document.querySelectorAll('button, input, svg, [role=img], section')].filter((e) => e.getClientRects().length &&
            !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim() || e.title ||
              document.querySelector(`label[for="${e.id}"]`))).map((e) => e.outerHTML.slice(0, 80))""")
        self.assertEqual(unnamed, [])
        self.assertEqual(page.js("document.documentElement.lang"), "en")
        self.assertEqual(page.js("getComputedStyle(document.querySelector('.bar')).transitionDuration"), "0s")


CONTRAST = """(() => {
    const parts = (t) => (t.match(/[\\d.]+/g) || []).map(Number);
    const light = (c) => c.slice(0, 3).map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
    const back = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
    const bad = [];
    for (const e of document.querySelectorAll('h1,h2,h3,p,span,small,b,td,th,button,code,label,figcaption,i')) {
        if (!e.getClientRects().length || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.closest('.skip')) continue;
        const s = getComputedStyle(e), a = light(parts(s.color)), b = light(back(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5 || parseFloat(s.fontSize) < 11) bad.push(`${e.textContent.trim().slice(0, 30)}: ${ratio.toFixed(1)}, ${s.fontSize}`);
    }
    return bad;
})()"""

if __name__ == "__main__":
    unittest.main(verbosity=2)
