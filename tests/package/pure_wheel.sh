#!/bin/sh
# Installs the wheel without the program as macOS and Windows would, and uses it with the program hidden.
#   tests/package/pure_wheel.sh build/wheel/pure/attnscope-….whl [PYTHON]     exit status: 0 good, 1 something is wrong
set -eu
wheel=$(realpath -- "$1")
python=${2:-python3}
tests=$(CDPATH='' cd -- "$(dirname -- "$0")/../python/package" && pwd -P)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PYTHONDONTWRITEBYTECODE=1
unset ATTNSCOPE PYTHONPATH DISPLAY WAYLAND_DISPLAY
version=$(basename "$wheel" | cut -d- -f2)

for platform in macosx_11_0_arm64 macosx_10_15_x86_64 win_amd64; do
  "$python" -m pip install --quiet --no-deps --no-index --platform "$platform" --only-binary :all: --target "$folder/$platform" "$wheel"
  [ ! -e "$folder/$platform/attnscope/bin" ] || { echo "pure_wheel.sh: the program is inside" >&2; exit 1; }
  cd "$folder"
  PYTHONPATH="$folder/$platform" "$python" -c "import attnscope; assert attnscope.__version__ == '$version', attnscope.__version__"
  PYTHONPATH="$folder/$platform" ATTNSCOPE_INSTALLED=1 "$python" -W ignore "$tests/test_without_program.py"
done
echo "pure_wheel.sh: good"
