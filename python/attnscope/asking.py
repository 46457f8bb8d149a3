"""What the window shows of a model, asked for in Python: predictions, roles of heads, the logit lens, ablation effects."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .arrays import Array
from .engine import Edits, Engine, Pass
from .errors import AttnscopeError

if TYPE_CHECKING:
    from .circuits import Sources, Why

ROLES = ("previous_token", "first_token", "itself", "same_token", "induction", "entropy")
Heads = Iterable[tuple[int, int]]
Chat = Sequence[Mapping[str, str]]  # messages: {"role": "user", "content": "…"}


class Questions:
    """Questions about texts in a model that stays in this process. Texts begin as the tokenizer begins them; messages of a
    chat become a text by its chat template."""

    engine: Engine
    tokenizer: Any
    busy: threading.Lock

    def predict(self, text: str = "", *, chat: Chat | None = None, off: Heads = (), top: int = 10) -> Array:
        """Returns the most probable next tokens, with (layer, head) in `off` ablated: token, probability, logit."""
        with self.busy:
            logits = self._next(self.engine.run(self._ids(text, chat), self._without(off)))
        probabilities, most = logits.double().softmax(-1), logits.topk(min(top, len(logits))).indices.tolist()
        rows = list(zip(self._texts(most), probabilities[most].tolist(), logits[most].tolist()))
        return np.array(rows, [("token", object), ("probability", float), ("logit", np.float32)]).view(np.recarray)

    def heads(self, text: str = "", *, chat: Chat | None = None) -> Array:
        """Returns [layer, head] measures: mean weights on the previous token, the first one, the query itself, earlier copies
        of its token and the tokens after those (induction), and the entropy in bits. NaN where a text has no such keys."""
        from .serving import roles

        with self.busy:
            made = self.engine.run(self._ids(text, chat))
            found = [roles(layer.weights().float(), made.ids).cpu().numpy() for layer in made.layers]
        all_roles = np.full((len(found), max(map(len, found))), np.nan, [(name, float) for name in ROLES])
        for layer, measures in enumerate(found):
            for i, name in enumerate(ROLES):
                all_roles[name][layer, : len(measures)] = measures[:, i]
        return all_roles.view(np.recarray)

    def lens(self, text: str = "", *, chat: Chat | None = None) -> Array:
        """Returns what the model would predict if it ended after each layer: token, probability, and the rank, from 0, of
        what it predicts in the end."""
        with self.busy:
            made = self.engine.run(self._ids(text, chat))
            self._require_prediction()
            ends = [site.call for site in self.engine.sites[1:]] + [self.engine.n_calls]
            logits = self.engine.head(torch.stack([made.residuals[end][0, -1] for end in ends]))
        last = int(logits[-1].argmax())
        ranks = (logits > logits[:, last, None]).sum(-1).tolist()
        probabilities = logits.double().softmax(-1).max(-1).values.tolist()
        rows = list(zip(self._texts(logits.argmax(-1).tolist()), probabilities, ranks))
        return np.array(rows, [("token", object), ("probability", float), ("rank", int)]).view(np.recarray)

    def effects(
        self, text: str = "", *, chat: Chat | None = None, answer: str | int | None = None, against: str | int | None = None,
    ) -> Array:  # fmt: skip
        """Returns [layer, head]: by how much the logit of `answer` (default: the predicted token), minus that of `against`,
        changes if the head is ablated. NaN where a layer has fewer heads."""
        with self.busy:
            base = self.engine.run(self._ids(text, chat))
            logits = self._next(base)
            one = int(logits.argmax()) if answer is None else self._token(answer)
            other = None if against is None else self._token(against)

            def score(logits: Tensor) -> float:
                return float(logits[one] - (0 if other is None else logits[other]))

            changes = np.full((len(self.engine.sites), max(s.n_heads for s in self.engine.sites)), np.nan)
            for layer, site in enumerate(self.engine.sites):
                for head in range(site.n_heads):
                    made = self.engine.run(base.ids, {layer: Edits(frozenset([head]))}, passes=[base])
                    changes[layer, head] = score(self._next(made)) - score(logits)
        return changes

    def why(
        self, text: str = "", *, layer: int, head: int, query: int, key: int, chat: Chat | None = None
    ) -> Why:
        """Splits the score of a query and a key, by their positions, into what earlier parts of the model have written.

        The program computes it in float64 from the model as transformers saves it, which takes as much space as the model."""
        from .circuits import ask_why

        with self._saved(text, chat) as (folder, text):
            return ask_why(folder, text, layer, head, query, key)

    def sources(
        self, text: str = "", *, token: str | None = None, layer: int | None = None, head: int | None = None,
        query: int | None = None, chat: Chat | None = None,
    ) -> Sources:  # fmt: skip
        """Splits a logit after the text, of a token as text, by the parts of the model that have written it; or, with
        layer, head and query, the context vector of a query by source token; or, without head, the residual stream before
        a layer.

        The program computes it, as it does why()."""
        from .circuits import ask_sources

        places = {"token": token, "layer": layer, "head": head, "query": query}
        with self._saved(text, chat) as (folder, text):
            return ask_sources(folder, text, {name: value for name, value in places.items() if value is not None})

    @contextmanager
    def _saved(self, text: str, chat: Chat | None) -> Iterator[tuple[str | Path, str]]:
        """Yields a folder with the model, and the text."""
        from .circuits import folder_of

        with self.busy:
            ids = [int(i) for i in self._ids(text, chat)]
            text = with_chat(self.tokenizer, text, chat)
            if not text and self.tokenizer is not None:
                text = self.tokenizer.decode(ids, skip_special_tokens=True)
            with folder_of(self.engine.original, self.tokenizer, (text,), ids) as folder:
                yield folder, text

    # ---- tokens --------------------------------------------------------------------------------------------------------

    def _ids(self, text: str, chat: Chat | None) -> Tensor:
        from .serving import Answers
        from .wire import Frame

        text = with_chat(self.tokenizer, text, chat)
        answers = Answers(self.engine, self.tokenizer)
        ids = answers.tokens(Frame({"text": text}))[1]["ids"]
        return torch.tensor(answers._ids(Frame({}, {"ids": ids}), answers._n_context()), device=self.engine.device)

    def _texts(self, ids: list[int]) -> list[str]:
        from .serving import Answers

        return [b.decode(errors="replace") for b in Answers(self.engine, self.tokenizer)._told(ids)[1]]

    def _token(self, text: str | int) -> int:
        if isinstance(text, int):
            ids = [text]
        elif self.tokenizer is None:
            ids = [int(text)]
        else:
            ids = list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        if len(ids) != 1 or not 0 <= ids[0] < self.engine.n_vocabulary:
            raise AttnscopeError(f"{text!r} is {len(ids)} tokens {ids[:4]}; expected one token of the vocabulary.")
        return ids[0]

    # ---- passes --------------------------------------------------------------------------------------------------------

    def _without(self, off: Heads) -> dict[int, Edits]:
        layers: dict[int, set[int]] = {}
        for layer, head in off:
            require_head(self.engine, layer, head)
            layers.setdefault(layer, set()).add(head)
        return {layer: Edits(frozenset(heads)) for layer, heads in layers.items()}

    def _next(self, made: Pass) -> Tensor:
        self._require_prediction()
        return self.engine.next(made, len(made.ids) - 1)[0]

    def _require_prediction(self) -> None:
        if not self.engine.predicts:
            raise AttnscopeError("The model has no output embeddings: nothing is predicted.")


class Captured(Questions):
    """Questions about a captured model, by default about the text that was captured."""

    def __init__(self, model: Any, tokenizer: Any, ids: Tensor) -> None:
        from .serving import engine_of

        self.engine, self.tokenizer, self.busy, self.captured = engine_of(model), tokenizer, threading.Lock(), ids

    def _ids(self, text: str, chat: Chat | None) -> Tensor:
        return super()._ids(text, chat) if text or chat is not None else self.captured.to(self.engine.device)


def with_chat(tokenizer: Any, text: str, chat: Chat | None) -> str:
    """Returns a text, or the messages of a chat as one, as the tokenizer's chat template writes them."""
    if chat is None:
        return text
    if text:
        raise AttnscopeError("Give a text or chat=, not both.")
    if not getattr(tokenizer, "chat_template", None):
        raise AttnscopeError("The tokenizer has no chat template, so chat= cannot be written as a text.")
    ends_in_answer = bool(chat) and chat[-1].get("role") == "assistant"
    try:
        text = tokenizer.apply_chat_template(
            list(chat), tokenize=False, add_generation_prompt=not ends_in_answer, continue_final_message=ends_in_answer
        )
    except Exception as error:  # of the template's own language
        raise AttnscopeError(f"The chat template refuses these messages: {error}") from None
    start, first = tokenizer.bos_token, tokenizer("")["input_ids"][:1]
    return text.removeprefix(start) if start and first == [tokenizer.bos_token_id] else text  # else it is there twice


def require_head(engine: Engine, layer: int, head: int) -> None:
    n = len(engine.sites)
    if not 0 <= layer < n:
        raise AttnscopeError(f"There is no layer {layer}; there are {n}.")
    if not 0 <= head < engine.sites[layer].n_heads:
        raise AttnscopeError(f"There is no head {head} in layer {layer}; there are {engine.sites[layer].n_heads}.")
