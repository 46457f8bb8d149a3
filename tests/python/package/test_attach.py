"""attach(): numbers equal to the model's with hooks by hand, a model that is never changed, a robust server.

All models are small, random and made here; a client of NumPy and sockets stands in for the window."""

import contextlib
import copy
import hashlib
import io
import itertools
import json
import os
import pathlib
import random as randomly
import resource
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import warnings
from unittest import mock

from support import needs_torch, np, softmax, torch

import attnscope
from attnscope import program, wire

try:
    import transformers
    from test_families import small
except ImportError:
    transformers = None

if transformers and torch:
    from attnscope.serving import attach

T = 12
HAND = {  # family → its stack of blocks, and the output projection inside a block
    "gpt2": ("transformer.h", "attn.c_proj"), "llama": ("model.layers", "self_attn.o_proj"), "qwen3": ("model.layers", "self_attn.o_proj"),
    "gemma2": ("model.layers", "self_attn.o_proj"), "gpt_neox": ("gpt_neox.layers", "attention.dense"), "phi3": ("model.layers", "self_attn.o_proj"),
    "gpt_oss": ("model.layers", "self_attn.o_proj"), "mixtral": ("model.layers", "self_attn.o_proj"),
}  # fmt: skip
FAMILIES = """gpt2 gpt_oss llama mistral qwen2 qwen3 gemma gemma2 gemma3_text phi phi3 olmo olmo2 olmoe gpt_neox gptj stablelm starcoder2
    granite granitemoe cohere cohere2 smollm3 glm glm4 nemotron mixtral qwen2_moe qwen3_moe codegen gpt_bigcode helium exaone4 ernie4_5
    minimax lfm2 bitnet seed_oss arcee apertus phimoe persimmon deepseek_v3 biogpt opt dots1 hunyuan_v1_dense diffllama doge flex_olmo
    ernie4_5_moe glm4_moe jetmoe llama4_text ministral qwen3_next vaultgemma gemma3n_text bert roberta distilbert electra albert
    camembert rembert xlm-roberta modernbert""".split()
OWN_CODE = "bloom mpt mpnet deberta falcon gpt_neo t5".split()


class Refused(Exception):
    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]


