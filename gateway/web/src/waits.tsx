// SPDX-License-Identifier: GPL-3.0-or-later
// A small graph of who waits for whom: threads, tasks, other processes, and what is between them.
import * as api from "./api";
import { useAskedAt } from "./parts";
import { link } from "./route";
import { nameOf, pidOf } from "./target";

/** What waits, or is waited for. */
export interface Place {
	key: string;
	label: string;
	href?: string | undefined;
}

export interface Edge {
	from: Place;
	to: Place;
	/** "lock", "pipe" */
	how: string;
}

/** More would not be read. */
const MOST = 24;
const BOX = { width: 184, height: 28, across: 84, down: 20 };
/** Characters that a box has room for. */
const CUT = 24;

const cut = (text: string) => text.length > CUT ? `${text.slice(0, CUT - 1)}…` : text;

const together = (places: Place[]) => ({ key: places.map(({ key }) => key).join(" "), label: `${places.length}: ${places.map(({ label }) => label).join(", ")}` });

/** Edges that differ only in their place at one end, which has no other edge, are one. */
function gathered(edges: Edge[], end: "from" | "to", other: "from" | "to"): Edge[] {
	const count = new Map<string, number>();
	for (const { key } of edges.flatMap(({ from, to }) => [from, to]))
		count.set(key, (count.get(key) ?? 0) + 1);
	const by = new Map<string, Edge[]>();
	for (const edge of edges) {
		const key = `${edge[other].key}\n${count.get(edge[end].key) === 1 ? edge.how : edge[end].key}`;
		by.set(key, [...by.get(key) ?? [], edge]);
	}
	return [...by.values()].flatMap(([first, ...more]) =>
		!first ? [] : [more.length ? { ...first, [end]: together([first, ...more].map((one) => one[end])) } : first]);
}

export const folded = (edges: Edge[]) => gathered(gathered(edges, "from", "to"), "to", "from");

/** Each place with its column: one more than that of a waiter. A circle begins with any of its places. */
function columns(edges: Edge[]): Map<string, number> {
	const found = new Map<string, number>();
	const awaited = new Set(edges.map(({ to }) => to.key));
	const walk = (key: string, column: number) => {
		if (found.has(key))
			return;
		found.set(key, column);
		edges.filter(({ from }) => from.key === key).forEach(({ to }) => walk(to.key, column + 1));
	};
	edges.filter(({ from }) => !awaited.has(from.key)).forEach(({ from }) => walk(from.key, 0));
	edges.forEach(({ from }) => walk(from.key, 0));
	return found;
}

interface Drawn {
	place: Place;
	x: number;
	y: number;
}

/** From the right of the waiter to the left of what it waits for, or back below both. */
function path(from: Drawn, to: Drawn): string {
	const { width, height } = BOX;
	if (to.x > from.x) {
		const [x1, y1, x2, y2] = [from.x + width, from.y + height / 2, to.x - 6, to.y + height / 2];
		return `M${x1} ${y1}C${x1 + 40} ${y1} ${x2 - 40} ${y2} ${x2} ${y2}`;
	}
	const [x1, x2, y1, y2] = [from.x + width / 2, to.x + width / 2, from.y + height, to.y + height + 6];
	const low = Math.max(y1, y2) + 32;
	return from === to ? `M${x1} ${y1}C${x1 - 60} ${low} ${x1 + 60} ${low} ${x1 + 20} ${y2}` : `M${x1} ${y1}C${x1} ${low} ${x2} ${low} ${x2} ${y2}`;
}

