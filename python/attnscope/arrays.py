"""NumPy arrays from lists, NumPy, PyTorch on any device, JAX and other libraries with DLPack."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import AttnscopeError

Array: TypeAlias = NDArray[Any]


def is_torch(x: object) -> bool:
    """Tells whether an object is a tensor of PyTorch, without importing it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def to_numpy(x: Any, name: str = "the tensor") -> Array:
    """Returns numbers as an array of float64, float32 or bool; narrower floats are widened to float32, integers to float64."""
    if is_torch(x):
        a = _from_torch(x, name)
    elif hasattr(x, "__array__") or isinstance(x, (list, tuple, int, float)):
        try:
            a = np.asarray(x)
        except (TypeError, ValueError) as error:
            raise AttnscopeError(f"{name} cannot be read as an array: {error}.") from None
    elif hasattr(x, "__dlpack__"):
        try:
            a = np.from_dlpack(x)
        except (RuntimeError, BufferError, TypeError) as error:
            raise AttnscopeError(f"{name} cannot be read by DLPack: {error}.") from None
    else:
        raise AttnscopeError(f"{name} is of type {type(x).__name__}, which holds no array of numbers.")
    if a.dtype.name == "bfloat16" or a.dtype == np.float16:  # JAX hands over ml_dtypes' bfloat16
        return np.ascontiguousarray(a.astype(np.float32))
    if a.dtype.kind in "iu":
        return np.ascontiguousarray(a.astype(np.float64))
    if a.dtype not in (np.float32, np.float64, np.bool_):
        raise AttnscopeError(f"{name} is of type {a.dtype}; expected real numbers or booleans.")
    return np.ascontiguousarray(a)


def copied(x: Any, name: str = "the tensor") -> Array:
    """Returns a copy of a tensor's current numbers."""
    if is_torch(x):  # NumPy would lock the storage of a parameter, which FSDP resizes
        return to_numpy(x.detach().clone(), name)
    a = to_numpy(x, name)
    return a if a.flags.owndata else a.copy()


class BFloat16:
    """Numbers rounded to bfloat16, for which NumPy has no type: as an array they are float32."""

    dtype = "bfloat16"

    def __init__(self, bits: Array) -> None:
        self.bits, self.shape = bits, bits.shape

    @classmethod
    def rounded(cls, a: Array) -> BFloat16:
        wide = np.ascontiguousarray(a, np.float32).reshape(a.shape)
        bits = wide.view(np.uint32).astype(np.uint64)
        nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # ties to even
        return cls(np.where(np.isnan(wide), 0x7FC0, nearest).astype("<u2"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        wide = (self.bits.astype(np.uint32) << 16).view(np.float32).reshape(self.shape)
        return wide if dtype is None else wide.astype(dtype)


def _float16(a: Array) -> Array:
    return a.astype(np.float16)


HALVES: dict[str, Callable[[Array], Array | BFloat16]] = {"bfloat16": BFloat16.rounded, "float16": _float16}


def half_of(x: Any) -> str | None:
    """Returns the dtype of a tensor in half precision, None of any other."""
    name = dtype_name(x)
    return name if name in HALVES else None


def stored(a: Array, half: str | None) -> Array | BFloat16:
    """Returns numbers as they were before to_numpy() widened them."""
    return a if half is None else HALVES[half](a)


def dtype_name(x: Any) -> str:
    """Returns the name of a tensor's dtype as in PyTorch and NumPy: "bfloat16", "float32", …"""
    dtype = getattr(x, "dtype", None)
    return str(dtype).removeprefix("torch.") if dtype is not None else "float64"


def _from_torch(x: Any, name: str) -> Array:
    torch = sys.modules["torch"]
    x = x.detach()
    if x.is_meta:
        raise AttnscopeError(f"{name} is on the meta device, so it has a shape and no numbers; load the weights first.")
    if hasattr(x, "full_tensor"):  # a DTensor, sharded between processes
        x = x.full_tensor()
    if x.layout != torch.strided:
        x = x.to_dense()
    if x.is_complex():
        raise AttnscopeError(f"{name} is complex; expected real numbers.")
    if x.is_floating_point() and x.dtype not in (torch.float32, torch.float64):
        x = x.to(torch.float32)
    return np.ascontiguousarray(x.cpu().resolve_neg().numpy())


def as_heads(x: Any, name: str) -> Array:
    """Returns a stage of heads as [sequences, heads, rows, columns]; missing leading axes become 1."""
    a = to_numpy(x, name)
    if not 2 <= a.ndim <= 4:
        raise AttnscopeError(
            f"{name} has the shape {shape_text(a)}; expected [tokens, d_head], [heads, tokens, d_head] or [batch, heads, tokens, d_head]."
        )
    if a.size == 0:
        raise AttnscopeError(f"{name} is empty: its shape is {shape_text(a)}.")
    return a.reshape((1,) * (4 - a.ndim) + a.shape)


def shape_text(a: Any) -> str:
    return "[" + ", ".join(map(str, a.shape)) + "]"
