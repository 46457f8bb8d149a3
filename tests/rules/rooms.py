"""Checks the include table: each room of core/ and app/ includes only rooms above it in the table that it names.

    rooms.py PROJECT     prints what breaks the rule, exit 1 if anything does

Also checks that guarded libraries are included only where allowed, and that every source is listed in a CMakeLists.txt.
"""
import pathlib
import re
import sys

# Room: the rooms it may include, then (after "|") the guarded libraries it may include. From the ground up.
TABLE = """
core/base       | utf8proc tbb/
core/system     core/base | fontconfig/
core/graph      core/base
core/engine     core/base core/system core/graph | cblas
core/editing    core/base core/graph
core/files      core/base core/system core/graph | nlohmann/ zip.h
core/model      core/base core/system core/graph core/engine core/files | pcre2 utf8proc
core/check      core/base core/graph core/files core/model
core/circuits   core/base core/graph core/files core/model
core/scan       core/base core/system core/graph core/files core/model
core/out        core/base core/system core/graph core/editing core/files core/model | zip.h cairo
core/importing  core/base core/system core/graph core/files
core/training   core/base core/system core/graph core/files core/model
core/lessons    core/base core/graph core/editing core/files core/model core/training
app/session     core/* app/session
app/cli         core/* app/session | CLI/
app/theme       core/base | imgui
app/screen      core/base core/system core/graph core/engine core/files app/session app/theme | imgui epoxy/ GLFW/ backends/imgui_impl
app/ui          core/* app/session app/theme app/screen | imgui
app/window      core/* app/session app/theme app/screen app/ui
app/web         core/base core/files app/session app/screen app/ui app/window
app             core/base core/system app/cli app/window
"""
GUARDED = "tbb/ imgui epoxy/ GLFW/ backends/imgui_impl fontconfig/ cairo zip.h nlohmann/ CLI/ stb_ pcre2 utf8proc cblas".split()
# These take seconds to compile, so only one source includes them, and no header.
SLOW = ["nlohmann/json.hpp", "CLI/"]
# Dear ImGui's releases differ in these; imgui_compat hides the difference.
COMPAT = "->FontSize ->Ascent ImGui::PushFont( ImGui::SetCursorScreenPos( ImGui::SetKeyboardFocusHere(".split()
COMPAT_FILES = ["app/theme/imgui_compat.cpp", "app/theme/imgui_compat.hpp"]
INNER_FILES = ["app/theme/imgui_compat.cpp", "app/screen/window.cpp"]


def read_table():
    rooms = {}
    for line in TABLE.strip().splitlines():
        names, _, libraries = line.partition("|")
        room, *uses = names.split()
        rooms[room] = (uses, libraries.split())
    return rooms


def room_of(path, rooms):
    for parent in pathlib.PurePosixPath(path).parents:
        if str(parent) in rooms:
            return str(parent)
    return None


def why_forbidden(path, room, quoted, included, rooms):
    uses, libraries = rooms[room]
    if included == "imgui_internal.h" and path not in INNER_FILES:
        return "ImGui's internals change with every release"
    for library in GUARDED:
        if included.startswith(library) and library not in libraries:
            return f"{room} must not know {library}"
    if not quoted or included in ("shaders.hpp", "embedded_lessons.hpp", "embedded_page.hpp"):
        return None
    other = room_of(included, rooms) if included.startswith(("core/", "app/")) else None
    if other is None:
        return "not a path from the project's root to a room of the table"
    allowed = any(other == use or (use.endswith("/*") and other.startswith(use[:-1])) for use in uses)
    return None if other == room or allowed else f"{room} does not use {other}"


def check(project):
    rooms, found, users = read_table(), [], {}
    sources = {str(p.relative_to(project)): p.read_text() for folder in ("core", "app", "tests")
               for p in sorted((project / folder).rglob("*.[ch]pp"))}
    for path, text in sources.items():
        room = room_of(path, rooms)
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*(["<])([^">]+)', line)
            if not match:
                continue
            quoted, included = match[1] == '"', match[2]
            for library in SLOW:
                if included.startswith(library) and not path.startswith("tests/support/"):
                    users.setdefault(library, []).append(path)
            if path.startswith("tests/"):
                continue
            why = "its folder is no room of the table" if room is None else why_forbidden(path, room, quoted, included, rooms)
            if why:
                found.append(f"{path}:{number}: includes {included}: {why}")
        if path.startswith("app/") and path not in COMPAT_FILES:
            found += [f"{path}: {word} belongs to app/theme/imgui_compat" for word in COMPAT if word in text]
        if "#include <ranges>" in text and path.startswith(("core/", "app/", "tests/fuzz/")):
            found.append(f"{path}: clang 14, which builds the fuzzers, cannot compile <ranges>")
    for library, paths in users.items():
        if len(paths) > 1 or paths[0].endswith(".hpp"):
            found.append(f"{library} is included by {', '.join(paths)}: one source is enough")
    seen = []
    for room, (uses, _) in rooms.items():
        for use in uses:
            if not use.endswith("/*") and use not in seen and use != room:
                found.append(f"{room} uses {use}, which is above it")
        seen.append(room)
        if not any(room_of(path, rooms) == room for path in sources):
            found.append(f"{room} has no files")
    lists = " ".join(p.read_text() for folder in ("core", "app", "tests") for p in (project / folder).rglob("CMakeLists.txt"))
    listed = set(re.findall(r"[\w./]+\.cpp", lists))
    names = {entry.rsplit("/", 1)[-1] for entry in listed}
    found += [f"{path} is in no CMakeLists.txt" for path in sources if path.endswith(".cpp") and path.rsplit("/", 1)[-1] not in names]
    return found


if __name__ == "__main__":
    problems = check(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) or "every include points down")
    sys.exit(bool(problems))
