// The page itself: reads its data and its controls, and draws.

const data = JSON.parse(document.getElementById("data").textContent);
const control = Object.fromEntries(["rule", "part", "branch", "group", "where", "each"].map((name) => [name, document.getElementById(name)]));
const ALL = "all";

function setOptions(select, options) {
  const before = select.value;
  select.replaceChildren(...options.map(([value, name]) => make("option", { value }, name)));
  select.value = options.some(([value]) => value === before) ? before : options[0][0];
  select.parentElement.hidden = options.length < 2;
}

function chosen() {
  const rule = data.rules.find((one) => one.name === control.rule.value) || null;
  const part = rule && (rule.parts.find((one) => one.path === control.part.value) || null);
  const runs = data.runs.map((run, number) => ({ ...run, number })).filter((run) => document.getElementById(`run-${run.number}`).checked);
  const groups = control.each.checked ? data.groups : data.groups.filter((one) => one.key === control.group.value);
  const where = control.where.value;
  return { rule, part, runs, groups, where, units: part && part.counted !== "samples" ? part.counted : "samples" };
}

function fillChoices() {
  setOptions(control.rule, data.rules.length ? data.rules.map((one) => [one.name, `${one.name}: ${one.text}`]) : [["", "none"]]);
  const rule = data.rules.find((one) => one.name === control.rule.value);
  setOptions(control.part, rule && rule.parts.length ? rule.parts.map((one) => [one.path, `${one.path} (${one.kind})`]) : [["", "none"]]);
  const part = rule && rule.parts.find((one) => one.path === control.part.value);
  setOptions(control.branch, [[ALL, "all branches"], ...(part ? part.branches.map((text, position) => [String(position), nameOf(part, position)]) : [])]);
  control.group.disabled = control.each.checked;
}

// A branch by its text, or in words where the text is long and the task has words for it.
function nameOf(part, position) {
  const text = part.branches[position];
  return text.length > 24 && part.meanings[position] ? part.meanings[position] : text;
}

function readSummary(step, where, rule, group) {
  return (((step[where] || {})[rule] || {})[group]) || null;
}

// The curve of one number of a run: pick takes it from a summary.
function curveOf(run, where, rule, group, pick) {
  return run.steps.filter((step) => readSummary(step, where, rule, group)).map((step) => {
    const value = pick(readSummary(step, where, rule, group));
    return [step.epoch, value === undefined ? null : value];
  });
}

function chartSize(host, small) {
  const room = host.clientWidth || 320;
  const columns = Math.max(1, Math.floor((room + 24) / (small ? 264 : 408)));
  const width = Math.round((room - 24 * (columns - 1)) / columns);
  return { width, height: small ? 150 : 210 };
}

function drawCurves(host, state, title, where, pick) {
  const small = state.groups.length > 1;
  const charts = state.groups.map((group) => {
    const series = state.runs.map((run) => ({ run: run.number, name: run.name, points: curveOf(run, where, state.rule.name, group.key, pick) }));
    return { series: series.filter((one) => one.points.some((point) => point[1] !== null)), title: small ? group.name : `${title}, ${group.name}` };
  }).filter((chart) => !small || chart.series.length);
  const size = chartSize(host, small);
  return charts.map((chart) => lineChart({ ...chart, shares: true, ...size }));
}

function drawTraining(host, state) {
  if (!state.rule) return [make("p", { class: "note" }, "No run recorded how its rule is satisfied.")];
  const legend = makeLegend(state.runs.map((run) => [runSwatch(run.number), run.name]));
  const found = [legend];
  const small = state.groups.length > 1;
  const place = state.where === "pool" ? "training samples" : "validation samples";
  const add = (heading, figures) => {
    found.push(make("h3", { class: "branch" }, ...heading), make("div", { class: small ? "charts small" : "charts" }, ...figures));
  };
  const met = drawCurves(host, state, `Rule satisfied (${place})`, state.where, (one) => one.satisfied);
  if (control.branch.value === ALL && state.rule.text && met.some((figure) => figure.querySelector("svg"))) {
    add(["The whole rule ", make("code", null, state.rule.text), small ? `: satisfied, ${place}` : ""], met);
  }
  const branches = state.part ? state.part.branches.map((text, position) => [text, position]) : [];
  for (const [text, position] of branches.filter((one) => control.branch.value === ALL || control.branch.value === String(one[1]))) {
    const at = (key) => (one) => { const part = one.parts[state.part.path]; return part && part[key] ? part[key][position] : null; };
    const holds = drawCurves(host, state, `Holds (${place})`, state.where, at("holds"));
    // Without labels of the training samples there are weights of all of them together.
    const divided = state.groups.some((group) => state.runs.some((run) => curveOf(run, "pool", state.rule.name, group.key, at("weights")).length));
    const whole = { ...state, groups: data.groups.filter((group) => group.key === ALL) };
    const weights = drawCurves(host, divided ? state : whole, "Dual weight (training samples)", "pool", at("weights"));
    const meaning = state.part.meanings[position] ? ` (${state.part.meanings[position]})` : "";
    const name = (more) => ["Branch ", make("code", null, text), meaning + more];
    if (!small) add(name(""), [...holds, ...weights]);
    else {
      add(name(`: holds, ${place}`), holds);
      if (weights.length) add(name(": dual weight, training samples"), weights);
    }
  }
  return found;
}

