// SPDX-License-Identifier: GPL-3.0-or-later
// All targets: what each main thread does, and what is wrong, on top.
import * as api from "./api";
import { Failure, Fresh, bytes, seconds, useAsked } from "./parts";
import { change, link, type Route } from "./route";

interface Seen {
	info: Map<string, api.Row>;
	threads: Map<string, api.Row[]>;
	where: Map<string, api.Row>;
	warnings: string[];
}

/** Rows have "_pid" only if there are several targets. */
function group(rows: api.Row[], only: string): Map<string, api.Row[]> {
	const found = new Map<string, api.Row[]>();
	for (const row of rows) {
		const id = String(row["_pid"] ?? only);
		found.set(id, [...(found.get(id) ?? []), row]);
	}
	return found;
}

async function look(targets: api.Target[]): Promise<Seen> {
	const only = targets[0]?.id ?? "";
	const [info, threads, where] = await Promise.all([
		api.query(null, "SELECT * FROM (SELECT pid, state, rss, swap, user_seconds + system_seconds AS cpu_seconds, age FROM process.info)"),
		api.query(null, "SELECT * FROM python.threads"),
		api.query(null, "SELECT * FROM python.backtrace WHERE depth = 0"),
	]);
	const first = (rows: api.Row[]) => new Map([...group(rows, only)].map(([id, list]) => [id, list[0] ?? {}]));
	return {
		info: new Map(info.value.map((row) => [String(row["pid"]), row])),
		threads: group(threads.value, only),
		where: first(where.value),
		warnings: threads.warnings,
	};
}

/** What is wrong with it, the worst first. */
function troubles(target: api.Target, seen: Seen | null): string[] {
	const found: string[] = [];
	const threads = seen?.threads.get(target.id) ?? [];
	const held = threads.filter((thread) => /held by \d+/.test(String(thread["waits_for"] ?? "")));
	const waits = threads.filter((thread) => thread["gil"] === "waits").length;
	if (target.ended)
		found.push("has ended");
	if (target.unreadable)
		found.push("cannot be read");
	if (held.length > 1)
		found.push(`${held.length} threads wait for locks`);
	if (threads.some((thread) => thread["state"] === "uninterruptible"))
		found.push("waits for a disk or device");
	if (threads.some((thread) => thread["gil"] === "holds" && Number(thread["idle_seconds"]) > 1))
		found.push("GIL held by a sleeping thread");
	if (waits > 3)
		found.push(`${waits} threads wait for the GIL`);
	if (Number(seen?.info.get(target.id)?.["swap"]) > 100 << 20)
		found.push("swapped out");
	return found;
}

function doing(threads: api.Row[], where: api.Row | undefined): string {
	const main = threads.find((thread) => thread["main"]);
	if (!main)
		return "";
	const place = where ? `${where["qualname"] ?? where["func"]}:${where["lineno"]}` : "";
	const wait = main["waits_for"] ? ` ${main["waits_for"]}` : "";
	const idle = main["idle_seconds"] === null ? "" : ` ${seconds(Number(main["idle_seconds"]))}`;
	return `${place} · ${main["state"]}${main["state"] === "idle" ? idle : ""}${wait}`;
}

interface Told {
	target: api.Target;
	wrong: string[];
}

/** A cell for each rank: what its main thread does, by colour and by text. */
function Ranks({ rows, seen }: { rows: Told[]; seen: Seen | null }) {
	const ranked = rows.filter(({ target }) => typeof target.rank === "number").sort((a, b) => Number(a.target.rank) - Number(b.target.rank));
	if (!ranked.length)
		return null;
	return (
		<ol class="ranks" aria-label="Ranks">
			{ranked.map(({ target, wrong }) => {
				const main = seen?.threads.get(target.id)?.find((thread) => thread["main"]);
				const state = wrong[0] ?? String(main?.["state"] ?? "not read");
				const where = seen?.where.get(target.id);
				return (
					<li key={target.id}>
						<a class={wrong.length ? "wrong" : state} href={link("activity", { target: target.id })}
							title={`rank ${target.rank}, process ${target.id}: ${doing(seen?.threads.get(target.id) ?? [], where)}`}>
							<strong>{target.rank}</strong> <span>{state}</span> <span class="faint">{where ? String(where["func"]) : ""}</span>
						</a>
					</li>
				);
			})}
		</ol>
	);
}

export function Overview({ route }: { route: Route }) {
	const filter = route.values.get("filter") ?? "";
	const list = useAsked("targets", 3000, api.targets);
	const seen = useAsked("overview", 3000, async () => look(await api.targets()));
	const rows = (list.value ?? [])
		.map((target) => ({ target, wrong: troubles(target, seen.value), command: (target.argv ?? [target.file ?? ""]).join(" ") }))
		.filter(({ target, command }) => !filter || `${target.id} ${command}`.includes(filter))
		.sort((a, b) => b.wrong.length - a.wrong.length || (a.target.rank ?? 1e9) - (b.target.rank ?? 1e9));
	return (
		<section aria-label="Overview">
			<div class="tools">
				<input id="filter" type="search" placeholder="Filter by command or pid" aria-label="Filter"
					value={filter} onInput={(event) => change({ filter: event.currentTarget.value }, true)} />
				<Fresh when={list.when} />
			</div>
			<Failure error={list.error ?? (list.value?.length ? seen.error : null)} />
			<Ranks rows={rows} seen={seen.value} />
			<div class="wide" role="region" aria-label="Targets" tabIndex={0}>
				<table>
					<thead>
						<tr>{["Process", "Rank", "Python", "Threads", "CPU time", "Memory", "Main thread", "Command"].map((head) => <th key={head} scope="col">{head}</th>)}</tr>
					</thead>
					<tbody>
						{rows.map(({ target, wrong, command }) => {
							const info = seen.value?.info.get(target.id);
							return (
								<tr key={target.id} class={wrong.length ? "wrong" : ""}>
									<td><a href={link("activity", { target: target.id })}>{target.id}</a></td>
									<td>{target.rank ?? ""}</td>
									<td>{target.version ?? ""}</td>
									<td>{target.threads ?? ""}</td>
									<td>{info ? seconds(Number(info["cpu_seconds"])) : ""}</td>
									<td>{info ? bytes(Number(info["rss"])) : ""}</td>
									<td>
										{wrong.map((text) => <span class="mark" key={text} title={target.unreadable ?? text}>{text}</span>)}
										{doing(seen.value?.threads.get(target.id) ?? [], seen.value?.where.get(target.id))}
									</td>
									<td class="command" title={command}>{command}</td>
								</tr>
							);
						})}
					</tbody>
				</table>
			</div>
			{list.value && !rows.length && <p>No target{filter ? " matches" : " is served"}.</p>}
		</section>
	);
}
