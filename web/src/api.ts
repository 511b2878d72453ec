// SPDX-License-Identifier: GPL-3.0-or-later
// The requests of docs/http-api.md. The session is a cookie; the header shows that a page of ours asks.

export interface Target {
	id: string;
	kind: "process" | "file";
	ended: boolean;
	pid?: number;
	file?: string;
	version?: string | null;
	threads?: number;
	rank?: number | null;
	argv?: string[];
	agent?: string | null;
	paused?: { pid: number; by: string; since: number } | null;
	unreadable?: string | null;
}

/** What is known of it now; null is what cannot be known. */
export interface Seen extends Omit<Target, "threads" | "agent" | "paused"> {
	threads: number | null;
	cpu_seconds: number | null;
	cpu_percent: number | null;
	rss: number | null;
	swap: number | null;
	limit: number | null;
	limit_used: number | null;
	main: {
		tid: number | null;
		state: string;
		idle_seconds: number | null;
		waits_for: string | null;
		func: string | null;
		qualname: string | null;
		file: string | null;
		line: number | null;
	} | null;
	step: number | null;
	gil_holder: number | null;
	gil_waiters: number;
	troubles: string[];
}

export interface Overview {
	/** Seconds since the epoch. */
	time: number | null;
	seconds: number;
	targets: Seen[];
}

export interface Skill {
	name: string;
	title: string;
}

export interface Section {
	title: string;
	text: string;
	sql: string | null;
	error: string | null;
	rows: Row[] | null;
}

export interface Server {
	version: string;
	allow_write: boolean;
	all: boolean;
}

export interface Local {
	name: string;
	kind: string;
	type: string | null;
	value: string | null;
}

export interface Frame {
	kind: "python" | "native" | "inline";
	func: string;
	qualname: string | null;
	module: string | null;
	file: string | null;
	line: number | null;
	error: string | null;
	source?: string | null;
	locals?: Local[];
}

export interface Thread {
	tid: number | null;
	name: string | null;
	os_name: string | null;
	state: string;
	idle_seconds: number | null;
	waits_for: string | null;
	gil: "holds" | "waits" | null;
	gc: boolean;
	error: string | null;
	note?: string | null;
	frames: Frame[];
}

export interface Dump {
	target: { pid: number | null; argv: string[]; python: { version: string } | null };
	timestamp: number;
	pause_us: number;
	paused_threads: number;
	warnings: string[];
	threads: Thread[];
}

export interface Profile {
	id: string;
	target: string;
	/** A recording that was named when the gateway was started. */
	file?: string;
	started: number | null;
	duration: number | null;
	state: "running" | "finished" | "failed";
	stopped: boolean;
	error: string | null;
}

export interface Table {
	schema: string;
	name: string;
	doc: string;
	columns: { name: string; type: string; unit: string | null; doc: string; hidden: boolean }[];
}

export interface Value {
	expression: string;
	type: string;
	value: string;
	address: number | null;
	changed: boolean;
}

export interface Evaluated {
	outcome: string;
	stdout: string;
	stderr: string;
	value: string | null;
	traceback: string | null;
}

export interface Stepped {
	tid?: number;
	func?: string;
	qualname?: string;
	file?: string;
	line?: number;
	source?: string;
}

/** Lines of `pause`: the first is "paused". */
export interface Pause {
	event: "paused" | "resumed";
	max_seconds?: number;
	held_us?: number;
	reason?: string;
}

export interface Census {
	interpreter: number;
	error: string | null;
	objects: number;
	bytes: number;
	unheld_objects: number;
	unheld_bytes: number;
	garbage_objects: number;
	garbage_bytes: number;
	seconds: number;
	doubt: string | null;
	small_objects: { arenas: number; arena_bytes: number; used: number; free: number; unused: number } | null;
	types: { type: string; objects: number; bytes: number; owned: number }[];
	tensors: { device: string | null; dtype: string; tensors: number; gradients: number; bytes: number }[];
	largest_tensors: { holder: string; gradient: boolean; dtype: string; shape: number[]; bytes: number }[];
}

export interface Memory {
	process: Record<"rss" | "peak" | "pss" | "anonymous" | "file" | "shared" | "swap" | "limit" | "limit_used", number | null>;
	error: string | null;
	interpreters: Census[];
}

export interface Growth {
	seconds: number;
	interpreters: {
		interpreter: number;
		error?: string | null;
		objects: number;
		bytes: number;
		doubt: string | null;
		types: { type: string; objects: number; bytes: number }[];
		holders: { holder: string | null; type: string | null; garbage: boolean; objects: number; bytes: number; example: string | null }[];
	}[];
}

export type Row = Record<string, string | number | null>;

export class ApiError extends Error {
	constructor(readonly code: string, message: string, readonly hint: string | null) {
		super(message);
	}
}

export interface Answer<T> {
	value: T;
	warnings: string[];
}

