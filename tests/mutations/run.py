#!/usr/bin/env python3
"""Do the tests notice a mistake? Applies small wrong changes to a copy of the tree, one at a time, and runs the
tests of the layer. A change that no test notices "survives": a test is missing, or the code does nothing.

  tests/mutations/run.py LAYER... [--sample N] [--only TEXT] [--list] [--jobs N] [--copy DIR]   (`make mutations LAYER=core`)
  tests/mutations/run.py --check        does every change still find its text? (a part of .ci/run)

tests/mutations/LAYER.txt holds the changes of one layer. Lines before the first FILE set up the layer:

  TESTS tests/unit/core/test_*.c tests/conform/test_policies.c     programs to run, as sources; wildcards allowed
  PROGRAMS build/postriderd build/postrider-supervisor             what those of them that start programs need
  BAR 95                                                           percent that must be killed

Then a block for each change. `-` and `+` lines hold exact text, of whole lines or of parts of a line; the `-`
text must occur exactly once in the file. A block without `+` lines deletes its text.

  FILE scheduler/core/decide.c
  # the objective itself counts as late
  - if (upper_s > slo_s)
  + if (upper_s >= slo_s)

A change is killed if a test fails with it, fails with it a second time, and passes without it in between. A change that does
not compile is an error of the list. Tests without the changed file are not asked. Those that are likely to notice soon come
first: short ones, those that call the file or have a name like it, and those that noticed other changes of it.

The copy lies in build/mutations/, so the tree itself is never touched and objects are reused. Two runs at a time need a
--copy each. It is built with the flags of `make`, so that a compiler cache (CC="ccache gcc") has its objects already.
"""
import argparse
import concurrent.futures
import glob
import os
import resource
import sys
import threading

from bench import CPU_LEAST_S, CPU_LIMIT, Bench, DoesNotCompile, Trial
from lists import ROOT, Layer, fail, names, sample


def words_of(path):
    return set(os.path.splitext(os.path.basename(path))[0].split("_")) - {"test"}


class Asked:
    """The test programs of a layer, and what is known of each."""

    def __init__(self, layer, bench, jobs):
        sources = sorted(set(s for p in layer.tests for s in glob.glob(p, root_dir=bench.copy)))
        if not sources:
            fail(f"{layer.name}: no test matches {' '.join(layer.tests)}")
        self.bench = bench
        self.programs = ["build/plain/" + s[:-2] for s in sources]
        bench.build(self.programs, layer.programs, jobs)
        self.took, self.kills, self.lock = {}, {}, threading.Lock()
        self.sounding = {program: threading.Lock() for program in self.programs}

    def sound(self, program):
        """Runs it once without any change: only a test that passes then can tell something. A busy machine may fail a
        good test."""
        with self.sounding[program]:
            if program not in self.took:
                for _ in range(2):
                    self.took[program] = self.bench.took(program)
                    if self.took[program].passed:
                        break
                else:
                    print(f"{program} fails without any change ({self.took[program].why()}), and is not asked", flush=True)
            return self.took[program].passed

    def cost(self, program):
        """In seconds; that of a test that has not run here is a guess from its length."""
        if program in self.bench.sound:
            _, cpu_s, wall_s = self.bench.sound[program]
            return 0.2 + max(cpu_s, wall_s / 8)
        source = os.path.join(self.bench.copy, program[len("build/plain/"):] + ".c")
        return 0.2 + os.path.getsize(source) / 50000

    def limit(self, program):
        return max(CPU_LEAST_S, CPU_LIMIT * self.took[program].cpu_s)

    def order(self, path):
        """Cheap ones and likely ones first: by cost over likelihood."""
        def rank(program):
            likely = 1 + 4 * len(words_of(path) & words_of(program)) + 20 * (words_of(path) == words_of(program))
            likely += 4 * min(5, self.bench.calls(program, path))
            with self.lock:
                likely += 20 * self.kills.get((path, program), 0)
            return self.cost(program) / likely
        return sorted(self.programs, key=rank)

    def killed_by(self, trial):
        """The program that notices the change and how, and what failed once only; None: none notices."""
        once = []
        for program in self.order(trial.path):
            if not trial.programs_to_change(program) or not self.sound(program):
                continue
            run = trial.run(program, self.limit(program))
            if run.passed:
                continue
            if self.confirmed(trial, program, run):
                with self.lock:
                    self.kills[trial.path, program] = self.kills.get((trial.path, program), 0) + 1
                return f"{os.path.basename(program)}: {run.why()}", once
            once.append(f"{os.path.basename(program)}: {run.why()}")
        return None, once

    def confirmed(self, trial, program, run):
        if not self.bench.untouched(program, run.case).passed:
            return False
        again = trial.run(program, self.limit(program), run.case)
        if again.passed and run.case:  # it may take the cases before it, too
            again = trial.run(program, self.limit(program))
        return not again.passed


