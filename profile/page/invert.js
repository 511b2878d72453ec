// SPDX-License-Identifier: GPL-3.0-or-later
// The tree from the other end: functions by their own time, and in each of them its callers.
//
// Of all its nodes there may be many millions, so a node's callers are found when they are asked for.

export class Inverted {
	// A node has `place`, `caller` (the node outside of it) and `total`; so do those before and after, of
	// a comparison.
	constructor(weighed) {
		const { before, after } = weighed;
		this.weighed = weighed;
		this.sides = [weighed, ...(before ? [before, after] : [])].map(({ self, whole, n }) =>
			({ self, whole, n, total: [whole], sums: new Float64Array(weighed.count) }));
		this.total = this.sides[0].total;
		[, this.before, this.after] = this.sides;
		this.place = [-1];
		this.caller = [0];
		// Of each node the stacks that it has come to, and what came through each, for each side.
		this.reached = [null];
		this.known = new Map();
		// For a moment: which stacks were met, and the node of each place.
		this.seen = new Uint8Array(weighed.count);
		this.nodes = new Int32Array(weighed.place.reduce((a, b) => Math.max(a, b), 0) + 1);
		this.calls = { get: (node) => this.callers(node) };
	}

	callers(node) {
		if (!this.known.has(node)) {
			const stacks = node ? this.stepOut(this.reached[node]) : this.innermost();
			this.known.set(node, this.group(node, stacks));
			this.reached[node] = null;
		}
		return this.known.get(node);
	}

	// All stacks with time of their own; `sums` has it.
	innermost() {
		const { count } = this.weighed, stacks = new Int32Array(count);
		let found = 0;
		for (const { self, sums } of this.sides)
			sums.set(self);
		for (let i = 1; i < count; i++)
			if (this.sides.some(({ self }) => self[i] > 0))
				stacks[found++] = i;
		return stacks.subarray(0, found);
	}

	// The callers of stacks, each once, with the sums of what came through.
	stepOut({ stacks, weights }) {
		const { caller } = this.weighed, { seen } = this, callers = new Int32Array(stacks.length);
		let found = 0;
		for (let i = 0; i < stacks.length; i++) {
			const up = caller[stacks[i]];
			if (up && !seen[up]) {
				seen[up] = 1;
				callers[found++] = up;
			}
		}
		this.sides.forEach(({ sums }, side) => {
			const weight = weights[side];
			for (let i = 0; i < stacks.length; i++)
				sums[caller[stacks[i]]] += weight[i];
			sums[0] = 0;
		});
		for (let i = 0; i < found; i++)
			seen[callers[i]] = 0;
		return callers.subarray(0, found);
	}

	// Nodes for stacks by their places, the heaviest first.
	group(node, stacks) {
		const { weighed, nodes } = this, base = this.place.length, of = new Int32Array(stacks.length);
		for (let i = 0; i < stacks.length; i++) {
			const place = weighed.place[stacks[i]];
			of[i] = (nodes[place] ||= this.add(node, place)) - base;
		}
		const count = this.place.length - base, ends = new Int32Array(count + 1);
		for (let i = 0; i < of.length; i++)
			ends[of[i] + 1]++;
		for (let i = 0; i < count; i++)
			ends[i + 1] += ends[i];
		this.share(stacks, of, base, ends);
		const made = Array.from({ length: count }, (_, i) => base + i);
		made.forEach((child) => nodes[this.place[child]] = 0);
		return made.filter((child) => this.total[child] > 0)
			.sort((a, b) => this.total[b] - this.total[a] || a - b);
	}

	// Hands out the stacks, and what came through each, to the nodes of a group.
	share(stacks, of, base, ends) {
		const at = ends.slice(), list = new Int32Array(stacks.length);
		const weights = this.sides.map(() => new Float64Array(stacks.length));
		for (let i = 0; i < stacks.length; i++)
			list[of[i] = at[of[i]]++] = stacks[i];
		this.sides.forEach(({ sums }, side) => {
			for (let i = 0; i < stacks.length; i++) {
				weights[side][of[i]] = sums[stacks[i]];
				sums[stacks[i]] = 0;
			}
		});
		for (let i = 0; i + 1 < ends.length; i++) {
			const part = weights.map((weight) => weight.subarray(ends[i], ends[i + 1]));
			this.sides.forEach(({ total }, side) => total[base + i] = part[side].reduce((a, b) => a + b, 0));
			this.reached[base + i] = { stacks: list.subarray(ends[i], ends[i + 1]), weights: part };
		}
	}

	add(node, place) {
		this.caller.push(node);
		return this.place.push(place) - 1;
	}
}
