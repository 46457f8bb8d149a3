// What the pointer and the keys do: hovering previews, a click pins, Esc releases.
function pin(cell) { Object.assign(S, cell, {pinned: true, hover: null}); keepInView(); touchCell(); }
function setHead(layer, head) { S.layer = limit(layer, L); S.head = limit(head, H); S.peek = null; touchHead(); }
function setStage(id) {
  S.stage = id; S.peek = null;
  for (const b of $('stages').children) b.setAttribute('aria-selected', b.dataset.id === id);
  showScale(); touchHead();
}
function setMode(mode) { S.mode = mode; touch('words'); }
function setLog(log) { S.log = log; gridImage = null; showScale(); touchHead(); }
function setBy(by) { S.by = by; touch('side', 'words'); }
function setRelative(relative) { S.relative = relative; touch('words'); }
function choose() { const i = now().layer * H + now().head; S.chosen.has(i) ? S.chosen.delete(i) : S.chosen.add(i); touch('grid', 'words'); }
function showScale() {
  $('linear').setAttribute('aria-pressed', !S.log);
  $('log').setAttribute('aria-pressed', S.log);
  $('log').disabled = oneLayer && ABOUT[S.stage].kind !== 'share';
}
/** Zooms so that n tokens are shown around the cell; all where n is not less. */
function setZoom(n) {
  n = Math.max(6, Math.round(n));
  const from = (i, all) => limit(i - (n >> 1), Math.max(1, all - n + 1));
  S.zoom = n < Math.max(N, K) ? {n, r: from(at().q, N), c: from(at().k, K)} : null;
  touchHead();
}
const zoomBy = factor => setZoom((S.zoom?.n ?? Math.max(N, K)) * factor);
function keepInView() {
  const z = S.zoom;
  if (!z) return;
  const r = Math.max(Math.min(z.r, S.q), S.q - z.n + 1), c = Math.max(Math.min(z.c, S.k), S.k - z.n + 1);
  if (r !== z.r || c !== z.c) { Object.assign(z, {r, c}); touch('base'); }
}

/** Shows a line beside the pointer, or hides it where there is none. */
function tip(event, ...parts) {
  const box = $('tip');
  box.style.visibility = parts.length ? 'visible' : 'hidden';
  if (!parts.length) return;
  box.replaceChildren(...parts);
  const beside = (x, size, room, gap) => Math.max(2, x + gap + size > room ? x - size - 10 : x + gap);
  box.style.transform = `translate(${beside(event.clientX, box.offsetWidth, innerWidth, 14)}px, ${beside(event.clientY, box.offsetHeight, innerHeight, 16)}px)`;
}
const hoverCell = cell => { if (['q', 'k', 'dim'].some(p => cell?.[p] !== S.hover?.[p])) { S.hover = cell; touchCell(); } };
const leave = () => { tip(); hoverCell(null); };

// ---------------------------------------------------------------- the map

function cellUnder(e) {
  const {m, box, x0, y0, cw, ch} = P, c = box.c + Math.floor((e.offsetX - x0) / cw), r = box.r + Math.floor((e.offsetY - y0) / ch);
  if (c < box.c || r < box.r || c >= box.c + box.cols || r >= box.r + box.rows) return null;
  return m.pairs ? {q: r, k: c} : m.ofKeys ? {q: S.q, k: r, dim: c} : {q: r, k: S.k, dim: c};
}
let drag = null;
const over = $('over');
over.addEventListener('pointerdown', e => { drag = S.zoom && {x: e.offsetX, y: e.offsetY, ...S.zoom}; });
over.addEventListener('pointermove', e => {
  if (drag && e.buttons) {
    const z = S.zoom, shift = (from, by, all) => limit(Math.round(from - by), Math.max(1, all - z.n + 1));
    const r = shift(drag.r, (e.offsetY - drag.y) / P.ch, N), c = shift(drag.c, (e.offsetX - drag.x) / P.cw, K);
    if (r !== z.r || c !== z.c) { Object.assign(z, {r, c}); drag.moved = true; S.hover = null; touch('base', 'marks'); }
    return tip();
  }
  const cell = cellUnder(e), {m} = P;
  hoverCell(cell);
  if (!cell) return tip();
  const row = rowOf(m, cell), i = row * m.cols + colOf(m, cell), masked = isMasked(m, i);
  const column = m.pairs ? [quoteK(cell.k), dim(` ${cell.k}   `)] : [dim(`dimension ${cell.dim}   `)];
  tip(e, quote(P.rowTokens[row]), dim(` ${row} → `), ...column, strong(masked ? maskedText(m) : exact(m.v[i], m.id)), dim(masked ? ' masked' : ''));
});
over.addEventListener('pointerleave', leave);
over.addEventListener('pointerup', e => {
  const moved = drag?.moved, cell = cellUnder(e);
  drag = null;
  if (moved || !cell) return;
  if (S.pinned && cell.q === S.q && cell.k === S.k && (cell.dim ?? S.dim) === S.dim) { S.pinned = false; touchCell(); } else pin(cell);
});
over.addEventListener('wheel', e => { if (e.ctrlKey || e.metaKey) { e.preventDefault(); zoomBy(e.deltaY < 0 ? .8 : 1.25); } }, {passive: false});

// ---------------------------------------------------------------- grid and words

