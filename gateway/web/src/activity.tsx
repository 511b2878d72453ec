// SPDX-License-Identifier: GPL-3.0-or-later
// Live stacks of one target. Threads with the same stack are shown once; a click shows variables.
import { useRef, useState } from "preact/hooks";
import * as api from "./api";
import { Field } from "./field";
import { Verdicts } from "./findings";
import { Failure, Fresh, Table, Value, byNumbers, seconds, useAsked, useAskedAt, useStream } from "./parts";
import { change, link, type Route } from "./route";
import { pidOf } from "./target";
import { WaitsOfTasks, WaitsOfThreads } from "./waits";

interface Group {
	key: string;
	threads: api.Thread[];
}

const shown = (thread: api.Thread) => thread.name ?? thread.os_name ?? "";

/** A wait without the times in it. */
const steady = (wait: string) => wait.replace(/[\d.]+ (?=[mµ]?s\b)/g, "N ");

function fold(threads: api.Thread[], filter: string, before: api.Dump | null): Group[] {
	const groups = new Map<string, Group>();
	for (const thread of threads) {
		const text = [shown(thread), thread.waits_for ?? "", ...thread.frames.map((frame) => `${frame.func} ${frame.file}`)].join(" ");
		if (filter && !text.toLowerCase().includes(filter.toLowerCase()))
			continue;
		const same = thread.frames.map((frame) => `${frame.func}\0${frame.file}\0${frame.line}`).join("\n");
		// Of times alone it does not matter that they differ: an owner, a socket or a file is what is waited for.
		const key = `${thread.state}\n${thread.gil}\n${steady(thread.waits_for ?? "")}\n${same}${before ? `\n${moved(thread, before)}` : ""}`;
		const group = groups.get(key);
		if (group)
			group.threads.push(thread);
		else
			groups.set(key, { key, threads: [thread] });
	}
	return [...groups.values()].sort((a, b) => weight(a) - weight(b));
}

function weight({ threads }: Group): number {
	const [first] = threads;
	return first?.gil === "holds" ? 0 : first?.state === "running" ? 1 : first?.gil === "waits" ? 2 : 3;
}

/** A wait names threads and processes by their numbers: those that we can show become links. */
function Wait({ text, tids, targets, id }: { text: string; tids: Set<string>; targets: Map<string, string>; id: string }) {
	return (
		<span class="wait">
			{byNumbers(text).map((part) =>
				tids.has(part) ? <a href={link("activity", { target: id, tid: part })}>{part}</a>
					: targets.has(part) ? <a href={link("activity", { target: targets.get(part) })}>{part}</a> : part)}
		</span>
	);
}

export function Locals({ id, tid, place }: { id: string; tid: number; place: number }) {
	const asked = useAsked(`locals ${id} ${tid}`, 0, () => api.stacks(id, { tid, locals: true }));
	const python = asked.value?.threads[0]?.frames.filter((frame) => frame.kind === "python") ?? [];
	const frame = python[python.length - 1 - place];
	return (
		<div class="locals">
			<Failure error={asked.error} />
			{asked.value && !frame && <p>This call has returned.</p>}
			{frame && !frame.locals?.length && <p>No variables.</p>}
			{frame?.locals && (
				<table>
					<tbody>
						{frame.locals.map((local) => (
							<tr key={local.name}>
								<th scope="row">
									<a href={link("inspect", { target: id, tid, frame: python.length - 1 - place, expression: local.name })}>{local.name}</a>
								</th>
								<td>{local.type}</td>
								<td>{local.value === null ? "not set" : <Value text={local.value} open={false} />}</td>
							</tr>
						))}
					</tbody>
				</table>
			)}
		</div>
	);
}

export function Stack({ thread, id }: { thread: api.Thread; id: string }) {
	const [open, setOpen] = useState<number | null>(null);
	// Counted from the outermost, so that it stays the same call while others come and go.
	let place = thread.frames.filter((frame) => frame.kind === "python").length;
	return (
		<ol class="frames">
			{thread.frames.map((frame, index) => {
				const mine = frame.kind === "python" ? --place : -1;
				const tid = thread.tid;
				return (
					<li key={index} class={frame.kind}>
						{mine >= 0 && tid !== null ? (
							<button type="button" aria-expanded={open === mine} title="Variables"
								onClick={() => setOpen(open === mine ? null : mine)}>
								{frame.qualname ?? frame.func}
							</button>
						) : <span class="name">{frame.qualname ?? frame.func}</span>}
						<span class="place">{frame.file ?? frame.module ?? ""}{frame.line !== null && `:${frame.line}`}</span>
						{frame.source && <code class="source">{frame.source.trim()}</code>}
						{frame.error && <span class="mark">{frame.error}</span>}
						{open === mine && mine >= 0 && tid !== null && <Locals id={id} tid={tid} place={mine} />}
					</li>
				);
			})}
		</ol>
	);
}

/** Names of threads with the same stack that are shown without a click. */
const FEW = 4;

