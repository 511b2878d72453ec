// SPDX-License-Identifier: GPL-3.0-or-later
// What of a recording is looked at, and what each stack and function weighs in it.
import { max, min } from "./text.js";
import { describe, where } from "./data.js";

// Finds nodes of a tree by their caller and place: a table of numbers, as there may be a million.
class Known {
	constructor(count) {
		this.slots = new Int32Array(2 << (32 - Math.clz32(count)));
	}

	// The number of such a node, which is @made if there is none yet.
	find({ caller, place }, up, here, made) {
		const { slots } = this, mask = slots.length - 1;
		let at = Math.imul(Math.imul(up, 0x9e3779b1) ^ here, 0x85ebca6b);
		for (at = (at ^ at >>> 15) & mask; slots[at]; at = at + 1 & mask)
			if (caller[slots[at]] === up && place[slots[at]] === here)
				return slots[at];
		return slots[at] = made;
	}
}

// Stacks that are one in this view: by function or line, with a recursion as one call or not, and
// without the functions that are hidden, whose time is that of their callers.
// `stands[stack]` is the one that stands for it; only such ones have `caller`, `place` and `depth`.
export function fold(data, { lines, merged, hidden }) {
	const { parent, frame, count } = data.stacks;
	const stands = new Int32Array(count);
	const caller = new Int32Array(count);
	const place = new Int32Array(count).fill(-1);
	const depth = new Int32Array(count);
	const tree = { stands, caller, place, depth, count };
	const known = new Known(count);
	for (let i = 1; i < count; i++) {
		const up = stands[parent[i]], f = data.frames.function[frame[i]];
		const here = lines ? frame[i] : f;
		if (hidden?.[f] || (merged && up && place[up] === here)) {
			stands[i] = up;
			continue;
		}
		const found = stands[i] = known.find(tree, up, here, i);
		if (found !== i)
			continue;
		caller[i] = up;
		place[i] = here;
		depth[i] = depth[up] + 1;
	}
	return tree;
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
	const tree = fold(data, view);
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
	const { caller, stands, count } = tree;
	const ends = new Int32Array(count + 1);
	const weighs = (i) => stands[i] === i && total[i] > 0;
	for (let i = 1; i < count; i++)
		if (weighs(i))
			ends[caller[i] + 1]++;
	for (let i = 0; i < count; i++)
		ends[i + 1] += ends[i];
	const begins = ends.slice(), list = new Int32Array(ends[count]);
	// Each goes to its place among those of its caller: mostly there are few, or they come by weight.
	for (let i = 1; i < count; i++)
		if (weighs(i))
			list[ends[caller[i]]++] = i;
	const byWeight = (a, b) => total[b] - total[a] || a - b;
	for (let i = 0; i < count; i++)
		sortPart(list, begins[i], ends[i], byWeight);
	return { get: (stack) => list.subarray(begins[stack], ends[stack]) };
}

// Sorts a part of a list; most are short, and not worth an array of their own.
function sortPart(list, begin, end, compare) {
	if (end - begin > 16) {
		list.subarray(begin, end).sort(compare);
		return;
	}
	for (let i = begin + 1; i < end; i++) {
		const value = list[i];
		let at = i;
		for (; at > begin && compare(list[at - 1], value) > 0; at--)
			list[at] = list[at - 1];
		list[at] = value;
	}
}

// [{ place, self, total, samples }]: a recursion counts once.
export function functionsOf(weighed) {
	return weighed.functions ??= sumFunctions(weighed);
}

function sumFunctions(weighed) {
	const rows = [], open = new Map();
	const todo = [...weighed.calls.get(0)];
	while (todo.length) {
		const stack = todo.pop();
		if (stack < 0) {
			open.get(weighed.place[-stack]).open--;
			continue;
		}
		const place = weighed.place[stack];
		let row = open.get(place);
		if (!row) {
			open.set(place, row = { place, self: 0, total: 0, samples: 0, open: 0 });
			rows.push(row);
		}
		row.self += weighed.self[stack];
		row.samples += weighed.samples[stack];
		if (!row.open)
			row.total += weighed.total[stack];
		row.open++;
		todo.push(-stack);
		for (const call of weighed.calls.get(stack))
			todo.push(call);
	}
	return rows;
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
