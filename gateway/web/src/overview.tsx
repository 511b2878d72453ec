// SPDX-License-Identifier: GPL-3.0-or-later
// The first view: what is wrong, and all processes as a table.
import { Fragment } from "preact";
import { memo } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { Field } from "./field";
import { Findings } from "./findings";
import { noteLook, pastOf, points, type Past } from "./history";
import { Failure, Fresh, MANY, bytes, seconds, useAsked } from "./parts";
import { change, link, type Route } from "./route";
import { nameOf, pidOf } from "./target";

/** Rows at once; the others on demand. */
const MOST = 100;
/** Children of a process that are shown without a click. */
const FEW = 8;
/** Asked for less often where there are many processes, so that a page that is only open costs little. */
const EVERY_MS = 2000;
/** While some are still to be judged. */
const SOON_MS = 250;

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

/** A target, or a whole job, with its findings. */
interface Entry {
	row: api.Seen;
	name: string;
	wrong: Wrong[];
	children: Entry[];
	/** Of a job: its ranks. */
	job: api.SeenJob | null;
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

/** They are left out while nothing is in them. */
const SPARSE = ["step", "gil"];

const worst: Order = ({ row, wrong, children, job }) =>
	-(job?.hangs ? 3e9 : wrong.length ? 2e9 : children.some((one) => one.wrong.length) ? 1e9 : 0) + (row.rank ?? 1e6);

/** Without a click; the ranks of a job are in its row. */
const opens = ({ job, children }: Entry) => !job && children.length <= FEW;

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
	return seen.map((row) => ({
		row, name: nameOf({ ...row, program: known.get(row.id)?.program ?? null }), children: [], job: null,
		wrong: wrong.get(row.id) ?? row.troubles.map((text) => ({ kind: text, sentence: text })),
	}));
}

const sum = (list: Entry[], of: (row: api.Seen) => number | null) => list.reduce((all, { row }) => all + (of(row) ?? 0), 0);

/** A job as one line, with the sums of its ranks. */
function jobEntry(job: api.SeenJob, ranks: Entry[]): Entry | null {
	const [first] = ranks;
	if (!first)
		return null;
	const row: api.Seen = {
		...first.row, id: `job ${job.job}`, pid: null, rank: null, main: null, unreadable: null, troubles: [], gil_holder: null, gil_waiters: 0,
		limit: null, limit_used: null, cpu_percent: sum(ranks, (one) => one.cpu_percent), cpu_seconds: sum(ranks, (one) => one.cpu_seconds),
		rss: sum(ranks, (one) => one.rss), threads: sum(ranks, (one) => one.threads), step: Math.max(-1, ...ranks.map((one) => one.row.step ?? -1)),
	};
	if (Number(row.step) < 0)
		row.step = null;
	return { row, name: job.job, wrong: job.hangs ? [{ kind: "hangs", sentence: "" }] : [], children: ranks, job };
}

