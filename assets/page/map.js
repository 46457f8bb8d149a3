// The selected head, large: cells, tokens along both axes, numbers where they fit, the cross.
let P = {};                                              // geometry of the map
function boxOf(m) {
  if (!S.zoom) return {r: 0, c: 0, rows: m.rows, cols: m.cols};
  const rows = Math.min(S.zoom.n, m.rows), cols = m.pairs ? Math.min(S.zoom.n, m.cols) : m.cols;
  return {r: limit(m.ofKeys ? S.zoom.c : S.zoom.r, m.rows - rows + 1), c: m.pairs ? limit(S.zoom.c, m.cols - cols + 1) : 0, rows, cols};
}
draw.base = () => {
  const {layer, head} = now(), id = stageNow(), m = matrix(id, layer, head), about = ABOUT[id], box = boxOf(m);
  const w = $('plot').clientWidth, h = $('plot').clientHeight, g = sized($('base'), w, h), rowTokens = m.ofKeys ? keyTokens : tokens;
  g.font = `12px ${SANS}`;
  const widest = list => Math.max(24, ...list.map(t => g.measureText(visibleText(t)).width)), widestKey = widest(keyTokens);
  const index = 12 + 7 * String(m.rows - 1).length, x0 = snap(Math.min(widest(rowTokens), 78) + index + 2);
  let cw, ch, y0 = snap(m.pairs ? Math.min(widestKey, 66) + 8 : 18), isFlat = false;
  const fit = () => {
    cw = Math.min((w - x0 - 4) / box.cols, 72);
    ch = Math.min((h - y0 - 4) / box.rows, 44);
    if (!m.pairs) cw = Math.min(cw, Math.max(ch * 2, 10));
    else { if (ch < 26) cw = Math.min(cw, ch * 1.45); ch = Math.min(ch, cw); }
    [cw, ch] = [cw, ch].map(x => x < 7 ? x : Math.floor(x * ratio()) / ratio());   // cells below 7 have no gap and may differ by a pixel
  };
  fit();
  if (m.pairs && widestKey + 6 < cw) { isFlat = true; y0 = 34; fit(); }            // tokens lie flat where there is room
  const pw = snap(cw * box.cols), ph = snap(ch * box.rows), range = rangeOf(m), gap = Math.min(cw, ch) >= 7 ? Math.max(1, px(1)) : 0;
  P = {m, box, range, x0, y0, pw, ph, cw: pw / box.cols, ch: ph / box.rows, w, h, isFlat, index, rowTokens, trim: gap ? 1 : 0};
  g.putImageData(paint(m, box, px(pw), px(ph), gap, px(6)), px(x0), px(y0));
  labels(g);
  if (ch >= 15) cellNumbers(g);
  $('name').textContent = oneHead ? about.name : !oneLayer ? `Head ${headName(layer, head)}` : about.name + (isShared(id) || H === 1 ? '' : `, head ${head}`);
  $('role').textContent = oneLayer ? '' : roleOf(layer, head);
  $('formula').innerHTML = about.formula.replace(/_(.)/g, '<sub>$1</sub>');
  $('shape').textContent = S.zoom ? `rows ${box.r}–${box.r + box.rows - 1}` : `${m.rows}×${m.cols}`;
  $('legend').style.background = C[m.kind].bar;
  $('low').textContent = range.log ? range.low : fixed(range.low, 2);
  $('high').textContent = fixed(range.high, 2);
};
/** Writes the tokens along both axes; given a row and a column, writes these two over their neighbors. */
function labels(g, onRow, onCol) {
  const {m, box, x0, y0, cw, ch, isFlat, index, rowTokens} = P, upright = m.pairs && !isFlat, mono = {size: 11, font: MONO};
  const everyRow = Math.ceil(13 / ch), everyCol = Math.ceil((upright ? 13 : isFlat ? 10 : 24) / cw);
  const X = c => x0 + (c - box.c + .5) * cw, Y = r => y0 + (r - box.r + .5) * ch;
  const row = (r, color, faint) => {
    write(g, visibleText(rowTokens[r]), x0 - index, Y(r), {size: ch < 13 ? 11 : 12, color, align: 'right', most: x0 - index - 1});
    write(g, r, x0 - 5, Y(r), {...mono, color: faint, align: 'right'});
  };
  const col = (c, color, faint) => {
    if (upright) return write(g, visibleText(keyTokens[c]), X(c), y0 - 5, {size: cw < 13 ? 11 : 12, color, most: y0 - 6, upright});
    if (isFlat) write(g, visibleText(keyTokens[c]), X(c), y0 - 24, {color, align: 'center', most: cw});
    write(g, c, X(c), y0 - 9, {...mono, color: faint, align: 'center'});
  };
  const rows = [], cols = [];
  for (let r = box.r; r < box.r + box.rows; r += everyRow) rows.push(r);
  for (let c = box.c; c < box.c + box.cols; c += everyCol) cols.push(c);
  if (onRow === undefined) {
    for (const r of rows) row(r, C.dim, C.faint);
    for (const c of cols) col(c, C.dim, C.faint);
    return;
  }
  if (onRow >= box.r && onRow < box.r + box.rows) {
    for (const r of rows) if (Math.abs(r - onRow) * ch < 13) fill(g, 0, Y(r) - 8, x0 - 2, 16, C.back);
    row(onRow, C.text, C.text);
  }
  if (onCol >= box.c && onCol < box.c + box.cols) {
    const half = upright ? 8 : Math.max(12, cw / 2);
    for (const c of cols) if (Math.abs(c - onCol) * cw < (upright ? 13 : 24)) fill(g, X(c) - half, 0, 2 * half, y0 - 2, C.back);
    col(onCol, C.text, C.text);
  }
}
function cellNumbers(g) {
  const {m, box, range, x0, y0, cw, ch} = P, style = {font: MONO, align: 'center'};
  const digits = Math.min(3, Math.floor((cw - 5) / 7.3) - (m.kind === 'signed' ? 3 : 2));
  if (digits < 2) return;
  for (let r = 0; r < box.rows; r++) for (let c = 0; c < box.cols; c++) {
    const i = (box.r + r) * m.cols + box.c + c, v = m.v[i], x = x0 + (c + .5) * cw, y = y0 + (r + .5) * ch;
    if (isMasked(m, i)) write(g, maskedText(m), x, y, {...style, color: C.faint});
    else if (v === 0 && (m.kind === 'mask' || m.id === 'dropped_weights')) drawCross(g, x, y);
    else write(g, v === 0 || v === 1 ? v : v !== v ? 'NaN' : minus(v.toFixed(m.kind === 'mask' ? 2 : digits)), x, y, {...style, color: C[m.kind].ink[place(v, range)]});
  }
}
/** Marks what dropout has set to zero. */
function drawCross(g, x, y) {
  g.strokeStyle = C.text; g.lineWidth = 1.5; g.beginPath();
  for (const s of [-4, 4]) { g.moveTo(x - 4, y - s); g.lineTo(x + 4, y + s); }
  g.stroke();
}
/** Draws the cross and the selected cell, on a canvas of its own so that moving the pointer redraws nothing else. */
draw.marks = () => {
  const g = sized($('over'), P.w, P.h), {m, box, x0, y0, cw, ch, pw, ph, trim} = P, soft = C.select + 'a6';
  const spot = cell => {
    const r = rowOf(m, cell) - box.r, c = colOf(m, cell) - box.c;
    return {x: x0 + c * cw, y: y0 + r * ch, row: r >= 0 && r < box.rows, col: c >= 0 && c < box.cols};
  };
  const frame = ({x, y, row, col}, width) => {
    const o = width / 2;
    if (row && col) outline(g, x - o, y - o, Math.max(cw - trim, 3) + width, Math.max(ch - trim, 3) + width, C.select, width);
  };
  const shown = at(), s = spot(shown), isHeld = !S.hover && S.pinned;
  labels(g, rowOf(m, shown), colOf(m, shown));
  if (s.row) outline(g, x0 - .5, s.y - .5, pw + 1 - trim, ch + 1 - trim, soft);
  if (s.col) outline(g, s.x - .5, y0 - .5, cw + 1 - trim, ph + 1 - trim, soft);
  if (isHeld && s.row && s.col) outline(g, s.x + .5, s.y + .5, Math.max(cw - trim, 3) - 1, Math.max(ch - trim, 3) - 1, C.inner);
  frame(s, isHeld ? 2 : 1);
  if (S.hover && S.pinned) frame(spot(S), 2);
};
