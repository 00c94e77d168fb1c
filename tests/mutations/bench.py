"""A copy of the tree, built once, in which wrong changes are tried. A change costs one compilation and a link of each
test that is run: `make` is asked for its commands once, and not called again. So several changes are tried at a time,
each in a folder of its own, and the copy itself stays as it is."""
import glob
import hashlib
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time

from lists import ROOT, fail

# A change may make a test loop or wait for ever. On a busy machine a good test takes long, too. So the limit is a multiple
# of the processor time that it takes without a change, and no less than so many seconds; or so long without any.
CPU_LIMIT, CPU_LEAST_S = 8, 10
IDLE_S, LONGEST_S = 60, 1800

# options of nm
DEFINED = "--defined-only"
PUBLIC = (DEFINED, "-g")


class Run:
    """How a test program ended. `case`: the first case that failed, if one did. `waited`: it was ended because it did
    nothing any more."""

    def __init__(self, case, status, waited, cpu_s, wall_s):
        self.case, self.status, self.waited, self.cpu_s, self.wall_s = case, status, waited, cpu_s, wall_s
        self.passed = not case and status == 0 and not waited

    def why(self):
        if self.case:
            return self.case
        if self.waited:
            return f"no end after {self.wall_s:.0f} s"
        if self.status < 0:
            return f"signal {signal.Signals(-self.status).name} after {self.cpu_s:.0f} s of processor time"
        return f"status {self.status}"


class DoesNotCompile(Exception):
    pass


def end_leftovers(folder):
    """Ends what a test left running: programs that lie in its folder, or were told of it."""
    marks = folder.encode() + b"/"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            ours = os.readlink(f"/proc/{pid}/exe").startswith(folder + "/")
            if ours or marks in open(f"/proc/{pid}/environ", "rb").read():
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass  # it has gone, or belongs to someone else


