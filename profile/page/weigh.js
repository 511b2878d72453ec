// SPDX-License-Identifier: GPL-3.0-or-later
// What of a recording is looked at, and what each stack and function weighs in it.
import { max, min } from "./text.js";
import { describe, placeOf, where } from "./data.js";

// Stacks that are one in this view: by function or line, and with a recursion as one call or not.
// `stands[stack]` is the one that stands for it; only such ones have `caller`, `place` and `depth`.
export function fold(data, lines, merged) {
	const { parent, count } = data.stacks;
	const places = (lines ? data.frames.count : data.functions.count) + 1;
	const stands = new Int32Array(count);
	const caller = new Int32Array(count);
	const place = new Int32Array(count).fill(-1);
	const depth = new Int32Array(count);
	const known = new Map();
	for (let i = 1; i < count; i++) {
		const up = stands[parent[i]];
		const here = placeOf(data, i, lines);
		if (merged && up && place[up] === here) {
			stands[i] = up;
			continue;
		}
		const key = up * places + here;
		const found = known.get(key);
		stands[i] = found ?? i;
		if (found !== undefined)
			continue;
		known.set(key, i);
		caller[i] = up;
		place[i] = here;
		depth[i] = depth[up] + 1;
	}
	return { stands, caller, place, depth, count };
}

// What run @i weighs in the view; the weight of a run lies evenly over its time.
export function runWeight(data, view, i) {
	const { thread, state, begin, wall } = data.runs;
	if (!view.threads[thread[i]] || !view.states[state[i]])
		return 0;
	return data.runs[view.weight][i] * runPart(view, begin[i], wall[i]);
}

function runPart(view, begin, wall) {
	const [from, to] = view.range;
	if (begin >= from && begin + wall <= to)
		return 1;
	const inside = min(begin + wall, to) - max(begin, from);
	return wall > 0 && inside > 0 ? inside / wall : 0;
}

// All that the panes show: `self` and `total` of the stacks that stand for others, in `whole`; `n`
// independent samples give the same precision.
export function weigh(data, view) {
	const tree = fold(data, view.lines, view.merged);
	const self = new Float64Array(tree.count);
	const samples = new Float64Array(tree.count);
	const states = data.states.map(() => 0);
	const runs = data.runs;
	let whole = 0, squares = 0;
	for (let i = 0; i < runs.count; i++) {
		const weight = runWeight(data, view, i);
		if (!(weight > 0))
			continue;
		const part = weight / runs[view.weight][i];
		const stack = tree.stands[runs.stack[i]];
		self[stack] += weight;
		samples[stack] += runs.samples[i] * part;
		states[runs.state[i]] += weight;
		whole += weight;
		squares += part * (view.weight === "cpu" ? runs.squares[i]
			: runs[view.weight][i] ** 2 / runs.samples[i]);
	}
	const total = self.slice();
	for (let i = tree.count - 1; i > 0; i--)
		if (tree.stands[i] === i)
			total[tree.caller[i]] += total[i];
	const n = squares > 0 ? whole * whole / squares : 0;
	return { ...tree, view, self, total, samples, states, whole, n, calls: callsOf(tree, total) };
}

// For each stack its calls that weigh anything, the heaviest first.
function callsOf(tree, total) {
	const calls = new Map();
	for (let i = 1; i < tree.count; i++) {
		if (tree.stands[i] !== i || !(total[i] > 0))
			continue;
		const list = calls.get(tree.caller[i]);
		if (list)
			list.push(i);
		else
			calls.set(tree.caller[i], [i]);
	}
	for (const list of calls.values())
		list.sort((a, b) => total[b] - total[a] || a - b);
	return calls;
}

