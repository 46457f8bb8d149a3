"""A shadow of a PyTorch model, and how its attention is laid out.

A shadow has its own module objects around the *same* parameters. Hooks and the choice of the attention function live on
the shadow alone: the model itself never has a hook, a changed config or a swapped weight, and can be used from other
threads during a pass.

The layout is found by *counting through attention*, not by names of modules. One token at position 0 goes through the
shadow while every projection inside an attention module returns the numbers 1, 2, 3 … At position 0 rotary embeddings
are the identity, and QK norms are bypassed, so each column of the queries, keys and values that reach the attention
function tells which output feature of which projection it is: split, fused, interleaved by head or transposed. The
output projection is found the same way.
"""

from __future__ import annotations

import copy
import functools
import types
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.pytorch_utils import Conv1D

from .sharding import Ranks, is_sharded, local_of, local_part, offload_of, whole

class Shadow:
    """A shadow, `model`; `refresh()` applies later changes of the original."""

    def __init__(self, original: nn.Module) -> None:
        original = getattr(original, "_orig_mod", original)  # of torch.compile(model)
        memo: dict[int, Any] = {}
        self.pairs: list[tuple[nn.Module, nn.Module]] = []
        self.model = self._shadow(original, memo)
        for _, twin in self.pairs:
            twin.__dict__ |= {k: rebound(v, memo) for k, v in twin.__dict__.items() if k not in OWN}

    def _shadow(self, module: nn.Module, memo: dict[int, Any]) -> nn.Module:
        if id(module) in memo:
            return memo[id(module)]  # shared modules, such as ALBERT's layers, stay shared
        twin = memo[id(module)] = object.__new__(type(module))
        self.pairs.append((module, twin))
        twin.__dict__.update(module.__dict__)
        twin.__dict__["_buffers"] = dict(module._buffers)
        twin.__dict__["_modules"] = {
            name: None if child is None else self._shadow(child, memo) for name, child in module._modules.items()}
        for name, value in module.__dict__.items():
            if name in HOOKS:
                twin.__dict__[name] = value.copy()  # the user's own hooks still run
            elif isinstance(value, PretrainedConfig):
                twin.__dict__[name] = copy.deepcopy(value, memo)
        twin.__dict__["training"] = False
        twin.__dict__["_compiled_call_impl"] = None
        return twin

    def refresh(self) -> None:
        """Copies references to replaced buffers, as after `model.to(device)`; the `_parameters` dict is shared."""
        for original, twin in self.pairs:
            twin.__dict__["_buffers"] = dict(original._buffers)


OWN = {"_parameters", "_buffers", "_modules"}
HOOKS = {name for name in vars(nn.Module()) if "_hooks" in name}


def rebound(value: Any, memo: dict[int, Any]) -> Any:
    """Rebinds a method or partial of an original module, as accelerate and torch.compile put into `forward`, to its twin."""
    if isinstance(eager := getattr(value, "_torchdynamo_orig_callable", None), types.MethodType):
        value = eager  # model.forward = torch.compile(model.forward)
    if isinstance(value, types.MethodType) and id(value.__self__) in memo:
        return types.MethodType(value.__func__, memo[id(value.__self__)])
    if isinstance(value, functools.partial):
        arguments = (memo.get(id(a), a) for a in value.args)
        partial = functools.partial(rebound(value.func, memo), *arguments, **value.keywords)
        return functools.update_wrapper(partial, memo.get(id(value), value)) if hasattr(value, "__wrapped__") else partial
    return value


class Skipped(nn.Module):
    """Replaces a decoder block that is not computed; the last one before a change supplies the residual stream."""

    def __init__(self, block: nn.Module, residual: Tensor | None, returns_tuple: bool) -> None:
        super().__init__()
        self.__dict__["block"] = block  # not a child; attributes such as attention_type are read from it
        self.residual, self.returns_tuple = residual, returns_tuple

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["block"], name)

    def forward(self, hidden_states: Tensor, *_: Any, **__: Any) -> Any:
        output = hidden_states if self.residual is None else self.residual
        return (output,) if self.returns_tuple else output


@dataclass(frozen=True)
class Matrix:
    """A projection as x·W + b with the heads concatenated, somewhere inside a parameter of the model."""

    module: Any  # nn.Linear or Conv1D
    features: Tensor  # [column of W] → output feature of the module; of the output projection [row of W] → input feature
    is_output: bool = False
    factor: float = 1.0  # attention receives factor · (x·W + b): OPT scales its queries early

    def weight(self) -> Tensor:  # d_in × d_out
        w = whole(self.module, "weight")
        w = w if isinstance(self.module, Conv1D) else w.T
        i = self.features.to(w.device)
        return w[i] if self.is_output else w[:, i]

    def bias(self) -> Tensor | None:
        b = whole(self.module, "bias")
        return b if b is None or self.is_output else b[self.features.to(b.device)]


@dataclass
class Site:
    """One attention of the model, numbered in order of computation."""

    path: str
    module: nn.Module
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_value: int
    call: int = 0  # the block call it belongs to
    matrices: dict[str, Matrix] = field(default_factory=dict)  # query, key, value, output
    norms: dict[str, nn.Module] = field(default_factory=dict)  # of queries and keys
    problem: str = ""  # why its parameters cannot be edited
    q_owners: tuple[int, ...] = (0,)  # ranks whose queries make all of them
    kv_owners: tuple[int, ...] = (0,)


def is_matrix(module: nn.Module) -> bool:
    """Tells whether a module is a projection with readable and editable entries: not a quantized one."""
    if not isinstance(module, (nn.Linear, Conv1D)):
        return False
    w = module.weight
    plain = is_sharded(w) or type(w.data) is Tensor
    return plain and w.is_floating_point() and w.ndim == 2 and (not w.is_meta or offload_of(module) is not None)


