"""From recorded projections to an editable model: which columns of x·W + b are the queries, keys and values.

No module is known by name. A stage's columns are searched for by their numbers among the results of projections; QK
norms and rotary embeddings in between are found by probing and fitting. Everything is recomputed and compared with the
model's numbers; a stage that does not agree stays given, with a sentence that says why."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .arrays import Array, half_of, to_numpy
from .attention import Attention, Editable, Linear
from .errors import AttnscopeError

_MAX_PARAMETERS = 250_000_000  # per attention; the program would need gigabytes for more


@dataclass(eq=False)
class LinearCall:
    """A projection that was computed: out = x·W + b."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    out: Tensor
    is_in_out: (
        bool  # the weight is [d_in, d_out], as in Conv1D and nn.Parameter, not [d_out, d_in] as in nn.Linear
    )
    part: tuple[int, int] = (0, 1)  # of the columns, which of how many equal parts that processes share
    state: list[Any] | None = None  # of the parameters when they were used

    def rows(self) -> Array:
        return _numbers(self.out).reshape(-1, self.out.shape[-1])

    def remembered(self, states: dict[int, tuple[Any, ...]]) -> LinearCall:
        """Returns the call without its graph, and with the state of its parameters, which is computed once for each."""
        if self.state is not None:
            return self
        for t in (self.weight, self.bias):
            if t is not None and (id(t) not in states or states[id(t)][0] != version_of(t)):
                states[id(t)] = state_of(t)
        state = [states[id(t)] for t in (self.weight, self.bias) if t is not None]
        return replace(self, x=self.x.detach(), out=self.out.detach(), state=state)

    def is_still(self, tolerance: float) -> bool:
        """Tells whether x·W + b still is the result: neither its tensors nor its parameters were overwritten since."""
        if self.state is None or [state_of(t) for t in (self.weight, self.bias) if t is not None] != self.state:
            return False
        x, out = (t.reshape(-1, t.shape[-1]) for t in (self.x, self.out))
        some = np.unique(np.linspace(0, len(x) - 1, 8).astype(int)).tolist()
        with torch.no_grad():
            again = x[some].double() @ (self.weight.double() if self.is_in_out else self.weight.double().T)
            again = again if self.bias is None else again + self.bias.double().reshape(-1)
        gap, size = (again - out[some].double()).abs().max(), out[some].double().abs().max()
        return bool(gap <= tolerance * max(float(size), 1e-30))

    def sequences_first(self, n: int) -> LinearCall:
        """Returns the call with its rows ordered by sequence, of one with rows ordered by token."""

        def swapped(t: Tensor) -> Tensor:
            return t.reshape(-1, n, t.shape[-1]).transpose(0, 1)

        if self.out.numel() % (n * self.out.shape[-1]):
            return self
        return replace(self, x=swapped(self.x), out=swapped(self.out))

    def in_this_process(self) -> LinearCall | None:
        """Returns this process's columns of a projection of DTensors; None where it has summands and not results."""
        if not hasattr(self.weight, "to_local"):
            return self
        whole: tuple[Any, ...] = (self.x, self.weight, self.bias, self.out)  # DTensors
        if any(p.is_partial() for p in whole[3].placements):
            return None
        x, weight, bias, out = (None if t is None else t.to_local() for t in whole)
        assert x is not None and weight is not None and out is not None
        mesh, axis = whole[1].device_mesh, 1 if self.is_in_out else 0
        shared = [i for i, p in enumerate(whole[1].placements) if p.is_shard(axis)]
        part = (mesh.get_local_rank(shared[0]), mesh.size(shared[0])) if shared else (0, 1)
        return LinearCall(x, weight, bias, out, self.is_in_out, part)

    def columns(self, which: Array, factor: float = 1.0) -> Linear:
        """Returns some output columns as a Linear."""
        return LearnedLinear(self, which, None, factor)

    def input_rows(self, which: Array) -> Linear:
        """Returns the projection with its input features in another order."""
        return LearnedLinear(self, None, which, 1.0)