/** Puts ranks below their job, and processes below their parents; those without one here are what is returned. */
function tree(list: Entry[], jobs: api.SeenJob[]): Entry[] {
	const by = new Map(list.map((one) => [one.row.pid, one]));
	const roots: Entry[] = [];
	const inJobs = new Set<Entry>();
	for (const job of jobs.filter((one) => one.ranks.length > 1 || Number(one.world_size) > 1)) {
		const ranks = job.ranks.flatMap(({ pid }) => by.get(pid) ?? []);
		const entry = jobEntry(job, ranks);
		if (entry)
			roots.push(entry);
		ranks.forEach((one) => inJobs.add(one));
	}
	for (const one of list) {
		const parent = by.get(one.row.ppid);
		if (inJobs.has(one))
			continue;
		if (parent && parent !== one)
			parent.children.push(one);
		else
			roots.push(one);
	}
	return roots;
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

/** A name that may be broken between its words. */
function Parted({ name }: { name: string }) {
	return <>{name.split(/(?<=_)/).map((part, place) => <Fragment key={place}>{place > 0 && <wbr />}{part}</Fragment>)}</>;
}

/** Cells with more than their number, as long as there are so few. */
const WORDY = 32;

/** Of a rank that is there; the one that a hung job waits for says so. */
const stateOf = ({ wrong, row }: Entry) => wrong[0]?.kind === "job" ? "waited for" : wrong[0]?.kind ?? row.main?.state ?? "not read";

/** What the trouble of a process that has ended begins with, if its status is known. */
const ENDED = "has ended: ";

/** A cell for each rank of a job: what its main thread does, by colour and by text. One that is gone stays. */
function Ranks({ job, ranks }: { job: api.SeenJob; ranks: Entry[] }) {
	const by = new Map(ranks.map((one) => [one.row.pid, one]));
	const wordy = job.ranks.length <= WORDY;
	return (
		<ol class={`ranks ${wordy ? "" : "many"}`} aria-label={`Ranks of ${job.job}`}>
			{[...job.ranks].sort((a, b) => a.rank - b.rank).map(({ rank, pid, ended, how }) => {
				const one = by.get(pid);
				const when = ended === null ? "" : ` ${new Date(ended * 1000).toLocaleTimeString([], { timeStyle: "short" })}`;
				const end = how ?? one?.row.troubles.find((text) => text.startsWith(ENDED))?.slice(ENDED.length) ?? null;
				// Without a status the cause is what follows: the OOM killer's counter, a log.
				const state = one && !one.row.ended ? stateOf(one) : end ? `${end.replace("why is not known; ", "").split("; ")[0]}${when}`
					: ended !== null || one ? `ended${when}` : pid !== null ? "not served" : "no process";
				const inside = <><strong>{rank}</strong>{wordy && <> <span>{state}</span> <span class="faint">{one?.row.main?.func ?? ""}</span></>}</>;
				const title = `rank ${rank}${pid === null ? "" : `, process ${pid}`}: ${one && !one.row.ended ? one.wrong[0]?.sentence ?? doing(one.row) : end ? `${end}${when && `, missed at${when}`}` : state}`;
				return (
					<li key={rank}>
						{one && !one.row.ended ? <a class={one.wrong.length ? "wrong" : state} href={link("activity", { target: one.row.id })} title={title}>{inside}</a>
							: <span class="cell gone" title={title}>{inside}</span>}
					</li>
				);
			})}
		</ol>
	);
}

interface RowProps {
	entry: Entry;
	child: boolean;
	open: boolean;
	fold: (id: string) => void;
	/** Changes with the sparklines. */
	turn: number;
	/** Columns that are shown only where something is in them. */
	filled: string;
}

function Name({ entry, open, fold }: RowProps) {
	const { row, name, job, children, wrong } = entry;
	const gone = job?.ranks.filter(({ pid }) => pid === null).length ?? 0;
	return (
		<>
			{children.length > 0 && (
				<button type="button" class="fold" aria-expanded={open} aria-label={`Unfold ${name} ${job ? "" : pidOf(row.id)}`} onClick={() => fold(row.id)}>{open ? "▾" : "▸"}</button>
			)}
			{job ? (
				<>
					<a class="job" href={link("job", { target: children[0]?.row.id })} title="The stacks of all ranks as one tree">{name}</a>{" "}
					<span class="faint">job of {job.world_size ?? job.ranks.length} ranks{gone > 0 && `, ${gone} gone`}</span>{" "}
					{wrong.map(({ kind }) => <strong class="mark" key={kind}>{kind}</strong>)}
				</>
			) : (
				<>
					<a href={link("activity", { target: row.id })} title={command(row)}><Parted name={name} /></a> <span class="faint">{pidOf(row.id) === name ? "" : pidOf(row.id)}</span>
					{children.length > 0 && <>{" "}<span class="faint">· {children.length} below</span></>}
				</>
			)}
		</>
	);
}

/** A row is drawn again when what it shows is another. */
const Row = memo(function Row(props: RowProps) {
	const { row, wrong, job, children } = props.entry;
	const past = pastOf(row.id);
	return (
		<tr class={`${wrong.length ? "wrong" : ""} ${props.child ? "child" : ""}`}>
			<td><Name {...props} /></td>
			<td class="doing">
				{job ? <Ranks job={job} ranks={children} />
					: <>{kinds(wrong).map(({ kind, sentence }) => <div class="mark" key={kind} title={row.unreadable ?? sentence}>{kind}</div>)}{doing(row)}</>}
			</td>
			<td class="number">
				<Spark past={past} of="cpu" most={Math.max(100, ...past?.cpu ?? [])} title="Processor, last ten minutes" />
				{row.cpu_percent === null ? "" : `${Math.round(row.cpu_percent)} %`}
			</td>
			<td class="number">
				<Spark past={past} of="rss" most={Math.max(...past?.rss ?? [1])} title="Memory, last ten minutes" />
				{bytes(row.rss)}{limit(row)}
			</td>
			<td class="number">{seconds(row.cpu_seconds)}</td>
			<td class="number">{row.threads ?? ""}</td>
			{props.filled.includes("step") && <td class="number">{row.step ?? ""}</td>}
			{props.filled.includes("gil") && <td class="short">{gil(row)}</td>}
			<td class="short">{row.version ?? ""}</td>
		</tr>
	);
}, (a, b) => a.turn === b.turn && a.filled === b.filled && a.open === b.open && a.child === b.child && JSON.stringify([a.entry.row, a.entry.wrong, a.entry.job, shownOf(a.entry)])
	=== JSON.stringify([b.entry.row, b.entry.wrong, b.entry.job, shownOf(b.entry)]));

/** What the row of an entry shows of those below it. */
const shownOf = ({ job, children }: Entry) => job ? children.map(({ row, wrong }) => [row.main, wrong]) : children.length;

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
		const look = await api.overview(true);
		noteLook(look.time ?? Date.now() / 1000, look.targets);
		return look;
	});
	const count = seen.value?.targets.length ?? 0;
	const pending = seen.value?.pending ?? false;
	useEffect(() => setEvery(pending ? SOON_MS : count > MANY ? 5 * EVERY_MS : EVERY_MS), [count > MANY, pending]);
	const { findings } = seen.value ?? {};
	const jobs = seen.value?.jobs ?? [];
	const hanging = new Set(jobs.filter(({ hangs }) => hangs).map((one) => one.job));
	const list = entries(seen.value?.targets ?? [], targets, findings ?? []);
	const shown = list.filter(({ row, name, wrong }) => (!filter || `${pidOf(row.id)} ${name} ${command(row)}`.toLowerCase().includes(filter.toLowerCase()))
		&& (!troubles || wrong.length || (row.job !== null && hanging.has(row.job))) && (!user || row.user === user) && (!job || row.job === job));
	// A column that has had a value stays, so that the table does not jump.
	const had = useRef(new Set<string>());
	list.forEach(({ row }) => {
		if (row.step !== null)
			had.current.add("step");
		if (gil(row))
			had.current.add("gil");
	});
	const filled = [...had.current].sort().join();
	const columns = COLUMNS.filter(([name]) => !SPARSE.includes(name) || had.current.has(name));
	const roots = sorted(tree(shown, jobs), column?.[2] ?? worst, !!column && up);
	const isOpen = (entry: Entry) => folded.get(entry.row.id) ?? opens(entry);
	const rows: [Entry, boolean][] = [];
	const put = (entry: Entry, child: boolean) => {
		rows.push([entry, child]);
		if (isOpen(entry))
			sorted(entry.children, column?.[2] ?? worst, !!column && up).forEach((one) => put(one, true));
	};
	roots.forEach((one) => put(one, false));
	const fold = (id: string) => {
		const entry = rows.find(([{ row }]) => row.id === id)?.[0];
		if (entry)
			setFolded((now) => new Map(now).set(id, !(now.get(id) ?? opens(entry))));
	};
	return (
		<section aria-label="Overview">
			<Failure error={seen.error} />
			{seen.value && <Findings look={seen.value} targets={targets} />}
			<div class="tools">
				<Field id="filter" type="search" placeholder="Filter by name, command or pid" aria-label="Filter"
					value={filter} onTyped={(text) => change({ filter: text }, true)} />
				<label><input id="troubles" type="checkbox" checked={troubles} onChange={() => change({ troubles: !troubles }, true)} /> Troubles only</label>
				<Choice name="user" label="User" values={list.map(({ row }) => row.user ?? "")} chosen={user} />
				<Choice name="job" label="Job" values={list.map(({ row }) => row.job ?? "")} chosen={job} />
				<Fresh when={(seen.value?.time ?? 0) * 1000} />
				{seen.value && <span class="faint">{shown.length} of {count} {count === 1 ? "target" : "targets"}</span>}
			</div>
			<div class="wide whole processes" role="region" aria-label="Targets" tabIndex={0}>
				<table>
					<thead>
						<tr>
							{columns.map(([name, title, , isNumber]) => (
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
							<Row key={entry.row.id} entry={entry} child={child} open={isOpen(entry)} fold={fold} filled={filled} turn={pastOf(entry.row.id)?.times.at(-1) ?? 0} />
						))}
					</tbody>
				</table>
			</div>
			{rows.length > MOST && !all && <p><button type="button" id="all" onClick={() => setAll(true)}>Show all {rows.length}</button></p>}
			{seen.value && !shown.length && <p>No target{filter || troubles || user || job ? " matches" : " is served"}.</p>}
		</section>
	);
}
