// SPDX-License-Identifier: GPL-3.0-or-later
// The first view: what is wrong, and all processes as a table.
import { Fragment } from "preact";
import { memo } from "preact/compat";
import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import { Field } from "./field";
import { Findings } from "./findings";
import { goneRanks, noteLook, pastOf, points, type Past } from "./history";
import { Failure, Fresh, bytes, seconds, useAsked } from "./parts";
import { change, link, type Route } from "./route";
import { nameOf } from "./target";

/** Rows at once; the others on demand. */
const MOST = 100;
/** Children of a process that are shown without a click. */
const FEW = 8;
/** Asked for less often where there are many processes, so that a page that is only open costs little. */
const EVERY_MS = 2000;
const MANY = 60;

const command = (target: api.Seen) => target.argv?.length ? target.argv.join(" ") : target.file ?? "";

function doing({ main }: api.Seen): string {
	if (!main)
		return "";
	const place = main.func ? `${main.qualname ?? main.func}:${main.line} · ` : "";
	const idle = main.state === "idle" && main.idle_seconds !== null ? ` ${seconds(main.idle_seconds)}` : "";
	return `${place}${main.state}${idle}${main.waits_for ? ` ${main.waits_for}` : ""}`;
}

function gil({ gil_holder, gil_waiters }: api.Seen): string {
	return [gil_holder ? `held by ${gil_holder}` : "", gil_waiters ? `${gil_waiters} wait` : ""].filter((one) => one).join(" · ");
}

function limit({ limit, limit_used }: api.Seen): string {
	const share = limit && limit_used !== null ? limit_used / limit : 0;
	return share > 0.5 ? ` (group at ${Math.round(share * 100)} %)` : "";
}

/** A finding in few words; its sentence is above the table, and in the process's own panel. */
interface Wrong {
	kind: string;
	sentence: string;
}

/** A target with what the list of processes has of it, and its findings. */
interface Entry {
	row: api.Seen;
	name: string;
	parent: string;
	user: string;
	job: string;
	wrong: Wrong[];
	children: Entry[];
}

type Order = (entry: Entry) => number | string;
/** Columns: title, what they are sorted by, whether numbers. */
const COLUMNS: [string, string, Order, boolean][] = [
	["process", "Process", ({ name }) => name, false],
	["doing", "Main thread", ({ row }) => -(row.main?.idle_seconds ?? -1), false],
	["cpu", "Processor", ({ row }) => -(row.cpu_percent ?? -1), true],
	["memory", "Memory", ({ row }) => -(row.rss ?? -1), true],
	["time", "CPU time", ({ row }) => -(row.cpu_seconds ?? -1), true],
	["threads", "Threads", ({ row }) => -(row.threads ?? -1), true],
	["step", "Step", ({ row }) => -(row.step ?? -1), true],
	["gil", "GIL", ({ row }) => -row.gil_waiters, false],
	["python", "Python", ({ row }) => row.version ?? "", false],
];

const worst: Order = ({ row, wrong, children }) =>
	-(wrong.length ? 2e9 : children.some((one) => one.wrong.length) ? 1e9 : 0) + (row.rank ?? 1e6);

function sorted(list: Entry[], order: Order, up: boolean): Entry[] {
	return [...list].sort((a, b) => {
		const [x, y] = [order(a), order(b)];
		const by = typeof x === "string" ? x.localeCompare(String(y)) : x - Number(y);
		return (up ? -by : by) || Number(a.row.pid) - Number(b.row.pid);
	});
}

function entries(seen: api.Seen[], targets: api.Target[], findings: api.Finding[]): Entry[] {
	const known = new Map(targets.map((one) => [one.id, one]));
	const wrong = new Map<string, Wrong[]>();
	for (const { id, kind, sentence } of findings)
		wrong.set(id, [...(wrong.get(id) ?? []), { kind, sentence }]);
	return seen.map((row) => {
		const target = known.get(row.id) as (api.Target & { user?: string; job?: string | null }) | undefined;
		return { row, name: nameOf({ ...row, program: target?.program ?? null }), parent: String(target?.ppid ?? ""), user: target?.user ?? "",
			job: target?.job ?? "", wrong: wrong.get(row.id) ?? row.troubles.map((text) => ({ kind: text, sentence: text })), children: [] };
	});
}

/** Puts processes below their parents; those without one here are what is returned. */
function tree(list: Entry[]): Entry[] {
	const by = new Map(list.map((one) => [one.row.id, one]));
	return list.filter((one) => {
		const parent = by.get(one.parent);
		if (parent && parent !== one)
			parent.children.push(one);
		return !parent || parent === one;
	});
}