function Names({ threads }: { threads: api.Thread[] }) {
	const names = threads.map(shown);
	if (names.length <= FEW)
		return <span title={threads.map((thread) => `${thread.tid} ${shown(thread)}`).join("\n")}>{names.length} threads: {names.join(", ")}</span>;
	return (
		<details class="names">
			<summary>{names.length} threads: {names.slice(0, FEW).join(", ")} and {names.length - FEW} more</summary>
			{threads.map((thread) => `${thread.tid} ${shown(thread)}`).join(", ")}
		</details>
	);
}

function Threads({ group, id, tids, targets, before }: { group: Group; id: string; tids: Set<string>; targets: Map<string, string>; before: api.Dump | null }) {
	const first = group.threads[0];
	if (!first)
		return null;
	return (
		<article class={`thread ${first.state}`} id={first.tid === null ? undefined : `thread-${first.tid}`}>
			<h3>
				{group.threads.length > 1
					? <Names threads={group.threads} />
					: <span>{first.tid} {shown(first)}</span>}
				<span class={`state ${first.state}`}>{first.state}</span>
				{first.gil && <span class="mark">{first.gil === "holds" ? "holds the GIL" : "waits for the GIL"}</span>}
				{first.gc && <span class="mark">collects garbage</span>}
				{first.state !== "running" && first.idle_seconds !== null && <span>{seconds(first.idle_seconds)}</span>}
				{before && <span class="compared">{moved(first, before)}</span>}
				{first.waits_for && <Wait text={first.waits_for} tids={tids} targets={targets} id={id} />}
			</h3>
			{first.error && <p class="failure">{first.error}</p>}
			<Stack thread={first} id={id} />
		</article>
	);
}

/** How often tasks are read, which takes longer than stacks. */
const TASKS_MS = 5000;
const TASKS = "SELECT name, coro, state, waits_for, awaiters, chain, file, lineno FROM python.tasks ORDER BY waits_for, name LIMIT 1000";

const GREENLETS = "SELECT type, waits_for, chain, file, lineno FROM python.greenlets WHERE state = 'suspended' ORDER BY waits_for LIMIT 1000";

const text = (value: api.Row[string] | undefined) => value === null || value === undefined ? "" : String(value);

/** Rows that are the same in the columns are one group, in the order of its first row. */
function alike(rows: api.Row[], columns: string[]): api.Row[][] {
	const groups = new Map<string, api.Row[]>();
	for (const row of rows) {
		const key = columns.map((name) => row[name]).join("\0");
		groups.set(key, [...(groups.get(key) ?? []), row]);
	}
	return [...groups.values()];
}

/** The tasks of event loops, which the stack of a sleeping loop's thread does not show; one row for all that wait for the same. */
function Tasks({ id, turn }: { id: string; turn: number }) {
	const asked = useAskedAt(`tasks ${id}`, turn, async () => (await api.query(id, TASKS)).value);
	const rows = asked.value?.filter((row) => row["coro"] !== null) ?? [];
	if (!rows.length)
		return <Failure error={asked.error} />;
	return (
		<>
			<h3>{rows.length} asyncio {rows.length === 1 ? "task" : "tasks"}</h3>
			<WaitsOfTasks rows={rows} />
			<Table caption="asyncio tasks" heads={["Task", "State", "Waits for", "Awaited by", "Calls", "Place"]}
				rows={alike(rows, ["coro", "state", "waits_for", "chain", "lineno"]).map((group) => {
					const [row = {}] = group;
					const names = group.map((one) => text(one["name"]));
					return [names.length > FEW ? `${names.slice(0, FEW).join(", ")} and ${names.length - FEW} more` : names.join(", "), text(row["state"]),
						text(row["waits_for"]), text(row["awaiters"]), text(row["chain"]), `${text(row["file"])}:${text(row["lineno"])}`];
				})} />
		</>
	);
}

/** As tasks: greenlets that are switched out are in no thread's stack. */
function Greenlets({ id, turn }: { id: string; turn: number }) {
	const asked = useAskedAt(`greenlets ${id}`, turn, async () => (await api.query(id, GREENLETS)).value);
	const rows = asked.value?.filter((row) => row["type"] !== null) ?? [];
	if (!rows.length)
		return <Failure error={asked.error} />;
	return (
		<>
			<h3>{rows.length} {rows.length === 1 ? "greenlet" : "greenlets"}</h3>
			<Table caption="Greenlets" heads={["Number", "Type", "Waits for", "Calls", "Place"]}
				rows={alike(rows, ["type", "waits_for", "chain", "lineno"]).map((group) => {
					const [row = {}] = group;
					return [String(group.length), text(row["type"]), text(row["waits_for"]), text(row["chain"]),
						row["file"] === null ? "" : `${text(row["file"])}:${text(row["lineno"])}`];
				})} />
		</>
	);
}

/** What threads wait for that do so for a second, without its times: who can end it is read again when this is another. */
const waitsOf = (threads: api.Thread[]) => threads.flatMap(({ tid, waits_for, idle_seconds }) => waits_for && (idle_seconds ?? 1) >= 1 ? [`${tid} ${steady(waits_for)}`] : []).join("\n");

