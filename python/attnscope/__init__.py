"""attnscope: take attention apart. Opens tensors and models of Python in the window, as a page, or in a check.

attnscope.show(q, k, v, causal=True)         opens the window on queries, keys and values
attnscope.show(module, x)                    … on the attention of a module
with attnscope.capture(model) as c: …        records every attention that a model computes
attnscope.reference(q, k, v, causal=True)    the same numbers without a window
attnscope.attach(model, tokenizer)           … on a model that stays in PyTorch: every head, edits, the next token
attnscope.check(observed, reference)         the first stage that differs, and the bug that explains it
attnscope.html(…)                            one self-contained page
attnscope.patch(model, clean, corrupt, …)    which head carries the difference between two prompts
attnscope.scan(model, texts)                 measures of every head over many texts, and its strongest examples
attnscope.learn("induction", seed=1)         a small transformer, trained: curves, snapshots, the model
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .attention import Attention, Editable, Linear, of_stages as reference
from .checking import Report, assert_same, check
from .errors import AttnscopeError, Disagreement, ProgramNotFound
from .masks import Mask
from .page import Page, html
from .recording import Recording, load
from .showing import Window, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from typing_extensions import Unpack

    from .asking import Chat
    from .capturing import Capture
    from .circuits import Composition, Patches, TokenPairs
    from .learning import LearningRun, Setup
    from .scanning import Scan
    from .serving import Attached, OtherRank

__all__ = [
    "Attention", "AttnscopeError", "Disagreement", "Editable", "Linear", "Mask", "Page", "ProgramNotFound", "Recording", "Report", "Window",
    "ablate", "assert_same", "attach", "capture", "check", "composition", "edit", "html", "learn", "load", "patch", "reference", "scan",
    "show",
]  # fmt: skip
__version__ = "0.3.0"


def capture(
    model: Any = None, tokenizer: Any = None, *, tokens: Any = None, max_tokens: int = 2048, gradients: bool = False
) -> Capture:
    """Records every attention that PyTorch computes inside a with block; a model supplies the module names,
    and a tokenizer the text of the tokens that are seen in the call.

    with attnscope.capture(model, tokenizer) as c:
        model(**inputs)
    c[5].weights, c[5].queries, …; c.show(); c.html(); c.save("x.safetensors"); c.check(other)

    With gradients=True check() also compares those that a backward, also a later one, gives queries, keys, values and context vectors."""
    try:
        from .capturing import Capture
    except ImportError as error:
        raise AttnscopeError(f"capture() needs PyTorch, which cannot be imported ({error}).") from None
    return Capture(model, tokenizer, tokens=tokens, max_tokens=max_tokens, gradients=gradients)


def attach(
    model: Any,
    tokenizer: Any = None,
    text: str = "",
    *,
    chat: Chat | None = None,
    encode: Callable[[str], Any] | None = None,
    decode: Callable[[list[int]], str] | None = None,
    logits: Callable[[Any], Any] | None = None,
    port: int | None = None,
) -> Attached | OtherRank:
    """Opens the window on a model that stays in this process, and returns at once.

    The window shows every head and the next token as the model itself computes them. Heads can be ablated and layers
    edited there; the model computes the rest and is never changed. Without a tokenizer a text is token IDs. chat is
    messages instead of a text, for the tokenizer's chat template.

    attach(my_gpt, encode=encode, decode=decode)              # a model outside transformers: text → token IDs → text
    attach(my_gpt, …, logits=lambda ids: my_gpt(ids, None)[0]) # if it is not called as model(ids)

    A port of 127.0.0.1 (0: a free one) accepts remote windows, for example over `ssh -L`; .close() ends everything."""
    try:
        from .serving import attach_window
    except ImportError as error:
        raise AttnscopeError(f"attach() needs PyTorch and transformers, which cannot be imported ({error}).") from None
    return attach_window(model, tokenizer, text, port, chat, encode=encode, decode=decode, logits=logits)


def ablate(model: Any, heads: Iterable[tuple[int, int]]) -> AbstractContextManager[None]:
    """Sets the context vectors of heads to 0 in every pass of a transformers model inside a with block.

    with attnscope.ablate(model, [(5, 1)]):  # layer 5, head 1
        model(**inputs)"""
    from .editing import ablated

    return ablated(model, heads)


def edit(model: Any, place: str, change: Callable[[Any], Any]) -> AbstractContextManager[None]:
    """Replaces a stage of one head by a function of it in every pass of a transformers model inside a with block.

    with attnscope.edit(model, "5.1.weights", lambda w: w.tril(-1)):  # layer 5, head 1
        model(**inputs)

    The stage is a tensor [sequences, rows, columns]: queries, keys, values, weights or contexts."""
    from .editing import edited, parsed

    return edited(model, [(*parsed(place), change)])


def patch(
    model: Any, clean: str, corrupt: str, *, answer: str, against: str,
    what: str = "head", positions: bool = False, through: str | None = None, align: Sequence[tuple[int, int]] = (), tokenizer: Any = None,
) -> Patches:  # fmt: skip
    """Runs a prompt once for each part of each layer, with that part of another prompt, and returns how much of the
    difference between them each patch recovers.

    attnscope.patch("gpt2", "When Mary and John …", "When Anna and John …", answer=" Mary", against=" John").recovered[5, 1]

    The model is a path, attach()'s result, or one of transformers with its tokenizer. what is head, pattern, queries, keys,
    values, attention, mlp or residual; of an attached model, a part of attention. With positions one row is patched at a
    time; through, as "queries:5.1", is path patching: only these change after the patch. align has the positions of both
    prompts that are aligned, [(0, 0), (1, 2)]; without it prompts of other lengths are where they begin and end alike."""
    from . import circuits

    return circuits.patch(model, clean, corrupt, answer, against, what=what, positions=positions, through=through, align=align, tokenizer=tokenizer)


def composition(model: Any, tokenizer: Any = None) -> Composition:
    """Returns how much of what each head's queries, keys and values read is written by each earlier head, 0 … 1.

    The model is a path, or one of transformers with its tokenizer. The program computes it."""
    from . import circuits

    return circuits.composition(model, tokenizer)


def scan(
    model: Any,
    texts: Iterable[str],
    tokenizer: Any = None,
    *,
    length: int | None = None,
    folder: str | Path | None = None,
    encode: Callable[[str], Any] | None = None,
    decode: Callable[[list[int]], str] | None = None,
    logits: Callable[[Any], Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scan:
    """Returns measures of every head over many texts, and the texts on which it has its largest weights.

    found = attnscope.scan(model, texts, tokenizer)  # of transformers, or as attach() takes it; or a path, or attach()'s result
    found.measures.induction[5, 1], found.examples(5, 1), found.save(folder)

    Each text is cut at length tokens (512, or as many as the model takes). In a job of several ranks each rank reads its part of
    the texts, and every rank gets the result, which is that of one rank. progress(done, of) is called after each text.

    With a folder the result is saved there, and a scan that was killed goes on where it was, up to the last 20 seconds."""
    from . import scanning

    try:
        return scanning.scan(model, texts, tokenizer, length, folder, progress, encode, decode, logits)
    except ImportError as error:
        raise AttnscopeError(f"scan() of a model in this process needs PyTorch and transformers, which cannot be imported ({error}).") from None


def token_pairs(model: Any, head: str, *, top: int = 20, tokenizer: Any = None) -> TokenPairs:
    """Returns the pairs of tokens with the largest cells of the OV and QK circuits of a head, "5.1".

    The model is a path, or one of transformers with its tokenizer. The program computes it."""
    from . import circuits

    return circuits.token_pairs(model, head, top, tokenizer)


def learn(task: str | Path | None = None, *, text: str | None = None, **setup: Unpack[Setup]) -> LearningRun:
    """Trains a small transformer in the program and returns the run: curves, snapshots, the model at each of them.

    run = attnscope.learn("induction", seed=1)     # or previous-token, why-mask, reverse, recall, dropout, the path of a text, text="…"
    run.step, run.loss, run.accuracy, run.heads["induction"], run.milestones
    run.model(200), run.tokenizer()                # of transformers; run.save(folder); run.show() opens the window

    The setup is that of `attnscope learn`: layers, heads, width, positions, kv_heads, mlp, norm, mask, dropout, optimizer, rate, batch,
    mistake, steps, seed. An interrupt ends the training and returns the run until then."""
    from .learning import train

    return train(task, text, setup)
