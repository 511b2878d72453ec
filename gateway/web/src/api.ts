// SPDX-License-Identifier: GPL-3.0-or-later
// The requests of docs/http-api.md. Addresses, parameters and answers are typed by what `npm run generate`
// makes of docs/openapi.json. The session is a cookie; the header shows that a page of ours asks.
import createClient, { createFinalURL, createQuerySerializer, defaultPathSerializer } from "openapi-fetch";
import type { components, paths } from "../generated/schema";
import { note } from "./connection";

type Schemas = components["schemas"];
export type Target = Schemas["listed"];
export type Seen = Schemas["seen"];
/** What the judge says, as `probing why --json` has it. */
export interface Finding {
	id: string;
	pid: number | null;
	rule: string;
	kind: string;
	sentence: string;
	proof: boolean;
	confidence: "high" | "medium" | "low";
	evidence: { tid: number | null; text: string }[];
	rests_on: string | null;
	wrong_if: string | null;
	next: string | null;
	tids: number[];
	pids: number[];
}
export type SeenJob = Schemas["seen_job"];
export type Job = Schemas["job"];
export type JobNode = Schemas["job_node"];
export type JobRank = Schemas["job_rank"];
export type Skill = Schemas["skill"];
export type Thread = Schemas["thread"];
export type Dump = Schemas["dump"];
export type Profile = Schemas["profile"];
export type Table = Schemas["table"];
export type Evaluated = Schemas["evaluated"];
export type Stepped = Schemas["stepped"];
export type Pause = Schemas["pause"];
export type Census = Schemas["census"];
export type Memory = Schemas["memory"];
export type Growth = Schemas["growth"];
export type InferenceServer = Schemas["inference_server"];
export type Row = Schemas["row"];
export type Dashboard = Schemas["dashboard"];
export type DashboardChart = Schemas["dashboard_chart"];

export class ApiError extends Error {
	constructor(readonly code: string, message: string, readonly hint: string | null) {
		super(message);
	}
}

export interface Answer<T> {
	value: T;
	warnings: string[];
}

interface Reply {
	data?: unknown;
	error?: Schemas["error"];
	response: Response;
}

async function send(request: Request): Promise<Response> {
	try {
		const response = await fetch(request);
		if (response.status)
			note(response.status === 401 ? "locked" : "up");
		return response;
	} catch (error) {
		if (error instanceof DOMException && error.name === "AbortError")
			throw error;
		note("gone");
		throw new ApiError("gone", "the gateway does not answer", "has 'probing serve' ended?");
	}
}

const client = createClient<paths>({ credentials: "same-origin", headers: { "Probing-Request": "1" }, fetch: send });

/** The data of an answer; throws its error. */
async function whole<R extends Reply>(asked: Promise<R>): Promise<Answer<NonNullable<R["data"]>>> {
	let reply: R;
	try {
		reply = await asked;
	} catch (error) {
		throw error instanceof ApiError || error instanceof DOMException ? error : new ApiError("failed", "the answer was cut", null);
	}
	if (reply.error)
		throw new ApiError(reply.error.error.code, reply.error.error.message, reply.error.error.hint);
	const warning = reply.response.headers.get("Probing-Warning");
	return { value: reply.data as NonNullable<R["data"]>, warnings: warning ? [warning] : [] };
}

const value = async <R extends Reply>(asked: Promise<R>) => (await whole(asked)).value;

/** Each part of a body as it comes. */
async function each(body: ReadableStream<Uint8Array>, tell: (part: Uint8Array) => void): Promise<void> {
	const reader = body.getReader();
	for (;;) {
		const { done, value: part } = await reader.read().catch((error: unknown) => {
			throw error instanceof DOMException ? error : new ApiError("failed", "the answer was cut", null);
		});
		if (done)
			return;
		tell(part);
	}
}

type Posts<P extends keyof paths> = paths[P] extends { post: { requestBody?: { content: { "application/json": infer B } } } } ? B : never;
export type Where = NonNullable<Posts<"/v1/targets/{id}/eval">["thread"]>;
export type Recorded = Posts<"/v1/targets/{id}/profiles">;

