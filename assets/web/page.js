// Starts attnscope in the page and passes it the browser's events. Functions that begin with _page_ are those of app/web/page.cpp.
"use strict";
(() => {
const element = id => document.getElementById(id);
const canvas = element("canvas"), text = element("text"), chooser = element("files");
const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
let module = null, page = 0;  // the program and its window

// ---- Steps: one for each frame of the display while something changes, else when the program asks for it.
let frame = 0, timer = 0;
const counts = {steps: 0, longest: 0, milliseconds: []};

function wake() {
  if (frame || !page) return;
  clearTimeout(timer);
  frame = requestAnimationFrame(step);
}

function step() {
  frame = 0;
  const begin = performance.now();
  let seconds;
  try {
    seconds = module._page_step(page);
  } catch (error) {  // a trap: nothing of the program can be trusted any more, and its journal has the work
    return fail(error);
  }
  const took = performance.now() - begin;
  counts.steps++;
  counts.longest = Math.max(counts.longest, took);
  if (counts.milliseconds.length < 10000) counts.milliseconds.push(took);
  // Shown after a while without the main thread, which may be busy until then.
  if (seconds >= 0) element("working").classList.toggle("may-take-long", module._page_has_job(page) !== 0);
  if (seconds < 0) return end("attnscope has ended. Reload the page to start it again.");
  if (seconds === 0) wake();
  else if (Number.isFinite(seconds)) timer = setTimeout(wake, 1000 * seconds);
}

// ---- Work that takes longer than a frame leaves its stack after a while and goes on in turn, where the browser can switch stacks.
const hasFibers = typeof WebAssembly === "object" && "Suspending" in WebAssembly, turns = new MessageChannel(), paused = [];
turns.port1.onmessage = () => page && paused.shift()();

function end(message) {
  page = 0;
  element("start").hidden = false;
  element("progress").hidden = true;
  element("message").textContent = message;
}

// ---- Texts of the program. It frees those that it is given.
function withTexts(texts, use) {
  const pointers = texts.map(each => module.stringToNewUTF8(each));
  try {
    return use(...pointers);
  } finally {
    pointers.forEach(pointer => module._free(pointer));
  }
}

function takeText(pointer) {
  const taken = module.UTF8ToString(pointer);
  module._free(pointer);
  return taken;
}

// ---- Unsaved work: one record for each page, in a database. Who holds the lock of a record owns it.
const journals = {
  database: null, texts: new Map(), found: [], isSearching: false,
  open: () => new Promise(done => {
    const opening = indexedDB.open("attnscope", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("journals");
    opening.onsuccess = () => { journals.database = opening.result; done(); };
    opening.onerror = () => done();  // a private window without a database: nothing is kept
  }),
  store: mode => journals.database.transaction("journals", mode).objectStore("journals"),
  /// Takes a lock until the page ends; the promise tells whether nobody else has it.
  lock: name => new Promise(done => navigator.locks.request("attnscope journal " + name, {ifAvailable: true}, lock => {
    done(lock !== null);
    return lock && new Promise(() => {});
  })),
  async search() {
    if (!journals.database || !navigator.locks || journals.isSearching) return;
    journals.isSearching = true;
    const all = await new Promise(done => {
      const records = new Map(), walk = journals.store("readonly").openCursor();
      walk.onsuccess = () => {
        if (!walk.result) return done(records);
        records.set(walk.result.key, walk.result.value);
        walk.result.continue();
      };
      walk.onerror = () => done(records);
    });
    for (const [name, content] of all)
      if (!journals.texts.has(name) && await journals.lock(name)) {
        journals.texts.set(name, content);
        journals.found.push(name);
        wake();
      }
    journals.isSearching = false;
  },
  takeLeftovers() {
    journals.search();  // for the next call: another page may just be ending
    return journals.found.splice(0);
  },
  read: name => journals.texts.get(name) ?? "",
  write(name, content) {
    if (!journals.texts.has(name) && navigator.locks) journals.lock(name);
    journals.texts.set(name, content);
    if (!journals.database) return;
    content ? journals.store("readwrite").put(content, name) : journals.store("readwrite").delete(name);
  },
};

// ---- Files: those that are dropped or chosen become files of the program, those that it offers become downloads.
let taken = 0;

async function take(files) {
  const own = `/files/${++taken}`, opened = new Set();  // so that the files of a model are together
  for (const {path, file} of files) {
    const parts = path.split("/").filter(part => part && part !== "." && part !== "..");
    const folder = [own, ...parts.slice(0, -1)].join("/");
    module.FS.mkdirTree(folder);
    module.FS.writeFile(folder + "/" + parts.at(-1), new Uint8Array(await file.arrayBuffer()));
    opened.add(own + "/" + parts[0]);
  }
  const model = own + "/config.json";
  for (const path of opened.has(model) ? [model] : opened) withTexts([path], pointer => module._page_drop(page, pointer));
  wake();
}

async function filesBelow(entry, folder = "") {
  if (entry.isFile) return [{path: folder + entry.name, file: await new Promise((done, fail) => entry.file(done, fail))}];
  const reader = entry.createReader(), below = [];
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length) return below;
    for (const each of some) below.push(...await filesBelow(each, folder + entry.name + "/"));
  }
}

function download(name, bytes) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes]));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// ---- Whole models that come with the page: what they are is known from the start, their weights are fetched when they are opened.
const examples = "/share/attnscope/examples/", weights = {tiny_gpt: "model.fp16.safetensors"}, fetched = new Map();

