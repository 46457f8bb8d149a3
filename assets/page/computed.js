// Stages that are computed in the page from queries, keys and values, and why a number is what it is.
const first = (...ids) => ids.find(has);
const QUERY = first('rotated_queries', 'queries'), KEY = first('rotated_keys', 'keys'), computes = QUERY && KEY && D.scale;
const scaleOf = layer => D.scale[layer] ?? D.scale[0], capOf = layer => D.softcap?.[layer] ?? 0;
const biasOf = (layer, head) => has('bias') ? read(stored.bias, layer, head).v : null;
const sinkOf = (layer, head) => D.sinks?.[layer]?.[head];
const capped = (x, cap) => cap ? cap * Math.tanh(x / cap) : x;

if (computes) Object.assign(COMPUTE, {
  scores(layer, head) {
    const a = matrix(QUERY, layer, head), b = matrix(KEY, layer, head), n = a.cols, v = new Float64Array(N * K);
    for (let q = 0; q < N; q++) for (let k = 0; k < K; k++) {
      let sum = 0;
      for (let d = 0; d < n; d++) sum += a.v[q * n + d] * b.v[k * n + d];
      v[q * K + k] = sum;
    }
    return {v, rows: N, cols: K};
  },
  scaled_scores: (layer, head) => ({v: matrix('scores', layer, head).v.map(x => x * scaleOf(layer)), rows: N, cols: K}),
  masked_scores(layer, head) {
    const bias = biasOf(layer, head), cap = capOf(layer);
    return {v: matrix('scaled_scores', layer, head).v.map((x, i) => capped(x, cap) + (bias ? bias[i] : 0)), rows: N, cols: K};
  },
});
if (has('values') && !has('contexts')) COMPUTE.contexts = (layer, head) => {
  const w = matrix(LAST, layer, head).v, {v: x, cols} = matrix('values', layer, head), v = new Float64Array(N * cols);
  for (let q = 0; q < N; q++) for (let k = 0; k < K; k++) {
    const share = w[q * K + k];
    if (share) for (let d = 0; d < cols; d++) v[q * cols + d] += share * x[k * cols + d];
  }
  return {v, rows: N, cols};
};

/** Returns the factors of the sum behind a number, and the steps from it to the weight. */
function workedOut(layer, head, m, q, k, col) {
  const row = (id, r) => { const x = matrix(id, layer, head); return x.v.subarray(r * x.cols, r * x.cols + x.cols); };
  const {sees, keysOf} = maskOf(layer), i = q * K + k, list = [];
  if (m.id === 'contexts') {
    row(LAST, q).forEach((w, j) => { if (sees[q * K + j]) list.push([w, row('values', j)[col], j]); });
    const total = list.reduce((sum, [a, b]) => sum + a * b, 0);
    return {list, isContext: true, steps: [[`sum of ${plural(list.length, 'product')}`, fixed(total)]]};
  }
  row(QUERY, q).forEach((a, d) => list.push([a, row(KEY, k)[d], d]));
  let x = list.reduce((sum, [a, b]) => sum + a * b, 0);
  const steps = [[`sum of ${plural(list.length, 'product')}`, fixed(x)]], cap = capOf(layer), bias = biasOf(layer, head)?.[i], sink = sinkOf(layer, head);
  steps.push([`× ${fixed(scaleOf(layer))} scale`, fixed(x *= scaleOf(layer))]);
  if (cap) steps.push([`soft-cap ${fixed(cap, 1)}`, fixed(x = capped(x, cap))]);
  if (bias !== undefined) steps.push([`${bias < 0 ? '−' : '+'} ${fixed(Math.abs(bias))} bias`, fixed(x += bias)]);
  if (!sees[i]) steps.push(['masked before softmax', '−∞']);
  else {
    steps.push([`softmax over ${plural(keysOf[q], 'key')}${sink === undefined ? '' : ' and a sink'}`, fixed(matrix(W, layer, head).v[i], 4, W)]);
    if (has('dropout_mask')) steps.push([`× ${fixed(matrix('dropout_mask', layer, head).v[i], 2)} dropout`, fixed(matrix(LAST, layer, head).v[i])]);
  }
  return {list, steps};
}

