"""Other programs as servers for whole.py: whole_peers.py NAME FOLDER THREADS, with the commands of whole.cpp.

The folder is made by whole_model.py. A peer that is not installed ends with one line that says so.
"""
import os
import resource
import sys
import time


def onnxruntime_runner(folder, threads):
    import numpy as np
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()][2:]
    empty = {name: np.zeros((1, 12, 0, 64), np.float32) for name in names}

    def run(ids, n_before, cache):
        feed = {"ids": np.array(ids), "positions": np.arange(n_before, n_before + len(ids)), **(cache or empty)}
        logits, *states = session.run(None, feed)
        return logits[0], dict(zip(names, states))
    return run


def pytorch_runner(folder, threads):
    import torch
    import transformers
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def run(ids, n_before, cache):
        if cache is not None and (n_more := cache.get_seq_length() - n_before):
            cache.crop(-n_more)
        result = model(torch.tensor([ids]), past_key_values=cache, use_cache=True, logits_to_keep=1)
        return result.logits[0, -1].numpy(), result.past_key_values
    return run


def llama_runner(file, threads):
    import ctypes
    import llama_cpp as llama
    llama_runner.silent = llama.llama_log_callback(lambda *_: None)  # kept alive, because it is still called
    llama.llama_log_set(llama_runner.silent, ctypes.c_void_p(0))
    llama.llama_backend_init()
    of_model = llama.llama_model_default_params()
    of_model.use_extra_bufts = False  # repacked weights were slower
    model = llama.llama_model_load_from_file(file.encode(), of_model)
    of_context = llama.llama_context_default_params()
    of_context.n_ctx, of_context.n_batch, of_context.n_ubatch = 1024, 1024, 512
    of_context.n_threads = of_context.n_threads_batch = threads
    context = llama.llama_init_from_model(model, of_context)
    memory, batch = llama.llama_get_memory(context), llama.llama_batch_init(1024, 0, 1)

    def run(ids, n_before, cache):
        llama.llama_memory_seq_rm(memory, 0, n_before, -1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, n_before + i, 1, 0
            batch.logits[i] = i == len(ids) - 1
        if llama.llama_decode(context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        return llama.llama_get_logits_ith(context, len(ids) - 1), None
    return run


def ctranslate2_runner(folder, threads):
    import ctranslate2
    import numpy as np
    generator = ctranslate2.Generator(f"{folder}/ctranslate2", device="cpu", intra_threads=threads, compute_type="float32")

    def generate(ids, count):  # its cache cannot be kept: the time of one more token is a difference of two calls
        generator.generate_batch([[str(token) for token in ids]], min_length=count, max_length=count, include_prompt_in_result=False)

    def logits(ids):
        return np.array(generator.forward_batch([[str(token) for token in ids]]).to_device(ctranslate2.Device.cpu))[0, -1]
    return generate, logits


RUNNERS = {"PyTorch": pytorch_runner, "ONNX Runtime": onnxruntime_runner}


def tokens(n):
    return [(k * 7919 + 13) % 50257 for k in range(n)]


def timed(call, repeats):
    times = []
    for _ in range(repeats):
        start, used = time.perf_counter(), time.process_time()
        call()
        times += [time.perf_counter() - start, time.process_time() - used]
    return times


def serve(answer):
    print("ready", flush=True)
    for line in sys.stdin:
        what, *numbers = line.split()
        if what == "memory":
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
        else:
            print(*answer(what, *(int(n) for n in numbers)), flush=True)


def main():
    name, folder, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if name == "CTranslate2":
        generate, logits = ctranslate2_runner(folder, threads)

        def answer(what, n, repeats=1):
            if what.endswith("logits"):
                return logits(tokens(n + (what == "onelogits")))
            if what == "read":
                return timed(lambda: generate(tokens(n), 1), repeats)
            some, more = (timed(lambda: generate(tokens(n), count), repeats) for count in (1, 9))
            return [(b - a) / 8 for a, b in zip(some, more)]
        return serve(answer)
    run = llama_runner(folder, threads) if name == "llama.cpp" else RUNNERS[name](folder, threads)

    def answer(what, n, repeats=1):
        text, cache = tokens(n), None
        if what.startswith("one"):
            _, cache = run(text, 0, None)
        call = (lambda: run(tokens(n + 1)[n:], n, cache)) if what.startswith("one") else (lambda: run(text, 0, None))
        if not what.endswith("logits"):
            return timed(call, repeats)
        logits, _ = call()
        return [float(logits[i]) for i in range(50257)]
    serve(answer)


if __name__ == "__main__":
    try:
        main()
    except ImportError as error:
        sys.exit(f"missing: {error}")
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}"[:200])