class LearnedLinear(Linear):
    """Columns of a model's parameter, read on demand, so that a capture of a large model holds no copy."""

    def __init__(self, call: LinearCall, columns: Array | None, rows: Array | None, factor: float) -> None:
        self._parameter, self._bias, self._is_in_out = (
            call.weight.detach(),
            None if call.bias is None else call.bias.detach(),
            call.is_in_out,
        )
        self._state = call.state or [state_of(t) for t in self._tensors()]
        self._columns, self._rows, self._factor = columns, rows, factor

    def __reduce__(self) -> Any:  # a copy has the numbers themselves
        return Linear, (self.weight, self.bias)

    def _tensors(self) -> list[Tensor]:
        return [self._parameter] if self._bias is None else [self._parameter, self._bias]

    @property
    def shape(self) -> tuple[int, int]:
        n_in, n_out = self._parameter.shape if self._is_in_out else self._parameter.shape[::-1]
        return (n_in if self._rows is None else len(self._rows), n_out if self._columns is None else len(self._columns))

    @property
    def weight(self) -> Array:  # type: ignore[override]
        if [state_of(t) for t in self._tensors()] != self._state:
            raise AttnscopeError("the parameters have changed since it was recorded, so its stages are given")
        w = self._parameter if self._is_in_out else self._parameter.T
        if self._columns is not None:
            w = w[:, torch.as_tensor(self._columns, device=w.device)]
        if self._rows is not None:
            w = w[torch.as_tensor(self._rows, device=w.device)]
        return _numbers(w) * self._factor

    @property
    def bias(self) -> Array | None:  # type: ignore[override]
        if self._bias is None:
            return None
        b = self._bias.reshape(-1)
        return (
            _numbers(b if self._columns is None else b[torch.as_tensor(self._columns, device=b.device)]) * self._factor
        )


def version_of(t: Tensor) -> int:
    return 0 if t.is_inference() else t._version