function Spark({ past, of, most, title }: { past: Past | undefined; of: "cpu" | "rss"; most: number; title: string }) {
	const values = past?.[of] ?? [];
	if (values.length < 2 || !past)
		return null;
	return <svg class="spark" viewBox="0 0 72 18" role="img" aria-label={title}><polyline points={points(past.times, values, 72, 16, most)} /></svg>;
}

/** Each kind once, with all its sentences. */
function kinds(wrong: Wrong[]): Wrong[] {
	const by = new Map<string, string[]>();
	for (const { kind, sentence } of wrong)
		by.set(kind, [...(by.get(kind) ?? []), sentence]);
	return [...by].map(([kind, sentences]) => ({ kind, sentence: sentences.join("\n") }));
}

interface RowProps {
	entry: Entry;
	child: boolean;
	open: boolean;
	fold: (id: string) => void;
	/** Changes with the sparklines. */
	turn: number;
}

/** A name that may be broken between its words. */
function Parted({ name }: { name: string }) {
	return <>{name.split(/(?<=_)/).map((part, place) => <Fragment key={place}>{place > 0 && <wbr />}{part}</Fragment>)}</>;
}

/** A row is drawn again when what it shows is another. */
const Row = memo(function Row({ entry, child, open, fold }: RowProps) {
	const { row, name, wrong, children } = entry;
	const past = pastOf(row.id);
	return (
		<tr class={`${wrong.length ? "wrong" : ""} ${child ? "child" : ""}`}>
			<td>
				{children.length > 0 && (
					<button type="button" class="fold" aria-expanded={open} aria-label={`Unfold ${name} ${row.id}`} onClick={() => fold(row.id)}>{open ? "▾" : "▸"}</button>
				)}
				<a href={link("activity", { target: row.id })} title={command(row)}><Parted name={name} /></a> <span class="faint">{row.id === name ? "" : row.id}</span>
				{children.length > 0 && <>{" "}<span class="faint">· {children.length} below</span></>}
			</td>
			<td class="doing">
				{kinds(wrong).map(({ kind, sentence }) => <div class="mark" key={kind} title={row.unreadable ?? sentence}>{kind}</div>)}
				{doing(row)}
			</td>
			<td class="number">
				{row.cpu_percent === null ? "" : `${Math.round(row.cpu_percent)} %`}
				<Spark past={past} of="cpu" most={Math.max(100, ...past?.cpu ?? [])} title="Processor, last ten minutes" />
			</td>
			<td class="number">
				{bytes(row.rss)}{limit(row)}
				<Spark past={past} of="rss" most={Math.max(...past?.rss ?? [1])} title="Memory, last ten minutes" />
			</td>
			<td class="number">{seconds(row.cpu_seconds)}</td>
			<td class="number">{row.threads ?? ""}</td>
			<td class="number">{row.step ?? ""}</td>
			<td class="short">{gil(row)}</td>
			<td class="short">{row.version ?? ""}</td>
		</tr>
	);
}, (a, b) => a.turn === b.turn && a.open === b.open && a.child === b.child && JSON.stringify([a.entry.row, a.entry.wrong, a.entry.children.length])
	=== JSON.stringify([b.entry.row, b.entry.wrong, b.entry.children.length]));

/** A cell for each rank: what its main thread does, by colour and by text. One that has ended stays. */
function Ranks({ list }: { list: Entry[] }) {
	const ranked = list.filter(({ row }) => typeof row.rank === "number");
	const there = new Set(ranked.map(({ row }) => row.rank));
	const gone = goneRanks().filter(({ last }) => !there.has(last.rank));
	const [first] = ranked;
	if (!first && !gone.length)
		return null;
	const cells = [
		...ranked.map(({ row, wrong }) => ({ rank: Number(row.rank), row, wrong, past: null as Past | null })),
		...gone.map((past) => ({ rank: Number(past.last.rank), row: past.last, wrong: [] as Wrong[], past }))];
	return (
		<section aria-label="Job">
			<ol class="ranks" aria-label="Ranks">
				{cells.sort((a, b) => a.rank - b.rank).map(({ rank, row, wrong, past }) => {
					const state = past ? `ended ${new Date(past.gone * 1000).toLocaleTimeString()}` : wrong[0]?.kind ?? row.main?.state ?? "not read";
					const inside = <><strong>{rank}</strong> <span>{state}</span> <span class="faint">{row.main?.func ?? ""}</span></>;
					return (
						<li key={row.id}>
							{past ? <span class="cell gone" title={`rank ${rank}, process ${row.id}: ${doing(row)} when it was last seen`}>{inside}</span>
								: <a class={wrong.length ? "wrong" : state} href={link("activity", { target: row.id })}
									title={`rank ${rank}, process ${row.id}: ${wrong[0]?.sentence ?? doing(row)}`}>{inside}</a>}
						</li>
					);
				})}
			</ol>
			{first && <p><a id="whole" href={link("job", { target: first.row.id })}>The stacks of all ranks as one tree</a></p>}
		</section>
	);
}