def ticks_of(pid):
    """The processor time of a process so far, and of what it has waited for."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return sum(int(word) for word in file.read().rpartition(b")")[2].split()[11:15])
    except OSError:
        return 0


def run_program(program, folder, copy, cpu_s=None, case=None):
    """Runs a test program, until the first case that fails: the rest would say no more. `folder` has bin/, the programs
    that it starts."""
    env = dict(os.environ, BIN=os.path.join(folder, "bin"), BUILD_DIR=os.path.join(copy, "build/plain"),
               OPENBLAS_NUM_THREADS="1", CMOCKA_MESSAGE_OUTPUT="TAP")
    command = [program] + [case] * bool(case)
    if cpu_s:
        command = ["sh", "-c", f'ulimit -t {int(cpu_s)}; exec "$0" "$@"'] + command
    began = busy = time.monotonic()
    ticks = 0
    test = subprocess.Popen(command, cwd=copy, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            stdin=subprocess.DEVNULL, start_new_session=True)
    said, failed, waited, ended = b"", None, False, None
    out = test.stdout.fileno()
    while True:
        ready = select.select([out], [], [], 0.05)[0]
        data = os.read(out, 1 << 16) if ready else b""
        said += data
        *lines, said = said.split(b"\n")
        for line in lines:
            found = re.match(rb"not ok \d+ - (\S+)", line)
            failed = failed or (found and found.group(1).decode())
        # What the test started may hold the other end of the pipe, so the end of the output is not waited for.
        if ended is None:
            pid, status, used = os.wait4(test.pid, os.WNOHANG)
            ended = (os.waitstatus_to_exitcode(status), used) if pid else None
        now = time.monotonic()
        if ticks_of(test.pid) != ticks:
            busy, ticks = now, ticks_of(test.pid)
        late = now - busy > IDLE_S or now - began > LONGEST_S
        waited = late and ended is None
        if failed or late or (ended and not data):
            break
        if ready and not data and ended is None:
            time.sleep(0.01)  # the pipe is closed, the program is not done
    if ended is None:
        os.killpg(test.pid, signal.SIGKILL)
        _, status, used = os.wait4(test.pid, 0)
        ended = os.waitstatus_to_exitcode(status), used
    test.returncode = ended[0]
    test.stdout.close()
    end_leftovers(folder)
    return Run(failed, ended[0], waited and not failed, ended[1].ru_utime + ended[1].ru_stime, time.monotonic() - began)


def symbols(path, *options):
    listed = subprocess.run(["nm", "-P", *options, path], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in listed.stdout.splitlines()}


class Bench:
    def __init__(self, copy):
        self.copy = os.path.abspath(copy)
        self.compile, self.link, self.members, self.depends, self.started = {}, {}, {}, {}, []
        self.known_symbols, self.lock = {}, threading.Lock()
        self.sound_file = os.path.join(self.copy, "build", "sound.json")
        self.sound = {}

    def copy_tree(self):
        os.makedirs(self.copy, exist_ok=True)
        tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True,
                                 text=True, check=True).stdout.split("\n")
        for name in filter(None, tracked):
            source, target = os.path.join(ROOT, name), os.path.join(self.copy, name)
            if not os.path.isfile(source):
                continue
            data = open(source, "rb").read()
            if os.path.exists(target) and open(target, "rb").read() == data:
                continue  # keeps its date, so it is not compiled again
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as out:
                out.write(data)
            os.chmod(target, os.stat(source).st_mode)
        for folder, _, files in os.walk(self.copy):
            if os.path.relpath(folder, self.copy).split(os.sep)[0] == "build":
                continue
            for name in files:
                relative = os.path.relpath(os.path.join(folder, name), self.copy)
                if not os.path.exists(os.path.join(ROOT, relative)):
                    os.unlink(os.path.join(folder, name))

    def make(self, targets, *options):
        compiler = os.environ.get("CC")
        command = ["make", "--no-print-directory", *options, *targets] + ["CC=" + compiler] * bool(compiler)
        made = subprocess.run(command, cwd=self.copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if made.returncode:
            fail(f"the tree without any change does not build\n{made.stdout[-1500:]}")
        return made.stdout

    def build(self, tests, started, jobs):
        """Builds tests and the programs that they start, and notes the commands that make them and what each object is
        made of."""
        targets, self.started = tests + started, started
        self.make(targets, f"-j{jobs}")
        for line in self.make(targets, "-n", "-B", "V=1").splitlines():
            words = shlex.split(line.partition(";")[2] if line.startswith("mkdir ") else line)
            if "ar" in words:
                archive = words.index("ar") + 2
                self.members[words[archive][:-len(".new")]] = set(words[archive + 1:words.index("&&", archive)])
            elif "-o" in words:
                (self.compile if "-c" in words else self.link)[words[words.index("-o") + 1]] = words
        for path in self.compile:
            with open(os.path.join(self.copy, path[:-2] + ".d"), encoding="utf-8") as file:
                # "x.o: x.c x.h", over many lines, and an empty rule "x.h:" for each header
                self.depends[path] = [w for w in file.read().replace("\\\n", " ").split() if not w.endswith(":")]
        if os.path.exists(self.sound_file):
            self.sound = json.load(open(self.sound_file, encoding="utf-8"))

    def symbols_of(self, path, *options):
        with self.lock:
            if (path, options) not in self.known_symbols:
                self.known_symbols[path, options] = symbols(os.path.join(self.copy, path), *options)
            return self.known_symbols[path, options]

    def contains(self, program, path):
        """The objects of a program that are made of this file. Of an archive a program has the objects that it needs: what
        such an object defines for others is there, and a linker may have made it local."""
        words = self.link[program]
        archived = set().union(*(self.members[w] for w in words if w in self.members))
        return [o for o in self.compile if path in self.depends[o] and
                (o in words or (o in archived and self.symbols_of(o, *PUBLIC) <= self.symbols_of(program, DEFINED)))]

    def calls(self, program, path):
        """How many functions of this file the test itself calls."""
        mine = [o for o in self.compile if path == self.depends[o][0]]
        return sum(len(self.symbols_of(o, *PUBLIC) & self.symbols_of(program + ".o", "-u")) for o in mine)

    def starts_programs(self, program):
        """Does this test start postriderd or the supervisor? Then these are made with the change, too."""
        parts = self.depends[program + ".o"]
        finds = ('getenv("BIN")', "support_find_supervisor();")
        return "/tests/daemon/" in program or any(how in open(os.path.join(self.copy, p)).read()
                                                  for p in parts if p.startswith("tests/") for how in finds)

    def digest(self, program):
        """The same for the very same programs."""
        whole = hashlib.sha256()
        for path in [program] + self.started:
            with open(os.path.join(self.copy, path), "rb") as file:
                whole.update(file.read())
        return whole.hexdigest()

    def took(self, program):
        """How a whole run without any change ended. It is run once and remembered."""
        digest = self.digest(program)
        with self.lock:
            known = self.sound.get(program)
        if known and known[0] == digest:
            return Run(None, 0, False, known[1], known[2])
        run = self.untouched(program)
        if run.passed:
            with self.lock:
                self.sound[program] = [digest, run.cpu_s, run.wall_s]
                with open(self.sound_file + ".new", "w", encoding="utf-8") as out:
                    json.dump(self.sound, out)
                os.rename(self.sound_file + ".new", self.sound_file)
        return run

    def untouched(self, program, case=None):
        """Runs a test without any change."""
        folder = os.path.join(self.copy, "build", "trial", f"untouched-{threading.get_ident()}")
        self.prepare(folder)
        return run_program(os.path.join(self.copy, program), folder, self.copy, case=case)

    def prepare(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "bin"))
        for path in glob.glob(os.path.join(self.copy, "build", "postrider*")):
            # A link of the other kind would not do: programs look for each other beside themselves.
            os.link(path, os.path.join(folder, "bin", os.path.basename(path)))


class Trial:
    """One change, in a folder of its own."""

    def __init__(self, bench, folder, mutation):
        self.bench, self.folder, self.path = bench, folder, mutation.path
        bench.prepare(folder)
        with open(os.path.join(bench.copy, mutation.path), encoding="utf-8") as file:
            text = mutation.applied(file.read())
        self._write(text)
        self.made = set()

    def _write(self, text):
        target = os.path.join(self.folder, "source", self.path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as out:
            out.write(text)

    def _call(self, command):
        done = subprocess.run(command, cwd=self.bench.copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise DoesNotCompile(done.stdout[-1500:])

    def _object(self, path):
        """The object with the change in it. Without symbols for a debugger: they take half of the time."""
        target = os.path.join(self.folder, path)
        if target not in self.made:
            source = self.bench.depends[path][0]
            changed = os.path.join(self.folder, "source", source)
            words = [changed if w == source and os.path.exists(changed) else w for w in self.bench.compile[path]]
            words[words.index("-o") + 1] = target
            first = words.index("-I.")
            words[first:first] = ["-g0", "-I" + os.path.join(self.folder, "source"), "-iquote", os.path.dirname(source)]
            os.makedirs(os.path.dirname(target), exist_ok=True)
            self._call([w for w in words if w != "-g"])
            self.made.add(target)
        return target

    def _program(self, path, target):
        """Links a program with the change in it. An object before an archive is taken instead of the archive's."""
        if target in self.made:
            return
        changed = {o: self._object(o) for o in self.bench.contains(path, self.path)}
        words = list(self.bench.link[path])
        words[words.index("-o") + 1] = target
        rest = [o for o in changed if o not in words]
        first = next((i for i, w in enumerate(words) if w.endswith(".a")), len(words))
        words = [changed.get(w, w) for w in words]
        words[first:first] = [changed[o] for o in rest]
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.lexists(target):
            os.unlink(target)
        self._call(words + ["-Wl,-S"])
        self.made.add(target)

    def programs_to_change(self, program):
        """What has to be made anew for this test; nothing: the change is no part of it."""
        candidates = [program] + (self.bench.started if self.bench.starts_programs(program) else [])
        return [p for p in candidates if self.bench.contains(p, self.path)]

    def run(self, program, cpu_s, case=None):
        """Runs a test with the change in it."""
        mine = os.path.join(self.bench.copy, program)
        for path in self.programs_to_change(program):
            if path == program:
                mine = os.path.join(self.folder, program)
                self._program(path, mine)
            else:
                self._program(path, os.path.join(self.folder, "bin", os.path.basename(path)))
        return run_program(mine, self.folder, self.bench.copy, cpu_s, case)
