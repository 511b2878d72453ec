// SPDX-License-Identifier: GPL-3.0-or-later
// Torch in a process: its modules as a tree, tensors by size, optimizers, its rank, steps if they are recorded.
import { useState } from "preact/hooks";
import * as api from "./api";
import { type Row } from "./api";
import { Chart } from "./chart";
import { Verdicts } from "./findings";
import { Failure, Fresh, Table, bytes, count, seconds, useAsked } from "./parts";
import { stroke } from "./plot";
import { HAS_STEPS, StepsByRank } from "./ranks";
import { type Route } from "./route";
import { pidOf } from "./target";

const MOST = 100;
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

/** What the process has written down, which is read at once. */
interface Recorded {
	/** null: they are not recorded. */
	steps: Row[] | null;
	losses: Row[];
	watched: Row[];
}

async function readRecorded(id: string): Promise<Recorded> {
	const recorded = Number((await api.query(id, HAS_STEPS)).value[0]?.["n"]) > 0;
	const names = new Set((await api.query(id, RECORDED)).value.map((row) => row["table_name"]));
	const rows = async (there: boolean, sql: string) => there ? (await api.query(id, sql)).value : null;
	return { steps: await rows(recorded, STEPS), losses: await rows(names.has("training_logs"), LOSSES) ?? [], watched: await rows(names.has("variables"), WATCHED) ?? [] };
}

/** What is found in its memory, by a walk over all objects. */
interface Objects {
	modules: Row[];
	tensors: Row[];
	total: Row | undefined;
	optimizers: Row[];
	processes: Row[];
	warnings: string[];
}

