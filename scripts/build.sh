# Configures and builds one preset, quietly. To be sourced after packages.sh, with root set to the top of the tree.
# shellcheck disable=SC2154

# Runs a command and shows what it printed only when it fails.
quietly() {
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    say "this failed: $*"
    exit 1
  fi
  rm -f "$log"
}

# Whether build/PRESET was configured for this tree; a tree that was moved or copied must be reconfigured.
configured() {
  [ -f "build/$1/build.ninja" ] || return 1
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "build/$1/CMakeCache.txt")
  [ -d "$home" ] && [ "$(cd "$home" && pwd -P)" = "$root" ]
}

# build PRESET TARGET [CONFIGURE-OPTION...]; a second build of the same tree waits.
build() (
  preset=$1 target=$2
  shift 2
  cd "$root" && mkdir -p build || exit 1
  exec 9>build/lock
  flock 9
  if ! configured "$preset"; then
    say "building attnscope in build/$preset (the first time takes a few minutes)"
    rm -f "build/$preset/CMakeCache.txt"
    quietly cmake --preset "$preset" "$@" 9>&-
  fi
  quietly cmake --build --preset "$preset" --target "$target" 9>&-
)
