# The packages of Debian and Ubuntu that attnscope needs, in one place. To be sourced, with the arguments of the script.
# shellcheck disable=SC2034

# Every script accepts --yes as its first argument: missing packages are installed without a question.
agreed=no
if [ "${1-}" = --yes ]; then
  agreed=yes
  shift
fi

# To build the program and run its window.
run_packages="g++ cmake ninja-build pkg-config
libimgui-dev libstb-dev libglfw3-dev libepoxy-dev libgl1-mesa-dri libfreetype-dev libfontconfig-dev fonts-dejavu-core
libarmadillo-dev libopenblas-dev nlohmann-json3-dev libcli11-dev libzip-dev zlib1g-dev libcairo2-dev
libpcre2-dev libutf8proc-dev libfmt-dev libtbb-dev"

# In addition, to build and run the tests and benchmarks, on a virtual screen.
test_packages="libgtest-dev libgmock-dev libbenchmark-dev libx11-dev python3-numpy python3-jsonschema xvfb xauth"

# In addition to those for building and testing, for the pictures of the documents.
docs_packages="ffmpeg"

# In addition, for the fuzzers.
fuzz_packages="clang-16 libclang-rt-16-dev llvm-16"

# In addition to those for building, for the Debian package.
package_packages="dpkg-dev file"

# For the page: to make its root and fetch sources, and to test it.
web_packages="debootstrap python3 python3-pip"
web_test_packages="chromium"

# Prints the mirror that bare roots of releases of Debian or Ubuntu are made from: ATTNSCOPE_MIRROR, or that of this system's own sources,
# which as a rule has its other releases too.
mirror() {
  # shellcheck disable=SC2016  # these are apt's variables
  echo "${ATTNSCOPE_MIRROR:-$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    sed -n "s/^$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release) //p" | head -n 1)}"
}

# Messages go to stderr: stdout belongs to the program.
say() { echo "attnscope: $*" >&2; }

# Prints the named packages that are not installed.
missing_packages() {
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    case "
$installed
" in
      *"
installed $package
"*) ;;
      *) printf '%s ' "$package" ;;
    esac
  done
}

# Asks at a terminal unless the user is root; otherwise packages are installed without a question.
may_install() {
  [ "$agreed" = no ] && [ "$(id -u)" -ne 0 ] && [ -t 0 ] && [ -t 2 ] || return 0
  say "these packages are missing: ${missing% }"
  printf 'attnscope: install them with sudo apt-get? [Y/n] ' >&2
  read -r answer || answer=n
  case "$answer" in "" | [yY]*) ;; *) return 1 ;; esac
}

# Installs the missing ones of the named packages; silent if there are none.
need_packages() {
  if ! command -v apt-get >/dev/null; then
    command -v cmake >/dev/null && command -v ninja >/dev/null && return
    say "this system has no apt-get; install by hand: a C++20 compiler, CMake, Ninja, pkg-config, Dear ImGui, GLFW 3," \
      "libepoxy, FreeType, fontconfig, stb, Armadillo, OpenBLAS, nlohmann-json, CLI11, libzip, zlib, cairo, PCRE2, utf8proc, {fmt}, oneTBB (tests: GoogleTest, Google Benchmark, Xvfb)"
    exit 1
  fi
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  install="apt-get install -y --no-install-recommends $missing"
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      say "packages are missing; run as root: apt-get update && $install"
      exit 1
    fi
    as_root=sudo
  fi
  may_install || { say "to install them by hand: sudo apt-get update && sudo $install"; exit 1; }
  say "installing with ${as_root:+sudo }apt-get: ${missing% }"
  log=$(mktemp)
  # shellcheck disable=SC2086  # the lists are meant to be split
  if ! { $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive $install \
    -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300; } </dev/null >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    say "the packages could not be installed; by hand: apt-get update && $install"
    exit 1
  fi
  rm -f "$log"
}
