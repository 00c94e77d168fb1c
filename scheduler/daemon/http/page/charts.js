// Promises and load over time, and shares as bars.
import { draw, el, fill, percent, number, known, clock } from "/util.js";

const H = 190, LEFT = 44, RIGHT = 8, TOP = 8, BOTTOM = 22;

function frame(W, title, sentence, bins, widthS, top, label) {
	const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
	svg.append(draw("title", {}, title), draw("desc", {}, sentence));
	const from = Date.parse(bins[0].from), to = Math.max(Date.parse(bins[bins.length - 1].from) + widthS * 1000, from + widthS * 5000);
	const x = (ms) => LEFT + (W - LEFT - RIGHT) * (ms - from) / (to - from);
	const y = (v) => TOP + (H - TOP - BOTTOM) * (1 - v / top);
	for (const v of [0, 0.25, 0.5, 0.75, 1].map((f) => f * top)) {
		svg.append(draw("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(v), y2: y(v) }));
		svg.append(draw("text", { x: LEFT - 5, y: y(v) + 4, "text-anchor": "end" }, label(v)));
	}
	for (const f of [0, 0.5, 1])
		svg.append(draw("text", { x: x(from + f * (to - from)), y: H - 5, "text-anchor": f === 0 ? "start" : f === 1 ? "end" : "middle" }, clock(from + f * (to - from))));
	return { svg, x, y };
}
const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");

// Charts are drawn as wide as their place (W), so that letters keep their size. Ask before anything is changed: later the browser would have to
// lay the page out in between.
export const widthOf = (at) => Math.max(Math.round(at.clientWidth) || 560, 240);

export function showKept(at, stats, which, W) {
	const widthS = which === "hour" ? 60 : 900, all = stats.history[which], bins = all.filter((b) => b.met + b.missed > 0);
	if (!bins.length) return fill(at, el("p", { class: "note" }, `No promise ended in the last ${which}.`));
	const met = bins.reduce((n, b) => n + b.met, 0), n = bins.reduce((k, b) => k + b.met + b.missed, 0);
	const sentence = `${met} of ${n} promises that ended in the last ${which} were kept: ${percent(met / n)}. The band is the 95 % interval of each point.`;
	const { svg, x, y } = frame(W, "Promises kept over time", sentence, bins, widthS, 1, (v) => `${Math.round(100 * v)} %`);
	const mid = (b) => x(Date.parse(b.from) + widthS * 500);
	if (bins.length > 1)
		svg.append(draw("path", { class: "area", d: `${path([...bins.map((b) => [mid(b), y(b.high)]), ...bins.slice().reverse().map((b) => [mid(b), y(b.low)])])}Z` }));
	const goal = stats.coverage.length ? stats.coverage[0].confidence : null;
	if (known(goal)) svg.append(draw("line", { class: "goal", x1: LEFT, x2: W - RIGHT, y1: y(goal), y2: y(goal) }));
	svg.append(draw("path", { class: "series", d: path(bins.map((b) => [mid(b), y(b.share)])) }));
	for (const b of bins) {
		if (bins.length === 1) svg.append(draw("line", { class: "series", x1: mid(b), x2: mid(b), y1: y(b.low), y2: y(b.high) }));
		const dot = draw("circle", { class: "dot", cx: mid(b), cy: y(b.share), r: 3.5 });
		dot.append(draw("title", {}, `${clock(Date.parse(b.from))}: ${b.met} of ${b.met + b.missed}, ${percent(b.low)} to ${percent(b.high)}`));
		svg.append(dot);
	}
	fill(at, svg, el("figcaption", { class: "note" }, `${sentence}${known(goal) ? ` Dashed: the confidence of ${percent(goal, 0)} that was stated.` : ""}`));
}

export function showLoad(at, stats, which, W) {
	const widthS = which === "hour" ? 60 : 900, bins = stats.history[which].filter((b) => known(b.slots_used));
	if (!bins.length) return fill(at, el("p", { class: "note" }, "Nothing was measured yet."));
	const top = Math.max(stats.queue.slots, ...bins.map((b) => b.slots_used + b.other_load)) * 1.1;
	const sentence = `Jobs hold ${number(stats.queue.slots_used)} of ${number(stats.queue.slots)} cpus; other programs want ${number(stats.outside.processes, 1)}.`;
	const { svg, x, y } = frame(W, "Load", sentence, bins, widthS, top, (v) => number(v, top < 8 ? 1 : 0));
	const edge = (b, i) => x(Date.parse(b.from) + widthS * 1000 * i);
	for (const b of bins) {
		const w = Math.max(edge(b, 1) - edge(b, 0) - 0.5, 1);
		svg.append(draw("rect", { class: "dot", x: edge(b, 0), width: w, y: y(b.slots_used), height: y(0) - y(b.slots_used) }));
		svg.append(draw("rect", { class: "other", x: edge(b, 0), width: w, y: y(b.slots_used + b.other_load), height: y(b.slots_used) - y(b.slots_used + b.other_load) }));
	}
	svg.append(draw("line", { class: "goal", x1: LEFT, x2: W - RIGHT, y1: y(stats.queue.slots), y2: y(stats.queue.slots) }));
	fill(at, svg, el("figcaption", { class: "note" }, `${sentence} Dark: jobs; light: other work; dashed: cpus for jobs. Means over ${widthS === 60 ? "a minute" : "15 minutes"} of the last ${which}.`));
}

function share(name, value, tick, say) {
	const bar = el("span", { class: "fill" }), mark = el("span", { class: "tick" });
	bar.style.width = `${100 * Math.min(value, 1)}%`;
	mark.style.left = `${100 * Math.min(tick, 1)}%`;
	return el("div", { class: "share" }, el("span", { title: name }, name), el("span", { class: "gauge", role: "img", "aria-label": `${name}: ${say}` }, bar, mark), el("small", {}, say));
}

export function showCoverage(at, stats) {
	if (!stats.coverage.length) return fill(at, el("p", { class: "note" }, "No job with a bound is done yet."));
	fill(at, ...stats.coverage.map((c) => share(`stated ${percent(c.confidence, 0)}`, c.share, c.confidence, `${percent(c.share)} of ${number(c.n)}`)),
		el("p", { class: "note" }, "Bar: share of jobs whose run time was within the bound given at the start. Mark: the confidence that was stated."));
}

export function showTenants(at, tenants) {
	const use = tenants.reduce((s, t) => s + t.usage_cpu_s, 0), weight = tenants.filter((t) => t.usage_cpu_s > 0 || t.queued + t.running > 0).reduce((s, t) => s + t.weight, 0);
	const shown = tenants.filter((t) => t.usage_cpu_s > 0 || t.queued + t.running > 0).sort((a, b) => b.usage_cpu_s - a.usage_cpu_s);
	if (!shown.length) return fill(at, el("p", { class: "note" }, "No tenant has used the machine yet."));
	fill(at, ...shown.slice(0, 12).map((t) => share(t.tenant, use > 0 ? t.usage_cpu_s / use : 0, weight > 0 ? t.weight / weight : 0,
		`${percent(use > 0 ? t.usage_cpu_s / use : null, 0)}, ${number(t.running)} run, ${number(t.queued)} wait`)),
		el("p", { class: "note" }, `Bar: share of the use that counts; mark: share by weight.${shown.length > 12 ? ` ${shown.length - 12} more tenants.` : ""}`));
}