type Gets = { [P in keyof paths]: paths[P] extends { get: { parameters: infer A } } ? A : never };

/** An address for a link, of a request that is one. */
function address<P extends keyof paths>(path: P, params: Gets[P]): string {
	const { path: names, query } = params as { path?: Record<string, unknown>; query?: Record<string, unknown> };
	const given = Object.fromEntries(Object.entries(query ?? {}).filter(([, one]) => one !== undefined && one !== false));
	return createFinalURL(path, {
		baseUrl: "", params: { ...(names ? { path: names } : {}), query: given },
		querySerializer: createQuerySerializer(), pathSerializer: defaultPathSerializer });
}

const at = (id: string) => ({ path: { id } });

/** Gives the token, for a cookie. */
export async function login(token: string): Promise<void> {
	const response = await send(new Request("/login", { method: "POST", body: new URLSearchParams({ token }), redirect: "manual" }));
	if (response.status === 429)
		throw new ApiError("permission", "too many wrong tokens came from here", "try again later");
	if (response.status)
		throw new ApiError("permission", "that token is wrong", null);
	await server();
}

/** Why a stream at this address failed; null: it would be answered now. */
export async function whyNot(address: string): Promise<ApiError | null> {
	const ending = new AbortController();
	try {
		const response = await send(new Request(address, { signal: ending.signal }));
		if (response.ok)
			return null;
		const { error } = await response.json() as Schemas["error"];
		return new ApiError(error.code, error.message, error.hint);
	} catch (error) {
		return error instanceof ApiError ? error : new ApiError("failed", "the answer was cut", null);
	} finally {
		ending.abort();
	}
}

export const server = () => value(client.GET("/v1"));
/** Early: also before all are judged, as `pending` says. */
export const overview = async (early = false) => await value(client.GET("/v1/overview", { params: { query: { early } } })) as Schemas["overview"] & { findings: Finding[] };
export const job = (query: Gets["/v1/job"]["query"]) => value(client.GET("/v1/job", { params: { query } }));
export const skills = () => value(client.GET("/v1/skills"));
export const skill = (id: string, name: string) =>
	value(client.GET("/v1/targets/{id}/skills/{skill}", { params: { path: { id, skill: name } } }));
export const targets = async () => (await value(client.GET("/v1/targets"))).targets;
export const stacks = (id: string, query: Gets["/v1/targets/{id}/stacks"]["query"]) =>
	value(client.GET("/v1/targets/{id}/stacks", { params: { ...at(id), query } }));
export const query = (id: string, sql: string, signal?: AbortSignal) =>
	whole(client.POST("/v1/targets/{id}/query", { params: at(id), body: { sql }, signal: signal ?? null }));
export const queryAll = (sql: string) => whole(client.POST("/v1/query", { body: { sql } }));
export const dashboards = () => value(client.GET("/v1/dashboards"));
export const dashboard = (name: string) => value(client.GET("/v1/dashboards/{dashboard}", { params: { path: { dashboard: name } } }));
export const saveDashboard = (name: string, board: Dashboard) =>
	value(client.POST("/v1/dashboards/{dashboard}", { params: { path: { dashboard: name } }, body: { json: JSON.stringify(board) } }));
export const removeDashboard = (name: string) => value(client.DELETE("/v1/dashboards/{dashboard}", { params: { path: { dashboard: name } } }));
export const tables = () => value(client.GET("/v1/tables"));
export const evaluated = (id: string, expression: string, frame: { tid?: number; frame?: number }) =>
	value(client.GET("/v1/targets/{id}/value", { params: { ...at(id), query: { expression, "max-items": 20, "max-value": 200, ...frame } } }));
export const profiles = async () => (await value(client.GET("/v1/profiles"))).profiles;
export const record = (id: string, options: Recorded) =>
	value(client.POST("/v1/targets/{id}/profiles", { params: at(id), body: options }));
export const stop = (profile: string) => value(client.POST("/v1/profiles/{profile}/stop", { params: { path: { profile } } }));
export const nameRecording = (profile: string, texts: { name: string; note: string }) =>
	value(client.POST("/v1/profiles/{profile}", { params: { path: { profile } }, body: texts }));
