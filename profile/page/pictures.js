// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures: rows of boxes that lie beside each other, from left to right.
//
// { rows, begin, end }; a row is { start, end, stack } of arrays, and { thread, title, state }
// in front of the rows of a thread in the order of time. Where all boxes would be too many,
// `make(left, right, least)` makes the rows of that part, without boxes that are narrower than @least.
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
function treeRows(tree, left, right, least) {
	const all = row();
	add(all, 0, tree.total[0], 0);
	const rows = [all];
	for (let above = all; above.stack.length; above = rows[rows.length - 1]) {
		const next = row();
		above.stack.forEach((stack, i) => {
			let start = above.start[i];
			for (const call of tree.calls.get(stack)) {
				const end = start + tree.total[call];
				if (end - start >= least && end > left && start < right)
					add(next, start, end, call);
				start = end;
			}
		});
		if (!next.stack.length)
			break;
		rows.push(next);
	}
	return rows;
}

export function treePicture(tree) {
	tree.rows ??= treeRows(tree, 0, Infinity, 0);
	return { rows: tree.rows, begin: 0, end: tree.total[0], isTime: false };
}

export function invertedPicture(tree) {
	return { make: (...part) => treeRows(tree, ...part), begin: 0, end: tree.total[0], isTime: false };
}

// Where the box of a stack lies, by the places from the outermost on: { start, end, row }, or null.
export function locate(tree, places) {
	let stack = 0, start = 0;
	for (const place of places) {
		let found = 0;
		for (const call of tree.calls.get(stack)) {
			if (tree.place[call] === place) {
				found = call;
				break;
			}
			start += tree.total[call];
		}
		if (!found)
			return null;
		stack = found;
	}
	return { start, end: start + tree.total[stack], row: places.length };
}

// Runs of each thread that weigh anything, in the order of time.
function runsByThread(data, weighed) {
	const lists = data.threads.map((_, thread) => ({ thread, count: 0, deepest: 0 }));
	const { thread, stack, count } = data.runs, { depth, stands, view } = weighed;
	for (let i = 0; i < count; i++)
		lists[thread[i]].count++;
	lists.forEach((each) => each.runs = new Int32Array(each.count));
	lists.forEach((each) => each.count = 0);
	for (let i = 0; i < count; i++) {
		if (!(runWeight(data, view, i) > 0))
			continue;
		const list = lists[thread[i]];
		list.runs[list.count++] = i;
		list.deepest = max(list.deepest, depth[stands[stack[i]]]);
	}
	return lists.filter((each) => each.count);
}

// The stack that two stacks have in common.
function commonOf({ caller, depth }, one, other) {
	while (one !== other)
		if (depth[one] >= depth[other])
			one = caller[one];
		else
			other = caller[other];
	return one;
}

// A box is open while the stacks that follow have it in common. Runs that are too short to be seen
// are passed over; they only close boxes.
class ThreadRows {
	constructor(weighed, thread, deepest) {
		this.weighed = weighed;
		this.title = row({ thread, state: [] });
		this.rows = [this.title, ...Array.from({ length: deepest }, () => row())];
		this.open = 0;
		this.end = 0;
	}

	close(to) {
		const { depth } = this.weighed;
		for (let level = depth[this.open]; level > depth[to]; level--) {
			const { end } = this.rows[level];
			end[end.length - 1] = this.end;
		}
		this.open = to;
	}

	add(begin, end, stack, state, isSeen) {
		this.close(begin === this.end ? commonOf(this.weighed, this.open, stack) : 0);
		this.end = end;
		if (!isSeen)
			return;
		const { caller, depth } = this.weighed;
		for (let at = stack; depth[at] > depth[this.open]; at = caller[at])
			add(this.rows[depth[at]], begin, end, at);
		this.open = stack;
		add(this.title, begin, end, 0);
		this.title.state.push(state);
	}
}

function threadRows(data, weighed, { thread, runs, count, deepest }, left, right, least) {
	const made = new ThreadRows(weighed, thread, deepest), { begin, wall, stack, state } = data.runs;
	let seen = -Infinity;
	for (let at = 0; at < count; at++) {
		const i = runs[at], from = begin[i], to = from + wall[i];
		if (to <= left || from >= right)
			continue;
		const isSeen = to - from >= least || to - seen >= least;
		if (isSeen)
			seen = to;
		made.add(from, to, weighed.stands[stack[i]], state[i], isSeen);
	}
	made.close(0);
	return made.rows;
}

// What each thread did when, one thread below the other.
export function timePicture(data, weighed) {
	const threads = weighed.threads ??= runsByThread(data, weighed);
	const [begin, end] = weighed.view.range, longest = max(data.duration, data.before?.duration ?? 0);
	return { make: (...part) => threads.flatMap((each) => threadRows(data, weighed, each, ...part)),
		begin, end: min(end, longest), isTime: true };
}
