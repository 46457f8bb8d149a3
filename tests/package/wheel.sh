#!/bin/sh
# Installs the wheel into a fresh virtual environment, uses it as its readers do, and takes it away again.
#   tests/package/wheel.sh build/wheel/attnscope-….whl [PYTHON]     exit status: 0 good, 1 something is wrong
set -eu
wheel=$(realpath -- "$1")
python=${2:-python3}
tests=$(CDPATH='' cd -- "$(dirname -- "$0")/../python/package" && pwd -P)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_STATE_HOME="$folder/state" XDG_CACHE_HOME="$folder/cache" PYTHONDONTWRITEBYTECODE=1
unset ATTNSCOPE PYTHONPATH

fail() { echo "wheel.sh: $*" >&2; exit 1; }

"$python" -m venv "$folder/venv"
bin="$folder/venv/bin"
"$bin/pip" install --quiet --no-deps numpy
with_numpy=$(find "$folder/venv" -not -path "*/numpy*" | sort)
"$bin/pip" install --quiet "$wheel"

cd "$folder"
[ "$("$bin/attnscope" presets | wc -l)" -gt 20 ] || fail "the program lists no presets"
"$bin/python" -m attnscope --version
"$bin/python" - <<'END'
import numpy as np

import attnscope
from attnscope import program
from attnscope.attention import of_stages

assert program.executable() == program.INSIDE, program.executable()
w = np.tril(np.ones((2, 5, 5)))
w /= w.sum(-1, keepdims=True)
assert "<svg" in attnscope.show(weights=w)._repr_svg_()
a = of_stages(*np.random.default_rng(0).normal(size=(3, 2, 6, 4)), causal=True)
assert attnscope.check(a, a).agrees
assert len(str(a.html())) > 50_000
END
# The tests of the source tree, on what is installed.
for subject in attention check show page; do
  ATTNSCOPE_INSTALLED=1 "$bin/python" -W ignore "$tests/test_$subject.py"
done
if command -v xvfb-run >/dev/null; then
  ATTNSCOPE_INSTALLED=1 xvfb-run -a "$bin/python" -W ignore "$tests/test_show.py" Windows
fi

"$bin/pip" uninstall --quiet --yes attnscope
[ "$(find "$folder/venv" -not -path "*/numpy*" | sort)" = "$with_numpy" ] || fail "uninstalling leaves something behind"
echo "wheel.sh: good"
