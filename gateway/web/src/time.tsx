// SPDX-License-Identifier: GPL-3.0-or-later
// What happened over time, on one line: what the process has recorded, what this page has seen of it, and below it
// the flame graph of an interval that is dragged out.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import * as api from "./api";
import { ApiError, type Row } from "./api";
import { collect } from "./boards";
import { Failure, Fresh, useAsked } from "./parts";
import * as shared from "./plot";
import { change, type Route } from "./route";
import { asError } from "./store";

const EVERY_MS = 2000;
const KEEP_S = 600;
const HEIGHT = 110;
const SPANS = [60, 300, 600, 3600];

/** A line of the panel: where it comes from, and whether it is the change a second of what is read. */
interface Track {
	title: string;
	sql: string;
	show: "line" | "over-time" | "rate";
	series?: string;
}

const RINGS = "SELECT table_name FROM information_schema.tables WHERE table_name IN ('memory_usage', 'torch_step_timing', 'training_logs', 'variables')";

const since = (seconds: number) => `timestamp > now() - ${seconds} ORDER BY timestamp DESC LIMIT 3000`;

/** What a table of a ring has is asked for only where there is one. */
const tracks = (seconds: number, tables: Set<string>): Track[] => [
	{ title: "Processor (of one)", show: "rate", sql: "SELECT user_seconds AS program, system_seconds AS kernel FROM process.info" },
	...(tables.has("memory_usage") ? [{ title: "Memory (MB)", show: "line", sql: `SELECT timestamp, memory_mb AS memory FROM memory_usage WHERE ${since(seconds)}` } as const]
		: [{ title: "Memory (MB)", show: "over-time", sql: "SELECT rss / 1e6 AS memory FROM process.info" } as const]),
	{ title: "Threads that wait for the GIL", show: "over-time", sql: "SELECT count(*) AS waiting FROM python.threads WHERE gil = 'waits'" },
	...(tables.has("torch_step_timing") ? [{ title: "Step (ms)", show: "line",
		sql: `SELECT timestamp, duration AS step, data, forward, backward, optimizer, communication FROM python.torch_step_timing WHERE ${since(seconds)}` } as const] : []),
	...(tables.has("training_logs") ? [
		...(tables.has("torch_step_timing") ? [] : [{ title: "Step (ms)", show: "line", sql: `SELECT timestamp, duration AS step FROM training_logs WHERE ${since(seconds)}` } as const]),
		{ title: "Loss", show: "line", sql: `SELECT timestamp, loss FROM training_logs WHERE loss IS NOT NULL AND ${since(seconds)}` } as const] : []),
	...(tables.has("variables") ? [{ title: "Watched values", show: "line", series: "name",
		sql: `SELECT timestamp, name, number FROM python.variables WHERE number IS NOT NULL AND ${since(seconds)}` } as const] : []),
	...(tables.has("devices") ? [{ title: "GPU (%)", show: "over-time", series: "gpu", sql: "SELECT 'GPU ' || gpu AS gpu, gpu_util AS used FROM gpu.utilization" } as const] : []),
];

/** Rows as lines over the same time. */
function lines(rows: Row[], series: string): { x: number[]; y: [string, (number | null)[]][] } {
	const sorted = rows.filter((row) => typeof row["timestamp"] === "number").sort((a, b) => Number(a["timestamp"]) - Number(b["timestamp"]));
	const x = [...new Set(sorted.map((row) => Number(row["timestamp"])))];
	const places = new Map(x.map((at, place) => [at, place]));
	const found = new Map<string, (number | null)[]>();
	for (const row of sorted)
		for (const name of Object.keys(row)) {
			if (name === "timestamp" || name === series || typeof row[name] !== "number")
				continue;
			const label = series ? String(row[series]) : name;
			const line = found.get(label) ?? new Array<number | null>(x.length).fill(null);
			line[places.get(Number(row["timestamp"])) ?? 0] = Number(row[name]);
			found.set(label, line);
		}
	return { x, y: [...found].slice(0, 8) };
}

function Line({ track, rows, from, to, chosen }: { track: Track; rows: Row[]; from: number; to: number; chosen: (from: number, to: number) => void }) {
	const host = useRef<HTMLDivElement>(null);
	const choose = useRef(chosen);
	choose.current = chosen;
	const { x, y } = lines(rows, track.series ?? "");
	const now = useRef({ x, y, from, to });
	now.current = { x, y, from, to };
	const plot = useRef<uPlot | null>(null);
	const labels = y.map(([label]) => label).join("\n");
	const dark = shared.useDark();
	useEffect(() => {
		const element = host.current;
		if (!element)
			return;
		const axis = shared.axis();
		const { x, y, from, to } = now.current;
		const plotted = new uPlot({
			width: element.clientWidth, height: HEIGHT,
			cursor: { sync: { key: "time" }, drag: { x: true, y: false, setScale: false } },
			scales: { x: { time: true, min: from, max: to }, y: { range: shared.heights } },
			axes: [{ ...axis, ...shared.times }, { ...axis, size: 64, space: 18 }],
			series: [{ value: (_: uPlot, at: number | null) => at === null ? "–" : new Date(at * 1000).toLocaleTimeString() },
				...y.map(([label], index) => ({ label, value: shared.legend, stroke: shared.stroke(index), width: 1.5, spanGaps: true }))],
			hooks: { setSelect: [(self: uPlot) => {
				if (self.select.width > 4)
					choose.current(self.posToVal(self.select.left, "x"), self.posToVal(self.select.left + self.select.width, "x"));
			}] },
		} as uPlot.Options, [x, ...y.map(([, line]) => line)] as uPlot.AlignedData, element);
		const end = shared.fit(plotted, element, HEIGHT);
		plot.current = plotted;
		return () => {
			end();
			plotted.destroy();
			plot.current = null;
		};
	}, [labels, dark]);
	useEffect(() => {
		plot.current?.setData([x, ...y.map(([, line]) => line)] as uPlot.AlignedData, false);
		plot.current?.setScale("x", { min: from, max: to });
	}, [rows, from, to]);
	return <section class="track" aria-label={track.title}><h3>{track.title}</h3><div ref={host} role="img" aria-label={`${track.title} over time`} /></section>;
}

