// SPDX-License-Identifier: GPL-3.0-or-later
// Torch in a process: its modules as a tree, tensors by size, optimizers, its rank, steps if they are recorded.
import { useState } from "preact/hooks";
import * as api from "./api";
import { type Row } from "./api";
import { Chart } from "./chart";
import { Failure, Fresh, Table, bytes, count, useAsked } from "./parts";
import { StepsByRank } from "./ranks";
import { type Route } from "./route";

const MOST = 100;
const HAS_STEPS = "SELECT count(*) AS n FROM information_schema.tables WHERE table_schema = 'python' AND table_name = 'torch_step_timing'";
const STEPS = "SELECT step, duration AS step_ms, data AS data_ms, forward AS forward_ms, backward AS backward_ms, optimizer AS optimizer_ms, "
	+ "communication AS communication_ms, evaluation AS evaluation_ms FROM python.torch_step_timing ORDER BY timestamp DESC LIMIT 500";
/** What the program tells of its steps, and the values that are watched. */
const LOSSES = "SELECT step, loss FROM training_logs WHERE loss IS NOT NULL ORDER BY timestamp DESC LIMIT 2000";
const WATCHED = "SELECT step, name, number FROM python.variables WHERE number IS NOT NULL ORDER BY timestamp DESC LIMIT 2000";
const RECORDED = "SELECT table_name FROM information_schema.tables WHERE table_name IN ('training_logs', 'variables')";

const HAS_COLLECTIVES = HAS_STEPS.replace("torch_step_timing", "comm_collective");
/** Of each rank: an operation that it has begun and not ended keeps it waiting now. */
const COLLECTIVES = "SELECT operation, group_name, count(*) AS ended, round(avg(duration), 3) AS mean_ms, round(max(duration), 3) AS longest_ms, "
	+ "sum(bytes) AS bytes, max(seq) AS last_seq FROM python.comm_collective WHERE record = 'end' GROUP BY operation, group_name";

interface Seen {
	modules: Row[];
	tensors: Row[];
	total: Row | undefined;
	optimizers: Row[];
	processes: Row[];
	/** null: they are not recorded. */
	steps: Row[] | null;
	losses: Row[];
	watched: Row[];
	warnings: string[];
}

async function look(id: string): Promise<Seen> {
	const recorded = Number((await api.query(id, HAS_STEPS)).value[0]?.["n"]) > 0;
	const names = new Set((await api.query(id, RECORDED)).value.map((row) => row["table_name"]));
	const answers = await Promise.all([
		api.query(id, "SELECT path, class, depth, all_parameters, all_bytes, dtype, device, training, hooks, parent, address FROM torch.modules"),
		api.query(id, `SELECT holder, kind, shape, dtype, device, bytes, shared FROM torch.tensors ORDER BY bytes DESC LIMIT ${MOST}`),
		api.query(id, "SELECT count(*) AS n, sum(CASE WHEN shared THEN 0 ELSE storage_bytes END) AS bytes FROM torch.tensors"),
		api.query(id, "SELECT holder, class, groups, parameters, lr, state_tensors, state_bytes FROM torch.optimizers"),
		api.query(id, "SELECT rank, local_rank, world_size, group_name, backend, group_size FROM torch.processes"),
		recorded ? api.query(id, STEPS) : null,
		names.has("training_logs") ? api.query(id, LOSSES) : null,
		names.has("variables") ? api.query(id, WATCHED) : null,
	]);
	const [modules, tensors, total, optimizers, processes, steps, losses, watched] = answers;
	return {
		modules: modules.value, tensors: tensors.value, total: total.value[0], optimizers: optimizers.value,
		processes: processes.value.filter((row) => row["rank"] !== null || row["group_name"] !== null), steps: steps?.value ?? null,
		losses: losses?.value ?? [], watched: watched?.value ?? [],
		warnings: [...new Set(answers.flatMap((answer) => answer?.warnings ?? []))],
	};
}

const text = (value: string | number | null | undefined) => value === null || value === undefined ? "" : String(value);

function Module({ row, children }: { row: Row; children: Map<string, Row[]> }) {
	const inside = children.get(text(row["address"])) ?? [];
	const [open, setOpen] = useState(Number(row["depth"]) < 1);
	const path = text(row["path"]);
	return (
		<li>
			{inside.length
				? <button type="button" class="fold" aria-expanded={open} aria-label={`Unfold ${path}`} onClick={() => setOpen(!open)}>{open ? "▾" : "▸"}</button>
				: <span class="fold" />}
			<span class="name">{path}</span> <span class="place">{text(row["class"])}</span>{" "}
			<span class="value">
				{count(Number(row["all_parameters"]))} parameters, {bytes(Number(row["all_bytes"]))}
				{row["dtype"] !== null && ` ${row["dtype"]}`}{row["device"] !== null && ` ${row["device"]}`}
				{Number(row["training"]) === 0 && " · evaluation"}{Number(row["hooks"]) > 0 && ` · ${row["hooks"]} hooks`}
			</span>
			{open && inside.length > 0 && (
				<ul class="parts">{inside.map((one) => <Module key={text(one["address"])} row={one} children={children} />)}</ul>
			)}
		</li>
	);
}

function Modules({ rows }: { rows: Row[] }) {
	const there = new Set(rows.map((row) => text(row["address"])));
	const children = new Map<string, Row[]>();
	const roots: Row[] = [];
	for (const row of rows) {
		const parent = text(row["parent"]);
		if (!there.has(parent) || parent === text(row["address"]))
			roots.push(row);
		else
			children.set(parent, [...(children.get(parent) ?? []), row]);
	}
	return <ul class="parts" id="modules">{roots.map((row) => <Module key={text(row["address"])} row={row} children={children} />)}</ul>;
}

