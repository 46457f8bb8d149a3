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

# What a preset is configured with, besides this tree's CMakeLists.txt.
configuration() {
  cksum <CMakePresets.json
  echo "$*"
}

# configured PRESET [CONFIGURE-OPTION...]: whether build/PRESET was configured for this tree, which may have been moved or copied,
# and with these options: another script may have asked for others.
configured() {
  [ -f "build/$1/build.ninja" ] || return 1
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "build/$1/CMakeCache.txt")
  [ -d "$home" ] && [ "$(cd "$home" && pwd -P)" = "$root" ] || return 1
  [ "$(configuration "$@")" = "$(cat "build/$1/configuration" 2>/dev/null)" ]
}

# Prints every twentieth of the steps that ninja reports, and everything into a file.
progress() {
  shown=-1
  while IFS= read -r line; do
    printf '%s\n' "$line" >&3
    step=${line%%]*}
    case "$line" in "["*/*"]"*) ;; *) continue ;; esac
    step=${step#"["}
    part=$((${step%/*} * 20 / ${step#*/}))
    [ "$part" -eq "$shown" ] || say "$line"
    shown=$part
  done 3>"$1"
}

# Runs a build whose steps ninja reports, and shows everything only when it fails.
with_progress() {
  log=$(mktemp) built=$(mktemp)
  { NINJA_STATUS='[%f/%t] ' "$@" 2>&1 && echo yes >"$built"; } 9>&- | progress "$log"
  if ! [ -s "$built" ]; then
    cat "$log" >&2
    rm -f "$log" "$built"
    return 1
  fi
  rm -f "$log" "$built"
}

# build PRESET TARGET [CONFIGURE-OPTION...]; a second build of the same tree waits.
build() (
  preset=$1 target=$2
  shift 2
  cd "$root" && mkdir -p build || exit 1
  exec 9>build/lock
  flock 9
  if ! configured "$preset" "$@"; then
    say "building attnscope in build/$preset (the first time takes a few minutes)"
    rm -f "build/$preset/CMakeCache.txt" "build/$preset/configuration"
    quietly cmake --preset "$preset" "$@" 9>&-
    configuration "$preset" "$@" >"build/$preset/configuration"
  fi
  if ! with_progress cmake --build --preset "$preset" --target "$target"; then
    say "$target cannot be built in build/$preset"
    exit 1
  fi
)