function Choice({ name, label, values, chosen }: { name: string; label: string; values: string[]; chosen: string }) {
	const list = [...new Set(values)].filter((one) => one).sort();
	if (list.length < 2 && !chosen)
		return null;
	return (
		<label>{label}{" "}
			<select name={name} value={chosen} onChange={(event) => change({ [name]: event.currentTarget.value }, true)}>
				<option value="">all</option>
				{list.map((one) => <option key={one} value={one}>{one}</option>)}
			</select>
		</label>
	);
}

export function Overview({ route, targets }: { route: Route; targets: api.Target[] }) {
	const filter = route.values.get("filter") ?? "";
	const troubles = route.values.has("troubles");
	const user = route.values.get("user") ?? "";
	const job = route.values.get("job") ?? "";
	const column = COLUMNS.find(([name]) => name === route.values.get("sort"));
	const up = route.values.has("up");
	const [every, setEvery] = useState(EVERY_MS);
	const [all, setAll] = useState(false);
	const [folded, setFolded] = useState(new Map<string, boolean>());
	const seen = useAsked("overview", every, async () => {
		const look = await api.overview();
		noteLook(look.time ?? Date.now() / 1000, look.targets);
		return look;
	});
	const count = seen.value?.targets.length ?? 0;
	useEffect(() => setEvery(count > MANY ? 5 * EVERY_MS : EVERY_MS), [count > MANY]);
	const { findings } = seen.value ?? {};
	const list = entries(seen.value?.targets ?? [], targets, findings ?? []);
	const shown = list.filter(({ row, name, wrong, ...one }) => (!filter || `${row.id} ${name} ${command(row)}`.toLowerCase().includes(filter.toLowerCase()))
		&& (!troubles || wrong.length) && (!user || one.user === user) && (!job || one.job === job));
	const roots = sorted(tree(shown), column?.[2] ?? worst, !!column && up);
	const isOpen = ({ row, children }: Entry) => folded.get(row.id) ?? children.length <= FEW;
	const rows: [Entry, boolean][] = [];
	const put = (entry: Entry, child: boolean) => {
		rows.push([entry, child]);
		if (isOpen(entry))
			sorted(entry.children, column?.[2] ?? worst, !!column && up).forEach((one) => put(one, true));
	};
	roots.forEach((one) => put(one, false));
	const fold = (id: string) => {
		const entry = list.find(({ row }) => row.id === id);
		setFolded((now) => new Map(now).set(id, entry ? !(now.get(id) ?? entry.children.length <= FEW) : false));
	};
	return (
		<section aria-label="Overview">
			<Failure error={seen.error} />
			{findings && <Findings findings={findings} judged={seen.value?.judged ?? count} targets={targets} />}
			<Ranks list={list} />
			<div class="tools">
				<Field id="filter" type="search" placeholder="Filter by name, command or pid" aria-label="Filter"
					value={filter} onTyped={(text) => change({ filter: text }, true)} />
				<label><input id="troubles" type="checkbox" checked={troubles} onChange={() => change({ troubles: !troubles }, true)} /> Troubles only</label>
				<Choice name="user" label="User" values={list.map((one) => one.user)} chosen={user} />
				<Choice name="job" label="Job" values={list.map((one) => one.job)} chosen={job} />
				<Fresh when={(seen.value?.time ?? 0) * 1000} />
				{seen.value && <span class="faint">{shown.length} of {count} targets</span>}
			</div>
			<div class="wide whole processes" role="region" aria-label="Targets" tabIndex={0}>
				<table>
					<thead>
						<tr>
							{COLUMNS.map(([name, title, , isNumber]) => (
								<th key={name} scope="col" class={isNumber ? "number" : ""}
									aria-sort={column?.[0] === name ? up ? "ascending" : "descending" : undefined}>
									<button type="button" onClick={() => change(column?.[0] !== name ? { sort: name, up: false }
										: up ? { sort: null, up: false } : { up: true }, true)}>
										{title}{column?.[0] === name ? up ? " ▴" : " ▾" : ""}
									</button>
								</th>
							))}
						</tr>
					</thead>
					<tbody>
						{rows.slice(0, all ? rows.length : MOST).map(([entry, child]) => (
							<Row key={entry.row.id} entry={entry} child={child} open={isOpen(entry)} fold={fold} turn={pastOf(entry.row.id)?.times.at(-1) ?? 0} />
						))}
					</tbody>
				</table>
			</div>
			{rows.length > MOST && !all && <p><button type="button" id="all" onClick={() => setAll(true)}>Show all {rows.length}</button></p>}
			{seen.value && !shown.length && <p>No target{filter || troubles || user || job ? " matches" : " is served"}.</p>}
		</section>
	);
}
