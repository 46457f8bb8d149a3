'use strict';
// The theme is set at once, so that nothing flashes while the data arrives.
const prefers = matchMedia('(prefers-color-scheme: dark)');
/** Tells whether the notebook around the page is dark; undefined where it cannot be known. */
function hostIsDark() {
  try {
    if (parent === window || !window.frameElement) return undefined;
    const {body, documentElement} = parent.document;
    if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === 'false';                      // JupyterLab
    if (/vscode-(dark|high-contrast)(?!-light)/.test(body.className) || documentElement.getAttribute('theme') === 'dark') return true;   // VS Code, Colab
    for (let e = window.frameElement; e; e = e.parentElement) {
      const c = parent.getComputedStyle(e).backgroundColor.match(/[\d.]+/g)?.map(Number);
      if (c && (c[3] ?? 1) > .5) return (.2126 * c[0] + .7152 * c[1] + .0722 * c[2]) < 115;
    }
  } catch { /* another origin */ }
  return undefined;
}
const isDark = () => hostIsDark() ?? prefers.matches;
document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
const isParsed = document.readyState === 'loading' ? new Promise(done => addEventListener('DOMContentLoaded', done)) : Promise.resolve();
const isFailed = error => { document.body.textContent = `attnscope: this page could not be shown (${error.message}). It needs a browser of 2023 or later.`; throw error; };
isParsed.then(async () => {
/*PARTS*/
}).catch(isFailed);
