"""The lists of wrong changes, tests/mutations/LAYER.txt, and how one is put into its file. run.py says how they are
written."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def fail(message):
    sys.exit(f"mutations: {message}")


class Mutation:
    def __init__(self, where, path):
        self.where, self.path = where, path
        self.note, self.old, self.new = [], [], []

    def name(self):
        return " ".join(self.note) or " / ".join(self.old)

    def place(self, text):
        """Where the old text starts, and its length. Lines may be indented differently in the list and in the file."""
        old = "\n".join(self.old)
        if text.count(old) == 1:
            return text.index(old), len(old)
        wanted = [line.strip() for line in self.old]
        lines = text.split("\n")
        at = [i for i in range(len(lines)) if [l.strip() for l in lines[i:i + len(wanted)]] == wanted]
        if len(at) != 1:
            fail(f"{self.where}: the text occurs {max(len(at), text.count(old))} times in {self.path}: {old!r}")
        start = sum(len(l) + 1 for l in lines[:at[0]])
        return start, sum(len(l) + 1 for l in lines[at[0]:at[0] + len(wanted)]) - 1

    def applied(self, text):
        start, length = self.place(text)
        return text[:start] + "\n".join(self.new) + text[start + length:]


class Layer:
    """The set-up and the changes of tests/mutations/LAYER.txt."""

    def __init__(self, name):
        self.name, self.tests, self.programs, self.bar, self.mutations = name, [], [], 90.0, []
        path = os.path.join(ROOT, "tests", "mutations", name + ".txt")
        if not os.path.exists(path):
            fail(f"there is no {os.path.relpath(path, ROOT)}")
        current = None
        for number, line in enumerate(open(path, encoding="utf-8"), 1):
            current = self._read(line.rstrip("\n"), f"{name}.txt:{number}", current)
        for m in self.mutations:
            if not m.old:
                fail(f"{m.where}: no '-' line says what is changed")
        self.tests = self.tests or [f"tests/unit/{name}/test_*.c"]

    def _begin(self, where, path):
        self.mutations.append(Mutation(where, path))
        return self.mutations[-1]

    def _read(self, line, where, current):
        word, _, rest = line.partition(" ")
        if not line.strip() or (line.startswith("#") and current is None):
            return current
        if word == "FILE":
            return self._begin(where, rest.strip())
        if current is None:
            if word == "TESTS":
                self.tests += rest.split()
            elif word == "PROGRAMS":
                self.programs += rest.split()
            elif word == "BAR":
                self.bar = float(rest)
            else:
                fail(f"{where}: expected TESTS, PROGRAMS, BAR or FILE")
        elif line.startswith("#"):
            if current.old:  # the next change of the same file
                current = self._begin(where, current.path)
            current.note.append(line[1:].strip())
        elif line.startswith("-"):
            if current.new:
                current = self._begin(where, current.path)
            current.old.append(line[2:])
        elif line.startswith("+"):
            current.new.append(line[2:])
        else:
            fail(f"{where}: a line starts with FILE, '#', '-' or '+'")
        return current

    def stale(self):
        """The changes whose text is not in the tree any more, each with its reason."""
        found = []
        for m in self.mutations:
            try:
                with open(os.path.join(ROOT, m.path), encoding="utf-8") as file:
                    m.place(file.read())
            except (OSError, SystemExit) as why:
                found.append(f"{m.where}: {why}")
        return found


def names():
    return sorted(name[:-4] for name in os.listdir(os.path.join(ROOT, "tests", "mutations")) if name.endswith(".txt"))


def sample(mutations, n):
    """n of them, evenly over the list. The list goes file by file, so every file has its share."""
    if not n or n >= len(mutations):
        return mutations
    return [mutations[(2 * i + 1) * len(mutations) // (2 * n)] for i in range(n)]
