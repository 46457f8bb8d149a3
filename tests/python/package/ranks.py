"""One rank of a job for test_large.py: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set.

    ranks.py compare KIND FAMILY…   engine and capture of whole models and of tp, fsdp or mesh (both) ones; rank 0 prints JSON
    ranks.py serve KIND FAMILY      attach() on every rank; rank 0 prints its address, all wait
    ranks.py fail KIND FAMILY       the same; rank 1 fails at the second layer of a text whose first token is 7
    ranks.py late KIND FAMILY       rank 1 does not call attach()
    ranks.py train KIND FAMILY      serve() between 40 steps of training"""

import json
import os
import sys
import time
import warnings

from support import np, torch

warnings.simplefilter("ignore")
torch.set_num_threads(1)

import transformers
from test_families import small
from torch import distributed, nn
from transformers import AutoModelForCausalLM

import attnscope
from attnscope.engine import Edits, Engine, difference
from attnscope.serving import attach

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
IDS = torch.randint(3, 100, (12,), generator=torch.Generator().manual_seed(1))
FOLDER = os.environ.get("RANKS_FOLDER", "/tmp")


def made(family):
    if family != "mqa":
        return small(family)
    torch.manual_seed(0)  # one KV head, which every rank has
    config = transformers.LlamaConfig(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1, vocab_size=128)
    return AutoModelForCausalLM.from_config(config).eval()


def sharded(family, kind):
    folder = f"{FOLDER}/{family}"
    if distributed.get_rank() == 0 and not os.path.isdir(folder):
        made(family).save_pretrained(folder)
    distributed.barrier()
    if kind == "tp":
        plan = "auto"
        if family == "mqa":
            gathered = dict.fromkeys(("model.layers.*.self_attn.k_proj", "model.layers.*.self_attn.v_proj"), "colwise_gather_output")
            plan = {"model.layers.*.self_attn.q_proj": "colwise", "model.layers.*.self_attn.o_proj": "rowwise"} | gathered
        model = AutoModelForCausalLM.from_pretrained(folder, tp_plan=plan).eval()
        for module in model.modules() if family == "mqa" else ():
            if hasattr(module, "num_key_value_groups"):
                module.num_key_value_groups = 2  # query heads of a rank for its KV head
        return model
    if kind == "ddp":
        return nn.parallel.DistributedDataParallel(AutoModelForCausalLM.from_pretrained(folder).eval())
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    mesh = init_device_mesh("cpu", (2,))
    if kind == "mesh":
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        both = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
        for block in model.model.layers:
            names = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
            parallelize_module(block, both["tp"], dict.fromkeys(names, ColwiseParallel()) | {"self_attn.o_proj": RowwiseParallel()})
        mesh = both["dp"]
    for block in next(m for m in model.modules() if isinstance(m, nn.ModuleList)):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def numbers(model):
    """Returns what a window gets of a model: logits, also with an ablated head and a given output, maps, a matrix, what heads add."""
    e = Engine(model)
    plain, off = e.run(IDS), e.run(IDS, {1: Edits(frozenset([2]))})
    given = torch.from_numpy(np.random.default_rng(0).normal(size=(12, e.d_model)).astype(np.float32))
    given, layer = e.run(IDS, {0: Edits(output=given)}), plain.layers[1]
    resumed = e.run(IDS, {1: Edits(frozenset([2]))}, passes=[plain])
    found = [e.head(p.residuals[-1][0]) for p in (plain, off, given, resumed)] + [layer.weights()]
    return found + [layer.site.matrices["query"].weight(), layer.added(11)], [(s.n_heads, s.n_kv_heads, s.problem) for s in e.sites]


def captured(model):
    with torch.no_grad(), attnscope.capture(model) as c:
        model(IDS[None])
    return c


def compare(kind, families):
    for family in families:
        whole, part = made(family), sharded(family, kind)
        (there, sites), (here, own) = numbers(whole), numbers(part)
        own_capture, expected = captured(part), captured(whole)
        first = list(own_capture[0].heads)
        c = own_capture.gathered()
        stages = max(float(np.abs(a.stages()[s] - b.stages()[s]).max()) for a, b in zip(c, expected) for s in ("queries", "keys", "values", "weights", "contexts", "output") if s in a.stages())
        if distributed.get_rank() == 1:
            distributed.send_object_list([first], 0)
            continue
        others = [None]
        distributed.recv_object_list(others, 1)
        print(json.dumps({
            "family": family, "sites": sites == own, "problems": [s[2] for s in own if s[2]], "equal": all(map(torch.equal, here, there)),
            "worst": max(difference(a, b) for a, b in zip(here, there)), "heads": [first, others[0]], "captured": stages,
            "shapes": [a.shape for a in c] == [b.shape for b in expected], "said": own_capture.problems,
        }), flush=True)  # fmt: skip


def main():
    what, kind, *families = sys.argv[1:]
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    torch.set_grad_enabled(False)
    if what == "compare":
        compare(kind, families)
        distributed.barrier()
        distributed.destroy_process_group()
        return
    model = sharded(families[0], kind)
    if what == "late" and rank == 0:
        print(json.dumps({"ready": True}), flush=True)
    if what == "late" and rank == 1:
        time.sleep(60)
    try:
        attached = attach(model, port=0)
        if rank == 0:
            print(json.dumps({"address": attached.address, "token": attached.token}), flush=True)
        if what == "fail" and rank == 1:
            run = attached.engine.run

            def failing(ids, edits=None, n_layers=None, passes=(), progress=lambda *_: None):
                def stops(done, of):
                    progress(done, of)
                    if done and ids[0] == 7:
                        raise MemoryError("no memory left on this rank")

                return run(ids, edits, n_layers, passes, stops)

            attached.engine.run = failing
        if what == "train":
            torch.set_grad_enabled(True)
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
            for _ in range(40):
                model(IDS[None], labels=IDS[None]).loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                attached.serve()
                time.sleep(0.05)
            print(json.dumps({"rank": rank, "done": True}), flush=True)
            return
        attached.wait()
    except attnscope.AttnscopeError as error:
        print(json.dumps({"rank": rank, "error": str(error)}), flush=True)
        os._exit(1)


if __name__ == "__main__":
    main()
