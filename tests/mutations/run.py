#!/usr/bin/env python3
"""Do the tests notice a mistake? Applies small wrong changes to a copy of the tree, one at a time, and runs the
tests of the layer. A change that no test notices "survives": a test is missing, or the code does nothing.

  tests/mutations/run.py LAYER... [--only TEXT] [--list] [--jobs N] [--copy DIR]     (`make mutations LAYER=core`)
  tests/mutations/run.py --check        does every change still find its text? (a part of .ci/run)

tests/mutations/LAYER.txt holds the changes of one layer. Lines before the first FILE set up the layer:

  TESTS tests/unit/core/test_*.c tests/conform/test_policies.c     programs to run, as sources; wildcards allowed
  PROGRAMS build/postriderd build/postrider-supervisor             what those of them that start programs need (all)
  BAR 95                                                           percent that must be killed

Then a block for each change. `-` and `+` lines hold exact text, of whole lines or of parts of a line; the `-`
text must occur exactly once in the file. A block without `+` lines deletes its text.

  FILE scheduler/core/decide.c
  # the objective itself counts as late
  - if (upper_s > slo_s)
  + if (upper_s >= slo_s)

The copy lies in build/mutations/, so the tree itself is never touched and objects are reused. Two runs at a time need a
--copy each. It is built with the flags of
`make`, so that a compiler cache (CC="ccache gcc") has its objects already.
"""
import argparse
import glob
import os
import resource
import signal
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COPY = os.path.join(ROOT, "build", "mutations")
# A mutation may make a test loop or wait for ever. On a busy machine a good test takes long, too, so it is the
# processor time that is short.
TEST_CPU_S, TEST_LIMIT_S = 200, 900


class Mutation:
    def __init__(self, where, path):
        self.where, self.path = where, path
        self.note, self.old, self.new = [], [], []

    def name(self):
        return " ".join(self.note) or " / ".join(self.old)

    def texts(self):
        return "\n".join(self.old), "\n".join(self.new)


def fail(message):
    sys.exit(f"mutations: {message}")


def read_layer(layer):
    """The set-up and the changes of tests/mutations/LAYER.txt."""
    path = os.path.join(ROOT, "tests", "mutations", layer + ".txt")
    if not os.path.exists(path):
        fail(f"there is no {os.path.relpath(path, ROOT)}")
    tests, started, bar, found, current = [], [], 90.0, [], None
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        where = f"{layer}.txt:{number}"
        word, _, rest = line.partition(" ")
        if not line.strip() or (line.startswith("#") and current is None):
            continue
        if word == "TESTS" and current is None:
            tests += rest.split()
        elif word == "PROGRAMS" and current is None:
            started += rest.split()
        elif word == "BAR" and current is None:
            bar = float(rest)
        elif word == "FILE":
            current = Mutation(where, rest.strip())
            found.append(current)
        elif current is None:
            fail(f"{where}: expected TESTS, PROGRAMS, BAR or FILE")
        elif line.startswith("#"):
            if current.old:  # the next change of the same file
                current = Mutation(where, current.path)
                found.append(current)
            current.note.append(line[1:].strip())
        elif line.startswith("-"):
            if current.new:
                current = Mutation(where, current.path)
                found.append(current)
            current.old.append(line[2:])
        elif line.startswith("+"):
            current.new.append(line[2:])
        else:
            fail(f"{where}: a line starts with FILE, '#', '-' or '+'")
    for m in found:
        if not m.old:
            fail(f"{m.where}: no '-' line says what is changed")
    return tests or [f"tests/unit/{layer}/test_*.c"], started or ["all"], bar, found


def place_of(m, text):
    """Where the old text starts. Lines may be indented differently in the list and in the file."""
    old, _ = m.texts()
    if text.count(old) == 1:
        return text.index(old), len(old)
    wanted = [line.strip() for line in m.old]
    lines = text.split("\n")
    at = [i for i in range(len(lines)) if [l.strip() for l in lines[i:i + len(wanted)]] == wanted]
    if len(at) != 1:
        fail(f"{m.where}: the text occurs {max(len(at), text.count(old))} times in {m.path}: {old!r}")
    start = sum(len(l) + 1 for l in lines[:at[0]])
    return start, sum(len(l) + 1 for l in lines[at[0]:at[0] + len(wanted)]) - 1


def stale(layer):
    """The changes of a layer whose text is not in the tree any more, each with its reason."""
    found = []
    for m in read_layer(layer)[3]:
        try:
            with open(os.path.join(ROOT, m.path), encoding="utf-8") as file:
                place_of(m, file.read())
        except (OSError, SystemExit) as why:
            found.append(f"{m.where}: {why}")
    return found


def changed(m, text):
    start, length = place_of(m, text)
    return text[:start] + m.texts()[1] + text[start + length:]


def copy_tree():
    os.makedirs(COPY, exist_ok=True)
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True,
                             text=True, check=True).stdout.split("\n")
    for name in filter(None, tracked):
        source, target = os.path.join(ROOT, name), os.path.join(COPY, name)
        if not os.path.isfile(source):
            continue
        data = open(source, "rb").read()
        if os.path.exists(target) and open(target, "rb").read() == data:
            continue  # keeps its date, so it is not compiled again
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as out:
            out.write(data)
        os.chmod(target, os.stat(source).st_mode)
    for folder, _, names in os.walk(COPY):
        if os.path.relpath(folder, COPY).split(os.sep)[0] == "build":
            continue
        for name in names:
            relative = os.path.relpath(os.path.join(folder, name), COPY)
            if not os.path.exists(os.path.join(ROOT, relative)):
                os.unlink(os.path.join(folder, name))


