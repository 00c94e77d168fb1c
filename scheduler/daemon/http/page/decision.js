// The decision about a job as a picture: its candidates by time and accuracy, their bounds and the limit; below it each one in words.
import { draw, el, fill, span, percent, number, known } from "/util.js";
import { plot, upright } from "/plot.js";

const nameOf = (c) => `${number(c.batch)}${known(c.epochs) ? ` × ${number(c.epochs)}` : ""}`;
const boundOf = (c) => (known(c.upper_s) ? c.wait_upper_s + c.upper_s : null);

const words = { slo_exceeded: "too slow", no_bound: "too few runs for a bound", extrapolated: "outside the table", lower_accuracy: "less accurate", unstable: "no steady state", memory: "too much memory",
	breaks_promise: "another promise would break", too_wide: "too many cpus", devices: "too many gpus", not_picked: "another rule", price: "costs other jobs more", not_tried: "not tried: as slow as another",
	beyond_model: "too far outside the table" };
const reasonsOf = (c) => c.reasons.map((r) => words[r] ?? r).join(", ");

/* Times beyond are drawn at the edge: a limit far away, or candidates far slower than the others. */
function latest(d, shown) {
	const ends = shown.map((c) => boundOf(c) ?? c.wait_s + c.time_s).filter(known).sort((a, b) => a - b);
	const most = Math.max(ends[ends.length - 1] ?? 0, 1e-9);
	return 1.06 * Math.max(most, known(d.slo_s) ? Math.min(d.slo_s, 2 * most) : 0);
}

function scatter(d, shown, W) {
	const dots = shown.filter((c) => known(c.accuracy) && known(c.time_s));
	if (!dots.length) return null;
	const to = latest(d, dots), all = dots.map((c) => c.accuracy), least = Math.min(...all), most = Math.max(...all), room = Math.max(0.12 * (most - least), 0.01);
	const won = d.chosen === null ? null : d.candidates[d.chosen];
	const sentence = `${dots.length} candidates by time and accuracy. ${won ? `Chosen: batch ${nameOf(won)}, ${span(won.wait_s + won.time_s)}, accuracy ${won.accuracy?.toFixed(3)}` : "None was in time"}.`;
	const p = plot(W, 240, "Candidates by time and accuracy", sentence, { from: 0, to, title: "time until the end", label: (v) => span(v) },
		{ from: Math.max(least - room, 0), to: Math.min(most + room, 1.002), label: (v) => +v.toPrecision(3) });
	if (known(d.slo_s)) upright(p, p.x(Math.min(d.slo_s, to)), d.slo_s > to ? `limit ${span(d.slo_s)}, further on` : `limit ${span(d.slo_s)}`);
	for (const c of dots) {
		const chosen = c === won, a = p.x(Math.min(c.wait_s + c.time_s, to)), b = known(boundOf(c)) ? p.x(Math.min(boundOf(c), to)) : a, y = p.y(c.accuracy);
		const dot = draw("circle", { class: chosen ? "won" : c.feasible ? "dot" : "hollow", cx: a, cy: y, r: chosen ? 7 : 4.5 });
		dot.append(draw("title", {}, `batch ${nameOf(c)}: ${span(c.wait_s + c.time_s)}, at most ${span(boundOf(c))}, accuracy ${c.accuracy.toFixed(3)}`));
		p.svg.append(draw("line", { class: "reach", x1: a, x2: b, y1: y, y2: y }), draw("line", { class: "reach", x1: b, x2: b, y1: y - 4, y2: y + 4 }), dot);
	}
	// The chosen one has its name; of the others those that have room for it.
	const named = [];
	for (const c of [...dots].sort((a, b) => (b === won) - (a === won))) {
		const a = p.x(Math.min(c.wait_s + c.time_s, to)), y = p.y(c.accuracy) - 10, half = 3.6 * nameOf(c).length + 4, at = Math.max(a, p.left + half);
		if (named.some((o) => Math.abs(o.at - at) < o.half + half && Math.abs(o.y - y) < 16)) continue;
		named.push({ at, y, half });
		p.svg.append(draw("text", { class: c === won ? "name" : "", x: at, y, "text-anchor": "middle" }, nameOf(c)));
	}
	return p.svg;
}

