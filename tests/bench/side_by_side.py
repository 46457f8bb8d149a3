"""Times attnscope's engine, NumPy and PyTorch on the same sizes in turns, and prints the medians as one table.

Called by scripts/bench with the folder of the built programs. NumPy and PyTorch are those of the Python that runs this, each with all
processors and the BLAS that it comes with; what they are, and what is missing, is said first.
"""
import argparse
import ctypes
import json
import math
import os
import pathlib
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

# Environment settings of threads and kernels would affect some peers and not others.
for variable in list(os.environ):
    if re.match(r"(OPENBLAS|GOTO|BLIS|MKL|OMP|KMP|NUMEXPR|ATEN)_", variable):
        del os.environ[variable]

SIZES = [(6, 3, 1), (64, 64, 4), (256, 768, 12), (1024, 768, 12), (2048, 768, 12)]
SHARES = [0.06, 0.06, 0.13, 0.25, 0.5]  # of the time; each size gets at least one round
OURS = ["forward", "forward_float32", "edit_embedding", "edit_query_weight", "edit_value_weight", "edit_embedding_with_output",
        "edit_query_weight_with_output", "edit_embedding_float32", "edit_query_weight_float32", "edit_embedding_with_output_float32"]
REFERENCE_UP_TO = 1024  # tokens; beyond, every stage at once takes many seconds and gigabytes
GRADIENTS = "PyTorch book class, its gradients, float64"
ONE_THREAD_UP_TO = 64  # tokens; up to this size the peers are also measured with one thread, and the faster result counts
PROCESSORS = len(os.sched_getaffinity(0))
# Modern options, next to PyTorch's fused attention: GQA with RoPE, and a sliding window.
GROUPED, WINDOWED = (1024, 768, 12), (4096, 64, 4)  # tokens, width, heads
GROUPS, WINDOW = 4, 128
OURS_TODAY = {
    "plain": f"forward/{'/'.join(map(str, GROUPED))}",
    "4 groups, rotary": f"grouped_rotary/{'/'.join(map(str, GROUPED))}",
    "plain, long": f"forward/{'/'.join(map(str, WINDOWED))}",
    "window of 128": f"windowed/{'/'.join(map(str, WINDOWED))}",
}


def output_within(command, seconds):
    """Returns the output of a command; kills it and its children after the given time."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            out, error = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode != 0:
        raise OSError(f"{command[0]} failed: {error.strip().splitlines()[-1] if error.strip() else process.returncode}")
    return out


def benchmark(program, pattern, seconds):
    """Runs some of our benchmarks; returns {name: milliseconds} and the counted peak."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        output_within([program, f"--benchmark_filter={pattern}", f"--benchmark_min_time={seconds}", f"--benchmark_out={report}",
                       "--benchmark_out_format=json"], 600)
        rows = json.loads(report.read_text())["benchmarks"]
    unit = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}
    return {row["name"]: row.get("multiply_adds_per_second") or row["real_time"] * unit[row["time_unit"]] for row in rows}


def settle():
    """Waits until the previous peer's threads have stopped spinning for more work."""
    time.sleep(0.1)


def timed(function, at_least=0.05):
    """Returns milliseconds per call, the mean over a twentieth of a second, after a warm-up call if that is quick."""
    settle()
    start = time.perf_counter()
    function()
    taken = time.perf_counter() - start
    if taken > 10 * at_least:
        return taken * 1e3
    count, start = 0, time.perf_counter()
    while True:
        function()
        count += 1
        taken = time.perf_counter() - start
        if taken > at_least:
            return taken / count * 1e3


