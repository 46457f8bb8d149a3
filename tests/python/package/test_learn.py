"""learn(): runs and their curves; the trained models in transformers, in every family that has their formula."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from support import needs_torch, np, torch

import attnscope
from attnscope import program

try:
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
except ImportError:
    transformers = None

SHORT = dict(steps=20, batch=4)
# The family of each setup.
FAMILIES = {
    "gpt2": dict(positions="learned", mlp=24, heads=2),
    "gpt2 without positions": dict(positions="none"),
    "gpt_bigcode": dict(positions="learned", heads=4, kv_heads=1, mlp=16),
    "gpt_neox": dict(positions="rotary", heads=2, layers=2, mlp=24),
    "starcoder2": dict(positions="rotary", heads=4, kv_heads=2, mlp=24),
    "llama": dict(positions="rotary", norm="rms", heads=4, kv_heads=2),
    "arcee": dict(positions="rotary", norm="rms", heads=2, mlp=48),
    "mpt": dict(positions="alibi", heads=4, mlp=32),
}
NOT_EXPORTED = {
    "--mask off": dict(mask=False),
    "--norm none": dict(norm="none"),
    "--norm rms with --positions learned": dict(norm="rms", positions="learned"),
    "--kv-heads 2 with --positions alibi": dict(heads=4, kv_heads=2, positions="alibi"),
    "--mistake no_scale": dict(mistake="no_scale"),
}


class Runs(unittest.TestCase):
    def test_curves(self):
        run = attnscope.learn("previous-token", seed=3)
        self.assertEqual(run.step.tolist(), list(range(0, 201, 10)))
        for numbers in run.loss, run.accuracy, run.fresh_loss, run.training_accuracy:
            self.assertEqual(numbers.shape, run.step.shape)
        self.assertGreater(run.accuracy[-1], 0.99)
        self.assertEqual(run.heads["previous-token"].shape, (21, 1, 1))
        self.assertGreater(run.heads["previous-token"][-1, 0, 0], 0.5)
        self.assertIn("a previous-token head has formed", [words for _, words in run.milestones])
        self.assertEqual(run.setup["seed"], 3)
        self.assertEqual((run.snapshots[0], run.snapshots[-1]), (0, 200))
        self.assertEqual(repr(run), "<LearningRun 'previous-token': 200 steps, accuracy 1.000>")

    def test_text(self):
        run = attnscope.learn(text="ein grüner Hund. " * 30, steps=20)
        self.assertEqual(run.task, "text")
        with tempfile.TemporaryDirectory() as folder:
            saved = run.save(Path(folder) / "model", 10)
            tokens = program.run(["tokens", saved, "--text", "grün", "--json"]).stdout
            self.assertEqual([token["text"] for token in json.loads(tokens)["tokens"]], list("grün"))

    def test_refusals(self):
        for message, call in {
            r"--heads: expected 1 to 4, got 9": lambda: attnscope.learn("recall", heads=9),
            r"nowhere: expected previous-token, why-mask": lambda: attnscope.learn("nowhere"),
            r"no snapshot of step 7; there are 0, 10, 20": lambda: attnscope.learn("reverse", **SHORT).save("x", 7),
        }.items():
            with self.assertRaisesRegex(attnscope.AttnscopeError, message):
                call()
        with self.assertRaisesRegex(TypeError, "no argument 'layer'; it has layers"):
            attnscope.learn("recall", layer=2)

    def test_setups_that_no_model_of_transformers_has(self):
        for option, setup in NOT_EXPORTED.items():
            with self.subTest(option):
                run = attnscope.learn("previous-token", **SHORT, **setup)
                self.assertEqual(len(run.step), 3)
                with self.assertRaisesRegex(attnscope.AttnscopeError, f"no model of transformers has {option}\\."):
                    run.save("nowhere")

    def test_interrupt_writes_what_is_there(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            process = subprocess.Popen(
                [program.executable(), "learn", "induction", "--steps", "100000", "--out", out, "--json"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            process.stderr.readline()
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, said)
            printed = json.loads(said[0])
            self.assertGreater(printed["step"][-1], 0)
            self.assertEqual(json.loads((out / "run.json").read_text("utf-8")), printed)
            self.assertIn("note: stopped after", said[1])


@needs_torch
@unittest.skipUnless(transformers, "transformers is not installed")
class Models(unittest.TestCase):
    def logits(self, model, ids):
        with torch.no_grad():
            return model(torch.tensor([ids])).logits[0].double().numpy()

    def test_every_family_opens_in_transformers_and_predicts_the_same(self):
        for family, setup in FAMILIES.items():
            with self.subTest(family):
                run = attnscope.learn("recall", **SHORT, seed=2, **setup)
                model, tokenizer = run.model(), run.tokenizer()
                self.assertEqual(model.config.model_type, family.split()[0])
                ids = tokenizer(run.example)["input_ids"]
                self.assertEqual(len(ids), len(run.example))
                self.assertEqual(tokenizer.decode(ids), run.example)
                logits = self.logits(model, ids)
                with tempfile.TemporaryDirectory() as folder:
                    saved = run.save(Path(folder) / "model")
                    said = program.run(["predict", saved, "--text", run.example, "--json", "--top", "16"]).stdout
                ours = {each["id"]: each["logit"] for each in json.loads(said)["next"]}
                np.testing.assert_allclose([ours[k] for k in range(16)], logits[-1], atol=2e-5)

    def test_model_answers_as_the_run_measured(self):
        run = attnscope.learn("induction", seed=1)
        generator = np.random.default_rng(0)
        right, wanted, early = [], [], run.model(0)
        late = run.model()
        for _ in range(20):
            period = [int(k) for k in generator.permutation(16)[: generator.integers(6, 12)]]
            ids = (period * 4)[:24]
            for model, answers in (late, right), (early, wanted):
                answers += list(self.logits(model, ids).argmax(-1)[len(period) : 23] == ids[len(period) + 1 : 24])
        self.assertGreater(np.mean(right), 0.99)
        self.assertLess(np.mean(wanted), 0.4)
        output = late.generate(torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0, 1, 2]]), max_new_tokens=4, do_sample=False)
        self.assertEqual(output[0, -4:].tolist(), [3, 4, 5, 6])


if __name__ == "__main__":
    unittest.main()
