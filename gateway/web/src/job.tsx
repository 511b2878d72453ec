// SPDX-License-Identifier: GPL-3.0-or-later
// A whole job: the stacks of all ranks as one tree, read when it is asked for. What few ranks do comes first.
import { useState } from "preact/hooks";
import * as api from "./api";
import { Verdict, useLook } from "./findings";
import { Failure, Fresh, useAsked } from "./parts";
import { change, link, type Route } from "./route";
import { pidOf } from "./target";

/** Cells of ranks that are shown at once. */
const MOST = 512;
/** The innermost calls of a class, which tell it from others. */
const CALLS = 3;
/** Of a world; the environment of a rank may say anything. */
const MOST_RANKS = 1 << 20;

interface Class {
	key: string;
	ranks: number[];
	thread: string;
	/** The calls, from the outermost. */
	path: string[];
	waits: string | null;
}

/** "1021:[0-36,38-1023]" */
export function rankSet(ranks: number[]): string {
	const parts: string[] = [];
	for (let i = 0, last = 0; i < ranks.length; i = last + 1) {
		for (last = i; ranks[last + 1] === Number(ranks[last]) + 1;)
			last++;
		parts.push(last === i ? `${ranks[i]}` : `${ranks[i]}${last > i + 1 ? "-" : ","}${ranks[last]}`);
	}
	return `${ranks.length}:[${parts.join(",")}]`;
}

/** Ranks with the same stack, the smallest class first. */
function classes(nodes: api.JobNode[]): Class[] {
	const found: Class[] = [];
	const walk = (node: api.JobNode, thread: string, path: string[], key: string) => {
		if (node.ends.length)
			found.push({ key, ranks: node.ends, thread, path, waits: node.waits_for });
		node.children.forEach((child, index) => walk(child, thread, [...path, child.name], `${key}.${index}`));
	};
	nodes.forEach((node, index) => walk(node, node.name, [], String(index)));
	return found.sort((a, b) => a.ranks.length - b.ranks.length || Number(a.ranks[0]) - Number(b.ranks[0]));
}

/** Where the stacks of ranks are to be seen, as far as these are served here. */
class Places {
	private readonly ranks: Map<number, api.JobRank>;
	private readonly targets: Map<string, string>;

	constructor(private readonly job: api.Job, targets: api.Target[]) {
		this.ranks = new Map(job.ranks.map((one) => [one.rank, one]));
		this.targets = new Map(targets.map((one) => [one.file ?? pidOf(one.id), one.id]));
	}

	link(rank: number): string | null {
		const one = this.ranks.get(rank);
		const target = this.job.bundle !== null ? this.targets.get(`${this.job.bundle}/${rank}`)
			: one && one.host === null && one.pid !== null ? this.targets.get(String(one.pid)) : undefined;
		return target === undefined ? null : link("activity", { target, tid: one?.tid ?? null });
	}

	text(rank: number): string {
		const one = this.ranks.get(rank);
		return [one?.host, one?.pid ? `pid ${one.pid}` : ""].filter((part) => part).join(", ");
	}
}

function Rank({ rank, places }: { rank: number; places: Places }) {
	const address = places.link(rank);
	const inside = <><strong>{rank}</strong> <span class="faint">{places.text(rank)}</span></>;
	return address ? <a href={address} aria-label={`Rank ${rank}, ${places.text(rank)}`}>{inside}</a> : <span class="cell">{inside}</span>;
}

function Ranks({ ranks, places }: { ranks: number[]; places: Places }) {
	return (
		<>
			<ol class="ranks" aria-label={`Ranks ${rankSet(ranks)}`}>{ranks.slice(0, MOST).map((rank) => <li key={rank}><Rank rank={rank} places={places} /></li>)}</ol>
			{ranks.length > MOST && <p class="faint">and {ranks.length - MOST} more: {rankSet(ranks.slice(MOST))}</p>}
		</>
	);
}

function One({ found, places }: { found: Class; places: Places }) {
	const [open, setOpen] = useState(false);
	const example = found.ranks[0] ?? 0;
	const address = places.link(example);
	return (
		<article class="thread class">
			<h3>
				<button type="button" aria-expanded={open} title="Show the ranks" onClick={() => setOpen(!open)}>{rankSet(found.ranks)}</button>
				<span>{found.path.slice(-CALLS).reverse().join(" ← ") || "no frame"}</span>
				<span class="state">{found.thread}</span>
				{found.waits && <span>{found.waits}</span>}
				<span class="faint">for example {address ? <a href={address}>rank {example}</a> : `rank ${example}`} {places.text(example)}</span>
			</h3>
			{open && <Ranks ranks={found.ranks} places={places} />}
		</article>
	);
}

