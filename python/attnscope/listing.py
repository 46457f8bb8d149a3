"""What a notebook shows of a recording: a list of its attentions with a small map of every head."""

from __future__ import annotations

import base64
import html as _html
import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

from .arrays import Array
from .attention import Attention

if TYPE_CHECKING:
    from .recording import Recording

_MAX_LAYERS = 48
_MAX_NOTES = 12
_STRIP = 300  # pixels of all heads of a layer
_WHOLE = 128  # queries; of longer texts the maps have evenly spaced rows
_INK = (59, 130, 246)  # visible on the light and the dark theme


def listing(r: Recording) -> str:
    """Returns HTML that fits 640 pixels and takes its colors from the notebook: names, shapes, maps, notes."""
    e = _html.escape
    cell = "style='text-align:left;padding:2px 8px 2px 0;vertical-align:middle'"
    rows = "".join(
        f"<tr style='background:none'><td {cell}>{i}</td><td {cell}>{e(a.name)}<br><small>{e(_about(a))}</small></td>"
        f"<td {cell}><img alt='weights of every head' style='max-width:{_STRIP}px' src='data:image/png;base64,{_strip(a)}'></td></tr>"
        for i, a in enumerate(r.attentions[:_MAX_LAYERS])
    )
    more = f"<p>… {len(r) - _MAX_LAYERS} more</p>" if len(r) > _MAX_LAYERS else ""
    notes = list(dict.fromkeys([*r.problems, *(n for a in r for n in a.notes)]))
    lines = "".join(f"<li>{e(n)}</li>" for n in notes[:_MAX_NOTES])
    lines += f"<li>… {len(notes) - _MAX_NOTES} more</li>" if len(notes) > _MAX_NOTES else ""
    table = f"<table style='table-layout:auto;border:0;color:inherit;background:none'>{rows}</table>{more}"
    return (
        f"<div style='max-width:640px;overflow-wrap:anywhere;color:inherit'><p>{e(repr(r).splitlines()[0].strip('<>'))}</p>"
        f"<div style='max-height:480px;overflow:auto'>{table}</div>" + (f"<ul>{lines}</ul>" if lines else "") + "</div>"
    )


def _about(a: Attention) -> str:
    n, heads, n_queries, n_keys = a.shape
    size = f"{n_queries} × {n_keys}" if n_queries != n_keys else f"{n_queries} tokens"
    return f"{f'{n} sequences, ' if n > 1 else ''}{heads} heads, {size}, {a.mask}"


def _strip(a: Attention) -> str:
    """Returns a PNG in base64: the weights of each head in the first sequence, transparent where they are 0."""
    side = max(4, min(40, _STRIP // a.n_heads - 1))
    weights = np.nan_to_num(a.of_rows(_places(a.n_queries, min(a.n_queries, _WHOLE))).weights[0])
    maps = np.stack([_resized(head, side) for head in weights])
    largest = maps.max((1, 2), keepdims=True)
    ink = np.sqrt(maps / np.where(largest > 0, largest, 1))
    ink = np.pad(ink, ((0, 0), (0, 0), (0, 1)))  # a gap between heads
    return base64.b64encode(_png(np.concatenate(list(ink), 1))).decode()


def _places(n: int, some: int) -> Array:
    return np.linspace(0, n - 1, some).round().astype(int)


def _resized(a: Array, side: int) -> Array:
    """Returns a map of side × side cells, each the largest number of its part."""
    for axis in (0, 1):
        n = a.shape[axis]
        a = np.maximum.reduceat(a, np.arange(side) * n // side, axis) if n > side else a.take(np.arange(side) * n // side, axis)
    return a


def _png(alpha: Array) -> bytes:
    """Returns a PNG of one color whose opacity is 0 to 1."""
    height, width = alpha.shape
    pixels = np.empty((height, width, 4), np.uint8)
    pixels[..., :3] = _INK
    pixels[..., 3] = np.rint(alpha * 255)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
