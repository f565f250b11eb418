"use strict";
// Small charts as SVG, each with a table of its numbers. Text from files only ever becomes text nodes.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function make(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function asPercent(value) {
  return value === null || value === undefined ? "-" : (100 * value).toFixed(1) + " %";
}

function asNumber(value) {
  return value === null || value === undefined ? "-" : String(Number(value.toPrecision(4)));
}

// A table that scrolls by itself where it is too wide, and by keyboard.
function makeTable(caption, head, rows) {
  const cells = (row, body) => row.map((cell, column) => (
    body && column > 0 ? make("td", null, cell) : make("th", { scope: body ? "row" : "col" }, cell)
  ));
  const table = make("table", { "aria-label": caption },
    make("thead", null, make("tr", null, ...cells(head, false))),
    make("tbody", null, ...rows.map((row) => make("tr", null, ...cells(row, true)))));
  const scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
  return make("div", null, make("p", { class: "note caption" }, caption), scroll); // which stays in place, and is as wide as the page
}

function niceTicks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) ticks.push(Number(tick.toPrecision(12)));
  return ticks;
}

function runSwatch(run) {
  const line = draw("line", { x1: 0, y1: 5, x2: 26, y2: 5, class: `run-${run % 8} dash-${run % 4}` });
  return draw("svg", { class: "swatch", viewBox: "0 0 26 10", "aria-hidden": "true" }, line);
}

function shareSwatch(name) {
  return draw("svg", { class: "swatch", viewBox: "0 0 26 10", "aria-hidden": "true" }, draw("rect", { width: 26, height: 10, class: name }));
}

function makeLegend(entries) {
  return make("ul", { class: "legend" }, ...entries.map(([swatch, name]) => make("li", null, swatch, name)));
}

// Lines over epochs. series: [{run, name, points: [[epoch, value], ...]}]; with shares, values lie between 0 and 1.
function lineChart({ title, series, shares, width, height }) {
  const show = shares ? asPercent : asNumber;
  const points = series.flatMap((one) => one.points).filter((point) => point[1] !== null);
  const caption = make("figcaption", null, title);
  if (!points.length) return make("figure", null, caption, make("p", { class: "note" }, "Not recorded by the runs that are shown."));
  const epochs = points.map((point) => point[0]);
  const values = points.map((point) => point[1]);
  const [first, last] = [Math.min(...epochs), Math.max(...epochs)];
  let [low, high] = shares ? [0, 1] : [Math.min(0, ...values), Math.max(...values)];
  if (high === low) high = low + 1;
  const box = { left: 46, right: 10, top: 8, bottom: 36 };
  const x = (epoch) => box.left + (width - box.left - box.right) * (last === first ? 0.5 : (epoch - first) / (last - first));
  const y = (value) => height - box.bottom - (height - box.top - box.bottom) * (value - low) / (high - low);
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe(title, series, show) });
  for (const tick of niceTicks(low, high, 4)) {
    svg.append(draw("line", { class: "grid", x1: box.left, x2: width - box.right, y1: y(tick), y2: y(tick) }));
    svg.append(draw("text", { x: box.left - 6, y: y(tick) + 4, "text-anchor": "end" }, shares ? `${Math.round(100 * tick)} %` : asNumber(tick)));
  }
  for (const tick of niceTicks(first, last, width < 360 ? 3 : 6).filter(Number.isInteger)) {
    svg.append(draw("text", { x: x(tick), y: height - box.bottom + 16, "text-anchor": "middle" }, String(tick)));
  }
  svg.append(draw("text", { x: (box.left + width - box.right) / 2, y: height - 4, "text-anchor": "middle" }, "epoch"));
  for (const one of series) {
    let path = "";
    for (const [epoch, value] of one.points) {
      path += value === null ? " " : `${path.endsWith(" ") || !path ? "M" : "L"}${x(epoch).toFixed(1)},${y(value).toFixed(1)}`;
    }
    svg.append(draw("path", { class: `series run-${one.run % 8} dash-${one.run % 4}`, d: path.trim() || "M0,0" }));
    for (const [epoch, value] of one.points.filter((point) => point[1] !== null)) {
      svg.append(draw("circle", { class: `dot run-${one.run % 8}`, cx: x(epoch), cy: y(value), r: one.points.length > 25 ? 1.5 : 3 },
        draw("title", null, `${one.name}, epoch ${epoch}: ${show(value)}`)));
    }
  }
  const all = [...new Set(epochs)].sort((a, b) => a - b);
  const known = series.map((one) => new Map(one.points));
  const rows = all.map((epoch) => [String(epoch), ...known.map((one) => show(one.get(epoch)))]);
  const table = makeTable(title, ["epoch", ...series.map((one) => one.name)], rows);
  return make("figure", null, caption, svg, make("details", null, make("summary", null, "Numbers"), table));
}

function describe(title, series, show) {
  const ends = series.map((one) => {
    const known = one.points.filter((point) => point[1] !== null);
    return known.length ? `${one.name} from ${show(known[0][1])} to ${show(known[known.length - 1][1])}` : `${one.name} not recorded`;
  });
  return `${title}, over epochs: ${ends.join("; ")}`;
}

// One bar of shares for each row. rows: [{name, shares: [value, ...]}], segments: [{name, style}]
function shareChart({ title, rows, segments, width, open }) {
  const caption = make("figcaption", null, title);
  if (!rows.length) return make("figure", null, caption, make("p", { class: "note" }, "Not recorded by the runs that are shown."));
  const line = 46;
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${width} ${rows.length * line}`, role: "img" });
  const words = [];
  rows.forEach((row, number) => {
    let left = 0;
    svg.append(draw("text", { class: "row-label", x: 0, y: number * line + 13 }, row.name));
    row.shares.forEach((share, position) => {
      const length = Math.max(0, share || 0) * width;
      const label = `${row.name}: ${segments[position].name} ${asPercent(share)}`;
      svg.append(draw("rect", { class: segments[position].style, x: left, y: number * line + 18, width: length, height: 20 },
        draw("title", null, label)));
      left += length;
    });
    words.push(`${row.name}: ${row.shares.map((share, position) => `${segments[position].name} ${asPercent(share)}`).join(", ")}`);
  });
  svg.setAttribute("aria-label", `${title}. ${words.join("; ")}`);
  const table = makeTable(title, ["", ...segments.map((one) => one.name)], rows.map((row) => [row.name, ...row.shares.map(asPercent)]));
  return make("figure", null, caption, svg, make("details", open ? { open: "" } : null, make("summary", null, "Numbers"), table));
}
