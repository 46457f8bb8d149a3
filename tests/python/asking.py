"""Shared by scripts that run the check on their own tensors."""
import json
import re
import subprocess

import numpy as np


def bfloat16(x):
    """Returns the numbers rounded to bfloat16, to nearest even."""
    x = np.asarray(x, np.float64)
    bits = np.where(np.isfinite(x), x, 0).astype(np.float32).view(np.uint32).astype(np.uint64)
    kept = (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(x), kept.astype(np.float64), x)


def save_half(path, tensors, precision):
    """Writes tensors as safetensors in float16 or bfloat16."""
    header, data = {}, b""
    for name, numbers in tensors.items():
        if precision == "float16":
            part = np.asarray(numbers).astype("<f2").tobytes()
        else:
            part = (bfloat16(numbers).astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
        header[name] = dict(dtype={"float16": "F16", "bfloat16": "BF16"}[precision], shape=np.shape(numbers), data_offsets=[len(data), len(data) + len(part)])
        data += part
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def numbers_of(sentence):
    return [float(x) for x in re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", sentence.replace("−", "-"))]


def asked(program, name, session, dump):
    """Returns the check's report on a dump, or None and its stderr if it failed; `name` is both files' name without extension."""
    session_file, dump_file = f"{name}.json", f"{name}.npz"
    with open(session_file, "w", encoding="utf-8") as file:
        json.dump(session, file)
    np.savez(dump_file, **dump)
    run = subprocess.run([program, "check", session_file, dump_file, "--json"], capture_output=True, text=True)
    return (json.loads(run.stdout), "") if run.returncode in (0, 1) and run.stdout else (None, run.stderr)
