"""The version: that of the installed package, or of the source tree this file is in. The file VERSION is the one
place where it is written down."""
from pathlib import Path


def _find() -> str:
    try:  # a source tree: the package may be installed as well, in another version
        return (Path(__file__).resolve().parents[2] / "VERSION").read_text(encoding="utf-8").strip()
    except OSError:
        pass
    from importlib import metadata

    try:
        return metadata.version("postrider")
    except metadata.PackageNotFoundError:
        return "unknown"


__version__ = _find()
