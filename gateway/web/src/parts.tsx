// SPDX-License-Identifier: GPL-3.0-or-later
// What panels share: asking again and again, errors, durations, sizes.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, whyNot } from "./api";
import { isUp, useConnection } from "./connection";

export interface Asked<T> {
	value: T | null;
	error: ApiError | null;
	/** When the value was had, in ms. */
	when: number;
	again: () => void;
}

/** So many processes are asked for less often. */
export const MANY = 60;

/**
 * What `ask` gives, asked again every `every` ms (0: once) while the page is visible, and when the gateway answers
 * again. A value stays when a later one cannot be had. `key` says what is asked for: another one begins anew.
 */
export function useAsked<T>(key: string, every: number, ask: () => Promise<T>): Asked<T> {
	const [state, set] = useState<{ key: string; value: T | null; error: ApiError | null; when: number }>({
		key, value: null, error: null, when: 0 });
	const [turn, setTurn] = useState(0);
	const connection = useConnection();
	const latest = useRef(ask);
	latest.current = ask;
	useEffect(() => {
		let over = false;
		let timer = 0;
		const go = async () => {
			if (isUp() && (!document.hidden || !every)) {
				try {
					const value = await latest.current();
					if (!over)
						set({ key, value, error: null, when: Date.now() });
				} catch (error) {
					const known = error instanceof ApiError ? error
						: new ApiError("failed", String(error), null);
					if (over)
						return;
					set((before) => ({ key, value: before.key === key ? before.value : null, error: known, when: before.when }));
					// It will not come back.
					if (known.code === "no_process")
						return;
				}
			}
			if (every && !over)
				timer = window.setTimeout(go, every);
		};
		void go();
		return () => {
			over = true;
			clearTimeout(timer);
		};
	}, [key, every, turn, connection.turn]);
	const again = useCallback(() => setTurn((n) => n + 1), []);
	return { ...(state.key === key ? state : { value: null, error: null, when: 0 }), again };
}

/** What `ask` gives, asked anew when `turn` is another: what is shown stays until then. */
export function useAskedAt<T>(key: string, turn: number | string, ask: () => Promise<T>): Asked<T> {
	const asked = useAsked(key, 0, ask);
	const was = useRef(turn);
	useEffect(() => {
		if (was.current !== turn)
			asked.again();
		was.current = turn;
	}, [turn]);
	return asked;
}

/** A stream that was cut, though the gateway answers, begins again after so long. */
const AGAIN_MS = 1000;

/**
 * What comes as events `name` at an address, while the page is visible and the gateway answers; null: nothing is
 * asked for. What came last stays. An event "failure" is an error, and the end.
 */
export function useStream<T>(address: string | null, name: string): Omit<Asked<T>, "again"> {
	const [state, set] = useState<{ address: string | null; value: T | null; error: ApiError | null; when: number }>({
		address, value: null, error: null, when: 0 });
	const { turn } = useConnection();
	useEffect(() => {
		let source: EventSource | null = null;
		let timer = 0;
		let over = false;
		const put = (value: T | null, error: ApiError | null) =>
			set((before) => ({ address, value: value ?? before.value, error, when: value ? Date.now() : before.when }));
		const end = () => {
			clearTimeout(timer);
			source?.close();
			source = null;
		};
		const failed = async (event: Event) => {
			end();
			if (event instanceof MessageEvent) {
				const { error } = JSON.parse(event.data);
				return put(null, new ApiError(error.code, error.message, error.hint));
			}
			// Why it failed is only told to a request.
			const error = await whyNot(address ?? "");
			if (over)
				return;
			if (error)
				put(null, error);
			else
				timer = window.setTimeout(begin, AGAIN_MS);
		};
		const begin = () => {
			if (document.hidden)
				return end();
			if (!address || source || !isUp())
				return;
			source = new EventSource(address);
			source.addEventListener(name, (event) => put(JSON.parse(event.data), null));
			source.addEventListener("failure", (event) => void failed(event));
			source.addEventListener("error", (event) => void failed(event));
		};
		begin();
		document.addEventListener("visibilitychange", begin);
		return () => {
			over = true;
			document.removeEventListener("visibilitychange", begin);
			end();
		};
	}, [address, name, turn]);
	return state;
}

