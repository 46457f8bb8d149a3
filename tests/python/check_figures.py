"""Draws every stage of some presets, and tokens that XML would stumble over, and reads the files with Python's own parsers.

usage: check_figures.py ATTNSCOPE    exit status: 0 right, 1 wrong
"""

import json
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

PRESETS = ("multi-head", "004-causal-dropout", "004-renormalise", "002-library", "001-multi-head", "003-dropout")
TOKENS = ["<b>", "a & b", '"', " the", "\n", "\x01", "漢字", "🙂", "&amp;"]
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


if __name__ == "__main__":
    main(sys.argv[1])
