// SPDX-License-Identifier: GPL-3.0-or-later
// The panel of an inference server: the verdict, its processes, its requests by queue and by age, the KV cache, and
// which process waits for which. It shows the whole server, whichever of its processes is the target.
import { useState } from "preact/hooks";
import * as api from "./api";
import { type Row } from "./api";
import { Chart } from "./chart";
import { Sentence, Verdict } from "./findings";
import { Failure, Fresh, Table, count, seconds, useAsked } from "./parts";
import { link, type Route } from "./route";

/** How often the server is read while the panel is open. */
const EVERY_MS = 5000;
const KNOWN = "SELECT count(*) AS n FROM inference.servers";
/** An hour of readings. */
const MOST = 720;
const EDGES = "SELECT tid, name, kind, peer_pid, idle_seconds, waits_for FROM wait.edges WHERE peer_pid IS NOT NULL AND peer_pid <> (SELECT pid FROM process.info)";

type Process = api.InferenceServer["processes"][number];

const part = (one: Process) => one.part ?? "a process";

/** The sums over all schedulers: requests by queue, null if one cannot be read, and the share of the KV cache that is used. */
function sums(server: api.InferenceServer): { requests: Row; kv: Row } {
	const requests: Row = { time: server.time };
	let total = 0;
	let free = 0;
	for (const one of server.processes) {
		for (const [queue, number] of Object.entries(one.role === "scheduler" ? one.queues : {}))
			requests[queue] = number === null || requests[queue] === null ? null : Number(requests[queue] ?? 0) + number;
		if (one.kv_total !== null && one.kv_free !== null) {
			total += one.kv_total;
			free += one.kv_free;
		}
	}
	return { requests, kv: { time: server.time, "used %": total ? 100 * (total - free) / total : null } };
}

/** "10 min": a bound of whole seconds. */
const short = (bound: number) => bound < 60 ? `${bound} s` : bound < 3600 ? `${bound / 60} min` : `${bound / 3600} h`;

/** Readings without the queues that were empty in all of them. */
const used = (rows: Row[]) => {
	const names = [...new Set(rows.flatMap(Object.keys))].filter((name) => rows.some((row) => row[name]));
	return rows.map((row) => Object.fromEntries(names.map((name) => [name, row[name] ?? null])));
};

/** Requests of the schedulers by age; of a server without one that can be read, of all its processes. */
function ages({ processes }: api.InferenceServer): Row[] {
	const schedulers = processes.filter(({ role }) => role === "scheduler");
	const found = new Map<string, number>();
	for (const one of schedulers.length ? schedulers : processes)
		one.ages.forEach(({ below_seconds: below, requests }, index) => {
			const label = below === null ? `from ${short(one.ages[index - 1]?.below_seconds ?? 0)} on` : `below ${short(below)}`;
			found.set(label, (found.get(label) ?? 0) + requests);
		});
	return [...found].map(([age, requests]) => ({ age, requests }));
}

