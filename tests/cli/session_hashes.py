"""Makes a session of every layer of the checkpoint fixtures and compares it, byte by byte, with a recorded one.

    session_hashes.py PROGRAM FIXTURES TABLE           prints what differs from the table, exit 1 if anything does
    session_hashes.py PROGRAM FIXTURES TABLE --write   rewrites the table, after an intended change of the format

A line of the table is a fixture, options of `attnscope session` and the first 16 digits of the SHA-256 of the session, or "refused".
The sentences about assumptions are not hashed.
"""
import concurrent.futures
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDERS = ["checkpoints", "transformer", "real"]
ENDINGS = [".safetensors", ".gguf", ".npz", ".index.json"]
OPTIONS = ["", "--ignore all", "--heads 2 --ignore all", "--layer 1 --ignore all"]


def fixtures(root):
    files = [p for folder in FOLDERS for p in (root / folder).rglob("*") if p.name.endswith(tuple(ENDINGS))]
    folders = [p for p in (root / "transformer").iterdir() if p.is_dir()]
    return sorted(str(p.relative_to(root)) for p in files + folders)


def line(program, root, fixture, options):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "session.json"
        command = [program, "session", fixture, *options.split(), "--out", str(out)]
        status = subprocess.run(command, cwd=root, capture_output=True, timeout=60, stdin=subprocess.DEVNULL).returncode
        if status not in (0, 1):
            return f"{fixture} {options} ended with {status}"
        session = re.sub(rb',\n  "assumed": \[[^\n]*\]', b"", out.read_bytes()) if status == 0 else b""
        made = hashlib.sha256(session).hexdigest()[:16] if session else "refused"
        return " ".join(f"{fixture} {options} {made}".split())


def main(program, root, table, *rest):
    root, table = pathlib.Path(root), pathlib.Path(table)
    cases = [(fixture, options) for fixture in fixtures(root) for options in OPTIONS]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda case: line(str(pathlib.Path(program).resolve()), root, *case), cases))
    if rest:
        table.write_text("\n".join(made) + "\n")
        return 0
    before = table.read_text().splitlines()
    differ = sorted(set(made) ^ set(before))
    print("\n".join(("now    " if entry in made else "before ") + entry for entry in differ) or f"{len(made)} sessions as before")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
