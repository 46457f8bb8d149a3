"""Compares two outputs of presets.cpp, number by number.

    compare.py THESE THOSE            prints what differs, exit status 1 if anything does
    compare.py --allow THESE THOSE    only counts, for builds that are known to differ
"""
import math
import re
import sys


def presets_of(path):
    """Returns the printed words and numbers by preset."""
    presets = {}
    for line in open(path, encoding="utf-8"):
        if line.startswith("preset "):
            words = presets[line.split()[1]] = []
        else:
            words += re.findall(r"[^\s,\[\]]+", line)
    return presets


def main():
    allowed = sys.argv[1] == "--allow"
    these, those = map(presets_of, sys.argv[-2:])
    n_numbers, n_different, n_seen, largest, unequal = 0, 0, 0, 0.0, {}
    for name in {**these, **those}:
        one, other = these.get(name, []), those.get(name, [])
        if len(one) != len(other):
            unequal[name] = "another count of numbers"
        for a, b in zip(one, other):
            try:
                x, y = float(a), float(b)
            except ValueError:
                if a != b:
                    unequal.setdefault(name, f"{a} and {b}")
                continue
            n_numbers += 1
            if a == b:
                continue
            n_different += 1
            n_seen += f"{x:.4f}" != f"{y:.4f}"
            unequal.setdefault(name, f"{a} and {b}")
            if math.isfinite(x) and math.isfinite(y):
                largest = max(largest, abs(x - y))
    if not allowed:
        for name, first in unequal.items():
            print(f"{name}: {first}")
    print(f"{len(these)} presets, {n_numbers} numbers: " + (
        f"{n_different} differ, in {len(unequal)} presets, by at most {largest:.2g}; of four decimals, {n_seen}" if unequal else "all the same"))
    return bool(unequal) and not allowed


if __name__ == "__main__":
    sys.exit(main())
