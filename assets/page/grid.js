// The grid of all heads; of a page with one layer, of its stages × heads.
let G = {}, gridImage;                                   // geometry; the grid without its selection
/** Sizes the maps so that all are seen: with their names where there is room, as squares colored by the measure where there is none. */
function layout() {
  const isWide = innerWidth > 780, room = innerHeight - 38 - $('text').offsetHeight - 46, tall = isWide ? room : Math.min(room * .46, 240);
  const label = oneLayer ? 98 : L > 1 ? 22 : 2;
  const broad = (isWide ? Math.max(innerWidth * (innerWidth < 960 ? .27 : .31), Math.min(innerWidth - 1000, 600)) - 28 : 194) - label;
  const size = (cols, rows, gap, below, above) => Math.floor(Math.min((broad + gap) / cols - gap, (tall - above) / rows - below, 110));
  let cols = H, rows = oneLayer ? STAGES.length : L, best = 0;
  if (L === 1 && !oneLayer) for (let n = 1; n <= H; n++) {
    const s = size(n, Math.ceil(H / n), 8, 24, 0);
    if (s > best) { best = s; cols = n; rows = Math.ceil(H / n); }
  }
  const named = !oneLayer && (L === 1 || size(cols, rows, 8, 24, 0) >= 36), above = named ? 0 : 16;
  let gap = named ? 8 : oneLayer ? 6 : 3, below = named ? 24 : oneLayer ? 5 : 6;
  let h = Math.min(oneLayer ? 36 : 110, size(oneLayer ? 1 : cols, rows, gap, below, above));
  const bars = !oneLayer && h >= 13;                     // the measure under each map
  if (!oneLayer && !bars) { gap = below = 2; h = size(cols, rows, 2, 2, above); }
  const plain = !oneLayer && h < 13;
  if (plain) { gap = below = 1; h = Math.max(3, size(cols, rows, 1, 1, above)); }
  const w = oneLayer ? Math.min(60, Math.floor((broad + 6) / H - 6)) : h, right = w + gap, down = h + below, cells = [];
  (oneLayer ? STAGES : Array(L).fill(W)).forEach((stage, r) => {
    for (let head = 0; head < (isShared(stage) ? 1 : H); head++) cells.push({
      layer: oneLayer ? 0 : r, head, stage, x: label + head % cols * right, y: above + (r + Math.floor(head / cols)) * down + (named ? 17 : 0),
      w: isShared(stage) ? right * (H - 1) + w : w, h,
    });
  });
  G = {w, h, right, down, label, named, bars, plain, cells, width: label + cols * right, height: above + rows * down};
  document.body.style.setProperty('--left', !isWide ? '' : oneHead ? '0px' : Math.max(G.width + 28, 190) + 'px');
}
function paintGrid() {
  gridImage = document.createElement('canvas');
  const g = sized(gridImage, G.width, G.height), top = {low: 0, high: MEASURES[S.measure][2]}, index = {size: 11, font: MONO, color: C.faint};
  for (const {layer, head, stage, x, y, w, h} of G.cells) {
    if (!head && oneLayer) write(g, ABOUT[stage].name, G.label - 9, y + h / 2, {align: 'right', size: Math.max(8, Math.min(12, G.down - 1.5))});
    if (!head && !oneLayer && !G.named && layer % Math.ceil(11 / G.down) === 0) write(g, layer, G.label - 9, y + h / 2, {...index, align: 'right'});
    if (G.plain) { fill(g, x, y, w, h, C.share.css[place(measureOf(layer, head), top)]); continue; }
    const m = matrix(stage, layer, head), gap = Math.min(w / m.cols, h / m.rows) >= 7 ? px(1) : 0;
    g.putImageData(paint(m, {r: 0, c: 0, rows: m.rows, cols: m.cols}, px(w), px(h), gap, px(h > 40 ? 6 : 4)), px(x), px(y));
    if (!G.bars) continue;
    const value = measureOf(layer, head);
    if (G.named) write(g, headName(layer, head), x, y - 9, {font: MONO});
    if (G.named && w > 50) write(g, value.toFixed(2), x + w, y - 9, {...index, align: 'right'});
    fill(g, x, y + h + 1, w, 2, C.frame);
    fill(g, x, y + h + 1, Math.round(w * Math.min(1, value / top.high)), 2, C.faint);
  }
  if (!G.named) for (let i = 0; i < H; i += Math.ceil(15 / G.right)) write(g, i, G.label + i * G.right + G.w / 2, 7, {...index, align: 'center'});
  else if (L > 1) for (let l = 0; l < L; l++) {
    write(g, G.h > 42 ? `layer ${l}` : l, 7, l * G.down + 17 + G.h / 2, {size: 11, color: C.faint, align: 'center', upright: true});
  }
}
draw.grid = () => {
  if (oneHead) return;
  if (!gridImage) paintGrid();
  const g = sized($('grid'), G.width, G.height);
  g.drawImage(gridImage, 0, 0, G.width, G.height);
  for (const c of G.cells) {
    const is = (head, stage) => c.layer === head.layer && (c.head === head.head || isShared(c.stage)) && (!oneLayer || c.stage === stage);
    if (G.named) outline(g, c.x - .5, c.y + at().q * c.h / N - .5, c.w + 1, Math.max(c.h / N, 2) + 1, C.select + '80');
    if (!oneLayer && S.chosen.has(c.layer * H + c.head)) fill(g, c.x + c.w - 6, c.y, 6, 6, C.accent);
    if (is(S, S.stage)) outline(g, c.x - 1, c.y - 1, c.w + 2, c.h + 2, C.select, 2);
    else if (S.peek && is(S.peek, stageNow())) outline(g, c.x - .5, c.y - .5, c.w + 1, c.h + 1, C.select);
  }
  const value = measureOf(S.layer, S.head).toFixed(2);
  $('grid').setAttribute('aria-label', `${plural(L, 'layer')}, ${plural(H, 'head')}; head ${headName(S.layer, S.head)}, ${MEASURES[S.measure][0]} ${value}`);
};
