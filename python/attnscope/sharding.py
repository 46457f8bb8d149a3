"""Models larger than one device: parameters that are elsewhere between calls, and heads that ranks share.

accelerate moves the parameters of a module in for its call. Tensor parallelism gives each rank some heads, FSDP a part of
every parameter. Here is how the whole of either is read. Every rank must call what gathers parts, in the same order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn

from .errors import AttnscopeError


def unwrapped(model: Any) -> Any:
    """Returns the model inside DistributedDataParallel or DataParallel."""
    while isinstance(model, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
        model = model.module
    return model


def world() -> tuple[int, int]:
    """Returns the rank of this process and the number of processes; 0 and 1 without torch.distributed."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def is_sharded(t: Any) -> bool:
    """Tells whether a tensor is a DTensor."""
    return hasattr(t, "full_tensor")


def offload_of(module: Any) -> Any:
    """Returns accelerate's hook that keeps a module's parameters elsewhere between its calls, or None."""
    hook = getattr(module, "_hf_hook", None)
    return next((h for h in (hook, *getattr(hook, "hooks", ())) if getattr(h, "offload", False)), None)


def whole_of(t: Any) -> Any:
    """Returns all of a tensor of which this rank may have a part."""
    return t.full_tensor() if is_sharded(t) else t


def local_of(t: Any) -> Any:
    """Returns this rank's part of a tensor."""
    return t.to_local() if is_sharded(t) else t


def whole(module: Any, name: str) -> Any:
    """Returns a whole parameter, also one of which this rank has a part or that is elsewhere between calls."""
    parameter = module._parameters.get(name)
    if parameter is not None and parameter.is_meta and (hook := offload_of(module)) is not None:
        return hook.weights_map[name].to(hook.execution_device)
    return whole_of(parameter)


def bare(module: Any) -> Any:
    """Returns a module whose forward computes with whole parameters, without what moves or gathers them."""
    plain = object.__new__(type(module))
    plain.__dict__.update(module.__dict__)
    plain.__dict__.pop("forward", None)
    plain.__dict__["_parameters"] = {name: whole(module, name) for name in module._parameters}
    return plain


def local_part(numbers: Tensor, parameter: Any, size: int) -> Tensor:
    """Returns the numbers of this rank's rows of a sharded parameter."""
    if len(numbers) == size or not is_sharded(parameter):
        return numbers[:size]
    from torch.distributed.tensor import distribute_tensor

    placements = [p if p.is_shard(0) else torch.distributed.tensor.Replicate() for p in parameter.placements]
    return distribute_tensor(numbers[:, None], parameter.device_mesh, placements, src_data_rank=None).to_local()[:, 0]


class Ranks:
    """The ranks that share the heads of a tensor-parallel model; one rank where nothing is sharded."""

    def __init__(self, model: nn.Module) -> None:
        self.group: Any = None
        self.n, self.rank = 1, 0
        fsdp = getattr(sys.modules.get("torch.distributed.fsdp"), "FSDPModule", ())
        self.fsdp = [m for m in model.modules() if isinstance(m, fsdp)]
        for parameter in model.parameters():
            mesh = getattr(parameter, "device_mesh", None)
            names = getattr(mesh, "mesh_dim_names", None) or ()
            if mesh is not None and ("tp" in names or mesh.ndim == 1 and not self.fsdp):
                mesh = mesh["tp"] if mesh.ndim > 1 else mesh
                self.group, self.n, self.rank = mesh.get_group(), mesh.size(), mesh.get_local_rank()
                break

    def parts(self, x: Tensor) -> list[Tensor]:
        """Returns the tensors that the ranks have, which must be of one shape."""
        if self.n == 1:
            return [x]
        x = x.contiguous()
        shape = torch.tensor([x.ndim, *x.shape, *(0 for _ in range(8 - x.ndim))], device=x.device)
        shapes = [torch.empty_like(shape) for _ in range(self.n)]
        torch.distributed.all_gather(shapes, shape, group=self.group)
        if any(not torch.equal(s, shape) for s in shapes):
            raise AttnscopeError(f"The heads do not divide evenly among {self.n} ranks, which is not supported.")
        parts = [torch.empty_like(x) for _ in range(self.n)]
        torch.distributed.all_gather(parts, x, group=self.group)
        return parts

    def owners(self, x: Tensor) -> tuple[int, ...]:
        """Returns the ranks whose parts make the whole: one where all have the same, as each rank where they share heads."""
        parts = self.parts(x)
        return tuple(i for i, part in enumerate(parts) if i == 0 or not torch.equal(part, parts[i - 1]))

    def joined(self, x: Tensor, dim: int, owners: tuple[int, ...]) -> Tensor:
        """Returns the parts of the owners along an axis."""
        if len(owners) == 1:
            return x
        parts = self.parts(x)
        return torch.cat([parts[i] for i in owners], dim)

    def own(self, n: int, owners: tuple[int, ...]) -> slice:
        """Returns which of n joined rows this rank has."""
        place, size = sum(i <= self.rank for i in owners) - 1, n // len(owners)
        return slice(place * size, (place + 1) * size)

    @contextmanager
    def at_rest(self, model: nn.Module) -> Iterator[None]:
        """Gives up, after a pass, the parameters that FSDP has gathered for it, also if the pass fails."""
        gradients = [(p, p.grad) for p in model.parameters() if p.grad is not None] if self.fsdp else []
        try:
            yield
        except BaseException:
            for module in self.fsdp:
                with suppress(RuntimeError, AttributeError):  # it is not the outermost, or this is an older PyTorch
                    module.reset_iter_state()
            for parameter, gradient in gradients:
                parameter.grad = gradient
            raise
        finally:
            for module in self.fsdp:
                module.reshard()
