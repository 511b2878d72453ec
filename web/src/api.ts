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
	unreadable?: string | null;
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
	started: number;
	duration: number;
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

async function ask<T>(path: string, method = "GET", body?: unknown, signal?: AbortSignal): Promise<Answer<T>> {
	let response: Response;
	try {
		response = await fetch(path, {
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
	const text = await response.text();
	let value;
	try {
		value = JSON.parse(text);
	} catch {
		throw new ApiError("failed", "the answer was cut", null);
	}
	if (!response.ok)
		throw new ApiError(value.error.code, value.error.message, value.error.hint);
	const warning = response.headers.get("Probing-Warning");
	return { value, warnings: warning ? [warning] : [] };
}

const at = (id: string) => `/v1/targets/${encodeURIComponent(id)}`;
const parameters = (values: Record<string, string | number | boolean | undefined>) => {
	const list = new URLSearchParams();
	for (const [name, value] of Object.entries(values))
		if (value !== undefined && value !== false && value !== "")
			list.set(name, value === true ? "1" : String(value));
	return list.size ? `?${list}` : "";
};

export const targets = async () => (await ask<{ targets: Target[] }>("/v1/targets")).value.targets;
export const stacks = async (id: string, options: { native?: boolean; locals?: boolean; tid?: number }) =>
	(await ask<Dump>(`${at(id)}/stacks${parameters(options)}`)).value;
export const query = (id: string | null, sql: string, signal?: AbortSignal) =>
	ask<Row[]>(id === null ? "/v1/query" : `${at(id)}/query`, "POST", { sql }, signal);
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
export const profileLink = (id: string, format: string) => `/v1/profiles/${id}${parameters({ format })}`;
export const snapshotLink = (id: string) => `${at(id)}/snapshot`;
