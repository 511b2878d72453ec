// SPDX-License-Identifier: GPL-3.0-or-later
// What two recordings say of the same stacks and functions: shares of the run, before and after.
//
// `data.before` has the facts of the one before, whose threads are the first `threads`. How many
// samples are worth an independent one is in `data.worth`, as profile/recording/diff.h explains it: of each
// function by itself, and with all that it calls.
import { abs, bounds, max, min, percent } from "./text.js";
import { functionsOf, weigh } from "./weigh.js";

// Both, weighed alike: their stacks have the same numbers. What is shown is as wide as in one.
export function weighBoth(data, view) {
	const side = (isBefore) => weigh(data, { ...view, threads: view.threads.map((chosen, i) =>
		chosen && i < data.before.threads === isBefore ? 1 : 0) });
	const before = side(true), after = side(false);
	const shown = { ...(view.widths === "before" ? before : after), before, after };
	let most = 0.005;
	for (let i = 1; i < shown.count; i++)
		most = max(most, abs(deltaOf(shown, i)));
	return { ...shown, view, most };
}

// By how much the share of a stack, with all that it calls, has changed.
export function deltaOf({ before, after }, stack) {
	return after.total[stack] / (after.whole || 1) - before.total[stack] / (before.whole || 1);
}

// The complementary error function of a positive number, to a part in a million.
function erfc(x) {
	const t = 1 / (1 + 0.3275911 * x);
	return t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 +
		t * 1.061405429)))) * Math.exp(-x * x);
}

// The change of a share, its bounds, and how probable it is if nothing has changed.
function changeOf({ before, after }, was, is, worth) {
	const n = before.n / worth, m = after.n / worth;
	const p = was / (before.whole || 1), q = is / (after.whole || 1);
	const [low, high] = bounds(p, 1, n), [least, most] = bounds(q, 1, m);
	const common = (n * p + m * q) / (n + m);
	const error = Math.sqrt(common * (1 - common) * (1 / n + 1 / m));
	return {
		was: p, is: q, by: q - p,
		low: q - p - Math.hypot(q - least, high - p),
		high: q - p + Math.hypot(most - q, p - low),
		chance: error > 0 ? erfc(abs(q - p) / error / Math.SQRT2) : 1,
	};
}

function worthOf(data, place, lines, which) {
	const f = lines ? data.frames.function[place] : place;
	return data.worth[2 * f + which] || 1;
}

// The least probable change of so many has to be as many times as improbable as one alone (Holm).
function limitOf(changes) {
	const chances = changes.map(({ chance }) => chance).sort((a, b) => a - b);
	const failed = chances.findIndex((chance, i) => !(chance * (chances.length - i) < 0.05));
	return failed < 0 ? 1 : 0.05 / (chances.length - failed);
}

// [{ place, self, total, samples, before, after }] of all functions, where self and total are changes;
// and the chance that a certain one has at most.
export function changesOf(data, weighed) {
	if (weighed.changes)
		return weighed.changes;
	const sides = [weighed.before, weighed.after].map((side) =>
		new Map(functionsOf(side).map((row) => [row.place, row])));
	const none = { self: 0, total: 0, samples: 0 };
	const rows = [...new Set([...sides[0].keys(), ...sides[1].keys()])].map((place) => {
		const [before, after] = sides.map((side) => side.get(place) ?? none);
		const change = (key, which) => changeOf(weighed, before[key], after[key],
			worthOf(data, place, weighed.view.lines, which));
		return { place, before, after, self: change("self", 0), total: change("total", 1) };
	});
	weighed.changes = { rows, self: limitOf(rows.map(({ self }) => self)),
		total: limitOf(rows.map(({ total }) => total)) };
	return weighed.changes;
}

const sign = (share) => `${share < 0 ? "−" : "+"}${(100 * abs(share)).toFixed(1)}`;

export function pointsText({ by, chance }, limit) {
	return `${sign(by)}${chance < limit ? "" : " ?"}`;
}

export function boundsOfChange({ low, high }) {
	return `${sign(low)}…${sign(high)}`;
}

// Of a stack, or of what is known of a function.
export function changeText(change, limit) {
	return `${percent(change.was, 1)} → ${percent(change.is, 1)}, ${sign(change.by)} points (${
		boundsOfChange(change)}): ${change.chance < limit ? "more than chance" : "may be chance"}`;
}

export function stackChanges(data, weighed, tree, stack) {
	const place = tree.place[stack], { before, after } = tree;
	const keys = tree === weighed ? ["total", "self"] : ["total"];
	return keys.map((key, i) => `${key} ${changeText(changeOf(weighed,
		before[key][stack], after[key][stack], worthOf(data, place, weighed.view.lines, 1 - i)),
		changesOf(data, weighed)[key])}`);
}
