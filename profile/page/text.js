// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers and names as people read them.

export const { abs, floor, max, min, round } = Math;

export function duration(ns) {
	if (!ns)
		return "0 s";
	const units = [[60e9, 60e9, "min"], [1e9, 1e9, "s"], [1e6, 1e6, "ms"], [0, 1e3, "µs"]];
	const [, unit, name] = units.find(([least]) => abs(ns) >= least);
	const value = ns / unit;
	return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${name}`;
}

// What weights are: nanoseconds, or bytes in a recording of allocations.
export let amount = duration;

export function weighBytes() {
	amount = (bytes) => {
		const unit = min(floor(Math.log2(max(abs(bytes), 1)) / 10), 5);
		return `${(bytes / 1024 ** unit).toFixed(unit ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
	};
}

export function percent(part, whole) {
	return `${(whole > 0 ? 100 * part / whole : 0).toFixed(1)} %`;
}

// Between which bounds a share of n independent samples is with a probability of 95 % (Wilson).
export function bounds(part, whole, n) {
	if (!(whole > 0) || !(n > 0))
		return [0, 1];
	const z = 1.959963984540054;
	const p = min(max(part / whole, 0), 1);
	const centre = p + z * z / (2 * n);
	const spread = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n));
	const scale = 1 + z * z / n;
	return [max((centre - spread) / scale, 0), min((centre + spread) / scale, 1)];
}

export function boundsText(part, whole, n) {
	const [low, high] = bounds(part, whole, n);
	return `${(100 * low).toFixed(0)}–${(100 * high).toFixed(0)} %`;
}

// Names may hold anything: what acts on a line of text is shown, not obeyed.
const ACTS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

export function plain(text) {
	return text.replace(ACTS, (c) => {
		const code = c.charCodeAt(0);
		if (c === "\n")
			return "\\n";
		return (code < 256 ? "\\x" : "\\u") + code.toString(16).padStart(code < 256 ? 2 : 4, "0");
	});
}

export function element(name, properties, ...children) {
	const made = Object.assign(document.createElement(name), properties);
	made.append(...children);
	return made;
}

export function button(text, does, properties) {
	return element("button", { type: "button", onclick: does, ...properties }, text);
}

export function byId(id) {
	return document.getElementById(id);
}
