// The page: takes updates and hands each part to the module that draws it.
import { el, fill, percent, number, span, known } from "/util.js";
import { Stream, ask } from "/stream.js";
import { showQueue } from "/timeline.js";
import { showKept, showLoad, showCoverage, showTenants, widthOf } from "/charts.js";
import { closeJob, followJob, openJob, openedJob } from "/job.js";

const $ = (id) => document.getElementById(id);
let token = sessionStorage.getItem("token") || "";
let stream = null, last = null, which = "hour", me = null, older = [], drawing = false;

// "#token=..." is not sent to the daemon; it leaves the address bar at once.
const given = /^#token=([\w]+)$/.exec(location.hash);
if (given) {
	token = given[1];
	sessionStorage.setItem("token", token);
	history.replaceState(null, "", location.pathname);
}

const tile = (name, value, bad = false) => el("div", { class: bad ? "tile bad" : "tile" }, el("b", {}, value), el("span", {}, name));

function showTiles(s) {
	fill($("tiles"), tile("promises kept", percent(s.slo.attainment), known(s.slo.attainment) && s.slo.attainment < 0.9),
		tile("running", number(s.queue.running)), tile("waiting", number(s.queue.length)), tile("cpus in use", `${number(s.queue.slots_used)} / ${number(s.queue.slots)}`),
		tile("other work, processes", number(s.outside.processes, 1)), tile("refused since start", number(s.submissions.rejected)),
		s.store.failed ? tile("database FAILED", "no writes", true) : null);
}

function driftOf(d, alarms) {
	const shift = d && known(d.shift_percent) ? `${Math.abs(d.shift_percent).toFixed(0)} % ${d.slower ? "longer" : "shorter"} than predicted` : "as predicted";
	return el("p", { class: d && d.alarm ? "missed" : "note" }, !d ? "Drift: too few jobs to tell." : `${d.alarm ? "Drift: " : "No drift: "}times are ${shift}; ` +
		`evidence ${number(d.statistic, 1)}, alarm above ${number(d.threshold, 1)}; ${number(alarms)} alarms since the start.`);
}

/* The configuration's model, then those that job types have of their own. */
function showDrift(s) {
	const trained = (m) => m.training ? "; a new one is being trained" : "";
	fill($("drift"), el("p", {}, `Policy ${s.policy}; model ${s.model ?? "none"}, version ${s.learning.current}${trained(s.learning)}.`), driftOf(s.learning.drift, s.learning.alarms),
		...(s.learning.models ?? []).flatMap((m) => [el("p", {}, `Type ${m.type}: model ${m.model ?? "none yet"}, version ${m.current}${trained(m)}.`), driftOf(m.drift, m.alarms)]));
}

async function showModels() {
	if (!token) return fill($("models"));
	try {
		const v = await ask(token, { op: "models" });
		fill($("models"), v.models.length ? el("table", {}, el("thead", {}, el("tr", {}, ...["version", "why", "rows", "error old → new", "outcome"].map((h) => el("th", { scope: "col", class: ["rows", "error old → new"].includes(h) ? "n" : "" }, h)))),
			el("tbody", {}, ...v.models.slice(-8).reverse().map((m) => el("tr", {}, el("td", {}, `${m.version}${m.version === v.current ? " (in use)" : ""}`), el("td", {}, m.reason), el("td", { class: "n" }, number(m.rows)),
				el("td", { class: "n" }, `${number(m.old_error, 3)} → ${number(m.new_error, 3)}`), el("td", { class: "say" }, m.message))))) : el("p", { class: "note" }, "No model was trained here yet."));
	} catch (e) {
		fill($("models"), el("p", { class: "note" }, e.message));
	}
}

