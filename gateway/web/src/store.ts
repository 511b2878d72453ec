// SPDX-License-Identifier: GPL-3.0-or-later
// What outlives a panel and is no address: pauses that this page holds, what was run, saved queries.
import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import { ApiError } from "./api";

/** A pause lasts as long as this page waits for its end: a page that is closed holds nothing. */
export interface Held {
	state: "asked" | "paused" | "ended";
	since: number;
	told: string;
	error: ApiError | null;
	ending: AbortController;
}

export interface Ran {
	code: string;
	answer: api.Evaluated | null;
	error: ApiError | null;
}

const held = new Map<string, Held>();
const ran = new Map<string, Ran[]>();
const listeners = new Set<() => void>();
const QUERIES = "probing.queries";

function changed() {
	listeners.forEach((tell) => tell());
}

export function asError(caught: unknown): ApiError {
	return caught instanceof ApiError ? caught : new ApiError("failed", String(caught), null);
}

/** Has the component drawn again when something here changes. */
export function useStore() {
	const [, set] = useState(0);
	useEffect(() => {
		const tell = () => set((turn) => turn + 1);
		listeners.add(tell);
		return () => {
			listeners.delete(tell);
		};
	}, []);
	return { held, ran };
}

export async function pause(id: string, options: { max: number; hard: boolean }) {
	const one: Held = { state: "asked", since: Date.now(), told: "", error: null, ending: new AbortController() };
	held.set(id, one);
	changed();
	try {
		await api.pause(id, options, one.ending.signal, (line) => {
			one.state = line.event === "paused" ? "paused" : "ended";
			one.told = line.event === "paused" ? "" : `ran again after ${((line.held_us ?? 0) / 1e6).toFixed(1)} s: ${line.reason}`;
			changed();
		});
	} catch (caught) {
		if (!one.ending.signal.aborted)
			one.error = asError(caught);
	}
	one.state = "ended";
	changed();
}

export async function run(id: string, code: string, thread: api.Where) {
	const one: Ran = { code, answer: null, error: null };
	ran.set(id, [...(ran.get(id) ?? []), one].slice(-200));
	changed();
	try {
		one.answer = await api.run(id, code, thread);
	} catch (caught) {
		one.error = asError(caught);
	}
	changed();
}

export function forgetRuns(id: string) {
	ran.delete(id);
	changed();
}

/** By name. They stay in this browser. */
export function savedQueries(): Record<string, string> {
	try {
		const found: unknown = JSON.parse(localStorage.getItem(QUERIES) ?? "{}");
		return Object.fromEntries(Object.entries(found as object).filter(([, sql]) => typeof sql === "string"));
	} catch {
		return {};
	}
}

/** Without `sql`, the query goes. */
export function saveQuery(name: string, sql: string | null) {
	const { [name]: _, ...others } = savedQueries();
	localStorage.setItem(QUERIES, JSON.stringify(sql === null ? others : { ...others, [name]: sql }));
	changed();
}
