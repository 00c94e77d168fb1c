// The decision about a job as a picture: each candidate's wait, time and bound against the limit, its accuracy, and why it lost.
import { el, fill, span, percent, number, known } from "/util.js";

function candidate(c, i, d, x) {
	const wait = el("span", { class: "bar wait" }), time = el("span", { class: `bar${i === d.chosen ? " running" : ""}` }), upper = el("span", { class: "bar upper" }), goal = el("span", { class: "mark" });
	const put = (e, from, to) => {
		e.hidden = !known(from) || !known(to) || to <= from;
		e.style.left = `${x(from)}%`;
		e.style.width = `${Math.max(x(to) - x(from), 0)}%`;
	};
	put(wait, 0, c.wait_s);
	put(time, c.wait_s, c.wait_s + c.time_s);
	put(upper, c.wait_s + c.time_s, c.wait_upper_s + c.upper_s);
	goal.hidden = !known(d.slo_s);
	if (known(d.slo_s)) goal.style.left = `${x(d.slo_s)}%`;
	if (!c.feasible) goal.className = "mark late";
	const say = `batch ${number(c.batch)}: ${span(c.time_s)}, bound ${span(c.upper_s)}, wait ${span(c.wait_s)}`;
	return el("div", { class: i === d.chosen ? "cand chosen" : "cand" },
		el("span", {}, `${number(c.batch)}${known(c.epochs) ? ` × ${number(c.epochs)}` : ""}`),
		el("span", { class: "track", role: "img", "aria-label": say, title: say }, wait, time, upper, goal),
		el("span", {}, `accuracy ${known(c.accuracy) ? c.accuracy.toFixed(4) : "–"} `, el("small", {}, known(c.chance) ? `chance ${percent(c.chance, 0)}` : "")),
		el("small", {}, i === d.chosen ? `chosen${c.reasons.length ? `: ${c.reasons.join(", ")}` : ""}` : c.reasons.join(", ")));
}

// What the answer says beside the choice, in the words of `submit`.
const beside = (d) => [["Passed over", d.passed_over], ["More accurate", d.with_more_time], ["Shorter", d.shorter]].filter(([, a]) => a)
	.map(([k, a]) => el("p", { class: "note" }, `${k}: ${a.text}`));

function picture(d) {
	const most = Math.max(...d.candidates.map((c) => (known(c.upper_s) ? c.wait_upper_s + c.upper_s : known(c.time_s) ? c.wait_s + c.time_s : 0)), 1e-9);
	const top = 1.08 * Math.max(most, known(d.slo_s) ? Math.min(d.slo_s, 2.5 * most) : 0); // a limit far away is drawn at the edge
	const x = (s) => Math.min(100 * s / top, 99.3);
	const shown = d.candidates.slice(0, 64);
	return el("div", {}, el("h3", {}, d.when === "arrival" ? "On arrival" : "At the start"),
		el("p", { class: "note" }, `${known(d.slo_s) ? `Limit ${span(d.slo_s)} at confidence ${percent(d.confidence, 0)}` : "No limit"}; policy ${d.policy}, model ${d.model ?? "none"}, ${number(d.took_us, 1)} µs` +
			`${d.chosen === null && known(d.smallest_slo_s) ? `; ${span(d.smallest_slo_s)} could have been promised` : ""}. Grey: wait; bar: time; dashed: up to the bound; line: limit.`),
		...beside(d),
		...shown.map((c, i) => candidate(c, i, d, x)),
		d.candidates.length > 64 ? el("p", { class: "note" }, `and ${d.candidates.length - 64} more candidates`) : null);
}

export function showJob(at, v, mayCancel, cancel) {
	const j = v.job, rows = [["state", j.state], ["type", j.type], ["tenant", j.tenant], ["tag", j.tag], ["parameters", JSON.stringify(j.params)], ["verdict", j.verdict], ["limit", known(j.slo_s) ? span(j.slo_s) : null],
		["batch", known(j.batch) ? number(j.batch) : null], ["predicted", known(j.predicted_s) ? `${span(j.predicted_s)}, at most ${span(j.upper_s)}` : null], ["wait", known(j.wait_s) ? span(j.wait_s) : null],
		["run", known(j.run_s) ? span(j.run_s) : null], ["accuracy", known(j.accuracy) ? j.accuracy.toFixed(4) : null], ["outcome", j.slo_outcome], ["waits", j.waiting ? j.waiting.message : null], ["reason", j.reason]];
	fill(at, el("table", {}, el("tbody", {}, ...rows.filter(([, x]) => x !== null && x !== undefined).map(([k, x]) => el("tr", {}, el("th", { scope: "row" }, k), el("td", { class: "say" }, x))))),
		mayCancel ? el("p", {}, el("button", { type: "button", onclick: cancel }, "Cancel this job")) : "",
		...v.decisions.slice(-2).map(picture));
}
