"""The documents: their generated parts, the figures that the program draws for them, and checks for mistakes.

    documents.py PROJECT PROGRAM           prints what is wrong or outdated, exit 1 if anything is
    documents.py PROJECT PROGRAM --write   rewrites the generated parts and the figures
"""
import concurrent.futures
import csv
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

PROJECT = pathlib.Path(sys.argv[1]).resolve()
PROGRAM = str(pathlib.Path(sys.argv[2]).resolve())
PICTURES = PROJECT / "docs/pictures"
README_LINES, README_WORDS, GIF_BYTES = 140, 1000, 2 << 20


def program(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


# --- Models that show the bugs of the gallery: a preset, or one with a change ---

BASES = {
    "biases": ("multi-head", {"projections": {part: {"bias": [0.5, -0.5, 0.25, 1]} for part in ("query", "key", "value")}}),
    "norm": ("modern-llama", {"normalise": {"rule": "rms", "query": [1, 2, 0.5, 1], "key": [1, 1, 2, 0.5]}}),
    "scaling": ("modern-rotary", {"positions": {"rotary": {"scaling": {"rule": "linear", "factor": 4}}}}),
    "cap": ("modern-cap", {"scale": "inverse_sqrt_d_head"}),
    "bias": ("004-causal", {"score_bias": [[0, 2, -1, 0, 1, 0], [1, 0, 2, 0, 0, -1], [2, 0, 0, 1, 0, 0], [0, -2, 1, 0, 2, 0], [1, 1, 0, -1, 0, 2],
                                           [0, 3, 0, 0, -1, 0]]}),
    "padding": ("004-self-attention", {"mask": {"hidden_keys": [4, 5]}}),
    "documents": ("004-causal", {"mask": {"documents": [0, 0, 0, 1, 1, 1]}}),
    "cross": ("modern-cross", {"mask": {"causal": True, "align": "first"}}),
}

# Bug: the base model, and the options of `figure` that show it. Rounding is shown by the difference it makes.
ROUNDED = ("004-causal", "rounding")
IN_WEIGHTS = "--stage weights"
GALLERY = {
    "Precision": {name: ROUNDED for name in ("float32_precision", "tf32_precision", "half_precision", "half_precision_sums", "bfloat16_precision",
                                             "softmax_half_precision", "softmax_bfloat16_precision")},
    "Projections and heads": {
        "weight_untransposed:query": ("modern-window", "--stage queries"), "weight_untransposed:key": ("modern-window", "--stage keys"),
        "weight_untransposed:value": ("modern-window", "--stage values"), "weight_untransposed:output": ("multi-head", "--stage output"),
        "bias_missing": ("biases", "--stage queries"), "bias_missing:query": ("biases", "--stage queries"),
        "bias_missing:key": ("biases", "--stage keys"), "bias_missing:value": ("biases", "--stage values"),
        "bias_missing:output": ("biases", "--stage output"), "heads_interleaved": ("multi-head", "--stage queries"),
        "view_without_transpose": ("multi-head", "--stage queries"), "view_without_transpose:query": ("multi-head", "--stage scores"),
        "view_without_transpose:key": ("multi-head", "--stage keys"), "view_without_transpose:value": ("multi-head", "--stage values"),
        "n_heads_other": ("multi-head", "--stage weights --all-heads"), "groups_tiled": ("modern-grouped", "--stage weights --head 1"),
        "merge_without_transpose": ("multi-head", "--stage concatenated"), "output_projection_missing": ("multi-head", "--stage output"),
    },
    "Norms and positions": {
        "norm_missing": ("norm", IN_WEIGHTS), "norm_after_rotation": ("norm", IN_WEIGHTS), "rotary_missing": ("modern-rotary", IN_WEIGHTS),
        "rotary_other_pairs": ("modern-llama", IN_WEIGHTS), "rotary_off_by_one": ("modern-rotary", IN_WEIGHTS),
        "rotary_off_by_one:earlier": ("modern-rotary", IN_WEIGHTS), "rotary_base": ("modern-rotary", IN_WEIGHTS),
        "rotary_scaling_missing": ("scaling", IN_WEIGHTS), "rotary_backwards": ("modern-llama", IN_WEIGHTS),
        "rotary_queries_only": ("modern-rotary", IN_WEIGHTS), "rotary_on_values": ("modern-llama", "--stage values"),
        "bias_missing:positions": ("modern-alibi", IN_WEIGHTS), "alibi_slopes_reversed": ("modern-alibi", IN_WEIGHTS),
    },
    "Scores": {
        "query_key_swapped": ("004-causal", "--stage scores"), "no_scale": ("004-causal", "--stage scaled_scores"),
        "scale_sqrt_d_model": ("004-causal", "--stage scaled_scores"), "scale_d_head": ("004-causal", "--stage scaled_scores"),
        "scale_twice": ("004-causal", "--stage scaled_scores"), "cap_before_scale": ("cap", IN_WEIGHTS), "cap_missing": ("cap", IN_WEIGHTS),
        "bias_before_scale": ("bias", IN_WEIGHTS), "bias_missing:scores": ("bias", IN_WEIGHTS),
    },
    "Mask": {
        "no_mask": ("004-causal", IN_WEIGHTS), "causal_unwanted": ("004-self-attention", IN_WEIGHTS), "padding_missing": ("padding", IN_WEIGHTS),
        "key_missing": ("004-causal", IN_WEIGHTS), "mask_aligned_first": ("modern-decode", IN_WEIGHTS), "mask_aligned_last": ("cross", IN_WEIGHTS),
        "mask_transposed": ("004-causal", IN_WEIGHTS), "mask_hides_diagonal": ("004-causal", IN_WEIGHTS),
        "mask_shows_next": ("004-causal", IN_WEIGHTS), "window_missing": ("modern-window", IN_WEIGHTS),
        "window_off_by_one": ("modern-window", IN_WEIGHTS), "window_off_by_one:fewer": ("modern-window", IN_WEIGHTS),
        "documents_missing": ("documents", IN_WEIGHTS), "mask_after_softmax": ("004-causal", IN_WEIGHTS),
        "mask_finite": ("004-causal", "--stage masked_scores"), "mask_finite:1e4": ("004-causal", "--stage masked_scores"),
    },
    "Softmax and dropout": {
        "softmax_over_queries": ("004-causal", IN_WEIGHTS), "sink_missing": ("modern-sink", "--stage weights --head 1"),
        "blocks_not_rescaled": ("modern-llama", IN_WEIGHTS), "last_block_dropped": ("004-causal", IN_WEIGHTS),
        "dropout_before_softmax": ("004-causal-dropout", "--stage dropped_weights"), "dropout_unscaled": ("004-causal-dropout", "--stage dropped_weights"),
        "dropout_off": ("004-causal-dropout", "--stage dropped_weights"),
    },
}
FIGURES = {"strip": ["--preset", "004-causal", "--strip"]}  # besides the gallery


def merged(value, change):
    """Applies a JSON merge patch, without removals."""
    if not isinstance(value, dict) or not isinstance(change, dict):
        return change
    return {**value, **{key: merged(value.get(key), part) for key, part in change.items()}}


def base_session(name, folder):
    path = pathlib.Path(folder) / f"{name}.json"
    preset, change = BASES.get(name, (name, {}))
    program("session", "--preset", preset, "--out", path)
    path.write_text(json.dumps(merged(json.loads(path.read_text()), change)))
    return path


def differences(base, wrong, folder, name):
    """Returns the weights with the bug minus those without, as a table."""
    tables = []
    for session in (base, wrong):
        out = pathlib.Path(folder) / f"{name}.{session.stem}.csv"
        program("export", session, "--stages", "weights", "--out", out)
        tables.append(list(csv.reader(out.open())))
    table = [tables[0][0]] + [[a[0], *(float(y) - float(x) for x, y in zip(a[1:], b[1:]))] for a, b in zip(tables[0][1:], tables[1][1:])]
    out = pathlib.Path(folder) / f"{name}.csv"
    csv.writer(out.open("w")).writerows(table)
    return out


def right_name(base, options):
    return f"right/{base}-{re.sub('[^a-z0-9]+', '-', options.replace('--stage ', '')).strip('-')}.svg"


def wrong_name(bug):
    return f"bugs/{bug.replace(':', '-')}.svg"


def draw_bug(bug, base, options, folder):
    """Returns the figures of one bug: (path below docs/pictures, bytes)."""
    wrong = pathlib.Path(folder) / f"{bug.replace(':', '-')}.json"
    program("session", base, "--mistake", bug, "--out", wrong)
    out = wrong.with_suffix(".svg")
    if options == "rounding":
        program("figure", "--given", f"scores={differences(base, wrong, folder, out.stem)}", "--stage", "scores", "--out", out)
    else:
        program("figure", wrong, *options.split(), "--out", out)
    return wrong_name(bug), out.read_bytes()


def figures():
    """Returns every figure that the program draws for the documents, by its path below docs/pictures."""
    drawn = {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = {bug: row for part in GALLERY.values() for bug, row in part.items()}
        bases = {name: base_session(name, folder) for name, _ in rows.values()}
        drawn.update(pool.map(lambda bug: draw_bug(bug, bases[rows[bug][0]], rows[bug][1], folder), rows))
        for name, options in set(rows.values()):
            out = pathlib.Path(folder) / "right.svg"
            program("figure", bases[name], *("--stage weights" if options == "rounding" else options).split(), "--out", out)
            drawn[right_name(name, options)] = out.read_bytes()
        for bug, (name, options) in rows.items():
            assert drawn[wrong_name(bug)] != drawn[right_name(name, options)], f"{bug} does not show in {name} {options}"
        for name, options in FIGURES.items():
            out = pathlib.Path(folder) / f"{name}.svg"
            program("figure", *options, "--out", out)
            drawn[out.name] = out.read_bytes()
    return drawn


# --- The generated parts ---

def rows_of(command):
    return [line.split("\t") for line in program(command).splitlines()]


def gallery_text():
    about = dict(rows_of("mistakes"))
    shown = [bug for part in GALLERY.values() for bug in part]
    assert sorted(shown) == sorted(about), f"the gallery and `attnscope mistakes` differ: {sorted(set(shown) ^ set(about))}"
    image = lambda path, words: f'<img src="pictures/{path}" width="300" alt="{words}">'
    text = ""
    for title, part in GALLERY.items():
        text += f"\n### {title}\n\n"
        if title == "Precision":
            text += "Roundings are too small to be seen in the weights themselves: on the right are the differences that they make.\n\n"
        text += "| bug | as it should be | with the bug |\n|---|---|---|\n"
        for bug, (base, options) in part.items():
            text += f"| `{bug}` {about[bug]} | {image(right_name(base, options), 'right')} | {image(wrong_name(bug), bug)} |\n"
    return text.lstrip("\n")


def lessons_text():
    order = re.search(r"set\(lesson_files (.*?)\)", (PROJECT / "core/lessons/CMakeLists.txt").read_text(), re.S)[1].split()
    lessons = [json.loads((PROJECT / f"assets/lessons/{name}.json").read_text()) for name in order if name != "glossary"]
    return "| lesson | steps | what it is about |\n|---|---|---|\n" + "".join(
        f"| {lesson['title']} | {len(lesson['steps'])} | {lesson['about']} |\n" for lesson in lessons)


def presets_text():
    return "| preset | what it shows |\n|---|---|\n" + "".join(f"| `{name}` | {about} |\n" for name, about in rows_of("presets"))


GENERATED = {
    "docs/command-line.md": {"commands": lambda: program("manual", "markdown")},
    "docs/check.md": {"mistakes": gallery_text},
    "docs/lessons.md": {"lessons": lessons_text, "presets": presets_text},
}


def with_generated_parts(path):
    text = (PROJECT / path).read_text()
    for name, make in GENERATED[path].items():
        begin, end = f"<!-- begin generated: {name} -->\n", f"<!-- end generated -->"
        before, rest = text.split(begin)
        after = rest[rest.index(end):]
        text = f"{before}{begin}\n{make().strip()}\n\n{after}"
    return text


# --- Checks ---

def anchor(title):
    """Returns the anchor that GitHub and Python-Markdown give a heading."""
    title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title.strip().lower())
    return re.sub(r"[^\w\- ]", "", title).replace(" ", "-")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```|^ {4,}.*?$", "", text, flags=re.S | re.M))


def anchors_of(path):
    return {anchor(title) for title in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M), re.M)}


def links(path):
    text = without_code(path.read_text())
    return re.findall(r"\]\(([^)\s]+)[^)]*\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)


def documents():
    return sorted(PROJECT.glob("*.md")) + sorted((PROJECT / "docs").glob("*.md"))


def wrong_links():
    used = set()
    for path in documents():
        for link in links(path):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, place = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            used.add(target)
            name = path.relative_to(PROJECT)
            if not target.exists():
                yield f"{name}: {link} leads nowhere"
            elif place and place not in anchors_of(target):
                yield f"{name}: {link}: {target.name} has no such heading"
    for picture in sorted(PICTURES.rglob("*.*")):
        if picture not in used:
            yield f"{picture.relative_to(PROJECT)} is in no document"


def wrong_readme():
    text = (PROJECT / "README.md").read_text()
    lines, words = len(text.splitlines()), len(text.split())
    if lines > README_LINES or words > README_WORDS:
        yield f"README.md has {lines} lines and {words} words: at most {README_LINES} and {README_WORDS}"
    bugs, lessons = len(rows_of("mistakes")), lessons_text().count("\n") - 2
    for number, thing in ((str(bugs), "bugs"), ({16: "Sixteen", 20: "Twenty", 22: "Twenty-two"}.get(lessons, str(lessons)), "lessons")):
        if f"{number} {thing}" not in text:
            yield f"README.md does not speak of {number} {thing}"
    for picture in PICTURES.glob("*.gif"):
        if picture.stat().st_size > GIF_BYTES:
            yield f"{picture.name} has {picture.stat().st_size} bytes: at most {GIF_BYTES}"


def wrong_versions():
    patterns = {
        "CMakeLists.txt": r"project\(attnscope VERSION ([0-9.]+)", "python/attnscope/__init__.py": r'__version__ = "([^"]+)"',
        "CHANGELOG.md": r"## \[?([0-9][0-9.]*)", "CITATION.cff": r"^version: (\S+)", "assets/attnscope.metainfo.xml": r'<release version="([^"]+)"',
    }
    versions = {path: re.search(pattern, (PROJECT / path).read_text(), re.M) for path, pattern in patterns.items()}
    versions = {path: found[1] if found else "none" for path, found in versions.items()}
    if len(set(versions.values())) > 1:
        yield f"versions differ: {versions}"


def wrong_contents():
    """Checks that mkdocs.yml lists every document."""
    listed = set(re.findall(r"[\w-]+\.md", (PROJECT / "mkdocs.yml").read_text()))
    there = {path.name for path in (PROJECT / "docs").glob("*.md")}
    for name in sorted(listed ^ there):
        yield f"{name}: in mkdocs.yml or in docs, and not in both"


# --- The commands that the documents give ---

def tensor_bytes(name, numbers, shape):
    """Returns a file of one float64 tensor, .npy or .safetensors."""
    data = struct.pack(f"<{len(numbers)}d", *numbers)
    if name.endswith(".npy"):
        header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data
    header = json.dumps({"my_attn": {"dtype": "F64", "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


def commands_of(path):
    """Returns the shell commands of a document that need no window."""
    verbs = [*re.findall(r"^### attnscope (\w+)", (PROJECT / "docs/command-line.md").read_text(), re.M), "--help", "--version"]
    text = path.read_text()
    lines = re.findall(r"^    (?:\$ )?((?:attnscope|cat) .*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    lines += [command for command in re.findall(r"`(attnscope [^`]*)`", text) if len(command.split()) > 2]
    for line in lines:
        command = re.split(r"\s{2,}", line.strip())[0]
        for words, thing in (("COMMAND", "export"), ("MODEL", "model"), ("NAME", "004-causal"), ("…", "egg jam f"), ("--heads 12", "--heads 4"),
                             ("5.1", "2.1")):
            command = command.replace(words, thing)
        is_attached = "127.0.0.1:" in command  # of an attached model that no document serves
        if command.startswith("cat ") or ([*command.split(), ""][1] in verbs and not is_attached):
            yield command


def wrong_commands():
    weights = [1 / 6] * 36
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "attnscope").symlink_to(PROGRAM)
        (folder / "assets").symlink_to(PROJECT / "assets")
        shutil.copytree(PROJECT / "assets/examples/tiny_gpt", folder / "model")
        shutil.copy(folder / "model/config.json", folder)
        shutil.copy(folder / "model/model.fp16.safetensors", folder / "model.safetensors")
        with zipfile.ZipFile(folder / "dump.npz", "w") as archive:
            archive.writestr("logits.npy", tensor_bytes("logits.npy", [0.0] * 5 * 1024, (5, 1024)))
        program("export", "--preset", "chapter-causal-class", "--out", folder / "student.npz")
        for session in ("session.json", "lesson.json"):
            program("session", "--preset", "004-causal", "--out", folder / session)
        (folder / "mine.safetensors").write_bytes(tensor_bytes("mine.safetensors", weights, (6, 6)))
        (folder / "attn.npy").write_bytes(tensor_bytes("attn.npy", weights * 4, (4, 1, 6, 6)))
        program("export", "--preset", "004-causal", "--mistake", "mask_after_softmax", "--stages", "weights", "--out", folder / "mine.npz")
        program("export", "--preset", "004-causal", "--out", folder / "right.npz")
        for name, texts in (("texts.txt", "egg jam f\nfig and fig\n"), ("more.txt", "jam and jam\n")):
            (folder / name).write_text(texts)
        program("gradient", "--preset", "004-causal", "--of", "output", "--out", folder / "gradients.npz")
        for path in documents():
            if path.name == "CHANGELOG.md":  # old paths are history
                continue
            for command in commands_of(path):
                done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, cwd=folder,
                                      env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
                wrong = [line for line in done.stderr.splitlines() if not line.startswith("attnscope: note: ")]
                differs = " check " in command and done.returncode == 1 and not wrong
                if done.returncode and not differs:
                    yield f"{path.relative_to(PROJECT)}: {command}: exit {done.returncode}: {done.stderr.strip()}"


def wrong_paths():
    """Checks that project files named in documents exist."""
    for path in documents():
        for name in re.findall(r"`((?:app|assets|cmake|core|docs|python|scripts|shaders|tests)/[\w./-]+)`", path.read_text()):
            if path.name != "CHANGELOG.md" and not any(PROJECT.glob(name)) and not any(PROJECT.glob(name + ".*")):
                yield f"{path.relative_to(PROJECT)}: there is no {name}"


def stale():
    for path in GENERATED:
        if with_generated_parts(path) != (PROJECT / path).read_text():
            yield f"{path} is stale"
    drawn = figures()
    for name, content in drawn.items():
        path = PICTURES / name
        if not path.exists() or path.read_bytes() != content:
            yield f"docs/pictures/{name} is stale"


def write():
    for path in GENERATED:
        (PROJECT / path).write_text(with_generated_parts(path))
    for folder in ("right", "bugs"):
        for old in (PICTURES / folder).glob("*.svg"):
            old.unlink()
    for name, content in figures().items():
        path = PICTURES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main():
    if "--write" in sys.argv:
        return write()
    wrong = [*wrong_readme(), *wrong_links(), *wrong_contents(), *wrong_versions(), *wrong_paths(), *wrong_commands()]
    old = list(stale())
    print("\n".join(wrong + old) or "the documents are right")
    if old:
        print("scripts/docs --figures makes what is stale anew")
    return bool(wrong or old)


if __name__ == "__main__":
    sys.exit(main())
