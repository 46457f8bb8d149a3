"""attach(): a model in this process, served to a window over a socket as described in docs/protocol.md."""

from __future__ import annotations

import atexit
import hmac
import math
import os
import queue
import re
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .asking import Chat, Questions, with_chat
from .engine import Cancelled, Edits, Engine, LayerPass, Pass, Progress, pooled, rebuild
from .errors import AttnscopeError
from .program import has_display
from .scanning import sums_of
from .shadowing import Site
from .sharding import unwrapped, world
from .showing import log, open_window
from .wire import MAX_GREETING, Arrays, Closed, Frame, WireError, pack, receive

if TYPE_CHECKING:
    from .together import Together

PROTOCOL = 1
ROUNDED = {torch.float16: 2e-3, torch.bfloat16: 1e-2}  # tolerance of cosines and sines
PROGRESS_EVERY, WATCH_EVERY, ENDING = 0.05, 0.5, 5.0  # seconds
MAX_WINDOWS = 8
MAX_WAITING = 256
MAX_PASSES = 64
MAX_TOKENS, MAX_TEXT = 8192, 1 << 18
Answer = tuple[dict[str, Any], Arrays]


class Attached(Questions):
    """The result of attach(). Closing it ends every connection; the model is never changed.

    `busy` is held during each request: `with attached.busy:` around an optimizer step keeps passes consistent."""

    def __init__(self, engine: Engine, tokenizer: Any, port: int | None, together: Together | None = None) -> None:
        self.engine, self.tokenizer, self.token = engine, tokenizer, secrets.token_urlsafe(24)
        self.together = together
        self.description = Answers(engine, tokenizer).description()
        self.busy = threading.Lock()
        self.connections: set[Connection] = set()
        self._free = threading.Semaphore(MAX_WINDOWS)
        self._folder = ""
        if port is None and hasattr(socket, "AF_UNIX"):
            self._folder = tempfile.mkdtemp(prefix="attnscope-")  # of mode 0700
            self.address = os.path.join(self._folder, "model")
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(self.address)
        else:
            try:
                self._listener = socket.create_server(("127.0.0.1", port or 0))
            except (OSError, OverflowError) as error:
                why = error.strerror if isinstance(error, OSError) and error.strerror else error
                raise AttnscopeError(f"Port {port} of 127.0.0.1 cannot be used: {why}.") from None
            self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._listener.listen()
        self._closed = threading.Event()
        threading.Thread(target=self._accept, name="attnscope accept", daemon=True).start()
        self._watching = threading.Thread(target=self._watch, name="attnscope watch", daemon=True)
        self._watching.start()
        atexit.register(self.close)  # a thread inside PyTorch while Python ends would abort the process

    def __repr__(self) -> str:
        return f"attached {type(self.engine.original).__name__} at {self.address}"

    @property
    def edits(self) -> str:
        """What a window has changed, as a program that repeats it on `model` and prints the next tokens: exec(attached.edits)."""
        return next((c.answers.program for c in self.connections if c.answers.program), "")

    def wait(self) -> None:
        """Answers windows until close(); of a model of several ranks, every rank must call it."""
        if self.together is None:
            self._closed.wait()
            return
        try:
            self.together.wait()
        except AttnscopeError:
            self.close()
            raise

    def serve(self) -> bool:
        """Answers what waits, between two steps of training; of a model of several ranks, every rank must call it.

        Returns False once rank 0 has closed. A model of one process is served by threads, so there is nothing to do."""
        if self.together is None:
            return not self._closed.is_set()
        with self.busy:
            return self.together.serve()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self._free.acquire()  # further ones wait in the backlog
            connection = Connection(self, peer)
            self.connections.add(connection)
            threading.Thread(target=connection.read, name="attnscope read", daemon=True).start()

    def _watch(self) -> None:
        """Notifies the windows when parameters have changed, so that they reread their texts."""
        last = self.engine.state()
        while not self._closed.wait(WATCH_EVERY):
            with self.busy:
                if self.together is None:  # the ranks notice changes together
                    self.engine.notice()
                state = self.engine.state()
            if state != last:
                last = state
                for connection in list(self.connections):
                    connection.tell(state)

    def leave(self, connection: Connection) -> None:
        self.connections.discard(connection)
        if self.together is not None:
            self.together.leave(connection)
        self._free.release()

    def open_window(self, text: str = "", *, chat: Chat | None = None) -> None:
        """Opens another window on the model, in a separate process; text, or the messages of a chat, is its first text."""
        text = with_chat(self.tokenizer, text, chat)
        if not text and hasattr(self.tokenizer, "example"):
            text = self.tokenizer.example(self.description["n_context"], self.engine.n_vocabulary)
        log = Path(tempfile.mkdtemp(prefix="attnscope-")) / "messages.log"
        more = ["--text", text] if text else []
        open_window(["attach", self.address, *more], log, {"ATTNSCOPE_TOKEN": self.token})

    def close(self) -> None:
        """Ends every connection. The windows keep what they display."""
        if self.together is not None:
            self.together.closing = True  # the other ranks are told in serve() and wait()
        atexit.unregister(self.close)
        self._closed.set()
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() alone does not
        except OSError:
            pass
        self._listener.close()
        for connection in list(self.connections):
            connection.close()
        self._watching.join(ENDING)
        until = time.monotonic() + ENDING
        while self.connections and time.monotonic() < until:
            time.sleep(0.01)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class OtherRank(Questions):
    """The result of attach() on a rank other than 0, which has neither socket nor window."""

    address = token = edits = ""

    def __init__(self, engine: Engine, tokenizer: Any, together: Together) -> None:
        self.engine, self.tokenizer, self.busy, self.together = engine, tokenizer, threading.Lock(), together
        self.description = Answers(engine, tokenizer).description()

    def __repr__(self) -> str:
        return f"attached {type(self.engine.original).__name__} on rank {self.together.rank}"

    def wait(self) -> None:
        """Answers on this rank until rank 0 closes."""
        self.together.wait()

    def serve(self) -> bool:
        """Answers what waits on rank 0; returns False once that has closed."""
        with self.busy:
            return self.together.serve()

    def close(self) -> None:
        """Ends nothing: rank 0 does."""

    def __enter__(self) -> OtherRank:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def engine_of(model: Any, logits: Callable[[Tensor], Any] | None = None) -> Engine:
    """Returns what reads texts with a model: of transformers, or any other."""
    model = unwrapped(model)
    if logits is None and hasattr(model, "config") and hasattr(model, "set_attn_implementation"):
        return Engine(model)
    from .own_models import OwnEngine

    return OwnEngine(model, logits)