def run_layer(layer, bench, chosen, jobs):
    for m in chosen:
        with open(os.path.join(bench.copy, m.path), encoding="utf-8") as file:
            m.place(file.read())  # all of them are checked before the first is tried
    asked = Asked(layer, bench, jobs)
    workers = concurrent.futures.ThreadPoolExecutor(jobs)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def judge(m):
        folder = os.path.join(bench.copy, "build", "trial", str(threading.get_ident()))
        try:
            killer, once = asked.killed_by(Trial(bench, folder, m))
        except DoesNotCompile as why:
            print(f"NO CODE   {m.where}  {m.path}: {m.name()}\n{why}", flush=True)
            return None
        once = f"  (once only: {', '.join(once)})" if once else ""
        print(f"{'killed  ' if killer else 'SURVIVED'}  {m.where}  {m.path}: {m.name()}"
              f"{'  (' + killer + ')' if killer else ''}{once}", flush=True)
        return bool(killer)

    results = list(workers.map(judge, chosen))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    killed, tried = results.count(True), len(results)
    share = 100.0 * killed / tried if tried else 100.0
    print(f"{layer.name}: {killed} of {tried} mutations killed ({share:.1f} %, bar {layer.bar:g} %), "
          f"{used / max(tried, 1):.1f} s of processor time each", flush=True)
    return share >= layer.bar and None not in results


def main():
    parser = argparse.ArgumentParser(description="Apply wrong changes one at a time and see whether a test notices.")
    parser.add_argument("layer", nargs="*", help="core, jobs, store, ...; none: all of tests/mutations/*.txt")
    parser.add_argument("--sample", type=int, metavar="N", help="only N changes of each layer, evenly over its list")
    parser.add_argument("--only", action="append", metavar="TEXT",
                        help="only changes whose note, file or place contains this text, or one of several")
    parser.add_argument("--list", action="store_true", help="print the changes and run nothing")
    parser.add_argument("--check", action="store_true", help="only see whether every change finds its text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="changes tried at a time (%(default)s)")
    parser.add_argument("--copy", default=os.path.join(ROOT, "build", "mutations"),
                        help="where the copy of the tree lies (%(default)s)")
    options = parser.parse_args()
    layers = [Layer(name) for name in options.layer or names()]
    if options.check:
        complaints = [line for layer in layers for line in layer.stale()]
        print("\n".join(complaints) or "every mutation finds its text")
        return 1 if complaints else 0
    chosen = {layer: sample([m for m in layer.mutations if not options.only or
                             any(part in text for part in options.only for text in (m.name(), m.path, m.where))], options.sample)
              for layer in layers}
    if options.list:
        for m in sum(chosen.values(), []):
            print(f"{m.where}  {m.path}: {m.name()}")
        return 0
    bench = Bench(options.copy)
    bench.copy_tree()
    good = [run_layer(layer, bench, chosen[layer], options.jobs) for layer in layers]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
