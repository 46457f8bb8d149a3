"""Checks that scripts and tests name no host of a package registry or mirror: pip, npm and apt know theirs.

    hosts.py PROJECT     prints where one is named, exit 1 if any is
"""
import pathlib
import re
import sys

OWNERS = "anaconda conda debian golang huggingface launchpad maven nodesource npmjs pypi pythonhosted ubuntu yarnpkg".split()
HOST = re.compile(rf"\b([\w-]+\.)*({'|'.join(OWNERS)})\.(co|com|io|net|org)\b")


def check(project):
    found = []
    for folder in (".ci", ".github", "cmake", "scripts", "tests"):
        for path in sorted(p for p in (project / folder).rglob("*") if p.is_file() and p.suffix != ".pyc"):
            for number, line in enumerate(path.read_bytes().decode(errors="replace").splitlines(), 1):
                if match := HOST.search(line):
                    found.append(f"{path.relative_to(project)}:{number}: names {match[0]}")
    return found


if __name__ == "__main__":
    problems = check(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) or "no host is named")
    sys.exit(bool(problems))
