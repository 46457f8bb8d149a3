// Colors, and matrices as pixels.
const MAPS = {
  dark: {
    share: '1b1a2b 2f2152 443a83 3a538b 2f6c8e 24868e 1f9f88 3fbc73 7dd250 bfdf30 fde725', mask: '1b1e22 59626d',
    minus: '93c6f7 4b98dd 2a74b8 215484 213a55', plus: '22262b 46331f 774818 ad6415 e0841f ffb866', heads: 'e8a33d 5ab4ea 35c293 e9dc5a e3714a d487b8 9f92f3 b3bac2',
  },
  light: {
    share: 'f6f4ea e6ecb4 c3e07d 8ed26b 52bd79 27a585 238a8d 2f6c8e 3d4f8a 46327e 2e0f45', mask: 'f1f2f4 aab3bd',
    minus: '0d4679 17609f 3786c8 6aabde a3cbec d0e3f5', plus: 'eef0f2 fbe0c2 f8c18a ee9b4e d8741d a4500a 7d3b05', heads: 'b06a00 1f78b4 0f8f66 8a7a00 c04a1c b0467f 6a58c8 5f6873',
  },
};
const rgb = hex => [0, 2, 4].map(i => parseInt(hex.replace('#', '').slice(i, i + 2), 16));
const pixel = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;
const linearized = v => (v /= 255) <= .04 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const luminance = c => c.slice(0, 3).reduce((sum, v, i) => sum + [.2126, .7152, .0722][i] * linearized(v), 0);
const inkOn = c => { const y = luminance(c) + .05; return 1.05 / y > y / .055 ? '#f6f8fa' : '#0c0f12'; };
/** Returns 256 colors between evenly spaced stops, as CSS, as pixels and with the ink that reads best on each. */
function colorMap(stops) {
  const c = stops.map(rgb), list = Array.from({length: 256}, (_, i) => {
    const x = i / 255 * (c.length - 1), a = Math.min(x | 0, c.length - 2);
    return c[a].map((v, j) => Math.round(v + (c[a + 1][j] - v) * (x - a)));
  });
  return {css: list.map(c => `rgb(${c})`), pixels: Uint32Array.from(list, pixel), ink: list.map(inkOn), bar: `linear-gradient(90deg, ${stops.map(s => '#' + s)})`};
}
let C;                                                   // the colors of the theme: maps by kind, heads, and those of page.css
function setColors() {
  const s = MAPS[S.dark ? 'dark' : 'light'], list = name => s[name].split(' '), css = getComputedStyle(document.documentElement);
  C = {share: colorMap(list('share')), mask: colorMap(list('mask')), signed: colorMap([...list('minus'), ...list('plus')]), heads: list('heads').map(h => '#' + h)};
  for (const name of ['back', 'panel', 'text', 'dim', 'faint', 'select', 'inner', 'bad', 'frame', 'accent', 'active', 'mask0', 'mask1']) C[name] = css.getPropertyValue('--' + name).trim();
}
const LOW = 10 ** -Math.ceil(Math.log10(4 * K));          // lower end of the log scale: below an even share of the row
const UNIT = {low: 0, high: 1};
function rangeOf(m) {
  if (m.kind === 'share') return {low: S.log ? LOW : 0, high: Math.max(1, m.most), log: S.log};
  return m.kind === 'mask' ? {low: 0, high: m.most || 1} : {low: -(m.most || 1), high: m.most || 1};
}
/** Returns the index of x among the 256 colors. */
function place(x, {low, high, log}) {
  const t = log ? (x > 0 ? 1 - Math.log(x / high) / Math.log(low / high) : 0) : (x - low) / (high - low);
  return t <= 0 ? 0 : t >= 1 ? 255 : Math.round(t * 255);
}