/** Nothing, if nothing waits for another. */
export function Graph({ edges, label }: { edges: Edge[]; label: string }) {
	const all = folded(edges);
	const shown = all.slice(0, MOST);
	if (!shown.length)
		return null;
	const places = new Map(shown.flatMap(({ from, to }) => [[from.key, from], [to.key, to]] as const));
	const at = columns(shown);
	const rows: number[] = [];
	const drawn = new Map([...places].map(([key, place]): [string, Drawn] => {
		const column = at.get(key) ?? 0;
		const row = rows[column] ?? 0;
		rows[column] = row + 1;
		return [key, { place, x: 2 + column * (BOX.width + BOX.across), y: 2 + row * (BOX.height + BOX.down) }];
	}));
	const back = shown.some(({ from, to }) => Number(at.get(to.key)) <= Number(at.get(from.key)));
	const width = rows.length * (BOX.width + BOX.across) - BOX.across + 4;
	const height = Math.max(...rows.map((count) => count || 0)) * (BOX.height + BOX.down) + (back ? 24 : 0);
	return (
		<div class="wide graph" role="region" aria-label={label} tabIndex={0}>
			<svg class="waits" width={width} height={height} role="group" aria-label={shown.map(({ from, to, how }) => `${from.label} waits for ${to.label} (${how})`).join("; ")}>
				<defs><marker id="arrow" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
				{shown.map(({ from, to, how }) => {
					const [one, other] = [drawn.get(from.key), drawn.get(to.key)];
					return one && other && <path key={`${from.key} ${to.key} ${how}`} d={path(one, other)} marker-end="url(#arrow)"><title>{how}</title></path>;
				})}
				{shown.filter(({ from, to }) => Number(drawn.get(to.key)?.x) > Number(drawn.get(from.key)?.x)).map(({ from, to, how }) => {
					const other = drawn.get(to.key);
					return <text key={`${from.key} ${to.key} ${how}`} class="how" text-anchor="end" x={Number(other?.x) - 12} y={Number(other?.y) + 9}>{cut(how)}</text>;
				})}
				{[...drawn.values()].map(({ place, x, y }) => {
					const box = <><title>{place.label}</title><rect x={x} y={y} width={BOX.width} height={BOX.height} rx="6" /><text x={x + 8} y={y + 18}>{cut(place.label)}</text></>;
					return place.href ? <a key={place.key} href={place.href}>{box}</a> : <g key={place.key}>{box}</g>;
				})}
			</svg>
			{all.length > MOST && <p class="faint">and {all.length - MOST} more</p>}
		</div>
	);
}

const EDGES = "SELECT tid, name, kind, peer_pid, peer_tid FROM wait.edges WHERE coalesce(idle_seconds, 1) >= 1 LIMIT 1000";

/** Threads of one process, and who can end their waits. It is read when what they wait for, `what`, is another. */
export function WaitsOfThreads({ id, threads, targets, what }: { id: string; threads: api.Thread[]; targets: api.Target[]; what: string }) {
	const asked = useAskedAt(`edges ${id}`, what, async () => what ? (await api.query(id, EDGES)).value.filter((row) => row["kind"] !== null) : []);
	const names = new Map(threads.map((thread) => [thread.tid, thread.name ?? thread.os_name ?? ""]));
	const thread = (tid: number, name: string): Place => ({ key: `thread ${tid}`, label: `${tid} ${name}`, href: link("activity", { target: id, tid }) });
	const edges = (asked.value ?? []).flatMap((row): Edge[] => {
		const [pid, tid] = [Number(row["peer_pid"]), Number(row["peer_tid"])];
		const own = String(pid) === pidOf(id);
		const target = targets.find((one) => pidOf(one.id) === String(pid));
		if (own && !tid)
			return [];
		return [{
			from: thread(Number(row["tid"]), String(row["name"] ?? "")), how: String(row["kind"]),
			to: own ? thread(tid, names.get(tid) ?? "") : { key: `process ${pid}`, label: `${pid} ${target ? nameOf(target) : "process"}`, href: target && link("activity", { target: target.id }) },
		}];
	});
	return <Graph edges={edges} label="Who waits for whom" />;
}

/** Tasks that wait for others, or for a lock that another holds. */
export function WaitsOfTasks({ rows }: { rows: api.Row[] }) {
	const task = (name: string): Place => ({ key: name, label: name });
	const names = new Set(rows.map((row) => String(row["name"])));
	const edges = rows.flatMap((row): Edge[] => {
		const name = String(row["name"]);
		const holder = /, held by task (.+?)(?:, in .*)?$/.exec(String(row["waits_for"] ?? ""))?.[1];
		return [
			...holder && names.has(holder) ? [{ from: task(name), to: task(holder), how: "lock" }] : [],
			...String(row["awaiters"] ?? "").split(", ").filter((one) => names.has(one)).map((one) => ({ from: task(one), to: task(name), how: "awaits" })),
		];
	});
	return <Graph edges={edges} label="Which task waits for which" />;
}
