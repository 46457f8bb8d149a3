"""check_inference.py ATTNSCOPE: random sessions with random mistakes, computed by its own attention (loops over heads); counts how many
the check names with their numbers. Each mistake has a pattern and the numbers that a right answer must contain; strange changes that no
rule describes must get no cause. ATTNSCOPE_TRIALS=1000 tries more of them, ATTNSCOPE_SEED others.
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    sys.exit(77)


from asking import asked, bfloat16, numbers_of

ROUND = {"float64": lambda x: np.asarray(x, np.float64), "float32": lambda x: np.asarray(x, np.float32).astype(np.float64), "bfloat16": bfloat16}


def session(g):
    H = int(g.choice([2, 4, 4, 6, 8]))
    G = int(g.choice([k for k in range(1, H + 1) if H % k == 0]))
    d = int(g.choice([4, 8, 8, 16]))
    D = int(g.choice([H * d, H * d, 24, 32, 40]))
    T = int(g.integers(6, 15))
    cross = g.random() < 0.15
    cache = not cross and g.random() < 0.12
    S = int(g.integers(5, 15)) if cross else T
    if cache:
        S, T = T + 3, int(g.integers(1, 4))
    u = lambda *shape, s=1.0: np.round(g.standard_normal(shape) * s, 4)
    bias = g.random() < 0.35
    def linear(i, o, b):
        return dict(weight=u(i, o, s=1.2 / np.sqrt(i)).tolist(), bias=u(o, s=0.5).tolist() if b else None)
    s = dict(attnscope=1, embeddings=u(T, D).tolist(), n_heads=H, n_kv_heads=G, projections=dict(query=linear(D, H * d, bias), key=linear(D, G * d, bias), value=linear(D, G * d, bias), output=linear(H * d, D, bias and g.random() < 0.7)))
    mask = s["mask"] = dict(causal=bool(not cross and g.random() < 0.8), empty_rows="zeros")
    if cross or cache:
        s["key_embeddings"] = u(S, D).tolist()
    kind = g.choice(["plain", "rope", "rope", "rope", "alibi", "bias", "relative"]) if not cross else "plain"
    if kind == "rope":
        r = dict(base=float(g.choice([10000.0, 500000.0, 1000000.0, 10000.0])), pairs=str(g.choice(["halves", "halves", "neighbours"])))
        if g.random() < 0.3 and d >= 8:
            r["dimensions"] = d // 2
        if g.random() < 0.15:
            r["first"] = int(g.integers(1, 6))
        if g.random() < 0.2:
            r["scaling"] = dict(rule="linear", factor=float(g.choice([2.0, 4.0, 8.0]))) if g.random() < 0.5 else dict(rule="llama3", factor=8.0, low=1.0, high=4.0, original=64)
        s["positions"] = dict(rotary=r)
        if g.random() < 0.35:
            s["normalise"] = dict(rule=str(g.choice(["rms", "rms", "layer"])), query=np.round(g.uniform(0.3, 1.8, d), 3).tolist(), key=np.round(g.uniform(0.3, 1.8, d), 3).tolist(), epsilon=float(g.choice([1e-6, 1e-5])))
    if kind == "alibi":
        s["positions"] = dict(alibi={} if g.random() < 0.5 else dict(slopes=np.round(g.uniform(0.05, 0.8, H), 3).tolist()))
    if kind == "relative":
        s["positions"] = dict(relative=dict(table=u(H, 8).tolist(), max_distance=int(g.choice([16, 12, 20])), bidirectional=bool(not mask["causal"])))
    if kind == "bias":
        s["score_bias"] = u(*((H, T, S) if g.random() < 0.6 else (T, S))).tolist()
    if g.random() < 0.2:
        s["score_cap"] = float(g.choice([2.0, 5.0, 3.0]))
    if g.random() < 0.2:
        s["scale"] = float(np.round(g.uniform(0.1, 0.6), 3)) if g.random() < 0.6 else "none"
    if g.random() < 0.25:
        s["sink"] = u(H).tolist()
    if not cross and not cache and g.random() < 0.3:
        mask["window"] = [int(g.integers(2, 5)), 0 if mask["causal"] else int(g.integers(1, 4))]
    if not cross and not cache and g.random() < 0.15:
        cut = int(g.integers(2, T - 2))
        mask["documents"] = [0] * cut + [1] * (T - cut)
    if g.random() < 0.2 and not cache:
        n = int(g.integers(1, 3))
        mask["hidden_keys"] = list(range(S - n, S)) if g.random() < 0.7 else list(range(n))
    if g.random() < 0.08 and mask["causal"]:
        mask["prefix"] = int(g.integers(1, 4))
    return s


def theirs(s, bugs, precision):
    """Computes attention head by head, with bugs {name: parameter}."""
    R, has = ROUND[precision], lambda n: n in bugs
    X = np.array(s["embeddings"])
    Xk = np.array(s["key_embeddings"]) if "key_embeddings" in s else X
    H, G = s["n_heads"], s["n_kv_heads"]
    P = s["projections"]
    T, S = len(X), len(Xk)
    out = {}
    if has("input_scaled"):
        X, Xk = X * bugs["input_scaled"], Xk * bugs["input_scaled"]
    W, B = {}, {}
    for n in ("query", "key", "value", "output"):
        W[n] = np.array(P[n]["weight"])
        B[n] = np.zeros(W[n].shape[1]) if P[n]["bias"] is None else np.array(P[n]["bias"])
    d = W["query"].shape[1] // H
    if has("bias_times"):
        which, f = bugs["bias_times"]
        for n in which:
            B[n] = B[n] * f
    if has("transposed"):
        for n in bugs["transposed"]:
            W[n] = W[n].T.copy()
    if has("swapped"):
        a, b = bugs["swapped"]
        W[a], W[b], B[a], B[b] = W[b], W[a], B[b], B[a]
    if has("fused"):  # stored by head (or as bands), split the other way
        q, k, v = (np.vstack([W[n], B[n]]) for n in ("query", "key", "value"))
        if bugs["fused"] == "stored by head":
            strip = np.concatenate([np.concatenate([q[:, g_ * (H // G) * d:(g_ + 1) * (H // G) * d], k[:, g_ * d:(g_ + 1) * d], v[:, g_ * d:(g_ + 1) * d]], 1) for g_ in range(G)], 1)
            parts = np.split(strip, [H * d, (H + G) * d], 1)
        else:
            strip = np.concatenate([q, k, v], 1)
            per, qs, ks, vs = (H // G + 2) * d, [], [], []
            for g_ in range(G):
                piece = strip[:, g_ * per:(g_ + 1) * per]
                qs.append(piece[:, :(H // G) * d]), ks.append(piece[:, (H // G) * d:(H // G + 1) * d]), vs.append(piece[:, (H // G + 1) * d:])
            parts = [np.concatenate(z, 1) for z in (qs, ks, vs)]
        for n, z in zip(("query", "key", "value"), parts):
            W[n], B[n] = z[:-1], z[-1]
    odd = np.random.default_rng(17)
    if has("strange") and bugs["strange"] == "weight entry":
        W["query"][odd.integers(W["query"].shape[0]), odd.integers(W["query"].shape[1])] += 0.7
    if has("strange") and bugs["strange"] == "token":
        Xk = Xk.copy()
        Xk[len(Xk) // 2] = odd.standard_normal(Xk.shape[1])
    Wr = {n: R(W[n]) for n in W}
    X, Xk = R(X), R(Xk)
    def cut(y, n, name):
        if has("view") and name in bugs["view"]:
            return [y.reshape(n, len(y), d)[h] for h in range(n)]
        if has("split_interleaved") and name in bugs["split_interleaved"]:
            return [y[:, h::n] for h in range(n)]
        return [y[:, h * d:(h + 1) * d] for h in range(n)]
    Q, K, V = cut(R(X @ Wr["query"] + R(B["query"])), H, "query"), cut(R(Xk @ Wr["key"] + R(B["key"])), G, "key"), cut(R(Xk @ Wr["value"] + R(B["value"])), G, "value")
    if has("stale_keys"):
        n = bugs["stale_keys"]
        K = [np.roll(k, n, 0) for k in K]
    if has("strange"):
        if bugs["strange"] == "int8 keys":
            K = [np.round(k / np.abs(k).max() * 127) / 127 * np.abs(k).max() for k in K]
        if bugs["strange"] == "gated":
            Q = [R(q / (1 + np.exp(-q))) for q in Q]
        if bugs["strange"] == "columns":
            c = odd.uniform(0.5, 1.5, d)
            K = [R(k * c) for k in K]
    if has("stage_factor"):
        name, f = bugs["stage_factor"]
        Q, K, V = [[R(z * (f if n == name else 1)) for z in zs] for n, zs in (("queries", Q), ("keys", K), ("values", V))]
    pos = s.get("positions", {})
    rot = pos.get("rotary")
    def turn(x, p, side):
        x = x.copy()
        n = rot.get("dimensions", d)
        base = rot["base"]
        if has("base"):
            base = bugs["base"]
        over = n
        if has("dims"):
            n = over = bugs["dims"]
        if has("over_width"):
            over = d
        inv = np.array([base ** (-2.0 * i / over) for i in range(n // 2)])
        sc = rot.get("scaling")
        if sc and not has("scaling_missing"):
            if sc["rule"] == "linear":
                inv = inv / sc["factor"]
            else:
                new = []
                for f in inv:
                    wave = 2 * np.pi / f
                    if wave < sc["original"] / sc["high"]:
                        new.append(f)
                    elif wave > sc["original"] / sc["low"]:
                        new.append(f / sc["factor"])
                    else:
                        t = (sc["original"] / wave - sc["low"]) / (sc["high"] - sc["low"])
                        new.append((1 - t) * f / sc["factor"] + t * f)
                inv = np.array(new)
        if has("frequency_factor"):
            inv = inv * bugs["frequency_factor"]
        halves = (rot["pairs"] == "halves") != has("pairs")
        for i in range(n // 2):
            a, b = (i, i + n // 2) if halves else (2 * i, 2 * i + 1)
            t = p * inv[i]
            if has("backwards"):
                t = -t
            c, si = np.cos(t), np.sin(t)
            xa, xb = x[:, a].copy(), x[:, b].copy()
            x[:, a] = xa * c - xb * si
            if has("in_place"):
                xa = x[:, a]
            x[:, b] = xb * c + xa * si
        return R(x)
    nrm = s.get("normalise")
    def norm(x, side):
        w = np.array(nrm["query" if (side == "q") != has("norm_swapped") else "key"])
        rule, eps = nrm["rule"], nrm["epsilon"]
        if has("norm_rule"):
            rule = bugs["norm_rule"]
        if has("norm_eps"):
            eps = bugs["norm_eps"]
        if has("one_plus_w"):
            w = 1 + w
        if has("no_norm_weight"):
            w = np.ones(d)
        y = x - x.mean(1, keepdims=True) if rule == "layer" else x
        if rule == "l2":
            return R(w * y / np.sqrt((y ** 2).sum(1, keepdims=True) + eps))
        return R(w * y / np.sqrt((y ** 2).mean(1, keepdims=True) + eps))
    first = (rot or {}).get("first", 0)
    pk, pq = first + np.arange(S), first + np.arange(T) + S - T
    if has("queries_shifted"):
        pq = pq + bugs["queries_shifted"]
    if has("positions_first"):
        pq = first + np.arange(T)
    if has("positions_scaled"):
        pq, pk = pq * bugs["positions_scaled"], pk * bugs["positions_scaled"]
    if has("positions_constant"):
        pq = 0 * pq + bugs["positions_constant"]
    if has("restart"):
        pq, pk = pq % bugs["restart"], pk % bugs["restart"]
    out["queries"], out["keys"], out["values"] = np.stack(Q), np.stack(K), np.stack(V)
    def prepare(x, p, side, skip_rot, skip_norm):
        n = r_ = x
        if has("norm_after") and nrm and rot:
            r_ = turn(x, p, side)
            return norm(r_, side), norm(r_, side)
        if nrm and not skip_norm:
            n = norm(x, side)
        r_ = turn(n, p, side) if rot and not skip_rot else n
        return n, r_
    nq = [prepare(x, pq, "q", has("not_rotated") and "q" in bugs["not_rotated"], has("norm_missing") and "q" in bugs["norm_missing"]) for x in Q]
    nk = [prepare(x, pk, "k", has("not_rotated") and "k" in bugs["not_rotated"], has("norm_missing") and "k" in bugs["norm_missing"]) for x in K]
    if nrm and not has("norm_after"):
        out["normed_queries"], out["normed_keys"] = np.stack([a for a, _ in nq]), np.stack([a for a, _ in nk])
    if rot:
        if not has("norm_after"):
            out["rotated_queries"], out["rotated_keys"] = np.stack([b for _, b in nq]), np.stack([b for _, b in nk])
        if has("values_rotated"):
            V = [turn(v, pk, "k") for v in V]
            out["values"] = np.stack(V)
    # the mask
    m = s["mask"]
    see = np.zeros((T, S), bool)
    hidden = set(m.get("hidden_keys", []))
    if has("padding_shifted"):
        hidden = {h + bugs["padding_shifted"] for h in hidden}
    if has("padding_missing"):
        hidden = set()
    win = m.get("window")
    if has("window"):
        win = bugs["window"]
    docs = None if has("documents_ignored") else m.get("documents")
    causal = m["causal"] != has("causal_flipped")
    off = S - T
    if has("aligned_first"):
        off = 0
    for i in range(T):
        for j in range(S):
            p = i + off
            ok = (not causal or j <= p + bugs.get("diagonal", 0)) and (not win or ((win[0] < 0 or j >= p - win[0]) and (win[1] < 0 or j <= p + win[1])))
            ok = ok or j < m.get("prefix", 0) and not has("prefix_missing")
            if docs and docs[min(p, len(docs) - 1)] != docs[j]:
                ok = False
            see[i, j] = ok and j not in hidden
    if has("inverted"):
        see = ~see
    if has("mask_transposed"):
        see = see.T
    given = np.array(s["score_bias"]) if "score_bias" in s else None
    bias = None
    if pos.get("alibi") is not None or pos.get("relative") is not None or given is not None:
        bias = np.zeros((H, T, S))
        dist = np.abs((np.arange(T) + S - T)[:, None] - np.arange(S)[None])
        if pos.get("alibi") is not None:
            sl = pos["alibi"].get("slopes")
            if sl is None:
                n2 = 2 ** int(np.log2(H))
                sl = [2 ** (-8 * (h + 1) / n2) for h in range(n2)]
                sl += [2 ** (-8 * (h + 1) / (2 * n2)) for h in range(0, 2 * n2, 2)][:H - n2]
            sl = np.array(sl)
            if has("slopes"):
                sl = np.array(bugs["slopes"])
            if has("slopes_reversed"):
                sl = sl[::-1]
            bias = -sl[:, None, None] * dist
        if pos.get("relative") is not None:
            t = pos["relative"]
            table, md, bi = np.array(t["table"]), t["max_distance"], t["bidirectional"]
            if has("max_distance"):
                md = bugs["max_distance"]
            if has("bidirectional"):
                bi = not bi
            for i in range(T):
                for j in range(S):
                    rel, n, at = j - (i + S - T), table.shape[1], 0
                    if has("relative_sign"):
                        rel = -rel
                    if bi:
                        n //= 2
                        at = n if rel > 0 else 0
                        rel = abs(rel)
                    else:
                        rel = max(-rel, 0)
                    e = n // 2
                    at += rel if rel < e else min(n - 1, e + int(np.log(rel / e) / np.log(md / e) * (n - e)))
                    bias[:, i, j] = table[:, at]
        if given is not None:
            bias = bias + given
        if has("bias_factor"):
            bias = bias * bugs["bias_factor"]
        if has("bias_head"):
            bias = np.stack([bias[bugs["bias_head"]]] * H)
        if has("bias_rolled"):
            bias = np.roll(bias, -bugs["bias_rolled"], 0)
    sc = s.get("scale", "inverse_sqrt_d_head")
    sc = d ** -0.5 if sc == "inverse_sqrt_d_head" else 1.0 if sc == "none" else sc
    if has("scale"):
        sc = bugs["scale"]
    cap = s.get("score_cap")
    if has("cap"):
        cap = bugs["cap"]
    sink = np.array(s["sink"]) if "sink" in s else None
    names = ["scores", "scaled_scores"] + (["capped_scores"] if s.get("score_cap") else []) + (["biased_scores"] if bias is not None else []) + ["masked_scores", "weights"]
    for n in names:
        out[n] = []
    kv = [h // (H // G) for h in range(H)]
    kk, vv = list(kv), list(kv)
    if has("kv_heads"):
        which, rule = bugs["kv_heads"]
        new = [h % G for h in range(H)] if rule == "tiled" else [rule] * H
        kk, vv = (new if "k" in which else kk), (new if "v" in which else vv)
    A = []
    for h in range(H):
        q, k = nq[h][1], nk[kk[h]][1]
        a = R(q @ k.T)
        out["scores"].append(a)
        if has("bias_before_scale") and bias is not None:
            a = R(a + bias[h])
        if has("cap_before_scale") and cap:
            a = R(cap * np.tanh(a / cap))
        a = R(a * sc)
        out["scaled_scores"].append(a)
        if cap and not has("cap_missing") and not has("cap_before_scale") and not has("cap_after_bias"):
            a = R(np.clip(a, -cap, cap) if has("cap_clipped") else cap * np.tanh(a / cap))
        if s.get("score_cap"):
            out["capped_scores"].append(a)
        if bias is not None:
            if not has("bias_before_scale"):
                a = R(a + bias[h])
            if has("cap_after_bias") and cap:
                a = R(cap * np.tanh(a / cap))
            out["biased_scores"].append(a)
        see_h = see | (np.ones_like(see) if has("head_unmasked") and h == bugs["head_unmasked"] else False)
        if has("mask_zero"):
            a = np.where(see_h, a, 0.0)
        elif has("mask_value"):
            a = R(np.where(see_h, a, bugs["mask_value"]))
        elif has("mask_plus"):
            a = R(a + see_h)
        elif not has("mask_after"):
            a = np.where(see_h, a, -np.inf)
        out["masked_scores"].append(a)
        axis = 0 if has("axis") else 1
        top = a.max(axis, keepdims=True)
        top = np.where(np.isfinite(top), top, 0)
        e = np.exp(a - top)
        total = e.sum(axis, keepdims=True)
        if sink is not None and not has("sink_missing"):
            z = sink[h]
            if has("sink_rolled"):
                z = sink[(h + bugs["sink_rolled"]) % H]
            if has("sink_values"):
                z = bugs["sink_values"][h]
            if has("sink_base2"):
                z = z * np.log(2)
            f = bugs.get("sink_times", 1.0)
            total = total + (f * np.exp(z) if has("sink_not_rescaled") else f * np.exp(z - top))
        if has("plus_one"):
            total = total + bugs["plus_one"] * np.exp(-top)
        with np.errstate(all="ignore"):
            w = e / total
        if has("mask_after"):
            w = w * see_h
            if bugs["mask_after"] == "renormalised":
                with np.errstate(all="ignore"):
                    w = w / w.sum(1, keepdims=True)
        w = R(np.where(np.isnan(w), 0.0, w))
        A.append(w)
    if has("strange") and bugs["strange"] == "noise":
        A = [R(a * (1 + 0.01 * odd.standard_normal(a.shape))) for a in A]
    if has("strange") and bugs["strange"] == "power":
        A = [R(a ** 2) for a in A]
    if has("lambda"):
        A = [R(A[h] - bugs["lambda"] * A[h ^ 1]) for h in range(H)]
    if has("head_factor"):
        h, f = bugs["head_factor"]
        A[h] = R(A[h] * f)
    for h in range(H):
        out["weights"].append(A[h])
    g = np.random.default_rng(5)
    if has("dropout"):
        p = bugs["dropout"]
        A = [R(a * (g.random(a.shape) >= p) / (1 - p)) for a in A]
    C = [R(A[h] @ (np.roll(V[vv[h]], bugs["values_rolled"], 0) if has("values_rolled") else V[vv[h]])) for h in range(H)]
    if has("strange") and bugs["strange"] == "curved":
        C = [R(np.tanh(c)) for c in C]
    if has("head_off"):
        C[bugs["head_off"]] = C[bugs["head_off"]] * 0
    out["contexts"] = np.stack(C)
    merged = np.concatenate(C, 1)
    if has("merge_reshape"):
        merged = np.stack(C).reshape(T, H * d)
    if has("merge_interleaved"):
        merged = np.stack(C, 2).reshape(T, H * d)
    y = R(merged @ Wr["output"] + R(B["output"]))
    if has("residual"):
        y = R(y + np.array(s["embeddings"]))
    if has("output_factor"):
        y = R(y * bugs["output_factor"])
    out["output"] = y
    return {k: np.stack(v) if isinstance(v, list) else v for k, v in out.items()}


def bug_list():
    """Returns name: (draw(g, s) -> parameter or None, pattern of a right answer, its numbers)."""
    L = {}
    def add(name, draw, pattern, nums=lambda v, s: []):
        L[name] = (draw, pattern, nums)
    rope = lambda s: "rotary" in s.get("positions", {})
    dims = lambda s: len(s["projections"]["query"]["weight"][0]) // s["n_heads"]
    T = lambda s: len(s["embeddings"])
    S = lambda s: len(s.get("key_embeddings", s["embeddings"]))
    cross = lambda s: "key_embeddings" in s
    if_ = lambda ok, v: v() if ok else None
    shape = lambda s, n: np.shape(s["projections"][n]["weight"])
    biased = lambda s: any(k in s.get("positions", {}) for k in ("alibi", "relative")) or "score_bias" in s
    own = lambda s: {"inverse_sqrt_d_head": dims(s) ** -0.5, "none": 1.0}.get(s.get("scale", "inverse_sqrt_d_head"), s.get("scale"))
    add("input_scaled", lambda g, s: if_(not cross(s), lambda: float(np.round(g.uniform(1.5, 6), 2))), "input of the .* multiplied|scale is|multiplied|ε", lambda v, s: [[v, v * v, v * v * own(s), 1 / v, s.get("normalise", {}).get("epsilon", 1) / v ** 2]])
    add("bias_times", lambda g, s: if_(s["projections"]["query"]["bias"], lambda: (list(g.choice(["query", "key", "value"], int(g.integers(1, 3)), replace=False)), float(g.choice([0.0, 2.0, 3.0])))), "bias of the", lambda v, s: [])
    add("transposed", lambda g, s: (lambda ok: [str(g.choice(ok))] if ok else None)([n for n in ("query", "key", "value", "output") if shape(s, n)[0] == shape(s, n)[1]]), "transposed")
    add("swapped", lambda g, s: if_(True, lambda: ("key", "value")) if g.random() < 0.5 else if_(shape(s, "query") == shape(s, "key"), lambda: ("query", "key")), "come from the .* projection|k·q|transposed|order k|order q")
    add("fused", lambda g, s: if_(not cross(s), lambda: str(g.choice(["stored by head", "stored as bands"]))), "fused QKV")
    add("view", lambda g, s: if_(s["n_kv_heads"] > 1, lambda: ["query", "key", "value"] if g.random() < 0.5 else [str(g.choice(["query", "key", "value"]))]), "by a view")
    add("split_interleaved", lambda g, s: if_(s["n_kv_heads"] > 1, lambda: ["query", "key", "value"] if g.random() < 0.5 else [str(g.choice(["query", "key", "value"]))]), "interleaved")
    add("stale_keys", lambda g, s: int(g.choice([1, -1, 2])), "rolled|rows|out of step|every row is")
    add("stage_factor", lambda g, s: (str(g.choice(["queries", "keys", "values"])), float(np.round(g.uniform(0.3, 3), 3))), "multiplied by|scale is|epsilon|ε", lambda v, s: [[v[1], v[1] * own(s), 1 / v[1] ** 2, s.get("normalise", {}).get("epsilon", 1) / v[1] ** 2]])
    add("base", lambda g, s: if_(rope(s) and s["positions"]["rotary"].get("dimensions", dims(s)) > 2, lambda: float(np.round(10 ** g.uniform(1.8, 6.3), 1))), "rotary base|exponents", lambda v, s: [v])
    add("dims", lambda g, s: if_(rope(s) and dims(s) > 4, lambda: int(g.choice([n for n in range(2, dims(s) + 1, 2) if n != s["positions"]["rotary"].get("dimensions", dims(s))]))), "columns are rotated", lambda v, s: [v])
    add("over_width", lambda g, s: if_(rope(s) and "dimensions" in s["positions"]["rotary"], lambda: True), "exponents|base")
    add("scaling_missing", lambda g, s: if_(rope(s) and "scaling" in s["positions"]["rotary"], lambda: True), "scaling of the frequencies is missing|positions are multiplied|frequencies are")
    add("frequency_factor", lambda g, s: if_(rope(s), lambda: float(np.round(g.uniform(0.1, 2), 2))), "multiplied", lambda v, s: [v])
    add("pairs", lambda g, s: if_(rope(s) and s["positions"]["rotary"].get("dimensions", dims(s)) > 2, lambda: True), "pairs are")
    add("backwards", lambda g, s: if_(rope(s), lambda: True), "negated|× ?−1|−1")
    add("in_place", lambda g, s: if_(rope(s), lambda: True), "in place")
    add("queries_shifted", lambda g, s: if_(rope(s), lambda: int(g.choice([-1, 1]) * g.integers(1, 21))), "positions of the (queries|keys) are", lambda v, s: [abs(v)])
    add("positions_first", lambda g, s: if_(rope(s) and S(s) != T(s), lambda: True), "behind|counted from|position 0")
    add("positions_scaled", lambda g, s: if_(rope(s), lambda: float(np.round(g.uniform(0.2, 3), 2))), "multiplied", lambda v, s: [v])
    add("positions_constant", lambda g, s: if_(rope(s) and T(s) > 1, lambda: int(g.integers(0, 4))), "(is|are) at position|not rotated|before norm", lambda v, s: [v] if v else [])
    add("restart", lambda g, s: if_(rope(s), lambda: int(g.integers(3, 6))), "restart every", lambda v, s: [v])
    add("not_rotated", lambda g, s: if_(rope(s), lambda: str(g.choice(["qk", "q", "k"]))), "not rotated|(is|are) at position 0|before norm and rotation")
    add("values_rotated", lambda g, s: if_(rope(s), lambda: True), "values are rotated")
    add("norm_rule", lambda g, s: if_("normalise" in s, lambda: str(g.choice([r for r in ("rms", "layer", "l2") if r != s["normalise"]["rule"]]))), "norm of the .*(is an RMS|is a Layer|L2)")
    add("norm_eps", lambda g, s: if_("normalise" in s, lambda: float(np.round(10 ** g.uniform(-3, -0.5), 5))), "ε", lambda v, s: [v])
    add("one_plus_w", lambda g, s: if_("normalise" in s, lambda: True), "1 \\+ w")
    add("no_norm_weight", lambda g, s: if_("normalise" in s, lambda: True), "has no weights")
    add("norm_swapped", lambda g, s: if_("normalise" in s, lambda: True), "each other's weights")
    add("norm_missing", lambda g, s: if_("normalise" in s, lambda: str(g.choice(["qk", "q", "k"]))), "norm of the .* is missing|before norm")
    add("norm_after", lambda g, s: if_("normalise" in s and rope(s), lambda: True), "norm comes after")
    add("padding_shifted", lambda g, s: if_("hidden_keys" in s["mask"], lambda: int(g.choice([1, -1, 2]))), "padding|keys? (is|are) masked")
    add("padding_missing", lambda g, s: if_("hidden_keys" in s["mask"], lambda: True), "padding mask")
    add("window", lambda g, s: if_("window" in s["mask"], lambda: [int(g.integers(0, 7)), s["mask"]["window"][1]]) if g.random() < 0.7 else if_("window" in s["mask"], lambda: None), "window", lambda v, s: [v[0]])
    add("documents_ignored", lambda g, s: if_("documents" in s["mask"], lambda: True), "documents")
    add("causal_flipped", lambda g, s: True, "causal|window replaces|documents replace")
    add("aligned_first", lambda g, s: if_(S(s) != T(s) and s["mask"]["causal"], lambda: True), "aligned first|queries at the first|causal mask hides|masked")
    add("diagonal", lambda g, s: if_(s["mask"]["causal"], lambda: int(g.choice([1, -1, 2, -2, 3]))), "causal mask|diagonal", lambda v, s: [])
    add("prefix_missing", lambda g, s: if_(s["mask"].get("prefix"), lambda: True), "prefix")
    add("inverted", lambda g, s: True, "inverted|transposed causal|masked")
    add("mask_transposed", lambda g, s: if_(S(s) == T(s), lambda: True), "mask is transposed|transposed|other way round|padded rows")
    add("head_unmasked", lambda g, s: int(g.integers(0, s["n_heads"])), "is not masked|is masked", lambda v, s: [])
    add("mask_zero", lambda g, s: True, "multiplied by the mask|become 0")
    add("mask_value", lambda g, s: float(np.round(-g.uniform(1, 12), 2)), "masked scores", lambda v, s: [v])
    add("mask_plus", lambda g, s: True, "0 and 1|added to masked")
    add("mask_after", lambda g, s: str(g.choice(["renormalised", "not"])), "after the softmax|renormalized")
    add("slopes", lambda g, s: if_("alibi" in s.get("positions", {}), lambda: np.round(g.uniform(0.05, 0.9, s["n_heads"]), 3).tolist()), "slopes are", lambda v, s: v[:4])
    add("slopes_reversed", lambda g, s: if_("alibi" in s.get("positions", {}), lambda: True), "slopes are")
    add("max_distance", lambda g, s: if_("relative" in s.get("positions", {}), lambda: int(g.choice([6, 8, 32, 40]))), "largest distance", lambda v, s: [])
    add("bidirectional", lambda g, s: if_("relative" in s.get("positions", {}), lambda: True), "one-sided|two-sided")
    add("relative_sign", lambda g, s: if_("relative" in s.get("positions", {}), lambda: True), "query − key")
    add("bias_factor", lambda g, s: if_(biased(s), lambda: float(g.choice([0.0, 2.0, -1.0, np.round(g.uniform(0.2, 3), 2)]))), "bias", lambda v, s: [] if v in (0.0, 2.0, -1.0) else [v])
    add("bias_head", lambda g, s: if_(biased(s) and np.ndim(s.get("score_bias", [[[0]]])) == 3, lambda: int(g.integers(0, s["n_heads"]))), "all heads|all those of head|slopes", lambda v, s: [])
    add("bias_rolled", lambda g, s: if_(biased(s) and np.ndim(s.get("score_bias", [[[0]]])) == 3, lambda: int(g.integers(1, s["n_heads"]))), "further|reversed|reverse order|slopes", lambda v, s: [])
    add("bias_before_scale", lambda g, s: if_(biased(s) and own(s) != 1, lambda: True), "before (the )?scale|added before")
    add("scale", lambda g, s: float(g.choice([own(s) ** 2, 1.0, np.round(g.uniform(0.05, 1.2), 4), len(s["embeddings"][0]) ** -0.5])), "scale|ln 2", lambda v, s: [[v, v / own(s)]] if abs(v - 1) > 1e-9 and abs(v - own(s) ** 2) > 1e-9 else [])
    add("cap", lambda g, s: if_("score_cap" in s, lambda: float(np.round(g.uniform(1, 12), 2))), "cap is", lambda v, s: [v])
    add("cap_missing", lambda g, s: if_("score_cap" in s, lambda: True), "cap is missing")
    add("cap_clipped", lambda g, s: if_("score_cap" in s, lambda: True), "clipped|cap is missing")
    add("cap_before_scale", lambda g, s: if_("score_cap" in s and own(s) != 1, lambda: True), "cap comes before")
    add("cap_after_bias", lambda g, s: if_("score_cap" in s and biased(s), lambda: True), "before the cap|order")
    add("axis", lambda g, s: True, "over the queries")
    add("sink_missing", lambda g, s: if_("sink" in s, lambda: True), "sinks are missing")
    add("sink_rolled", lambda g, s: if_("sink" in s, lambda: int(g.integers(1, s["n_heads"]))), "sink")
    add("sink_values", lambda g, s: if_("sink" in s, lambda: np.round(g.standard_normal(s["n_heads"]), 2).tolist()), "sinks are", lambda v, s: v[:4])
    add("sink_base2", lambda g, s: if_("sink" in s, lambda: True), "base 2|ln 2")
    add("sink_times", lambda g, s: if_("sink" in s, lambda: float(g.choice([2.0, 3.0, np.round(g.uniform(0.2, 5), 2)]))), "sink", lambda v, s: [] if v == 2 else [v])
    add("sink_not_rescaled", lambda g, s: if_("sink" in s, lambda: True), "not rescaled")
    add("plus_one", lambda g, s: float(g.choice([1.0, 1.0, np.round(g.uniform(0.2, 4), 2)])), "softmax adds|sinks are", lambda v, s: [v] if v != 1 else [])
    add("kv_heads", lambda g, s: if_(1 < s["n_kv_heads"] < s["n_heads"] or s["n_kv_heads"] > 1, lambda: (str(g.choice(["kv", "k", "v"])), "tiled" if g.random() < 0.4 and s["n_kv_heads"] < s["n_heads"] else int(g.integers(0, s["n_kv_heads"])))), "KV head|tiled|all heads are")
    add("lambda", lambda g, s: if_(s["n_heads"] % 2 == 0, lambda: float(np.round(g.uniform(0.2, 0.9), 2))), "differential|mixtures", lambda v, s: [v])
    add("head_factor", lambda g, s: (int(g.integers(0, s["n_heads"])), float(np.round(g.uniform(0.3, 2), 2))), "of heads?|mixtures", lambda v, s: [v[1]])
    add("dropout", lambda g, s: float(g.choice([0.1, 0.2, 0.5, 0.35])), "dropout is active")
    add("values_rolled", lambda g, s: if_(S(s) > 3, lambda: int(g.choice([1, -1, 2]))), "rolled|out of step|row is")
    add("head_off", lambda g, s: int(g.integers(0, s["n_heads"])), "head \\d+ adds nothing|heads? \\d+ are multiplied by 0", lambda v, s: [v])
    add("merge_reshape", lambda g, s: if_(T(s) > 1, lambda: True), "reshape without")
    add("merge_interleaved", lambda g, s: True, "interleaved")
    add("residual", lambda g, s: True, "residual|embeddings are added")
    add("output_factor", lambda g, s: float(np.round(g.uniform(0.3, 3), 3)), "multiplied by|residual", lambda v, s: [v])
    return L


def right(bug, value, s, sentence, close):
    _, pattern, nums = BUGS[bug]
    if not re.search(pattern, sentence):
        return False
    have = numbers_of(sentence)
    for n in nums(value, s):
        options = n if isinstance(n, list) else [n]
        if not any(abs(abs(h) - abs(o)) <= close * max(abs(o), 0.3) + 1e-9 for h in have for o in options):
            return False
    return True


BUGS = bug_list()


def differs(a, b, least):
    """Returns whether a mistake changes a stage by more than the rounding can hide."""
    a, b = (np.nan_to_num(x, neginf=-9e9) for x in (a, b))
    size = np.abs(b[b > -1e9]).max() if (b > -1e9).any() else 1.0
    return np.abs(a - b).max() > least * size


def shown_in(bugs, s, precision, keep):
    """Returns the mistakes that show in the kept stages; others cannot be found."""
    least = {"float64": 1e-7, "float32": 1e-4, "bfloat16": 3e-2}[precision]
    wrong = theirs(s, bugs, "float64")
    showing = {}
    for b in bugs:
        rest = theirs(s, {k: v for k, v in bugs.items() if k != b}, "float64")
        if any(differs(rest[k], wrong[k], least) if k in rest and rest[k].shape == wrong[k].shape else True for k in keep):
            showing[b] = bugs[b]
    return showing


STRANGE = ["weight entry", "token", "int8 keys", "gated", "noise", "power", "curved", "columns"]
KEPT = {"out": ["output"], "attn": ["weights"], "hooks": ["queries", "keys", "values", "weights", "output"]}


def drawn(g):
    """Samples a session, precision, kept stages, the mistakes that show and their tensors; None if none shows."""
    s = session(g)
    precision = str(g.choice(["float64", "float64", "float32", "bfloat16"]))
    n = 1 if g.random() < 0.72 else 2
    bugs = {}
    if g.random() < 0.12:
        bugs["strange"] = str(g.choice(STRANGE))
    for name in g.permutation(list(BUGS)) if not bugs else []:
        value = BUGS[name][0](g, s)
        if value is not None and value is not False:
            bugs[str(name)] = value
        if len(bugs) == n:
            break
    right_ones = theirs(s, {}, precision)
    try:
        wrong = theirs(s, bugs, precision)
    except (IndexError, ValueError):
        return None
    which = str(g.choice(["all", "all", "out", "attn", "hooks"]))
    keep = KEPT.get(which, list(wrong))
    dump = {k: wrong[k].astype(np.float32) if precision == "float32" else wrong[k] for k in keep}
    if not all(np.isfinite(v[~np.isinf(v)]).all() for v in wrong.values()):
        return None
    same = all(k in right_ones and right_ones[k].shape == v.shape and np.array_equal(np.nan_to_num(right_ones[k], neginf=-9e9), np.nan_to_num(wrong[k], neginf=-9e9)) for k, v in dump.items())
    showing = shown_in(bugs, s, precision, keep)
    return None if same or not showing else (s, precision, which, showing, dump)


def outcome(trial, folder, program):
    n, (s, precision, which, showing, dump) = trial
    report, failure = asked(program, folder / str(n), s, dump)
    if not report:
        return "crash", failure
    causes = [sentences or names for sentences, names in zip(report["sentences"], report["explanations"])]
    if "strange" in showing:
        return ("strange false", causes) if causes else ("strange true", [])
    close = {"float64": 1e-4, "float32": 2e-3, "bfloat16": 0.1}[precision]
    if any(all(any(right(b, v, s, w, close) for w in cause) for b, v in showing.items()) for cause in causes):
        return "true", causes
    return ("false" if causes else "agrees" if report["agrees"] else "none"), causes or report["described"]


def main(program):
    g = np.random.default_rng(int(os.environ.get("ATTNSCOPE_SEED", "1")))
    count = int(os.environ.get("ATTNSCOPE_TRIALS", "60"))
    trials = []
    while len(trials) < count:
        if (trial := drawn(g)) is not None:
            trials.append(trial)
    table = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        outcomes = pool.map(lambda trial: outcome(trial, pathlib.Path(folder), program), enumerate(trials))
        for (s, precision, which, showing, dump), (what, words) in zip(trials, outcomes):
            table[(which, len(showing))][what] += 1
            if what not in ("true", "strange true"):
                print(what, which, precision, showing, words)
    for key in sorted(table):
        print(*key, dict(table[key]))
    total = sum(table.values(), collections.Counter())
    singles = sum((table[k] for k in table if k[1] == 1), collections.Counter())
    named = singles["true"] / max(1, singles["true"] + singles["none"] + singles["false"])
    wrong = total["false"] + total["strange false"]
    if total["crash"] or named < 0.93 or wrong > max(1, count // 100):
        sys.exit(f"{100 * named:.1f} % of single mistakes named, {wrong} false causes, {total['crash']} crashes")


if __name__ == "__main__":
    main(sys.argv[1])
