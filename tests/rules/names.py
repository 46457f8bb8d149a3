"""Checks names: a type is defined in one file of the product, a source has the header of its name, identifiers and comments are
in American spelling.

    names.py PROJECT     prints what breaks a rule, exit 1 if anything does
"""
import pathlib
import re
import sys

# Types that still have one name in several files.
KNOWN_DUPLICATES = set("""
""".split())

# Sources without a header of their name, and headers that declare what a source of another name defines; with the reason.
PARTS = {
    "app/main.cpp": "the program",
    "core/engine/implementation.hpp": "a class template in three parts: engine.cpp, trace.cpp, update.cpp",
    "core/engine/trace.cpp": "implementation.hpp: stages that are computed when they are read",
    "core/engine/update.cpp": "implementation.hpp: updates after one edit",
    "core/graph/attention.cpp": "graph.hpp: the builder, which reads like section 3.2 of the paper",
    "core/graph/terms.cpp": "operations.hpp: derivations of cells",
    "core/lessons/subjects.cpp": "lessons.hpp: what the expressions of lessons can measure",
}

BRITISH = re.compile(r"(?:normalis|initialis|optimis|organis|recognis|serialis|quantis|tokenis|summaris|generalis|visualis|synchronis|minimis"
                     r"|maximis|utilis|analys(?:e|ing)|neighbour|colour|behaviour|favour|honour|grey|centre|metre|licence|defence|labelled|labelling|cancelled|cancelling"
                     r"|modelled|modelling|travell|catalogue|artefact|judgement|learnt|whilst)", re.IGNORECASE)
# Names of other libraries.
FOREIGN = re.compile(r"vectoris\w*", re.IGNORECASE)

TYPE = re.compile(r"^[ \t]*(?:template\s*<.*>\s*)?(?:struct|class|enum class|enum|using)\s+([A-Z]\w*)\b(?:\s*final)?\s*(?::[^:]|\{|=)", re.M)
DECLARATION = re.compile(r"^(?!using|typedef|struct|class|enum|static_assert|extern|namespace|template|#|\s|\}|inline|constexpr)[\w:<>,&*\s]*"
                         r"\b\w+\([^;{}]*\)[^;{}=]*;", re.M)
LITERAL = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|//[^\n]*', re.S)


def without_literals(text, keeps_comments):
    """Blanks strings and characters, and in comments what is quoted or an option; lines keep their numbers."""
    def blank(match):
        piece = match[0]
        if piece.startswith("//"):
            return re.sub(r'"[^"]*"|`[^`]*`|--[\w-]+|[\w-]*\d-[\w-]+', "", piece) if keeps_comments else ""
        return '""' + "\n" * piece.count("\n")
    return LITERAL.sub(blank, text)


def duplicates(sources):
    files = {}
    for path, text in sources.items():
        for name in TYPE.findall(without_literals(text, False)):
            files.setdefault(name, set()).add(path)
    found = [f"{name} is defined in {', '.join(sorted(paths))}" for name, paths in sorted(files.items())
             if len(paths) > 1 and name not in KNOWN_DUPLICATES]
    return found + [f"{name} is no duplicate any more" for name in sorted(KNOWN_DUPLICATES) if len(files.get(name, ())) < 2]


def lonely(sources):
    found = []
    for path, text in sources.items():
        stem, ending = path.rsplit(".", 1)
        if ending == "cpp" and stem + ".hpp" not in sources:
            why = "has no header of its name"
        elif ending == "hpp" and stem + ".cpp" not in sources and (first := DECLARATION.search(without_literals(text, False))):
            why = f"declares what another source defines: {' '.join(first[0].split())}"
        else:
            continue
        if path not in PARTS:
            found.append(f"{path} {why}")
    return found + [f"{path} does not exist" for path in PARTS if path not in sources]


def misspelled(sources):
    found = []
    for path, text in sources.items():
        for number, line in enumerate(without_literals(text, True).splitlines(), 1):
            if not line.lstrip().startswith("#include"):
                found += [f"{path}:{number}: {word[0]}: American spelling" for word in BRITISH.finditer(FOREIGN.sub("", line))]
    return found


def check(project):
    sources = {str(p.relative_to(project)): p.read_text() for folder in ("core", "app", "tests", "shaders")
               for p in sorted((project / folder).rglob("*.*")) if p.suffix in (".hpp", ".cpp", ".frag", ".vert", ".glsl")}
    product = {path: text for path, text in sources.items() if path.startswith(("core/", "app/"))}
    return duplicates(product) + lonely(product) + misspelled(sources)


if __name__ == "__main__":
    problems = check(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) or "names are unique, paired and American")
    sys.exit(bool(problems))
