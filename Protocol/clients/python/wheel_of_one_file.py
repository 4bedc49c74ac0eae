# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel for pip (PEP 517) without setuptools, so that installing needs no network and no other package.

The file becomes the package `restorationd`, because only a package can declare its types by `py.typed`. Programs that
were written with a copy of the file import `restoration`, a package that only stands for the other: an unrelated
distribution has that name too, and may overwrite it.

What is for the loops of toolkits is a package of its own, and so is what is for tests, which pytest loads as a plugin.
"""

import base64
import hashlib
import io
import os
import pathlib
import re
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
FILES = [
    "pyproject.toml", "README.md", "restoration.py", "restorationd_loops.py", "restorationd_testing.py",
    "wheel_of_one_file.py",
]
# Of the repository, or of the sdist that was made there.
LICENSES = [HERE / "LICENSE", *(each.parent / "LICENSE" for each in HERE.parents if each.name == "Protocol")]
LICENSES = [path for path in LICENSES if path.is_file()][:1]
PASSING_ON = b'''# SPDX-License-Identifier: Apache-2.0
"""`restorationd` by the name of the file."""
import sys

import restorationd
from restorationd import *  # noqa: F403
from restorationd import Elements as Elements, Keep as Keep, Kind as Kind, Leaving as Leaving, Path as Path
from restorationd import State as State, __version__ as __version__

sys.modules[__name__] = restorationd
'''


def _version():
    return re.search(r'^__version__ = "(.+)"$', (HERE / "restoration.py").read_text(), re.MULTILINE)[1]


def _metadata():
    return (
        f"Metadata-Version: 2.1\nName: restorationd\nVersion: {_version()}\n"
        "Summary: State restoration for processes on Linux: a client of restorationd\n"
        "License: Apache-2.0\n" + "License-File: LICENSE\n" * len(LICENSES) +
        "Requires-Python: >=3.9\nClassifier: Operating System :: POSIX :: Linux\n"
        "Classifier: Typing :: Typed\nProvides-Extra: testing\nRequires-Dist: pytest>=7; extra == \"testing\"\n"
        "Description-Content-Type: text/markdown\n\n"
        + (HERE / "README.md").read_text()
    )


def _tag():
    return "Wheel-Version: 1.0\nGenerator: wheel_of_one_file\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name = f"restorationd-{_version()}.dist-info"
    folder = pathlib.Path(metadata_directory, name)
    folder.mkdir()
    (folder / "METADATA").write_text(_metadata())
    (folder / "WHEEL").write_text(_tag())
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    information = f"restorationd-{_version()}.dist-info"
    contents = {
        "restorationd/__init__.py": (HERE / "restoration.py").read_bytes(),
        "restorationd/py.typed": b"",
        "restoration/__init__.py": PASSING_ON,
        "restoration/py.typed": b"",
        "restorationd_loops/__init__.py": (HERE / "restorationd_loops.py").read_bytes(),
        "restorationd_loops/py.typed": b"",
        "restorationd_testing/__init__.py": (HERE / "restorationd_testing.py").read_bytes(),
        "restorationd_testing/py.typed": b"",
        f"{information}/METADATA": _metadata().encode(),
        f"{information}/WHEEL": _tag().encode(),
        f"{information}/entry_points.txt": b"[pytest11]\nrestorationd = restorationd_testing\n",
        **{f"{information}/LICENSE": path.read_bytes() for path in LICENSES},
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in contents.items())
    contents[f"{information}/RECORD"] = f"{record}{information}/RECORD,,\n".encode()
    name = f"restorationd-{_version()}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in contents.items():
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))  # equal sources give equal wheels
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    folder = f"restorationd-{_version()}"
    with tarfile.open(os.path.join(sdist_directory, f"{folder}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in [*(HERE / name for name in FILES), *LICENSES]:
            archive.add(path, f"{folder}/{path.name}")
        metadata = tarfile.TarInfo(f"{folder}/PKG-INFO")
        metadata.size = len(_metadata().encode())
        archive.addfile(metadata, io.BytesIO(_metadata().encode()))
    return f"{folder}.tar.gz"
