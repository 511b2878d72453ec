// SPDX-License-Identifier: GPL-3.0-or-later
// Draws a picture on a canvas: the visible rows, and their boxes that are wider than nothing. A
// canvas cannot be as high as a deep picture, so it stays where it is, and what it shows moves.

import { floor, max, min, round } from "./text.js";

export const ROW = 20;
const SLIVER = 0.8; // pixels; boxes that are narrower share one

// The first box of a sorted column that is over @value, from @low on.
function after(column, value, low = 0) {
	let high = column.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (column[middle] > value)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

export class Chart {
	// Asks `look` for { colour(stack), shade(stack), label(stack), title(thread), state(number), ink, soft, paper,
	// accent, found } and matched(stack): true, false, or null where nothing is searched.
	// Calls moved() when another part is shown.
	constructor(canvas, scroll, height, look, moved) {
		Object.assign(this, { canvas, scroll, height, look, moved });
		this.picture = { rows: [], begin: 0, end: 1 };
		this.upwards = false;
		this.left = 0;
		this.right = 1;
		this.focus = null; // { row, box }
		this.hover = null;
		this.drawn = -1; // milliseconds that drawing took, which a coarse clock may call 0
	}

	show(picture, upwards) {
		const before = this.picture.rows.length, was = this.upwards;
		this.picture = picture;
		this.upwards = upwards;
		this.focus = this.hover = this.moving = null;
		this.left = picture.begin;
		this.right = picture.end;
		this.refine(this.left, this.right);
		this.measure();
		const same = picture.rows.length === before && upwards === was;
		if (!same)
			this.scroll.scrollTop = upwards ? this.scroll.scrollHeight : 0;
		this.draw();
	}

	// Makes the boxes of this part, where a picture does not have all of its boxes.
	refine(left, right) {
		const { make, rows } = this.picture;
		if (!make)
			return;
		const least = (this.right - this.left) / (this.scroll.clientWidth || 1) * SLIVER;
		this.picture.rows = make(left, right, least);
		for (const which of ["focus", "hover"])
			this[which] &&= this.find(this[which].row, rows[this[which].row], this[which].box);
		if (rows && this.picture.rows.length !== rows.length)
			this.measure();
	}

	// Where a box is now; or null.
	find(number, { start, end, stack }, box) {
		const row = this.picture.rows[number], at = row ? after(row.end, (start[box] + end[box]) / 2) : 0;
		return row?.stack[at] === stack[box] ? { row: number, box: at } : null;
	}

	measure() {
		const { clientWidth, clientHeight } = this.scroll;
		const ratio = window.devicePixelRatio || 1;
		this.width = clientWidth;
		this.seen = clientHeight;
		this.deep = this.picture.rows.length * ROW + 6;
		this.canvas.width = round(clientWidth * ratio);
		this.canvas.height = round(clientHeight * ratio);
		this.canvas.style.width = `${clientWidth}px`;
		this.canvas.style.height = `${clientHeight}px`;
		this.height.style.height = `${max(this.deep - clientHeight, 0)}px`;
		this.ratio = ratio;
	}

	// The upper edge of a row on the canvas.
	top(row) {
		const y = this.upwards ? this.deep - (row + 1) * ROW - 3 : row * ROW + 3;
		return y - this.scroll.scrollTop;
	}

	rowAt(y) {
		const at = y + this.scroll.scrollTop;
		return floor((this.upwards ? this.deep - at - 3 : at - 3) / ROW);
	}

	x(value) {
		return (value - this.left) * this.width / (this.right - this.left);
	}

	value(x) {
		return this.left + x * (this.right - this.left) / this.width;
	}

	// The box at a point of the canvas: { row, box }, or null.
	at(x, y) {
		const number = this.rowAt(y), row = this.picture.rows[number];
		if (!row)
			return null;
		const value = this.value(x), box = after(row.end, value);
		return box < row.end.length && row.start[box] <= value ? { row: number, box } : null;
	}

	// The box in a row that holds this part, or null.
	holding(number, start, end) {
		const row = this.picture.rows[number], box = row ? after(row.end, (start + end) / 2) : 0;
		return row && box < row.end.length ? { row: number, box } : null;
	}

	stackAt({ row, box }) {
		return this.picture.rows[row].stack[box];
	}

	draw() {
		const begun = performance.now();
		const context = this.canvas.getContext("2d");
		context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		context.clearRect(0, 0, this.width, this.seen);
		context.font = "12px ui-monospace, Menlo, Consolas, monospace";
		context.textBaseline = "middle";
		this.letter = context.measureText("m").width;
		const edges = [this.rowAt(0), this.rowAt(this.seen)];
		const first = max(min(...edges), 0);
		const last = min(max(...edges), this.picture.rows.length - 1);
		for (let row = first; row <= last; row++)
			this.drawRow(context, this.picture.rows[row], this.top(row));
		for (const [which, colour] of [[this.hover, this.look.ink], [this.focus, this.look.accent]])
			if (which)
				this.outline(context, which, colour);
		this.drawn = performance.now() - begun;
	}

	drawRow(context, row, y) {
		const { start, end } = row;
		for (let i = after(end, this.left); i < end.length && start[i] < this.right;) {
			const left = max(this.x(start[i]), 0), right = min(this.x(end[i]), this.width);
			if (right - left < SLIVER) {
				const pixel = floor(left);
				this.fill(context, row, i, pixel, y, 1);
				i = max(i + 1, after(end, this.value(pixel + 1), i));
				continue;
			}
			this.fill(context, row, i, left, y, max(right - left - 0.6, SLIVER));
			this.write(context, row, i, left, y, right - left);
			i++;
		}
		if (row.state)
			this.title(context, row, y);
	}

	fill(context, row, i, x, y, width) {
		const stack = row.stack[i];
		const matched = row.state ? null : this.look.matched(stack);
		// What goes on beyond the edges is there for the way, not for its width.
		const wider = !row.state && !this.picture.isTime &&
			(row.start[i] < this.left || row.end[i] > this.right);
		context.globalAlpha = (matched === false ? 0.3 : wider ? 0.5 : 1) *
			(row.state || matched ? 1 : this.look.shade(stack));
		context.fillStyle = row.state ? this.look.state(row.state[i])
			: matched ? this.look.found : this.look.colour(stack);
		context.fillRect(x, row.state ? y + ROW - 6 : y, width, row.state ? 5 : ROW - 1);
		context.globalAlpha = 1;
	}

	write(context, row, i, x, y, width) {
		const letters = floor((width - 8) / this.letter);
		if (row.state || letters < 2)
			return;
		const stack = row.stack[i], label = this.look.label(stack);
		context.fillStyle = this.look.matched(stack) ? this.look.paper : this.look.ink;
		context.fillText(label.length > letters ? `${label.slice(0, letters - 1)}…` : label, x + 4,
			y + ROW / 2);
	}

	title(context, row, y) {
		const text = this.look.title(row.thread);
		context.fillStyle = this.look.ink;
		context.fillText(text, 4, y + 7);
	}

	outline(context, { row, box }, colour) {
		const boxes = this.picture.rows[row];
		const left = max(this.x(boxes.start[box]), 0);
		const right = min(this.x(boxes.end[box]), this.width);
		context.strokeStyle = colour;
		context.lineWidth = 2;
		context.strokeRect(left + 1, this.top(row) + 1, max(right - left - 2, 1), ROW - 3);
	}

	// Shows the values from @left to @right, over the whole width.
	zoom(left, right) {
		const { begin, end } = this.picture;
		const least = (end - begin) / 1e7;
		const target = [max(begin, left), min(end, right)];
		if (!(target[1] - target[0] > least))
			return;
		const source = [this.left, this.right];
		const started = performance.now();
		const time = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 140;
		const step = () => {
			const part = time ? min((performance.now() - started) / time, 1) : 1;
			const ease = 1 - (1 - part) ** 3;
			this.left = source[0] + (target[0] - source[0]) * ease;
			this.right = source[1] + (target[1] - source[1]) * ease;
			this.draw();
			if (this.moving !== step)
				return;
			if (part < 1) {
				requestAnimationFrame(step);
			} else {
				this.refine(...target);
				this.draw();
				this.moved();
			}
		};
		this.moving = step;
		this.refine(min(source[0], target[0]), max(source[1], target[1]));
		step();
	}

	zoomAround(x, factor) {
		const value = this.value(x);
		const width = min((this.right - this.left) * factor, this.picture.end - this.picture.begin);
		const left = value - width * x / this.width;
		const begin = min(max(left, this.picture.begin), this.picture.end - width);
		this.zoom(begin, begin + width);
	}

	// Moves what is shown by so many pixels.
	pan(x) {
		const by = x * (this.right - this.left) / this.width;
		const most = this.picture.end - this.right, least = this.picture.begin - this.left;
		const bounded = min(max(by, least), most);
		this.moving = null;
		this.left += bounded;
		this.right += bounded;
		this.refine(this.left, this.right);
		this.draw();
		this.moved();
	}

	zoomTo({ row, box }) {
		const boxes = this.picture.rows[row];
		this.zoom(boxes.start[box], boxes.end[box]);
	}

	// The box beside the one that has the focus: "up" is towards what it calls in a flame.
	move(key) {
		const { rows } = this.picture;
		if (!this.focus)
			return rows.length && rows[0].stack.length ? { row: 0, box: 0 } : null;
		const { row, box } = this.focus;
		if (key === "ArrowLeft" || key === "ArrowRight") {
			const next = box + (key === "ArrowLeft" ? -1 : 1);
			return rows[row].stack[next] === undefined ? this.focus : { row, box: next };
		}
		const next = row + ((key === "ArrowUp") === this.upwards ? 1 : -1);
		if (!rows[next])
			return this.focus;
		const start = rows[row].start[box], at = after(rows[next].end, start);
		const found = rows[next].start[at] < rows[row].end[box];
		return found ? { row: next, box: at } : this.focus;
	}

	// Scrolls and zooms so that the box with the focus is seen.
	reveal() {
		const { row, box } = this.focus, boxes = this.picture.rows[row];
		const y = this.top(row);
		if (y < 0 || y + ROW > this.seen)
			this.scroll.scrollTop += y < 0 ? y - ROW : y + 2 * ROW - this.seen;
		if (boxes.end[box] <= this.left || boxes.start[box] >= this.right)
			this.zoom(this.picture.begin, this.picture.end);
		this.draw();
	}
}