class Survey:
    """The attention function and hooks of the counting pass."""

    def __init__(self, model: nn.Module, ranks: Ranks) -> None:
        self.ranks = ranks
        self.paths = {m: name for name, m in model.named_modules()}
        self.sites: list[Site] = []
        self.codes: dict[nn.Module, dict[nn.Module, int]] = {}  # [attention][projection] → its first number
        self.outputs: set[nn.Module] = set()  # output projections
        self.bypassed: list[tuple[nn.Module, Tensor]] = []
        self.entering: Any = None
        self.pending: tuple[Site, Tensor] | None = None  # contexts on their way to the output projection

    def attend(self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any = None, **_: Any) -> Any:
        owners = self.ranks.owners(query), self.ranks.owners(key)
        query, key, value = (self.ranks.joined(x, 1, o) for x, o in zip((query, key, value), (*owners, owners[1])))
        site = Site(self.paths[module], module, query.shape[1], key.shape[1], query.shape[-1], value.shape[-1])
        site.q_owners, site.kv_owners = owners
        self.sites.append(site)
        if module in self.codes:
            for name, tensor in (("query", query), ("key", key), ("value", value)):
                self.read(site, name, tensor)
        n = site.n_heads * site.d_value
        output = torch.arange(1.0, n + 1, device=query.device, dtype=torch.float32 if self.codes else query.dtype)
        self.pending, self.bypassed = (site, output), []
        return output.view(1, 1, site.n_heads, site.d_value)[:, :, self.ranks.own(site.n_heads, site.q_owners)], None

    def read(self, site: Site, name: str, tensor: Tensor) -> None:
        values = tensor.detach().double().flatten().cpu()
        gaps = values.unique().diff()
        step = gaps.min().item() if len(gaps) else 1.0
        numbers = (values / step).round().long() if step > 0 else torch.zeros(len(values), dtype=torch.long)
        owners = [(m, first) for m, first in self.codes[site.module].items()
                  if numbers.min() >= first and numbers.max() < first + features_of(m)]
        if step <= 0 or len(owners) != 1 or not torch.allclose(values, numbers.double() * step, rtol=1e-5):
            site.problem = site.problem or (
                f"what enters attention as {name} is not the columns of one plain matrix (it may be quantized, "
                "offloaded, adapted, gated or computed in two steps)")
            return
        module, first = owners[0]
        site.matrices[name] = Matrix(module, numbers - first, factor=step)
        for norm, seen in self.bypassed:
            if torch.isin(seen.double().flatten().cpu(), numbers.double()).all():
                site.norms[name] = norm

    def hook(self) -> list[Any]:
        """Installs the counting hooks; a plain pass must have found the attention modules before."""
        handles = []
        for attention in {site.module for site in self.sites}:
            first, codes = 1, {}
            for module in attention.modules():
                if is_matrix(module):
                    codes[module] = first
                    handles.append(module.register_forward_hook(self.numbered(first)))
                    first += features_of(module)
                elif not list(module.children()) and module is not attention:
                    handles.append(module.register_forward_pre_hook(self.in_own_dtype))
                    handles.append(module.register_forward_hook(self.bypass))
            self.codes[attention] = codes
        handles += [m.register_forward_pre_hook(self.find_output) for m in self.paths if is_matrix(m)]
        self.sites, self.pending = [], None
        return handles

    def numbered(self, first: int) -> Any:
        def answer(module: nn.Module, _: Any, output: Tensor) -> Tensor | None:
            if module in self.outputs:
                return None
            n = torch.arange(first, first + features_of(module), dtype=torch.float32, device=output.device)
            axis = 1 if isinstance(module, Conv1D) else 0
            part = n if len(n) == output.shape[-1] else local_part(n, module.weight if axis == 0 else module.weight.T, output.shape[-1])
            return part.expand(output.shape)
        return answer

    def in_own_dtype(self, module: nn.Module, inputs: tuple[Any, ...]) -> Any:
        self.entering = inputs[0] if inputs else None
        parameter = next(module.parameters(), None)
        return (inputs[0].to(parameter.dtype), *inputs[1:]) if inputs and parameter is not None else None

    def bypass(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        if self.pending or len(inputs) != 1 or not isinstance(output, Tensor) or output.shape != inputs[0].shape:
            return None
        if not isinstance(module, (nn.Dropout, nn.Identity)):
            self.bypassed.append((module, self.entering))
        return self.entering

    def find_output(self, module: Any, inputs: tuple[Any, ...]) -> Any:
        if not inputs or not isinstance(inputs[0], Tensor):
            return None
        if self.pending:
            site, numbers = self.pending
            self.pending = None
            self.outputs.add(module)
            got = local_of(inputs[0]).flatten()
            if got.shape != numbers.shape and len(site.q_owners) > 1:
                got = self.ranks.joined(got, 0, site.q_owners)
            if got.shape == numbers.shape and (got.float().sort().values == numbers).all():
                position = torch.empty(len(numbers), dtype=torch.long)  # [context feature] → input feature
                position[got.long().cpu() - 1] = torch.arange(len(numbers))
                site.matrices["output"] = Matrix(module, position, is_output=True)
            else:
                site.problem = site.problem or "something lies between its heads and the output projection"
        return (inputs[0].to(module.weight.dtype), *inputs[1:])  # the numbers are float32 in a model of any dtype


def features_of(module: Any) -> int:
    return int(module.weight.shape[1 if isinstance(module, Conv1D) else 0])
