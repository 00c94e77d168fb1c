#!/usr/bin/python3
"""SimPy's side of the benches: simpy_peer.py TASK [options].

Prints one JSON object on stdout; {"installed": false} where SimPy 3 or later (Debian: python3-simpy3) is not there.

Tasks
  ps   an M/M/1 queue with processor sharing, twice. "seconds": as SimPy models things, a process per customer that is
       interrupted whenever the others come and go. "calendar_seconds": SimPy keeps the calendar alone, and the server
       is a heap of jobs by the service they will have got when they leave: no processes, much faster.

An event is an arrival or a departure, on both sides of the bench, whatever SimPy needs inside.
"""
import argparse
import heapq
import json
import random
import sys
import time

try:
    import simpy
except ImportError:
    simpy = None


class Total:
    """What the customers add up to; plain attributes, the cheapest there is."""
    response = 0.0
    done = 0


class Sharing:
    """The jobs at a processor-sharing server: they leave in the order of a clock of attained service, which runs
    at 1/n of the speed of time. O(log n) an event, as good as it gets without leaving Python."""

    def __init__(self):
        self.clock = 0.0   # service each of them has got since the server was first used
        self.since = 0.0   # moment of the clock
        self.jobs = []     # heap of (clock at which it leaves, arrival)
        self.version = 0   # departures planned under an older one do not happen

    def advance(self, now):
        if self.jobs:
            self.clock += (now - self.since) / len(self.jobs)
        self.since = now

    def add(self, now, work):
        self.advance(now)
        heapq.heappush(self.jobs, (self.clock + work, now))
        self.version += 1

    def leave(self, now):
        self.advance(now)
        self.version += 1
        return now - heapq.heappop(self.jobs)[1]

    def until_next(self):
        return max((self.jobs[0][0] - self.clock) * len(self.jobs), 0.0)


def ps_calendar(arrivals, service, customers, seed):
    draw = random.Random(seed).expovariate
    total = Total()
    env = simpy.Environment()
    server = Sharing()

    def depart(event):
        if event.value != server.version:
            return
        total.response += server.leave(env.now)
        total.done += 1
        plan()

    def plan():
        if server.jobs:
            env.timeout(server.until_next(), server.version).callbacks.append(depart)

    def source():
        for _ in range(customers):
            yield env.timeout(draw(arrivals))
            server.add(env.now, draw(1.0 / service))
            plan()

    env.process(source())
    start = time.perf_counter()
    env.run()
    return time.perf_counter() - start, total


def ps_processes(arrivals, service, customers, seed):
    draw = random.Random(seed).expovariate
    total = Total()
    env = simpy.Environment()
    here = []

    def tell_others(me):
        for one in here:
            if one is not me:
                one.interrupt()

    def customer(work):
        me = env.active_process
        arrived = env.now
        tell_others(me)
        here.append(me)
        while work > 0.0:
            start, share = env.now, len(here)
            try:
                yield env.timeout(work * share)
                work = 0.0
            except simpy.Interrupt:
                work -= (env.now - start) / share
        here.remove(me)
        tell_others(me)
        total.response += env.now - arrived
        total.done += 1

    def source():
        for _ in range(customers):
            yield env.timeout(draw(arrivals))
            env.process(customer(draw(1.0 / service)))

    env.process(source())
    start = time.perf_counter()
    env.run()
    return time.perf_counter() - start, total


def main():
    parser = argparse.ArgumentParser(description="SimPy's side of the benches")
    parser.add_argument("task", choices=["ps"])
    parser.add_argument("--arrivals", type=float, default=0.8, help="per second")
    parser.add_argument("--service", type=float, default=1.0, help="mean, in seconds")
    parser.add_argument("--customers", type=int, default=50000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if not 0.0 < args.arrivals * args.service < 1.0 or args.customers < 1:
        parser.error("need a load between 0 and 1 and at least one customer")
    if not simpy:
        print(json.dumps({"peer": "SimPy", "installed": False, "why": "no module simpy"}))
        sys.exit(0)
    answer = {}
    for name, run in (("", ps_processes), ("calendar_", ps_calendar)):
        seconds, total = run(args.arrivals, args.service, args.customers, args.seed)
        if total.done != args.customers:
            sys.exit(f"simpy_peer.py: {total.done} of {args.customers} customers left")
        answer[name + "seconds"] = seconds
        answer[name + "mean_response"] = total.response / total.done
    print(json.dumps({"peer": "SimPy", "installed": True, "task": args.task, "version": simpy.__version__,
                      "events": 2 * args.customers, **answer}))


if __name__ == "__main__":
    main()
