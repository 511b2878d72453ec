// SPDX-License-Identifier: GPL-3.0-or-later
// Steps of all ranks as a heat map: which rank is slow, always or now and then.
import { useState } from "preact/hooks";
import * as api from "./api";
import { type Row } from "./api";
import { Failure, seconds, useAsked } from "./parts";
import { link } from "./route";

/** Steps that are drawn: the last ones that every rank has finished. */
const STEPS = 120;
/** Steps that are read of each rank, so that a slow one and a fast one have some in common. */
const READ = 1000;
const MOST_RANKS = 256;
const CELL = { width: 7, height: 12 };

/** Ranks wait for each other in communication, and with DDP in backward: what a rank took itself is in the rest. */
const VALUES = {
	"own": ["its own work, without backward and communication", "duration - backward - coalesce(communication, 0)"],
	"duration": ["the whole step", "duration"],
	"wait": ["backward and communication, with waits for others", "backward + coalesce(communication, 0)"],
	"data": ["waiting for data", "data"],
} as const;
type Name = keyof typeof VALUES;

interface Rank {
	rank: number;
	id: string;
	rows: Map<number, number>;
	error: string;
}

export const HAS_STEPS = "SELECT count(*) AS n FROM information_schema.tables WHERE table_schema = 'python' AND table_name = 'torch_step_timing'";

async function read(one: api.Target, name: Name): Promise<Rank> {
	const sql = `SELECT step, ${VALUES[name][1]} AS ms FROM python.torch_step_timing ORDER BY timestamp DESC LIMIT ${READ}`;
	const rank = { rank: one.rank ?? -1, id: one.id, rows: new Map<number, number>(), error: "" };
	try {
		if (!Number((await api.query(one.id, HAS_STEPS)).value[0]?.["n"]))
			return { ...rank, error: "its steps are not recorded" };
		for (const row of (await api.query(one.id, sql)).value as Row[])
			if (row["ms"] !== null)
				rank.rows.set(Number(row["step"]), Number(row["ms"]));
	} catch (error) {
		rank.error = String(error);
	}
	return rank;
}

function median(values: number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** How often each rank took longest of all in a step that several have recorded, the most frequent first. */
function slowest(ranks: Rank[], steps: number[]): [number, number][] {
	const times = new Map<number, number>();
	for (const step of steps) {
		const there = ranks.filter(({ rows }) => rows.has(step));
		if (there.length < 2)
			continue;
		const worst = there.reduce((one, other) => (other.rows.get(step) ?? 0) > (one.rows.get(step) ?? 0) ? other : one);
		times.set(worst.rank, (times.get(worst.rank) ?? 0) + 1);
	}
	return [...times].sort((a, b) => b[1] - a[1]);
}

function HeatMap({ ranks, steps }: { ranks: Rank[]; steps: number[] }) {
	const usual = median(ranks.flatMap(({ rows }) => steps.flatMap((step) => rows.get(step) ?? [])));
	return (
		<>
			<div class="wide" role="region" aria-label="Steps by rank" tabIndex={0}>
				<svg class="heat" width={60 + steps.length * CELL.width} height={ranks.length * CELL.height + 4} role="group" aria-label="Each step of each rank">
					{ranks.map(({ rank, id, rows }, line) => (
						<g key={rank}>
							<a href={link("activity", { target: id })}><text x="0" y={line * CELL.height + 10}>rank {rank}</text></a>
							{steps.map((step, column) => {
								const ms = rows.get(step);
								return ms === undefined ? null : (
									<rect key={step} x={60 + column * CELL.width} y={line * CELL.height} width={CELL.width - 1} height={CELL.height - 1}
										fill-opacity={Math.max(0.08, Math.min(1, usual > 0 ? (ms / usual - 0.5) / 1.5 : 0))}>
										<title>rank {rank}, step {step}: {seconds(ms / 1000)}</title>
									</rect>
								);
							})}
						</g>
					))}
				</svg>
			</div>
			<p class="faint">Steps {steps[0]} to {steps[steps.length - 1]}; the strongest cells took twice the median of {seconds(usual / 1000)}, or more.</p>
		</>
	);
}

/** Nothing, unless several ranks of the job of the process are served and record their steps. */
export function StepsByRank({ id }: { id: string }) {
	const [name, setName] = useState<Name>("own");
	const asked = useAsked(`ranks ${id} ${name}`, 0, async () => {
		const ranks = (await api.targets()).filter((one) => typeof one.rank === "number" && !one.ended).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
		return ranks.length < 2 ? [] : Promise.all(ranks.slice(0, MOST_RANKS).map((one) => read(one, name)));
	});
	const ranks = asked.value?.filter(({ rows }) => rows.size) ?? [];
	const last = Math.min(...ranks.map(({ rows }) => Math.max(...rows.keys())));
	const steps = [...new Set(ranks.flatMap(({ rows }) => [...rows.keys()]))].filter((step) => step <= last).sort((a, b) => a - b).slice(-STEPS);
	const counts = slowest(ranks, steps);
	const [worst] = counts;
	if (!asked.error && ranks.length < 2)
		return null;
	return (
		<div id="byrank">
			<h3>Steps by rank</h3>
			<Failure error={asked.error} />
			<p>
				<label>Of each step{" "}
					<select value={name} onChange={(event) => setName(event.currentTarget.value as Name)}>
						{Object.entries(VALUES).map(([one, [words]]) => <option key={one} value={one}>{words}</option>)}
					</select>
				</label>
				{worst && <span> Rank {worst[0]} took longest in {worst[1]} of {counts.reduce((sum, [, n]) => sum + n, 0)} steps.</span>}
			</p>
			<HeatMap ranks={ranks} steps={steps} />
			{asked.value?.filter(({ error }) => error).map(({ rank, error }) => <p class="failure" key={rank}>Rank {rank} was left out: {error}</p>)}
		</div>
	);
}
