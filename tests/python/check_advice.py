"""Follows the advice of each message about a file to the letter: the file is refused or noted with it, and opens, or agrees, without it.

usage: check_advice.py ATTNSCOPE    exit status: 0 right, 1 wrong, 77 NumPy or PyTorch is missing
"""

import argparse
import gzip
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PROGRAM = os.path.abspath(sys.argv[1])
W = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
LARGE = torch.full((50, 50), 0.02)


class Named(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(W.clone())

    def forward(self, x):
        return x @ self.weights


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            self.add_module(name, torch.nn.Linear(4, 4, bias=False))


def write(name, content):
    with open(name, "wb" if isinstance(content, bytes) else "w") as file:
        file.write(content)
    return name


def saved(tensors, name="a.pt"):
    torch.save(tensors, name)
    return name


def pickled(value, **options):
    return write("a.pkl", pickle.dumps(value, **options))


def scripted(module):
    torch.jit.script(module).save("a.pt")
    return "a.pt"


def savez(**arrays):
    numpy.savez("a.npz", **arrays)
    return "a.npz"


def printed(tensor, **options):
    torch.set_printoptions(**options)
    text = str(tensor)
    torch.set_printoptions(profile="default")
    return write("a.txt", text)


def raw_bfloat16(name):
    numpy.save(name, (W.numpy().view("u4") >> 16).astype("u2").view("V2"))
    return name


def with_norm():
    model = Attention()
    torch.nn.utils.parametrizations.spectral_norm(model.q_proj)
    return model


def without_norm():
    model = with_norm()
    torch.nn.utils.parametrize.remove_parametrizations(model.q_proj, "weight")
    return model


def raw_float8(name):
    numpy.save(name, (W.numpy() > 0.5).astype("u1").view("V1"))
    return name


def quantized():
    return torch.quantize_per_tensor(W, 0.25, 0, torch.qint8)


def packed(module):
    with module.open("a.npy." + module.__name__, "wb") as file:
        numpy.save(file, W.numpy())
    return "a.npy." + module.__name__


def unpacked(module):
    with module.open(packed(module)) as file:
        return write("a.npy", file.read())


def adapter():
    return {"q_proj.lora_A.weight": torch.ones(2, 4), "q_proj.lora_B.weight": torch.ones(4, 2)}


def configured(**config):
    write("adapter_config.json", json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 4} | config))
    return True


def beside_adapter():
    """Puts an adapter into the folder of its model."""
    saved(adapter(), "adapter_model.bin")
    return configured() and saved(Attention().state_dict())


def merged():
    """Does what merge_and_unload of PEFT does."""
    state = Attention().state_dict()
    state["q_proj.weight"] += 2 * torch.ones(4, 2) @ torch.ones(2, 4)
    return saved(state)


def of_unknown_type():
    write("config.json", json.dumps({"model_type": "unheard_of", "num_attention_heads": 2, "hidden_size": 4}))
    return saved({"model.layers.0.self_attn." + name: tensor for name, tensor in Attention().state_dict().items()})


def with_table_of_embeddings():
    write("x.csv", "0,1,2,3\n1,0,1,0\n0,1,0,1\n")
    return saved(Attention().state_dict())


def imaginary():
    return torch.complex(W, W).conj().imag


def given(*options):
    return lambda file: ["export", "--given", f"weights={file}", *options, "--out", "out.npz"]


def layer(*options):
    return lambda file: ["session", file, "--layer", "0", *options, "--out", "out.json"]


def dump(**changed):
    """Saves stages of the preset with two heads, changed, under the names given: of four layers, all the same, if "layers"."""
    subprocess.run([PROGRAM, "export", "--preset", "multi-head", "--format", "npz", "--out", "all.npz"], check=True)
    with numpy.load("all.npz") as stages:
        return savez(**{name: change(stages) for name, change in changed.items()})


def swapped(stage):
    return lambda stages: stages[stage].swapaxes(-1, -2)


def stage(name):
    return lambda stages: stages[name]


def layers(name, n):
    return lambda stages: numpy.stack([stages[name]] * n)