def needs_programs(source):
    """Does this test start postriderd or the supervisor? Then these must be built with the change, too."""
    text = open(os.path.join(COPY, source), encoding="utf-8").read()
    return source.startswith("tests/daemon/") or 'getenv("BIN")' in text or "exec_harness.h" in text


def build(targets, jobs):
    command = ["make", f"-j{jobs}"] + targets
    compiler = os.environ.get("CC")
    if compiler:
        command.append("CC=" + compiler)
    return subprocess.run(command, cwd=COPY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run_test(program):
    """Does it pass? The first case that fails ends it: the rest would say no more."""
    env = dict(os.environ, BIN=os.path.join(COPY, "build"), BUILD_DIR=os.path.join(COPY, "build/plain"),
               OPENBLAS_NUM_THREADS="1", CMOCKA_MESSAGE_OUTPUT="TAP")
    test = subprocess.Popen([os.path.join(COPY, program)], cwd=COPY, env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (TEST_CPU_S, TEST_CPU_S)))
    late = threading.Timer(TEST_LIMIT_S, os.killpg, (test.pid, signal.SIGKILL))
    late.start()
    failed = any(line.startswith(b"not ok") and b"# SKIP" not in line for line in test.stdout)
    if failed and test.poll() is None:
        os.killpg(test.pid, signal.SIGKILL)
    late.cancel()
    return test.wait() == 0 and not failed


def run_layer(layer, only, jobs):
    patterns, started, bar, mutations = read_layer(layer)
    sources = sorted(set(s for p in patterns for s in glob.glob(p, root_dir=COPY)))
    targets = {"build/plain/" + s[:-2]: started * needs_programs(s) for s in sources}
    programs = list(targets)
    for program in programs:
        targets[program].append(program)
    if not programs:
        fail(f"{layer}: no test matches {' '.join(patterns)}")
    texts = {m.path: open(os.path.join(COPY, m.path), encoding="utf-8").read() for m in mutations}
    for m in mutations:
        place_of(m, texts[m.path])  # all of them are checked before the first is tried
    # Those of the layer itself first, small ones first.
    programs.sort(key=lambda p: (f"/unit/{layer}/" not in p,
                                 os.path.getsize(os.path.join(COPY, p[len("build/plain/"):] + ".c"))))
    sound = set()  # programs that pass without any change

    def made_at(program):
        return [os.stat(p).st_mtime_ns if os.path.exists(p) else 0
                for p in (os.path.join(COPY, name) for name in targets[program]) if not os.path.isdir(p)]

    def passes(program, what):
        before = made_at(program)
        built = build(targets[program], jobs)
        if built.returncode:
            fail(f"{what}: does not compile\n{built.stdout[-1500:]}")
        if before == made_at(program) and "all" not in targets[program]:
            return True  # it was not made anew, so the change is no part of it
        return run_test(program)

    def write(path, text):
        with open(os.path.join(COPY, path), "w", encoding="utf-8") as out:
            out.write(text)

    def noticed_by(m, first):
        """The first program that fails with the change and passes without it. A program is built when its turn comes:
        most are not needed."""
        order = sorted(programs, key=lambda p: first.index(p) if p in first else len(first))
        while True:
            try:
                write(m.path, changed(m, texts[m.path]))
                killer = next((p for p in order if not passes(p, m.where)), None)
            finally:
                write(m.path, texts[m.path])
            if not killer or killer in sound:
                return killer
            if passes(killer, layer):
                sound.add(killer)
                return killer
            print(f"{killer} fails without any change, and is not asked any more", flush=True)
            programs.remove(killer)
            order = order[order.index(killer) + 1:]

    useful = {}  # for a file, the programs that noticed a change of it: they are tried first
    killed, survivors, tried = 0, [], 0
    for m in mutations:
        if only and only not in m.name() and only not in m.path and only not in m.where:
            continue
        tried += 1
        name = "/test_" + os.path.basename(m.path)[:-2]
        first = useful.setdefault(m.path, [p for p in programs if p.endswith(name)])
        killer = noticed_by(m, first)
        if killer:
            if killer in first:
                first.remove(killer)
            first.insert(0, killer)
            killed += 1
        else:
            survivors.append(m)
        print(f"{'killed  ' if killer else 'SURVIVED'}  {m.path}: {m.name()}"
              f"{'  (' + os.path.basename(killer) + ')' if killer else ''}", flush=True)
    share = 100.0 * killed / tried if tried else 100.0
    print(f"{layer}: {killed} of {tried} mutations killed ({share:.1f} %, bar {bar:g} %)", flush=True)
    return share >= bar


def main():
    global COPY
    parser = argparse.ArgumentParser(description="Apply wrong changes one at a time and see whether a test notices.")
    parser.add_argument("layer", nargs="*", help="core, jobs, store, ...; none: all of tests/mutations/*.txt")
    parser.add_argument("--only", help="only changes whose note, file or place contains this text")
    parser.add_argument("--list", action="store_true", help="print the changes and run nothing")
    parser.add_argument("--check", action="store_true", help="only see whether every change finds its text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--copy", default=COPY, help="where the copy of the tree lies (%(default)s)")
    options = parser.parse_args()
    layers = options.layer or sorted(os.path.basename(p)[:-4]
                                     for p in glob.glob(os.path.join(ROOT, "tests/mutations/*.txt")))
    if options.list:
        for layer in layers:
            for m in read_layer(layer)[3]:
                print(f"{m.where}  {m.path}: {m.name()}")
        return 0
    if options.check:
        complaints = [line for layer in layers for line in stale(layer)]
        print("\n".join(complaints) or "every mutation finds its text")
        return 1 if complaints else 0
    COPY = os.path.abspath(options.copy)
    copy_tree()
    good = [run_layer(layer, options.only, options.jobs) for layer in layers]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
