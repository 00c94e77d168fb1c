// The queue as a timeline: what runs, what starts when, by when each promise ends, and what has moved since a job ended.
import { el, span, known } from "/util.js";

const rows = new Map(); // by job
let before = new Map(); // planned starts, seconds since 1970, before the last end
let endings = "";
let moved = new Map();

function noteMoves(u, nowS) {
	const latest = u.ended.length ? u.ended[0].job : "";
	const starts = new Map(u.next.filter((j) => j.estimate).map((j) => [j.job, nowS + j.estimate.start_s]));
	if (endings && latest !== endings) {
		moved = new Map();
		for (const [job, at] of starts)
			if (before.has(job) && Math.abs(at - before.get(job)) >= 1) moved.set(job, at - before.get(job));
	}
	endings = latest;
	before = starts;
}

function makeRow(open) {
	const r = { name: el("span", { class: "name" }), track: el("span", { class: "track" }), bar: el("span", { class: "bar" }),
		whisker: el("span", { class: "whisker" }), mark: el("span", { class: "mark" }), moved: el("span", { class: "moved" }) };
	r.track.append(r.bar, r.whisker, r.mark, r.moved);
	r.button = el("button", { class: "row", type: "button", "aria-expanded": "false", onclick: () => open(r.job) }, r.name, r.track);
	return r;
}

const place = (e, from, to, x) => {
	e.style.left = `${x(from)}%`;
	if (to !== null) e.style.width = `${Math.max(x(to) - x(from), 0)}%`;
};

function fillRow(r, j, nowS, x, open) {
	const running = j.state === "running", e = j.estimate;
	const start = running ? (Date.parse(j.started_at) / 1000 || nowS) - nowS : e ? e.start_s : null;
	const p = running ? j.progress : null;
	const epoch = p && known(p.epoch) ? `, epoch ${+p.epoch}${known(p.epochs) ? ` of ${+p.epochs}` : ""}` : "";
	const what = `${j.type}${j.tag ? ` ${j.tag}` : ""}${epoch}`;
	r.job = r.button.dataset.job = j.job;
	r.name.replaceChildren(`${j.job} `, el("i", {}, what));
	r.button.setAttribute("aria-expanded", open === j.job ? "true" : "false");
	const ends = e ? e.end_s : null;
	r.button.title = `job ${j.job}, ${what}, ${j.tenant}: ${running ? "running" : "planned to start"} ${running ? `for ${span(-start)}` : `in ${span(start)}`}` +
		`, expected to end in ${span(ends)}${e && known(e.end_high_s) ? `, by ${span(e.end_high_s)} at the latest` : ""}${j.waiting ? `; waits: ${j.waiting.message}` : ""}`;
	r.bar.hidden = start === null;
	r.bar.className = running ? "bar running" : "bar";
	if (start !== null) place(r.bar, start, known(ends) ? ends : start + 1, x);
	r.whisker.hidden = !e || !known(e.end_high_s);
	if (!r.whisker.hidden) place(r.whisker, known(e.end_low_s) ? e.end_low_s : ends, e.end_high_s, x);
	const promised = j.verdict === "promised" && j.deadline_at;
	r.mark.hidden = !promised;
	if (promised) {
		place(r.mark, Date.parse(j.deadline_at) / 1000 - nowS, null, (s) => Math.min(x(s), 99.3)); // at the edge: later than is shown
		r.mark.className = e && e.late ? "mark late" : "mark";
	}
	const by = running ? undefined : moved.get(j.job);
	r.moved.hidden = by === undefined;
	if (by !== undefined) {
		r.moved.textContent = `${by < 0 ? "earlier by" : "later by"} ${span(Math.abs(by))}`;
		place(r.moved, known(ends) ? ends : start, null, (s) => Math.min(x(s) + 1, 80));
	}
}

export function showQueue(u, at, open, opened) {
	const nowS = Date.parse(u.now) / 1000, jobs = [...u.running, ...u.next];
	const ends = jobs.map((j) => (j.estimate ? j.estimate.end_high_s ?? j.estimate.end_s : null)).filter(known).sort((a, b) => a - b);
	const most = Math.max(ends.length ? ends[Math.floor(0.9 * (ends.length - 1))] * 1.15 : 60, 10);
	const least = -0.08 * most, x = (s) => Math.max(Math.min(100 * (s - least) / (most - least), 101), -1);
	noteMoves(u, nowS);
	const order = jobs.map((j) => {
		let r = rows.get(j.job);
		if (!r) rows.set(j.job, (r = makeRow(opened)));
		fillRow(r, j, nowS, x, open);
		return r.button;
	});
	const there = new Set(jobs.map((j) => j.job));
	for (const job of [...rows.keys()]) if (!there.has(job)) rows.delete(job);
	if (order.length !== at.rows.children.length || order.some((b, i) => at.rows.children[i] !== b)) {
		const focused = document.activeElement;
		at.rows.replaceChildren(...order);
		if (focused && focused.isConnected && at.rows.contains(focused)) focused.focus();
	}
	if (!order.length) at.rows.replaceChildren(el("p", { class: "note" }, "No job runs or waits."));
	at.axis.replaceChildren(...[0, 0.25, 0.5, 0.75].map((f) => {
		const mark = el("span", {}, f === 0 ? "now" : `in ${span(f * most)}`);
		mark.style.left = `${x(f * most)}%`;
		return mark;
	}));
	const hidden = u.stats.queue.length - u.next.length;
	at.behind.textContent = hidden > 0 ? `and ${hidden.toLocaleString("en")} more jobs wait behind these` : "";
}
