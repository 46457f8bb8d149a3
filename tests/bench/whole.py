"""A whole model of GPT-2's size with random numbers: attnscope beside PyTorch, ONNX Runtime, llama.cpp and CTranslate2, by turns.

    PYTHON tests/bench/whole.py build/release/bin [--seconds S] [--model FOLDER] [--tests read:64,one:64]

What that Python has not installed (torch and transformers, onnxruntime, llama-cpp-python, ctranslate2) is named and left out. Each program
runs with one thread and with as many as there are processors. Of one thread the least time of the processor is told, beside which other
programs may run; of several the least time of the clock, for which the machine should be quiet. Logits are compared first.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent


class Program:
    """A server of whole.cpp or whole_peers.py."""

    def __init__(self, name, threads, command):
        self.name, self.threads, self.times = name, threads, {}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ask(self, *words):
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return []
        while True:
            line = self.process.stdout.readline()
            if line.strip() != "ready":
                return [float(number) for number in line.split()]

    def why_ended(self):
        errors = self.process.stderr.read().strip().splitlines()
        return errors[-1] if errors else "it ended"

    def measure(self, test, repeats):
        numbers = self.ask(*test, repeats)
        self.times.setdefault(test, []).extend(zip(numbers[::2], numbers[1::2]))

    def least(self, test):
        times = self.times.get(test)
        return min(used if self.threads == 1 else wall for wall, used in times) * 1e3 if times else None


def programs(arguments, folder):
    bench, python = str(arguments.bin_folder.resolve() / "attnscope_bench_whole"), sys.executable
    processors = len(os.sched_getaffinity(0))
    for threads in sorted({1, processors}):
        def peer(name, path):
            return [python, str(HERE / "whole_peers.py"), name, str(path), str(threads)]
        yield "attnscope", "float32", threads, [bench, str(folder), str(threads)]
        for name in ("PyTorch", "ONNX Runtime", "CTranslate2"):
            yield name, "float32", threads, peer(name, folder)
        for file, kind in (("f32", "float32"), ("f16", "float16"), ("q8_0", "Q8_0")):
            if not (folder / f"{file}.gguf").exists():
                continue
            if kind != "float32":
                yield "attnscope", kind, threads, [bench, str(folder / f"{file}.gguf"), str(threads)]
            yield "llama.cpp", kind, threads, peer("llama.cpp", folder / f"{file}.gguf")


def largest_difference(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=120, help="of measuring")
    parser.add_argument("--model", type=pathlib.Path, help="a folder of whole_model.py, which is made there when it is missing")
    parser.add_argument("--tests", default="read:64,read:512,one:64,one:1000,off:64,edit:6:64,edit:0:64")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = arguments.model or pathlib.Path(place)
        if not (folder / "model.safetensors").exists():
            subprocess.run([sys.executable, str(HERE / "whole_model.py"), str(folder)], check=True)
        race(arguments, folder)


def race(arguments, folder):
    running, expected = [], None
    for name, kind, threads, command in programs(arguments, folder):
        program = Program(f"{name}, {kind}", threads, command)
        logits = program.ask("logits", 64) + program.ask("onelogits", 64)
        if not logits:
            if threads == 1:
                print(f"{program.name}: {program.why_ended()}")
            continue
        expected = expected or logits
        if threads == 1:
            print(f"{program.name:24} logits within {largest_difference(logits, expected):.0e} of attnscope's in float32")
        running.append(program)
    tests = [tuple(test.split(":")) for test in arguments.tests.split(",")]
    begin = time.time()
    while time.time() - begin < arguments.seconds:
        for test in tests:
            for program in running:
                if test[0] in ("read", "one") or program.name.startswith("attnscope"):
                    program.measure(test, 1 if test[-1] == "512" else 3)
    for threads in sorted({program.threads for program in running}):
        print(f"\nmilliseconds, {'one thread, of the processor' if threads == 1 else f'{threads} threads, of the clock'}")
        print(f"{'':24}" + "".join(f"{' '.join(test):>12}" for test in tests) + f"{'resident MB':>13}")
        for program in running:
            if program.threads != threads:
                continue
            cells = [program.least(test) for test in tests]
            memory = (program.ask("memory") or [0])[0] / 1024
            print(f"{program.name:24}" + "".join(f"{'–' if cell is None else format(cell, '.1f'):>12}" for cell in cells) + f"{memory:13.0f}")
    for program in running:
        program.process.stdin.close()


if __name__ == "__main__":
    main()