def attach(
    model: Any, tokenizer: Any = None, *, encode: Any = None, decode: Any = None, logits: Callable[[Tensor], Any] | None = None, port: int | None = None,
) -> Attached | OtherRank:  # fmt: skip
    """Serves a model on a Unix socket, or on a port of 127.0.0.1 (0: a free one). Returns at once.

    Of a job of several ranks, each must call it; only that of rank 0 has an address and a token."""
    if encode is None and decode is not None or encode is not None and tokenizer is not None:
        raise AttnscopeError("Give a tokenizer, or encode= and decode=.")
    if encode is not None:
        from .own_models import Functions

        tokenizer = Functions(encode, decode)
    rank, n = world()
    if n == 1:
        return Attached(engine_of(model, logits), tokenizer, port)
    from .together import Together

    together = Together()
    engine = engine_of(model, logits)
    together.begin(engine, tokenizer)
    return Attached(engine, tokenizer, port, together) if rank == 0 else OtherRank(engine, tokenizer, together)


def attach_window(model: Any, tokenizer: Any, text: str, port: int | None, chat: Chat | None = None, **functions: Any) -> Attached | OtherRank:
    """Does the same and opens a window; without a display, or with a port, prints how to open one."""
    attached = attach(model, tokenizer, port=port, **functions)
    if not isinstance(attached, Attached):
        return attached
    try:
        if port is None and has_display():
            attached.open_window(text, chat=chat)
        else:
            log.warning(f"A window is opened on the model by: ATTNSCOPE_TOKEN={attached.token} attnscope attach {attached.address}")
    except BaseException:
        attached.close()
        raise
    return attached


