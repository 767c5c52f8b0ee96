"""Builds the wheel, with Python alone: the backend that pyproject.toml names, and `make python-wheel`.

    python3 build_wheel.py FOLDER        writes heddle-VERSION-cp311-abi3-PLATFORM.whl there

The extension is made by the repository's Makefile, in release mode. The wheel is a zip file whose entries are
sorted and dated 1980, so that the same sources give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NAME = "heddle"


def version() -> str:
    for line in (ROOT / "include/heddle/base.h").read_text().splitlines():
        if line.startswith("#define HD_VERSION"):
            return line.split('"')[1]
    raise RuntimeError("include/heddle/base.h has no version")


def tag() -> str:
    return "cp311-abi3-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def metadata() -> str:
    return (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\n"
        "Summary: Durable workflows and reactive state in one SQLite file\n"
        "Requires-Python: >=3.11\nLicense: MIT\n"
    )


def info_files() -> dict[str, bytes]:
    folder = f"{NAME}-{version()}.dist-info"
    return {
        f"{folder}/METADATA": metadata().encode(),
        f"{folder}/WHEEL": f"Wheel-Version: 1.0\nGenerator: heddle\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode(),
        f"{folder}/entry_points.txt": b"[console_scripts]\nheddle-worker = heddle.worker:main\n"
        b"[pytest11]\nheddle = heddle.testing.plugin\n",
        f"{folder}/top_level.txt": b"heddle\n",
    }


def package_files() -> dict[str, bytes]:
    out = {}
    for path in sorted((HERE / NAME).rglob("*")):
        if path.is_file() and path.suffix in {".py", ".pyi", ".so"} or path.name == "py.typed":
            out[str(path.relative_to(HERE))] = path.read_bytes()
    return out


def make_extension() -> None:
    if not (ROOT / "include/heddle.h").exists():
        raise SystemExit(f"{HERE} is no folder of a clone of heddle: the library, which is compiled, is not at {ROOT}")
    subprocess.run(["make", "-C", str(ROOT), "python", f"PYTHON3={sys.executable}"], check=True)


def record(files: dict[str, bytes]) -> bytes:
    lines = []
    for name, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}")
    lines.append(f"{NAME}-{version()}.dist-info/RECORD,,")
    return ("\n".join(lines) + "\n").encode()


def write_wheel(folder: str, files: dict[str, bytes]) -> str:
    name = f"{NAME}-{version()}-{tag()}.whl"
    files = dict(files, **info_files())
    files[f"{NAME}-{version()}.dist-info/RECORD"] = record(files)
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as out:
        for entry, data in sorted(files.items()):
            info = zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, data)
    return name


# What pip calls.


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    make_extension()
    return write_wheel(wheel_directory, package_files())


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    make_extension()
    return write_wheel(wheel_directory, {"heddle.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Of the whole repository: the extension needs the library's sources."""
    name = f"{NAME}-{version()}"
    files = subprocess.run(["git", "-C", str(ROOT), "ls-files"], check=True, capture_output=True, text=True)
    with tarfile.open(os.path.join(sdist_directory, name + ".tar.gz"), "w:gz") as out:
        for path in files.stdout.splitlines():
            out.add(ROOT / path, f"{name}/{path}")
    return name + ".tar.gz"


if __name__ == "__main__":
    print(os.path.join(sys.argv[1], write_wheel(sys.argv[1], package_files())))
