#!/bin/sh
# Whether every source is as .clang-format would have it. Releases differ in details, so that one of them decides;
# where it is missing, the test is skipped (77).
set -eu
cd "$(dirname -- "$0")/../.."
release=14
command=clang-format-$release
if ! command -v "$command" >/dev/null; then
  command=clang-format
  "$command" --version 2>/dev/null | grep -q "version $release\." || { echo "clang-format $release is missing"; exit 77; }
fi
find core app tests -name '*.[hc]pp' -print0 | xargs -0 -n 40 -P 2 "$command" --dry-run -Werror
