// Axes for curves and decisions: a frame with marks at round numbers, as wide as its place.
import { draw } from "/util.js";

const LEFT = 52, RIGHT = 14, TOP = 10, BOTTOM = 36;

/* About `n` round numbers from a to b. */
function marks(a, b, n) {
	const raw = Math.max((b - a) / n, 1e-12), power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((f) => f * power >= raw * 0.999) * power;
	const all = [];
	for (let i = Math.ceil(a / step - 1e-9); i * step <= b + 1e-9 * step; i++) all.push(+(i * step).toPrecision(12));
	return all;
}

/* x and y: { from, to, title, label(v) }. The caller draws into svg with x() and y(). */
export function plot(W, H, name, sentence, xAxis, yAxis) {
	const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
	svg.append(draw("title", {}, name), draw("desc", {}, sentence));
	const x = (v) => LEFT + (W - LEFT - RIGHT) * (v - xAxis.from) / (xAxis.to - xAxis.from);
	const y = (v) => TOP + (H - TOP - BOTTOM) * (1 - (v - yAxis.from) / (yAxis.to - yAxis.from));
	for (const v of marks(yAxis.from, yAxis.to, 4)) {
		svg.append(draw("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(v), y2: y(v) }));
		svg.append(draw("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, yAxis.label(v)));
	}
	for (const v of marks(xAxis.from, xAxis.to, Math.max(W / 110, 2))) {
		const near = x(v) > W - RIGHT - 24;
		svg.append(draw("line", { class: "grid", x1: x(v), x2: x(v), y1: H - BOTTOM, y2: H - BOTTOM + 4 }));
		svg.append(draw("text", { x: near ? W - 2 : x(v), y: H - BOTTOM + 16, "text-anchor": near ? "end" : "middle" }, xAxis.label(v)));
	}
	svg.append(draw("text", { x: W - RIGHT, y: H - 3, "text-anchor": "end" }, xAxis.title));
	return { svg, x, y, left: LEFT, right: W - RIGHT, top: TOP, bottom: H - BOTTOM };
}

export const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");

/* A vertical line with its name beside it, on the side where there is room. */
export function upright(p, at, name) {
	const left = at > (p.left + p.right) / 2;
	p.svg.append(draw("line", { class: "goal", x1: at, x2: at, y1: p.top, y2: p.bottom }),
		draw("text", { class: "name", x: at + (left ? -6 : 6), y: p.bottom - 6, "text-anchor": left ? "end" : "start" }, name));
}