function drawFinal(host, state) {
  if (!state.rule || !state.part) return [make("p", { class: "note" }, "This rule has no branches to choose between.")];
  const both = state.part.kind === "and";
  const name = (position) => `only ${nameOf(state.part, position)}${both ? " fails" : ""}`;
  const segments = [...state.part.branches.map((text, position) => ({ name: name(position), style: `share-${position % 4}` })),
    { name: both ? "several fail" : "several branches", style: "share-both" },
    { name: both ? "none fails" : "none: broken or undecided", style: "share-none" }];
  const figures = state.groups.map((group) => {
    const rows = state.runs.flatMap((run) => {
      const summary = readSummary(run.final, state.where, state.rule.name, group.key);
      const part = summary && summary.parts[state.part.path];
      return part && part.none !== null ? [{ name: run.name, shares: [...part.alone, part.together, part.none] }] : [];
    });
    return { group, rows };
  });
  const shown = figures.filter((one) => one.rows.length || state.groups.length === 1);
  const small = shown.length > 1;
  const width = small ? chartSize(host, true).width : host.clientWidth || 320;
  const place = state.where === "pool" ? "training samples" : "validation samples";
  const units = state.units === "samples" ? "" : ` Shares are of the ${state.units} of the quantifiers around this connective.`;
  return [make("p", { class: "note" }, `On the ${place}.${units}`),
    makeLegend(segments.map((one) => [shareSwatch(one.style), one.name])),
    make("div", { class: small ? "charts small" : "" }, ...shown.map((one) => shareChart({ title: one.group.name, rows: one.rows, segments, width, open: !small })))];
}

function drawLosses(host, state) {
  const names = { task_loss: "Loss of the task", rule_loss: "Loss of the rule", total_loss: "Loss in all" };
  const keys = [...new Set(state.runs.flatMap((run) => Object.keys(run.curves)))];
  if (!keys.length) return [make("p", { class: "note" }, "No losses were recorded.")];
  const size = chartSize(host, false);
  const charts = keys.map((key) => lineChart({
    title: names[key] || key.replace("delta/", "Delta of ").replace("measure/", "").replaceAll("_", " "), shares: false, ...size,
    series: state.runs.filter((run) => run.curves[key]).map((run) => ({ run: run.number, name: run.name, points: run.curves[key] })),
  }));
  return [makeLegend(state.runs.map((run) => [runSwatch(run.number), run.name])), make("div", { class: "charts" }, ...charts)];
}

function drawFailures(host, state) {
  const groups = new Map(data.groups.map((group) => [group.key, group.name]));
  const wanted = control.each.checked || control.group.value === ALL ? null : control.group.value;
  return state.runs.map((run) => {
    const all = (state.rule && run.failures[state.rule.name]) || null;
    const samples = all && all.filter((sample) => wanted === null || sample.label === wanted);
    const box = make("section", { "aria-label": `Samples that break the rule: ${run.name}` }, make("h3", null, run.name));
    if (!samples) box.append(make("p", { class: "note" }, "This run kept no samples."));
    else if (!samples.length) box.append(make("p", { class: "note" }, `None${wanted === null ? "" : ` of ${groups.get(wanted)}`} among the samples of the largest cost.`));
    else box.append(make("div", { class: "samples" }, ...samples.map((sample) => drawSample(sample, groups))));
    return box;
  });
}

function drawSample(sample, groups) {
  const label = sample.label === null ? "" : `${groups.get(sample.label) || sample.label}; `;
  const cost = typeof sample.cost === "number" ? asNumber(sample.cost) : sample.cost;
  const text = `${label}${sample.caption ? `${sample.caption}; ` : ""}cost ${cost}`;
  const safe = /^[A-Za-z0-9+/=]+$/.test(sample.picture || "");
  const image = safe ? make("img", { src: `data:image/png;base64,${sample.picture}`, alt: `Sample ${sample.sample}: ${text}` }) : null;
  return make("figure", null, image, make("figcaption", null, `Sample ${sample.sample}: ${text}`));
}