/** A chain of calls that the same ranks are in, and what they do then. */
function Branch({ node, places, named }: { node: api.JobNode; places: Places; named: boolean }) {
	const [open, setOpen] = useState(false);
	const [shown, setShown] = useState(true);
	const chain = [node];
	for (let last = node; last.children.length === 1 && last.children[0]?.ranks.length === last.ranks.length;) {
		last = last.children[0] ?? last;
		chain.push(last);
	}
	const children = chain[chain.length - 1]?.children ?? [];
	const set = rankSet(node.ranks);
	return (
		<li>
			{named && (
				<>
					<button type="button" class="fold" aria-expanded={shown} aria-label={`Unfold ${set} ${node.name}`} onClick={() => setShown(!shown)}>{shown ? "▾" : "▸"}</button>
					<button type="button" class="set" aria-expanded={open} title="Show the ranks" onClick={() => setOpen(!open)}>{set}</button>
				</>
			)}
			{open && <Ranks ranks={node.ranks} places={places} />}
			{chain.slice(0, shown ? chain.length : 1).map((one, index) => (
				<div key={index}><span class="call">{one.name}</span>{one.waits_for && <span class="place">{one.waits_for}</span>}</div>
			))}
			{shown && children.length > 0 && (
				<ul class="parts">{children.map((child, index) => (
					<Branch key={index} node={child} places={places} named={children.length > 1 || child.ranks.length !== node.ranks.length} />
				))}</ul>
			)}
		</li>
	);
}

/** Ranks without a stack, by the reason. */
function Unread({ job }: { job: api.Job }) {
	const reasons = new Map<string, number[]>();
	for (const { rank, unread } of job.ranks)
		if (unread !== null)
			reasons.set(unread, [...(reasons.get(unread) ?? []), rank]);
	const there = new Set(job.ranks.map(({ rank }) => rank));
	const lost = [...Array(Math.min(job.world_size ?? 0, MOST_RANKS)).keys()].filter((rank) => !there.has(rank));
	return (
		<>
			{lost.length > 0 && <p class="failure">Not found: {rankSet(lost)} no process that was read has these ranks</p>}
			{[...reasons].map(([why, ranks]) => <p class="failure" key={why}>Not read: {rankSet(ranks)} {why}</p>)}
			{job.unanswered.map(({ host, error }) => <p class="failure" key={host}>Host {host} gave no answer: {error}</p>)}
		</>
	);
}

function Stacks({ job, targets }: { job: api.Job; targets: api.Target[] }) {
	const places = new Places(job, targets);
	const found = classes(job.stacks);
	const read = job.ranks.filter(({ unread }) => unread === null).length;
	return (
		<>
			<p class="facts">
				{job.job} · {read} of {job.world_size ?? job.ranks.length} ranks read{job.bundle !== null && `, saved in ${job.bundle}`} ·{" "}
				{found.length} {found.length === 1 ? "class" : "classes"} of stacks
			</p>
			<Unread job={job} />
			<h3>Classes: ranks with the same stack</h3>
			{found.map((one) => <One key={one.key} found={one} places={places} />)}
			<h3>All stacks as one tree</h3>
			<ul class="parts" id="tree">{job.stacks.map((node, index) => <Branch key={index} node={node} places={places} named />)}</ul>
		</>
	);
}

export function JobPanel({ route }: { route: Route }) {
	const target = route.values.get("target") ?? "";
	const all = route.values.has("all");
	const native = route.values.has("native");
	const asked = useAsked(`job ${target} ${all} ${native}`, 0, async () => ({
		job: await api.job({ target: target || undefined, all, native }), targets: await api.targets(),
	}));
	const look = useLook();
	const verdicts = (look?.findings ?? []).filter(({ kind, pids }) => kind === "job" && (!target || pids.includes(Number(pidOf(target)))));
	return (
		<section aria-label="Job" class={asked.error ? "stale" : ""}>
			<div class="tools">
				<button type="button" id="again" onClick={asked.again}>Read again</button>
				<label><input type="checkbox" checked={all} onChange={() => change({ all: !all })} /> All threads</label>
				<label><input type="checkbox" checked={native} onChange={() => change({ native: !native })} /> C frames</label>
				<Fresh when={asked.when} />
			</div>
			<Failure error={asked.error} />
			{verdicts.map((one) => <Verdict key={one.id} finding={one} id={one.id} />)}
			{look?.jobs.find((one) => one.job === asked.value?.job.job)?.ranks.map(({ rank, how }) =>
				how !== null && <p class="failure" key={rank}>Rank {rank} has ended: {how}</p>)}
			{asked.value && <Stacks job={asked.value.job} targets={asked.value.targets} />}
		</section>
	);
}