class Connection:
    """The connection of one window, with a reading and a working thread so that passes can be cancelled."""

    def __init__(self, server: Attached, peer: socket.socket) -> None:
        self.server, self.peer, self.answers = server, peer, Answers(server.engine, server.tokenizer)
        self.waiting: queue.Queue[Frame | None] = queue.Queue(maxsize=MAX_WAITING)
        self.open: set[int] = set()  # requests that wait or are being answered
        self.cancelled: set[int] = set()  # those of them that were cancelled
        self.ended = self.greeted = False
        self.sending = threading.Lock()

    def close(self) -> None:
        try:
            self.peer.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def tell(self, state: int) -> None:
        if self.greeted:
            self._send({"id": 0, "state": told(state)})

    def read(self) -> None:
        worker = None
        try:
            self._greet(receive(self.peer, MAX_GREETING, patience=5))
            worker = threading.Thread(target=self._work, name="attnscope work", daemon=True)
            worker.start()
            while True:
                self._take(receive(self.peer))
        except WireError as error:
            self._send({"id": None, "error": {"code": "malformed", "message": str(error)}})
        except (Closed, OSError):
            pass
        finally:
            self.ended = True  # a running pass ends at its next block
            if worker:
                self.waiting.put(None)
                worker.join(ENDING)
            self.close()
            self.peer.close()
            self.server.leave(self)

    def _greet(self, frame: Frame) -> None:
        given, ours = frame.header.get("token"), self.server.token.encode()
        if frame.header.get("op") != "hello" or type(frame.header.get("id")) is not int:
            raise WireError("the first request must be 'hello'")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), ours):
            raise WireError("that is not the right token")
        state = told(self.server.engine.state())
        self._send({"id": frame.header["id"], **self.server.description, "state": state})
        self.greeted = True

    def _take(self, frame: Frame) -> None:
        h = frame.header
        if not isinstance(h.get("op"), str) or type(h.get("id")) is not int:
            raise WireError("a request needs 'op' and 'id'")
        if h["op"] == "cancel":
            if type(h.get("request")) is int and h["request"] in self.open:
                self.cancelled.add(h["request"])
            self._send({"id": h["id"]})
            return
        if h["op"] in ("tokens", "pieces", "edits"):  # the window waits for these while the user types; they need no pass
            header, arrays = self._answer(frame)
            self._send({"id": h["id"], **header}, arrays)
            return
        self.open.add(h["id"])
        try:
            self.waiting.put_nowait(frame)
        except queue.Full:
            self.open.discard(h["id"])
            self._send({"id": h["id"], "error": {"code": "busy", "message": "too many requests are waiting"}})

    def _work(self) -> None:
        torch.set_grad_enabled(False)  # of this thread alone
        while (frame := self.waiting.get()) is not None:
            header, arrays = self._answer(frame)
            self.open.discard(frame.header["id"])
            self.cancelled.discard(frame.header["id"])
            self._send({"id": frame.header["id"], **header}, arrays)

    def _answer(self, frame: Frame) -> Answer:
        op, operations = frame.header["op"], self.answers.operations(self._progress(frame))
        try:
            require(op in operations, f"there is no operation {op[:40]!r}")
            if op in ("tokens", "pieces", "edits"):
                return operations[op](frame)
            self._require_wanted(frame)
            if self.server.together is not None:
                return self.server.together.answer(self, frame)
            with self.server.busy, short_switch_interval():
                return operations[op](frame)
        except Exception as error:  # a model's own code may raise anything; the connection goes on
            return failure(*refusal(error))

    def _require_wanted(self, frame: Frame) -> None:
        if self.ended or frame.header["id"] in self.cancelled:
            raise Cancelled

    def _progress(self, frame: Frame) -> Progress:
        last = time.monotonic()

        def progress(done: int, of: int) -> None:
            nonlocal last
            self._require_wanted(frame)
            if time.monotonic() - last > PROGRESS_EVERY:
                last = time.monotonic()
                self._send({"id": frame.header["id"], "progress": [done, of]})

        return progress

    def _send(self, header: dict[str, Any], arrays: Arrays | None = None) -> None:
        try:
            data = pack(header, arrays)
        except (WireError, ValueError) as error:  # an answer too large, or NaN in a header
            data = pack({"id": header.get("id"), "error": {"code": "failed", "message": str(error)}})
        try:
            with self.sending:
                self.peer.sendall(data)
        except OSError:
            pass


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Lowers the thread switch interval to 0.5 ms. PyTorch releases the GIL in each operation and, next to a cell of pure
    Python, gets it back only after 5 ms: hundreds of operations would take seconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, 0.0005))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def failure(code: str, message: str) -> Answer:
    return {"error": {"code": code, "message": message}}, {}