export const forget = (profile: string) => value(client.DELETE("/v1/profiles/{profile}", { params: { path: { profile } } }));
export const memory = async (id: string) => await value(client.GET("/v1/targets/{id}/memory", { params: at(id) })) as Memory;
export const inference = (id: string) => value(client.GET("/v1/targets/{id}/server", { params: at(id) }));
export const growth = async (id: string, seconds: number, signal: AbortSignal) =>
	await value(client.GET("/v1/targets/{id}/memory", { params: { ...at(id), query: { growth: seconds } }, signal })) as Growth;
export const run = (id: string, code: string, thread: Where) =>
	value(client.POST("/v1/targets/{id}/eval", { params: at(id), body: { code, thread } }));
export const resume = (id: string) => value(client.POST("/v1/targets/{id}/resume", { params: at(id) }));
export const step = (id: string, body: { over?: boolean; out?: boolean; tid?: number; time?: number }) =>
	value(client.POST("/v1/targets/{id}/step", { params: at(id), body }));
export const debugpy = (id: string, port: number) => value(client.POST("/v1/targets/{id}/debugpy", { params: at(id), body: { port } }));

/** Lasts as long as the pause; passes each line of the answer to tell(). */
export async function pause(id: string, body: { max: number; hard: boolean }, signal: AbortSignal, tell: (line: Pause) => void) {
	const stream = await value(client.POST("/v1/targets/{id}/pause", { params: at(id), body, signal, parseAs: "stream" }));
	const decoder = new TextDecoder();
	let left = "";
	await each(stream, (part) => {
		left += decoder.decode(part, { stream: true });
		const lines = left.split("\n");
		left = lines.pop() ?? "";
		lines.forEach((line) => tell(JSON.parse(line)));
	});
}

/** Passes on the name of what an answer opens, then all that it says. */
async function follow(asked: Promise<Reply & { data?: ReadableStream<Uint8Array> | null }>, named: (name: string) => void,
	tell: (part: Uint8Array) => void) {
	const stream = await value(asked);
	named((await asked).response.headers.get("Probing-Terminal") ?? "");
	await each(stream, tell);
}

/**
 * Opens a prompt in a terminal, and passes its output on until it ends; `named` gets its name
 * first.
 */
export async function terminal(id: string, body: { rows: number; columns: number; thread: Where }, signal: AbortSignal,
	named: (name: string) => void, tell: (part: Uint8Array) => void) {
	await follow(client.POST("/v1/targets/{id}/repl", { params: at(id), body, signal, parseAs: "stream" }), named, tell);
}

/** Opens a session of the Debug Adapter Protocol, and passes what it says on until it ends. */
export async function session(id: string, signal: AbortSignal, named: (name: string) => void, tell: (part: Uint8Array) => void) {
	await follow(client.POST("/v1/targets/{id}/dap", { params: at(id), signal, parseAs: "stream" }), named, tell);
}

export const enter = (name: string, body: { input?: string; rows?: number; columns?: number }) =>
	value(client.POST("/v1/terminals/{terminal}", { params: { path: { terminal: name } }, body }));

export const eventsLink = (id: string, query: Gets["/v1/targets/{id}/events"]["query"]) => address("/v1/targets/{id}/events", { ...at(id), query });
export const queryLink = (id: string, sql: string, format: Gets["/v1/targets/{id}/query"]["query"]["format"]) => address("/v1/targets/{id}/query", { ...at(id), query: { sql, format } });
export const profileLink = (profile: string, format: NonNullable<Gets["/v1/profiles/{profile}"]["query"]>["format"], before?: string) =>
	address("/v1/profiles/{profile}", { path: { profile }, query: { format, before } });
export const recorders = async (id: string) => (await value(client.GET("/v1/targets/{id}/recorders", { params: at(id) }))).recorders;
export const recentLink = (id: string) => address("/v1/targets/{id}/recent", at(id));
export const snapshotLink = (id: string) => address("/v1/targets/{id}/snapshot", at(id));
