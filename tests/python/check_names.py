"""Reads the programs of sessions whose names and tokens would like to be code, as Python itself reads a file.

usage: check_names.py ATTNSCOPE    exit status: 0 they stay names, 1 they do not
"""

import ast
import json
import subprocess
import sys
import tempfile
from pathlib import Path

# In UTF-7, +ACI- is a double quote, +ACM- a hash and +AAo- the end of a line.
NAMES = ["coding=utf-7.json", "coding: utf-7\nimport os.json", '"""\nimport os #.json', "vim: set fileencoding=utf-7 :.json", "é🙂.json"]
TOKENS = ["+ACI-+AF0-+AAo-raise SystemExit(3)+AAo-tokens+AD0-+AFs-+ACI-", '"]\nraise SystemExit(3)\n["', "\\", "\n", "é", "🙂", "\u2028", "\x1b[2J", "{x}"]


def check(program, path):
    script = path.parent / "program.py"
    subprocess.run([program, "program", path, "--out", script], check=True)
    tree = ast.parse(script.read_bytes())
    assert ast.get_docstring(tree, clean=False) == path.name, f"{path.name!r}: the docstring is {ast.get_docstring(tree, clean=False)!r}"
    values = [ast.literal_eval(s.value) for s in tree.body if isinstance(s, ast.Assign) and s.targets[0].id == "tokens"]
    assert values == [TOKENS], f"{path.name!r}: the tokens are {values!r}"
    imported = [a.name for s in ast.walk(tree) if isinstance(s, (ast.Import, ast.ImportFrom)) for a in s.names]
    assert imported == ["torch", "nn"], f"{path.name!r}: it imports {imported}"


def main(program):
    with tempfile.TemporaryDirectory() as directory:
        for name in NAMES:
            path = Path(directory) / name
            path.write_text(json.dumps({"attnscope": 1, "tokens": TOKENS, "embeddings": [[k] for k in range(len(TOKENS))]}), encoding="utf-8")
            check(program, path)


if __name__ == "__main__":
    main(sys.argv[1])