def refusal(error: Exception) -> tuple[str, str]:
    """Returns the code and the message of an error."""
    if isinstance(error, AttnscopeError):
        return "refused", str(error)
    if isinstance(error, Cancelled):
        return "cancelled", "the request was cancelled"
    return "failed", f"{type(error).__name__}: {str(error)[:300]}"


class Answers:
    """Answers to one window. Its passes are private and kept until the window forgets them."""

    def __init__(self, engine: Engine, tokenizer: Any = None) -> None:
        self.engine, self.tokenizer = engine, tokenizer
        self.passes: dict[int, Pass] = {}
        self.program = ""  # of the window's edits, as code

    def operations(self, progress: Progress) -> dict[str, Callable[[Frame], Answer]]:
        return {
            "tokens": self.tokens, "pieces": self.pieces, "run": lambda f: self.run(f, progress), "layer": self.layer, "parameters": self.parameters,
            "maps": self.maps, "next": self.next, "lens": self.lens, "points": self.points, "unembed": self.unembed,
            "stream": self.stream, "forget": self.forget, "edits": self.edits,
        }  # fmt: skip

    # ---- the model and its tokens ------------------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        e, model = self.engine, self.engine.original
        paths = {m: name for name, m in e.model.named_modules()}
        causal = recognized(e.run(torch.arange(3, 6, device=e.device) % e.n_vocabulary).layers[0].mask, 3)[0] != "none"
        return {
            "protocol": PROTOCOL, "model": type(model).__name__, "family": e.family,
            "dtype": str(e.dtype).removeprefix("torch."), "device": str(e.device),
            "attention": e.own_implementation if e.own else "eager", "difference_from_own": e.difference_from_own if math.isfinite(e.difference_from_own) else None,
            "n_vocabulary": e.n_vocabulary, "n_context": self._n_context(), "n_blocks": e.n_calls, "causal": causal,
            "d_model": e.d_model,
            "n_parameters": sum(p.numel() for p in model.parameters()),
            "n_tokens": min(len(self.tokenizer), e.n_vocabulary) if hasattr(self.tokenizer, "__len__") else e.n_vocabulary,
            "text": self.tokenizer is not None, "mask_token": getattr(self.tokenizer, "mask_token_id", None),
            "predicts": e.predicts, "state": told(e.state()),
            "layers": [{"path": s.path, "heads": s.n_heads, "kv_heads": s.n_kv_heads, "d_head": s.d_head, "d_value": s.d_value,
                        "block": s.call, "not_editable": s.problem, "modules": modules_of(s, paths)} for s in e.sites],
            "source": str(getattr(getattr(model, "config", None), "_name_or_path", "") or ""),
        }  # fmt: skip

    def _n_context(self) -> int:
        return min(self.engine.n_context or MAX_TOKENS, MAX_TOKENS)

    def tokens(self, frame: Frame) -> Answer:
        text = field(frame, "text", str)
        require(len(text) <= MAX_TEXT, f"the text has {len(text):,} characters, more than {MAX_TEXT:,}")
        offsets: list[tuple[int, int]] | None = None  # in characters
        if self.tokenizer is None:
            words = [m for m in re.finditer(r"\S+", text)]
            require(all(w[0].isdecimal() and len(w[0]) < 10 for w in words), "without a tokenizer a text is token IDs with spaces between them")
            ids = np.array([int(w[0]) for w in words], np.int64)
            offsets = [w.span() for w in words]
        else:
            options = {"return_offsets_mapping": True} if getattr(self.tokenizer, "is_fast", False) else {}
            encoded = self.tokenizer(text, **options)
            ids, offsets = np.array(encoded["input_ids"], np.int64), encoded.get("offset_mapping")
        largest = int(ids.max(initial=0))
        require(largest < self.engine.n_vocabulary,
                f"the tokenizer is of another model: its token {largest} is beyond the vocabulary of {self.engine.n_vocabulary}")  # fmt: skip
        header, spelled = self._told(ids.tolist())
        return {**header, "ends": ends_in(text, offsets, spelled, header["special"])}, {"ids": ids}

    def pieces(self, frame: Frame) -> Answer:
        return self._told(self._ids(frame, 4096).tolist())[0], {}

    def _told(self, ids: list[int]) -> tuple[dict[str, Any], list[bytes]]:
        """Returns the tokens' pieces in the vocabulary, their bytes where different, and whether they are special."""
        if self.tokenizer is None:
            pieces, spelled = [str(i) for i in ids], [f" {i}".encode() for i in ids]
        else:
            pieces = [raw or f"[{i}]" for i, raw in zip(ids, self.tokenizer.convert_ids_to_tokens(ids))]
            spelled = [bytes_of(self.tokenizer.decode([i]), raw) for i, raw in zip(ids, pieces)]
        special = set(getattr(self.tokenizer, "all_special_ids", ()))
        told = [None if b == p.encode() else b.hex() for p, b in zip(pieces, spelled)]
        return {"pieces": pieces, "bytes": told, "special": [i in special for i in ids]}, spelled

    # ---- passes ------------------------------------------------------------------------------------------------------

    def run(self, frame: Frame, progress: Progress) -> Answer:
        number, ids = field(frame, "pass", int), self._ids(frame, self._n_context())
        require(number not in self.passes, f"there is a pass {number} already")
        require(len(self.passes) < MAX_PASSES, f"{MAX_PASSES} passes are kept: forget one first")
        n_layers = frame.header.get("n_layers")
        require(n_layers is None or index(n_layers, 1 << 31), "'n_layers' must be a number of layers")
        edits = self._edits(frame, len(ids))
        made = self.engine.run(torch.tensor(ids, device=self.engine.device), edits, n_layers, self.passes.values(), progress)
        for block, residual in enumerate(made.residuals):
            if not residual.isfinite().all():
                where = f"before block {block}" if block < self.engine.n_calls else "behind the last block"
                raise AttnscopeError(f"numbers of the residual stream {where} are not finite")
        self.passes[number] = made
        return {"computed_from": made.computed_from, "layers": [p.number for p in made.layers], "state": told(made.state)}, {}

    def _edits(self, frame: Frame, n_tokens: int) -> dict[int, Edits]:
        made: dict[int, Edits] = {}
        for edit in field(frame, "edits", list):
            n = edit.get("layer") if isinstance(edit, dict) else None
            require(index(n, len(self.engine.sites)) and n not in made, "each edit is of one layer, and each layer has one")
            assert isinstance(n, int)
            site, off = self.engine.sites[n], edit.get("heads_off", [])
            require(isinstance(off, list) and all(index(h, site.n_heads) for h in off), f"layer {n} has no such heads")
            output, d_model = frame.arrays.get(f"output.{n}"), self.engine.d_model
            if output is not None:
                require("output" in site.matrices, f"the output of layer {n} cannot be set: {site.problem}")
                require(output.shape == (n_tokens, d_model) and output.dtype == np.float32 and bool(np.isfinite(output).all()),
                        f"the output of layer {n} must be {n_tokens} × {d_model} finite numbers, F32")  # fmt: skip
            made[n] = Edits(frozenset(off), None if output is None else torch.tensor(output))
        return made

    def edits(self, frame: Frame) -> Answer:
        self.program = field(frame, "program", str)
        return {}, {}

    def forget(self, frame: Frame) -> Answer:
        self.passes.pop(field(frame, "pass", int), None)
        return {}, {}

    # ---- contents of a pass ------------------------------------------------------------------------------------------

    def maps(self, frame: Frame) -> Answer:
        """Returns a layer's heads: weights in blocks, roles, and what each adds to the residual stream at a row."""
        a, p, block = self._layer_pass(frame), self._pass(frame), field(frame, "block", int)
        require(0 < block <= MAX_TOKENS, "'block' must be 1 to 8,192")
        weights = a.weights().float()
        arrays = {"maps": to_numpy(pooled(weights, block)), "roles": roles(weights, p.ids).cpu().numpy()}
        added = a.added(self._row(frame))
        if added is not None:
            arrays["added"] = to_numpy(added)
        word, visible = recognized(a.mask, len(p.ids), a.window)
        if visible is not None:
            arrays["visible"] = to_numpy(pooled(visible[None], block)[0], torch.uint8)
        return {"mask": word}, arrays

    def layer(self, frame: Frame) -> Answer:
        """Returns a layer's input in a pass and, if it was computed, how its queries, keys and values were made."""
        p, n = self._pass(frame), self._layer(frame)
        require(n < len(p.inputs), f"the pass ends before layer {n}")
        arrays = {"inputs": to_numpy(p.inputs[n])}
        if n >= len(p.layers):
            return {}, arrays
        a = p.layers[n]
        mask, visible = recognized(a.mask, len(p.ids), a.window)
        header: dict[str, Any] = {"window": a.window, "scale": float(a.scale), "softcap": a.softcap, "mask": mask, "not_editable": a.site.problem}
        for name, t in {"queries": a.queries, "keys": a.keys, "values": a.values, "sinks": a.sinks}.items():
            if t is not None:
                arrays[name] = to_numpy(t)
        if mask == "given" and visible is not None:
            arrays["visible"] = to_numpy(visible, torch.uint8)
        if not a.site.problem:
            r = rebuild(a)
            header |= {"difference": r.difference, "not_rebuilt": r.problem}
            header["factor"] = a.site.matrices["query"].factor * a.site.matrices["key"].factor if r.rotary is None else 1.0
            header["norms"] = {k: {"rule": v.rule, "epsilon": v.epsilon} for k, v in r.norms.items()}
            for k, v in r.norms.items():
                arrays[f"{k}_norm.weight"] = to_numpy(v.weight)
                if v.bias is not None:
                    arrays[f"{k}_norm.bias"] = to_numpy(v.bias)
            if r.rotary:
                header["rotary"] = r.rotary.pairs
                known = (b for name, b in self.engine.original.named_buffers() if "inv_freq" in name)
                if (found := r.rotary.frequencies(known, ROUNDED.get(a.queries.dtype, 1e-3))) is not None:
                    arrays["frequencies"] = to_numpy(found)
                arrays["cosines"], arrays["sines"] = to_numpy(r.rotary.cosines), to_numpy(r.rotary.sines)
        return header, arrays

    def parameters(self, frame: Frame) -> Answer:
        """Returns W_q, W_k, W_v (d_model × heads · d_head), W_o and biases of a layer, for x·W + b."""
        site = self.engine.sites[self._layer(frame)]
        require(not site.problem, f"{site.path} is not editable: {site.problem}")
        arrays = {f"{name}.weight": to_numpy(m.weight()) for name, m in site.matrices.items()}
        return {}, arrays | {f"{n}.bias": to_numpy(b) for n, m in site.matrices.items() if (b := m.bias()) is not None}

    def stream(self, frame: Frame) -> Answer:
        """Returns a residual stream number through a layer: entering its block, as attention reads it, the output
        projection's result, and leaving the block."""
        p, n, row, column = self._pass(frame), self._layer(frame), self._row(frame), field(frame, "column", int)
        require(0 <= column < self.engine.d_model, f"there is no column {column}")
        a, block = self._layer_pass(frame), self.engine.sites[n].call
        require(block + 1 < len(p.residuals), f"the pass ends in layer {n}")
        read: dict[str, Tensor | None] = {"entering": p.residuals[block][0], "input": p.inputs[n],
                                          "attention": a.output, "leaving": p.residuals[block + 1][0]}  # fmt: skip
        return {k: None if t is None else float(t[row, column]) for k, t in read.items()}, {}

    # ---- prediction --------------------------------------------------------------------------------------------------

    def next(self, frame: Frame) -> Answer:
        """Returns the logits of all tokens after a row."""
        p, row = self._complete(frame), self._row(frame)
        return {}, {"logits": to_numpy(self.engine.next(p, row, frame.header.get("exact") is not False))}

    def lens(self, frame: Frame) -> Answer:
        """Returns the logits if the model ended before each later layer's block; the last row is `next`, but for rounding."""
        return {}, {"logits": to_numpy(self.engine.head(self._points(frame)))}

    def points(self, frame: Frame) -> Answer:
        """Returns the residual stream at a row after each layer, as `lens` projects it."""
        return {}, {"rows": to_numpy(self._points(frame))}

    def unembed(self, frame: Frame) -> Answer:
        """Returns the logits of rows of the residual stream after the last layer."""
        rows, d_model = frame.arrays.get("rows"), self.engine.d_model
        require(rows is not None and rows.dtype == np.float32 and rows.ndim == 2 and rows.shape[1] == d_model and len(rows) > 0,
                f"the array 'rows' must be n × {d_model}, F32")  # fmt: skip
        self._require_prediction()
        return {}, {"logits": to_numpy(self.engine.head(torch.tensor(rows, device=self.engine.device, dtype=self.engine.dtype)))}

    def _points(self, frame: Frame) -> Tensor:
        p, row = self._complete(frame), self._row(frame)
        return torch.stack([p.residuals[e][0, row] for e in [s.call for s in self.engine.sites[1:]] + [self.engine.n_calls]])

    def _require_prediction(self) -> None:
        require(self.engine.predicts, "the model has no output embeddings: nothing is predicted")

    def _complete(self, frame: Frame) -> Pass:
        p = self._pass(frame)
        self._require_prediction()
        require(len(p.layers) == len(self.engine.sites), "the pass has not read all layers")
        return p

    # ---- checks of requests ------------------------------------------------------------------------------------------

    def _ids(self, frame: Frame, limit: int) -> np.ndarray[Any, np.dtype[Any]]:
        ids, n = frame.arrays.get("ids"), self.engine.n_vocabulary
        require(ids is not None and ids.dtype == np.int64 and ids.ndim == 1, "the array 'ids' must be I64 of one dimension")
        assert ids is not None
        require(0 < len(ids) <= limit, f"{len(ids)} tokens; the model takes 1 to {limit}")
        require(0 <= ids.min() and ids.max() < n, f"a token is not in the vocabulary of {n}")
        return ids

    def _pass(self, frame: Frame) -> Pass:
        number = field(frame, "pass", int)
        require(number in self.passes, f"there is no pass {number}")
        require(self.passes[number].state == self.engine.state(), "the parameters of the model have changed since this text was read")
        return self.passes[number]

    def _layer(self, frame: Frame) -> int:
        n = field(frame, "layer", int)
        require(index(n, len(self.engine.sites)), f"there is no layer {n}")
        return n

    def _layer_pass(self, frame: Frame) -> LayerPass:
        p, n = self._pass(frame), self._layer(frame)
        require(n < len(p.layers), f"the pass ends before layer {n}")
        return p.layers[n]

    def _row(self, frame: Frame) -> int:
        row = field(frame, "row", int)
        require(index(row, len(self._pass(frame).ids)), f"there is no token {row}")
        return row


