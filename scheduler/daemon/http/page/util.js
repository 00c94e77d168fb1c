// Small tools of the page. Text from the daemon only ever becomes text: names of jobs, types and tenants are shown, not run.
export function el(tag, attributes = {}, ...children) {
	const e = document.createElement(tag);
	for (const [k, v] of Object.entries(attributes)) {
		if (k === "class") e.className = v;
		else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
		else if (v !== null && v !== undefined && v !== false) e.setAttribute(k, v);
	}
	e.append(...children.filter((c) => c !== null && c !== undefined).map((c) => (c instanceof Node ? c : String(c))));
	return e;
}
export function draw(tag, attributes = {}, text = null) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
	if (text !== null) e.textContent = text;
	return e;
}
export const known = (v) => v !== null && v !== undefined && Number.isFinite(v);
export const percent = (v, digits = 1) => (known(v) ? `${(100 * v).toFixed(v >= 0.9995 ? 0 : digits)} %` : "–");
export const number = (v, digits = 0) => (known(v) ? Number(v).toLocaleString("en", { maximumFractionDigits: digits }) : "–");
export function span(s) {
	if (!known(s)) return "–";
	const a = Math.abs(s), sign = s < 0 ? "−" : "";
	if (a < 10) return `${sign}${a.toFixed(a < 1 ? 2 : 1)} s`;
	if (a < 120) return `${sign}${Math.round(a)} s`;
	if (a < 7200) return `${sign}${Math.round(a / 60)} min`;
	if (a < 172800) return `${sign}${(a / 3600).toFixed(1)} h`;
	return `${sign}${(a / 86400).toFixed(1)} d`;
}
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
export const fill = (parent, ...children) => parent.replaceChildren(...children.filter((c) => c !== null && c !== undefined));
