/* Looks at a report in a browser, as a reader would: is every figure there, does anything run over, are letters large and
 * dark enough, does a text lie on another? Injected into a copy of the page by browser.sh; posts its verdict to the page
 * around it. The report itself has no script. */
"use strict";
(function () {
	const LEAST_LETTERS = 9;   /* CSS pixels */
	const LEAST_CONTRAST = 4.5;
	const TOUCH = 2;           /* boxes of text reach a little beyond their letters */
	const problems = [];
	const counts = { figures: 0, drawings: 0, texts: 0 };
	const complain = (what) => problems.length < 40 && problems.push(what);
	const short = (e) => (e.textContent || "").trim().slice(0, 40);

	const luminance = (c) => {
		const part = c.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : Math.pow((v / 255 + 0.055) / 1.055, 2.4)));
		return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
	};
	const colour = (text) => (text.match(/[\d.]+/g) || ["0", "0", "0"]).slice(0, 3).map(Number);
	const contrast = (a, b) => {
		const x = luminance(colour(a)), y = luminance(colour(b));
		return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
	};
	const visible = (e) => e.getClientRects().length > 0;

	function checkTexts(figure, svg) {
		const box = svg.getBoundingClientRect();
		const scale = box.width / svg.viewBox.baseVal.width;
		const back = getComputedStyle(document.body).backgroundColor;
		const text = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim());
		const rect = text.map((t) => t.getBoundingClientRect());
		text.forEach((t, i) => {
			const r = rect[i], style = getComputedStyle(t);
			const letters = parseFloat(style.fontSize) * scale;
			counts.texts++;
			if (letters < LEAST_LETTERS - 0.01)
				complain(`${figure}: letters of ${letters.toFixed(1)} px: ${short(t)}`);
			if (r.left < box.left - 0.5 || r.right > box.right + 0.5 || r.top < box.top - 0.5 || r.bottom > box.bottom + 0.5)
				complain(`${figure}: text outside its drawing: ${short(t)}`);
			if (contrast(style.fill, back) < LEAST_CONTRAST)
				complain(`${figure}: contrast ${contrast(style.fill, back).toFixed(1)}: ${short(t)}`);
			for (let k = 0; k < i; k++) {
				const q = rect[k];
				if (Math.min(r.right, q.right) - Math.max(r.left, q.left) > TOUCH &&
				    Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top) > TOUCH)
					complain(`${figure}: '${short(t)}' lies on '${short(text[k])}'`);
			}
		});
	}

	function checkFigures(expected) {
		for (const id of expected) {
			const figure = document.getElementById(id);
			if (!figure || !figure.matches("figure")) {
				complain(`no figure ${id}`);
				continue;
			}
			const drawings = [...figure.querySelectorAll("svg")].filter(visible);
			counts.figures++;
			if (!drawings.length)
				complain(`${id}: no drawing is to be seen`);
			for (const svg of drawings) {
				const r = svg.getBoundingClientRect();
				counts.drawings++;
				if (r.width < 100 || r.height < 50)
					complain(`${id}: a drawing of ${r.width} x ${r.height}`);
				if (!svg.querySelector("title") || !svg.querySelector("desc"))
					complain(`${id}: no title or description`);
				checkTexts(id, svg);
			}
			if (!figure.querySelector("figcaption .see").textContent.trim())
				complain(`${id}: no sentence`);
			if (!figure.querySelector('a[download][href^="data:text/csv"]'))
				complain(`${id}: no data`);
		}
	}

	function checkPage(when) {
		const root = document.documentElement;
		if (root.scrollWidth > window.innerWidth)
			complain(`${when}: the page is ${root.scrollWidth} px wide in a window of ${window.innerWidth}`);
		if (window.innerWidth <= 640)
			for (const t of document.querySelectorAll("table.cards"))
				if (t.parentElement.scrollWidth > t.parentElement.clientWidth)
					complain(`${when}: the table ${t.caption.textContent} is cut at the edge`);
		const back = getComputedStyle(document.body).backgroundColor;
		for (const e of document.querySelectorAll("h1,h2,h3,p,dt,dd,th,td,small,a,summary,code,b,caption")) {
			if (!visible(e) || !e.textContent.trim())
				continue;
			const style = getComputedStyle(e);
			if (contrast(style.color, back) < LEAST_CONTRAST)
				complain(`${when}: contrast ${contrast(style.color, back).toFixed(1)}: ${short(e)}`);
			if (parseFloat(style.fontSize) < LEAST_LETTERS)
				complain(`${when}: letters of ${style.fontSize}: ${short(e)}`);
		}
	}

	window.addEventListener("load", () => {
		const asked = new URLSearchParams(location.search);
		const dark = matchMedia("(prefers-color-scheme: dark)").matches;
		const back = luminance(colour(getComputedStyle(document.body).backgroundColor));
		if (dark !== (asked.get("scheme") === "dark") || dark !== back < 0.2)
			complain(`scheme: ${asked.get("scheme")} asked, ${dark ? "dark" : "light"} preferred, background ${back}`);
		checkFigures(asked.get("figures").split(","));
		checkPage("closed");
		document.querySelectorAll("details").forEach((d) => { d.open = true; });
		checkPage("opened");
		parent.postMessage(JSON.stringify({ ok: !problems.length, width: window.innerWidth, scheme: asked.get("scheme"),
			...counts, problems }), "*");
	});
})();