// [{ place, self, total, samples }]: a recursion counts once.
export function functionsOf(weighed) {
	const rows = new Map(), open = new Map();
	const todo = [...(weighed.calls.get(0) ?? [])];
	while (todo.length) {
		const stack = todo.pop();
		if (stack < 0) {
			const place = weighed.place[-stack];
			open.set(place, open.get(place) - 1);
			continue;
		}
		const place = weighed.place[stack];
		let row = rows.get(place);
		if (!row)
			rows.set(place, row = { place, self: 0, total: 0, samples: 0 });
		row.self += weighed.self[stack];
		row.samples += weighed.samples[stack];
		if (!open.get(place))
			row.total += weighed.total[stack];
		open.set(place, (open.get(place) ?? 0) + 1);
		todo.push(-stack, ...(weighed.calls.get(stack) ?? []));
	}
	return [...rows.values()];
}

// Whether a caller of @stack is at @place, and was called, if that is asked for, from @from.
function isInside(weighed, stack, place, from) {
	for (let at = weighed.caller[stack]; at; at = weighed.caller[at])
		if (weighed.place[at] === place &&
		    (from === undefined || weighed.place[weighed.caller[at]] === from))
			return true;
	return false;
}

// Callers and callees of a function: [[place, weight]] each, the heaviest first. The place of a
// thread's beginning is -1.
export function neighbours(weighed, place) {
	const callers = new Map(), callees = new Map();
	const add = (map, key, weight) => map.set(key, (map.get(key) ?? 0) + weight);
	for (let i = 1; i < weighed.count; i++) {
		if (weighed.stands[i] !== i || !(weighed.total[i] > 0))
			continue;
		const up = weighed.caller[i];
		if (weighed.place[i] === place && !isInside(weighed, i, place))
			add(callers, weighed.place[up], weighed.total[i]);
		if (up && weighed.place[up] === place &&
		    !isInside(weighed, i, weighed.place[i], place))
			add(callees, weighed.place[i], weighed.total[i]);
	}
	const sorted = (map) => [...map].sort((a, b) => b[1] - a[1]);
	return { callers: sorted(callers), callees: sorted(callees) };
}

// The states of the time of all stacks inside the meant ones: [[text, weight]], the most first.
export function partsOf(data, weighed, isMeant) {
	const inside = new Uint8Array(weighed.count), sums = new Map();
	for (let i = 1; i < weighed.count; i++)
		if (weighed.stands[i] === i)
			inside[i] = inside[weighed.caller[i]] || isMeant(i) ? 1 : 0;
	const { stack, wait, state, count } = data.runs;
	for (let i = 0; i < count; i++) {
		const weight = inside[weighed.stands[stack[i]]] ? runWeight(data, weighed.view, i) : 0;
		const text = data.waits[wait[i]] || data.states[state[i]];
		if (weight > 0)
			sums.set(text, (sums.get(text) ?? 0) + weight);
	}
	return [...sums].sort((a, b) => b[1] - a[1]);
}

// Whether what is weighed has parts that are worth telling: time on a processor is just that.
export function hasParts({ before, view }) {
	return !before && (view.weight === "wall" || view.weight === "blocked");
}

// A test of places from what was typed: a text, or a /regular expression/; null if there is none.
// Throws for a bad expression.
export function matcher(data, typed, lines) {
	if (!typed)
		return null;
	const regex = /^\/(.+?)\/?$/.exec(typed);
	const test = regex ? new RegExp(regex[1], "i") : null;
	const small = typed.toLowerCase();
	const known = new Map();
	return (place) => {
		if (!known.has(place)) {
			const { name, file, line } = describe(data, place, lines);
			const text = `${name} ${where({ file, line })}`;
			known.set(place, test ? test.test(text) : text.toLowerCase().includes(small));
		}
		return known.get(place);
	};
}

// The weight of the stacks that have a match in them.
export function matchedWeight(weighed, matches) {
	const inside = new Uint8Array(weighed.count);
	let sum = 0;
	for (let i = 1; i < weighed.count; i++) {
		if (weighed.stands[i] !== i)
			continue;
		inside[i] = inside[weighed.caller[i]] || matches(weighed.place[i]) ? 1 : 0;
		if (inside[i])
			sum += weighed.self[i];
	}
	return sum;
}