def residuals(stages):
    """Returns hidden states before a norm, which attention never sees."""
    return numpy.random.default_rng(1).normal(size=(5, *stages["embeddings"].shape))


def check(*options):
    return lambda file: ["check", "--preset", "multi-head", *options, "--against", file]


MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "transformer", "llama")


def of_layer():
    subprocess.run([PROGRAM, "export", MODEL, "--text", "ab", "--layer", "1", "--out", "a.npz"], check=True, capture_output=True)
    return "a.npz"


def check_whole(*options):
    return lambda file: ["check", MODEL, "--text", "ab", *options, "--against", file]


# The words of a message, the file that gets it, and a file that follows it; each with the command, if it is not the first.
ADVICE = [
    ("save model.state_dict()", lambda: saved(Named()), lambda: saved(Named().state_dict())),
    ("save module.state_dict()", lambda: scripted(Named()), lambda: saved(Named().state_dict())),
    ("save tensor.to_dense()", lambda: saved({"weights": W.to_sparse()}), lambda: saved({"weights": W.to_sparse().to_dense()})),
    ("save torch.view_as_real(tensor)", lambda: saved(torch.complex(W, W)), lambda: saved(torch.view_as_real(torch.complex(W, W)))),
    ("save tensor.resolve_neg().clone()", lambda: saved(imaginary()), lambda: saved(imaginary().resolve_neg().clone())),
    ("save them as float32", lambda: saved(W.to(torch.float8_e5m2fnuz)), lambda: saved(W.to(torch.float8_e5m2fnuz).to(torch.float32))),
    ("save arrays with numpy.savez", lambda: pickled(W.numpy()), lambda: savez(weights=W.numpy())),
    ("save them with torch.save", lambda: pickled(W), lambda: saved(W)),
    ("save it again with torch.save as it does by itself", lambda: pickled({"weights": [1]}, protocol=0), lambda: saved({"weights": W})),
    ("save them with torch.save, numpy.savez", lambda: pickled({"weights": 1}), lambda: savez(weights=W.numpy())),
    ("put bfloat16 into the name of the file", lambda: raw_bfloat16("a.npy"), lambda: raw_bfloat16("a_bfloat16.npy")),
    ("torch.set_printoptions(threshold=10**9)", lambda: printed(LARGE), lambda: printed(LARGE, threshold=10**9)),
    ("give --decimal-comma", lambda: write("a.csv", "0,25;0,75\n1;0\n"), None, given(), given("--decimal-comma")),
    ("--first-line says which", lambda: write("a.csv", "0,1\n0.25,0.75\n1,0\n"), None, given(), given("--first-line", "names")),
    ("--first-column says which", lambda: write("a.csv", "0,0.2,0.8\n1,1,0\n2,0,1\n"), None, given(), given("--first-column", "names")),
    ("remove_parametrizations", lambda: saved(with_norm().state_dict()), lambda: saved(without_norm().state_dict()),
     layer("--heads", "2"), layer("--heads", "2")),
    ("save x.astype(\"float32\")", lambda: raw_bfloat16("a.npy"), lambda: savez(weights=W.numpy().astype("float32"))),
    ("put e4m3 or e5m2 into the name of the file", lambda: raw_float8("a.npy"), lambda: raw_float8("a_e4m3.npy")),
    ("save tensor.dequantize()", lambda: saved(quantized()), lambda: saved(quantized().dequantize())),
    ("save them alone", lambda: saved(argparse.Namespace(weights=W)), lambda: saved(W)),
    ("unpack it with gunzip", lambda: packed(gzip), lambda: unpacked(gzip)),
    ("unpack it with unxz", lambda: packed(lzma), lambda: unpacked(lzma)),
    ("numpy.savez (h5py reads them)", lambda: write("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(600)), lambda: savez(weights=W.numpy())),
    ("write it as .csv", lambda: write("a.parquet", b"PAR1" + bytes(8)), lambda: write("a.csv", "0.25,0.75\n1,0\n")),
    ("weights=FILE:0 takes the first", lambda: saved((W, W)), None, given(), lambda file: given()(file + ":0")),
    ("weights=FILE:attentions.0 takes the first", lambda: saved({"attentions": [W, W]}), None, given(), given("--layer", "1")),
    ("numpy.set_printoptions(threshold=10**9)", lambda: write("a.txt", str(numpy.full((50, 50), 0.02))),
     lambda: write("a.txt", numpy.array2string(numpy.full((50, 50), 0.02), threshold=10**9))),
    ("all numbers, as show(stdout, \"text/plain\", x) prints them", lambda: write("a.txt", "2×2 Matrix{Float64}:\n 0.25  …\n ⋮     ⋱\n"),
     lambda: write("a.txt", "2×2 Matrix{Float64}:\n 0.25  0.75\n 1.0   0.0")),
    ("adapter_config.json next to the file", lambda: saved({**Attention().state_dict(), **adapter()}),
     lambda: configured() and saved({**Attention().state_dict(), **adapter()}), layer("--heads", "2"), layer("--heads", "2")),
    ("put both into one folder", lambda: configured() and saved(adapter()), beside_adapter, layer("--heads", "2"), layer("--heads", "2")),
    ("merge_and_unload", lambda: configured() and saved(adapter()), merged, layer("--heads", "2"), layer("--heads", "2")),
    ("--assume llama", of_unknown_type, None, layer(), layer("--assume", "llama")),
    ("--first-line says which", with_table_of_embeddings, None, layer("--heads", "2", "--embeddings", "x.csv"),
     layer("--heads", "2", "--embeddings", "x.csv", "--first-line", "names")),
    ("--heads", lambda: saved(Attention().state_dict()), None, layer(), layer("--heads", "2")),
    ("--ignore tensors", lambda: saved({**Attention().state_dict(), "q_proj.gain": W}), None, layer("--heads", "2"),
     layer("--heads", "2", "--ignore", "tensors")),
    ("transpose the last two axes", lambda: dump(queries=swapped("queries")), lambda: dump(queries=stage("queries")), check(), check()),
    ("transpose, or say --layout htd", lambda: dump(queries=stage("queries")), None, check("--layout", "thd"), check("--layout", "htd")),
    ("transpose, or say --layout htd", lambda: dump(queries=stage("queries")), lambda: dump(queries=lambda all: all["queries"].swapaxes(0, 1)),
     check("--layout", "thd"), check("--layout", "thd")),
    ("--map says which stage it is", lambda: dump(values=stage("weights")), None, check(), check("--map", "values=weights")),
    ("--map NAME=STAGE says which is which", lambda: dump(mine=stage("weights")), None, check(), check("--map", "mine=weights")),
    ("--map NAME= ignores a tensor", lambda: dump(weights=stage("weights"), values=lambda _: numpy.ones((5, 5))), None, check(),
     check("--map", "values=")),
    ("--map \"output=concatenated\" says so", lambda: dump(output=stage("concatenated")), None, check(), check("--map", "output=concatenated")),
    ("--map \"hidden_states=embeddings\" compares it", lambda: dump(attentions=layers("weights", 4), hidden_states=residuals),
     lambda: dump(attentions=layers("weights", 4), hidden_states=layers("embeddings", 5)), check(), check("--map", "hidden_states=embeddings")),
    ("--layer says of which layer they are", of_layer, None, check_whole(), check_whole("--layer", "1")),
]


def follow(words, wrong, right, first=given(), then=given()):
    def run(command):
        done = subprocess.run([PROGRAM, *command], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    for name in os.listdir("."):
        os.remove(name)
    status, message = run(first(wrong()))
    assert words in message, f"{words}: {message}"
    assert status != 0 or "says which" in words or "compares it" in words, f"{words}: status {status}"
    for name in os.listdir(".") if right else ():
        os.remove(name)
    status, message = run(then((right or wrong)()))
    assert status == 0 and words not in message, f"{words}: followed: {status} {message}"


def main():
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for case in ADVICE:
            follow(*case)
        os.chdir("/")
    print(f"{len(ADVICE)} messages were followed")


main()