function Processes({ server }: { server: api.InferenceServer }) {
	return (
		<div class="wide" role="region" aria-label="Processes of the server" tabIndex={0}>
			<table>
				<thead><tr>{["Process", "Part", "Does", "Requests", "Oldest", "KV blocks free"].map((head) => <th key={head} scope="col">{head}</th>)}</tr></thead>
				<tbody>
					{server.processes.map((one) => (
						<tr key={one.pid}>
							<td><a href={link("activity", { target: String(one.pid) })}>{one.pid}</a></td>
							<td>{part(one)}</td>
							<td class="value"><Sentence text={one.unreadable ?? one.doing ?? ""} />{one.missing && <span class="failure"> not as described: {one.missing}</span>}</td>
							<td class="number">{Object.entries(one.queues).filter(([, number]) => number).map(([queue, number]) => `${count(number ?? 0)} ${queue.replaceAll("_", " ")}`).join(", ")
								|| (one.requests === null ? "" : count(one.requests))}</td>
							<td class="number">{one.oldest_seconds === null ? "" : seconds(one.oldest_seconds)}</td>
							<td class="number">{one.kv_total === null ? "" : `${one.kv_free === null ? "?" : count(one.kv_free)} of ${count(one.kv_total)}`}</td>
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

/** Which processes of the server wait for which other ones, and for how long; read in each turn. */
function Waits({ server, turn }: { server: api.InferenceServer; turn: number }) {
	const names = new Map(server.processes.map((one) => [one.pid, `${part(one)} ${one.pid}`]));
	const asked = useAsked(`waits of ${[...names.keys()].join()} ${turn}`, 0, async () => (await Promise.all(server.processes.map(async (one) => {
		try {
			return (await api.query(String(one.pid), EDGES)).value.map((row): Row => ({ ...row, waiter: one.pid }));
		} catch (error) {
			// The gateway may serve one of the processes only.
			return [{ waiter: one.pid, failed: error instanceof Error ? error.message : String(error) }];
		}
	}))).flat());
	const rows = (asked.value ?? []) as Row[];
	const edges = rows.filter((row) => row["failed"] === undefined);
	const failed = rows.filter((row) => row["failed"] !== undefined);
	return (
		<>
			<h3>Waits between processes</h3>
			<Failure error={asked.error} />
			{asked.value && !edges.length && !failed.length && <p class="faint">No process waits for another one in the kernel. One that polls shared memory counts as running.</p>}
			<Table caption="Waits between processes" heads={["Waits", "Thread", "For", "How", "Since"]}
				rows={edges.map((row) => [
					names.get(Number(row["waiter"])) ?? String(row["waiter"]), String(row["name"] ?? row["tid"] ?? ""),
					names.get(Number(row["peer_pid"])) ?? String(row["peer_pid"]), String(row["waits_for"] ?? row["kind"] ?? ""),
					row["idle_seconds"] === null ? "" : seconds(Number(row["idle_seconds"]))])} />
			{failed.map((row) => <p class="faint" key={String(row["waiter"])}>{row["waiter"]} was left out: {row["failed"]}</p>)}
		</>
	);
}

export function ServerPanel({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const [turn, setTurn] = useState(0);
	const [history] = useState<{ id: string; requests: Row[]; kv: Row[] }>({ id, requests: [], kv: [] });
	const asked = useAsked(`server ${id}`, EVERY_MS, async () => {
		if (history.id !== id)
			Object.assign(history, { id, requests: [], kv: [] });
		if (id && !history.requests.length && !Number((await api.query(id, KNOWN)).value[0]?.["n"]))
			return null;
		const server = id ? await api.inference(id) : null;
		if (server) {
			const { requests, kv } = sums(server);
			history.requests = [...history.requests, requests].slice(-MOST);
			history.kv = [...history.kv, kv].slice(-MOST);
		}
		return server;
	});
	const server = asked.value;
	if (!id)
		return <p>Choose a process above.</p>;
	return (
		<section aria-label="Server">
			<div class="tools">
				<button type="button" onClick={() => {
					setTurn(turn + 1);
					asked.again();
				}}>Read again</button>
				<Fresh when={asked.when} />
			</div>
			<Failure error={asked.error} />
			{!server && asked.when > 0 && <p>This is no process of an inference server that is known. docs/howto/add-server.md says how to describe another one.</p>}
			{server && (
				<>
					<h3>{server.engine ?? "Inference server"} {server.version ?? ""}</h3>
					{server.findings.map((one) => <Verdict key={one.sentence} finding={one} id={id} />)}
					{!server.findings.length && <p class="well" role="status">nothing is found that keeps its requests</p>}
					<Processes server={server} />
					<h3>Requests by age</h3>
					<Chart rows={ages(server)} kind="bar" height={180} />
					<h3>Requests by queue</h3>
					{history.requests.length > 1 ? <Chart rows={used(history.requests)} height={220} /> : <p class="faint">A chart needs a second reading, {EVERY_MS / 1000} s after the first.</p>}
					{history.kv.length > 1 && history.kv.some((row) => row["used %"] !== null) && <><h3>KV cache in use</h3><Chart rows={history.kv} height={180} /></>}
					<Waits server={server} turn={turn} />
				</>
			)}
		</section>
	);
}
