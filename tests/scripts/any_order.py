"""Runs each script after every other one, in a copy of the tree where compilers and installers are stand-ins: what one of them configured
must not keep another from building what it starts.

    any_order.py PROJECT     prints which pairs fail, exit 1 if any does
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Each script with its arguments, and the programs that it starts or packs.
SCRIPTS = {
    "run presets": ["release/bin/attnscope"],
    "test": ["dev/bin/core_tests", "dev/bin/attnscope"],
    "test --sanitize": ["asan/bin/core_tests"],
    "test --models": ["release/bin/real_tests"],
    "test --python venv": ["dev/bin/attnscope"],
    "bench": ["release/bin/attnscope_bench", "release/bin/attnscope_frames", "release/bin/attnscope"],
    "bench --whole": ["release/bin/attnscope_bench_whole"],
    "soak 1": ["asan/bin/walk_tests"],
    "fuzz 1 json": ["fuzz/bin/fuzz_seeds", "fuzz/bin/fuzz_json"],
    "docs --figures": ["dev/bin/attnscope"],
    "package": ["package/bin/attnscope"],
}

# Configures with the last given value of ATTNSCOPE_TESTS, and builds a program only if that has it.
CMAKE = """#!/bin/sh
set -eu
if [ "$1" = --preset ]; then
  folder=build/$2 tests=ON
  [ "$2" != package ] || tests=OFF
  for option; do case "$option" in -DATTNSCOPE_TESTS=*) tests=${option#*=} ;; esac; done
  mkdir -p "$folder"
  echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"$folder/CMakeCache.txt"
  echo "$tests" >"$folder/build.ninja"
  exit
fi
folder=build/$3 target=$5 programs=attnscope
[ "$(cat "$folder/build.ninja")" = OFF ] || programs="$programs core_tests real_tests walk_tests attnscope_bench attnscope_bench_whole \\
  attnscope_frames fuzz_seeds fuzz_json"
[ "$target" = all ] || case " $programs " in *" $target "*) programs=$target ;; *) echo "unknown target '$target'"; exit 1 ;; esac
mkdir -p "$folder/bin"
step=0
for program in $programs; do
  step=$((step + 1))
  echo "[$step/9] Linking CXX executable bin/$program"
  cp "$(dirname "$0")/program" "$folder/bin/$program"
done
"""
STAND_INS = {
    "cmake": CMAKE,
    "program": "#!/bin/sh\n",
    "dpkg-query": "#!/bin/sh\nshift 2\nfor package; do echo \"installed $package\"; done\n",
    "xvfb-run": "#!/bin/sh\nshift 3\nexec \"$@\"\n",
    "cpack": "#!/bin/sh\n: >attnscope.deb\n",
    **dict.fromkeys(["apt-get", "python3", "ctest"], "#!/bin/sh\n"),
}


def pairs():
    """Yields the scripts in an order in which each comes after each."""
    names = list(SCRIPTS)
    for k, name in enumerate(names):
        for other in names[k:]:
            yield from (name, other)


def check(project, folder):
    tree, stand_ins = folder / "tree", folder / "stand-ins"
    shutil.copytree(project / "scripts", tree / "scripts")
    shutil.copy(project / "CMakePresets.json", tree)
    (tree / "scripts/models.sh").write_text("fetch_models() { :; }\n")
    for path, text in {**{stand_ins / name: text for name, text in STAND_INS.items()}, tree / "venv/bin/python": "#!/bin/sh\n"}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    found, before = [], "nothing"
    for line in pairs():
        for built in tree.glob("build/*/bin"):
            shutil.rmtree(built)
        script, *arguments = line.split()
        ran = subprocess.run([f"scripts/{script}", *arguments], cwd=tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, check=False, env={**os.environ, "PATH": f"{stand_ins}:{os.environ['PATH']}"})
        missing = [program for program in SCRIPTS[line] if not (tree / "build" / program).is_file()]
        if ran.returncode or missing:
            found.append(f"scripts/{line} after {before}: exit status {ran.returncode}, without {missing}\n{ran.stdout}")
        before = f"scripts/{line}"
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        problems = check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(temporary))
    print("\n".join(problems) or "every script works after every other")
    sys.exit(bool(problems))
