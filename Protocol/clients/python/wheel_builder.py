# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel and the sdist for pip (PEP 517) without setuptools, so that installing needs no network.

What they say of themselves is [project] of the pyproject.toml beside this file, or of that in another folder. On a page
of an index, relative links of the README would lead nowhere: they become those of the project's address.
"""

import base64
import hashlib
import io
import os
import pathlib
import re
import tarfile
import urllib.parse
import zipfile

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

HERE = pathlib.Path(__file__).resolve().parent
#: Where the repository has this folder.
PLACE = "Protocol/clients/python"
#: What a distribution of another folder need not repeat.
SHARED = ["authors", "license", "requires-python", "urls"]


def _license(folder):
    """That of the repository, or of the sdist that was made there. Packages for Debian have theirs elsewhere."""
    places = [folder, *(each.parent for each in HERE.parents if each.name == "Protocol")]
    return [place / "LICENSE" for place in places if (place / "LICENSE").is_file()][:1]


class Project:
    """A folder with a pyproject.toml and the package that it is about."""

    def __init__(self, folder=HERE, tag="py3-none-any"):
        self.folder, self.tag = folder, tag
        shared = {key: value for key, value in _table(HERE).items() if key in SHARED}
        self.table = {**shared, **_table(folder)}
        self.package = folder / self.table["name"].replace("-", "_")
        version = re.search(r'^__version__ = "(.+)"$', (self.package / "__init__.py").read_text(), re.MULTILINE)
        self.full_name = f"{self.package.name}-{version[1]}"
        self.version = version[1]
        self.information = f"{self.full_name}.dist-info"

    def metadata(self):
        table = self.table
        lines = ["Metadata-Version: 2.4", f"Name: {table['name']}", f"Version: {self.version}"]
        lines += [f"Summary: {table['description']}", f"Author-email: {_people(table['authors'])}"]
        lines += [f"License-Expression: {table['license']}"]
        lines += ["License-File: LICENSE" for _ in _license(self.folder)]
        lines += [f"Keywords: {','.join(table['keywords'])}", f"Requires-Python: {table['requires-python']}"]
        lines += [f"Project-URL: {label}, {address}" for label, address in table["urls"].items()]
        lines += [f"Classifier: {each}" for each in table["classifiers"]]
        lines += [f"Requires-Dist: {each}" for each in table.get("dependencies", [])]
        for extra, requirements in table.get("optional-dependencies", {}).items():
            lines += [f"Provides-Extra: {extra}"]
            lines += [f'Requires-Dist: {each}; extra == "{extra}"' for each in requirements]
        return "\n".join([*lines, "Description-Content-Type: text/markdown", "", self.readme()])

    def readme(self):
        page = f"{self.table['urls']['Repository']}/blob/v{self.version}/{PLACE}/README.md"
        text = (self.folder / self.table["readme"]).read_text()
        return re.sub(r"\]\(([^()\s]+)\)", lambda link: f"]({urllib.parse.urljoin(page, link[1])})", text)

    def entry_points(self):
        groups = {"console_scripts": self.table.get("scripts", {}), **self.table.get("entry-points", {})}
        return "\n".join(
            "\n".join([f"[{group}]", *(f"{name} = {place}" for name, place in each.items()), ""])
            for group, each in groups.items() if each)

    def files(self):
        """The package's, without what Python and editors leave there."""
        return sorted(path for path in self.package.rglob("*")
                      if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."))

    def build_wheel(self, directory):
        contents = {str(path.relative_to(self.folder)): path for path in self.files()}
        contents = {name: (path.read_bytes(), path.stat().st_mode & 0o111) for name, path in contents.items()}
        kind = str(self.tag.endswith("-any")).lower()
        wheel = f"Wheel-Version: 1.0\nGenerator: wheel_builder\nRoot-Is-Purelib: {kind}\nTag: {self.tag}\n"
        for name, text in {"METADATA": self.metadata(), "WHEEL": wheel, "entry_points.txt": self.entry_points()}.items():
            contents[f"{self.information}/{name}"] = text.encode(), 0
        for path in _license(self.folder):
            contents[f"{self.information}/licenses/LICENSE"] = path.read_bytes(), 0
        record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, (data, _) in contents.items())
        contents[f"{self.information}/RECORD"] = f"{record}{self.information}/RECORD,,\n".encode(), 0
        name = f"{self.full_name}-{self.tag}.whl"
        with zipfile.ZipFile(os.path.join(directory, name), "w", zipfile.ZIP_DEFLATED) as archive:
            for path, (data, executable) in contents.items():
                entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))  # equal sources give equal wheels
                entry.external_attr = (0o100755 if executable else 0o100644) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, data)
        return name

    def build_sdist(self, directory):
        name = os.path.join(directory, f"{self.full_name}.tar.gz")
        with tarfile.open(name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
            for path in [*map(self.folder.joinpath, ("pyproject.toml", "README.md", "wheel_builder.py")), *self.files()]:
                archive.add(path, f"{self.full_name}/{path.relative_to(self.folder)}")
            for path in _license(self.folder):
                archive.add(path, f"{self.full_name}/LICENSE")
            metadata = tarfile.TarInfo(f"{self.full_name}/PKG-INFO")
            metadata.size = len(self.metadata().encode())
            archive.addfile(metadata, io.BytesIO(self.metadata().encode()))
        return f"{self.full_name}.tar.gz"


def _table(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def _people(authors):
    return ", ".join(f"{each['name']} <{each['email']}>" for each in authors)


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


# What pip calls


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    project = Project()
    folder = pathlib.Path(metadata_directory, project.information)
    folder.mkdir()
    (folder / "METADATA").write_text(project.metadata())
    return folder.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return Project().build_wheel(wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    return Project().build_sdist(sdist_directory)
