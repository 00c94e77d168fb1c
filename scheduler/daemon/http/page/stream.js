// Server-sent events by fetch(): an EventSource cannot send a token in a header, and an address with a token in it ends up in logs.
export class Stream {
	constructor(path, token, on) {
		Object.assign(this, { path, token, on, stopped: false, wait: 250 });
		this.run();
	}
	stop() {
		this.stopped = true;
		if (this.abort) this.abort.abort();
	}
	async run() {
		while (!this.stopped) {
			try {
				await this.once();
			} catch (e) {
				if (e.status === 401) {
					this.on.refused();
					return;
				}
			}
			if (this.stopped) return;
			this.on.lost();
			await new Promise((done) => setTimeout(done, this.wait));
			this.wait = Math.min(this.wait * 1.5, 5000);
		}
	}
	async once() {
		this.abort = new AbortController();
		const headers = this.token ? { Authorization: `Bearer ${this.token}` } : {};
		const reply = await fetch(this.path, { headers, cache: "no-store", signal: this.abort.signal });
		if (!reply.ok) throw Object.assign(new Error("refused"), { status: reply.status });
		const reader = reply.body.getReader(), decoder = new TextDecoder();
		let text = "";
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return;
			text += decoder.decode(value, { stream: true });
			const events = text.split("\n\n");
			text = events.pop();
			// A page in the background may get several at once: only the latest counts.
			if (events.length) {
				this.wait = 250;
				const began = performance.now();
				this.on.update(JSON.parse(events[events.length - 1].replace(/^data: /, "")), began);
			}
		}
	}
}
export async function ask(token, request) {
	const reply = await fetch("/api", { method: "POST", cache: "no-store", body: JSON.stringify(request),
		headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" } });
	const v = await reply.json();
	if (!v.ok) throw new Error(v.error ? v.error.message : "no answer");
	return v;
}