def told(state: int) -> int:
    """Returns a parameter state's number as it is sent, never negative."""
    return state % (1 << 63)


def ends_in(text: str, offsets: list[tuple[int, int]] | None, spelled: list[bytes], special: list[bool]) -> list[int]:
    """Returns where each token's part of the text ends, in bytes of UTF-8; the parts join to the text. A character of
    several tokens belongs to the last of them."""
    ends, end, at, spent = [], 0, 0, 0  # in characters; `at` in bytes
    for k, token in enumerate(spelled):
        words = token.decode(errors="replace")
        if offsets is not None:
            begin_of_next = offsets[k + 1][0] if k + 1 < len(offsets) and offsets[k + 1][1] else len(text)
            end = max(end, min(offsets[k][1], begin_of_next))
        elif text.startswith(words, end):
            end += len(words)
        elif not special[k] and (found := text.find(words.strip(), end)) >= 0:
            end = found + len(words.strip())
        at, spent = at + len(text[spent:end].encode()), end
        ends.append(at)
    last = max((k for k in range(len(spelled)) if not special[k]), default=None)
    if last is not None:
        ends[last:] = [len(text.encode())] * (len(ends) - last)
    return ends


BYTES = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that byte-level vocabularies write as they are
OTHERS = [b for b in range(256) if b not in set(BYTES)]
BYTE_OF = {chr(b): b for b in BYTES} | {chr(256 + k): b for k, b in enumerate(OTHERS)}  # Radford et al. 2019


