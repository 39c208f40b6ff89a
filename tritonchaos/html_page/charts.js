"use strict";
// Drawing: post-unload curves, samples over time, small curves, and the lanes of the time line.

const tcDraw = (() => {
  const WARM_UP = 1, EXCLUDED = 2, UNSETTLED = 4;
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  /** Print a number in the unit of its metric; `size` is how much of the stored unit one is. */
  const amount = (value, of) => {
    if (value === null || value === undefined) return "not read";
    if (of.unit === "count" || value === 0) return String(value);
    return `${(value / of.size).toFixed(of.unit === "MiB" ? 3 : 1)} ${of.unit}`;
  };

  /** Keep a scale from showing noise as growth, and from running away with an estimate. */
  const yRange = (of, least, most) => (plot, low, high) => {
    const reach = Math.max(most - least, of.span / of.size);
    let [from, to] = [Math.max(low ?? least, least - reach), Math.min(high ?? most, most + reach)];
    const wanted = Math.max(to - from, of.span / of.size) * 1.12;
    const middle = (from + to) / 2;
    [from, to] = [middle - wanted / 2, middle + wanted / 2];
    return [least >= 0 && from < 0 ? 0 : from, least >= 0 && from < 0 ? wanted : to];
  };

  const axis = (label) => ({
    label, labelSize: 24, labelFont: "12px system-ui, sans-serif", font: "12px system-ui, sans-serif",
    stroke: () => color("soft"), grid: { stroke: () => color("grid"), width: 1 }, ticks: { stroke: () => color("grid"), width: 1 },
  });

  const decimals = (unit) => (plot, splits, axisIndex, space, step) => {
    const places = unit === "count" ? 0 : Math.max(0, Math.min(4, -Math.floor(Math.log10(step || 1))));
    return splits.map((value) => (unit === "count" && !Number.isInteger(value) ? "" : value.toFixed(places)));
  };

  const yAxis = (of) => ({ ...axis(of.unit), size: 66, values: decimals(of.unit) });

  /** Paint fault bands, phases, restarts and the chosen cycle. */
  const backdrop = (curve, charts, texts, chosen) => ({
    drawClear: [(plot) => {
      const { ctx, bbox } = plot;
      const ratio = devicePixelRatio || 1;
      const at = (place) => Math.min(Math.max(plot.valToPos(place, "x", true), bbox.left), bbox.left + bbox.width);
      ctx.save();
      ctx.fillStyle = color("fault");
      for (const [first, last] of charts.bands) ctx.fillRect(at(first - 0.5), bbox.top, at(last + 0.5) - at(first - 0.5), bbox.height);
      ctx.font = `${12 * ratio}px system-ui, sans-serif`;
      ctx.fillStyle = color("soft");
      ctx.textBaseline = "bottom";
      for (const [first, last, text] of charts.bands) {
        const name = fitted(ctx, texts[text], at(last + 0.5) - at(first - 0.5) - 8 * ratio);
        if (name) ctx.fillText(name, at(first - 0.5) + 4 * ratio, bbox.top + bbox.height - 3 * ratio);
      }
      ctx.textBaseline = "top";
      baseline(plot, curve, ratio);
      charts.stretches.forEach(([first, last, phase], number) => {
        const [left, right] = [at(first - 0.5), at(last + 0.5)];
        if (number) stroke(ctx, left, bbox, color("line"), [], ratio);
        ctx.fillStyle = color("soft");
        const name = fitted(ctx, texts[phase], right - left - 8 * ratio);
        if (name) ctx.fillText(name, left + 4 * ratio, bbox.top + 3 * ratio);
      });
      for (const [place, start] of charts.restarts) {
        stroke(ctx, at(place - 0.5), bbox, color("unmet"), [6 * ratio, 4 * ratio], ratio);
        ctx.fillStyle = color("unmet");
        ctx.fillText(`start ${start}`, at(place - 0.5) + 4 * ratio, bbox.top + 18 * ratio);
      }
      const now = chosen();
      if (now >= 0) stroke(ctx, at(now), bbox, color("chosen"), [3 * ratio, 3 * ratio], ratio);
      ctx.restore();
    }],
  });

  const baseline = (plot, curve, ratio) => {
    if (curve.baseline === null) return;
    const { ctx, bbox } = plot;
    const y = plot.valToPos(curve.baseline / curve.size, "y", true);
    if (y < bbox.top || y > bbox.top + bbox.height) return;
    ctx.beginPath();
    ctx.strokeStyle = color("soft");
    ctx.lineWidth = ratio;
    ctx.setLineDash([2 * ratio, 3 * ratio]);
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.setLineDash([]);
  };

  const stroke = (ctx, x, bbox, style, dash, ratio) => {
    ctx.beginPath();
    ctx.strokeStyle = style;
    ctx.lineWidth = ratio;
    ctx.setLineDash(dash);
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
  };

  const fitted = (ctx, text, width) => {
    if (ctx.measureText(text).width <= width) return text;
    for (let length = text.length - 1; length > 3; length--) {
      if (ctx.measureText(`${text.slice(0, length)}…`).width <= width) return `${text.slice(0, length)}…`;
    }
    return "";
  };

  /** Columns of uPlot: places, low, high, estimate, control, treatment, not judged. */
  const columns = (curve) => {
    const points = curve.line ? curve.line.points : [];
    const places = [...new Set([...curve.places, ...points.map((point) => point[0])])].sort((a, b) => a - b);
    const row = new Map(places.map((place, number) => [place, number]));
    const blank = () => new Array(places.length).fill(null);
    const data = [places, blank(), blank(), blank(), blank(), blank(), blank()];
    for (const [place, estimate, low, high] of points) {
      [low, high, estimate].forEach((value, number) => { data[1 + number][row.get(place)] = value / curve.size; });
    }
    curve.places.forEach((place, number) => {
      const judged = !(curve.flags[number] & (WARM_UP | EXCLUDED));
      data[judged ? 4 + curve.arms[number] : 6][row.get(place)] = curve.values[number] / curve.size;
    });
    return data;
  };

  const seriesOf = (curve, charts) => {
    const few = curve.places.length <= 240;
    const arm = (name) => ({
      stroke: () => color(name), width: 1.75, spanGaps: charts.interleaved,
      points: { show: few, size: 6, fill: () => color("card"), stroke: () => color(name) },
    });
    const line = (width, dash) => ({ stroke: () => color("estimate"), width, dash, spanGaps: true, points: { show: false } });
    const growth = curve.line && curve.line.growth;
    return [
      {}, line(0, []), line(0, []), line(2, growth ? [] : [7, 5]), arm("control"), arm("treatment"),
      { stroke: () => color("soft"), width: 0, points: { show: true, size: 6, fill: () => color("card"), stroke: () => color("soft") } },
    ];
  };

  const drawCurve = (host, curve, charts, texts, size, chosen, hooks) => {
    const [least, most] = [Math.min(...curve.values) / curve.size, Math.max(...curve.values) / curve.size];
    const all = [-0.5, charts.cycles - 0.5];
    const few = (plot, splits) => splits.map((value) => (Number.isInteger(value) ? value : null));
    return new uPlot({
      ...size, legend: { show: false }, hooks: { ...backdrop(curve, charts, texts, chosen), ...hooks },
      series: seriesOf(curve, charts), padding: [6, 10, 0, 0],
      bands: curve.line && curve.line.growth ? [{ series: [2, 1], fill: () => color("interval") }] : [],
      scales: { x: { time: false, range: (plot, low, high) => (charts.cycles < 2 ? all : [low - 0.5, high + 0.5]) }, y: { range: yRange(curve, least, most) } },
      axes: [{ ...axis("cycle, in the order in which they ran"), values: few }, yAxis(curve)],
      cursor: { drag: { x: true, y: false }, focus: { prox: 30 } },
    }, columns(curve), host);
  };

  const drawSamples = (host, sampled, size, hooks) => {
    const values = sampled.values.map((value) => value / sampled.size);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const drawn = { stroke: () => color("control"), width: 1.25, points: { show: values.length < 120, size: 4 } };
    return new uPlot({
      ...size, legend: { show: false }, hooks, series: [{}, drawn], padding: [6, 10, 0, 0],
      scales: { x: { time: false }, y: { range: yRange(sampled, least, most) } },
      axes: [axis("seconds since the run began"), yAxis(sampled)], cursor: { drag: { x: true, y: false } },
    }, [sampled.times.map((ms) => ms / 1000), values], host);
  };

  const fit = (canvas) => {
    const ratio = devicePixelRatio || 1;
    const box = canvas.getBoundingClientRect();
    canvas.width = Math.max(1, Math.round(box.width * ratio));
    canvas.height = Math.max(1, Math.round(box.height * ratio));
    const ctx = canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    return [ctx, box.width, box.height];
  };

  const drawSmall = (canvas, curve, cycles) => {
    const [ctx, width, height] = fit(canvas);
    const [least, most] = [Math.min(...curve.values), Math.max(...curve.values)];
    const reach = Math.max(most - least, curve.span);
    const bottom = (least + most) / 2 - reach / 2;
    [0, 1].forEach((arm) => {
      ctx.beginPath();
      ctx.strokeStyle = ctx.fillStyle = color(arm ? "treatment" : "control");
      let before = -2;
      curve.places.forEach((place, number) => {
        if (curve.arms[number] !== arm) return;
        const x = 2 + (place / Math.max(1, cycles - 1)) * (width - 4);
        const y = height - 3 - ((curve.values[number] - bottom) / reach) * (height - 6);
        if (number - before === 1) ctx.lineTo(x, y); else { ctx.moveTo(x, y); ctx.fillRect(x - 1, y - 1, 2, 2); }
        before = number;
      });
      ctx.stroke();
    });
  };

  const OUTCOMES = ["ok", "refused", "unmet"];

  const drawLane = (canvas, lane, view, chosen) => {
    const [ctx, width, height] = fit(canvas);
    const at = (ms) => ((ms - view[0]) / (view[1] - view[0])) * width;
    if (chosen) {
      ctx.fillStyle = color("interval");
      ctx.fillRect(at(chosen[0]) - 1, 0, Math.max(3, at(chosen[1]) - at(chosen[0]) + 2), height);
    }
    for (const outcome of [0, 1, 2]) {
      ctx.fillStyle = color(OUTCOMES[outcome]);
      for (const [start, length, found] of lane.marks) {
        if (found !== outcome) continue;
        const [left, right] = [at(start), at(start + length)];
        if (right < -2 || left > width + 2) continue;
        ctx.fillRect(Math.max(left, -1), outcome === 2 ? 2 : 4, Math.max(2, Math.min(right, width + 1) - Math.max(left, -1)), outcome === 2 ? height - 4 : height - 8);
      }
    }
  };

  const drawAxis = (canvas, view) => {
    const [ctx, width] = fit(canvas);
    const wanted = (view[1] - view[0]) / Math.max(2, width / 90);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= wanted);
    ctx.fillStyle = color("soft");
    ctx.font = "12px system-ui, sans-serif";
    ctx.textBaseline = "top";
    for (let ms = Math.ceil(view[0] / step) * step; ms <= view[1]; ms += step) {
      const x = ((ms - view[0]) / (view[1] - view[0])) * width;
      const text = step >= 1000 ? `${+(ms / 1000).toFixed(1)} s` : view[1] > 3000 ? `${+(ms / 1000).toFixed(3)} s` : `${+ms.toFixed(2)} ms`;
      ctx.fillRect(x, 0, 1, 4);
      ctx.textAlign = x < 20 ? "left" : x > width - 30 ? "right" : "center";
      ctx.fillText(text, x, 6);
    }
  };

  return { amount, color, drawAxis, drawCurve, drawLane, drawSamples, drawSmall, EXCLUDED, OUTCOMES, UNSETTLED, WARM_UP };
})();