async function fetchFile(example, file) {
  const answer = await fetch(`examples/${example}/${file}`);
  if (!answer.ok) throw new Error(`${answer.url}: the server answers ${answer.status}`);
  module.FS.writeFile(examples + example + "/" + file, new Uint8Array(await answer.arrayBuffer()));
}

// ---- What the program asks of the page.
const services = {
  wake, journals, offer: download,
  hasFibers: () => hasFibers,
  enter: (enter, destroy, fiber) =>
    void WebAssembly.promising(module.wasmTable.get(enter))(fiber).then(() => module.wasmTable.get(destroy)(fiber)).catch(fail),
  leave: hasFibers ? new WebAssembly.Suspending(() => new Promise(goOn => { paused.push(goOn); turns.port2.postMessage(null); })) : () => {},
  readKept: path => { try { return localStorage.getItem(path) ?? ""; } catch { return ""; } },
  writeKept: (path, content) => { try { localStorage.setItem(path, content); } catch { /* a private window */ } },
  copy(words) {
    const link = words.replace(/^attnscope:(?=#)/, location.origin + location.pathname);  // a link leads to this page
    navigator.clipboard?.writeText(link).catch(() => {});
  },
  choose: () => { chooser.value = ""; chooser.click(); },
  describe: words => { element("sentence").textContent = words; },
  isHere: path => !weights[path.slice(examples.length)] || fetched.get(path.slice(examples.length)) === 0,
  /// Returns 0 if the files of a folder are here, 1 if they are on their way, 2 if they cannot be fetched.
  fetchFolder(path) {
    const example = path.startsWith(examples) && path.slice(examples.length);
    if (!weights[example]) return 0;
    const state = fetched.get(example);
    if (state === undefined) {
      fetched.set(example, 1);
      fetchFile(example, weights[example]).then(() => fetched.set(example, 0), () => fetched.set(example, 2)).then(wake);
    } else if (state === 2) fetched.delete(example);  // for another attempt
    return state ?? 1;
  },
  placeText(isOn, x, y, height) {
    text.style.left = x + "px";
    text.style.top = y + "px";
    text.style.height = height + "px";
    text.inputMode = isOn ? "text" : "none";  // whether a tablet shows its keyboard
  },
  fullscreen(isOn) {
    if (isOn) document.documentElement.requestFullscreen?.().catch(() => {});
    else if (document.fullscreenElement) document.exitFullscreen();
  },
};

// ---- Mouse and pen, and fingers: one is the mouse, two pan and zoom, and a long press is the right button.
const longPress = 500, slack = 8;  // milliseconds, CSS pixels
const wheelStep = 1.25;  // by how much a turn of the wheel enlarges
const fingers = new Map();
let press = null;    // of one finger, before it is known what it means
let gesture = null;  // of two: where it began, and "pan" or "zoom" once it is known

const move = e => module._page_mouse(page, e.clientX, e.clientY, e.pointerType === "touch");
const button = (which, isDown) => module._page_button(page, which, isDown);
const imguiButton = e => e.button === 1 ? 2 : e.button === 2 ? 1 : e.button;

function beginPress() {
  clearTimeout(press.timer);
  press.isDrag = true;
  move(press.event);
  button(0, 1);
}

function onPointerDown(e) {
  e.preventDefault();
  text.focus({preventScroll: true});
  canvas.setPointerCapture(e.pointerId);
  if (e.pointerType !== "touch") {
    move(e);
    button(imguiButton(e), 1);
    return wake();
  }
  fingers.set(e.pointerId, e);
  if (fingers.size > 1) {
    if (press?.isDrag) button(0, 0);
    clearTimeout(press?.timer);
    press = null;
    gesture = {begin: spread(), kind: ""};
  } else {
    move(e);
    press = {event: e, isDrag: false, timer: setTimeout(() => {
      press = null;
      button(1, 1);
      button(1, 0);
      wake();
    }, longPress)};
  }
  wake();
}

function spread() {
  const [a, b] = [...fingers.values()];
  return {x: (a.clientX + b.clientX) / 2, y: (a.clientY + b.clientY) / 2, size: Math.max(1, Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY))};
}

function onPointerMove(e) {
  if (fingers.size > 1 && fingers.has(e.pointerId)) {
    const before = spread();
    fingers.set(e.pointerId, e);
    const after = spread(), {begin} = gesture;
    if (!gesture.kind && Math.abs(after.size - begin.size) > slack) gesture.kind = "zoom";
    if (!gesture.kind && Math.hypot(after.x - begin.x, after.y - begin.y) > slack) gesture.kind = "pan";
    module._page_mouse(page, after.x, after.y, 1);
    if (gesture.kind === "zoom") module._page_zoom(page, Math.log(after.size / before.size) / Math.log(wheelStep));
    if (gesture.kind === "pan") module._page_wheel(page, (before.x - after.x) / 50, (before.y - after.y) / 50);
    return wake();
  }
  if (press && !press.isDrag) {
    if (Math.hypot(e.clientX - press.event.clientX, e.clientY - press.event.clientY) < slack) return;
    beginPress();
  }
  if (fingers.has(e.pointerId)) fingers.set(e.pointerId, e);
  move(e);
  wake();
}

function onPointerUp(e) {
  if (e.pointerType !== "touch") {
    move(e);
    button(imguiButton(e), 0);
    return wake();
  }
  fingers.delete(e.pointerId);
  if (press) {
    if (!press.isDrag) beginPress();
    button(0, 0);
    press = null;
  }
  if (!fingers.size) module._page_leave(page);  // nothing is hovered any more
  wake();
}

// ---- Keys: characters come as text, so that each keyboard layout and input method works; the rest as keys.
const isCommand = e => e.ctrlKey || (isMac && e.metaKey);
const isPaste = e => isCommand(e) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === "v";

function passKey(e, isDown) {
  if (e.isComposing || e.key === "Process" || e.key === "Dead" || isPaste(e)) return;  // its event `paste` follows, with the text
  const isCharacter = e.key.length === 1 && (!isCommand(e) && !e.altKey || e.getModifierState("AltGraph"));
  const isTaken = withTexts([e.code, e.key], (code, name) =>
    module._page_key(page, code, name, isDown, isCommand(e), e.shiftKey, e.altKey && !e.getModifierState("AltGraph")));
  if (isTaken && !isCharacter) e.preventDefault();
  wake();
}

function passText() {
  if (text.value) withTexts([text.value], words => module._page_type(page, words));
  text.value = "";
  wake();
}

function onPaste(e) {
  e.preventDefault();
  const words = e.clipboardData.getData("text/plain");
  withTexts([words, "KeyV", "v"], (pasted, code, name) => {
    module._page_paste(page, pasted);
    module._page_key(page, code, name, 1, 1, 0, 0);
    module._page_key(page, code, name, 0, 1, 0, 0);
  });
  if (e.clipboardData.files.length) take([...e.clipboardData.files].map(file => ({path: file.name, file})));
  wake();
}

function measure() {
  const {width, height} = canvas.getBoundingClientRect();
  module._page_resize(page, width, height, devicePixelRatio);
  wake();
}

function listen() {
  new ResizeObserver(measure).observe(canvas);
  addEventListener("resize", measure);  // also when the ratio of pixels changes
  canvas.addEventListener("pointerdown", onPointerDown);
  canvas.addEventListener("pointermove", onPointerMove);
  canvas.addEventListener("pointerup", onPointerUp);
  canvas.addEventListener("pointercancel", onPointerUp);
  canvas.addEventListener("pointerleave", e => {
    if (!e.buttons && e.pointerType !== "touch") module._page_leave(page), wake();
  });
  canvas.addEventListener("contextmenu", e => e.preventDefault());
  canvas.addEventListener("wheel", e => {
    e.preventDefault();
    const unit = [1 / 100, 1 / 3, 10][e.deltaMode];
    if (e.ctrlKey) module._page_zoom(page, -e.deltaY * unit);  // also two fingers on a touchpad
    else module._page_wheel(page, e.deltaX * unit, e.deltaY * unit);
    wake();
  }, {passive: false});
  addEventListener("keydown", e => passKey(e, 1));
  addEventListener("keyup", e => passKey(e, 0));
  text.addEventListener("input", e => { if (!e.isComposing) passText(); });
  text.addEventListener("compositionend", passText);
  addEventListener("paste", onPaste);
  addEventListener("focus", () => { module._page_focus(page, 1); text.focus({preventScroll: true}); wake(); });
  addEventListener("blur", () => { module._page_focus(page, 0); wake(); });
  addEventListener("dragover", e => {
    e.preventDefault();
    module._page_mouse(page, e.clientX, e.clientY, 0);
    wake();
  });
  addEventListener("drop", async e => {
    e.preventDefault();
    module._page_mouse(page, e.clientX, e.clientY, 0);
    const entries = [...e.dataTransfer.items].map(item => item.webkitGetAsEntry?.()).filter(Boolean);
    const files = [...e.dataTransfer.files].map(file => ({path: file.name, file}));
    take(entries.length ? (await Promise.all(entries.map(entry => filesBelow(entry)))).flat() : files);
  });
  chooser.addEventListener("change", () => take([...chooser.files].map(file => ({path: file.name, file}))));
  addEventListener("hashchange", () => { withTexts([location.href], link => module._page_drop(page, link)); wake(); });
  addEventListener("beforeunload", e => { if (page && module._page_is_modified(page)) e.preventDefault(); });
  document.addEventListener("visibilitychange", wake);
  text.focus({preventScroll: true});
}

// ---- Start.
const total = {done: 0, expected: 0};

/// Counts the bytes of an answer while they arrive.
async function count(answer) {
  total.expected += +answer.headers.get("Content-Length") || 0;
  const reader = answer.body.getReader();
  for (let part; !(part = await reader.read()).done;) {
    total.done += part.value.length;
    element("progress").value = total.expected ? Math.min(1, total.done / total.expected) : 0;
  }
}

async function get(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: the server answers ${answer.status}`);
  count(answer.clone());
  return answer;
}

async function start() {
  if (typeof WebAssembly !== "object" || !document.createElement("canvas").getContext("webgl2"))
    return end("attnscope needs WebAssembly and WebGL 2, which this browser does not offer.");
  const fonts = ["DejaVuSans.ttf", "DejaVuSansMono.ttf"].map(async file => ({file, bytes: new Uint8Array(await (await get(file)).arrayBuffer())}));
  const records = journals.open().then(journals.search);
  module = await attnscope({
    canvas, page: services, noInitialRun: true,
    instantiateWasm(imports, done) {
      get("attnscope.wasm").then(async answer => {
        const isNamed = answer.headers.get("Content-Type") === "application/wasm";  // not by every server
        const made = await (isNamed ? WebAssembly.instantiateStreaming(answer, imports) : WebAssembly.instantiate(await answer.arrayBuffer(), imports));
        done(made.instance);
      }).catch(fail);
      return {};
    },
  });
  module.FS.mkdirTree("/usr/share/fonts/truetype/dejavu");
  for (const {file, bytes} of await Promise.all(fonts)) {
    module.FS.writeFile("/usr/share/fonts/truetype/dejavu/" + file, bytes);
    document.fonts.add(new FontFace(file.includes("Mono") ? "DejaVu Sans Mono" : "DejaVu Sans", bytes));
  }
  module.FS.mkdirTree("/proc/self");
  module.FS.symlink("/bin/attnscope", "/proc/self/exe");  // examples are found from there
  await Promise.all(Object.keys(weights).map(example => {
    module.FS.mkdirTree(examples + example);
    return Promise.all(["config.json", "tokenizer.json"].map(file => fetchFile(example, file)));
  }));
  module.FS.mkdirTree("/saved");
  module.FS.chdir("/saved");
  await records;
  const isEmbedded = new URLSearchParams(location.search).has("embed");
  page = withTexts([location.hash ? location.href : ""], link => module._page_open(link, isEmbedded));
  if (!page) return;
  listen();
  measure();
  module._page_step(page);
  element("start").hidden = true;
  counts.firstFrame = performance.now();
}

function fail(error) {
  console.error(error);
  end("attnscope cannot start: " + (error.message ?? error));
}
services.fail = words => fail(new Error(words));

// For tests.
window.attnscopePage = {
  counts, services,
  landmarks: () => JSON.parse(takeText(module._page_landmarks(page))),
  state: () => JSON.parse(takeText(module._page_state(page))),
  isIdle: () => !frame && !paused.length,
};
start().catch(fail);
})();