def bytes_of(text: str, piece: str) -> bytes:
    """Returns a token's bytes from its decoded text and its vocabulary piece: part of a character has no text, and
    sentencepiece tokenizers drop the space that a piece begins with."""
    if text and "\ufffd" not in text:
        return (f" {text}" if piece.startswith("\u2581") and not text.startswith(" ") else text).encode()
    if (fallback := re.fullmatch("<0x([0-9A-F]{2})>", piece)) is not None:
        return bytes.fromhex(fallback[1])
    found = [BYTE_OF.get(c) for c in piece]
    return piece.encode() if None in found else bytes(b for b in found if b is not None)


def modules_of(site: Site, paths: dict[Any, str]) -> dict[str, Any] | None:
    """Returns each projection's module, the first feature of each head in it, and how many a head has; None where heads are not blocks."""
    told: dict[str, Any] = {}
    for name, heads, width in (("query", site.n_heads, site.d_head), ("key", site.n_kv_heads, site.d_head),
                               ("value", site.n_kv_heads, site.d_value), ("output", site.n_heads, site.d_value)):  # fmt: skip
        matrix = site.matrices.get(name)
        if matrix is None or not hasattr(matrix, "features") or matrix.module not in paths:
            return None
        features = matrix.features.view(heads, width)
        if not torch.equal(features, features[:, :1] + torch.arange(width)):
            return None
        told[name] = [paths[matrix.module], features[:, 0].tolist(), width]
    return told


