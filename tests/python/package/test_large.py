"""Models that are large: what a capture costs, and models that do not fit one device."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path

from support import ROOT, needs_torch, np, torch

import attnscope
from attnscope import program

try:
    import transformers
    from transformers import AutoModelForCausalLM
except ImportError:
    transformers = None
try:
    import accelerate
except ImportError:
    accelerate = None
if transformers and torch:
    from attnscope.serving import attach, engine_of

FOLDER = f"{tempfile.gettempdir()}/attnscope-ranks-{os.getpid()}"


def llama(**sizes):
    known = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50}
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(transformers.LlamaConfig(**(known | sizes))).eval()


@needs_torch
@unittest.skipUnless(transformers, "transformers is not installed")
class Cost(unittest.TestCase):
    def test_a_capture_takes_at_most_half_as_long_again(self):
        models = (
            AutoModelForCausalLM.from_config(transformers.GPT2Config(n_layer=6)).eval(),
            llama(hidden_size=768, intermediate_size=2048, num_hidden_layers=6, num_attention_heads=12, num_key_value_heads=12, vocab_size=8000),
        )
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # threads that wait for each other count as processor time on a busy machine
        self.addCleanup(torch.set_num_threads, threads)
        for model in models:
            for n_tokens in (64, 512):
                ids = torch.randint(3, 1000, (1, n_tokens))
                plain, captured = [], []
                for _ in range(5):
                    start = time.process_time()
                    with torch.no_grad():
                        model(ids)
                    middle = time.process_time()
                    with torch.no_grad(), attnscope.capture(model) as c:
                        model(ids)
                    plain.append(middle - start)
                    captured.append(time.process_time() - middle)
                with self.subTest(type(model).__name__, n_tokens=n_tokens):
                    self.assertLess(min(captured), 1.5 * min(plain))
                    self.assertEqual(len(c), 6)

    def test_projections_are_looked_for_when_they_are_asked_for(self):
        model = llama()
        with torch.no_grad(), attnscope.capture(model) as c:
            model(torch.randint(3, 50, (1, 9)))
        self.assertIsNotNone(c[0]._search)
        self.assertNotIn("editable", repr(c))
        self.assertEqual(c[0].not_editable, "")
        self.assertIsNone(c[0]._search)
        self.assertIn("editable", repr(c[0]))

    def test_a_sample_of_the_rows_of_a_long_text_is_compared_and_said(self):
        model = llama()
        with torch.no_grad(), attnscope.capture(model) as c:
            model(torch.randint(3, 50, (1, 300)))
        self.assertEqual(c[0].notes, ["model.layers.0.self_attn: 48 of its 300 rows were compared with the model's own."])
        self.assertIsNotNone(c[0].editable)

    def test_an_input_that_was_overwritten_makes_no_editable_model(self):
        from classes import MultiHeadAttention

        module, x = MultiHeadAttention(8, 8, 6, 0.0, 2), torch.rand(1, 6, 8)
        with torch.no_grad(), attnscope.capture(module) as c:
            module(x)
            x.mul_(2)
        self.assertIsNone(c[0].editable)
        self.assertIn("overwritten", c[0].not_editable)
        np.testing.assert_allclose(c[0].context, c[0].observed["contexts"], atol=1e-6)


def offloaded(model, how):
    """Returns a model whose parameters are elsewhere between calls, as device_map="auto" leaves one that is too large."""
    folder = tempfile.mkdtemp()
    if how == "cpu":
        return accelerate.cpu_offload(model, execution_device="cpu")
    if how == "disk":
        return accelerate.disk_offload(model, folder, execution_device="cpu")
    stack, _, blocks = ("model.layers" if hasattr(model, "model") else "transformer.h").partition(".")
    names = [f"{stack}.{name}" for name, _ in model.get_submodule(stack).named_children() if name != blocks]
    places = {f"{stack}.{blocks}.0": "cpu", f"{stack}.{blocks}.1": "disk", "lm_head": "cpu"} | dict.fromkeys(names, "cpu")
    return accelerate.dispatch_model(model, places, main_device="cpu", offload_dir=folder, force_hooks=True)


@needs_torch
@unittest.skipUnless(accelerate and transformers, "accelerate is not installed")
class Offloaded(unittest.TestCase):
    def test_attached_bit_for_bit_and_editable(self):
        from test_families import small

        from attnscope.serving import Answers
        from attnscope.wire import Frame

        ids = np.array([5, 6, 7, 8, 5, 6])
        for family in ("llama", "gpt2", "qwen3"):
            plain = engine_of(small(family))
            for how in ("cpu", "disk", "some"):
                with self.subTest(family, how=how):
                    engine = engine_of(offloaded(small(family), how))
                    answers, expected = Answers(engine), Answers(plain)
                    for number, edits in enumerate(([], [{"layer": 1, "heads_off": [2]}])):
                        frame = Frame({"pass": number, "edits": edits}, {"ids": ids})
                        for a in (answers, expected):
                            a.run(frame, lambda *_: None)
                        more = Frame({"pass": number, "layer": 1, "row": 5, "block": 1})
                        for what in ("next", "maps", "layer", "parameters"):
                            (header, here), (told, there) = getattr(answers, what)(more), getattr(expected, what)(more)
                            self.assertEqual((header, list(here)), (told, list(there)))
                            for name in here:
                                np.testing.assert_array_equal(here[name], there[name], name)
                    self.assertEqual(header.get("not_editable", ""), "")

    def test_a_capture_is_editable(self):
        model = offloaded(llama(), "some")
        with torch.no_grad(), attnscope.capture(model) as c:
            model(torch.randint(3, 50, (1, 9)))
        self.assertEqual([a.not_editable for a in c], ["", ""])


class Job:
    """Two processes of ranks.py, without an agent that would end both if one ends."""

    def __init__(self, *args):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        Path(FOLDER).mkdir(exist_ok=True)
        known = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "RANKS_FOLDER": FOLDER}
        self.errors = [tempfile.TemporaryFile("w+") for _ in range(2)]
        self.ranks = [
            subprocess.Popen([sys.executable, "-W", "ignore", Path(__file__).with_name("ranks.py"), *args], env=os.environ | known | {"RANK": str(rank)},
                             stdout=subprocess.PIPE, stderr=self.errors[rank], text=True)
            for rank in range(2)
        ]  # fmt: skip

    def line(self, rank=0):
        text = self.ranks[rank].stdout.readline()
        if not text:
            self.errors[rank].seek(0)
            raise AssertionError(self.errors[rank].read()[-2000:])
        return json.loads(text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.kill()
            rank.wait()
            rank.stdout.close()
        for file in self.errors:
            file.close()


def predicted(served, *options):
    """Returns the exit status, what the program prints, and the seconds that it takes."""
    begin = time.monotonic()
    r = subprocess.run([program.executable(), "predict", served["address"], "--json", "--text", *options], env=os.environ | {"ATTNSCOPE_TOKEN": served["token"]},
                       capture_output=True, text=True, timeout=90)  # fmt: skip
    return r.returncode, r.stdout if r.returncode == 0 else r.stderr.strip(), time.monotonic() - begin


@needs_torch
@unittest.skipUnless(transformers and torch and torch.distributed.is_available(), "torch.distributed is not there")
class SeveralRanks(unittest.TestCase):
    def compare(self, kind, families, bit_for_bit):
        with Job("compare", kind, *families) as job:
            for family in families:
                with self.subTest(kind, family=family):
                    found = job.line()
                    self.assertEqual((found["family"], found["sites"], found["problems"], found["shapes"]), (family, True, [], True))
                    self.assertLessEqual(found["worst"], 1e-5)
                    self.assertLessEqual(found["captured"], 1e-5)
                    self.assertTrue(found["equal"] or not bit_for_bit)
                    shared = [[0, 1], [2, 3]] if kind in ("tp", "mesh") and family not in ("phi3", "gpt_oss") else [[0, 1, 2, 3]] * 2
                    self.assertEqual(found["heads"], shared)  # Phi-3's and gpt-oss's plans keep all heads on each rank

    def test_tensor_parallel_within_rounding(self):
        self.compare("tp", ["gpt_oss", "phi3", "qwen3", "gemma2", "mixtral", "llama", "gpt_neox", "qwen2", "mqa"], False)

    def test_fsdp_bit_for_bit(self):
        self.compare("fsdp", ["gpt_oss", "phi3", "qwen3", "gemma2", "mixtral", "llama", "gpt_neox", "gpt2"], True)

    def test_a_mesh_of_both(self):
        self.compare("mesh", ["llama"], False)

    def test_the_program_asks_two_ranks_as_one_process(self):
        from test_families import small

        text = "5 6 7 8 5 6"
        with attach(small("llama"), port=0) as whole:
            expected = [json.loads(predicted({"address": whole.address, "token": whole.token}, text, *more)[1])["next"][:3] for more in ((), ("--off", "1.2"))]
        for kind in ("tp", "fsdp", "ddp"):
            with Job("serve", kind, "llama") as job, self.subTest(kind):
                served = job.line()
                for more, there in zip(((), ("--off", "1.2")), expected):
                    status, said, _ = predicted(served, text, *more)
                    self.assertEqual(status, 0, said)
                    for a, b in zip(json.loads(said)["next"], there):
                        self.assertEqual(a["id"], b["id"])
                        self.assertAlmostEqual(a["logit"], b["logit"], delta=1e-5)

    def test_a_killed_rank_ends_the_request_with_its_name(self):
        with Job("serve", "tp", "llama") as job:
            served = job.line()
            self.assertEqual(predicted(served, "5 6 7")[0], 0)
            job.ranks[1].kill()
            for _ in range(2):
                status, said, seconds = predicted(served, "5 6 7 8")
                self.assertNotEqual(status, 0)
                self.assertLess(seconds, 30)
            self.assertIn("rank 1", job.line()["error"])

    def test_a_stopped_rank_ends_the_request_with_its_name(self):
        with Job("serve", "tp", "llama") as job:
            served = job.line()
            job.ranks[1].send_signal(signal.SIGSTOP)
            status, said, seconds = predicted(served, "5 6 7 8")
            self.assertNotEqual(status, 0)
            self.assertIn("rank 1 ended or does not answer", said)
            self.assertLess(seconds, 30)

    def test_a_rank_that_fails_alone_is_named(self):
        with Job("fail", "tp", "llama") as job:
            served = job.line()
            self.assertEqual(predicted(served, "5 6 7")[0], 0)
            status, said, seconds = predicted(served, "7 6 5")
            self.assertNotEqual(status, 0)
            self.assertIn("rank 1: MemoryError: no memory left on this rank", said)
            self.assertLess(seconds, 30)

    def test_a_rank_that_does_not_attach_is_named(self):
        with Job("late", "fsdp", "llama") as job:
            self.assertTrue(job.line()["ready"])
            begin = time.monotonic()
            self.assertIn("rank 1 did not call attach()", job.line()["error"])
            self.assertLess(time.monotonic() - begin, 40)

    def test_the_example_of_the_documents(self):
        blocks = (ROOT / "docs" / "python.md").read_text("utf-8").split("```python\n")
        example = next(b.split("```")[0] for b in blocks if b.startswith("# two_ranks.py"))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "two_ranks.py").write_text(example, "utf-8")
            r = subprocess.run([sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "two_ranks.py"], cwd=folder,
                               env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True, timeout=300)  # fmt: skip
        self.assertEqual(r.returncode, 0, r.stderr[-2000:])
        for line in ("rank 0 recorded heads [0, 1]", "rank 1 recorded heads [2, 3]", "together 4 heads of 9 tokens", "the strongest ablation effect is"):
            self.assertIn(line, r.stdout)

    def test_between_two_steps_of_training(self):
        with Job("train", "fsdp", "llama") as job:
            served = job.line()
            logits, said = set(), ""
            for _ in range(2):
                status, said, _ = predicted(served, "5 6 7")
                if status == 0:
                    logits.add(json.loads(said)["next"][0]["logit"])
            self.assertTrue(logits, said)
            self.assertEqual([job.line(rank)["done"] for rank in range(2)], [True, True])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
