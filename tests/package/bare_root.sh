#!/bin/sh
# Builds the package in a bare root of a release of Debian or Ubuntu, and installs, uses and removes it in another one.
#   ATTNSCOPE_SUITE=bookworm [ATTNSCOPE_MIRROR=URL] [ATTNSCOPE_DEB=FILE] tests/package/bare_root.sh
# ATTNSCOPE_MIRROR has the release where the mirror of this system's own sources lacks it. ATTNSCOPE_DEB is a package that is built
# already. Bare roots are kept as archives in build/roots.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)
. "$root/scripts/packages.sh"
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "failed: $*" >&2; exit 1; }
step() { echo "$(date +%H:%M:%S) $*"; }

suite=${ATTNSCOPE_SUITE-}
[ -n "$suite" ] || skip "ATTNSCOPE_SUITE names no release, such as bookworm"
[ "$(id -u)" -eq 0 ] || skip "a bare root can be entered by root alone"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
case "$suite" in
  jammy | noble | resolute) components=main,universe ;;
  *) components=main ;;
esac

roots=$root/build/roots
archive=$roots/$suite.tar
mkdir -p "$roots"
work=$(mktemp -d)
cleared() {
  umount "$work"/*/proc 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap cleared EXIT
trap 'exit 1' INT TERM HUP

# in_root NAME COMMAND: as root in one of the bare roots, with nothing of this shell's environment.
in_root() {
  name=$1
  shift
  env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH-}" DEBFULLNAME="${DEBFULLNAME-}" DEBEMAIL="${DEBEMAIL-}" chroot "$work/$name" sh -euc "$*"
}
bare_root() {
  mkdir "$work/$1"
  tar -C "$work/$1" -xf "$archive"
  cp /etc/resolv.conf "$work/$1/etc/resolv.conf"
  mount -t proc proc "$work/$1/proc"
}

if [ ! -f "$archive" ]; then
  step "making a bare root of $suite"
  mirror=$(mirror)
  [ -n "$mirror" ] || skip "this system's sources name no mirror, and ATTNSCOPE_MIRROR does not either"
  # Another system's releases are signed by keys that this one may not have.
  keys=
  case "$components" in *universe*) [ -f /usr/share/keyrings/ubuntu-archive-keyring.gpg ] || keys=--no-check-gpg ;; esac
  # An older debootstrap does not know newer releases, which are made as the one before them.
  script=/usr/share/debootstrap/scripts/$suite
  if [ ! -e "$script" ]; then
    case "$components" in *universe*) script=/usr/share/debootstrap/scripts/gutsy ;; *) script=/usr/share/debootstrap/scripts/sid ;; esac
  fi
  debootstrap $keys --variant=minbase --components="$components" "$suite" "$work/new" "$mirror" "$script" >"$work/log" 2>&1 ||
    { tail -5 "$work/log"; skip "no root of $suite can be made from $mirror; ATTNSCOPE_MIRROR names another mirror"; }
  tar -C "$work/new" -cf "$archive.new" . && mv "$archive.new" "$archive"
  rm -rf --one-file-system "$work/new"
fi

deb=${ATTNSCOPE_DEB-}
if [ -z "$deb" ]; then
  step "building the package in $suite"
  SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
  : "${DEBFULLNAME:=$(git -C "$root" log -1 --format=%an)}" "${DEBEMAIL:=$(git -C "$root" log -1 --format=%ae)}"
  bare_root builder
  mkdir "$work/builder/source"
  git -C "$root" archive HEAD | tar -C "$work/builder/source" -xf -
  in_root builder "nice -n 19 /source/scripts/package"
  deb=$(ls "$work"/builder/source/build/package/*.deb)
fi
step "$(sha256sum "$deb")"
mkdir -p "$roots/$suite"
[ "$deb" -ef "$roots/$suite/$(basename "$deb")" ] || cp "$deb" "$roots/$suite/"
# Each release has its own rules, and this one's lintian knows them.
if command -v lintian >/dev/null && grep -qx "VERSION_CODENAME=$suite" /etc/os-release; then
  step "lintian"
  lintian --fail-on error "$deb" || fail "lintian finds errors in the package"
fi

bare_root user
cp "$deb" "$work/user/tmp/attnscope.deb"
step "installing"
in_root user "apt-get update -qq && apt-get install -y -qq --no-install-recommends /tmp/attnscope.deb" >"$work/log" 2>&1 ||
  { tail -20 "$work/log"; fail "the package cannot be installed in $suite"; }
in_root user "dpkg -L attnscope" >"$work/files"
step "using it without a display"
version=$(sed -n 's/^project(attnscope VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
in_root user "attnscope --version" | grep -F "$version" || fail "another version than $version"
[ "$(in_root user "attnscope presets" | wc -l)" -ge 30 ] || fail "too few presets"
in_root user "cd /tmp && attnscope export --preset 004-causal --stages weights --out weights.csv && attnscope check --preset 004-causal --against weights.csv" ||
  fail "what was exported does not agree"
in_root user "attnscope predict /usr/share/attnscope/examples/tiny_gpt --text 'the' --top 1" || fail "the example cannot be used"
for file in man/man1/attnscope.1.gz bash-completion/completions/attnscope applications/attnscope.desktop metainfo/attnscope.metainfo.xml; do
  [ -f "$work/user/usr/share/$file" ] || fail "no /usr/share/$file"
done
step "using its window"
in_root user "apt-get install -y -qq --no-install-recommends xvfb xauth x11-utils libgl1-mesa-dri" >"$work/log" 2>&1 || fail "no Xvfb"
in_root user "mkdir -p /dev/shm /tmp/.X11-unix; cd /tmp
  Xvfb :77 -noreset -screen 0 1280x800x24 >/dev/null 2>&1 & screen=\$!
  export DISPLAY=:77; k=0
  until xwininfo -root >/dev/null 2>&1 || [ \$k -ge 100 ]; do sleep 0.2; k=\$((k + 1)); done
  attnscope & window=\$!; k=0
  until xwininfo -root -tree | grep -q attnscope || [ \$k -ge 300 ]; do sleep 0.2; k=\$((k + 1)); done
  xwininfo -root -tree | grep attnscope
  kill -TERM \$window; status=0; wait \$window || status=\$?
  kill \$screen
  [ \$status -eq 143 ]" || fail "the window did not open, or did not end when it was asked to"
step "removing it"
in_root user "apt-get purge -y -qq attnscope" >"$work/log" 2>&1 || { tail "$work/log"; fail "it cannot be removed"; }
while read -r file; do
  [ -f "$work/user$file" ] && fail "$file is left"
done <"$work/files"
[ ! -e "$work/user/usr/share/attnscope" ] || fail "/usr/share/attnscope is left"
step "$suite: installed, used, removed"