let terms = null;                                        // of the sum that is drawn, for the tooltip
drawWhy = (layer, head, m, q, k, col) => {
  const can = m.id === 'contexts' && COMPUTE.contexts || m.pairs && computes;
  $('why').style.visibility = can ? '' : 'hidden';
  terms = null;
  if (!can) return;
  const {list, steps, isContext} = workedOut(layer, head, m, q, k, col);
  $('why-sum').textContent = isContext ? plural(list.length, 'key') : `q${lowered(q)} · k${lowered(k)}`;
  $('steps').replaceChildren(...steps.flatMap(([a, b]) => [element('dt', a), element('dd', b)]));
  $('sum').setAttribute('aria-label', steps.map(r => r.join(' ')).join(', '));
  const width = $('sum-box').clientWidth, height = $('sum-box').clientHeight;
  if (height) drawSum(list, width, height, isContext);
};
/** Draws both factors of each product as colors, and the products as bars. */
function drawSum(list, width, height, isContext) {
  const products = list.map(([a, b]) => a * b), n = list.length, left = 30, step = (width - left) / n;
  const most = Math.max(...list.map(([a, b]) => Math.max(Math.abs(a), Math.abs(b)))) || 1, both = {low: -most, high: most};
  const strip = n <= 5 ? 16 : Math.max(8, Math.round(Math.min(14, height * .15))), y1 = strip + 2, y2 = 2 * strip + 8;
  const up = Math.max(0, ...products), down = Math.max(0, ...products.map(x => -x)), unit = (height - y2) / (up + down || 1), zero = y2 + up * unit;
  const g = sized($('sum'), width, height), gap = step > 4 ? 1 : 0, mono = {size: 11, font: MONO, align: 'center'};
  const warm = S.dark ? 205 : 200, cold = S.dark ? 60 : 50;
  list.forEach(([a, b], i) => {
    const x = snap(left + i * step), wide = Math.max(snap(left + (i + 1) * step) - x - gap, .5), p = products[i], length = Math.abs(p) * unit, sign = p < 0 ? -1 : 1;
    for (const [v, y, map, range] of [[a, 0, isContext ? C.share : C.signed, isContext ? UNIT : both], [b, y1, C.signed, both]]) {
      fill(g, x, y, wide, strip, map.css[place(v, range)]);
      if (step > 44) write(g, fixed(v), x + wide / 2, y + strip / 2 + .5, {...mono, color: map.ink[place(v, range)]});
    }
    fill(g, x, p < 0 ? zero : zero - length, wide, length, C.signed.css[p < 0 ? cold : warm]);
    if (step <= 44) return;
    const inside = length > 18, y = zero - sign * (inside ? length / 2 : length + 8);
    write(g, fixed(p), x + wide / 2, y < y2 + 5 || y > height - 5 ? zero + sign * 8 : y, {...mono, color: inside ? C.signed.ink[p < 0 ? cold : warm] : C.text});
  });
  fill(g, left, Math.round(zero) - .5, width - left, 1, C.active);
  const names = isContext ? ['w', 'v', 'w·v'] : ['q', 'k', 'q·k'], ys = [strip / 2, y1 + strip / 2, Math.min(Math.max(zero, y2 + 6), height - 6)];
  names.forEach((name, i) => write(g, name, left - 6, ys[i] + .5, {...mono, color: C.faint, align: 'right'}));
  terms = {left, step, list, name: isContext ? 'key' : 'dimension'};
}
$('sum').addEventListener('pointermove', e => {
  const term = terms?.list[Math.floor((e.offsetX - terms.left) / terms.step)];
  if (!term) return tip();
  tip(e, dim(`${terms.name} ${term[2]}   `), strong(`${fixed(term[0])} × ${fixed(term[1])} = ${fixed(term[0] * term[1])}`));
});
$('sum').addEventListener('pointerleave', () => tip());
