// The numbers of the selected cell: the value, its row, and why it is so.
const items = Array.from({length: 16}, () => {
  const li = $('top').appendChild(element('li')), parts = ['i', 'span', 'u', 'b'].map(tag => li.appendChild(element(tag)));
  const cell = () => S.by ? {q: li.at, k: at().k} : {q: at().q, k: li.at};
  li.onclick = () => { if (li.at !== undefined) pin(cell()); };
  li.onpointermove = e => {
    if (li.at === undefined) return leave();
    hoverCell(cell());
    if (parts[1].scrollWidth > parts[1].clientWidth) tip(e, parts[1].textContent); else tip();
  };
  return {li, parts};
});
$('top').onpointerleave = () => leave();

draw.side = () => {
  const {layer, head} = now(), id = stageNow(), m = matrix(id, layer, head), about = ABOUT[id], cell = at(), {q, k} = cell, {sees, keysOf} = maskOf(layer);
  const row = rowOf(m, cell), col = colOf(m, cell), i = row * m.cols + col, v = m.v[i], isHidden = m.pairs && !sees[i], masked = isMasked(m, i);
  const w = matrix(m.kind === 'share' ? id : W, layer, head).v, value = masked ? maskedText(m) : fixed(v, 4, id);
  let rank = 1;
  for (let j = q * K; j < q * K + K; j++) if (sees[j] && w[j] > w[q * K + k]) rank++;
  $('what').textContent = about.one ?? about.name;
  $('number').textContent = value;
  $('number').dataset.exact = masked ? '' : exact(v, id);
  const pair = [quoteQ(q), dim(` ${q} attends to `), quoteK(k), dim(` ${k}`)];
  $('pair').replaceChildren(...m.pairs ? pair : [quote(P.rowTokens[row]), dim(` ${row}, dimension ${col}`)]);
  $('fine').textContent = [m.pairs && (isHidden ? 'masked' : `rank ${rank} of ${keysOf[q]}`), !masked && stored[id] && exact(v, id)].filter(Boolean).join(' · ') || ' ';
  $('mark').style.left = place(v, P.range) / 2.55 + '%';
  $('mark').style.visibility = masked ? 'hidden' : '';
  $('live').textContent = `${$('what').textContent} ${value}, ${$('pair').textContent}, head ${headName(layer, head)}`;
  $('over').setAttribute('aria-label', `Map of ${plural(m.rows, 'row')}. ${$('live').textContent}`);
  drawRow(w, q, k, id);
  drawWhy?.(layer, head, m, q, k, col);
};
/** Lists the row (or column): all of it in its own order where it fits, else its largest; what a sink takes comes last. */
function drawRow(w, q, k, id) {
  const {layer, head} = now(), {sees, keysOf} = maskOf(layer), isWide = innerWidth > 780;
  const why = !isWide || !drawWhy ? 4 : 132 + 17 * (has('dropout_mask') + !!D.softcap?.[layer] + has('bias') + 1);
  const free = $('side').getBoundingClientRect().bottom - $('top').getBoundingClientRect().top - why;
  const room = Math.max(2, Math.min(15, Math.floor(free / (isWide ? 19 : 17)) - 1)), sink = !S.by && D.sinks?.[layer] ? 1 : 0, n = Math.max(1, room - sink);
  const names = S.by ? tokens : keyTokens, isWhole = names.length <= n + 1, index = i => S.by ? i * K + k : q * K + i;
  let line = names.map((_, i) => [i, sees[index(i)] ? w[index(i)] : -1]);
  const sum = list => list.reduce((s, x) => s + Math.max(x[1], 0), 0), total = sum(line);
  if (!isWhole) line = line.filter(x => x[1] >= 0).sort((a, b) => b[1] - a[1]);
  const full = line.reduce((most, x) => Math.max(most, x[1]), 1), others = isWhole ? [] : line.slice(n), shown = line.slice(0, line.length - others.length);
  const rows = shown.map(([key, x]) => ({key, x, name: visibleText(names[key])}));
  if (others.length) rows.push({x: sum(others), name: plural(others.length, 'other')});
  if (sink) rows.push({x: Math.max(0, 1 - total), name: 'sink'});
  $('row-name').replaceChildren(dim(S.by ? 'To ' : 'From '), S.by ? quoteK(k) : quoteQ(q));
  $('entropy').textContent = S.by ? `sum ${fixed(total, 2)}` : `${entropyOf(w, q).toFixed(2)} of ${Math.log2(keysOf[q] || 1).toFixed(2)} bits`;
  items.forEach(({li, parts: [number, word, bar, value]}, i) => {
    li.hidden = !rows[i];
    if (li.hidden) return;
    const {key, x, name} = rows[i], isRest = key === undefined;
    li.at = key;
    li.className = isRest ? 'rest' : x < 0 ? 'out' : '';
    li.toggleAttribute('data-on', !isRest && key === (S.by ? q : k));
    number.textContent = isRest ? '' : key;
    word.textContent = name;
    value.textContent = x < 0 ? 'masked' : fixed(x, 4, id);
    bar.style.setProperty('--share', Math.max(x, 0) / full);
    bar.style.setProperty('--least', x > 0 ? '1px' : '0');
    bar.style.setProperty('--fill', isRest ? C.faint : C.share.css[Math.max(S.dark ? 84 : 110, place(x, UNIT))]);
  });
}