/** Collectives of all ranks that are served, the slowest rank of each operation marked by the shortest wait. */
function Collectives({ id }: { id: string }) {
	const asked = useAsked(`collectives ${id}`, 0, async () => {
		const ranks = (await api.targets()).filter((one) => one.id === id || typeof one.rank === "number");
		const found = await Promise.all(ranks.map(async (one) => {
			try {
				const recorded = Number((await api.query(one.id, HAS_COLLECTIVES)).value[0]?.["n"]) > 0;
				return { one, rows: recorded ? (await api.query(one.id, COLLECTIVES)).value : [], error: "" };
			} catch (error) {
				return { one, rows: [], error: String(error) };
			}
		}));
		return found.sort((a, b) => (a.one.rank ?? 1e9) - (b.one.rank ?? 1e9));
	});
	const rows = (asked.value ?? []).flatMap(({ one, rows: list }) => list.map((row): Row => ({ ...row, rank: one.rank ?? null, process: one.id })));
	const failed = asked.value?.filter(({ error }) => error) ?? [];
	rows.sort((a, b) => text(a["operation"]).localeCompare(text(b["operation"])) || text(a["group_name"]).localeCompare(text(b["group_name"]))
		|| Number(a["rank"]) - Number(b["rank"]));
	return (
		<>
			<Failure error={asked.error} />
			{failed.map(({ one, error }) => <p class="failure" key={one.id}>{one.id} was left out: {error}</p>)}
			{asked.value && !rows.length && <p class="faint">No collective operation was recorded; they are while steps are.</p>}
			<Table caption="Collectives by rank" heads={["Operation", "Group", "Rank", "Process", "Ended", "Mean ms", "Longest ms", "Bytes", "Last"]}
				rows={rows.map((row) => [
					text(row["operation"]), text(row["group_name"]), text(row["rank"]), text(row["process"]), count(Number(row["ended"])),
					text(row["mean_ms"]), text(row["longest_ms"]), bytes(Number(row["bytes"])), text(row["last_seq"])])} />
			{rows.length > 1 && <p class="faint">Who waits least in an operation is the rank that the others wait for. A smaller last number: that rank is behind.</p>}
		</>
	);
}

function Steps({ rows }: { rows: Row[] | null }) {
	if (!rows?.length)
		return <p class="faint">{rows ? "No step was recorded yet." : "Steps are not recorded here."} <code>probing TARGET config probing.torch.profiling=on</code> begins
			that; <code>perf --torch</code> samples their parts from outside.</p>;
	return <div id="steps"><Chart rows={[...rows].reverse()} /></div>;
}

export function Training({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const asked = useAsked(`torch ${id}`, 0, async () => id ? look(id) : null);
	const seen = asked.value;
	if (!id)
		return <p>Choose a process above.</p>;
	return (
		<section aria-label="Training">
			<div class="tools">
				<button type="button" onClick={asked.again}>Read again</button>
				<Fresh when={asked.when} />
			</div>
			<Failure error={asked.error} />
			{/* That there is nothing is no failure. */}
			{seen?.warnings.map((warning) => <p class={warning.includes(" is empty: ") ? "faint" : "failure"} key={warning}>{warning}</p>)}
			{seen && (
				<>
					{seen.losses.length > 0 && <div id="losses"><h3>Loss</h3><Chart rows={seen.losses} kind="line" height={220} /></div>}
					{seen.watched.length > 0 && <div id="watched"><h3>Watched values</h3><Chart rows={seen.watched} kind="line" series="name" height={220} /></div>}
					<h3>Steps</h3>
					<Steps rows={seen.steps} />
					<StepsByRank key={`ranks ${asked.when}`} id={id} />
					<h3>Modules</h3>
					{seen.modules.length ? <Modules rows={seen.modules} /> : <p>No module of torch is reached by a variable or a module of Python.</p>}
					<h3>Tensors</h3>
					<p class="facts">{count(Number(seen.total?.["n"] ?? 0))} tensors, {bytes(Number(seen.total?.["bytes"] ?? 0))}, each storage once
						{Number(seen.total?.["n"]) > MOST && `; the ${MOST} largest are shown`}</p>
					<Table caption="Tensors by size" heads={["Held by", "Kind", "Shape", "Type", "Device", "Bytes"]}
						rows={seen.tensors.map((row) => [
							text(row["holder"]), text(row["kind"]), text(row["shape"]), text(row["dtype"]), text(row["device"]) || "unknown",
							`${bytes(Number(row["bytes"]))}${Number(row["shared"]) ? " (shared)" : ""}`])} />
					{seen.optimizers.length > 0 && <h3>Optimizers</h3>}
					<Table caption="Optimizers" heads={["Held by", "Class", "Parameters", "Learning rate", "State"]}
						rows={seen.optimizers.map((row) => [
							text(row["holder"]), text(row["class"]), text(row["parameters"]), text(row["lr"]),
							`${text(row["state_tensors"])} tensors, ${bytes(Number(row["state_bytes"]))}`])} />
					{seen.processes.length > 0 && <h3>Rank and process groups</h3>}
					<Table caption="Process groups" heads={["Rank", "Local rank", "World", "Group", "Backend", "Members"]}
						rows={seen.processes.map((row) => ["rank", "local_rank", "world_size", "group_name", "backend", "group_size"].map((name) => text(row[name])))} />
					<h3>Collectives by rank</h3>
					<Collectives key={asked.when} id={id} />
				</>
			)}
		</section>
	);
}