/** Returns for each of size pixels which of n cells it shows, and whether it is in the gap after that cell. */
function spans(n, size, width) {
  const cell = new Int32Array(size), gap = new Uint8Array(size);
  for (let i = 0; i < n; i++) {
    const a = Math.round(i * size / n), b = Math.round((i + 1) * size / n);
    cell.fill(i, a, b);
    gap.fill(1, b - width, b);
  }
  return {cell, gap};
}
/** Returns the color of each of rows × cols blocks of a matrix: of its largest number; 0 where all of it is masked. */
function blocks(m, box, rows, cols) {
  const range = rangeOf(m), colors = C[m.kind].pixels, bad = pixel(rgb(C.bad)), result = new Uint32Array(rows * cols);
  const part = (i, n, all, from) => from + (i * all / n | 0), end = (i, n, all, from) => Math.max(part(i, n, all, from) + 1, part(i + 1, n, all, from));
  for (let y = 0; y < rows; y++) for (let x = 0; x < cols; x++) {
    const r1 = end(y, rows, box.rows, box.r), c0 = part(x, cols, box.cols, box.c), c1 = end(x, cols, box.cols, box.c);
    let best, size = -1;
    for (let r = part(y, rows, box.rows, box.r); r < r1; r++) for (let c = c0, i = r * m.cols + c; c < c1; c++, i++) {
      if (isMasked(m, i)) continue;
      const v = m.v[i], a = v < 0 ? -v : v;
      if (a > size || v !== v) { best = v; size = a; }
    }
    if (best !== undefined) result[y * cols + x] = best === best ? colors[place(best, range)] : bad;
  }
  return result;
}
/** Paints box = {r, c, rows, cols} of a matrix as w × h device pixels. */
function paint(m, box, w, h, gap, hatch) {
  const rows = Math.min(box.rows, h), cols = Math.min(box.cols, w), cells = blocks(m, box, rows, cols);
  const image = new ImageData(w, h), out = new Uint32Array(image.data.buffer), xs = spans(cols, w, gap), ys = spans(rows, h, gap);
  const ground = pixel(rgb(C.back)), mask0 = pixel(rgb(C.mask0)), mask1 = pixel(rgb(C.mask1));
  for (let y = 0, o = 0; y < h; y++) for (let x = 0, row = ys.cell[y] * cols; x < w; x++, o++) {
    const color = cells[row + xs.cell[x]];
    out[o] = !color ? (x + y) % hatch ? mask0 : mask1 : ys.gap[y] || xs.gap[x] ? ground : color;
  }
  return image;
}

const SANS = '"DejaVu Sans", system-ui, "Segoe UI", "Noto Sans", sans-serif', MONO = '"DejaVu Sans Mono", ui-monospace, Menlo, Consolas, monospace';
const ratio = () => Math.min(3, devicePixelRatio || 1), px = x => Math.round(x * ratio()), snap = x => px(x) / ratio();
/** Sizes a canvas to w × h CSS pixels, clears it and returns its context. */
function sized(canvas, w, h) {
  const g = canvas.getContext('2d'), width = Math.max(1, px(w)), height = Math.max(1, px(h));
  if (canvas.width !== width || canvas.height !== height) {
    Object.assign(canvas, {width, height});
    Object.assign(canvas.style, {width: w + 'px', height: h + 'px'});
  }
  g.setTransform(ratio(), 0, 0, ratio(), 0, 0);
  g.clearRect(0, 0, w, h);
  return g;
}
function write(g, text, x, y, {size = 12, font = SANS, color = C.dim, align = 'left', most = Infinity, upright = false} = {}) {
  g.font = `${size}px ${font}`; g.fillStyle = color; g.textAlign = align; g.textBaseline = 'middle';
  const fits = t => g.measureText(t).width <= most;
  if (!fits(text)) {
    const cut = [...text];
    do cut.pop(); while (cut.length > 1 && !fits(cut.join('') + '…'));
    text = cut.join('') + '…';
  }
  if (!upright) return g.fillText(text, x, y);
  g.save(); g.translate(x, y); g.rotate(-Math.PI / 2); g.fillText(text, 0, 0); g.restore();
}
const outline = (g, x, y, w, h, color, width = 1) => { g.strokeStyle = color; g.lineWidth = width; g.strokeRect(x, y, w, h); };
const fill = (g, x, y, w, h, color) => { g.fillStyle = color; g.fillRect(x, y, w, h); };
