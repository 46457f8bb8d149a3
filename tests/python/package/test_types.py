"""py.typed: type checkers, where they are installed, accept what the package offers and find what is misspelt."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import ROOT

HERE = Path(__file__).parent


def run(*command):
    environment = {**os.environ, "MYPYPATH": str(ROOT / "python")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    return done.returncode, done.stdout + done.stderr


class Types(unittest.TestCase):
    def lines(self, said, file):
        return {int(n) for n in re.findall(rf"{file}:(\d+)[:\d]*(?: -)? error", said)}

    def judge(self, command):
        status, said = run(*command("typed.py"))
        self.assertEqual(status, 0, said)
        _, said = run(*command("misspelt.py"))
        text = (HERE / "misspelt.py").read_text("utf-8").splitlines()
        wanted = {i for i, line in enumerate(text, 1) if line.startswith("attnscope.")}
        self.assertEqual(self.lines(said, "misspelt.py"), wanted, said)

    @unittest.skipUnless(shutil.which("mypy"), "mypy is not installed")
    def test_mypy(self):
        with tempfile.TemporaryDirectory() as cache:
            options = ["--strict", "--follow-imports=silent", "--python-executable", sys.executable, "--cache-dir", cache]
            self.judge(lambda file: ["mypy", *options, HERE / file])

    @unittest.skipUnless(shutil.which("pyright"), "pyright is not installed")
    def test_pyright(self):
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder) / "pyrightconfig.json"

            def command(file):
                shutil.copy(HERE / file, folder)  # it takes relative names alone
                project.write_text(json.dumps({"include": [file], "extraPaths": [str(ROOT / "python")]}))
                return ["pyright", "--pythonpath", sys.executable, "--project", project]

            self.judge(command)


if __name__ == "__main__":
    unittest.main()