/** The flame graph of what a recorder keeps, or a way to begin that. */
function Recent({ id, from, to }: { id: string; from: number; to: number }) {
	const [error, setError] = useState<ApiError | null>(null);
	const address = api.recentLink(id);
	const [turn, setTurn] = useState(0);
	const asked = useAsked(`recent ${id} ${turn}`, 0, () => api.recorders(id));
	const range = from && to ? `#at=${from.toFixed(3)}-${to.toFixed(3)}` : "";
	const keep = async () => {
		try {
			setError(null);
			await api.record(id, { keep: KEEP_S });
			// Its first samples.
			setTimeout(() => setTurn((now) => now + 1), 1500);
		} catch (caught) {
			setError(asError(caught));
		}
	};
	if (!asked.value)
		return <Failure error={asked.error} />;
	return (
		<>
			<Failure error={error} />
			{!asked.value.length
				? <p>No recorder keeps what it did. <button type="button" id="keep" onClick={() => void keep()}>Keep the last ten minutes from now on</button></p>
				: (
					<>
						<p><button type="button" id="newest" onClick={() => setTurn(turn + 1)}>Read what was kept since</button> {range && <span class="faint">of the interval that was chosen</span>}</p>
						<iframe key={turn} title="Flame graph of the interval" src={`${address}${range}`} />
					</>
				)}
		</>
	);
}

/** Tables of the process's rings, and "devices" where there is a GPU. */
async function recorded(id: string): Promise<Set<string>> {
	const [rings, gpus] = await Promise.all([api.query(id, RINGS), api.query(id, "SELECT gpu FROM gpu.devices").catch(() => null)]);
	return new Set([...rings.value.map((row) => String(row["table_name"])), ...(gpus?.value.length ? ["devices"] : [])]);
}

export function Time({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const span = SPANS.find((one) => String(one) === route.values.get("span")) ?? 600;
	const from = Number(route.values.get("from")) || 0;
	const to = Number(route.values.get("to")) || 0;
	const paused = route.values.has("paused");
	const tables = useAsked(`recorded in ${id}`, 30000, async () => id ? await recorded(id) : new Set<string>());
	const list = tracks(span, tables.value ?? new Set());
	const asked = useAsked(`time ${id} ${span} ${tables.value ? [...tables.value].join() : ""}`, paused ? 0 : EVERY_MS, async () => {
		if (!tables.value)
			return null;
		const at = Date.now() / 1000;
		const rows = await Promise.all(list.map(async (track) => {
			const { value } = await api.query(id, track.sql);
			return track.show === "line" ? value : collect(`time ${id} ${track.sql}`, track, at, value);
		}));
		return { rows, at };
	});
	if (!id)
		return <p>Choose a process above.</p>;
	const end = asked.value?.at ?? 0;
	return (
		<section aria-label="Time">
			<div class="tools">
				<label>Last{" "}
					<select id="span" value={span} onChange={(event) => change({ span: event.currentTarget.value }, true)}>
						{SPANS.map((one) => <option key={one} value={one}>{one / 60} min</option>)}
					</select>
				</label>
				<button type="button" id="pause" aria-pressed={paused} onClick={() => change({ paused: !paused }, true)}>{paused ? "Go on" : "Pause"}</button>
				{from > 0 && (
					<>
						<span id="chosen">{new Date(from * 1000).toLocaleTimeString()} – {new Date(to * 1000).toLocaleTimeString()}</span>
						<button type="button" onClick={() => change({ from: null, to: null }, true)}>All the time</button>
					</>
				)}
				<Fresh when={end * 1000} />
			</div>
			<p class="faint">Drag over a line: the flame graph below shows that interval.</p>
			<Failure error={asked.error ?? tables.error} />
			{asked.value && list.map((track, index) => (
				<Line key={track.title} track={track} rows={asked.value?.rows[index] ?? []} from={end - span} to={end}
					chosen={(first, last) => change({ from: first.toFixed(3), to: last.toFixed(3) }, true)} />
			))}
			<Recent id={id} from={from} to={to} />
		</section>
	);
}
