#!/usr/bin/python3
"""SimPy's side of the benches: simpy_peer.py TASK [options].

Prints one JSON object on stdout; {"installed": false} where SimPy is not there.

Tasks
  mm1  an M/M/1 queue, as SimPy's own examples write it: a process per customer, a resource of
       capacity 1, the response time of each customer added up

Debian's python3-simpy is SimPy 2, python3-simpy3 is SimPy 3; of those installed the fastest counts.
An event is an arrival or a departure, on both sides of the bench, whatever SimPy needs inside.
"""
import argparse
import json
import random
import sys
import time

try:
    import SimPy
    import SimPy.Simulation as simpy2
except ImportError:
    simpy2 = None
try:
    import simpy
except ImportError:
    simpy = None


class Total:
    """What the customers add up to; plain attributes, the cheapest there is."""
    response = 0.0
    done = 0


def mm1_simpy3(arrivals, service, customers, seed):
    draw = random.Random(seed).expovariate
    total = Total()
    env = simpy.Environment()
    server = simpy.Resource(env, capacity=1)

    def customer():
        arrived = env.now
        with server.request() as turn:
            yield turn
            yield env.timeout(draw(1.0 / service))
        total.response += env.now - arrived
        total.done += 1

    def source():
        for _ in range(customers):
            yield env.timeout(draw(arrivals))
            env.process(customer())

    env.process(source())
    start = time.perf_counter()
    env.run()
    return time.perf_counter() - start, total


def mm1_simpy2(arrivals, service, customers, seed):
    draw = random.Random(seed).expovariate
    total = Total()
    world = simpy2.Simulation()
    world.initialize()
    server = simpy2.Resource(capacity=1, sim=world)

    class Customer(simpy2.Process):
        def visit(self):
            arrived = self.sim.now()
            yield simpy2.request, self, server
            yield simpy2.hold, self, draw(1.0 / service)
            yield simpy2.release, self, server
            total.response += self.sim.now() - arrived
            total.done += 1

    class Source(simpy2.Process):
        def run(self):
            for _ in range(customers):
                yield simpy2.hold, self, draw(arrivals)
                one = Customer(sim=self.sim)
                self.sim.activate(one, one.visit())

    source = Source(sim=world)
    world.activate(source, source.run())
    start = time.perf_counter()
    world.simulate(until=1e300)
    return time.perf_counter() - start, total


def main():
    parser = argparse.ArgumentParser(description="SimPy's side of the benches")
    parser.add_argument("task", choices=["mm1"])
    parser.add_argument("--arrivals", type=float, default=0.8, help="per second")
    parser.add_argument("--service", type=float, default=1.0, help="mean, in seconds")
    parser.add_argument("--customers", type=int, default=50000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if not 0.0 < args.arrivals * args.service < 1.0 or args.customers < 1:
        parser.error("need a load between 0 and 1 and at least one customer")

    runs = {}
    if simpy2:
        runs[SimPy.__version__] = mm1_simpy2
    if simpy:
        runs[simpy.__version__] = mm1_simpy3
    if not runs:
        print(json.dumps({"peer": "SimPy", "installed": False, "why": "neither SimPy nor simpy"}))
        sys.exit(0)
    best = None
    for version, run in runs.items():
        seconds, total = run(args.arrivals, args.service, args.customers, args.seed)
        if total.done != args.customers:
            sys.exit(f"simpy_peer.py: {total.done} of {args.customers} customers left")
        if best is None or seconds < best["seconds"]:
            best = {"seconds": seconds, "version": version, "events": 2 * total.done,
                    "mean_response": total.response / total.done}
    print(json.dumps({"peer": "SimPy", "installed": True, "task": args.task, **best}))


if __name__ == "__main__":
    main()