class Client:
    """Speaks the protocol as the window does."""

    def __init__(self, server, token=None):
        if server.address.startswith("/"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(server.address)
        else:
            host, port = server.address.split(":")
            self.socket = socket.create_connection((host, int(port)))
        self.numbers, self.passes, self.progress, self.early = itertools.count(1), itertools.count(1), [], {}
        self.description = self.call("hello", token=server.token if token is None else token)[0]

    def send(self, op, arrays=None, **fields):
        number = next(self.numbers)
        self.socket.sendall(wire.pack({"id": number, "op": op, **fields}, arrays))
        return number

    def wait(self, number):
        while number not in self.early:
            frame = wire.receive(self.socket)
            if "progress" in frame.header:
                self.progress.append(frame.header["progress"])
            elif frame.header["id"] is None:
                raise Refused(frame.header["error"])
            else:
                self.early[frame.header["id"]] = frame
        frame = self.early.pop(number)
        if "error" in frame.header:
            raise Refused(frame.header["error"])
        return frame.header, frame.arrays

    def call(self, op, arrays=None, **fields):
        return self.wait(self.send(op, arrays, **fields))

    def start(self, ids, edits=(), outputs=None, **fields):
        number = next(self.passes)
        arrays = {"ids": np.asarray(ids, np.int64)} | {f"output.{n}": o for n, o in (outputs or {}).items()}
        return number, self.send("run", arrays, **{"pass": number}, edits=list(edits), **fields)

    def run(self, *arguments, **fields):
        number, request = self.start(*arguments, **fields)
        self.last = self.wait(request)[0]
        return number

    def next(self, number, row=-1):
        return self.call("next", **{"pass": number}, row=row % T)[1]["logits"][0]

    def of(self, op, number, layer, **fields):
        return self.call(op, **{"pass": number}, layer=layer, **fields)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def text(seed=1):
    return torch.randint(3, 128, (T,), generator=torch.Generator().manual_seed(seed))


def logits_of(model, ids):
    with torch.no_grad():
        return model(ids[None]).logits[0].float().numpy()


def digest(model):
    """Returns a digest of everything that a pass could change in a model."""
    h = hashlib.sha256(repr((model.config.to_dict(), model.config._attn_implementation, model.training)).encode())
    for name, t in [*model.named_parameters(), *model.named_buffers()]:
        h.update(f"{name} {t.shape} {t.dtype} {t.data_ptr()} {t._version}".encode() + t.detach().float().numpy().tobytes())
    for name, m in model.named_modules():
        h.update(f"{name} {id(m)} {sorted(vars(m))} {[k for k, v in vars(m).items() if k.endswith('_hooks') and v]}".encode())
    return h.hexdigest()


def by_hand(model, family, layer, hook, before=False):
    """Returns a copy of a model with a hook on a layer's output projection."""
    blocks, projection = HAND[family]
    copied = copy.deepcopy(model)
    module = copied.get_submodule(blocks)[layer].get_submodule(projection)
    module.register_forward_pre_hook(hook) if before else module.register_forward_hook(hook)
    return copied


def silence(head):
    def hook(_, inputs):
        x = inputs[0].clone()
        x[..., 16 * head : 16 * head + 16] = 0
        return (x, *inputs[1:])

    return hook


def weights_by_numpy(header, a, w, heads, groups):
    """Computes the weights of every head from a layer's matrices, as the window does."""
    n = len(a["inputs"])

    def projected(name, count):
        x = a["inputs"].astype(float) @ w[f"{name}.weight"] + w.get(f"{name}.bias", 0)
        if name in header["norms"]:
            scale = a[f"{name}_norm.weight"]
            x = x.reshape(n, -1, len(scale))
            x = x / np.sqrt((x**2).mean(-1, keepdims=True) + header["norms"][name]["epsilon"]) * scale
        x = x.reshape(n, count, -1)
        if "rotary" in header:
            c, s = a["cosines"][:, None], a["sines"][:, None]
            p = c.shape[-1]
            assert header["rotary"] == "halves"
            x = np.concatenate([x[..., :p] * c - x[..., p : 2 * p] * s, x[..., p : 2 * p] * c + x[..., :p] * s, x[..., 2 * p :]], -1)
        return x.transpose(1, 0, 2)

    q, k = projected("query", heads), np.repeat(projected("key", groups), heads // groups, 0)
    s = q @ k.transpose(0, 2, 1) * header["scale"] * header["factor"]
    if header["softcap"]:
        s = header["softcap"] * np.tanh(s / header["softcap"])
    distance = np.arange(n)[:, None] - np.arange(n)
    window = header["mask"]["causal_window"] if isinstance(header["mask"], dict) else n
    s = np.where((distance >= 0) & (distance < window), s, -np.inf)
    if "sinks" in a:
        s = np.concatenate([s, np.broadcast_to(a["sinks"][:, None, None], (heads, n, 1))], -1)
    return softmax(s)[..., :n]


@needs_torch
@unittest.skipUnless(transformers, "transformers is not installed")
class Numbers(unittest.TestCase):
    def each(self):
        for family in HAND:
            with self.subTest(family):
                model = small(family)
                before = digest(model)
                with attach(model) as server, Client(server) as client:
                    yield family, model, server, client, client.run(text())
                self.assertEqual(digest(model), before, "the model is not what it was")

    def test_edits_equal_hooks_by_hand(self):
        for family, model, server, client, plain in self.each():
            logits = logits_of(model, text())
            for row in range(T):
                np.testing.assert_array_equal(client.next(plain, row), logits[row])
            # An ablated head.
            off = client.run(text(), [{"layer": 1, "heads_off": [2]}])
            np.testing.assert_array_equal(client.next(off), logits_of(by_hand(model, family, 1, silence(2), True), text())[-1])
            self.assertGreater(client.last["computed_from"], 0)
            # A layer that was computed elsewhere.
            output = np.random.default_rng(0).normal(size=(T, 64)).astype(np.float32)
            given = client.run(text(), [{"layer": 0}], {0: output})
            hand = by_hand(model, family, 0, lambda *_, o=output: torch.tensor(o)[None])
            np.testing.assert_array_equal(client.next(given), logits_of(hand, text())[-1])
            # A pass from the middle equals one from the beginning; so does the logit lens.
            with Client(server) as fresh:
                again = fresh.run(text(), [{"layer": 1, "heads_off": [2]}])
                self.assertEqual(fresh.last["computed_from"], 0)
                np.testing.assert_array_equal(fresh.next(again), client.next(off))
            lens = client.call("lens", **{"pass": plain}, row=T - 1)[1]["logits"]
            self.assertEqual(len(lens), 2)
            np.testing.assert_allclose(lens[-1], client.next(plain), rtol=1e-5, atol=1e-5)
            points = client.call("points", **{"pass": plain}, row=T - 1)[1]["rows"]
            np.testing.assert_array_equal(client.call("unembed", {"rows": points})[1]["logits"], lens)

    @unittest.skipUnless(program.is_here(), "the program is not here")
    def test_patches_equal_hooks_by_hand(self):
        clean, corrupt, answer, against = text(), text(), 7, 9
        corrupt[5] = (corrupt[5] + 1) % 128
        prompts = [" ".join(map(str, ids.tolist())) for ids in (clean, corrupt)]
        for family in ("gpt2", "llama", "qwen3", "gemma2", "gpt_neox", "gpt_oss"):
            with self.subTest(family), attach(small(family)) as server:
                model = server.engine.original

                def difference(of, ids):
                    logits = logits_of(of, ids)[-1]
                    return float(logits[answer] - logits[against])

                right, wrong = (difference(model, ids) for ids in (clean, corrupt))
                for what in ("head", "attention"):
                    found = attnscope.patch(server, *prompts, answer=f" {answer}", against=f" {against}", what=what)
                    np.testing.assert_allclose([found.clean, found.corrupt], [right, wrong], atol=1e-5)
                    for layer, k in np.ndindex(found.recovered.shape):
                        kept = []

                        def keep(_, inputs, output=None, kept=kept):
                            kept.append((inputs[0] if output is None else output).clone())

                        def put(_, inputs, output=None, kept=kept, k=k):
                            if output is not None:
                                return kept[0]
                            x = inputs[0].clone()
                            x[..., 16 * k : 16 * k + 16] = kept[0][..., 16 * k : 16 * k + 16]
                            return (x, *inputs[1:])

                        difference(by_hand(model, family, layer, keep, what == "head"), clean)
                        expected = (difference(by_hand(model, family, layer, put, what == "head"), corrupt) - wrong) / (right - wrong)
                        self.assertAlmostEqual(found.recovered[layer, k], expected, delta=2e-5 / abs(right - wrong), msg=f"{what} {layer}.{k}")
                for what, said in (("mlp", "MLP 1: expected a part of attention"), ("residual", "residual stream before layer 1, position 11: expected a part")):
                    with self.assertRaisesRegex(attnscope.AttnscopeError, said):
                        attnscope.patch(server, *prompts, answer=" 7", against=" 9", what=what)

    def test_a_layer_is_a_full_model_of_attention(self):
        for family, model, _, client, plain in self.each():
            with torch.no_grad():
                eager = copy.deepcopy(model)
                eager.set_attn_implementation("eager")
                wanted = eager(text()[None], output_attentions=True).attentions
            for n, layer in enumerate(client.description["layers"]):
                header, arrays = client.of("layer", plain, n)
                self.assertEqual((header["not_editable"], header["not_rebuilt"]), ("", ""))
                parameters = client.call("parameters", layer=n)[1]
                maps, more = client.of("maps", plain, n, block=1, row=T - 1)
                got = weights_by_numpy(header, arrays, parameters, layer["heads"], layer["kv_heads"])
                np.testing.assert_allclose(got, more["maps"], atol=2e-5)
                np.testing.assert_allclose(more["maps"], wanted[n][0], atol=1e-6)
                self.assertEqual(maps["mask"], header["mask"])
                seen = []
                hand = by_hand(model, family, n, lambda m, a, o, seen=seen: seen.append(o[0, -1].numpy()))
                logits_of(hand, text())
                np.testing.assert_allclose(more["added"].sum(0) + parameters.get("output.bias", 0), seen[0], atol=1e-5)
                stream = client.of("stream", plain, n, row=T - 1, column=5)[0]
                self.assertAlmostEqual(stream["attention"], seen[0][5], 6)
                self.assertAlmostEqual(stream["input"], arrays["inputs"][-1, 5], 6)

    def test_roles_by_their_definition(self):
        from attnscope.serving import roles

        ids = torch.tensor([5, 6, 5, 6, 7, 5, 5])
        n = len(ids)
        w = torch.tensor(softmax(np.where(np.tri(n), np.random.default_rng(0).normal(size=(2, n, n)), -np.inf)))
        for got, of in zip(roles(w, ids).numpy(), w.numpy()):
            same, after = [], []
            for i in range(n):
                earlier = [j for j in range(i) if ids[j] == ids[i]]
                if earlier:
                    same.append(sum(of[i, j] for j in earlier))
                    after.append(sum(of[i, j + 1] for j in earlier if j + 1 != i))
            entropy = np.mean([-sum(x * np.log2(x) for x in row if x > 0) for row in of])
            wanted = [np.mean(of.diagonal(-1)), np.mean(of[1:, 0]), np.mean(of.diagonal()), np.mean(same), np.mean(after), entropy]
            np.testing.assert_allclose(got, wanted, rtol=1e-12)
        self.assertTrue(np.isnan(roles(w[:, :2, :2], ids[:2]).numpy()[:, 3:5]).all())

    def test_a_pass_that_ends_before_a_layer_is_taken_over(self):
        for _, model, _, client, _ in self.each():
            short = client.run(text(2), n_layers=1)
            inputs = client.of("layer", short, 1)[1]["inputs"]
            with self.assertRaisesRegex(Refused, "not read all layers"):
                client.next(short)
            whole = client.run(text(2))
            np.testing.assert_array_equal(client.of("layer", whole, 1)[1]["inputs"], inputs)
            np.testing.assert_array_equal(client.next(whole), logits_of(model, text(2))[-1])

    def test_families_bit_for_bit(self):
        everything = bool(os.environ.get("ATTNSCOPE_ALL_FAMILIES"))
        exact, editable, refused = [], [], []
        for family in FAMILIES if everything else FAMILIES[:4]:
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(f"{family} {dtype}"):
                    try:
                        model = small(family).to(dtype)
                    except Exception as error:  # a family that this version of transformers lacks, or not in these sizes
                        print(f"{family}: not made ({type(error).__name__}: {str(error)[:80]})")
                        break
                    try:
                        server = attach(model)
                    except attnscope.AttnscopeError as error:
                        refused.append(f"{family}: {error}")
                        break
                    with server, Client(server) as client:
                        if not client.description["predicts"]:
                            break
                        logits, plain = logits_of(model, text()), client.run(text())
                        if all((client.next(plain, row) == logits[row]).all() for row in range(T)):
                            exact.append((family, dtype))
                        else:
                            print(f"{family} {dtype}: differs by {np.abs(client.next(plain) - logits[-1]).max():.1e}")
                        if not any(x["not_editable"] for x in client.description["layers"]):
                            editable.append(family)
        n = len({f for f, _ in exact})
        print(f"{n} families, {len(exact)} models bit for bit, {len(set(editable))} families with matrices; refused: {refused}")
        self.assertGreaterEqual(n, 55 if everything else 4)

    def test_what_is_not_reached_is_refused_in_words(self):
        for family in OWN_CODE:
            with self.subTest(family), self.assertRaisesRegex(attnscope.AttnscopeError, "code of its own|an encoder and a decoder"):
                attach(small(family))
        with self.assertRaisesRegex(attnscope.AttnscopeError, "Linear failed on token IDs"):
            attach(torch.nn.Linear(2, 2))
        with self.assertRaisesRegex(attnscope.AttnscopeError, "meta device"):
            attach(small("llama").to("meta"))
        with attach(small("llama"), port=0) as server:
            port = int(server.address.split(":")[1])
            with self.assertRaisesRegex(attnscope.AttnscopeError, f"Port {port} .* cannot be used"):
                attach(small("llama"), port=port)


@needs_torch
@unittest.skipUnless(transformers, "transformers is not installed")
class Server(unittest.TestCase):
    def slow(self):
        model = small("llama")
        for block in model.model.layers:
            block.register_forward_hook(lambda *_: time.sleep(0.2))
        return model

    def test_progress_and_cancelling(self):
        with attach(self.slow()) as server, Client(server) as client:
            _, request = client.start(text())
            time.sleep(0.1)
            began = time.monotonic()
            client.call("cancel", request=request)
            with self.assertRaisesRegex(Refused, "cancelled"):
                client.wait(request)
            self.assertLess(time.monotonic() - began, 0.35)
            client.run(text())
            self.assertIn([1, 2], client.progress)

    def test_the_model_is_used_meanwhile_and_trained_between(self):
        model = small("qwen3")
        expected, wrong, stop = logits_of(model, text()), 0, threading.Event()
        with attach(model, port=0) as server, Client(server) as client:

            def drag():
                for i in range(40):
                    client.call("forget", **{"pass": client.run(text(), [{"layer": i % 2, "heads_off": [i % 4]}])})
                stop.set()

            thread = threading.Thread(target=drag)
            thread.start()
            while not stop.is_set():
                wrong += not np.array_equal(logits_of(model, text()), expected)
            thread.join()
            self.assertEqual(wrong, 0)
            before = client.run(text())
            with server.busy, torch.no_grad():
                model.model.layers[0].self_attn.q_proj.weight.mul_(2)
            with self.assertRaisesRegex(Refused, "have changed since"):
                client.next(before)
            np.testing.assert_array_equal(client.next(client.run(text())), logits_of(model, text())[-1])
            time.sleep(0.7)
            client.call("tokens", text="5")
            self.assertEqual(client.early[0].header["state"], client.last["state"])
            self.assertNotEqual(client.last["state"], client.description["state"])

    def test_models_as_training_and_compiling_leave_them(self):
        def compiled_forward(model):
            model.forward = torch.compile(model.forward)

        changes = {
            "input gradients": lambda m: m.enable_input_require_grads(),
            "checkpoints": lambda m: m.gradient_checkpointing_enable(),
            "checkpoints in training": lambda m: (m.gradient_checkpointing_enable(), m.train()),
            "compiled": lambda m: m.compile(),
            "compiled forward": compiled_forward,
            "own attributes": lambda m: vars(m.model).update(my_hooks=[print], late_hooks=None, hooks_with_kwargs={}, n_hooks=3),
            "own hooks": lambda m: m.lm_head.register_forward_hook(lambda *_: None, always_call=True),
        }
        for name, change in changes.items():
            model = small("llama")
            expected = logits_of(model, text())
            change(model)
            before = digest(model)
            with self.subTest(name), attach(model) as server, Client(server) as client:
                np.testing.assert_array_equal(client.next(client.run(text())), expected[-1])
            self.assertEqual(digest(model), before)

    def test_a_model_made_in_inference_mode(self):
        for family in ("llama", "gpt2", "bert"):
            with torch.inference_mode():
                model = small(family)
            with self.subTest(family), attach(model) as server, Client(server) as client:
                client.run(text())

    def test_a_compiled_function_in_place_of_forward_is_named(self):
        model = small("llama")
        own = model.forward
        model.forward = torch.compile(lambda *args, **kwargs: own(*args, **kwargs), backend="eager")
        with self.assertRaisesRegex(attnscope.AttnscopeError, "forward of LlamaForCausalLM is a compiled function"):
            attach(model)

    def test_parameters_changed_through_data_are_noticed(self):
        for change in (lambda w: w.mul_(2), lambda w: w.sub_(1e-3), lambda w: w.flatten()[-1].add_(0.1), lambda w: w.copy_(w.flip(0))):
            model = small("llama")
            with self.subTest(change), attach(model) as server, Client(server) as client:
                first = client.run(text())
                state = client.last["state"]
                with server.busy:
                    for p in model.parameters():
                        change(p.data)
                np.testing.assert_array_equal(client.next(client.run(text())), logits_of(model, text())[-1])
                self.assertNotEqual(client.last["state"], state)
                with self.assertRaisesRegex(Refused, "have changed since"):
                    client.next(first)

    def test_a_pass_beside_a_cell_of_pure_python(self):
        times = []
        with attach(small("llama")) as server, Client(server) as client:

            def drag():
                for i in range(5):
                    began = time.perf_counter()
                    client.run(text(), [{"layer": 0, "heads_off": [i % 4]}])
                    times.append(time.perf_counter() - began)

            thread = threading.Thread(target=drag)
            thread.start()
            while thread.is_alive():
                pass
        self.assertLess(sorted(times)[2], 1)

    def test_texts(self):
        class Tokenizer:
            mask_token_id, all_special_ids = None, [3]

            def __init__(self, shift=0):
                self.shift = shift

            def __len__(self):
                return 100

            def __call__(self, letters):
                return {"input_ids": [ord(c) + self.shift for c in letters]}

            def convert_ids_to_tokens(self, ids):
                return [f"raw{i}" for i in ids]

            def decode(self, ids):
                return "".join("\ufffd" if i == 122 else chr(i) for i in ids)

        model = small("gpt2")
        with attach(model, Tokenizer()) as server, Client(server) as client:
            header = client.call("tokens", text="a z")[0]
            self.assertEqual((header["pieces"], header["bytes"]), (["raw97", "raw32", "raw122"], ["61", "20", None]))
            self.assertEqual(header["ends"], [1, 2, 3])
            self.assertEqual(header["special"], [False, False, False])
            header = client.call("pieces", {"ids": np.array([3, 97])})[0]
            self.assertEqual((header["bytes"][1], header["special"]), ("61", [True, False]))
            self.assertEqual(client.description["n_tokens"], 100)
        with attach(model, Tokenizer(1000)) as server, Client(server) as client, self.assertRaisesRegex(Refused, "another model"):
            client.call("tokens", text="a")
        with attach(model) as server, Client(server) as client:
            header, arrays = client.call("tokens", text="5 6")
            np.testing.assert_array_equal(arrays["ids"], [5, 6])
            self.assertEqual((header["ends"], bytes.fromhex(header["bytes"][1])), ([1, 3], b" 6"))
            with self.assertRaisesRegex(Refused, "token IDs"):
                client.call("tokens", text="the cat")

    def test_bytes_and_parts_of_a_text(self):
        from attnscope.serving import bytes_of, ends_in

        for decoded, piece, spelled in (
            ("cat", "\u2581cat", b" cat"), (" cat", "\u0120cat", b" cat"), ("\ufffd", "\u00e2\u0122", b"\xe2\x80"), ("\ufffd", "<0xE2>", b"\xe2"), ("", "[17]", b"[17]"),
        ):  # fmt: skip
            self.assertEqual(bytes_of(decoded, piece), spelled)
        text, special = "h\u00e9 \U0001f600 ", [True, False, False, False, True]
        offsets = [(0, 0), (0, 2), (3, 4), (3, 4), (0, 0)]
        self.assertEqual(ends_in(text, offsets, [b"<s>", b"h\xc3\xa9", b"x", b"y", b"</s>"], special), [0, 3, 4, 9, 9])
        self.assertEqual(ends_in(text, None, [b"<s>", b"h\xc3\xa9", b" \xf0\x9f\x98\x80"], special[:3]), [0, 3, 9])

    def test_tokens_are_told_during_a_pass(self):
        with attach(self.slow()) as server, Client(server) as client:
            _, request = client.start(text())
            began = time.monotonic()
            client.call("tokens", text="5 6")
            self.assertLess(time.monotonic() - began, 0.3)
            client.wait(request)
            for _ in range(300):  # finished requests cannot be cancelled
                client.call("cancel", request=request)
            _, request = client.start(text(2))
            client.call("cancel", request=request)
            with self.assertRaisesRegex(Refused, "cancelled"):
                client.wait(request)

    def test_numbers_that_are_not_finite_are_said_with_the_place(self):
        model = small("llama")
        with torch.no_grad():
            model.model.layers[0].mlp.down_proj.weight[0, 0] = float("nan")
        with attach(model) as server, Client(server) as client, self.assertRaisesRegex(Refused, "before block 1 are not finite"):
            client.run(text())

    def test_a_wrong_token_and_lies_before_the_greeting(self):
        lies = [
            (wire.PREFIX.pack(b"ATNS", 40, 1 << 40), "frame too large"), (wire.PREFIX.pack(b"ATNS", 1 << 31, 0), "frame too large"),
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "wrong first bytes"), (wire.pack({"id": 1, "op": "hello", "token": "no"}), "right token"),
            (wire.pack({"id": 1, "op": "run", "pass": 1}), "must be 'hello'"), (wire.PREFIX.pack(b"ATNS", 6, 0) + b"[1, 2]", "not an object"),
            (wire.PREFIX.pack(b"ATNS", 4000, 0) + b"[" * 4000, "not JSON"),
        ]  # fmt: skip
        with attach(small("llama"), port=0) as server:
            for data, words in lies:
                with self.subTest(words), connect(server) as peer:
                    peer.sendall(data)
                    self.assertIn(words, drained(peer).decode(errors="replace"))

    def test_a_lying_length_takes_no_memory_and_a_closed_server_ends_it(self):
        server = attach(small("llama"), port=0)
        with connect(server) as peer:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            peer.sendall(hello(server) + wire.PREFIX.pack(b"ATNS", 20, 200 << 20))
            time.sleep(0.3)
            self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 20 << 10)
        with Client(server) as client:
            server.close()
            with self.assertRaises((wire.Closed, wire.WireError, OSError)):
                client.run(text())

    def test_a_window_that_dies_in_a_pass_costs_nothing(self):
        with attach(self.slow()) as server:
            with Client(server) as client:
                client.start(text())
            with Client(server) as client:
                client.run(text())

    def test_damaged_frames_get_an_answer_or_an_end(self):
        rng = randomly.Random(7)
        ids = {"ids": np.arange(3, 9)}
        edits = [{"layer": 1, "heads_off": [0]}, {"layer": 0}]
        good = [
            wire.pack({"id": 2, "op": "run", "pass": 1, "edits": edits}, ids | {"output.0": np.zeros((6, 64), np.float32)}),
            wire.pack({"id": 4, "op": "tokens", "text": "5 6 7"}), wire.pack({"id": 5, "op": "pieces"}, ids),
        ]  # fmt: skip
        with attach(small("llama"), port=0) as server:
            for i in range(300):
                frame = bytearray(rng.choice(good))
                for _ in range(rng.choice((1, 1, 2, 8))):
                    at = rng.randrange(len(frame))
                    kind = rng.randrange(4)
                    if kind == 0:
                        frame[at] = rng.randrange(256)
                    elif kind == 1:
                        frame[at:at] = rng.randbytes(rng.randrange(1, 9))
                    elif kind == 2:
                        frame[at % 16] = rng.choice((0, 1, 255))
                    else:
                        del frame[at : at + rng.randrange(1, 9)]
                    frame = frame or bytearray(b"A")
                with connect(server) as peer:
                    try:
                        peer.sendall((hello(server) if i % 4 else b"") + bytes(frame))
                        peer.shutdown(socket.SHUT_WR)
                        drained(peer)
                    except OSError:
                        pass
            with Client(server) as client:
                client.run(text())

    def test_well_formed_nonsense_is_refused(self):
        rng = randomly.Random(8)
        junk = [None, -1, 0, 1, 7, 1 << 40, 1 << 70, 1.5, True, "", "x", [], [0], [-1], [99], {}, [[]]]
        arrays = [np.arange(6), np.arange(6).reshape(3, 2), np.zeros(3, np.float32), np.zeros((0, 2)), np.array([np.nan], np.float32)]
        with attach(small("llama"), port=0) as server, Client(server) as client:
            client.run(text())
            for _ in range(500):
                op = rng.choice("tokens pieces run maps layer parameters next lens stream nothing cancel".split())
                names = rng.sample("layer heads_off block row column n_layers edits text request".split(), rng.randrange(6))
                fields = {"pass": rng.choice([1, 1, rng.choice(junk)])} | {n: rng.choice(junk) for n in names}
                if op == "run":
                    fields["edits"] = [{k: rng.choice(junk) for k in ("layer", "heads_off")}]
                try:
                    client.call(op, {"ids": rng.choice(arrays), "output.0": rng.choice(arrays), "output.1": rng.choice(arrays)}, **fields)
                except Refused as error:
                    self.assertEqual(error.code, "refused", error)
            exact, soon = (client.call("next", **{"pass": 1}, row=0, exact=e)[1]["logits"] for e in (True, False))
            np.testing.assert_allclose(exact, soon, atol=1e-5)


