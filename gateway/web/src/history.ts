// SPDX-License-Identifier: GPL-3.0-or-later
// What this page has seen of processes: processor and memory of the last ten minutes.
import type * as api from "./api";

const KEPT_S = 600;
/** A point for so many seconds, so that ten minutes are 120 points. */
const STEP_S = 5;

export interface Past {
	times: number[];
	cpu: number[];
	rss: number[];
}

const past = new Map<string, Past>();

/** Notes one look at all targets. */
export function noteLook(time: number, targets: api.Seen[]): void {
	const there = new Set(targets.filter(({ ended }) => !ended).map(({ id }) => id));
	for (const one of targets) {
		if (one.ended)
			continue;
		const known = past.get(one.id) ?? { times: [], cpu: [], rss: [] };
		if (time - (known.times[known.times.length - 1] ?? 0) >= STEP_S) {
			known.times.push(time);
			known.cpu.push(one.cpu_percent ?? 0);
			known.rss.push(one.rss ?? 0);
			while ((known.times[0] ?? time) < time - KEPT_S)
				[known.times, known.cpu, known.rss].forEach((list) => list.shift());
		}
		past.set(one.id, known);
	}
	for (const id of past.keys())
		if (!there.has(id))
			past.delete(id);
}

export const pastOf = (id: string): Past | undefined => past.get(id);

/** The points of a line in a box. */
export function points(times: number[], values: number[], width: number, height: number, most: number): string {
	const end = times[times.length - 1] ?? 0;
	return times.map((time, index) =>
		`${(width * (1 - (end - time) / KEPT_S)).toFixed(1)},${(height - height * Math.min(1, (values[index] ?? 0) / (most || 1))).toFixed(1)}`).join(" ");
}
