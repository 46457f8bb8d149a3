"""Checks names: a type is defined in one file of the product, a source has the header of its name, identifiers and comments are
in American spelling.

    names.py PROJECT     prints what breaks a rule, exit 1 if anything does
"""
import pathlib
import re
import sys

# Types that have one name in several files.
KNOWN_DUPLICATES = set("""
Arithmetic Cell Coarse Explanation Key Matrices Pass Work
""".split())

# Headers of several sources, which have no header of their name: the header, its sources, the reason.
PARTS = [
    ("", "app/main.cpp app/web/page.cpp", "the program, and the same in a page"),
    ("app/session/store.hpp", "app/session/store_files.cpp app/session/store_models.cpp", "the store's verbs, by subject"),
    ("app/ui/actions/action_rows.hpp", "app/ui/actions/actions_edit.cpp app/ui/actions/actions_file.cpp app/ui/actions/actions_gradient.cpp app/ui/actions/actions_learning.cpp "
     "app/ui/actions/actions_present.cpp app/ui/actions/actions_view.cpp", "the table of actions, by menu"),
    ("app/ui/panels/bars/bars.hpp", "app/ui/panels/bars/view_bar.cpp", "the longest of the bars"),
    ("app/ui/panels/compare/compare_panel.hpp", "app/ui/panels/compare/compare_list.cpp", "the list next to the maps"),
    ("app/ui/panels/dialogs/dialogs.hpp", "app/ui/panels/dialogs/file_dialogs.cpp app/ui/panels/dialogs/help_dialogs.cpp "
     "app/ui/panels/dialogs/import_dialog.cpp app/ui/panels/dialogs/model_dialogs.cpp", "dialogs, by subject"),
    ("app/ui/panels/inspector/inspector_panel.hpp", "app/ui/panels/inspector/inspector_row.cpp", "the parts about a row"),
    ("app/ui/panels/layers/layers_panel.hpp", "app/ui/panels/layers/head_map.cpp app/ui/panels/layers/next_token.cpp "
     "app/ui/panels/layers/full_model_panel.cpp app/ui/panels/layers/prompts_panel.cpp app/ui/panels/layers/circuits_panel.cpp", "parts of the view of layers"),
    ("app/ui/panels/learning/learning_panel.hpp", "app/ui/panels/learning/learning_setup.cpp", "the left side of Learn"),
    ("app/ui/panels/model/model_panel.hpp", "app/ui/panels/model/model_popups.cpp", "the popups of MODEL"),
    ("app/ui/panels/stages/stages_panel.hpp", "app/ui/panels/stages/large_panel.cpp app/ui/panels/stages/rotation_panel.cpp",
     "views of one stage"),
    ("app/ui/widgets/heatmap/heatmap_drawn.hpp", "app/ui/widgets/heatmap/color_bar.cpp app/ui/widgets/heatmap/heatmap_gradient.cpp "
     "app/ui/widgets/heatmap/heatmap_labels.cpp", "what surrounds a heatmap"),
    ("app/screen/painter.hpp", "", "an interface; pooling() is defined with the pictures"),
    ("core/graph/bugs.hpp", "core/graph/bugs_biases.cpp core/graph/bugs_cache.cpp core/graph/bugs_dropout.cpp core/graph/bugs_masking.cpp core/graph/bugs_masks.cpp core/graph/bugs_norms.cpp "
     "core/graph/bugs_offered.cpp core/graph/bugs_offered_scores.cpp core/graph/bugs_outputs.cpp core/graph/bugs_positions.cpp "
     "core/graph/bugs_projections.cpp core/graph/bugs_reports.cpp core/graph/bugs_rotary.cpp core/graph/bugs_scores.cpp "
     "core/graph/bugs_softmax.cpp", "the table, by what a bug edits"),
    ("core/engine/implementation.hpp", "core/engine/trace.cpp core/engine/update.cpp", "a class template in three parts, with engine.cpp"),
    ("core/files/readers.hpp", "core/files/npy.cpp core/files/numbered_shards.cpp core/files/pytorch.cpp core/files/raw_tensor.cpp core/files/safetensors.cpp",
     "readers of one interface"),
    ("core/graph/graph.hpp", "core/graph/attention.cpp", "the builder, which reads like section 3.2 of the paper"),
    ("core/graph/operations.hpp", "core/graph/backward.cpp core/graph/terms.cpp", "gradients, and derivations of cells"),
    ("core/out/drawing.hpp", "core/out/raster_cairo.cpp core/out/raster_canvas.cpp", "figures in pixels and as PDF, by a library of the system or a page"),
    ("core/base/thread_pool.hpp", "core/base/thread_pool_serial.cpp core/base/thread_pool_tbb.cpp", "with and without threads"),
    ("core/system/fetching.hpp", "core/system/fetching_none.cpp core/system/fetching_page.cpp", "only a page fetches files"),
    ("core/system/fonts.hpp", "core/system/fonts_embedded.cpp core/system/fonts_fontconfig.cpp", "those of a page, and of the system"),
    ("core/system/socket.hpp", "core/system/socket_page.cpp", "a page has none"),
    ("app/session/fibers.hpp", "app/session/fibers_none.cpp app/session/fibers_page.cpp", "only a page has fibers, as it has no threads"),
    ("app/session/journal.hpp", "app/session/journal_files.cpp app/session/journal_page.cpp", "where journals are"),
    ("app/screen/kept.hpp", "app/screen/kept_files.cpp app/screen/kept_page.cpp", "where short texts are"),
    ("core/lessons/lessons.hpp", "core/lessons/subjects.cpp", "what the expressions of lessons can measure"),
]
ALONE = {path for header, others, _ in PARTS for path in [header, *others.split()] if path}

BRITISH = re.compile(r"(?:normalis|initialis|optimis|organis|recognis|serialis|quantis|tokenis|summaris|generalis|visualis|synchronis|minimis"
                     r"|maximis|utilis|analys(?:e|ing)|neighbour|colour|behaviour|favour|honour|grey|centre|metre|licence|defence|labell(?:ed|ing)"
                     r"|cancell(?:ed|ing)|modell(?:ed|ing)|travell|catalogue|artefact|judgement|learnt|whilst)", re.IGNORECASE)
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
        if path not in ALONE:
            found.append(f"{path} {why}")
    return found + [f"{path} does not exist" for path in sorted(ALONE) if path not in sources]


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