async function readObjects(id: string): Promise<Objects> {
	const answers = await Promise.all([
		api.query(id, "SELECT path, class, depth, all_parameters, all_bytes, dtype, device, training, hooks, parent, address FROM torch.modules"),
		api.query(id, `SELECT holder, kind, shape, dtype, device, bytes, shared FROM torch.tensors ORDER BY bytes DESC LIMIT ${MOST}`),
		api.query(id, "SELECT count(*) AS n, sum(CASE WHEN shared THEN 0 ELSE storage_bytes END) AS bytes FROM torch.tensors"),
		api.query(id, "SELECT holder, class, groups, parameters, lr, state_tensors, state_bytes FROM torch.optimizers"),
		api.query(id, "SELECT rank, local_rank, world_size, group_name, backend, group_size FROM torch.processes"),
	]);
	const [modules, tensors, total, optimizers, processes] = answers;
	return {
		modules: modules.value, tensors: tensors.value, total: total.value[0], optimizers: optimizers.value,
		processes: processes.value.filter((row) => row["rank"] !== null || row["group_name"] !== null),
		warnings: [...new Set(answers.flatMap((answer) => answer.warnings))],
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
	const rows = (asked.value ?? []).flatMap(({ one, rows: list }) => list.map((row): Row => ({ ...row, rank: one.rank ?? null, process: pidOf(one.id) })));
	const failed = asked.value?.filter(({ error }) => error) ?? [];
	rows.sort((a, b) => text(a["operation"]).localeCompare(text(b["operation"])) || text(a["group_name"]).localeCompare(text(b["group_name"]))
		|| Number(a["rank"]) - Number(b["rank"]));
	return (
		<>
			<Failure error={asked.error} />
			{failed.map(({ one, error }) => <p class="failure" key={one.id}>{pidOf(one.id)} was left out: {error}</p>)}
			{asked.value && !rows.length && <p class="faint">No collective operation was recorded; they are while steps are.</p>}
			<Table caption="Collectives by rank" heads={["Operation", "Group", "Rank", "Process", "Ended", "Mean ms", "Longest ms", "Bytes", "Last"]}
				rows={rows.map((row) => [
					text(row["operation"]), text(row["group_name"]), text(row["rank"]), text(row["process"]), count(Number(row["ended"])),
					text(row["mean_ms"]), text(row["longest_ms"]), bytes(Number(row["bytes"])), text(row["last_seq"])])} />
			{rows.length > 1 && <p class="faint">Who waits least in an operation is the rank that the others wait for. A smaller last number: that rank is behind.</p>}
		</>
	);
}

/** Columns of a step's parts, in the order and so the colours of the chart; what is in none of them is the rest. */
const PARTS = ["data", "forward", "backward", "optimizer", "communication", "evaluation"] as const;

/** What a step is made of: the sums over those whose parts are known, as one bar and in words, the largest part first. */
function Split({ rows: all }: { rows: Row[] }) {
	// Of the first steps not all parts are known.
	const rows = all.filter((row) => row["forward_ms"] !== null);
	const sum = (name: string) => rows.reduce((all, row) => all + Number(row[`${name}_ms`] ?? 0), 0);
	const whole = sum("step");
	const parts = PARTS.map((name, index) => ({ name: name as string, colour: stroke(index + 1), share: sum(name) / whole })).filter(({ share }) => share >= 0.005);
	const rest = 1 - parts.reduce((all, { share }) => all + share, 0);
	if (!(whole > 0))
		return null;
	if (rest >= 0.005)
		parts.push({ name: "other", colour: "var(--line)", share: rest });
	parts.sort((a, b) => b.share - a.share);
	let x = 0;
	return (
		<div id="split">
			<p>A step takes {seconds(whole / rows.length / 1000)} on average: {parts.map(({ name, share }) => `${Math.round(100 * share)} % ${name}`).join(", ")}.</p>
			<svg class="split" viewBox="0 0 100 1" preserveAspectRatio="none" role="img" aria-label="Parts of a step">
				{parts.map(({ name, colour, share }) => {
					x += 100 * share;
					return <rect key={name} x={x - 100 * share} width={100 * share} height="1" style={{ fill: colour }}><title>{name}: {(100 * share).toFixed(1)} %</title></rect>;
				})}
			</svg>
			<ul class="colours">{parts.map(({ name, colour }) => <li key={name}><svg viewBox="0 0 1 1" aria-hidden="true"><rect width="1" height="1" style={{ fill: colour }} /></svg> {name}</li>)}</ul>
		</div>
	);
}

const GPUS = "SELECT gpu, gpu_util, memory_used, memory_total, temperature, power FROM gpu.utilization";

/** The GPUs of the machine; nothing where there are none. */
function Gpus({ id }: { id: string }) {
	const asked = useAsked(`gpus ${id}`, 5000, async () => (await api.query(id, GPUS).catch(() => null))?.value.filter((row) => row["gpu"] !== null) ?? []);
	return !asked.value?.length ? null : (
		<>
			<h3>GPUs</h3>
			<Table caption="GPUs of the machine" heads={["GPU", "Used", "Memory", "Of", "°C", "W"]}
				rows={asked.value.map((row) => [text(row["gpu"]), row["gpu_util"] === null ? "" : `${text(row["gpu_util"])} %`, bytes(row["memory_used"] as number | null),
					bytes(row["memory_total"] as number | null), text(row["temperature"]), text(row["power"])])} />
		</>
	);
}

function Steps({ rows }: { rows: Row[] | null }) {
	if (!rows?.length)
		return <p class="faint">{rows ? "No step was recorded yet." : "Steps are not recorded here."} <code>probing TARGET config probing.torch.profiling=on</code> begins
			that; <code>perf --torch</code> samples their parts from outside.</p>;
	return <div id="steps"><Split rows={rows} /><Chart rows={[...rows].reverse()} /></div>;
}

function Held({ seen }: { seen: Objects }) {
	return (
		<>
			<h3>Modules</h3>
			{/* That there is nothing is no failure. */}
			{seen.warnings.map((warning) => <p class={warning.includes(" is empty: ") ? "faint" : "failure"} key={warning}>{warning}</p>)}
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
		</>
	);
}

export function Training({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const asked = useAsked(`recorded ${id}`, 0, async () => id ? readRecorded(id) : null);
	const held = useAsked(`torch ${id}`, 0, async () => id ? readObjects(id) : null);
	const recorded = asked.value;
	if (!id)
		return <p>Choose a process above.</p>;
	return (
		<section aria-label="Training">
			<div class="tools">
				<button type="button" onClick={() => {
					asked.again();
					held.again();
				}}>Read again</button>
				<Fresh when={asked.when} />
			</div>
			<Failure error={asked.error} />
			<Verdicts id={id} />
			{recorded && (
				<>
					{recorded.losses.length > 0 && <div id="losses"><h3>Loss</h3><Chart rows={recorded.losses} kind="line" height={220} /></div>}
					{recorded.watched.length > 0 && <div id="watched"><h3>Watched values</h3><Chart rows={recorded.watched} kind="line" series="name" height={220} /></div>}
					<h3>Steps</h3>
					<Steps rows={recorded.steps} />
					<StepsByRank key={`ranks ${asked.when}`} id={id} />
					<h3>Collectives by rank</h3>
					<Collectives key={asked.when} id={id} />
				</>
			)}
			<Gpus id={id} />
			<Failure error={held.error?.message === asked.error?.message ? null : held.error} />
			{held.value ? <Held seen={held.value} /> : !held.error && <p class="fresh" role="status">reading modules and tensors…</p>}
		</section>
	);
}
