"""Hand-written attention: classes of the five notebooks and of chapter 3 of "Build a Large Language Model (From Scratch)"."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def projections(d_in, d_out, bias=False):
    return [nn.Linear(d_in, d_out, bias=bias) for _ in range(3)]


class StepByStep(nn.Module):
    """Notebook 000: a triangle of ones, masked_fill, softmax."""

    def __init__(self, d=3):
        super().__init__()
        self.w_q, self.w_k, self.w_v = projections(d, d)

    def forward(self, x):
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        scores = torch.matmul(q, k.T) / math.sqrt(k.shape[-1])
        mask = torch.tril(torch.ones(len(x), len(x)))
        return torch.matmul(F.softmax(scores.masked_fill(mask == 0, float("-inf")), dim=-1), v)


class Biased(nn.Module):
    """Notebook 001: biases, √embed, a mask made at each call."""

    def __init__(self, embed):
        super().__init__()
        self.query, self.key, self.value = projections(embed, embed, bias=True)
        self.scale = embed**0.5

    def forward(self, x):
        n = x.shape[1]
        scores = torch.matmul(self.query(x), self.key(x).transpose(-2, -1)) / self.scale
        scores = scores.masked_fill(torch.triu(torch.ones(n, n), diagonal=1).bool(), float("-inf"))
        return torch.matmul(F.softmax(scores, dim=-1), self.value(x))


class Untransposed(nn.Module):
    """Notebook 001: several heads, combined without the transpose."""

    def __init__(self, d_in, d_out, heads, context_length):
        super().__init__()
        self.heads, self.d_out = heads, d_out
        self.query, self.key, self.value = projections(d_in, d_out)
        self.proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (m(x).view(b, n, self.heads, -1).transpose(1, 2) for m in (self.query, self.key, self.value))
        scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(self.mask[:n, :n].bool(), float("-inf"))
        return self.proj((F.softmax(scores, dim=-1) @ v).reshape(b, n, self.d_out))


class SingleHead(nn.Module):
    """Notebook 002: a head with its own size, scaled by a product."""

    def __init__(self, channels, size):
        super().__init__()
        self.key, self.query, self.value = projections(channels, size)

    def forward(self, x):
        n = x.shape[1]
        k, q = self.key(x), self.query(x)
        w = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        w = w.masked_fill(torch.tril(torch.ones(n, n)) == 0, float("-inf"))
        return F.softmax(w, dim=-1) @ self.value(x)


class Renormalized(nn.Module):
    """Notebook 004: softmax first, then the triangle, then each row divided by its sum."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = projections(d_in, d_out)

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        w = torch.softmax(q @ k.T / k.shape[-1] ** 0.5, dim=-1)
        w = w * torch.tril(torch.ones(len(x), len(x)))
        return w / w.sum(dim=-1, keepdim=True) @ v


class SelfAttentionV1(nn.Module):
    """The book's first class: parameters without a bias."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3))

    def forward(self, x):
        keys, queries, values = x @ self.W_key, x @ self.W_query, x @ self.W_value
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


class CausalAttention(nn.Module):
    """The book's class for one head, and notebook 003."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = projections(d_in, d_out, qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        n = x.shape[1]
        keys, queries, values = self.W_key(x), self.W_query(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores.masked_fill_(self.mask.bool()[:n, :n], -torch.inf)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


class MultiHeadAttentionWrapper(nn.Module):
    """The book's single heads, computed one after the other and concatenated."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, context_length, dropout) for _ in range(num_heads))

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)


class MultiHeadAttention(nn.Module):
    """The book's class for several heads; mistake names a bug."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, mistake=""):
        super().__init__()
        self.d_out, self.num_heads, self.mistake = d_out, num_heads, mistake
        self.W_query, self.W_key, self.W_value = projections(d_in, d_out)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def split(self, x):
        b, n, _ = x.shape
        if self.mistake == "view":
            return x.view(b, self.num_heads, n, -1)
        return x.view(b, n, self.num_heads, -1).transpose(1, 2)

    def forward(self, x):
        b, n, _ = x.shape
        k, q, v = (self.split(m(x)) for m in (self.W_key, self.W_query, self.W_value))
        scores = q @ k.transpose(2, 3)
        if self.mistake != "no mask":
            scores.masked_fill_(self.mask.bool()[:n, :n], -torch.inf)
        if self.mistake != "no scale":
            scores = scores / (self.d_out if self.mistake == "d_model" else k.shape[-1]) ** 0.5
        w = self.dropout(torch.softmax(scores, dim=-2 if self.mistake == "queries" else -1))
        context = w @ v
        if self.mistake != "merge":
            context = context.transpose(1, 2)
        return self.out_proj(context.reshape(b, n, self.d_out))


def everything():
    """Returns each class with an input, by name."""
    torch.manual_seed(123)
    sentence = torch.rand(6, 3)
    batch = torch.stack([sentence, sentence])
    return {
        "000": (StepByStep(), sentence),
        "001": (Biased(32), torch.rand(8, 4, 32)),
        "001, heads": (Untransposed(16, 32, 8, 10), torch.rand(2, 5, 16)),
        "002": (SingleHead(65, 16), torch.rand(4, 8, 65)),
        "003": (CausalAttention(3, 2, 6, 0.5), batch),
        "004": (Renormalized(3, 2), sentence),
        "book 1": (SelfAttentionV1(3, 2), sentence),
        "book 2": (CausalAttention(3, 2, 6, 0.0), batch),
        "book 3": (MultiHeadAttentionWrapper(3, 2, 6, 0.0, 2), batch),
        "book 4": (MultiHeadAttention(3, 2, 6, 0.0, 2), batch),
        "book 4, dropout": (MultiHeadAttention(3, 4, 6, 0.5, 2), batch),
        "nn": (nn.MultiheadAttention(8, 2, batch_first=True), torch.rand(2, 5, 8)),
        "nn, dropout": (nn.MultiheadAttention(8, 2, batch_first=True, dropout=0.5), torch.rand(2, 5, 8)),
        "nn, tokens first": (nn.MultiheadAttention(8, 2), torch.rand(5, 2, 8)),
        "nn, layer": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.rand(2, 5, 8)),
    }