async function send(path: string, method: string, body: unknown, signal: AbortSignal | undefined): Promise<Response> {
	try {
		return await fetch(path, {
			method,
			credentials: "same-origin",
			signal: signal ?? null,
			headers: { "Probing-Request": "1", ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
			body: body === undefined ? null : JSON.stringify(body),
		});
	} catch (error) {
		if (error instanceof DOMException && error.name === "AbortError")
			throw error;
		throw new ApiError("gone", "the gateway does not answer", "has 'probing serve' ended?");
	}
}

function parse(text: string) {
	try {
		return JSON.parse(text);
	} catch {
		throw new ApiError("failed", "the answer was cut", null);
	}
}

async function ask<T>(path: string, method = "GET", body?: unknown, signal?: AbortSignal): Promise<Answer<T>> {
	const response = await send(path, method, body, signal);
	const value = parse(await response.text());
	if (!response.ok)
		throw new ApiError(value.error.code, value.error.message, value.error.hint);
	const warning = response.headers.get("Probing-Warning");
	return { value, warnings: warning ? [warning] : [] };
}

/** Each line of the answer as it comes. */
async function lines<T>(path: string, body: unknown, signal: AbortSignal, tell: (line: T) => void): Promise<void> {
	const response = await send(path, "POST", body, signal);
	if (!response.ok || !response.body) {
		const { error } = parse(await response.text());
		throw new ApiError(error.code, error.message, error.hint);
	}
	const reader = response.body.getReader();
	const decoder = new TextDecoder();
	let left = "";
	for (;;) {
		const { done, value } = await reader.read();
		left += decoder.decode(value, { stream: !done });
		const whole = left.split("\n");
		left = whole.pop() ?? "";
		whole.forEach((line) => tell(parse(line)));
		if (done)
			return;
	}
}

const at = (id: string) => `/v1/targets/${encodeURIComponent(id)}`;
const parameters = (values: Record<string, string | number | boolean | undefined>) => {
	const list = new URLSearchParams();
	for (const [name, value] of Object.entries(values))
		if (value !== undefined && value !== false && value !== "")
			list.set(name, value === true ? "1" : String(value));
	return list.size ? `?${list}` : "";
};

export const overview = async () => (await ask<Overview>("/v1/overview")).value;
export const skills = async () => (await ask<Skill[]>("/v1/skills")).value;
export const skill = async (id: string, name: string) => (await ask<Section[]>(`${at(id)}/skills/${name}`)).value;
export const targets = async () => (await ask<{ targets: Target[] }>("/v1/targets")).value.targets;
export const stacks = async (id: string, options: { native?: boolean; locals?: boolean; source?: boolean; tid?: number }) =>
	(await ask<Dump>(`${at(id)}/stacks${parameters(options)}`)).value;
export const query = (id: string | null, sql: string, signal?: AbortSignal) =>
	ask<Row[]>(id === null ? "/v1/query" : `${at(id)}/query`, "POST", { sql }, signal);
export const eventsLink = (id: string, options: { native?: boolean; source?: boolean; every?: number }) => `${at(id)}/events${parameters(options)}`;
export const queryLink = (id: string, sql: string, format: string) =>
	`${at(id)}/query${parameters({ sql, format })}`;
export const tables = async () => (await ask<Table[]>("/v1/tables")).value;
export const value = async (id: string, expression: string, frame: { tid?: number; frame?: number }) =>
	(await ask<Value>(`${at(id)}/value${parameters({ expression, ...frame })}`)).value;
export const profiles = async () => (await ask<{ profiles: Profile[] }>("/v1/profiles")).value.profiles;
export const record = async (id: string, options: { duration: number; mode: string; native: boolean }) =>
	(await ask<Profile>(`${at(id)}/profiles`, "POST", options)).value;
export const stop = (id: string) => ask(`/v1/profiles/${id}/stop`, "POST");
export const forget = (id: string) => ask(`/v1/profiles/${id}`, "DELETE");
export const profileLink = (id: string, format: string, before?: string) => `/v1/profiles/${id}${parameters({ format, before })}`;
export const snapshotLink = (id: string) => `${at(id)}/snapshot`;
export const server = async () => (await ask<Server>("/v1")).value;
export const memory = async (id: string) => (await ask<Memory>(`${at(id)}/memory`)).value;
export const growth = async (id: string, seconds: number, signal: AbortSignal) =>
	(await ask<Growth>(`${at(id)}/memory${parameters({ growth: seconds })}`, "GET", undefined, signal)).value;
export const evaluate = async (id: string, code: string, thread: string) =>
	(await ask<Evaluated>(`${at(id)}/eval`, "POST", { code, thread })).value;
export const pause = (id: string, options: { max: number; hard: boolean }, signal: AbortSignal, tell: (line: Pause) => void) =>
	lines(`${at(id)}/pause`, options, signal, tell);
export const resume = (id: string) => ask(`${at(id)}/resume`, "POST");
export const step = async (id: string, options: { over?: boolean; out?: boolean; tid?: number; time?: number }) =>
	(await ask<Stepped>(`${at(id)}/step`, "POST", options)).value;
export const debugpy = async (id: string, port: number) => (await ask<object>(`${at(id)}/debugpy`, "POST", { port })).value;