function endedRow(j) {
	return el("tr", {}, el("td", {}, el("button", { type: "button", onclick: () => open(j.job), "aria-label": `job ${j.job}: its decision` }, j.job)), el("td", {}, `${j.type}${j.tag ? ` ${j.tag}` : ""}`), el("td", {}, j.tenant ?? "–"), el("td", {}, j.state),
		el("td", { class: "n" }, number(j.batch)), el("td", { class: "n" }, span(j.response_s)), el("td", { class: "n" }, known(j.slo_s) ? span(j.slo_s) : "–"), el("td", { class: j.slo_outcome ?? "" }, j.slo_outcome ?? "–"),
		el("td", { class: "n" }, known(j.accuracy) ? j.accuracy.toFixed(3) : "–"));
}
let endedShown = "";
function showEnded(u) {
	const key = u.ended.map((j) => j.job).join() + older.length;
	if (key === endedShown) return;
	endedShown = key;
	fill($("ended"), u.ended.length ? el("table", {}, el("thead", {}, el("tr", {}, ...["job", "type", "tenant", "state", "batch", "response", "limit", "outcome", "accuracy"].map((h) => el("th", { scope: "col", class: ["batch", "response", "limit", "accuracy"].includes(h) ? "n" : "" }, h)))),
		el("tbody", {}, ...u.ended.map(endedRow), ...older.filter((j) => !u.ended.some((e) => e.job === j.job)).map(endedRow))) : el("p", { class: "note" }, "No job has ended yet."));
}

const open = (job) => openJob(token, me, job);

function show(u) {
	const s = u.stats, keptW = widthOf($("kept")), loadW = widthOf($("load"));
	showTiles(s);
	$("what").textContent = `${s.policy}${s.model ? `, ${s.model}` : ""}${s.draining ? ", draining" : ""}, up ${span(s.uptime_s)}`;
	$("sums").hidden = u.known;
	for (const id of ["queue", "s-tenants", "s-ended"]) $(id).hidden = !u.known;
	showKept($("kept"), s, which, keptW);
	showLoad($("load"), s, which, loadW);
	showCoverage($("cover"), s);
	showDrift(s);
	if (!u.known) return;
	showQueue(u, { rows: $("rows"), axis: $("axis"), behind: $("behind") }, openedJob(), open);
	showTenants($("tenants"), s.tenants);
	showEnded(u);
	followJob(u, token, me);
}

function update(u, came) {
	last = u;
	$("link").textContent = "live";
	$("link").className = "live";
	if (drawing) return; // updates that come faster than the screen are drawn once
	drawing = true;
	requestAnimationFrame(() => {
		drawing = false;
		const began = performance.now();
		show(last);
		// For the tests: what was shown, and how long it took from its arrival and to draw.
		window.postrider = { update: last, tookMs: performance.now() - began, shownMs: performance.now() - came, updates: (window.postrider ? window.postrider.updates : 0) + 1, at: performance.now() };
	});
}

function connect() {
	if (stream) stream.stop();
	$("forget").hidden = !token;
	$("token").value = "";
	me = null;
	if (token) ask(token, { op: "hello" }).then((v) => { me = v; }, () => {});
	showModels();
	stream = new Stream("/api/events", token, {
		update,
		lost() {
			$("link").textContent = "lost; trying again …";
			$("link").className = "lost";
		},
		refused() {
			$("link").textContent = token ? "this token is not known, or has expired" : "a token is needed here";
			$("link").className = "lost";
			if (token) forget();
		},
	});
}

function forget() {
	token = "";
	sessionStorage.removeItem("token");
	older = [];
	endedShown = "";
	closeJob();
	connect();
}

$("who").addEventListener("submit", (e) => {
	e.preventDefault();
	token = $("token").value.trim();
	if (token) sessionStorage.setItem("token", token);
	connect();
});
$("forget").addEventListener("click", forget);
for (const name of ["hour", "day"])
	$(`span-${name}`).addEventListener("click", () => {
		which = name;
		for (const other of ["hour", "day"]) $(`span-${other}`).setAttribute("aria-pressed", other === name);
		if (last) show(last);
	});
$("more").addEventListener("click", async () => {
	const all = [...(last ? last.ended : []), ...older], before = Math.min(...all.map((j) => Number(j.job)));
	const v = await ask(token, { op: "list", state: ["done", "failed", "cancelled", "rejected", "lost"], limit: 100, ...(Number.isFinite(before) ? { before: String(before) } : {}) });
	older.push(...v.jobs);
	$("more").disabled = !v.more;
	if (last) showEnded(last);
});
setInterval(showModels, 30000);
connect();
