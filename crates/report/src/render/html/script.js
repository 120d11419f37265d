"use strict";
// What is pointed at stands beside the legend. Drawings over time are zoomed, all of a page together, and share a cursor. Others are
// laid out anew where the window is too narrow for them, so that no tick and no label is cut or has to be scrolled to.
// Without this script the page loses nothing: drawings show the whole, and tool tips what is pointed at.

const tipsOf = (plot) =>
  [...plot.querySelectorAll(".hit")].map((hit) => {
    const title = hit.querySelector("title");
    const tip = title.textContent;
    title.remove();
    return { hit, tip };
  });

for (const plot of document.querySelectorAll("figure.plot")) {
  if (plot.querySelector("svg.time")) continue;
  const output = plot.querySelector("output");
  let current = null;
  const show = (hit, tip) => {
    if (current) current.classList.remove("on");
    current = hit;
    if (hit) hit.classList.add("on");
    output.textContent = tip;
  };
  for (const { hit, tip } of tipsOf(plot)) {
    hit.addEventListener("pointerenter", () => show(hit, tip));
    hit.addEventListener("pointerdown", () => show(hit, tip));
  }
  plot.addEventListener("pointerleave", () => show(null, ""));
}

// Lays a drawing out for a width below its least: what is plotted is pressed together between its margins, texts keep their size and
// leave out what would cover another.
const WIDE = 880, LEAST = 680;
const narrowed = (svg) => {
  const left = +svg.dataset.left, right = +svg.dataset.right, height = svg.viewBox.baseVal.height;
  const original = [...svg.cloneNode(true).querySelectorAll("*:not(title)")];
  let now = WIDE;
  return () => {
    const room = Math.floor(svg.parentElement.clientWidth), width = room >= LEAST || room < 200 ? WIDE : room;
    if (width === now) return;
    now = width;
    const parts = [...svg.querySelectorAll("*:not(title)")];
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.classList.toggle("narrow", width < WIDE);
    const margin = Math.min(left, width * 0.48);
    const x = (at) => {
      if (width === WIDE) return at;
      if (at <= left) return at - left + margin;
      if (at >= WIDE - right) return width - (WIDE - at);
      return margin + (at - left) / (WIDE - left - right) * (width - margin - right);
    };
    parts.forEach((element, n) => {
      const of = original[n], number = (name) => +of.getAttribute(name), put = (name, value) => element.setAttribute(name, value.toFixed(1));
      switch (element.tagName) {
        case "line": put("x1", x(number("x1"))); put("x2", x(number("x2"))); break;
        case "circle": put("cx", x(number("cx"))); break;
        case "polyline": {
          const points = of.getAttribute("points").split(" ").map((point) => point.split(","));
          element.setAttribute("points", points.map(([px, y]) => `${x(+px).toFixed(1)},${y}`).join(" "));
          break;
        }
        case "path": {
          // Marks keep their shape.
          const xs = [...of.getAttribute("d").matchAll(/[ML](-?[\d.]+)/g)].map((m) => +m[1]);
          const middle = (Math.min(...xs) + Math.max(...xs)) / 2, by = x(middle) - middle;
          element.setAttribute("d", of.getAttribute("d").replace(/([ML])(-?[\d.]+)/g, (_, pen, px) => pen + (+px + by).toFixed(1)));
          break;
        }
        case "rect": {
          const [from, across] = [number("x"), number("width")], middle = from + across / 2;
          const point = element.classList.contains("hit") && across <= 18;
          const [a, b] = point ? [x(middle) - across / 2, x(middle) + across / 2] : [x(from), x(from + across)];
          put("x", a);
          put("width", Math.max(b - a, 0.5));
          break;
        }
        case "text": {
          element.textContent = of.textContent;
          element.setAttribute("class", of.getAttribute("class"));
          put("x", of.getAttribute("class") === "title" ? number("x") : x(number("x")));
        }
      }
    });
    if (width === WIDE) { for (const text of svg.querySelectorAll("text")) text.style.display = ""; return; }
    // Titles of axes first, then the ends of each axis, then what is between.
    const texts = [...svg.querySelectorAll("text")];
    const rank = (text) => (text.classList.contains("title") ? 0 : !text.classList.contains("tick") ? 3 : text.classList.contains("end") ? 1 : 2);
    const taken = [];
    for (const text of texts.sort((a, b) => rank(a) - rank(b))) {
      text.style.display = "";
      let box = text.getBBox();
      const whole = text.textContent;
      // A name that is longer than its margin is cut in its middle; the table has it whole.
      for (let keep = whole.length - 1; box.width > (rank(text) === 1 ? margin - 8 : width) && keep > 4; keep--) {
        text.textContent = `${whole.slice(0, Math.ceil(keep * 0.6))}\u2026${whole.slice(whole.length - Math.floor(keep * 0.4))}`;
        box = text.getBBox();
      }
      const over = Math.max(box.x + box.width - width, 0) || Math.min(box.x, 0);
      if (over) { text.setAttribute("x", (+text.getAttribute("x") - over).toFixed(1)); box = text.getBBox(); }
      const free = taken.every((t) => box.x >= t.x + t.width + 5 || t.x >= box.x + box.width + 5 || box.y >= t.y + t.height - 2 || t.y >= box.y + box.height - 2);
      if (free) taken.push(box);
      else text.style.display = "none";
    }
  };
};

