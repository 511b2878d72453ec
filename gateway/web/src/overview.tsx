// SPDX-License-Identifier: GPL-3.0-or-later
// All targets: what each main thread does, and what is wrong, on top.
import * as api from "./api";
import { Field } from "./field";
import { Failure, Fresh, bytes, seconds, useAsked } from "./parts";
import { change, link, type Route } from "./route";

const HEADS = ["Process", "Rank", "Python", "Threads", "CPU", "CPU time", "Memory", "Step", "GIL", "Main thread", "Command"];

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

function memory({ rss, limit, limit_used }: api.Seen): string {
	const share = limit && limit_used !== null ? limit_used / limit : 0;
	return bytes(rss) + (share > 0.5 ? ` (group at ${Math.round(share * 100)} %)` : "");
}

/** A cell for each rank: what its main thread does, by colour and by text. */
function Ranks({ rows }: { rows: api.Seen[] }) {
	const ranked = rows.filter(({ rank }) => typeof rank === "number").sort((a, b) => Number(a.rank) - Number(b.rank));
	const [first] = ranked;
	if (!first)
		return null;
	return (
		<>
			<ol class="ranks" aria-label="Ranks">
				{ranked.map((row) => {
					const state = row.troubles[0] ?? row.main?.state ?? "not read";
					return (
						<li key={row.id}>
							<a class={row.troubles.length ? "wrong" : state} href={link("activity", { target: row.id })}
								title={`rank ${row.rank}, process ${row.id}: ${doing(row)}`}>
								<strong>{row.rank}</strong> <span>{state}</span> <span class="faint">{row.main?.func ?? ""}</span>
							</a>
						</li>
					);
				})}
			</ol>
			<p><a id="whole" href={link("job", { target: first.id })}>The stacks of all ranks as one tree</a></p>
		</>
	);
}

export function Overview({ route }: { route: Route }) {
	const filter = route.values.get("filter") ?? "";
	const seen = useAsked("overview", 2000, api.overview);
	const targets = seen.value?.targets ?? [];
	const rows = targets
		.filter((target) => !filter || `${target.id} ${command(target)}`.includes(filter))
		.sort((a, b) => b.troubles.length - a.troubles.length || (a.rank ?? 1e9) - (b.rank ?? 1e9));
	return (
		<section aria-label="Overview">
			<div class="tools">
				<Field id="filter" type="search" placeholder="Filter by command or pid" aria-label="Filter"
					value={filter} onTyped={(text) => change({ filter: text }, true)} />
				<Fresh when={(seen.value?.time ?? 0) * 1000} />
				{seen.value && <span class="faint">{rows.length} of {targets.length} targets</span>}
			</div>
			<Failure error={seen.error} />
			<Ranks rows={rows} />
			<div class="wide" role="region" aria-label="Targets" tabIndex={0}>
				<table>
					<thead>
						<tr>{HEADS.map((head) => <th key={head} scope="col">{head}</th>)}</tr>
					</thead>
					<tbody>
						{rows.map((row) => (
							<tr key={row.id} class={row.troubles.length ? "wrong" : ""}>
								<td><a href={link("activity", { target: row.id })}>{row.id}</a></td>
								<td>{row.rank ?? ""}</td>
								<td>{row.version ?? ""}</td>
								<td>{row.threads ?? ""}</td>
								<td class="short">{row.cpu_percent === null || row.cpu_percent === undefined ? "" : `${Math.round(row.cpu_percent)} %`}</td>
								<td class="short">{seconds(row.cpu_seconds ?? null)}</td>
								<td class="short">{memory(row)}</td>
								<td>{row.step ?? ""}</td>
								<td class="short">{gil(row)}</td>
								<td>
									{row.troubles.map((text) => <span class="mark" key={text} title={row.unreadable ?? text}>{text}</span>)}
									{doing(row)}
								</td>
								<td class="command" title={command(row)}>{command(row)}</td>
							</tr>
						))}
					</tbody>
				</table>
			</div>
			{seen.value && !rows.length && <p>No target{filter ? " matches" : " is served"}.</p>}
		</section>
	);
}
