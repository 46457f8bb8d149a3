// Theme, print, titles and the first drawing.
let isThemeChosen = false, darkBefore;
function setTheme(dark) { S.dark = dark; document.documentElement.dataset.theme = dark ? 'dark' : 'light'; setColors(); gridImage = null; touchHead(); }
function switchTheme() { isThemeChosen = true; setTheme(!S.dark); }
function followTheme() { const dark = isDark(); if (!isThemeChosen && dark !== S.dark) setTheme(dark); }
prefers.addEventListener('change', followTheme);
addEventListener('focus', followTheme);
try { if (parent !== window) new MutationObserver(() => setTimeout(followTheme, 200)).observe(parent.document.body, {attributes: true}); } catch { /* another origin */ }
/** Lays a color, and a picture over it, under what a canvas shows: printers take clear pixels for white. */
function lay(canvas, color, picture) {
  const g = canvas.getContext('2d');
  g.save(); g.setTransform(1, 0, 0, 1, 0, 0); g.globalCompositeOperation = 'destination-over';
  if (picture) g.drawImage(picture, 0, 0);
  fill(g, 0, 0, canvas.width, canvas.height, color);
  g.restore();
}
addEventListener('beforeprint', () => {
  darkBefore = S.dark;
  setTheme(false);
  drawAll(Object.keys(draw));
  lay($('over'), C.back, $('base')); lay($('grid'), C.panel); lay($('sum'), C.panel);
});
addEventListener('afterprint', () => setTheme(darkBefore));

const size = isCross ? `${N === 1 ? '1 query' : N + ' queries'}, ${plural(K, 'key')}` : plural(N, 'token');
$('title').textContent = D.title;
$('subtitle').textContent = [L > 1 ? `${L} layers × ${plural(H, 'head')}` : H > 1 ? `${H} heads` : '', size, D.note].filter(Boolean).join(' · ');
$('subtitle').dataset.tip = $('subtitle').textContent;
if (STAGES.length > 1 && !oneLayer) for (const id of STAGES) {
  const b = $('stages').appendChild(element('button'));
  b.append(element('span', ABOUT[id].name, 'full'), element('span', ABOUT[id].brief, 'brief'));
  b.dataset.id = id;
  b.setAttribute('role', 'tab');
  b.setAttribute('aria-label', ABOUT[id].name);
  b.onclick = () => setStage(id);
}
for (const [id, [name]] of Object.entries(MEASURES)) $('measure').add(new Option(name, id));
$('measure').onchange = () => { S.measure = $('measure').value; gridImage = null; touch('grid'); };
if (oneLayer) { $('measure').hidden = true; $('heads-title').textContent = H > 1 ? 'Stages × heads' : 'Stages'; }
if (oneHead) $('heads').style.display = 'none';
if (!drawWhy) { $('side').classList.add('plain'); $('why').style.visibility = 'hidden'; }
$('linear').onclick = () => setLog(false);
$('log').onclick = () => setLog(true);
$('theme').onclick = switchTheme;
$('to').onclick = () => setBy(false);
$('by').onclick = () => setBy(true);
$('relative').onclick = () => setRelative(!S.relative);
function showTab(isWhy) {
  $('side').classList.toggle('whys', isWhy);
  $('tab-row').setAttribute('aria-pressed', !isWhy);
  $('tab-why').setAttribute('aria-pressed', isWhy);
  touch('side');
}
$('tab-row').onclick = () => showTab(false);
$('tab-why').onclick = () => showTab(true);
$('help').onclick = () => {
  const list = element('dl'), close = element('button', 'Close');
  close.onclick = () => $('keys').close();
  list.append(...Object.entries(HELP).flatMap(([key, what]) => [element('dt', key), element('dd', what)]));
  const kept = {f64: () => 'as 64-bit floats', f32: () => 'as 32-bit floats', q16: s => `in 16 bits, at most ${s.loss.toExponential(1)} from the original`};
  const lines = D.stages.map(s => `${(ABOUT[s.id]?.name ?? s.id).toLowerCase()} ${kept[s.store](s)}`).join('; ');
  $('keys').replaceChildren(element('h2', 'Keys'), list,
    element('p', `Stored: ${lines}.${Object.keys(COMPUTE).length ? ' Scores and context vectors are computed here from these.' : ''}`),
    element('p', `Log colors run from ${LOW} to 1. Hatched cells are masked; a zero that is not masked has the lowest color. Where a pixel covers several cells, it shows the largest.`), close);
  $('keys').showModal();
};
const resize = () => { if (isFolded()) return; layout(); gridImage = null; touchHead(); };
addEventListener('resize', resize);
new ResizeObserver(resize).observe($('text'));
new ResizeObserver(touchHead).observe($('plot'));
new ResizeObserver(() => touch('side')).observe($('side'));
showTab(false); followTheme(); setStage(S.stage); resize();
window.attnscope = {readyAt: performance.now(), S, D, maskOf, matrix, draw, P: () => P, G: () => G};   // for tests
