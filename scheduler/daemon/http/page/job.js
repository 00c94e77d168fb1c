// The panel of one job: what it is, its curve and output as they come, and the decisions about it.
import { el, fill, known } from "/util.js";
import { ask } from "/stream.js";
import { widthOf } from "/charts.js";
import { showCurve, showOutput } from "/curve.js";
import { showDecisions, showFacts } from "/decision.js";

const $ = (id) => document.getElementById(id);
const isLive = (j) => j.state === "queued" || j.state === "running" || j.state === "stopping";
let opened = null, job = null, expected = null, told = null, asking = false, cancelling = null;

export const openedJob = () => opened;

/* What the model says of this batch after each number of epochs; null: it cannot say. */
async function askExpected(token, j) {
	const { epochs: open, ...params } = j.params ?? {};
	if (!known(j.epochs) || !known(j.batch)) return null;
	const request = { op: "predict", type: j.type, params, batches: [j.batch], cpus: j.cpus, ...(j.gpus ? { gpus: j.gpus } : {}) };
	for (const epochs of j.epochs > 1 ? [`1..${j.epochs}`, j.epochs] : [j.epochs]) {
		try {
			const { decision: d } = await ask(token, { ...request, epochs });
			const all = d.candidates.filter((c) => known(c.accuracy) && known(c.epochs)).map((c) => ({ epoch: c.epochs, accuracy: c.accuracy, error: d.accuracy_error ?? 0 }));
			const level = all.length > 1 && all.every((e) => e.accuracy === all[0].accuracy); // a model that knows nothing of epochs
			if (all.length) return level ? all.slice(-1) : all;
		} catch {
			// a type without a range of epochs, or a number outside of it: the next question is simpler
		}
	}
	return null;
}

function drawTold() {
	if (!told) return;
	showCurve($("job-curve"), job, told, expected, widthOf($("job-curve")), Date.now());
	showOutput($("job-output"), told);
}

async function refreshTold(token) {
	const mine = opened;
	if (asking) return;
	asking = true;
	try {
		const v = await ask(token, { op: "output", job: mine });
		if (mine !== opened || !job) return;
		told = v;
		drawTold();
	} catch (e) {
		if (mine === opened) {
			fill($("job-curve"), el("p", { class: "note" }, e.message));
			$("job-output").textContent = "–";
		}
	} finally {
		asking = false;
	}
}

async function refresh(token, me) {
	const mine = opened;
	try {
		const v = await ask(token, { op: "explain", job: mine });
		if (mine !== opened) return;
		job = v.job;
		showFacts($("job-facts"), job, isLive(job) && me && (me.admin || me.uid === job.uid), (e) => cancel(token, me, e));
		showDecisions($("job-decisions"), v.decisions, widthOf($("job-decisions")));
		await refreshTold(token);
	} catch (e) {
		fill($("job-facts"), el("p", { class: "note" }, e.message));
	}
}

async function cancel(token, me, e) {
	if (cancelling !== opened) {
		cancelling = opened;
		e.target.textContent = "Really cancel it? Press again";
		return;
	}
	try {
		await ask(token, { op: "cancel", job: opened });
	} catch (why) {
		e.target.textContent = why.message;
	}
	refresh(token, me);
}

export async function openJob(token, me, id) {
	const began = performance.now();
	opened = id;
	job = expected = told = cancelling = null;
	$("job").hidden = false;
	for (const part of ["job-facts", "job-curve", "job-decisions"]) fill($(part));
	$("job-output").textContent = "asking …";
	$("h-job").textContent = `Job ${id}`;
	await refresh(token, me);
	if (opened !== id || !job) return;
	window.postriderPanel = { job: id, tookMs: performance.now() - began }; // for the tests
	$("job").scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
	const found = await askExpected(token, job);
	if (opened !== id) return;
	expected = found;
	drawTold();
}

export function closeJob() {
	opened = job = told = expected = null;
	$("job").hidden = true;
}

/* After an update of the page: what has changed about the job, and what it has written meanwhile. */
export function followJob(u, token, me) {
	const now = opened && job && [...u.running, ...u.next, ...u.ended].find((j) => j.job === opened);
	if (!now) return;
	if (now.state !== job.state) refresh(token, me);
	else if (now.state === "running") refreshTold(token);
	job = { ...job, state: now.state };
}

addEventListener("resize", () => { if (opened && job) drawTold(); });
