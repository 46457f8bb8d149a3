// The stages of a page as they are stored: numbers in base64 of raw deflate over byte planes.
const $ = id => document.getElementById(id);
const D = JSON.parse($('data').textContent);
const {layers: L, heads: H, tokens} = D, keyTokens = D.keys ?? tokens, isCross = !!D.keys;
const N = tokens.length, K = keyTokens.length;

// pairs: one number for a query and a key; ofKeys: its rows are keys.
const ABOUT = {
  embeddings: {name: 'Embeddings', brief: 'X', formula: 'X', kind: 'signed'},
  queries: {name: 'Queries', brief: 'Q', formula: 'X·W_q', kind: 'signed'},
  keys: {name: 'Keys', brief: 'K', formula: 'X·W_k', kind: 'signed', ofKeys: true},
  values: {name: 'Values', brief: 'V', formula: 'X·W_v', kind: 'signed', ofKeys: true},
  rotated_queries: {name: 'Q rotated', brief: 'Qʳ', formula: 'RoPE', kind: 'signed'},
  rotated_keys: {name: 'K rotated', brief: 'Kʳ', formula: 'RoPE', kind: 'signed', ofKeys: true},
  scores: {name: 'Scores', one: 'Score', brief: 'QKᵀ', formula: 'Q·Kᵀ', kind: 'signed', pairs: true},
  scaled_scores: {name: 'Scaled', one: 'Scaled score', brief: '/√d', formula: 'scores × scale', kind: 'signed', pairs: true},
  masked_scores: {name: 'Masked', one: 'Masked score', brief: '−∞', formula: '−∞ where masked', kind: 'signed', pairs: true, masked: true},
  weights: {name: 'Weights', one: 'Weight', brief: 'W', formula: 'softmax of each row', kind: 'share', pairs: true, masked: true},
  dropout_mask: {name: 'Dropout mask', one: 'Dropout', brief: 'mask', formula: '0 or 1/(1−p)', kind: 'mask', pairs: true},
  dropped_weights: {name: 'After dropout', brief: 'drop', formula: 'weights × mask', kind: 'share', pairs: true, masked: true},
  contexts: {name: 'Context', brief: 'ctx', formula: 'weights·V', kind: 'signed'},
  concatenated: {name: 'Combined', brief: 'cat', formula: 'heads concatenated', kind: 'signed'},
  output: {name: 'Output', brief: 'out', formula: '·W_o + b_o', kind: 'signed'},
};

/** Returns the bytes of base64 text, inflated where they were deflated. */
async function unpack(text, isDeflated = true) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  if (!isDeflated) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
/** Returns numbers of which bytes of equal rank were stored together. */
async function numbers(text, Type) {
  const planes = await unpack(text), size = Type.BYTES_PER_ELEMENT, n = planes.length / size, bytes = new Uint8Array(planes.length);
  for (let b = 0; b < size; b++) for (let i = 0, p = b * n; i < n; i++) bytes[i * size + b] = planes[p + i];
  return new Type(bytes.buffer);
}

/** Returns which keys each query sees, N × K bytes, and where they are. */
async function readMask(said) {
  const sees = new Uint8Array(N * K);
  if (typeof said === 'string') {
    const bits = await unpack(said);
    for (let i = 0; i < N * K; i++) sees[i] = bits[i >> 3] >> (i & 7) & 1;
  } else for (let q = 0; q < N; q++) {
    const place = q + K - N, from = said.left < 0 ? 0 : Math.max(0, place - said.left), to = said.right < 0 ? K : Math.min(K, place + said.right + 1);
    if (to > from) sees.fill(1, q * K + from, q * K + to);
  }
  const cells = [];
  for (let i = 0; i < N * K; i++) if (sees[i]) cells.push(i);
  return {sees, cells, keysOf: tokens.map((_, q) => sees.subarray(q * K, q * K + K).reduce((a, b) => a + b, 0))};
}
const masks = await Promise.all(D.masks.map(readMask));
const maskOf = layer => masks[D.mask_of?.[layer] ?? 0];

const stored = {};
for (const s of D.stages) {
  const Type = {f64: Float64Array, f32: Float32Array, q16: Uint16Array}[s.store];
  stored[s.id] = {...s, all: await numbers(s.data, Type), most: s.most && await numbers(s.most, Float32Array)};
  s.data = s.most = null;
}
const has = id => id in stored;
const W = 'weights', LAST = has('dropped_weights') ? 'dropped_weights' : W;
const COMPUTE = {};                                      // stages that are computed here, filled by computed.js
let drawWhy = null;                                      // the panel that works a number out, if the page has what it needs

/** Returns one stored matrix; of stages of which only visible pairs were stored, the others are 0. */
function read(s, layer, head) {
  const [, heads, rows, cols] = s.shape, n = rows * cols, l = s.shape[0] === 1 ? 0 : layer, slot = l * heads + Math.floor(head * heads / H);
  const v = new (s.store === 'f64' ? Float64Array : Float32Array)(n);
  if (s.seen) {
    const before = Array.from({length: l}, (_, i) => maskOf(i).cells.length * heads).reduce((a, b) => a + b, 0), {cells} = maskOf(l);
    const from = before + (slot - l * heads) * cells.length;
    for (let i = 0; i < cells.length; i++) v[cells[i]] = s.all[from + i];
  } else v.set(s.all.subarray(slot * n, slot * n + n));
  if (s.most) for (let r = 0; r < rows; r++) {
    const step = s.most[slot * rows + r] / 65535;
    for (let c = 0; c < cols; c++) v[r * cols + c] *= step;
  }
  return {v, rows, cols};
}
const cache = new Map();
/** Returns a stage of a head: numbers v of rows × cols, what it is, and most, its largest finite magnitude. */
function matrix(id, layer, head) {
  const name = `${id} ${layer}.${head}`;
  if (cache.has(name)) return cache.get(name);
  const about = ABOUT[id], m = stored[id] ? read(stored[id], layer, head) : COMPUTE[id](layer, head), {sees, cells} = maskOf(layer);
  Object.assign(m, {id, sees, kind: about.kind, pairs: !!about.pairs, ofKeys: !!about.ofKeys, masked: !!about.masked && cells.length < N * K, most: 0});
  m.v.forEach((x, i) => {
    const size = Math.abs(x);
    if (size > m.most && size < Infinity && !(m.masked && !sees[i])) m.most = size;
  });
  if (cache.size > 2000) cache.clear();
  cache.set(name, m);
  return m;
}
const isMasked = (m, i) => m.masked && !m.sees[i];
const weightsOf = ({layer, head}) => matrix(W, layer, head).v;
const isShared = id => H > 1 && stored[id]?.shape[1] === 1;   // one matrix for all heads