export function Failure({ error }: { error: ApiError | null }) {
	if (!error)
		return null;
	return (
		<div class="failure" role="alert">
			<strong>{error.message}</strong>
			{/* A caret below a character needs letters of one width, and lines that are not broken. */}
			{error.hint && (error.hint.includes("\n") ? <pre tabIndex={0}>{error.hint}</pre> : <span> {error.hint}</span>)}
		</div>
	);
}

export function Fresh({ when }: { when: number }) {
	return <span class="fresh">{when ? `as of ${new Date(when).toLocaleTimeString()}` : "reading…"}</span>;
}

export function seconds(value: number | null): string {
	if (value === null)
		return "";
	if (value < 1)
		return `${Math.round(value * 1000)} ms`;
	if (value < 60)
		return `${value.toFixed(1)} s`;
	const minutes = Math.floor(value / 60);
	return minutes < 60 ? `${minutes} m ${Math.floor(value % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}

export function bytes(value: number | null | undefined): string {
	if (value === null || value === undefined)
		return "";
	const units = ["B", "kB", "MB", "GB", "TB"];
	let unit = 0;
	while (value >= 1024 && unit < units.length - 1) {
		value /= 1024;
		unit++;
	}
	return `${value < 10 && unit ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export const count = (value: number) => value.toLocaleString("en");

/** A text in parts, of which each that may name a thread or a process is alone: no duration, size, descriptor or address. */
export const byNumbers = (text: string) =>
	text.split(/((?<![\w.:/]|\b(?:socket|pipe|epoll|\w*fd|file|port|line|step|rank) )\d{2,}(?![\w.:/]| (?:[mµn]?s|m|h|%|[kMGT]?i?B)\b))/);

/** What is this short is not broken into lines. */
const SHORT = 24;

const isNumber = (cell: string) => /^[+−]?[\d.,]+( ([kMGT]?B|%|m?s))?$/.test(cell);

/** Texts in rows; nothing if there are none. It scrolls in itself; numbers are at the right. A column without texts is left out. */
export function Table({ caption, heads: all, rows: given }: { caption: string; heads: string[]; rows: string[][] }) {
	if (!given.length)
		return null;
	const filled = (_: string, place: number) => given.some((row) => row[place]);
	const heads = all.filter(filled);
	const rows = given.map((row) => row.filter(filled));
	const numbers = heads.map((_, place) => rows.every((row) => !row[place] || isNumber(row[place] ?? "")) && rows.some((row) => row[place]));
	return (
		<div class="wide" role="region" aria-label={caption} tabIndex={0}>
			<table>
				<thead><tr>{heads.map((head, place) => <th key={head} scope="col" class={numbers[place] ? "number" : ""}>{head}</th>)}</tr></thead>
				<tbody>
					{rows.map((row, index) => (
						<tr key={index}>{row.map((cell, place) => <td key={place} class={isNumber(cell) ? "number" : cell.length <= SHORT ? "short" : "value"}>{cell}</td>)}</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

/** Characters of a value that are shown without a click; fewer of one whose parts are below it. */
const CUT = 120;
const CUT_OPEN = 40;
/** A character that is there again and again, as in a buffer of zeros. */
const RUN = /(\\x[0-9a-f]{2}|[^\s\d])\1{7,}/g;

/** A long text is cut, and shown whole on a click. */
export function Value({ text, open }: { text: string | null; open: boolean }) {
	const [whole, setWhole] = useState(false);
	const most = open ? CUT_OPEN : CUT;
	if (text === null || text.length <= most || whole)
		return <span class="value">{text ?? "computed"}</span>;
	const short = text.replace(RUN, "$1$1…");
	return (
		<span class="value">
			{short.slice(0, most)}{short.length > most && "…"}{" "}
			<button type="button" class="more" onClick={() => setWhole(true)}>show {text.length} characters</button>
		</span>
	);
}