// One row for each rule; the name chooses the rule that the charts below show.
function drawGlance(host, state) {
  const runs = state.runs.filter((run) => Object.keys(run.overview).length);
  const rules = data.rules.filter((rule) => runs.some((run) => run.overview[rule.name]));
  const cells = (run, name) => {
    const row = run.overview[name];
    return row ? [asPercent(row.holds), asPercent(row.vacuous), make("span", { class: `tone-${row.tone.replace(" ", "-")}` }, make("span", { class: "tone" }, row.kind))] : ["-", "-", "-"];
  };
  const choose = (rule) => {
    const button = make("button", { type: "button", title: rule.text, "aria-pressed": String(rule.name === control.rule.value) }, rule.name);
    button.addEventListener("click", () => {
      control.rule.value = rule.name;
      control.rule.dispatchEvent(new Event("change", { bubbles: true }));
      [...document.querySelectorAll("#glance button")].find((one) => one.textContent === rule.name).focus();
    });
    return button;
  };
  const several = runs.length > 1;
  const head = runs.flatMap((run) => ["holds", "vacuous", "verdict"].map((key) => (several ? `${run.name}: ${key}` : key)));
  const rows = rules.map((rule) => [choose(rule), ...runs.flatMap((run) => cells(run, rule.name))]);
  return [makeTable("Choose a rule to see its branches and samples below", ["rule", ...head], rows)];
}

function drawFindings(host, state) {
  const runs = state.runs.filter((run) => run.findings.length);
  const span = ([first, last]) => (first === last ? asNumber(first) : `${asNumber(first)} to ${asNumber(last)}`);
  const spans = (all) => all.slice(0, 6).map(span).join(", ") + (all.length > 6 ? `, ... to ${asNumber(all[all.length - 1][1])}` : "");
  return runs.map((run) => makeTable(run.name, ["rule", "what was found", "epochs"], run.findings.map((one) => [one.rule, one.kind, spans(one.epochs)])));
}

function drawFacts(host, state) {
  const labels = [...new Set(state.runs.flatMap((run) => run.facts.map(([label]) => label)))];
  const facts = state.runs.map((run) => new Map(run.facts));
  const rows = labels.map((label) => [label, ...facts.map((fact) => fact.get(label) || "-")]);
  return [makeTable("Settings and measures of the runs", ["", ...state.runs.map((run) => run.name)], rows)];
}

function render() {
  const state = chosen();
  const parts = { glance: drawGlance, final: drawFinal, training: drawTraining, findings: drawFindings, losses: drawLosses, failures: drawFailures, facts: drawFacts };
  const empty = { glance: data.rules.length < 2 || !data.runs.some((run) => Object.keys(run.overview).length), findings: !data.runs.some((run) => run.findings.length) };
  for (const [name, show] of Object.entries(parts)) {
    const section = document.getElementById(name);
    section.hidden = Boolean(empty[name]);
    if (section.hidden) continue;
    const body = section.querySelector(".body");
    const none = [make("p", { class: "note" }, "No run is chosen.")];
    body.replaceChildren(...(state.runs.length ? show(body, state) : none));
  }
  const branch = control.branch.value === ALL ? "all branches" : `the branch ${nameOf(state.part, Number(control.branch.value))}`;
  const group = control.each.checked ? "every class apart" : (state.groups[0] || { name: "" }).name;
  const rule = state.rule ? `${state.rule.name} (${state.rule.text})` : "no rule";
  document.getElementById("status").textContent = `Shown: ${state.runs.length} of ${data.runs.length} runs, ${rule}, ${branch}, ${group}, `
    + `${control.where.value === "pool" ? "training samples" : "validation samples"}.`;
}

function start() {
  const box = document.getElementById("runs");
  data.runs.forEach((run, number) => {
    const input = make("input", { type: "checkbox", id: `run-${number}`, checked: "" });
    box.append(make("label", null, input, runSwatch(number), run.name));
  });
  setOptions(control.group, data.groups.map((group) => [group.key, group.name]));
  control.each.parentElement.hidden = data.groups.length < 2;
  const measured = data.runs.some((run) => run.steps.some((step) => step.validation));
  if (!measured && data.runs.some((run) => run.steps.some((step) => step.pool))) control.where.value = "pool";
  // The class that the verdict is about, if there is something to show of it.
  const known = (one) => Object.values(one[control.where.value] || {}).some((rule) => rule[data.group]);
  if (data.runs.some((run) => known(run.final) || run.steps.some(known))) control.group.value = data.group;
  fillChoices();
  const form = document.getElementById("controls");
  form.hidden = false;
  form.addEventListener("change", () => { fillChoices(); render(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  let width = document.body.clientWidth;
  window.addEventListener("resize", () => {
    if (document.body.clientWidth !== width) { width = document.body.clientWidth; render(); }
  });
  render();
}

start();
