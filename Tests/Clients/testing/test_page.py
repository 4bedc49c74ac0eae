# SPDX-License-Identifier: Apache-2.0
"""The test on the page of the Python library, exactly as it stands there, with the library as pip installs it."""

import os
import pathlib
import subprocess
import sys

LIBRARY = pathlib.Path(__file__).parents[3] / "Protocol/clients/python"


def run_pytest(folder, program, test):
    (folder / "words.py").write_text(program)
    (folder / "test_words.py").write_text(test)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(folder / "installed")})


def test_it_passes_and_fails_if_the_application_forgets_a_field(tmp_path):
    section = (LIBRARY / "README.md").read_text().split("\n## Prove it in your tests\n")[1].split("\n## ")[0]
    program, test = [block.partition("\n```")[0] for block in section.split("```python\n")[1:3]]
    assert len(test.splitlines()) <= 12
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]
    subprocess.run([*install, tmp_path / "installed", LIBRARY], check=True)
    passed = run_pytest(tmp_path, program, test)
    assert passed.returncode == 0 and "1 passed" in passed.stdout, passed.stdout

    saved = 'page.decode().get("words", [])'
    assert saved in program
    quick = test.replace("work=type_a_word", "work=type_a_word, patience=5")
    failed = run_pytest(tmp_path, program.replace(saved, "(page.decode(), [])[1]"), quick)
    assert failed.returncode == 1
    assert 'org.example.Words Page:/words/0: "word" came back as nothing' in failed.stdout
