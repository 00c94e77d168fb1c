"""python.predict: predictions from Python over one connection, one after the other and pipelined. python_predict.py FOLDER"""
import os
import sys
import time

from live_site import ROOT, Site, answer

sys.path.insert(0, os.path.join(ROOT, "python"))
import postrider  # noqa: E402

ONE_BY_ONE, PIPELINED, TURNS = 1000, 2000, 20
QUESTION = {"type": "digits", "params": {"network": "lenet5"}, "slo": 900}


def main():
    with Site(sys.argv[1]) as site, postrider.Client(site.socket) as client:
        one = many = float("inf")
        client_s, daemon_s = time.process_time(), site.cpu_s()
        for _ in range(TURNS):
            began = time.perf_counter()
            for _ in range(ONE_BY_ONE):
                client.predict("digits", QUESTION["params"], slo=900)
            one = min(one, (time.perf_counter() - began) / ONE_BY_ONE)
            began, n = time.perf_counter(), 0
            for reply in client.predict_many(QUESTION for _ in range(PIPELINED)):
                n += len(reply.decision.candidates)
            many = min(many, (time.perf_counter() - began) / PIPELINED)
            assert n == 4 * PIPELINED
        n = TURNS * (ONE_BY_ONE + PIPELINED)
        answer(1e6 * one, "predictions from Python over one connection, four candidates each: %.0f a second one by one, %.0f a "
               "second pipelined (bar: 20,000), fastest of %d turns; processor time of a prediction: %.0f us here, %.0f us in "
               "the daemon" % (1 / one, 1 / many, TURNS, 1e6 * (time.process_time() - client_s) / n,
                               1e6 * (site.cpu_s() - daemon_s) / n), many <= 1 / 20000)


main()
