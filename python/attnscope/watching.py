"""What every capture of this process shares: transformers' attention functions, and code that torch.compile made.

Both are replaced when the first capture starts and restored when the last one ends, whatever the order and the threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

import torch


class Recorder(Protocol):
    def wrapped(self, function: Callable[..., Any], implementation: str) -> Callable[..., Any]:
        """Returns an attention function of transformers that records its arguments."""


class _Watched:
    """The running captures by thread, and how to end what was replaced for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[tuple[int, Recorder]] = []
        self._undo: dict[str, Callable[[], None]] = {}

    def add(self, recorder: Recorder) -> None:
        with self._lock:
            self._running.append((threading.get_ident(), recorder))
            try:
                self._replace("transformers", self._watch_transformers)
                self._replace("torch._dynamo", self._run_eagerly)
            except BaseException:
                self._leave(recorder)
                raise

    def remove(self, recorder: Recorder) -> None:
        with self._lock:
            self._leave(recorder)

    def _leave(self, recorder: Recorder) -> None:
        self._running = [(thread, r) for thread, r in self._running if r is not recorder]
        if not self._running:
            for undo in self._undo.values():
                undo()
            self._undo.clear()

    def _replace(self, library: str, replace: Callable[[], Callable[[], None] | None]) -> None:
        if library in sys.modules and library not in self._undo:
            if undo := replace():
                self._undo[library] = undo

    def of_this_thread(self) -> list[Recorder]:
        here = threading.get_ident()
        return [r for thread, r in self._running if thread == here]

    def _watch_transformers(self) -> Callable[[], None] | None:
        from transformers import modeling_utils

        interface = getattr(modeling_utils, "AttentionInterface", None)
        if interface is None or not hasattr(interface, "get_interface"):
            return None  # older releases: the functions they call are observed anyway
        original = interface.get_interface

        def get_interface(self: Any, implementation: str, default: Callable[..., Any]) -> Callable[..., Any]:
            function = original(self, implementation, default)
            for recorder in watched.of_this_thread():
                function = recorder.wrapped(function, implementation)
            return function

        interface.get_interface = get_interface
        return lambda: setattr(interface, "get_interface", original)

    @staticmethod
    def _run_eagerly() -> Callable[[], None] | None:
        """Code fused by torch.compile cannot be observed: it runs eagerly meanwhile."""
        if not hasattr(torch.compiler, "set_stance"):
            return None
        stance = torch.compiler.set_stance("force_eager")
        stance.__enter__()
        return lambda: stance.__exit__(None, None, None)


watched = _Watched()


def is_in_compiled_code() -> bool:
    """Tells whether a function of torch.compile is being called, other than the one that flex_attention makes for itself."""
    frame = sys._getframe()
    while caller := frame.f_back:
        if frame.f_code.co_name == "compile_wrapper" and caller.f_globals.get("__name__") != "torch.nn.attention.flex_attention":
            return True
        frame = caller
    return False
