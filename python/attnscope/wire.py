"""Frames between the window and an attached model: a JSON header and named arrays, as described in docs/protocol.md.

NumPy alone. Every length is checked before use, and nothing received is executed or unpickled."""

from __future__ import annotations

import json
import math
import select
import socket
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import Array

MAGIC = b"ATNS"
PREFIX = struct.Struct("<4sIQ")  # magic, bytes of the header, bytes of the payload
MAX_HEADER = 1 << 20
MAX_PAYLOAD = 256 << 20
MAX_GREETING = 4 << 10  # of a whole frame, before the window has sent its token
MAX_ARRAYS = 1024
CHUNK = 1 << 20

DTYPES = {name: np.dtype(code) for name, code in {
    "F16": "<f2", "F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1", "BOOL": "?"}.items()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

Arrays = dict[str, Array]


class WireError(Exception):
    """The bytes are not a frame of this protocol; the connection ends."""


class Closed(Exception):
    """The other side has closed the connection between two frames."""


@dataclass
class Frame:
    header: dict[str, Any]
    arrays: Arrays = field(default_factory=dict)


def pack(header: dict[str, Any], arrays: Arrays | None = None) -> bytes:
    """Returns one frame. The payload is a safetensors file, or empty without arrays."""
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    payload = pack_arrays(arrays) if arrays else b""
    if len(text) > MAX_HEADER or len(payload) > MAX_PAYLOAD:
        raise WireError(f"frame too large: header {len(text)}, payload {len(payload)} bytes")
    return PREFIX.pack(MAGIC, len(text), len(payload)) + text + payload


def pack_arrays(arrays: Arrays) -> bytes:
    index: dict[str, Any] = {}
    parts: list[bytes] = []
    offset = 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array)
        index[name] = {"dtype": NAMES[data.dtype], "shape": list(array.shape),
                       "data_offsets": [offset, offset + data.nbytes]}
        parts.append(data.tobytes())
        offset += data.nbytes
    text = json.dumps(index, separators=(",", ":")).encode()
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


def unpack_arrays(payload: memoryview) -> Arrays:
    """Returns views into the payload. Throws WireError unless every byte belongs to exactly one array."""
    if not payload:
        return {}
    if len(payload) < 8:
        raise WireError("payload: shorter than its length field")
    (length,) = struct.unpack_from("<Q", payload)
    if length > min(MAX_HEADER, len(payload) - 8):
        raise WireError(f"payload: header of {length} bytes in a payload of {len(payload)}")
    index = parse_json(payload[8:8 + length], "payload")
    index.pop("__metadata__", None)
    if len(index) > MAX_ARRAYS:
        raise WireError(f"payload: {len(index)} arrays, at most {MAX_ARRAYS}")
    data, arrays, expected = payload[8 + length:], {}, 0
    for name, entry in sorted(index.items(), key=lambda item: begin_of(*item)):
        dtype, shape = DTYPES.get(str(entry.get("dtype"))), entry.get("shape")
        if dtype is None or not isinstance(shape, list) or not is_sizes(shape) or len(shape) > 8:
            raise WireError(f"payload: array {name!r} has no valid dtype, shape or offsets")
        begin, end = entry["data_offsets"]
        if begin != expected or end > len(data) or end - begin != math.prod(shape) * dtype.itemsize:
            raise WireError(f"payload: bytes {begin} to {end} do not fit array {name!r} of shape {shape}")
        arrays[name] = np.frombuffer(data[begin:end], dtype).reshape(shape)
        expected = end
    if expected != len(data):
        raise WireError(f"payload: {len(data) - expected} bytes belong to no array")
    return arrays


def begin_of(name: str, entry: Any) -> tuple[int, int]:
    offsets: Any = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not is_sizes(offsets) or len(offsets) != 2:
        raise WireError(f"payload: array {name!r} has no data_offsets")
    return offsets[0], offsets[1]


def is_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(v) is int and 0 <= v < 1 << 48 for v in value)


def parse_json(text: memoryview, what: str) -> dict[str, Any]:
    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")
    try:
        value = json.loads(bytes(text).decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise WireError(f"{what}: not JSON ({str(error)[:80]})") from None
    if not isinstance(value, dict):
        raise WireError(f"{what}: JSON, but not an object")
    return value


def receive(connection: socket.socket, limit: int | None = None, patience: float = 30) -> Frame:
    """Waits for one frame. Sizes are checked before memory is allocated, and memory grows with the bytes
    received. Once a frame has begun, a silence of `patience` seconds ends the connection."""
    first = receive_exactly(connection, 1, patience) if limit else connection.recv(1)
    if not first:
        raise Closed
    prefix = first + receive_exactly(connection, PREFIX.size - 1, patience)
    magic, n_header, n_payload = PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise WireError("not an attnscope frame: wrong first bytes")
    if n_header > MAX_HEADER or n_payload > MAX_PAYLOAD or (limit and n_header + n_payload > limit):
        raise WireError(f"frame too large: header {n_header}, payload {n_payload} bytes")
    header = parse_json(memoryview(receive_exactly(connection, n_header, patience)), "header")
    arrays = unpack_arrays(memoryview(receive_exactly(connection, n_payload, patience)))
    return Frame(header, arrays)


def receive_exactly(connection: socket.socket, n: int, patience: float) -> bytes:
    buffer, readable = bytearray(), select.poll()
    readable.register(connection, select.POLLIN)
    while len(buffer) < n:
        if not readable.poll(1000 * patience):
            raise WireError(f"no byte for {patience:g} s in the middle of a frame")
        part = connection.recv(min(CHUNK, n - len(buffer)))
        if not part:
            raise WireError(f"connection closed {n - len(buffer)} bytes before the end of a frame")
        buffer += part
    return bytes(buffer)