def field(frame: Frame, name: str, of: type) -> Any:
    value = frame.header.get(name)
    require(type(value) is of, f"'{name}' must be of type {of.__name__}")
    return value


def require(holds: bool, message: str) -> None:
    if not holds:
        raise AttnscopeError(message)


def index(value: Any, n: int) -> bool:
    return type(value) is int and 0 <= value < n


def to_numpy(t: Tensor, dtype: torch.dtype = torch.float32) -> np.ndarray[Any, np.dtype[Any]]:
    return t.detach().to(dtype).cpu().numpy()


def roles(weights: Tensor, ids: Tensor) -> Tensor:
    """Returns roles of heads, H × 6 in float64: mean weights on the previous token, the first token, the query itself,
    earlier copies of its token, and the tokens after those (induction); and the mean row entropy in bits. NaN where a
    text has no such keys. Source of the fourth and fifth: Olsson et al. 2022."""
    sums, counts = sums_of(weights, ids)
    return (sums / torch.tensor(counts, dtype=sums.dtype, device=sums.device))[:, :6]


def recognized(mask: Tensor | None, n: int, known_window: int | None = None) -> tuple[str | dict[str, int], Tensor | None]:
    """Returns the mask's name or parameters if it is a known kind, and its unmasked positions if any are masked.
    A known sliding window is reported even if the text is shorter."""
    if mask is None:
        return "none", None
    visible = (mask > torch.finfo(mask.dtype).min / 2).cpu()
    visible = visible if visible.ndim == 2 else visible.any(0)
    if visible.all():
        return "none", None
    distance = torch.arange(n)[:, None] - torch.arange(n)
    causal = distance >= 0
    if torch.equal(visible, causal):
        return {"causal_window": known_window} if known_window else "causal", visible
    window = int(visible.sum(1).max())
    return ({"causal_window": window} if torch.equal(visible, causal & (distance < window)) else "given"), visible
