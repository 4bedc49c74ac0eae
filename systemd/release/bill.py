# SPDX-License-Identifier: Apache-2.0
"""Writes the bill of materials of the programs in the form of CycloneDX: bill.py PROGRAM DEPENDENCIES [LIBRARY]...

The materials are Swift's runtime, as the program names it, the packages that `swift package show-dependencies --format
json` has written into a file, and the packages of Debian that have the libraries. The same materials give the same
bytes.
"""

import json
import os
import re
import subprocess
import sys
import uuid


def runtime(program):
    with open(program, "rb") as file:
        found = re.search(rb"Swift version ([0-9.]+) \(", file.read())
    if not found:
        sys.exit(f"bill.py: {program} does not say which Swift has made it; give a program that was built here")
    version = found[1].decode()
    return {"type": "library", "name": "swift", "version": version,
            "purl": f"pkg:github/swiftlang/swift@swift-{version}-RELEASE"}


def swift(package):
    """By identity, the packages below one: several may need the same."""
    found = {}
    for each in package["dependencies"]:
        url, version = each["url"], each["version"]
        revision = subprocess.run(
            ["git", "-C", each["path"], "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        found[each["identity"]] = {
            "type": "library", "name": each["identity"], "version": version,
            "purl": f"pkg:swift/{url.removeprefix('https://').removesuffix('.git')}@{version}",
            "externalReferences": [{"type": "vcs", "url": url, "comment": revision}]}
        found |= swift(each)
    return found


def debian(library):
    """The package that has a library, whose files dpkg may know by the path of before /lib became a link."""
    path = os.path.realpath(library)
    for name in (path, path.removeprefix("/usr")):
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            package = found.stdout.split(": ")[0]
            break
    else:
        sys.exit(f"bill.py: {path} belongs to no package of Debian; take the library from its package")
    form = "${source:Package} ${Package} ${Version} ${Architecture}"
    source, name, version, architecture = subprocess.run(
        ["dpkg-query", "-W", "-f", form, package], check=True, capture_output=True, text=True).stdout.split()
    return {
        "type": "library", "name": name, "version": version,
        "purl": f"pkg:deb/debian/{name}@{version}?arch={architecture}&upstream={source}"}


def main():
    program, dependencies, *libraries = sys.argv[1:]
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    components = [runtime(program)]
    with open(dependencies, encoding="utf-8") as file:
        components += swift(json.load(file)).values()
    components += [debian(library) for library in libraries]
    components = sorted(({**each, "bom-ref": each["purl"]} for each in components), key=lambda each: each["purl"])
    main = {"type": "application", "name": "restorationd", "version": version, "bom-ref": "restorationd"}
    license = [{"license": {"id": "Apache-2.0"}}]
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([main, components]))
    print(json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{number}", "version": 1,
        "metadata": {"component": {**main, "licenses": license}},
        "components": components,
        "dependencies": [{"ref": "restorationd", "dependsOn": [each["bom-ref"] for each in components]}],
    }, indent=2))


if __name__ == "__main__":
    main()