const frames = (thread: api.Thread) => thread.frames.map((frame) => `${frame.func}:${frame.file}:${frame.line}`).reverse();

/** How far a thread got since a dump: the calls, from the outermost, that are the same. */
function moved(thread: api.Thread, before: api.Dump): string {
	const old = before.threads.find((one) => one.tid === thread.tid);
	if (!old)
		return "new";
	const then = frames(old);
	const now = frames(thread);
	const same = now.findIndex((place, index) => place !== then[index]);
	if (same < 0 && now.length === then.length)
		return "same place";
	return `moved: ${same < 0 ? now.length : same} of ${now.length} calls are the same`;
}

const EVERY = [0.5, 1, 2, 5, 10];

export function Activity({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const native = route.values.has("native");
	const paused = route.values.has("paused");
	const filter = route.values.get("filter") ?? "";
	const only = route.values.get("tid");
	const source = route.values.has("source");
	const every = EVERY.find((one) => String(one) === route.values.get("every")) ?? 2;
	const stream = useStream<api.Dump>(id && !paused ? api.eventsLink(id, { native, source, every }) : null, "stacks");
	// A click asks at once; a page that is opened paused too.
	const clicked = useRef(paused);
	const asked = useAsked(`stacks ${id} ${native} ${source} ${paused}`, 0,
		async () => clicked.current ? api.stacks(id, { native, source }) : null);
	const [before, setBefore] = useState<api.Dump | null>(null);
	const newest = asked.value && asked.when > stream.when ? asked : stream;
	const dump = newest.value;
	const error = stream.error ?? asked.error;
	const all = useAsked("targets", 0, api.targets);
	if (!id)
		return <p>Choose a process above.</p>;
	const threads = dump?.threads ?? [];
	const tids = new Set(threads.map((thread) => String(thread.tid)));
	const targets = new Map((all.value ?? []).map((target) => [pidOf(target.id), target.id]));
	const wanted = only ? threads.filter((thread) => String(thread.tid) === only) : threads;
	const runs = (library: RegExp) => !only && dump?.threads.some((thread) => thread.frames.some(({ file }) => library.test(file ?? "")));
	return (
		<section aria-label="Activity" class={error ? "stale" : ""}>
			<div class="tools">
				<Field id="filter" type="search" placeholder="Filter threads and functions" aria-label="Filter" value={filter}
					onTyped={(text) => change({ filter: text }, true)} />
				<button type="button" id="pause" aria-pressed={paused} onClick={() => change({ paused: !paused }, true)}>
					{paused ? "Go on" : "Pause"}
				</button>
				<button type="button" onClick={() => {
					clicked.current = true;
					asked.again();
				}}>Refresh</button>
				<label>every{" "}
					<select id="every" value={every} onChange={(event) => change({ every: event.currentTarget.value }, true)}>
						{EVERY.map((one) => <option key={one} value={one}>{one} s</option>)}
					</select>
				</label>
				<label><input type="checkbox" checked={native} onChange={() => change({ native: !native })} /> C frames</label>
				<label><input id="source" type="checkbox" checked={source} onChange={() => change({ source: !source })} /> Source</label>
				<button type="button" id="compare" disabled={!dump} aria-pressed={!!before} onClick={() => setBefore(before ? null : dump)}>
					{before ? `Compared with ${new Date(before.timestamp * 1000).toLocaleTimeString()}` : "Compare with now"}
				</button>
				{only && <a href={link("activity", { target: id })}>all threads</a>}
				<a href={api.snapshotLink(id)} download>Save a snapshot</a>
				<Fresh when={newest.when} />
			</div>
			<Failure error={error} />
			{dump && (
				<p class="facts"><span class="argv" title={dump.target.argv.join(" ")}>{dump.target.argv.join(" ")}</span> · Python {dump.target.python?.version ?? "?"} · {threads.length} {threads.length === 1 ? "thread" : "threads"}
					{dump.paused_threads > 0 && ` · ${dump.paused_threads} paused${dump.pause_us === null ? "" : ` for ${dump.pause_us < 1000 ? `${dump.pause_us.toFixed(0)} µs` : seconds(dump.pause_us / 1e6)}`}`}
				</p>
			)}
			<Verdicts id={id} paused={paused} />
			{dump?.warnings.map((text) => <p class="failure" key={text}>{text}</p>)}
			{dump && !only && <WaitsOfThreads id={id} threads={threads} targets={all.value ?? []} what={waitsOf(threads)} />}
			{fold(wanted, filter, before).map((group) => <Threads key={group.key + group.threads[0]?.tid} group={group} id={id} tids={tids} targets={targets} before={before} />)}
			{runs(/asyncio[^/]*\/|uvloop/) && <Tasks id={id} turn={Math.floor(newest.when / TASKS_MS)} />}
			{runs(/gevent|greenlet|eventlet/) && <Greenlets id={id} turn={Math.floor(newest.when / TASKS_MS)} />}
		</section>
	);
}
