"""What models of today add, beside PyTorch's fused attention: grouped heads with rotary positions, and a window."""
import math
import statistics

GROUPED, WINDOWED = (1024, 768, 12), (4096, 64, 4)  # tokens, width, heads
GROUPS, WINDOW = 4, 128
OURS = {
    "plain": f"forward/{'/'.join(map(str, GROUPED))}",
    "4 groups, rotary": f"grouped_rotary/{'/'.join(map(str, GROUPED))}",
    "plain, long": f"forward/{'/'.join(map(str, WINDOWED))}",
    "window of 128": f"windowed/{'/'.join(map(str, WINDOWED))}",
}


def fused_grouped_rotary(dtype):
    """Projections, pairs of halves turned, and the fused attention with enable_gqa; it keeps neither scores nor weights."""
    import torch
    n, d, heads = GROUPED
    d_head = d // heads
    torch.manual_seed(1)
    x = torch.randn(n, d, dtype=dtype)
    w = torch.randn(d, d + 2 * GROUPS * d_head, dtype=dtype) / math.sqrt(d)
    wo = torch.randn(d, d, dtype=dtype) / math.sqrt(d)
    angles = torch.arange(n, dtype=dtype)[:, None] * 10000.0 ** (-torch.arange(0, d_head, 2, dtype=dtype) / d_head)
    cosine, sine = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)

    def turned(m):
        first, second = m.chunk(2, -1)
        return m * cosine + torch.cat([-second, first], -1) * sine

    def call():
        rows = (x @ w).view(n, heads + 2 * GROUPS, d_head).transpose(0, 1)
        q, k, v = rows.split([heads, GROUPS, GROUPS])
        contexts = torch.nn.functional.scaled_dot_product_attention(turned(q)[None], turned(k)[None], v[None], is_causal=True, enable_gqa=True)
        return contexts[0].transpose(0, 1).reshape(n, d) @ wo

    return call


def fused_window(dtype):
    """The fused attention under a mask that shows the window: PyTorch has no other on a processor."""
    import torch
    n, d, heads = WINDOWED
    torch.manual_seed(1)
    x = torch.randn(n, d, dtype=dtype)
    w, wo = torch.randn(d, 3 * d, dtype=dtype) / math.sqrt(d), torch.randn(d, d, dtype=dtype) / math.sqrt(d)
    mask = torch.ones(n, n, dtype=torch.bool).tril().triu(1 - WINDOW)

    def call():
        q, k, v = (x @ w).view(n, 3, heads, d // heads).permute(1, 2, 0, 3).unsqueeze(1)
        contexts = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return contexts[0].transpose(0, 1).reshape(n, d) @ wo

    return call


def peers_of(torch):
    found = {}
    for name, dtype in (("float64", torch.float64), ("float32", torch.float32)):
        try:
            call = fused_grouped_rotary(dtype)
            call()
            found[f"PyTorch fused, 4 groups, rotary, {name}"] = call
        except TypeError:  # before enable_gqa
            continue
        found[f"PyTorch fused, window of 128, {name}"] = fused_window(dtype)
    return found


def measure(program, benchmark, timed, torch, rounds):
    """{name: median milliseconds} of everything, in turns; attnscope keeps all scores in float64."""
    calls, times = peers_of(torch) if torch else {}, {}
    pattern = "^(" + "|".join(OURS.values()) + ")$"
    for _ in range(rounds):
        took = benchmark(program, pattern, 0.2)
        for name, key in OURS.items():
            times.setdefault(name, []).append(took[key])
        for name, call in calls.items():
            times.setdefault(name, []).append(timed(call))
    return {name: statistics.median(values) for name, values in times.items()}


def print_table(times):
    print(f"\nwhat models of today add, milliseconds, medians: {GROUPED} with {GROUPS} groups and rotary positions; {WINDOWED} with a window of {WINDOW}")
    for name, value in times.items():
        print(f"{name:44}{value:12.3f}")
    print(f"{'4 groups and rotary positions / plain':44}{times['4 groups, rotary'] / times['plain']:12.2f}")
    print(f"{'plain / window':44}{times['plain, long'] / times['window of 128']:12.2f}")
