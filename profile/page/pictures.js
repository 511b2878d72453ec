// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures: rows of boxes that lie beside each other, from left to right.
//
// { rows, begin, end }; a row is { start, end, stack } of arrays, and { thread, title, state }
// in front of the rows of a thread in the order of time.
import { max, min } from "./text.js";
import { runWeight } from "./weigh.js";

function row(more) {
	return { start: [], end: [], stack: [], ...more };
}

function add(to, start, end, stack) {
	to.start.push(start);
	to.end.push(end);
	to.stack.push(stack);
}

// Callers beside what they call; the heaviest call is the one on the left.
export function treePicture(weighed) {
	const all = row();
	add(all, 0, weighed.whole, 0);
	const rows = [all];
	for (let above = all; above.stack.length; above = rows[rows.length - 1]) {
		const next = row();
		above.stack.forEach((stack, i) => {
			let start = above.start[i];
			for (const call of weighed.calls.get(stack) ?? []) {
				add(next, start, start + weighed.total[call], call);
				start += weighed.total[call];
			}
		});
		if (!next.stack.length)
			break;
		rows.push(next);
	}
	return { rows, begin: 0, end: weighed.whole, isTime: false };
}

// Runs of each thread, in the order of time.
function runsByThread(data, view) {
	const lists = new Map();
	for (let i = 0; i < data.runs.count; i++) {
		if (!(runWeight(data, view, i) > 0))
			continue;
		const thread = data.runs.thread[i];
		if (!lists.has(thread))
			lists.set(thread, []);
		lists.get(thread).push(i);
	}
	return lists;
}

function stackOf(weighed, stack) {
	const path = [];
	for (let at = stack; at; at = weighed.caller[at])
		path.push(at);
	return path.reverse();
}

function threadRows(data, weighed, thread, runs) {
	const title = row({ thread, state: [] });
	const rows = [title];
	let open = [], before = -1;
	for (const i of runs) {
		const begin = data.runs.begin[i], end = begin + data.runs.wall[i];
		const path = stackOf(weighed, weighed.stands[data.runs.stack[i]]);
		let same = 0;
		while (begin === before && same < path.length && open[same] === path[same])
			same++;
		path.forEach((stack, depth) => {
			const at = rows[depth + 1] ??= row();
			if (depth < same)
				at.end[at.end.length - 1] = end;
			else
				add(at, begin, end, stack);
		});
		add(title, begin, end, 0);
		title.state.push(data.runs.state[i]);
		open = path;
		before = end;
	}
	return rows;
}

// What each thread did when, one thread below the other.
export function timePicture(data, weighed) {
	const rows = [];
	for (const [thread, runs] of runsByThread(data, weighed.view))
		rows.push(...threadRows(data, weighed, thread, runs));
	const [begin, end] = weighed.view.range, longest = max(data.duration, data.before?.duration ?? 0);
	return { rows, begin, end: min(end, longest), isTime: true };
}
