// The curve of a job: its accuracy and loss by epoch, what was expected of it, and where its limit passes; and its output.
import { draw, el, fill, known, number, span } from "/util.js";
import { plot, path, upright } from "/plot.js";

/* At which epoch the limit passes, by the time that its epochs take; null: that is not known. */
function limitEpoch(j, points, now) {
	const last = points[points.length - 1], began = Date.parse(j.started_at);
	if (!last || !known(j.slo_s) || !known(began)) return null;
	const took = known(last.elapsed_s) ? last.elapsed_s : known(j.run_s) ? j.run_s : (now - began) / 1000;
	return took > 0 ? (last.epoch * (j.slo_s - (began - Date.parse(j.submitted_at)) / 1000)) / took : null;
}

/* Members of a series that has a value; the line is broken where there is none. */
const points = (all, key) => all.filter((p) => known(p[key])).map((p) => [p.epoch, p[key]]);

function chart(W, name, unit, series, xTo, limit, limitS, expected) {
	const band = expected ? expected.flatMap((e) => [e.accuracy - e.error, e.accuracy + e.error]) : [];
	const values = [...series.map((p) => p[1]), ...band], least = Math.min(...values), most = Math.max(...values), room = Math.max(0.08 * (most - least), 0.004 * Math.abs(most), 1e-6);
	const last = series[series.length - 1];
	const sentence = `${name} after ${series.length} epochs${last ? `: ${last[1].toPrecision(3)} after epoch ${number(last[0])}` : ""}.`;
	const p = plot(W, 200, name, sentence, { from: 0, to: xTo, title: "epochs", label: (v) => number(v) },
		{ from: unit ? Math.max(least - room, 0) : least - room, to: unit ? Math.min(most + room, 1.002) : most + room, label: (v) => +v.toPrecision(3) });
	if (expected) {
		const at = (e, v) => [p.x(e.epoch), p.y(Math.min(Math.max(v, 0), 1))];
		if (expected.length > 1)
			p.svg.append(draw("path", { class: "area", d: `${path([...expected.map((e) => at(e, e.accuracy + e.error)), ...expected.slice().reverse().map((e) => at(e, e.accuracy - e.error))])}Z` }),
				draw("path", { class: "expected", d: path(expected.map((e) => at(e, e.accuracy))) }));
		for (const e of expected.length > 1 ? [] : expected)
			p.svg.append(draw("line", { class: "expected", x1: p.x(e.epoch), x2: p.x(e.epoch), y1: at(e, e.accuracy - e.error)[1], y2: at(e, e.accuracy + e.error)[1] }),
				draw("circle", { class: "hollow", cx: p.x(e.epoch), cy: at(e, e.accuracy)[1], r: 4 }));
	}
	if (series.length) p.svg.append(draw("path", { class: "series", d: path(series.map(([a, b]) => [p.x(a), p.y(b)])) }));
	for (const [a, b] of series.length <= 60 ? series : series.slice(-1)) {
		const dot = draw("circle", { class: "dot", cx: p.x(a), cy: p.y(b), r: 3 });
		dot.append(draw("title", {}, `epoch ${number(a)}: ${b.toPrecision(3)}`));
		p.svg.append(dot);
	}
	if (known(limit) && limit > 0 && limit <= xTo) upright(p, p.x(limit), `limit ${span(limitS)}`);
	return el("figure", {}, el("figcaption", { class: "small" }, name), p.svg);
}

/* j: the job; told: the answer of `output`; expected: a list of {epoch, accuracy, error}, or null. */
export function showCurve(at, j, told, expected, W, now) {
	const accuracy = points(told.curve, "accuracy"), loss = points(told.curve, "loss"), last = told.curve[told.curve.length - 1];
	if (!last && !expected) return fill(at, el("p", { class: "note" }, j.state === "running" || j.state === "queued" ? "It has told of no epoch yet." : "It told of no epoch."));
	const limit = limitEpoch(j, told.curve, now), ends = [last ? last.epoch : 0, known(j.epochs) ? j.epochs : 0, known(told.epochs) ? told.epochs : 0, ...(expected ?? []).map((e) => e.epoch)];
	const xTo = Math.max(...ends, 1), two = loss.length > 0 && W > 640, w = two ? Math.floor((W - 16) / 2) : W;
	const passes = !known(limit) ? "" : limit > xTo ? ` It ends before its limit of ${span(j.slo_s)}, at this pace.` : ` The limit of ${span(j.slo_s)} passes at epoch ${number(limit, 1)}, at this pace.`;
	const foreseen = !expected ? "" : expected.length > 1 ? " Dashed: what the model expects; half of its errors are within the band." : " The ring: what the model expects at the end; half of its errors are within its line.";
	fill(at, el("div", { class: two ? "pair" : "" }, accuracy.length || expected ? chart(w, "Accuracy", true, accuracy, xTo, limit, j.slo_s, expected) : null,
		loss.length ? chart(w, "Loss", false, loss, xTo, limit, j.slo_s, null) : null),
	el("p", { class: "note" }, `${last ? `${number(last.epoch)} of ${number(Math.max(...ends.slice(0, 3)))} epochs.` : "It has told of no epoch yet."}${passes}${foreseen}`));
}

/* The last lines; the place stays at the end where the reader is at the end. */
export function showOutput(at, told) {
	const text = [told.stdout, told.stderr].filter((t) => t).join(told.stdout && told.stdout.endsWith("\n") ? "" : "\n");
	if (at.textContent === (text || "It has written nothing.")) return;
	const follows = at.scrollTop + at.clientHeight >= at.scrollHeight - 8;
	at.textContent = text || "It has written nothing.";
	if (follows) at.scrollTop = at.scrollHeight;
}
