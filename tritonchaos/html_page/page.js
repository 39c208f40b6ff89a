"use strict";
// What the reader does: choose a metric, a cycle, a theme; find lines of the log. All texts go in as text, never as markup.

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { charts, texts } = data;
  const get = (id) => document.getElementById(id);
  const SAID = ["as expected", "refused, as expected", "not as expected"];
  let cycle = null;
  let plot = null;
  let sampledPlot = null;
  let printing = false;
  let view = [0, 1];

  /** Make an element; children are elements or texts. */
  const make = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children.filter((child) => child !== null));
    return made;
  };

  const say = (id, text) => { const place = get(id); if (place) place.textContent = text; };
  const width = (host) => (printing ? 660 : Math.max(260, host.clientWidth));
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  // --- theme ---

  const THEMES = ["system", "light", "dark"];
  const theme = get("theme");
  const remembered = () => { try { return localStorage.getItem("tritonchaos-theme") || "system"; } catch { return "system"; } };
  const setTheme = (name) => {
    if (name === "system") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", name);
    theme.textContent = `Theme: ${name}`;
    try { localStorage.setItem("tritonchaos-theme", name); } catch { /* files may have no storage */ }
    drawAll();
  };

  // --- post-unload curves ---

  const metric = get("metric");
  const chosenPlace = () => (cycle ? cycle.at : -1);
  const isDrawn = () => metric && charts.curves.length > 0;

  const describe = (curve, number) => {
    const place = curve.places[number];
    const known = data.cycles.find((one) => one.at === place);
    const where = known ? `${known.phase}, cycle ${known.cycle}` : `cycle ${place + 1} of ${charts.cycles}`;
    const remarks = [
      curve.flags[number] & tcDraw.WARM_UP ? "warm-up" : null, curve.flags[number] & tcDraw.EXCLUDED ? "excluded" : null,
      curve.flags[number] & tcDraw.UNSETTLED ? "unsettled" : null,
    ].filter(Boolean);
    const band = charts.bands.find(([first, last]) => first <= place && place <= last);
    return [
      `${where} (${curve.arms[number] ? "treatment" : "control"}): ${tcDraw.amount(curve.values[number], curve)}`,
      curve.baseline === null ? null : `${tcDraw.amount(curve.values[number] - curve.baseline, curve)} above the baseline`,
      ...remarks, band ? `edit in force: ${texts[band[2]]}` : null,
    ].filter(Boolean).join("; ");
  };

  const nearest = (places, wanted) => places.reduce((best, place, number) => (Math.abs(place - wanted) < Math.abs(places[best] - wanted) ? number : best), 0);

  const summary = (curve) => {
    const part = (arm) => {
      const values = curve.values.filter((value, number) => curve.arms[number] === arm);
      return values.length ? `${arm ? "treatment" : "control"} ${tcDraw.amount(values[0], curve)} to ${tcDraw.amount(values[values.length - 1], curve)}` : null;
    };
    const drawn = curve.places.length < curve.readings ? `; ${curve.places.length} of ${curve.readings} readings are drawn, every least and greatest among them` : "";
    return `Post-unload ${curve.metric} over ${curve.readings} cycles: ${[part(0), part(1)].filter(Boolean).join(", ")}${drawn}.`;
  };

  const legend = (curve) => {
    const key = (name, text, dashed) => {
      const line = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      line.setAttribute("width", "22");
      line.setAttribute("height", "10");
      const shape = document.createElementNS("http://www.w3.org/2000/svg", dashed === "box" ? "rect" : "line");
      const where = dashed === "box" ? { width: 22, height: 10, fill: tcDraw.color(name) } : { x1: 0, y1: 5, x2: 22, y2: 5, stroke: tcDraw.color(name), "stroke-width": 2.5, "stroke-dasharray": dashed === "dots" ? "2 3" : dashed ? "6 4" : "none" };
      for (const [attribute, value] of Object.entries(where)) shape.setAttribute(attribute, value);
      line.append(shape);
      return make("span", {}, line, text);
    };
    const arms = new Set(curve.arms);
    const found = [
      arms.has(0) ? key("control", "control arm") : null, arms.has(1) ? key("treatment", "treatment arm") : null,
      curve.flags.some((flag) => flag & (tcDraw.WARM_UP | tcDraw.EXCLUDED)) ? key("soft", "not judged (warm-up or excluded)") : null,
      curve.line && curve.line.growth ? key("estimate", `estimated growth per ${curve.line.per}`) : null,
      curve.line && curve.line.growth ? key("interval", "95 % interval", "box") : null,
      curve.line && !curve.line.growth ? key("estimate", `smallest leak per ${curve.line.per} that this run would have found`, true) : null,
      curve.baseline === null ? null : key("soft", "baseline: server ready, no model", "dots"),
      charts.bands.length ? key("fault", "an edit was in force", "box") : null,
    ];
    get("curve-legend").replaceChildren(...found.filter(Boolean));
  };

  const drawCurve = () => {
    if (!isDrawn()) return;
    const host = get("curve");
    const curve = charts.curves[metric.selectedIndex];
    if (plot) plot.destroy();
    host.hidden = false;
    host.setAttribute("aria-label", `${summary(curve)} Arrow keys go from reading to reading, Enter chooses the cycle.`);
    const size = { width: width(host), height: host.clientWidth < 560 && !printing ? 250 : 330 };
    const hooks = { setCursor: [(at) => {
      if (at.cursor.left < 0 || at.cursor.idx === null || at.cursor.idx === undefined) return;
      say("curve-said", describe(curve, nearest(curve.places, at.data[0][at.cursor.idx])));
    }] };
    plot = tcDraw.drawCurve(host, curve, charts, texts, size, chosenPlace, hooks);
    legend(curve);
    say("curve-said", `${summary(curve)} Drag to look closer, double-click to see all.`);
    for (const button of get("metrics-few").children) button.setAttribute("aria-pressed", String(button.dataset.metric === curve.metric));
  };

  const drawFew = () => {
    const host = get("metrics-few");
    if (!host) return;
    host.replaceChildren(...charts.curves.map((curve, number) => {
      const canvas = make("canvas", { "aria-hidden": "true" });
      const [least, most] = [Math.min(...curve.values), Math.max(...curve.values)];
      const said = least === most ? tcDraw.amount(least, curve) : `${tcDraw.amount(least, curve)} to ${tcDraw.amount(most, curve)}`;
      const button = make("button", { type: "button", "data-metric": curve.metric, "aria-pressed": String(number === metric.selectedIndex), title: curve.metric },
        make("span", { class: "name" }, curve.metric), canvas, make("span", { class: "value" }, said));
      button.addEventListener("click", () => { metric.selectedIndex = number; drawCurve(); });
      return button;
    }));
    [...host.children].forEach((button, number) => tcDraw.drawSmall(button.querySelector("canvas"), charts.curves[number], charts.cycles));
  };

  const setUpCurve = () => {
    if (!isDrawn()) return;
    metric.append(...charts.curves.map((curve) => make("option", {}, curve.metric)));
    metric.parentElement.hidden = charts.curves.length < 2;
    metric.addEventListener("change", drawCurve);
    const host = get("curve");
    let at = -1;
    host.addEventListener("click", () => { if (plot && plot.cursor.idx !== null && plot.select.width === 0) choosePlace(plot.data[0][plot.cursor.idx]); });
    host.addEventListener("keydown", (event) => {
      const curve = charts.curves[metric.selectedIndex];
      const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
      if (event.key in steps) at = clamp((at < 0 ? (steps[event.key] > 0 ? -1 : 0) : at) + steps[event.key], 0, curve.places.length - 1);
      else if (event.key === "Enter" && at >= 0) { choosePlace(curve.places[at]); return; } else return;
      event.preventDefault();
      plot.setCursor({ left: plot.valToPos(curve.places[at], "x"), top: plot.valToPos(curve.values[at] / curve.size, "y") });
      say("curve-said", describe(curve, at));
    });
  };

  const choosePlace = (place) => {
    const finished = data.cycles.filter((one) => one.at >= 0);
    if (finished.length) choose(finished[nearest(finished.map((one) => one.at), place)]);
  };

  // --- samples over time ---

  const sampled = get("sampled");
  const drawSamples = () => {
    const folder = get("over-time");
    if (!folder || !folder.open || !data.samples.length) return;
    const one = data.samples[sampled.selectedIndex];
    const host = get("samples");
    if (sampledPlot) sampledPlot.destroy();
    host.setAttribute("aria-label", `Samples of ${one.metric} over time, ${one.samples} in all.`);
    const hooks = { setCursor: [(at) => {
      const number = at.cursor.idx;
      if (at.cursor.left >= 0 && number !== null && number !== undefined) say("samples-said", `${(one.times[number] / 1000).toFixed(2)} s: ${tcDraw.amount(one.values[number], one)}`);
    }] };
    sampledPlot = tcDraw.drawSamples(host, one, { width: width(host), height: 250 }, hooks);
    say("samples-said", `${one.samples} sample${one.samples === 1 ? "" : "s"} of ${one.metric}${one.values.length < one.samples ? `, ${one.values.length} of them drawn, every least and greatest among them` : ""}.`);
  };
  const setUpSamples = () => {
    const folder = get("over-time");
    if (!folder || !data.samples.length) return;
    folder.hidden = false;
    sampled.append(...data.samples.map((one) => make("option", {}, one.metric)));
    sampled.addEventListener("change", drawSamples);
    folder.addEventListener("toggle", drawSamples);
  };

  // --- time line ---

  const span = () => {
    let [least, most] = [Infinity, 0];
    for (const lane of data.lanes) for (const [start, length] of lane.marks) { least = Math.min(least, start); most = Math.max(most, start + length); }
    return most > least ? [least - (most - least) * 0.01, most + (most - least) * 0.01] : [0, 1];
  };
  const cycleSpan = (one) => (one && one.steps.length ? [one.steps[0][1], Math.max(...one.steps.map((step) => step[1] + step[2]))] : null);
  const saidOf = (lane, mark) => {
    const [start, length, outcome, count, text] = mark;
    const many = count > 1 ? `${count} steps, the worst ` : "";
    return `${lane.label} at ${(start / 1000).toFixed(3)} s, ${length.toFixed(1)} ms: ${many}${SAID[outcome]}; ${texts[text]}`;
  };

  const setUpLanes = () => {
    view = span();
    const rows = data.lanes.map((lane) => {
      const unmet = lane.marks.filter((mark) => mark[2] === 2).length;
      const steps = lane.marks.reduce((sum, mark) => sum + mark[3], 0);
      const said = `${lane.label}: ${steps} steps, ${unmet ? `${unmet} marks not as expected` : "all as expected"}. Arrow keys go from mark to mark.`;
      const canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": said });
      let at = -1;
      const under = (event) => {
        const box = canvas.getBoundingClientRect();
        const ms = view[0] + ((event.clientX - box.left) / box.width) * (view[1] - view[0]);
        const away = (mark) => Math.max(mark[0] - ms, ms - mark[0] - mark[1], 0) - (mark[2] === 2 ? 1e-9 : 0);
        return lane.marks.reduce((best, mark) => (best === null || away(mark) < away(best) ? mark : best), null);
      };
      canvas.addEventListener("mousemove", (event) => { const mark = under(event); if (mark) say("lanes-said", saidOf(lane, mark)); });
      canvas.addEventListener("click", (event) => { const mark = under(event); if (mark) chooseMark(mark); });
      canvas.addEventListener("keydown", (event) => {
        if (event.key === "ArrowRight" || event.key === "ArrowLeft") at = clamp(at + (event.key === "ArrowRight" ? 1 : -1), 0, lane.marks.length - 1);
        else if (event.key === "Enter" && at >= 0) { chooseMark(lane.marks[at]); return; } else return;
        event.preventDefault();
        say("lanes-said", `${at + 1} of ${lane.marks.length}: ${saidOf(lane, lane.marks[at])}`);
      });
      return make("div", { class: "lane" }, make("span", { class: "name", title: lane.label }, lane.label), canvas);
    });
    const zoom = (text, factor) => {
      const button = make("button", { type: "button" }, text);
      button.addEventListener("click", () => {
        const whole = span();
        const inside = cycleSpan(cycle);
        const middle = factor < 1 && inside ? (inside[0] + inside[1]) / 2 : (view[0] + view[1]) / 2;
        const half = ((view[1] - view[0]) * factor) / 2;
        view = factor === 0 ? whole : [Math.max(whole[0], middle - half), Math.min(whole[1], middle + half)];
        drawLanes();
      });
      return button;
    };
    const marks = data.lanes.some((lane) => !lane.exact) ? make("span", { class: "aside" }, "Neighbours in time share a mark, the worst of them gives its colour.") : null;
    const keys = make("span", { class: "aside" }, ...tcDraw.OUTCOMES.map((name, number) => make("span", { class: `outcome-${number}` }, `■ ${SAID[number]} `)));
    get("lanes").replaceChildren(make("div", { class: "controls" }, zoom("Closer", 0.4), zoom("Wider", 2.5), zoom("All", 0), keys, marks), ...rows,
      make("div", { class: "lane" }, make("span", { class: "name" }, ""), make("canvas", { class: "axis", "aria-hidden": "true" })));
    setUpOutside();
  };

  const chooseMark = (mark) => {
    const known = data.cycles.find((one) => one.place === mark[5]);
    if (known) choose(known);
    else say("lanes-said", mark[5] < 0 ? "This step is outside of cycles." : "This cycle is not in the page: tritonchaos show prints any.");
  };

  const drawLanes = () => {
    const canvases = [...document.querySelectorAll("#lanes canvas")];
    canvases.forEach((canvas, number) => {
      if (number < data.lanes.length) tcDraw.drawLane(canvas, data.lanes[number], view, cycleSpan(cycle));
      else tcDraw.drawAxis(canvas, view);
    });
  };

  const stepsTable = (caption, steps, last) => {
    const head = make("thead", {}, make("tr", {}, ...["step", "began", "took", "outcome", "reply", ...(last ? [last] : [])].map((name) => make("th", { scope: "col" }, name))));
    const rows = steps.map(([label, start, length, outcome, reply, where]) => make("tr", {},
      make("th", { scope: "row" }, make("code", {}, texts[label])), make("td", {}, `${(start / 1000).toFixed(3)} s`), make("td", {}, `${length.toFixed(1)} ms`),
      make("td", { class: `outcome-${outcome}` }, SAID[outcome]), make("td", {}, make("code", {}, texts[reply])), ...(last ? [make("td", {}, texts[where])] : [])));
    return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, make("table", {}, make("caption", {}, caption), head, make("tbody", {}, ...rows)));
  };

  const setUpOutside = () => {
    if (!data.outside.length) return;
    const folder = make("details", {}, make("summary", {}, `Steps outside cycles: edits, restores, stops (${data.outside.length})`), stepsTable("Steps outside cycles", data.outside, "where"));
    get("outside").replaceChildren(folder);
  };

  // --- one cycle ---

  const chosen = get("chosen");
  const setUpCycles = () => {
    if (!data.cycles.length) { get("steps").textContent = "The run has no cycle."; return; }
    get("choice").hidden = false;
    chosen.append(...data.cycles.map((one) => make("option", {}, `${one.phase}, cycle ${one.cycle}${one.at < 0 ? " (not finished)" : ""}`)));
    if (data.cycles.length < data.started) get("choice").append(make("span", { class: "aside" }, `${data.cycles.length} of ${data.started} cycles are in this page: the first and last of each phase, those of findings, and odd ones. \`tritonchaos show . --phase PHASE --cycle N\` prints any.`));
    chosen.addEventListener("change", () => choose(data.cycles[chosen.selectedIndex], true));
    get("previous").addEventListener("click", () => choose(data.cycles[Math.max(0, chosen.selectedIndex - 1)], true));
    get("next").addEventListener("click", () => choose(data.cycles[Math.min(data.cycles.length - 1, chosen.selectedIndex + 1)], true));
    for (const link of document.querySelectorAll("a[data-cycle]")) {
      link.addEventListener("click", () => { const one = data.cycles.find((other) => other.phase === link.dataset.phase && String(other.cycle) === link.dataset.cycle); if (one) choose(one); });
    }
    const first = document.querySelector("a[data-cycle]");
    const wanted = first && data.cycles.find((one) => one.phase === first.dataset.phase && String(one.cycle) === first.dataset.cycle);
    choose(wanted || data.cycles[0]);
  };

  const choose = (one) => {
    cycle = one;
    chosen.selectedIndex = data.cycles.indexOf(one);
    const read = charts.curves.flatMap((curve) => { const number = curve.places.indexOf(one.at); return number < 0 ? [] : [[curve.metric, tcDraw.amount(curve.values[number], curve)]]; });
    const readings = make("dl", { class: "key" }, ...read.slice(0, 6).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
    const lines = one.log[1] - one.log[0];
    const notes = [one.at < 0 ? "It did not end regularly: a hang, a crash or an interruption." : null, one.faults === null ? null : `Edit in force: ${texts[one.faults]}.`,
      lines ? `Its ${lines} lines of the server log are marked below, from line ${one.log[0] + 1}.` : "The server logged nothing in it."].filter(Boolean).join(" ");
    get("steps").replaceChildren(make("p", { class: "note" }, notes), readings, stepsTable(`Steps of ${one.phase}, cycle ${one.cycle}`, one.steps));
    if (plot) plot.redraw(false);
    drawLanes();
    markLog();
  };

  // --- log ---

  const lines = get("lines");
  const level = (text) => (/^E\d{4} /.test(text) || /^Signal \(/.test(text) ? " error" : /^W\d{4} /.test(text) ? " warning" : "");
  let rows = [];
  const setUpLog = () => {
    if (!lines || !data.log.pieces.length) return;
    get("log-controls").hidden = false;
    let after = 0;
    for (const [first, texts_] of data.log.pieces) {
      if (first > after) lines.append(make("div", { class: "gap" }, `${first - after} lines are only in server.log`));
      for (let at = 0; at < texts_.length; at += 200) {
        const piece = make("div", { class: "piece" });
        texts_.slice(at, at + 200).forEach((text, number) => {
          const line = make("div", { class: `line${level(text)}` }, make("span", { class: "number" }, String(first + at + number + 1)), make("span", {}, text));
          rows.push([first + at + number, line, text]);
          piece.append(line);
        });
        lines.append(piece);
      }
      after = first + texts_.length;
    }
    if (after < data.log.lines) lines.append(make("div", { class: "gap" }, `${data.log.lines - after} lines are only in server.log`));
    get("only").addEventListener("change", () => { lines.classList.toggle("only", get("only").checked); showFirst(); });
    get("find").addEventListener("input", () => { found = -1; findNext(false); });
    get("find").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); findNext(true); } });
  };
  const markLog = () => {
    if (!cycle) return;
    for (const [number, line] of rows) line.classList.toggle("of-cycle", cycle.log[0] <= number && number < cycle.log[1]);
    showFirst();
  };
  // Pieces out of sight have no height of their own yet, so look twice.
  const scrollTo = (line) => {
    for (let pass = 0; pass < 2; pass++) lines.scrollTop += line.getBoundingClientRect().top - lines.getBoundingClientRect().top - 40;
  };
  const showFirst = () => {
    const first = rows.find(([, line]) => line.classList.contains("of-cycle"));
    if (first) scrollTo(first[1]);
  };
  let found = -1;
  const findNext = (scroll) => {
    const wanted = get("find").value.toLowerCase();
    const matches = wanted ? rows.filter(([, , text]) => text.toLowerCase().includes(wanted)) : [];
    for (const [, line] of rows) line.classList.remove("match");
    for (const [, line] of matches) line.classList.add("match");
    found = matches.length ? (found + 1) % matches.length : -1;
    say("found", wanted ? (matches.length ? `${found + 1} of ${matches.length} lines, Enter for the next` : "no line") : "");
    if (found >= 0) { scrollTo(matches[found][1]); if (scroll) matches[found][1].scrollIntoView({ block: "nearest" }); }
  };

  // --- all together ---

  const drawAll = () => { drawCurve(); drawFew(); drawSamples(); drawLanes(); };
  setUpCurve();
  setUpSamples();
  setUpLanes();
  setUpLog();
  theme.hidden = false;
  theme.addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(remembered()) + 1) % THEMES.length]));
  setTheme(remembered());
  setUpCycles();
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(drawAll, 120); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", () => {
    printing = true;
    for (const folder of document.querySelectorAll("#findings details")) folder.open = true;
    document.documentElement.setAttribute("data-theme", "light");
    drawAll();
  });
  addEventListener("afterprint", () => { printing = false; setTheme(remembered()); });
})();