function candidate(c, i, d) {
	const chosen = i === d.chosen, say = `${nameOf(c)}: ${span(c.wait_s + c.time_s)}, at most ${span(boundOf(c))}`;
	return el("tr", { class: chosen ? "cand chosen" : "cand", title: say }, el("td", { class: "n" }, nameOf(c)), el("td", { class: "n" }, span(c.wait_s)), el("td", { class: "n" }, span(c.time_s)),
		el("td", { class: "n" }, span(boundOf(c))), el("td", { class: "n" }, known(c.accuracy) ? c.accuracy.toFixed(4) : "–"), el("td", { class: "n" }, known(c.chance) ? percent(c.chance, 0) : "–"),
		el("td", { class: "say" }, chosen ? `chosen${c.reasons.length ? `: ${reasonsOf(c)}` : ""}` : reasonsOf(c)));
}

// What the answer says beside the choice, in the words of `submit`.
const beside = (d) => [["Passed over", d.passed_over], ["More accurate", d.with_more_time], ["Shorter", d.shorter]].filter(([, a]) => a)
	.map(([k, a]) => el("p", { class: "note" }, `${k}: ${a.text}`));

function picture(d, W) {
	const shown = d.candidates.slice(0, 64), heads = [["batch", 1], ["wait", 1], ["time", 1], ["at most", 1], ["accuracy", 1], ["chance", 1], ["why not", 0]];
	return [
		el("p", { class: "note" }, `${known(d.slo_s) ? `Limit ${span(d.slo_s)} at confidence ${percent(d.confidence, 0)}` : "No limit"}; policy ${d.policy}, model ${d.model ?? "none"}` +
			`${d.chosen === null && known(d.smallest_slo_s) ? `; ${span(d.smallest_slo_s)} could have been promised` : ""}.`),
		...beside(d),
		el("figure", {}, scatter(d, shown, W), el("figcaption", { class: "note" }, "A dot: the time that is expected; its line ends at the bound. Hollow: not in time. The large one was chosen.")),
		el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Candidates" },
			el("table", {}, el("thead", {}, el("tr", {}, ...heads.map(([h, n]) => el("th", { scope: "col", class: n ? "n" : "" }, h)))), el("tbody", {}, ...shown.map((c, i) => candidate(c, i, d))))),
		d.candidates.length > 64 ? el("p", { class: "note" }, `and ${d.candidates.length - 64} more candidates`) : null];
}

const nameOfDecision = (d) => (d.when === "arrival" ? "Decision on arrival" : "Decision at the start");

export function showFacts(at, j, mayCancel, cancel) {
	const rows = [["state", j.state], ["type", j.type], ["tenant", j.tenant], ["tag", j.tag], ["parameters", JSON.stringify(j.params)], ["verdict", j.verdict], ["limit", known(j.slo_s) ? span(j.slo_s) : null],
		["batch", known(j.batch) ? number(j.batch) : null], ["predicted", known(j.predicted_s) ? `${span(j.predicted_s)}, at most ${span(j.upper_s)}` : null], ["wait", known(j.wait_s) ? span(j.wait_s) : null],
		["run", known(j.run_s) ? span(j.run_s) : null], ["accuracy", known(j.accuracy) ? j.accuracy.toFixed(4) : null], ["outcome", j.slo_outcome], ["waits", j.waiting ? j.waiting.message : null], ["reason", j.reason]];
	fill(at, el("table", {}, el("tbody", {}, ...rows.filter(([, x]) => x !== null && x !== undefined).map(([k, x]) => el("tr", {}, el("th", { scope: "row" }, k), el("td", { class: "say" }, x))))),
		mayCancel ? el("p", {}, el("button", { type: "button", onclick: cancel }, "Cancel this job")) : "");
}

/* The latest is open; the one on arrival can be opened. */
export function showDecisions(at, decisions, W) {
	const [latest, before] = decisions.slice(-2).reverse();
	fill(at, latest ? el("div", {}, el("h3", {}, nameOfDecision(latest)), ...picture(latest, W)) : null,
		before ? el("details", {}, el("summary", {}, nameOfDecision(before)), ...picture(before, W)) : null);
}
