"""A whole model of GPT-2's size with random numbers, beside PyTorch's and transformers' in the same turns.

Needs a Python with torch and transformers:  PYTHON tests/bench/whole.py build/release/bin [--rounds N]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

LENGTH = 64


def byte_tokenizer():
    """A tokenizer of single bytes, as what is timed begins with numbers of tokens."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [b for b in range(256) if b not in kept]
    vocabulary = {chr(b): b for b in kept} | {chr(256 + k): b for k, b in enumerate(moved)}
    return {"version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}


def make_model(folder, torch, transformers):
    torch.manual_seed(1)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer()))
    return model


def ours(program, folder):
    output = subprocess.run([program, folder, "--benchmark_format=json", "--benchmark_min_time=1"], check=True, capture_output=True, text=True).stdout
    return {row["name"].split("/")[0]: row for row in json.loads(output)["benchmarks"]}


def peak_of(program, folder):
    code = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL);"
            " print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    command = [sys.executable, "-c", code, program, folder, "--benchmark_filter=read_text", "--benchmark_min_time=0.1"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) * 1024


def timed(call, seconds=1.0):
    call()
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def theirs(model, torch):
    ids = torch.tensor([[(k * 31 + 7) % 256 for k in range(LENGTH)]])
    more = ids[:, :1]

    def read_text():
        return model(ids, use_cache=False, logits_to_keep=1).logits

    def token_more():
        logits = model(more, past_key_values=cache, use_cache=True).logits
        cache.crop(-1)
        return logits

    with torch.inference_mode():
        cache = model(ids, use_cache=True).past_key_values
        return {"read_text": timed(read_text), "token_more": timed(token_more)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    import torch
    import transformers
    program = str(arguments.bin_folder.resolve() / "attnscope_bench_whole")
    processors = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        model = make_model(folder, torch, transformers)
        times = {}
        for _ in range(arguments.rounds):
            for name, row in ours(program, str(folder)).items():
                times.setdefault(f"attnscope {name}", []).append(row["real_time"])
            for count in sorted({processors, max(1, processors // 2)}):
                torch.set_num_threads(count)
                for name, value in theirs(model, torch).items():
                    times.setdefault(f"PyTorch {name}, threads {count}", []).append(value)
        size = (folder / "model.safetensors").stat().st_size
        print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}; {processors} processors; {LENGTH} tokens; medians in milliseconds")
        for name, values in times.items():
            print(f"{name:36}{statistics.median(values):10.2f}")
        best = min(statistics.median(v) for k, v in times.items() if k.startswith("PyTorch read_text"))
        whole = statistics.median(times["attnscope read_text"])
        print(f"{'attnscope / PyTorch, a text':36}{whole / best:10.2f}")
        print(f"{'head of the last layer but one / a text':36}{statistics.median(times['attnscope head_off']) / whole:10.2f}")
        print(f"{'most memory / the file':36}{peak_of(program, str(folder)) / size:10.2f}")


if __name__ == "__main__":
    main()
