// The text: running words, colored by what the selected one attends to, or by what attends to it.
function addWords(list, side) {
  return list.map((t, i) => {
    const text = t.replace(/^\s+/, ''), space = t.slice(0, t.length - text.length), span = element('span');
    if (space) span.append(element('i', visibleText(space)));
    span.append(text || (space ? '' : '∅'));
    Object.assign(span.dataset, {i, side});
    $('words').append(span);
    if (t.includes('\n')) $('words').append(element('br'));
    return span;
  });
}
if (isCross) $('words').append(element('em', 'queries'));
const queryWords = addWords(tokens, 'q');
if (isCross) $('words').append(element('br'), element('em', 'keys'));
const keyWords = isCross ? addWords(keyTokens, 'k') : queryWords;
const letters = keyTokens.join('');
if ((letters.match(/[\u0590-\u08ff]/g) ?? []).length > letters.length / 2) $('words').dir = 'rtl';

const MODES = {head: 'this head', layer: 'layer mean', chosen: 'chosen mean', each: 'each head'};
for (const [mode, name] of Object.entries(MODES)) {
  if (H * L === 1 && mode !== 'head' || H === 1 && (mode === 'layer' || mode === 'each')) continue;
  const button = $('modes').appendChild(element('button', name));
  button.dataset.mode = mode;
  button.onclick = () => setMode(mode);
}
/** Returns [layer, head] of the heads that the text shows. */
function headsShown() {
  const {layer, head} = now();
  if (S.mode === 'chosen' && S.chosen.size) return [...S.chosen].map(i => [Math.floor(i / H), i % H]);
  return S.mode === 'layer' || S.mode === 'each' ? Array.from({length: H}, (_, h) => [layer, h]) : [[layer, head]];
}
draw.words = () => {
  const {q, k} = at(), {layer, head} = now(), heads = headsShown(), maps = heads.map(([l, h]) => matrix(W, l, h).v), each = S.mode === 'each';
  const {sees} = maskOf(layer), targets = S.by ? queryWords : keyWords, index = i => S.by ? i * K + k : q * K + i;
  const selected = S.by ? keyWords[k] : queryWords[q], other = S.by ? queryWords[q] : keyWords[k];
  const means = targets.map((_, i) => maps.reduce((sum, w) => sum + w[index(i)], 0) / maps.length);
  const most = targets.reduce((a, _, i) => sees[index(i)] ? Math.max(a, means[i]) : a, 0);
  const high = S.relative && most > 0 ? most : 1, range = {low: S.log ? Math.min(LOW, high / 10) : 0, high, log: S.log};
  const tallest = each ? Math.max(1e-9, ...targets.flatMap((_, i) => sees[index(i)] ? maps.map(w => w[index(i)]) : [])) : 0;
  $('text').classList.toggle('bars', each);
  $('words').style.setProperty('--least', each ? Math.round(2.5 * H) + 'px' : '');
  if (isCross) for (const span of S.by ? keyWords : queryWords) {
    span.className = span.style.background = span.style.color = '';
    span.querySelector('canvas')?.remove();
  }
  const widths = each ? targets.map(span => span.offsetWidth) : [];
  targets.forEach((span, i) => {
    const masked = !sees[index(i)], c = place(means[i], range), isColored = !masked && !each;
    span.style.background = isColored ? C.share.css[c] : '';
    span.style.color = isColored ? C.share.ink[c] : '';
    span.className = masked ? 'masked' : '';
    drawBars(span, each && !masked ? maps.map(w => w[index(i)] / tallest) : null, widths[i]);
  });
  selected.classList.add('query');
  if (S.pinned || S.hover) other.classList.add('key');
  if (!S.hover?.text) {
    const box = $('words'), y = selected.offsetTop;
    if (y < box.scrollTop || y + 24 > box.scrollTop + box.clientHeight) box.scrollTop = y - 26;
  }
  const ofLayer = L > 1 ? ` of layer ${layer}` : '', brightest = S.relative && !each ? `, brightest ${fixed(most, 2)}` : '';
  $('says').textContent = each ? `tallest ${fixed(tallest, 2)}, head ` : (S.mode === 'layer' ? `mean of ${plural(H, 'head')}${ofLayer}`
    : S.mode === 'head' ? `head ${headName(layer, head)}` : S.chosen.size ? `mean of ${plural(S.chosen.size, 'chosen head')}` : 'Shift-click heads to choose') + brightest;
  if (each) for (let h = 0; h < Math.min(H, 16); h++) $('says').appendChild(element('span', h, 'of')).style.setProperty('--c', C.heads[h % 8]);
  for (const b of $('modes').children) b.setAttribute('aria-pressed', b.dataset.mode === S.mode);
  $('relative').setAttribute('aria-pressed', S.relative);
  $('to').setAttribute('aria-pressed', !S.by);
  $('by').setAttribute('aria-pressed', S.by);
};
/** Draws one bar a head under a word. */
function drawBars(span, shares, width) {
  let bars = span.querySelector('canvas');
  if (!shares) return bars?.remove();
  if (!bars) span.append(bars = element('canvas'));
  const w = Math.max(width - 1, H), g = sized(bars, w, 17), step = w / H;
  fill(g, 0, 16, step * H, 1, C.active);
  shares.forEach((share, h) => fill(g, h * step, 16 - 16 * share, Math.max(step - (step > 4 ? 1 : 0), .6), 16 * share, C.heads[h % 8]));
}
