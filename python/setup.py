"""Only the version is here: the file VERSION above this folder has it, and the metadata of a source package."""
from pathlib import Path

from setuptools import setup

here = Path(__file__).resolve().parent


def version() -> str:
    for path in (here.parent / "VERSION", here / "VERSION"):
        if path.is_file():
            return path.read_text(encoding="utf-8").strip()
    for line in (here / "PKG-INFO").read_text(encoding="utf-8").splitlines():
        if line.startswith("Version: "):
            return line[len("Version: "):]
    raise RuntimeError("there is no file VERSION")


setup(version=version())
