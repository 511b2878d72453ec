// SPDX-License-Identifier: GPL-3.0-or-later
// What threads did over time, all together, and the range of time that is chosen.
import { floor, max, min } from "./text.js";
import { runWeight } from "./weigh.js";

const BAR = 5; // pixels

// What weighs how much in each of @count equal parts of the recording, by state.
function sums(data, view, count) {
	const all = { ...view, range: [0, data.duration] };
	const bars = data.states.map(() => new Float64Array(count));
	const { begin, wall, state } = data.runs, width = data.duration / count;
	for (let i = 0; i < data.runs.count; i++) {
		const weight = runWeight(data, all, i);
		if (!(weight > 0))
			continue;
		const end = begin[i] + wall[i];
		const first = min(floor(begin[i] / width), count - 1);
		for (let bar = first; bar < count && (bar === first || bar * width < end); bar++) {
			const inside = min(end, (bar + 1) * width) - max(begin[i], bar * width);
			bars[state[i]][bar] += wall[i] > 0 ? weight * max(inside, 0) / wall[i] : weight;
		}
	}
	return bars;
}

export class Overview {
	// `choose(from, to)` is called with nanoseconds.
	constructor(canvas, data, look, choose) {
		Object.assign(this, { canvas, data, look, choose });
		canvas.onpointerdown = (event) => this.begin(event);
		canvas.onpointermove = (event) => this.drag(event);
		canvas.onpointerup = (event) => this.end(event);
		canvas.ondblclick = () => choose(0, data.duration);
	}

	time(event) {
		const box = this.canvas.getBoundingClientRect();
		const part = (event.clientX - box.left) / box.width;
		return min(max(part, 0), 1) * this.data.duration;
	}

	begin(event) {
		this.canvas.setPointerCapture(event.pointerId);
		this.from = this.to = this.time(event);
	}

	drag(event) {
		if (this.from === undefined)
			return;
		this.to = this.time(event);
		this.draw(this.view);
	}

	end() {
		const from = min(this.from, this.to), to = max(this.from, this.to);
		this.from = undefined;
		if (to - from > this.data.duration / 500)
			this.choose(from, to);
		else
			this.draw(this.view);
	}

	draw(view) {
		this.view = view;
		const { clientWidth: width, clientHeight: height } = this.canvas;
		const ratio = window.devicePixelRatio || 1;
		this.canvas.width = width * ratio;
		this.canvas.height = height * ratio;
		const context = this.canvas.getContext("2d");
		context.scale(ratio, ratio);
		const count = max(floor(width / BAR), 1);
		const bars = sums(this.data, view, count);
		const heights = Array.from({ length: count }, (_, bar) =>
			bars.reduce((sum, state) => sum + state[bar], 0));
		// Time that a thread used between samples shows late, and all at once: such bars
		// are cut.
		const most = heights.sort((a, b) => a - b)[floor(count * 0.98)];
		const scale = (height - 4) / max(most, 1);
		for (let bar = 0; bar < count; bar++) {
			let y = height;
			bars.forEach((state, number) => {
				const tall = state[bar] * scale;
				context.fillStyle = this.look.state(number);
				context.fillRect(bar * width / count, y - tall, width / count - 0.5, tall);
				y -= tall;
			});
		}
		this.shade(context, width, height);
	}

	shade(context, width, height) {
		const [from, to] = this.from === undefined ? this.view.range
			: [min(this.from, this.to), max(this.from, this.to)];
		const left = from / this.data.duration * width, right = to / this.data.duration * width;
		context.globalAlpha = 0.7;
		context.fillStyle = this.look.paper;
		context.fillRect(0, 0, left, height);
		context.fillRect(right, 0, width - right, height);
		context.globalAlpha = 1;
		if (right - left < width - 1) {
			context.strokeStyle = this.look.accent;
			context.strokeRect(left + 0.5, 0.5, right - left - 1, height - 1);
		}
	}
}
