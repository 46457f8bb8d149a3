"""Everything that the package offers, for type checkers alone: see test_types.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import attnscope
from attnscope import Attention, Page, Recording, Report, Window


def tensors(q: np.ndarray[Any, Any], k: np.ndarray[Any, Any], v: np.ndarray[Any, Any]) -> None:
    shown: Window | Attention = attnscope.show(q, k, v, causal=True, scale=0.5, tokens=["a", "b"], name="mine")
    page: Page = attnscope.html(weights=q, title="mine", layers=range(2), select=[0, 0, 1, 1], log=True)
    page.save(Path("page.html"))
    a: Attention = attnscope.reference(q, k, v, mask=attnscope.Mask(causal=True, window=(3, 0)), softcap=30.0)
    report: Report = attnscope.check({"weights": q}, {"q": q, "k": k}, causal=True, rtol=0, atol=1e-6)
    attnscope.assert_same(a, a, mask=q)
    a.check(a, causal=True)
    if report.could_hide:
        print(report.explanations, report.could_hide["row"], report.stages[0].rounding, report)
    print(shown, a.weights.sum(), a.context, a.scores, a.svg("scores", head=1), a.png(), a.stages()["weights"], a.halves)


def models(model: Any, tokenizer: Any) -> None:
    with attnscope.capture(model, tokenizer, max_tokens=64) as c:
        model()
    first: Attention = c[0]
    some: Recording = c[2:4]
    c.save("run.safetensors")
    c.save("layer.json", layer=0)
    loaded: Recording = attnscope.load("run.safetensors")
    loaded.check(c).report.splitlines()
    c.html(stages="all", sequence=0).save("page.html")
    c.show(1, name="mine")
    with attnscope.attach(model, tokenizer, "a text", port=0) as at:
        at.predict("a text", off=[(5, 1)], top=3)
        at.heads("a text")
        at.lens("a text")
        at.effects("a text", answer=" Mary", against=" John")
        print(at.why("a text", layer=0, head=1, query=2, key=0).sources, c.why(layer=0, head=1, query=2, key=0).pairs)
        print(at.edits, first.name, some.problems)
    with attnscope.ablate(model, [(5, 1)]), attnscope.edit(model, "5.1.weights", lambda w: w * 0):
        model()
    print(attnscope.patch(model, "a", "b", answer="c", against="d", what="mlp", tokenizer=tokenizer).recovered.max())
    print(attnscope.patch("m", "a", "b", answer="c", against="d", positions=True, through="keys:2.0").clean, attnscope.token_pairs("m", "2.0", top=3).ov)
    print(attnscope.composition("folder").heads, attnscope.composition(model, tokenizer).keys)


def learning() -> None:
    run = attnscope.learn("induction", seed=1, heads=4, mask=False, dropout=0.1, norm="rms", mistake=None)
    print(run.step, run.accuracy[-1], run.heads["induction"][-1], run.milestones[0], run.snapshots, run.model(100), run.tokenizer())
    run.save("induction", step=100).exists()
    attnscope.learn(Path("book.txt")).show(text="Once").show(100)
    attnscope.learn(text="one two").example.split()