const VIEW = 10000, LEFT = 64, RIGHT = 12;
const make = (name, attributes, into) => {
  const element = document.createElementNS(into.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return into.appendChild(element);
};

// What all drawings over time show, in ns, and where their cursor is.
let shown = null, cursor = null;
const all = [];
const drawAll = () => all.forEach((drawing) => drawing.draw());
const whole = () => [Math.min(...all.map((d) => d.from)), Math.max(...all.map((d) => d.to))];

// Shows from a to b, within what there is and not less than a ten-thousandth of it.
const zoomTo = (a, b) => {
  const [from, to] = whole();
  const span = Math.max(b - a, (to - from) / 1e4);
  if (span >= to - from) shown = null;
  else {
    const begin = Math.min(Math.max(a, from), to - span);
    shown = [begin, begin + span];
  }
  drawAll();
};
const zoomBy = (factor) => {
  const [a, b] = shown ?? whole();
  const at = cursor !== null && cursor > a && cursor < b ? cursor : (a + b) / 2;
  zoomTo(at - (at - a) * factor, at + (b - at) * factor);
};
const pan = (share) => {
  const [a, b] = shown ?? whole();
  zoomTo(a + (b - a) * share, b + (b - a) * share);
};
const reset = () => { shown = null; drawAll(); };

const overTime = (svg) => {
  const plot = svg.closest("figure"), output = plot.querySelector("output");
  const axis = svg.querySelector(".axis-time"), unit = +axis.dataset.unit, bottom = +axis.dataset.y;
  const height = svg.viewBox.baseVal.height;
  const drawing = { from: +svg.dataset.from, to: +svg.dataset.to };
  const hits = tipsOf(svg);
  const line = make("line", { class: "cursor", y1: 30, y2: bottom, visibility: "hidden" }, svg);
  const chosen = make("rect", { class: "chosen", y: 30, height: bottom - 30, visibility: "hidden" }, svg);
  const range = () => shown ?? [drawing.from, drawing.to];
  let width = 880, right = width - RIGHT;
  const x = (t) => { const [a, b] = range(); return LEFT + (t - a) / (b - a) * (right - LEFT); };
  const time = (event) => {
    const box = svg.getBoundingClientRect(), [a, b] = range();
    const px = (event.clientX - box.left) * width / box.width;
    return a + Math.min(Math.max((px - LEFT) / (right - LEFT), 0), 1) * (b - a);
  };

  drawing.draw = () => {
    const [a, b] = range(), own = drawing.to - drawing.from;
    width = Math.max(svg.parentElement.clientWidth, 280);
    right = width - RIGHT;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    for (const wide of svg.querySelectorAll(".wide")) wide.setAttribute("x2", right);
    for (const view of svg.querySelectorAll(".view")) {
      view.setAttribute("width", right - LEFT);
      const [, y, , h] = view.getAttribute("viewBox").split(" ");
      view.setAttribute("viewBox", `${(a - drawing.from) / own * VIEW} ${y} ${(b - a) / own * VIEW} ${h}`);
    }
    svg.querySelector(".unit").setAttribute("x", (LEFT + right) / 2);
    const rough = (b - a) / unit / Math.max(Math.floor((right - LEFT) / 70), 3), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    axis.replaceChildren();
    for (let n = Math.ceil(a / unit / step - 1e-9); n * step <= b / unit + step * 1e-6; n++) {
      const at = x(n * step * unit);
      make("line", { class: "axis", x1: at, x2: at, y1: bottom, y2: bottom + 4 }, axis);
      const label = (n * step).toFixed(decimals);
      make("text", { class: "tick mid", x: Math.min(at, width - 4 * label.length), y: bottom + 18 }, axis).textContent = label;
    }
    plot.classList.toggle("zoomed", shown !== null);
    drawing.point();
  };

  drawing.point = () => {
    const [a, b] = range();
    const inside = cursor !== null && cursor >= a && cursor <= b;
    line.setAttribute("visibility", inside ? "visible" : "hidden");
    if (inside) for (const end of ["x1", "x2"]) line.setAttribute(end, x(cursor));
    const at = (cursor - drawing.from) / (drawing.to - drawing.from) * VIEW;
    const hit = inside && hits.find(({ hit }) => +hit.getAttribute("x") + +hit.getAttribute("width") >= at);
    output.textContent = hit ? hit.tip : "";
  };
  const point = (t) => { cursor = t; all.forEach((d) => d.point()); };
  // To the middle of the stretch that is so many further.
  const step = (by) => {
    const [a, b] = range(), own = drawing.to - drawing.from;
    const middle = ({ hit }) => drawing.from + (+hit.getAttribute("x") + +hit.getAttribute("width") / 2) / VIEW * own;
    const here = cursor ?? a - 1, after = hits.findIndex((hit) => middle(hit) > here + own / VIEW);
    const now = after < 0 ? hits.length : after;
    const next = hits[Math.min(Math.max(by > 0 ? now : now - 2, 0), hits.length - 1)];
    if (!next) return;
    point(middle(next));
    if (cursor < a || cursor > b) zoomTo(cursor - (b - a) / 2, cursor + (b - a) / 2);
  };

  let begun = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    begun = time(event);
    point(begun);
    if (event.pointerType === "mouse") svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    point(time(event));
    if (begun === null) return;
    const [from, to] = [x(Math.min(begun, cursor)), x(Math.max(begun, cursor))];
    chosen.setAttribute("visibility", to - from > 5 ? "visible" : "hidden");
    chosen.setAttribute("x", from);
    chosen.setAttribute("width", to - from);
  });
  const end = (event) => {
    chosen.setAttribute("visibility", "hidden");
    const from = begun;
    begun = null;
    if (from === null || event.type === "pointercancel") return;
    const to = time(event);
    if (Math.abs(x(to) - x(from)) > 5) zoomTo(Math.min(from, to), Math.max(from, to));
  };
  svg.addEventListener("pointerup", end);
  svg.addEventListener("pointercancel", end);
  svg.addEventListener("pointerleave", () => { if (begun === null) point(null); });
  svg.addEventListener("dblclick", reset);

  svg.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", (event) => {
    const keys = {
      "+": () => zoomBy(0.5), "=": () => zoomBy(0.5), "-": () => zoomBy(2), "0": reset, Escape: reset, Home: reset,
      ArrowLeft: () => (event.shiftKey ? pan(-0.25) : step(-1)), ArrowRight: () => (event.shiftKey ? pan(0.25) : step(1)),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    keys[event.key]();
    event.preventDefault();
  });

  const buttons = document.createElement("span");
  buttons.className = "zoom";
  for (const [text, label, act] of [["+", "Zoom in", () => zoomBy(0.5)], ["\u2212", "Zoom out", () => zoomBy(2)],
    ["\u2190", "Earlier", () => pan(-0.25)], ["\u2192", "Later", () => pan(0.25)], ["all", "Show all", reset]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.title = label;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    buttons.append(button);
  }
  buttons.title = "Drag over a drawing to zoom in; double click shows all. Keys: + - 0, arrows, Shift with arrows.";
  plot.querySelector("figcaption h3").after(buttons);
  plot.classList.add("zooms");
  all.push(drawing);
};
document.querySelectorAll("svg.time").forEach(overTime);
const layouts = [...document.querySelectorAll("svg[data-left]")].map(narrowed);
const layOut = () => { drawAll(); layouts.forEach((layout) => layout()); };
layOut();
addEventListener("resize", layOut);
// Paper has its own width.
addEventListener("beforeprint", layOut);
