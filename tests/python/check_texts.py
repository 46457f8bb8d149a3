"""Draws every stage of some presets and tokens with XML syntax, and writes programs of sessions with code in names and tokens; reads the
files with Python's own parsers.

usage: check_figures.py ATTNSCOPE    exit status: 0 right, 1 wrong
"""

import ast
import json
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

PRESETS = ("multi-head", "004-causal-dropout", "004-renormalise", "002-library", "001-multi-head", "003-dropout")
TOKENS = ["<b>", "a & b", '"', " the", "\n", "\x01", "漢字", "🙂", "&amp;"]
# In UTF-7, +ACI- is a double quote, +ACM- a hash and +AAo- the end of a line.
NAMES = ["coding=utf-7.json", "coding: utf-7\nimport os.json", '"""\nimport os #.json', "vim: set fileencoding=utf-7 :.json", "é🙂.json"]
CODE = ["+ACI-+AF0-+AAo-raise SystemExit(3)+AAo-tokens+AD0-+AFs-+ACI-", '"]\nraise SystemExit(3)\n["', "\\", "\n", "é", "🙂", "\u2028", "\x1b[2J", "{x}"]
SVG = "{http://www.w3.org/2000/svg}"


def draw(program, *arguments):
    subprocess.run([program, "figure", *arguments], check=True)


def words(path):
    root = xml.parse(path).getroot()
    assert root.tag == f"{SVG}svg"
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def size_of_png(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR"
    return struct.unpack(">II", data[16:24])


def check_program(program, path):
    script = path.parent / "program.py"
    subprocess.run([program, "program", path, "--out", script], check=True)
    tree = ast.parse(script.read_bytes())
    assert ast.get_docstring(tree, clean=False) == path.name, f"{path.name!r}: the docstring is {ast.get_docstring(tree, clean=False)!r}"
    values = [ast.literal_eval(s.value) for s in tree.body if isinstance(s, ast.Assign) and s.targets[0].id == "tokens"]
    assert values == [CODE], f"{path.name!r}: the tokens are {values!r}"
    imported = [a.name for s in ast.walk(tree) if isinstance(s, (ast.Import, ast.ImportFrom)) for a in s.names]
    assert imported == ["torch", "nn"], f"{path.name!r}: it imports {imported}"


def main(program):
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        svg, png = directory / "f.svg", directory / "f.png"
        for preset in PRESETS:
            subprocess.run([program, "export", "--preset", preset, "--out", directory / preset], check=True)
            stages = {path.name.split(".")[0] for path in (directory / preset).rglob("*.csv")}
            for stage in sorted(stages):
                for dark in ([], ["--dark"]):
                    draw(program, "--preset", preset, "--stage", stage, "--all-heads", "--out", svg, *dark)
                    assert len(words(svg)) > 3, f"{preset}: {stage} has no words"
            draw(program, "--preset", preset, "--strip", "--out", svg)
            before = svg.read_bytes()
            draw(program, "--preset", preset, "--strip", "--out", svg)
            assert svg.read_bytes() == before, f"{preset}: drawn twice, it differs"
            root = xml.parse(svg).getroot()
            draw(program, "--preset", preset, "--strip", "--out", png, "--scale", "1.5")
            expected = tuple(-(-float(root.get(side)) * 1.5 // 1) for side in ("width", "height"))
            assert size_of_png(png) == expected, f"{preset}: {size_of_png(png)} instead of {expected}"
        session = {"attnscope": 1, "tokens": TOKENS, "embeddings": [[i, 1] for i in range(len(TOKENS))]}
        path = directory / "session.json"
        path.write_text(json.dumps(session), encoding="utf-8")
        draw(program, path, "--stage", "weights", "--out", svg)
        found = words(svg)
        for token in ("<b>", "a & b", '"', " the", "↵", "�", "漢字", "🙂", "&amp;"):
            assert found.count(token) == 2, f"{token!r} stands there {found.count(token)} times"
        for name in NAMES:
            path = directory / name
            path.write_text(json.dumps({"attnscope": 1, "tokens": CODE, "embeddings": [[k] for k in range(len(CODE))]}), encoding="utf-8")
            check_program(program, path)


if __name__ == "__main__":
    main(sys.argv[1])
