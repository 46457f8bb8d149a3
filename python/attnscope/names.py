"""Names of arguments: those of tensors, and earlier ones that still work."""

from __future__ import annotations

import difflib
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypedDict, TypeVar

from .errors import AttnscopeError

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Lets a function take its arguments by their earlier names too, with a warning."""

    def with_old_names(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old, new in names.items():
                if old in kwargs:
                    warnings.warn(f"{old}= is called {new}= now.", DeprecationWarning, stacklevel=2)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return with_old_names


class Stages(TypedDict, total=False):
    """What show(), html() and others take by name about tensors."""

    queries: Any
    keys: Any
    values: Any
    weights: Any
    causal: bool | None
    mask: Any
    scale: float | None
    softcap: float | None
    sinks: Any
    dropout: float
    dropout_mask: Any
    tokens: Sequence[Any] | None
    key_tokens: Sequence[Any] | None
    q: Any  # queries, keys and values
    k: Any
    v: Any
    attn_mask: Any  # mask and causal as PyTorch spells them
    is_causal: bool | None


_SHORT = {"q": "queries", "k": "keys", "v": "values", "attn_mask": "mask", "is_causal": "causal"}


def full_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options under their full names; raises for a name that there is not."""
    known = [*Stages.__annotations__]
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(n for n in known if n not in _SHORT)}."
            raise AttnscopeError(f"There is no argument {name!r}; {hint}")
    return {_SHORT.get(name, name): x for name, x in options.items()}
