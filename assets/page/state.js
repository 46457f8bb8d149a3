// What is selected and shown, measures of heads, and when things are drawn again.
const STAGES = Object.keys(ABOUT).filter(id => has(id) || id in COMPUTE && !(id === 'masked_scores' && masks.every(m => m.cells.length === N * K) && !has('bias') && !D.softcap));

const entropyOf = (w, q) => { let e = 0; for (let i = q * K; i < q * K + K; i++) if (w[i] > 0) e -= w[i] * Math.log2(w[i]); return e; };
const earlier = tokens.map((t, q) => keyTokens.flatMap((u, k) => k < q && u.trim() === t.trim() ? [k] : []));
/** Returns the mean over the rows from one on where there is a number. */
function mean(row, from = 0) {
  let sum = 0, n = 0;
  for (let q = from; q < N; q++) { const x = row(q); if (x === x) { sum += x; n++; } }
  return n ? sum / n : 0;
}
// Of each measure: its name, a function of the weights, its largest value.
const MEASURES = {
  entropy: ['entropy, bits', w => mean(q => entropyOf(w, q)), Math.log2(Math.max(2, ...masks.flatMap(m => m.keysOf)))],
  first: ['first token', w => mean(q => w[q * K], N > 1 && !isCross ? 1 : 0), 1],
  largest: ['largest weight', w => mean(q => w.subarray(q * K, q * K + K).reduce((a, b) => Math.max(a, b), 0)), 1],
};
if (!isCross) Object.assign(MEASURES, {
  previous: ['previous token', w => mean(q => w[q * K + q - 1], 1), 1],
  itself: ['the token itself', w => mean(q => w[q * K + q]), 1],
  same: ['same token before', w => mean(q => earlier[q].length ? earlier[q].reduce((s, k) => s + w[q * K + k], 0) : NaN), 1],
  induction: ['induction', w => mean(q => earlier[q].length ? earlier[q].reduce((s, k) => s + w[q * K + k + 1], 0) : NaN), 1],
});
const measured = {};
const measureOf = (layer, head, id = S.measure) => measured[`${id} ${layer}.${head}`] ??= MEASURES[id][1](matrix(W, layer, head).v);
/** Returns the pattern that takes more than a third of a head's weight, if one does. */
function roleOf(layer, head) {
  const found = ['previous', 'first', 'itself', 'same', 'induction'].filter(id => MEASURES[id]).map(id => [id, measureOf(layer, head, id)]);
  const [id, value] = found.reduce((a, b) => b[1] > a[1] ? b : a, ['', 0]);
  return value > 1 / 3 && N > 2 ? `${MEASURES[id][0]} ${value.toFixed(2)}` : '';
}

const S = {
  layer: 0, head: 0, stage: W, q: N - 1, k: 0, dim: 0, pinned: false, log: D.log, dark: null, measure: 'entropy',
  hover: null,                                           // {q, k, dim} under the pointer
  peek: null,                                            // {layer, head, stage} under the pointer in the grid
  mode: 'head', by: false, relative: false, chosen: new Set(), zoom: null,
};
const now = () => S.peek ?? S, at = () => S.hover ?? S, stageNow = () => S.peek?.stage ?? S.stage;
const rowOf = (m, cell) => m.ofKeys ? cell.k : cell.q, colOf = (m, cell) => m.pairs ? cell.k : Math.min(cell.dim ?? S.dim, m.cols - 1);
const oneLayer = L === 1 && STAGES.length > 1;           // then the grid shows stages × heads
const oneHead = L * H === 1 && !oneLayer;
/** Returns the cell of the largest weight in a query's row, or in a key's column. */
function fromToken(i, by) {
  const w = weightsOf(now()), {sees} = maskOf(now().layer);
  let best = 0, most = -1;
  for (let j = 0; j < (by ? N : K); j++) {
    const p = by ? j * K + i : i * K + j;
    if (sees[p] && w[p] > most) { most = w[p]; best = j; }
  }
  return by ? {q: best, k: i, text: true} : {q: i, k: best, text: true};
}
if (D.select) { [S.layer, S.head, S.q, S.k] = D.select; S.pinned = true; } else S.k = fromToken(S.q, false).k;

const draw = {}, todo = new Set();
const isFolded = () => innerWidth < 200 || innerHeight < 150;   // a folded output is drawn when a resize unfolds it
const drawAll = parts => { if (!isFolded()) for (const part of ['grid', 'base', 'marks', 'side', 'words']) if (parts.includes(part)) draw[part](); };
/** Draws the named parts once, before the next frame. */
function touch(...parts) {
  if (!todo.size) requestAnimationFrame(() => { const all = [...todo]; todo.clear(); drawAll(all); });
  for (const part of parts) todo.add(part);
}
const touchHead = () => touch('grid', 'base', 'marks', 'side', 'words');
const touchCell = () => touch('marks', 'side', 'words', G.named ? 'grid' : 'marks');

// ---------------------------------------------------------------- words and numbers

const minus = text => text.replace('-', '−');
const isCoarse = id => stored[id]?.store === 'q16';       // stored in steps: small numbers have no more digits
function fixed(x, digits = 4, id) {
  if (!Number.isFinite(x)) return x !== x ? 'NaN' : x < 0 ? '−∞' : '∞';
  if (isCoarse(id) && x < .001) return x.toFixed(5);
  if (x === 0 || x === 1) return String(x);
  return minus(Math.abs(x) < .5 * 10 ** -digits ? x.toExponential(2) : x.toFixed(digits));
}
/** Returns the shortest text that reads back as the stored number. */
function exact(x, id) {
  if (isCoarse(id)) return x.toFixed(5);
  if (!Number.isFinite(x) || !stored[id]) return fixed(x, 6);
  if (stored[id].store === 'f32') for (let digits = 6; digits < 10; digits++) if (Math.fround(x.toPrecision(digits)) === x) return minus(String(+x.toPrecision(digits)));
  return minus(String(x));
}
const maskedText = m => m.kind === 'signed' ? '−∞' : '0';
const visibleText = t => t === '' ? '∅' : t.replace(/ /g, '·').replace(/\n/g, '⏎').replace(/\t/g, '⇥');
const quote = t => `'${visibleText(t.trim() || t)}'`, quoteQ = q => quote(tokens[q]), quoteK = k => quote(keyTokens[k]);
const lowered = n => [...String(n)].map(d => '₀₁₂₃₄₅₆₇₈₉'[d]).join('');
const headName = (layer, head) => L > 1 ? `${layer}.${head}` : `${head}`;
const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
const element = (tag, text = '', className = '') => Object.assign(document.createElement(tag), {textContent: text, className});
const dim = text => element('span', text), strong = text => element('b', text);
const limit = (x, n) => Math.max(0, Math.min(n - 1, x));
