"""A served model of several ranks: rank 0 has the socket, and every rank computes the answer to each request.

Collective calls must come in the same order on every rank, so no thread of ours calls the model: serve() answers what waits,
between the caller's own steps, and wait() answers until rank 0 closes. Threads only keep signs of life in the job's store."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from .engine import Cancelled, Engine
from .errors import AttnscopeError
from .sharding import world
from .wire import Frame

if TYPE_CHECKING:
    from .serving import Answer, Answers, Connection

PATIENCE = 30.0  # seconds
_BEAT, _SILENT, _ALONE, _IDLE = 1.0, 8.0, 3.0, 1.0  # seconds
_FOLLOWS = 0.2  # seconds: what a window asks next about the same parameters


@dataclass(eq=False)
class _Waiting:
    """A request that waits until every rank comes for it."""

    connection: Connection
    frame: Frame
    answered: queue.Queue[Answer] = field(default_factory=queue.Queue)
    is_taken: bool = False
    is_given_up: bool = False


class Together:
    """What the ranks of a job have in common while they serve a model. Every rank makes one at the same place."""

    engine: Engine
    tokenizer: Any

    def __init__(self) -> None:
        self.rank, self.n = world()
        self.waiting: queue.Queue[_Waiting] = queue.Queue()
        self.answers: dict[int, Answers] = {}  # of each connection
        self.left: list[int] = []  # connections that ended
        self.broken = ""  # why nothing is answered any more
        self.closing, self._steps = False, 0
        self._answering, self._words = False, ""  # an error of this rank alone
        self._store = _store()
        self._store = distributed.distributed_c10d.PrefixStore(f"attnscope/{self._store.add(f'attnscope/{self.rank}', 1)}", self._store)
        self._meet()
        self._group: Any = distributed.new_group(backend="gloo", timeout=timedelta(seconds=PATIENCE))
        self._ended = threading.Event()
        threading.Thread(target=self._beat, name="attnscope beat", daemon=True).start()

    def begin(self, engine: Engine, tokenizer: Any) -> None:
        """Takes the model, whose first passes need every rank."""
        self.engine, self.tokenizer = engine, tokenizer
        self._print = engine.fingerprint()
        engine.epoch = 1

    # ---- the caller's side ---------------------------------------------------------------------------------------------

    def serve(self, timeout: float = 0.0) -> bool:
        """Answers the requests that wait, on all ranks; every rank must call it. Returns False once rank 0 has closed."""
        if self.broken:
            raise AttnscopeError(self.broken)
        item: _Waiting | None = None
        try:
            while True:
                item = self._next(timeout) if self.rank == 0 else None
                said = self._told(item)
                if said is None or said == "closed":
                    break
                self._answering = True
                self._answer_one(item, *said)
                self._answering, timeout = False, _FOLLOWS
        except (RuntimeError, distributed.DistError):
            self._break(f"rank {self.rank}: {self._words}" if self._words else self._who())
            if item is not None:
                item.answered.put(({"error": {"code": "failed", "message": self.broken}}, {}))
            self._ended.set()
            raise AttnscopeError(self.broken) from None
        if said == "closed":
            self.end()
        return said is None

    def wait(self) -> None:
        """Answers requests on all ranks until rank 0 closes."""
        while self.serve(_IDLE):
            pass

    def end(self) -> None:
        self.closing = True
        self._ended.set()

    # ---- the side of a connection's thread, on rank 0 ----------------------------------------------------------------------

    def answer(self, connection: Connection, frame: Frame) -> Answer:
        """Waits until the ranks have answered a request."""
        from .serving import failure

        item, begin = _Waiting(connection, frame), time.monotonic()
        self.waiting.put(item)
        while True:
            try:
                return item.answered.get(timeout=0.5)
            except queue.Empty:
                pass
            if self.broken or self.closing:
                return failure("failed", self.broken or "the model is no longer attached")
            if not item.is_taken and time.monotonic() - begin > PATIENCE:
                item.is_given_up = True
                return failure("failed", f"the ranks did not come to serve() or wait() within {PATIENCE:.0f} s")

    def leave(self, connection: Connection) -> None:
        self.left.append(id(connection))

    # ---- one request, on every rank ------------------------------------------------------------------------------------------

    def _next(self, timeout: float) -> _Waiting | None:
        until = time.monotonic() + timeout
        while not self.closing:
            try:
                item = self.waiting.get(timeout=max(0.0, until - time.monotonic())) if timeout else self.waiting.get_nowait()
            except queue.Empty:
                return None
            if not item.is_given_up:
                item.is_taken = True
                return item
        return None

    def _told(self, item: _Waiting | None) -> Any:
        """Returns the request of rank 0, "closed", or None."""
        self._steps += 1
        self._store.set(f"steps/{self.rank}", str(self._steps))
        left, self.left = self.left, []
        if item is not None:
            said: list[Any] = [(left, id(item.connection), item.frame.header, item.frame.arrays)]
        else:
            said = ["closed" if self.closing else None]
            self.left = left
        distributed.broadcast_object_list(said, src=0, group=self._group)
        return said[0]

    def _answer_one(self, item: _Waiting | None, left: list[int], key: int, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        from .serving import Answers, failure, refusal

        for other in left:
            self.answers.pop(other, None)
        self._agree_on_parameters()
        if item is not None:
            self.answers[key] = item.connection.answers  # its edits are asked for
        answers = self.answers.setdefault(key, Answers(self.engine, self.tokenizer))
        frame, self._words = Frame(header, arrays), ""
        try:
            with torch.no_grad():
                result = answers.operations(self._progress(item))[header["op"]](frame)
        except Exception as error:
            code, self._words = refusal(error)
            result = failure(code, self._words)
            self._store.set(f"error/{self.rank}", f"{self._steps} {self._words}")
        failed = self._failed(bool(self._words))
        self._words = ""
        others = [rank for rank in failed if rank != 0]
        if others and len(failed) < self.n:
            answers.passes.pop(header.get("pass", -1), None)
            result = failure("failed", f"rank {others[0]}: {self._error_of(others[0])}")
        if item is not None:
            item.answered.put(result)

    def _progress(self, item: _Waiting | None) -> Callable[[int, int], None]:
        own = item.connection._progress(item.frame) if item is not None else None

        def progress(done: int, of: int) -> None:  # every rank stops at the same block
            stop = torch.zeros(1, dtype=torch.uint8)
            if own is not None:
                try:
                    own(done, of)
                except Cancelled:
                    stop += 1
            distributed.broadcast(stop, src=0, group=self._group)
            if stop.item():
                raise Cancelled

        return progress

    def _agree_on_parameters(self) -> None:
        """Counts the changes of parameters on any rank, so that all give the same state."""
        self.engine.notice()
        now = self.engine.fingerprint()
        changed = torch.tensor([int(now != self._print)])
        self._print = now
        distributed.all_reduce(changed, group=self._group)
        if changed.item():
            assert self.engine.epoch is not None
            self.engine.epoch += 1

    def _failed(self, did: bool) -> list[int]:
        """Returns the ranks that failed to answer."""
        flags = [torch.zeros(1, dtype=torch.uint8) for _ in range(self.n)]
        distributed.all_gather(flags, torch.tensor([did], dtype=torch.uint8), group=self._group)
        return [rank for rank, flag in enumerate(flags) if flag.item()]

    # ---- signs of life ---------------------------------------------------------------------------------------------------------

    def _meet(self) -> None:
        """Waits until every rank has called attach()."""
        self._store.set(f"here/{self.rank}", "1")
        until = time.monotonic() + PATIENCE
        while missing := [r for r in range(self.n) if not self._store.check([f"here/{r}"])]:
            if time.monotonic() > until:
                raise AttnscopeError(f"{_ranks(missing)} did not call attach() within {PATIENCE:.0f} s; every rank must call it.")
            time.sleep(0.02)

    def _beat(self) -> None:
        """Tells the others that this process lives and, on rank 0, notices one that does not."""
        beats: dict[int, tuple[bytes, float]] = {}
        alone: dict[tuple[int, str], float] = {}
        number = 0
        while not self._ended.wait(_BEAT):
            try:
                number += 1
                self._store.set(f"beat/{self.rank}", str(number))
                for rank in range(1, self.n) if self.rank == 0 else ():
                    step, _, words = self._of(f"error/{rank}").decode().partition(" ")
                    if self._answering and step == str(self._steps):
                        if alone.setdefault((rank, step), time.monotonic()) < time.monotonic() - _ALONE:
                            self._break(f"rank {rank}: {words}")  # the others wait for it inside the model
                    beat = self._of(f"beat/{rank}")
                    if beats.get(rank, (None, 0.0))[0] != beat:
                        beats[rank] = (beat, time.monotonic())
                    elif time.monotonic() - beats[rank][1] > _SILENT:
                        self._break(f"rank {rank} ended or does not answer")
            except (RuntimeError, distributed.DistError):
                return  # the store has ended with the job

    def _error_of(self, rank: int) -> str:
        return self._store.get(f"error/{rank}").decode().partition(" ")[2]

    def _who(self) -> str:
        """Returns which ranks are missing in a call of all."""
        before = {rank: self._of(f"beat/{rank}") for rank in range(self.n) if rank != self.rank}
        time.sleep(2.5 * _BEAT)
        dead = [rank for rank, beat in before.items() if self._of(f"beat/{rank}") == beat]
        if dead:
            return f"{_ranks(dead)} ended or does not answer"
        behind = [rank for rank in before if int(self._of(f"steps/{rank}") or 0) < self._steps]
        return f"{_ranks(behind)} did not come to serve() or wait() within {PATIENCE:.0f} s" if behind else "the ranks lost each other"

    def _of(self, key: str) -> bytes:
        try:
            return self._store.get(key) if self._store.check([key]) else b""
        except (RuntimeError, distributed.DistError):
            return b""

    def _break(self, words: str) -> None:
        self.broken = self.broken or words


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _store() -> Any:
    """Returns the job's store, over a connection of our own where that is possible."""
    store: Any = distributed.distributed_c10d._get_default_store()
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return store.clone() if hasattr(store, "clone") else store