def state_of(t: Tensor) -> tuple[Any, ...]:
    """Returns what changes when a tensor's numbers do, also through `.data`: its version, and sums of its bits by row and column."""
    t = t.detach()
    version = version_of(t)
    if type(t) is not Tensor or t.is_meta or t.layout != torch.strided or not t.is_floating_point():
        return (version,)
    if t.untyped_storage().nbytes() == 0 < t.numel():  # FSDP has freed it
        return (version, "freed")
    if t.device.type == "cpu" and t.is_contiguous() and t.ndim and t.shape[-1] * t.element_size() % 8 == 0:
        # Tensor.numpy() would lock the storage, which FSDP resizes.
        bytes_of_t = (ctypes.c_int64 * (t.numel() * t.element_size() // 8)).from_address(t.data_ptr())
        words = np.ctypeslib.as_array(bytes_of_t).reshape(-1, t.shape[-1] * t.element_size() // 8)
        return version, words.sum(1).tobytes(), np.bitwise_xor.reduce(words, 0).tobytes()
    bits = t.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()])
    rows = bits.reshape(-1, bits.shape[-1]) if bits.ndim else bits.reshape(1, 1)
    return version, *(rows.sum(i, dtype=torch.int64).cpu().numpy().tobytes() for i in (0, 1))


def _numbers(t: Tensor) -> Array:
    return np.array(to_numpy(t)).astype(np.float64)


@dataclass
class _Found:
    """A stage as columns of a projection, a norm and a rotation."""

    call: LinearCall
    columns: Array
    factor: float = 1.0
    norm: dict[str, Any] | None = None
    rotary: dict[str, Any] | None = None


@dataclass(eq=False)
class Search:
    """What was computed before an attention and after it, to look for its projections when they are asked for."""

    calls: list[LinearCall]  # of the innermost module that has them, or all that are remembered
    norms: list[nn.Module]
    tolerance: float
    output: tuple[LinearCall, Array, dict[str, Any]] | None = None  # the output projection, the order of its rows, settings

    def __call__(self, a: Attention) -> None:
        with torch.no_grad():
            try:
                self._find_editable(a)
            except AttnscopeError as error:
                a.not_editable = str(error)
                return
        if self.output is not None and a.editable is not None and self.output[0].weight.numel() <= _MAX_PARAMETERS:
            call, order, settings = self.output
            a.editable.output = call.input_rows(order)
            a.editable.settings |= settings

    def _find_editable(self, a: Attention) -> None:
        """Sets the attention's projections if its queries, keys and values can be traced back to them."""
        assert a.queries is not None and a.keys is not None and a.values is not None
        if a.values.shape[-1] != a.queries.shape[-1]:
            raise AttnscopeError("its values are of another width than its queries")
        if a.queries.shape[1] * a.queries.shape[-1] > 16384:
            raise AttnscopeError("it has more columns than a session holds")
        found: dict[str, _Found] = {}
        for name, stage in (("queries", a.queries), ("keys", a.keys), ("values", a.values)):
            one = _find(stage, self.calls, self.norms if name != "values" else [], name != "values", self.tolerance)
            if one is None:
                raise AttnscopeError(f"its {name} are not the columns of one projection, with or without a norm and rotary embeddings")
            found[name] = one
        if a.keys.shape[1] != a.values.shape[1]:
            raise AttnscopeError("its keys and values have different numbers of heads")
        for call in {id(f.call): f.call for f in found.values()}.values():
            if not call.is_still(self.tolerance):
                why = "the parameters have changed since it was recorded, or what they were multiplied with was overwritten, so its stages are given"
                a.notes.append(f"{a.name}: {why}.")
                raise AttnscopeError(why)
        _assemble(a, found)


def shared_heads(a: Attention) -> None:
    """Leaves one of each KV head that was repeated for the query heads that share it."""
    assert a.keys is not None and a.values is not None
    heads = a.keys.shape[1]
    if heads == 1 or a.values.shape[1] != heads:
        return
    for groups in (n for n in range(1, heads) if heads % n == 0):
        repeats = heads // groups
        if all(np.array_equal(s[:, ::repeats, 0], s[:, 1::repeats, 0]) for s in (a.keys, a.values)) and all(
            np.array_equal(np.repeat(s[:, ::repeats], repeats, 1), s) for s in (a.keys, a.values)
        ):
            a.keys, a.values = (np.ascontiguousarray(s[:, ::repeats]) for s in (a.keys, a.values))
            return


def _assemble(a: Attention, found: dict[str, _Found]) -> None:
    q_call, k_call, v_call = (found[n].call for n in ("queries", "keys", "values"))
    size = sum(c.weight.numel() for c in {id(c): c for c in (q_call, k_call, v_call)}.values())
    if size > _MAX_PARAMETERS:
        raise AttnscopeError(f"its projections have {size:,} parameters")
    n, _, n_queries, _ = a.shape
    x = _numbers(q_call.x).reshape(n, n_queries, -1)
    kx, vx = (_numbers(c.x).reshape(n, a.n_keys, -1) for c in (k_call, v_call))
    if kx.shape != vx.shape or not np.array_equal(kx, vx):
        raise AttnscopeError("its keys and values are projected from different inputs")
    source = None if kx.shape == x.shape and np.array_equal(kx, x) else kx
    settings: dict[str, Any] = {}
    q_norm, k_norm = found["queries"].norm, found["keys"].norm
    if q_norm or k_norm:
        if not q_norm or not k_norm or q_norm["rule"] != k_norm["rule"]:
            raise AttnscopeError("only its queries or only its keys are normalized")
        settings["normalise"] = {
            "rule": q_norm["rule"],
            "query": q_norm["weight"],
            "key": k_norm["weight"],
            "epsilon": q_norm["epsilon"],
        }
    q_rotary, k_rotary = found["queries"].rotary, found["keys"].rotary
    if q_rotary or k_rotary:
        if not q_rotary or not k_rotary or q_rotary["pairs"] != k_rotary["pairs"]:
            raise AttnscopeError("only its queries or only its keys are rotated")
        if n_queries != a.n_keys:
            raise AttnscopeError("its rotary positions are not those of a text from its first token on")
        settings["positions"] = {"rotary": q_rotary}
    a.editable = Editable(
        x,
        q_call.columns(found["queries"].columns, found["queries"].factor),
        k_call.columns(found["keys"].columns, found["keys"].factor),
        v_call.columns(found["values"].columns, found["values"].factor),
        source=source,
        settings=settings,
    )
    a.not_editable = ""


# -------------------------------------------------------------------- columns


def _find(
    stage: Array, calls: list[LinearCall], norms: list[nn.Module], may_rotate: bool, tolerance: float
) -> _Found | None:
    n, heads, rows, d = stage.shape
    flat = stage.transpose(0, 2, 1, 3).reshape(n * rows, heads * d).astype(np.float64)
    fitting = [c for c in reversed(calls) if c.out.numel() == n * rows * c.out.shape[-1]]
    for call in fitting:
        out = call.rows()
        if (which := equal_columns(flat, out)) is not None:
            return _Found(call, which)
    for call in fitting:
        if scaled := scaled_columns(flat, call.rows(), tolerance):
            return _Found(call, *scaled)
    if not may_rotate:
        return None
    for call in fitting:
        out = call.rows()
        first = np.arange(n) * rows  # the first token of each sequence has position 0, which is not rotated
        which = equal_columns(flat[first], out[first])
        if which is not None and (
            rotary := fit_rotary(out[:, which].reshape(n, rows, heads, d), stage.transpose(0, 2, 1, 3), tolerance)
        ):
            return _Found(call, which, rotary=rotary)
    for call in fitting:
        for columns in _head_columns(call, heads * d):
            stretched = _stretched(call, columns, stage.transpose(0, 2, 1, 3).astype(np.float64), tolerance)
            if stretched is not None:
                return stretched
    for call in fitting:
        for columns in _head_columns(call, heads * d):
            before = call.rows()[:, columns].reshape(n, rows, heads, d)
            for module in norms:
                if (
                    found := _normed(call, columns, before, module, stage.transpose(0, 2, 1, 3), tolerance)
                ) is not None:
                    return found
    return None


def _stretched(call: LinearCall, columns: Array, wanted: Array, tolerance: float) -> _Found | None:
    """Finds a rotation that also scales, as YaRN's does; the factor goes into the projection."""
    before = call.rows()[:, columns].reshape(wanted.shape)
    lengths, there = np.linalg.norm(wanted, axis=-1), np.linalg.norm(before, axis=-1)
    if not there.all():
        return None
    factor = float(np.median(lengths / there))
    if factor <= 0 or np.abs(lengths - there * factor).max() > tolerance * lengths.max():
        return None
    rotary = fit_rotary(before * factor, wanted, tolerance)
    return _Found(call, columns, factor, rotary=rotary) if rotary else None


def _head_columns(call: LinearCall, width: int) -> list[Array]:
    """Returns candidate column bands of a stage before its norm: all, a third, or q, k, v with fewer KV heads."""
    total = call.out.shape[-1]
    if total == width:
        return [np.arange(width)]
    return (
        [
            np.arange(start, start + width)
            for start in {0, width, total - 2 * width, total - width}
            if 0 <= start <= total - width
        ]
        if total > width
        else []
    )


def equal_columns(wanted: Array, there: Array) -> Array | None:
    """Returns the column that equals each wanted one, or None; duplicates are used in order."""
    if not (there == wanted[:, :1]).all(0).any():  # most results are another projection's
        return None
    places: dict[bytes, list[int]] = {}
    for j, column in enumerate(np.ascontiguousarray(there.T)):
        places.setdefault(column.tobytes(), []).append(j)
    which, used = [], dict.fromkeys(places, 0)
    for column in np.ascontiguousarray(wanted.T):
        key = column.tobytes()
        at = places.get(key)
        if at is None:
            return None
        which.append(at[min(used[key], len(at) - 1)])
        used[key] += 1
    return np.array(which)


def scaled_columns(wanted: Array, there: Array, tolerance: float) -> tuple[Array, float] | None:
    """Returns the columns that equal the wanted ones up to one common factor, and the factor; else None."""
    if len(wanted) < 2:
        return None
    a, b = np.linalg.norm(wanted, axis=0), np.linalg.norm(there, axis=0)
    if not (a > 0).all() or not b.any():
        return None
    cosines = (wanted / a).T @ (there / np.where(b > 0, b, 1))
    which = cosines.argmax(1)
    factors = a / np.where(b[which] > 0, b[which], np.inf)
    factor = float(np.median(factors))
    if (
        len(set(which)) != len(which)
        or not np.abs(wanted - there[:, which] * factor).max() <= tolerance * np.abs(wanted).max()
    ):
        return None
    return which, factor


# -------------------------------------------------------------------- norms and rotary embeddings


def norms_of(modules: list[nn.Module]) -> list[nn.Module]:
    """Returns the norms inside the modules being computed, innermost first."""
    found: list[nn.Module] = []
    for module in reversed(modules):
        found += [m for m in module.children() if "norm" in type(m).__name__.lower() and m not in found]
        if found:
            break
    return found


def _normed(
    call: LinearCall, columns: Array, before: Array, module: nn.Module, wanted: Array, tolerance: float
) -> _Found | None:
    like = next(module.parameters(), torch.empty(0))
    try:
        with torch.no_grad():
            after = _numbers(module.forward(torch.as_tensor(before).to(like)))
            norm = norm_rule(module, before.shape[-1])
    except (RuntimeError, TypeError):
        return None  # it norms all heads at once, or something else
    if norm is None or after.shape != wanted.shape:
        return None
    close = tolerance * max(float(np.abs(wanted).max()), 1e-30)
    if np.abs(after - wanted).max() <= close:
        return _Found(call, columns, norm=norm)
    if np.abs(after[:, 0] - wanted[:, 0]).max() <= close and (rotary := fit_rotary(after, wanted, tolerance)):
        return _Found(call, columns, norm=norm, rotary=rotary)
    return None


def norm_rule(module: nn.Module, width: int) -> dict[str, Any] | None:
    """Finds rule, weight and epsilon of a norm by probing it, whatever its class."""
    like = next(module.parameters(), torch.empty(0))

    def ask(x: Array) -> Array:
        return _numbers(module.forward(torch.as_tensor(x).to(like)[None, None, None]))[0, 0, 0]

    epsilon = next((float(v) for k, v in vars(module).items() if "eps" in k and isinstance(v, float)), 1e-6)
    sign = np.tile([1.0, -1.0], width)[:width]  # mean 0 and variance 1 where the width is even
    up, down = ask(sign), ask(-sign)
    if np.abs(up + down).max() > 1e-6:
        return None  # a bias, which sessions do not support
    weight = (up - down) / 2 * sign * np.sqrt(1 + epsilon)
    rule = "layer" if np.allclose(ask(sign + 3), up, atol=1e-2) else "rms"
    return {"rule": rule, "weight": weight.tolist(), "epsilon": epsilon}


def rotate(x: Array, angles: Array, pairs: str) -> Array:
    """Rotates [n, tokens, heads, d] by angles [tokens, pairs]."""
    r = 2 * angles.shape[1]
    part = x[..., :r]
    a, b = (part[..., : r // 2], part[..., r // 2 :]) if pairs == "halves" else (part[..., 0::2], part[..., 1::2])
    c, s = np.cos(angles)[:, None], np.sin(angles)[:, None]
    first, second = a * c - b * s, b * c + a * s
    turned = (
        np.concatenate([first, second], -1) if pairs == "halves" else np.stack([first, second], -1).reshape(part.shape)
    )
    return np.concatenate([turned, x[..., r:]], -1)


def fit_rotary(before: Array, after: Array, tolerance: float) -> dict[str, Any] | None:
    """Returns the rotary embedding that maps before to after, both [n, tokens, heads, d], or None."""
    n, rows, _, d = before.shape
    if rows < 2:
        return None
    after = after.astype(np.float64)
    close = tolerance * float(np.abs(after).max())
    changed = np.flatnonzero(np.abs(after - before).max((0, 1, 2)) > 0)
    last = int(changed[-1]) + 1 if changed.size else 0
    for dimensions in dict.fromkeys([last + last % 2, d, d // 2, d // 4, 3 * d // 4]):
        if dimensions < 2 or dimensions > d or dimensions % 2 or dimensions < last:
            continue
        for pairs in ("halves", "neighbours"):
            frequencies = _frequencies(before[..., :dimensions], after[..., :dimensions], pairs)
            angles = np.arange(rows)[:, None] * frequencies
            if np.abs(rotate(before, angles, pairs) - after).max() <= close:
                rule: dict[str, Any] = {"pairs": pairs}
                if dimensions != d:
                    rule["dimensions"] = dimensions
                for base in _round_bases(frequencies, dimensions):
                    exact = base ** (-np.arange(dimensions // 2) * 2 / dimensions)
                    if np.abs(rotate(before, np.arange(rows)[:, None] * exact, pairs) - after).max() <= close:
                        return {"base": base} | rule
                return rule | {"inverse_frequencies": frequencies.tolist()}
    return None


def _frequencies(before: Array, after: Array, pairs: str) -> Array:
    """Returns each pair's angle per token: estimated from one step, then refined from longer ones."""
    r = before.shape[-1]

    def complex_pairs(x: Array) -> Array:
        return x[..., : r // 2] + 1j * x[..., r // 2 :] if pairs == "halves" else x[..., 0::2] + 1j * x[..., 1::2]

    turns = np.angle((complex_pairs(after) * complex_pairs(before).conj()).sum((0, 2)))  # [tokens, pairs]
    frequencies, step = turns[1], 1
    while (step := step * 2) < len(turns):
        off = turns[step] - frequencies * step
        frequencies = frequencies + (off - 2 * np.pi * np.round(off / (2 * np.pi))) / step
    return frequencies


def _round_bases(frequencies: Array, dimensions: int) -> list[float]:
    """Returns candidate bases of the frequencies, those with few digits first."""
    if len(frequencies) < 2 or not (frequencies > 0).all():
        return []
    base = float(frequencies[1] ** (-dimensions / 2))
    rounded = [float(f"{base:.{digits}g}") for digits in (1, 2, 3)]
    return [r for r in dict.fromkeys(rounded) if r > 1 and abs(np.log(base / r)) < 0.05]


# -------------------------------------------------------------------- the output projection


def find_output(a: Attention, call: LinearCall) -> bool:
    """Tells whether a projection's input is an attention's context vectors; if so, records its result as the output."""
    seen = a.observed.get("contexts")
    if seen is None:
        return False
    n, heads, n_queries, _ = a.shape
    width = seen.shape[-1] * heads
    if call.x.numel() != n * n_queries * width or call.x.shape[-1] != width:
        return False
    settings: dict[str, Any] = {}
    entering = to_numpy(call.x).reshape(n * n_queries, width)
    joined = seen.transpose(0, 2, 1, 3).reshape(n * n_queries, width)
    order: Array | None = np.arange(width) if np.array_equal(joined, entering) else equal_columns(joined, entering)
    if order is None:
        if not np.array_equal(seen.reshape(n * n_queries, width), entering):
            return False
        order, settings = np.arange(width), {"merge_heads": "reshape_without_transpose"}
    record_output(a, call, order, settings)
    return True


def record_output(a: Attention, call: LinearCall, order: Array, settings: dict[str, Any]) -> None:
    """Records the result of an output projection whose input features are context features in this order."""
    a.observed["output"] = _numbers(call.out).reshape(a.n_sequences, a.n_queries, -1)
    if half := half_of(call.out):
        a.halves["output"] = half
    if isinstance(a._search, Search):
        a._search.output = (call, order, settings)