const mapUnder = e => G.cells.find(c => e.offsetX >= c.x - 1 && e.offsetX < c.x + c.w + 2 && e.offsetY >= c.y - (G.named ? 16 : 1) && e.offsetY < c.y + c.h + 4);
const peek = c => {
  if (['layer', 'head', 'stage'].every(p => c?.[p] === S.peek?.[p])) return;
  S.peek = c && {layer: c.layer, head: c.head, stage: c.stage};
  touchHead();
};
$('grid').addEventListener('pointermove', e => {
  const c = mapUnder(e) ?? null;
  peek(c && {...c, stage: oneLayer ? c.stage : undefined});
  if (!c) tip();
  else if (oneLayer) tip(e, ABOUT[c.stage].name, dim(isShared(c.stage) ? '' : `  head ${c.head}`));
  else tip(e, `head ${headName(c.layer, c.head)}`, dim(`  ${MEASURES[S.measure][0]}  `), strong(measureOf(c.layer, c.head).toFixed(3)));
});
$('grid').addEventListener('pointerleave', () => { tip(); peek(null); });
$('grid').addEventListener('pointerdown', e => {
  const c = mapUnder(e);
  if (!c) return;
  if (e.shiftKey) return choose();
  setHead(c.layer, c.head);
  if (oneLayer) setStage(c.stage);
});
$('words').addEventListener('pointermove', e => {
  const span = e.target.closest('[data-i]');
  if (!span) return leave();
  if (isCross && S.by !== (span.dataset.side === 'k')) setBy(!S.by);
  if ((S.by ? S.hover?.k : S.hover?.q) !== +span.dataset.i) hoverCell(fromToken(+span.dataset.i, S.by));
  const {q, k} = S.hover, w = fixed(weightsOf(now())[q * K + k], 4, W);
  tip(e, quoteQ(q), dim(` ${q} → `), quoteK(k), dim(` ${k}   `), strong(w), dim(S.by ? '  its largest query' : '  its largest key'));
});
$('words').addEventListener('pointerleave', leave);
$('words').addEventListener('click', e => {
  const span = e.target.closest('[data-i]');
  if (!span) return;
  const {q, k} = fromToken(+span.dataset.i, S.by);
  pin({q, k});
});
for (const e of document.querySelectorAll('[data-tip]')) {
  e.addEventListener('pointermove', event => tip(event, e.dataset.tip));
  e.addEventListener('pointerleave', () => tip());
}

// ---------------------------------------------------------------- keys

const ARROWS = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
const next = (list, x, by = 1) => list[(list.indexOf(x) + by + list.length) % list.length];
const KEYS = {
  '[': () => setHead(S.layer - 1, S.head), ']': () => setHead(S.layer + 1, S.head), ',': () => setHead(S.layer, S.head - 1), '.': () => setHead(S.layer, S.head + 1),
  l: () => setLog(!S.log), t: () => switchTheme(), d: () => setBy(!S.by), r: () => setRelative(!S.relative), x: choose, p: savePicture, '?': () => $('help').click(),
  s: () => setStage(next(STAGES, S.stage)), S: () => setStage(next(STAGES, S.stage, -1)), m: () => setMode(next([...$('modes').children].map(b => b.dataset.mode), S.mode)),
  '+': () => zoomBy(1 / 1.5), '=': () => zoomBy(1 / 1.5), '-': () => zoomBy(1.5), f: () => setZoom(Infinity), Enter: () => pin({q: at().q, k: at().k}),
  Escape: () => { S.pinned = false; S.hover = S.peek = S.zoom = null; tip(); touchHead(); },
};
const HELP = {
  '↑ ↓ ← →': 'move the cell', '[ ]': 'previous, next layer', '0–9': 'head', ', .': 'previous, next head', l: 'linear or log colors', t: 'dark or light',
  's S': 'next, previous stage', m: 'heads in the text', d: 'attends to, attended to by', r: 'words relative to the row', 'x, Shift-click': 'choose a head for the mean',
  '+ −, Ctrl-wheel': 'zoom', f: 'show all tokens', p: 'save the map as PNG', 'Ctrl-C': 'copy the row as a table', Enter: 'pin', Esc: 'release',
};
addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey || $('keys').open || e.target.tagName === 'SELECT' || e.key === 'Enter' && e.target.tagName === 'BUTTON') return;
  const arrow = ARROWS[e.key], isDigit = /^\d$/.test(e.key) && +e.key < H;
  if (!arrow && !isDigit && !KEYS[e.key]) return;
  e.preventDefault();
  if (arrow) (e.target === $('grid') ? moveInGrid : moveCell)(...arrow);
  else if (isDigit) setHead(S.layer, +e.key);
  else KEYS[e.key]();
});
function moveCell(down, right) {
  const m = matrix(S.stage, S.layer, S.head);
  if (!m.pairs) S.dim = limit(S.dim + right, m.cols);
  pin(m.pairs ? {q: limit(S.q + down, N), k: limit(S.k + right, K)} : m.ofKeys ? {k: limit(S.k + down, K)} : {q: limit(S.q + down, N)});
}
function moveInGrid(down, right) {
  if (oneLayer && down) setStage(STAGES[limit(STAGES.indexOf(S.stage) + down, STAGES.length)]);
  else setHead(S.layer + down, S.head + right);
}
addEventListener('copy', e => {
  if (!getSelection().isCollapsed) return;
  const m = matrix(S.stage, S.layer, S.head), from = rowOf(m, at()) * m.cols;
  const line = c => [c, ...m.pairs ? [keyTokens[c].trim()] : [], isMasked(m, from + c) ? 'masked' : m.v[from + c]].join('\t');
  e.clipboardData.setData('text/plain', Array.from({length: m.cols}, (_, c) => line(c)).join('\n'));
  e.preventDefault();
});
function savePicture() {
  const c = element('canvas'), base = $('base');
  Object.assign(c, {width: base.width, height: base.height});
  const g = c.getContext('2d');
  fill(g, 0, 0, c.width, c.height, C.back);
  g.drawImage(base, 0, 0);
  Object.assign(element('a'), {download: `${D.title} head ${headName(S.layer, S.head)} ${S.stage}.png`, href: c.toDataURL()}).click();
}
