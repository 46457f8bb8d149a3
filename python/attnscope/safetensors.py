"""Reading and writing .safetensors files with NumPy alone."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import Array, BFloat16
from .errors import AttnscopeError

_NAMES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_LARGEST_HEADER = 100_000_000


def write(path: Path, tensors: Mapping[str, Array | BFloat16], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a file atomically: under another name first, then renamed."""
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    blocks, at = [], 0
    for name, array in tensors.items():
        numbers, kind = (array.bits, "BF16") if isinstance(array, BFloat16) else (array, _kind_of(name, array))
        block = np.ascontiguousarray(numbers).tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + len(block)]}
        blocks.append(block)
        at += len(block)
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # numbers begin at a multiple of 8
    write_whole(path, b"".join([len(text).to_bytes(8, "little"), text, *blocks]))


def _kind_of(name: str, array: Array) -> str:
    kind = next((k for k, dtype in _NAMES.items() if dtype == array.dtype), None)
    if kind is None:
        raise AttnscopeError(f"{name} is of type {array.dtype}, which is not written to .safetensors files.")
    return kind


def write_whole(path: Path, content: bytes) -> None:
    """Replaces a file by new content; a failure leaves the old one as it was."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".attnscope-")
    except OSError as error:
        raise AttnscopeError(f"{path} cannot be written: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise AttnscopeError(f"{path} cannot be written: {error.strerror}.") from None


def read(path: Path) -> tuple[dict[str, Array | BFloat16], dict[str, str]]:
    """Returns tensors and metadata of a file. Lengths in the file are not trusted."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise AttnscopeError(f"{path} cannot be read: {error.strerror}.") from None
    damaged = AttnscopeError(f"{path} is not a whole .safetensors file.")
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > min(len(content) - 8, _LARGEST_HEADER):
        raise damaged
    try:
        header = json.loads(content[8 : 8 + size])
        metadata = header.pop("__metadata__", {})
        return {name: _tensor(content[8 + size :], entry) for name, entry in header.items()}, metadata
    except (ValueError, KeyError, TypeError, AttributeError):
        raise damaged from None


def _tensor(data: bytes, entry: dict[str, object]) -> Array | BFloat16:
    offsets: Any = entry["data_offsets"]
    begin, end = offsets
    if not 0 <= begin <= end <= len(data):
        raise ValueError
    block = data[begin:end]
    if entry["dtype"] == "BF16":
        return BFloat16(np.frombuffer(block, "<u2").reshape(entry["shape"]))  # type: ignore[call-overload]
    return np.frombuffer(block, _NAMES[entry["dtype"]]).reshape(entry["shape"])  # type: ignore[index,call-overload]