def numpy_pass(size):
    import numpy as np
    n, d, heads = size
    random = np.random.default_rng(1)
    x, (wq, wk, wv, wo) = random.standard_normal((n, d)), random.standard_normal((4, d, d)) / math.sqrt(d)
    hidden = np.triu(np.ones((n, n), bool), 1)

    def call():
        q, k, v = ((x @ w).reshape(n, heads, d // heads).transpose(1, 0, 2) for w in (wq, wk, wv))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(d // heads)
        scores[:, hidden] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return (weights @ v).transpose(1, 0, 2).reshape(n, d) @ wo

    return call


def numpy_tuned(size):
    """Returns a function with the same results, preallocated buffers and, if NumPy allows, in-place operations."""
    import numpy as np
    n, d, heads = size
    d_head = d // heads
    random = np.random.default_rng(1)
    x, w = random.standard_normal((n, d)), random.standard_normal((d, 3 * d)) / math.sqrt(d)
    w[:, :d] /= math.sqrt(d_head)  # the scale, applied once
    wo = random.standard_normal((d, d)) / math.sqrt(d)
    mask = np.triu(np.full((n, n), -np.inf), 1)
    qkv, scores, rows = np.empty((n, 3 * d)), np.empty((heads, n, n)), np.empty((heads, n, 1))
    contexts, joined, out = np.empty((heads, n, d_head)), np.empty((n, d)), np.empty((n, d))

    def call():
        np.matmul(x, w, out=qkv)
        q, k, v = qkv.reshape(n, 3, heads, d_head).transpose(1, 2, 0, 3)
        np.matmul(q, k.transpose(0, 2, 1), out=scores)
        np.add(scores, mask, out=scores)
        np.subtract(scores, np.max(scores, -1, keepdims=True, out=rows), out=scores)
        np.exp(scores, out=scores)
        np.divide(scores, np.sum(scores, -1, keepdims=True, out=rows), out=scores)
        np.matmul(scores, v, out=contexts)
        joined.reshape(n, heads, d_head)[...] = contexts.transpose(1, 0, 2)
        return np.matmul(joined, wo, out=out)

    return call


def book_class(size, dtype, with_gradients=False):
    """Returns the class as printed in books: mask buffer, masked_fill_, softmax, dropout of rate 0, contexts, projection.

    With the gradients of its output's sum, of the input and of all parameters, if wanted."""
    import torch
    n, d, heads = size

    class MultiHeadAttention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = (torch.nn.Linear(d, d, bias=False) for _ in range(4))
            self.dropout = torch.nn.Dropout(0.0)
            self.register_buffer("mask", torch.triu(torch.ones(n, n), diagonal=1))

        def forward(self, x):
            b, count, _ = x.shape
            q, k, v = (f(x).view(b, count, heads, d // heads).transpose(1, 2) for f in (self.query, self.key, self.value))
            scores = q @ k.transpose(2, 3)
            scores.masked_fill_(self.mask.bool()[:count, :count], -torch.inf)
            weights = self.dropout(torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1))
            return self.out((weights @ v).transpose(1, 2).contiguous().view(b, count, d))

    torch.manual_seed(1)
    module, x = MultiHeadAttention().to(dtype), torch.randn(1, n, d, dtype=dtype, requires_grad=with_gradients)

    def with_backward():
        with torch.enable_grad():
            return torch.autograd.grad(module(x).sum(), [x, *module.parameters()])

    return with_backward if with_gradients else lambda: module(x)


def library_module(size, dtype):
    import torch
    n, d, heads = size
    torch.manual_seed(1)
    module = torch.nn.MultiheadAttention(d, heads, bias=False, batch_first=True).to(dtype)
    x, mask = torch.randn(1, n, d, dtype=dtype), torch.triu(torch.ones(n, n, dtype=torch.bool), 1)
    return lambda: module(x, x, x, attn_mask=mask, need_weights=True, average_attn_weights=False)


def fused(size, dtype, window=None):
    """Returns PyTorch's fused attention, which keeps neither scores nor weights; on a CPU a sliding window must be a mask."""
    import torch
    n, d, heads = size
    torch.manual_seed(1)
    x = torch.randn(n, d, dtype=dtype)
    w, wo = torch.randn(d, 3 * d, dtype=dtype) / math.sqrt(d), torch.randn(d, d, dtype=dtype) / math.sqrt(d)
    mask = {"attn_mask": torch.ones(n, n, dtype=torch.bool).tril().triu(1 - window)} if window else {"is_causal": True}

    def call():
        q, k, v = (x @ w).view(n, 3, heads, d // heads).permute(1, 2, 0, 3).unsqueeze(1)
        contexts = torch.nn.functional.scaled_dot_product_attention(q, k, v, **mask)
        return contexts[0].transpose(0, 1).reshape(n, d) @ wo

    return call


def tuned_by_hand(size, dtype):
    """Returns a function with the same results, preallocated buffers and, if PyTorch allows, in-place operations."""
    import torch
    n, d, heads = size
    d_head = d // heads
    torch.manual_seed(1)
    x = torch.randn(n, d, dtype=dtype)
    w, wo = torch.randn(d, 3 * d, dtype=dtype) / math.sqrt(d), torch.randn(d, d, dtype=dtype) / math.sqrt(d)
    qkv, scores, weights = torch.empty(n, 3 * d, dtype=dtype), torch.empty(heads, n, n, dtype=dtype), torch.empty(heads, n, n, dtype=dtype)
    contexts, joined, out = torch.empty(heads, n, d_head, dtype=dtype), torch.empty(n, d, dtype=dtype), torch.empty(n, d, dtype=dtype)
    mask = torch.triu(torch.full((n, n), -torch.inf, dtype=dtype), 1).expand(heads, n, n)

    def call():
        torch.mm(x, w, out=qkv)
        q, k, v = qkv.view(n, 3, heads, d_head).permute(1, 2, 0, 3)
        torch.baddbmm(mask, q, k.transpose(1, 2), alpha=1 / math.sqrt(d_head), out=scores)
        torch.softmax(scores, -1, out=weights)
        torch.bmm(weights, v, out=contexts)
        joined.view(n, heads, d_head).copy_(contexts.transpose(0, 1))
        torch.mm(joined, wo, out=out)

    return call


def fused_grouped_rotary(dtype):
    """Returns projections, RoPE in pairs of halves, and fused attention with enable_gqa, without scores or weights."""
    import torch
    n, d, heads = GROUPED
    d_head = d // heads
    torch.manual_seed(1)
    x = torch.randn(n, d, dtype=dtype)
    w = torch.randn(d, d + 2 * GROUPS * d_head, dtype=dtype) / math.sqrt(d)
    wo = torch.randn(d, d, dtype=dtype) / math.sqrt(d)
    angles = torch.arange(n, dtype=dtype)[:, None] * 10000.0 ** (-torch.arange(0, d_head, 2, dtype=dtype) / d_head)
    cosine, sine = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)

    def turned(m):
        first, second = m.chunk(2, -1)
        return m * cosine + torch.cat([-second, first], -1) * sine

    def call():
        rows = (x @ w).view(n, heads + 2 * GROUPS, d_head).transpose(0, 1)
        q, k, v = rows.split([heads, GROUPS, GROUPS])
        contexts = torch.nn.functional.scaled_dot_product_attention(turned(q)[None], turned(k)[None], v[None], is_causal=True, enable_gqa=True)
        return contexts[0].transpose(0, 1).reshape(n, d) @ wo

    return call


def peers_of(torch):
    found = {}
    for name, dtype in (("float64", torch.float64), ("float32", torch.float32)):
        try:
            call = fused_grouped_rotary(dtype)
            call()
            found[f"PyTorch fused, 4 groups, rotary, {name}"] = call
        except TypeError:  # before enable_gqa
            continue
        found[f"PyTorch fused, window of 128, {name}"] = fused(WINDOWED, dtype, WINDOW)
    return found


def measure_modern(program, torch, rounds):
    """Returns {name: median milliseconds} of everything, in turns; attnscope keeps all scores in float64."""
    calls, times = peers_of(torch) if torch else {}, {}
    pattern = "^(" + "|".join(OURS_TODAY.values()) + ")$"
    for _ in range(rounds):
        took = benchmark(program, pattern, 0.2)
        for name, key in OURS_TODAY.items():
            times.setdefault(name, []).append(took[key])
        for name, call in calls.items():
            times.setdefault(name, []).append(timed(call))
    return {name: statistics.median(values) for name, values in times.items()}


def print_today(times):
    print(f"\nwhat models of today add, milliseconds, medians: {GROUPED} with {GROUPS} groups and rotary positions; {WINDOWED} with a window of {WINDOW}")
    for name, value in times.items():
        print(f"{name:44}{value:12.3f}")
    print(f"{'4 groups and rotary positions / plain':44}{times['4 groups, rotary'] / times['plain']:12.2f}")
    print(f"{'plain / window':44}{times['plain, long'] / times['window of 128']:12.2f}")


def import_peers():
    """Returns {name: module} of installed peers, and a line for each missing one."""
    found, missing = {}, []
    for name, module in (("NumPy", "numpy"), ("PyTorch", "torch")):
        try:
            found[name] = __import__(module)
        except Exception as error:  # a broken package counts as missing
            missing.append(f"{name} is not measured: {sys.executable} has none that can be imported ({error}); --python PATH takes another")
    if "PyTorch" in found:
        found["PyTorch"].set_num_threads(PROCESSORS)
        found["PyTorch"].set_grad_enabled(False)
    return found, missing


def others(size, peers):
    """Returns {name: function} of the installed peers."""
    found = {}
    if "NumPy" in peers:
        found["NumPy float64"] = numpy_pass(size)
        found["NumPy tuned by hand float64"] = numpy_tuned(size)
    if "PyTorch" in peers:
        torch = peers["PyTorch"]
        for name, dtype in (("float64", torch.float64), ("float32", torch.float32)):
            found[f"PyTorch book class {name}"] = book_class(size, dtype)
            found[f"PyTorch tuned by hand {name}"] = tuned_by_hand(size, dtype)
            if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
                found[f"PyTorch fused, no weights, {name}"] = fused(size, dtype)
        if size[0] <= REFERENCE_UP_TO:
            found[GRADIENTS] = book_class(size, torch.float64, with_gradients=True)
        found["PyTorch nn.MultiheadAttention float32"] = library_module(size, torch.float32)
    return found


def mapped_libraries(pattern):
    """Returns the paths of loaded libraries with matching names."""
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    return sorted(path for path in paths if re.search(pattern, os.path.basename(path)))


def ask_openblas(path, name, kind, *arguments):
    """Returns the result of a function of a loaded OpenBLAS, whose name depends on the build, or None."""
    library = ctypes.CDLL(path)
    for symbol in (f"{prefix}openblas_{name}{suffix}" for prefix in ("", "scipy_") for suffix in ("", "64_", "_64", "_64_")):
        if hasattr(library, symbol):
            function = getattr(library, symbol)
            function.restype = kind
            return function(*arguments)
    return None


def set_threads(count, peers):
    """Sets the number of threads of every peer."""
    for path in mapped_libraries(r"openblas.*[.]so"):
        ask_openblas(path, "set_num_threads", None, count)
    if "PyTorch" in peers:
        peers["PyTorch"].set_num_threads(count)


def processor():
    """Returns the name of the processor and its widest vector extension."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    name = re.search(r"^model name\s*: (.*)$", text, re.M)
    flags = set((re.search(r"^flags\s*: (.*)$", text, re.M) or [None, ""])[1].split())
    widest = next((words for flag, words in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX")) if flag in flags), "")
    return ", ".join(filter(None, (name[1] if name else platform.machine(), widest)))


def settings(peers, missing):
    """Returns lines that describe the setup of the measurement."""
    lines = [f"{processor()}; {PROCESSORS} processors; {platform.system()} {platform.release()}",
             f"Python {platform.python_version()} ({sys.executable})"]
    lines += [f"{name} {module.__version__}" for name, module in peers.items()]
    lines += [f"  {os.path.realpath(path)}" for path in mapped_libraries(r"(openblas|mkl_(rt|core)|blis|libblas|libcblas|atlas|nvpl_blas|armpl).*[.]so")]
    if peers:
        lines.append(f"peers have {PROCESSORS} threads; up to {ONE_THREAD_UP_TO} tokens they are measured with one as well, and the faster counts")
    return lines + missing


def causal_multiply_adds(size):
    n, d, _ = size
    return 4 * n * d * d + n * (n + 1) * d


def medians_of(times):
    """Returns {name: median}; for a peer measured with several thread counts, the smallest."""
    medians = {}
    for key, values in times.items():
        name = key[0] if isinstance(key, tuple) else key
        medians[name] = min(medians.get(name, math.inf), statistics.median(values))
    return medians


def measure(bin_folder, size, rounds, seconds, peers):
    """Returns {name: median milliseconds} and the number of rounds that fit the time; a round measures everything once."""
    program, name = str(bin_folder / "attnscope_bench"), "/".join(map(str, size))
    wanted = OURS + (["reference", "gradients"] if size[0] <= REFERENCE_UP_TO else [])
    pattern = "^(" + "|".join(wanted) + ")/" + name + "$|^peak$"
    functions, times = others(size, peers), {}
    start = time.monotonic()
    set_threads(PROCESSORS, peers)
    for function in functions.values():
        function()
    for done in range(rounds):
        begin = time.monotonic()
        if done > 0 and begin - start + last > seconds:
            return medians_of(times), done
        settle()
        for key, value in benchmark(program, pattern, 0.05).items():
            times.setdefault(key.split("/")[0], []).append(value)
        for count in [PROCESSORS] + ([1] if size[0] <= ONE_THREAD_UP_TO else []):
            set_threads(count, peers)
            for key, function in functions.items():
                times.setdefault((key, count), []).append(timed(function))
        last = time.monotonic() - begin
        print(f"{size}: round {done + 1} of {rounds}, {last:.1f} s", file=sys.stderr)
    return medians_of(times), rounds


def frames(bin_folder):
    """Returns the lines that attnscope_frames prints about the window, or a line that says why there are none."""
    command = ["xvfb-run", "-a", "-s", "-screen 0 1920x1080x24", str(bin_folder / "attnscope_frames")]
    try:
        return output_within(command, 300).splitlines()
    except subprocess.TimeoutExpired:
        return ["the frames of the window are not measured: they took more than five minutes"]
    except OSError as error:
        return [f"the frames of the window are not measured: {error}"]


def peak_memory(bin_folder, size):
    """Returns the peak memory of a full pass in MiB, and that of all scores in float64."""
    pattern = "^forward/" + "/".join(map(str, size)) + "$"
    code = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, "
            "stderr=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    command = [sys.executable, "-c", code, str(bin_folder / "attnscope_bench"), f"--benchmark_filter={pattern}"]
    kibibytes = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return kibibytes / 1024, size[0] ** 2 * size[2] * 8 / 2**20


def print_table(results, processors):
    names = list(dict.fromkeys(name for times in results.values() for name in times if name != "peak"))
    print(f"{'milliseconds, medians':40}" + "".join(f"{str(size):>17}" for size in results))
    for name in names:
        print(f"{name:40}" + "".join(f"{times[name]:17.4f}" if name in times else f"{'–':>17}" for times in results.values()))
    for ours, precision in (("forward", "float64"), ("forward_float32", "float32")):
        print(f"\ntimes as fast, full pass in {precision}")
        for name in names:
            if name.startswith(("PyTorch", "NumPy", "reference")) and name != GRADIENTS and (precision == "float64" or name.endswith(precision)):
                ratios = (f"{times[name] / times[ours]:17.2f}" if name in times else f"{'–':>17}" for times in results.values())
                print(f"{'than ' + name:40}" + "".join(ratios))
    if any(GRADIENTS in times for times in results.values()):
        ratios = (f"{times[GRADIENTS] / times['gradients']:17.2f}" if GRADIENTS in times else f"{'–':>17}" for times in results.values())
        print(f"\n{'gradients, times as fast as PyTorch':40}" + "".join(ratios))
    shares = (causal_multiply_adds(size) / (times["forward"] / 1e3) / (times["peak"] * processors) for size, times in results.items())
    print(f"{'share of the multiply-add peak':40}" + "".join(f"{share:17.0%}" for share in shares))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--minutes", type=float, default=10)
    arguments = parser.parse_args()
    peers, missing = import_peers()
    about = settings(peers, missing)
    print("\n".join(about) + "\n", flush=True)
    results, counts = {}, {}
    for size, share in zip(SIZES, SHARES):
        results[size], counts[size] = measure(arguments.bin_folder, size, arguments.rounds, 60 * arguments.minutes * share, peers)
    print_table(results, PROCESSORS)
    print(f"{'rounds':40}" + "".join(f"{count:17}" for count in counts.values()))
    set_threads(PROCESSORS, peers)
    additions = measure_modern(str(arguments.bin_folder / "attnscope_bench"), peers.get("PyTorch"), min(arguments.rounds, 3))
    print_today(additions)
    memory, scores = peak_memory(arguments.bin_folder, SIZES[-1])
    print(f"\nmost memory at {SIZES[-1]}: {memory:.0f} MiB; all scores in float64: {scores:.0f} MiB", flush=True)
    window = frames(arguments.bin_folder)
    print("\n".join(window))
    for line in missing:
        print(line)
    if arguments.json:
        report = {"about": about, "processors": PROCESSORS, "milliseconds": {"/".join(map(str, s)): t for s, t in results.items()},
                  "rounds": {"/".join(map(str, s)): n for s, n in counts.items()},
                  "today": additions, "peak_memory_mib": memory, "scores_mib": scores, "window": window}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