@needs_torch
@unittest.skipUnless(transformers, "transformers is not installed")
@unittest.skipUnless(os.environ.get("ATTNSCOPE"), "$ATTNSCOPE names no program")
class Program(unittest.TestCase):
    """The program itself, attached: it computes and displays the model's own numbers."""

    def run_program(self, server, command, *options):
        done = subprocess.run(
            [os.environ["ATTNSCOPE"], command, server.address, *options],
            env={**os.environ, "ATTNSCOPE_TOKEN": server.token}, capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_predictions_are_the_models_own(self):
        words = " ".join(str(i) for i in text().tolist())
        for family, dtype in itertools.product(HAND, (torch.float32, torch.bfloat16)):
            with self.subTest(f"{family} {dtype}"):
                model = small(family).to(dtype)
                plain = logits_of(model, text())[-1]
                hand = logits_of(by_hand(model, family, 1, silence(2), before=True), text())[-1]
                with attach(model) as server:
                    for expected, options in ((plain, ()), (hand, ("--off", "1.2"))):
                        said = json.loads(self.run_program(server, "predict", "--text", words, "--top", "1000", "--json", *options))["next"]
                        got = np.array([t["logit"] for t in sorted(said, key=lambda t: t["id"])], np.float32)
                        np.testing.assert_array_equal(got, expected)
                        probabilities = np.array([t["probability"] for t in sorted(said, key=lambda t: t["id"])])
                        np.testing.assert_allclose(probabilities, softmax(expected.astype(float)), rtol=1e-5)

    def test_layers_are_displayed_with_the_models_weights(self):
        words = " ".join(str(i) for i in text().tolist())
        for family in [*HAND, "olmo2", "bert"]:
            with self.subTest(family), tempfile.TemporaryDirectory() as folder:
                model = small(family)
                eager = copy.deepcopy(model)
                eager.set_attn_implementation("eager")
                with torch.no_grad():
                    wanted = eager(text()[None], output_attentions=True).attentions
                with attach(model) as server:
                    for layer in range(len(wanted)):
                        file = os.path.join(folder, f"{layer}.npz")
                        self.run_program(server, "export", "--text", words, "--layer", str(layer), "--stages", "weights", "--format", "npz", "--out", file)
                        got = np.load(file)
                        names = sorted(n for n in got if "weights" in n)
                        shown = np.stack([got[n] for n in names]) if len(names) > 1 else got[names[0]]
                        np.testing.assert_allclose(shown.reshape(wanted[layer][0].shape), wanted[layer][0], atol=2e-5)

    def test_layers_in_16_bits_are_rebuilt_too(self):
        words = " ".join(str(i) for i in text().tolist())
        for family in HAND:
            with self.subTest(family), tempfile.TemporaryDirectory() as folder:
                model = small(family).to(torch.bfloat16)
                with attach(model) as server, Client(server) as client:
                    plain = client.run(text())
                    for layer in range(len(client.description["layers"])):
                        file = os.path.join(folder, f"{layer}.json")
                        self.run_program(server, "session", "--text", words, "--layer", str(layer), "--out", file)
                        with open(file) as saved:
                            self.assertIsNotNone(json.load(saved)["projections"])
                        shown = self.shown_weights(folder, file)
                        np.testing.assert_allclose(shown, client.of("maps", plain, layer, block=1, row=0)[1]["maps"], atol=3e-2)

    def shown_weights(self, folder, *model):
        file = os.path.join(folder, "weights.npz")
        subprocess.run([os.environ["ATTNSCOPE"], "export", *model, "--stages", "weights", "--out", file], check=True)
        with np.load(file) as got:
            found = [got[n] for n in sorted(got) if "weights" in n]
        return np.stack(found) if len(found) > 1 else found[0]

    def test_the_program_of_an_experiment_runs_on_the_model_itself(self):
        for family in ("gpt2", "llama", "gpt_neox"):
            with self.subTest(family):
                model = small(family)
                with attach(model) as server, Client(server) as client:
                    words = " ".join(map(str, text().tolist()))
                    code = self.run_program(server, "program", "--text", words, "--off", "1.2,1.0")
                    off = client.next(client.run(text(), [{"layer": 1, "heads_off": [0, 2]}]))
                    client.call("edits", program=code)
                    self.assertEqual(server.edits, code)
                    said = io.StringIO()
                    with contextlib.redirect_stdout(said), torch.no_grad():
                        exec(server.edits, {"model": model})
                    torch.set_grad_enabled(True)
                    rows = [line.split("\t") for line in said.getvalue().splitlines()[1:]]
                    self.assertEqual([int(row[1]) for row in rows], np.argsort(-off, kind="stable")[:10].tolist())
                    np.testing.assert_allclose([float(row[3]) for row in rows], np.sort(off)[::-1][:10], atol=2e-5)
                    self.assertFalse(any(m._forward_pre_hooks for m in model.modules()), "a hook has stayed")

    def test_a_small_model_as_the_programs_own_engine_has_it(self):
        folder = str(pathlib.Path(__file__).parents[3] / "assets/examples/tiny_gpt")
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, variant="fp16", dtype=torch.float32).eval()
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")

        def both(command, words, *options):
            own = subprocess.run([os.environ["ATTNSCOPE"], command, folder, "--text", words, *options], capture_output=True, text=True)
            return own.stdout, self.run_program(server, command, "--text", words, *options)

        with attach(model, tokenizer) as server:
            for words in ("egg jam fig and egg jam f", "na\u00efve caf\u00e9 \u2013 \u65e5\u672c \U0001f642  x\n"):
                self.assertEqual(*both("tokens", words, "--json"))
                for options in ((), ("--off", "2.3,2.0")):
                    own, there = (json.loads(s)["next"] for s in both("predict", words, "--json", *options))
                    self.assertEqual([t["text"] for t in own], [t["text"] for t in there])
                    np.testing.assert_allclose([t["logit"] for t in own], [t["logit"] for t in there], atol=1e-4)
            self.assertEqual(*both("generate", "egg jam fig and egg jam f", "--tokens", "5"))

    def test_the_window_opens_and_is_a_client(self):
        with attach(small("llama")) as server, mock.patch.object(program, "start_window") as start:
            start.return_value.wait.side_effect = [subprocess.TimeoutExpired("attnscope", 0.4), 0]
            server.open_window("5 6 7")
            arguments, _, environment = start.call_args.args
            self.assertEqual((arguments, environment), (["attach", server.address, "--text", "5 6 7"], {"ATTNSCOPE_TOKEN": server.token}))
        with mock.patch.object(program, "has_display", lambda: False), contextlib.redirect_stderr(io.StringIO()) as said:
            attnscope.attach(small("llama"), port=0).close()
        self.assertRegex(said.getvalue(), r"ATTNSCOPE_TOKEN=\S+ attnscope attach 127.0.0.1:\d+")


def hello(server):
    return wire.pack({"id": 1, "op": "hello", "token": server.token})


def connect(server):
    host, port = server.address.split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def drained(peer):
    data = b""
    while part := peer.recv(1 << 16):
        data += part
    return data


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
