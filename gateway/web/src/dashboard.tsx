// SPDX-License-Identifier: GPL-3.0-or-later
// Pages of charts and tables that are read again and again: those that come with the program, and those that are kept
// in a folder of the server.
import { useState } from "preact/hooks";
import * as api from "./api";
import { ApiError } from "./api";
import { collect } from "./boards";
import { Chart, Histogram } from "./chart";
import { Field } from "./field";
import { Failure, Fresh, useAsked } from "./parts";
import { change, link, type Route } from "./route";
import { Rows } from "./rows";
import { asError } from "./store";

const HEIGHT = 220;

/** What is not recorded here is no failure. */
const isMissing = ({ message }: ApiError) => /(^|: )no such table|nothing records/.test(message);

function Drawn({ chart, rows }: { chart: api.DashboardChart; rows: api.Row[] }) {
	const { show, series = "" } = chart;
	if (!rows.length)
		return <p class="faint">{show === "rate" ? "The second reading makes a rate." : "No rows."}</p>;
	if (show === "over-time" && new Set(rows.map((row) => row["timestamp"])).size < 2)
		return <p class="faint">The second reading makes a line.</p>;
	if (show === "table")
		return <Rows rows={rows} id="" label={`Rows of ${chart.title}`} />;
	if (show === "histogram")
		return <Histogram rows={rows} height={HEIGHT} />;
	return <Chart rows={rows} kind={show === "bar" ? "bar" : "line"} series={series} height={HEIGHT} />;
}

let last: Promise<unknown> = Promise.resolve();

/** Runs one query at a time. Of two, each would take the other, which stops threads, for a debugger. */
function inTurn<T>(ask: () => Promise<T>): Promise<T> {
	const next = last.then(ask, ask);
	last = next.catch(() => undefined);
	return next;
}

const LISTED = "SELECT DISTINCT table_schema AS 'schema', table_name AS 'name' FROM information_schema.tables";
/** A look at what is recorded serves all tiles for so long. */
const LISTED_MS = 3000;
let listed: { target: string; at: number; names: Promise<Set<string>> } | null = null;

/** What there is to ask for: a table that nothing records here is not asked for again and again. */
function tablesOf(target: string): Promise<Set<string>> {
	if (listed?.target !== target || Date.now() > listed.at + LISTED_MS)
		listed = { target, at: Date.now(), names: (target ? api.query(target, LISTED) : api.queryAll(LISTED))
			.then(({ value }) => new Set(value.flatMap(({ schema, name }) => [`${String(schema)}.${String(name)}`, String(name)]))) };
	return listed.names;
}

/** The tables that a query names, but for its own "WITH name AS" and what is called. */
function namesIn(sql: string): string[] {
	const own = new Set([...sql.matchAll(/(\w+)\s+AS\s*\(/gi)].map(([, name]) => name));
	return [...sql.matchAll(/\b(?:FROM|JOIN)\s+([a-z_][\w.]*)(?!\s*\(|[\w.])/gi)].flatMap(([, name]) => name && !own.has(name) && !name.startsWith("information_schema.") ? name : []);
}

const NO_TABLE = new ApiError("invalid", "nothing records it", null);

function Tile({ chart, target, every, paused, remove }: {
	chart: api.DashboardChart; target: string; every: number; paused: boolean; remove: (() => void) | null;
}) {
	const key = `${target} ${chart.show} ${chart.series ?? ""} ${chart.sql}`;
	const asked = useAsked(`chart ${key}`, paused ? 0 : every * 1000, async () => {
		const { value } = await inTurn(async () => {
			const there = await tablesOf(target);
			if (namesIn(chart.sql).some((name) => !there.has(name)))
				throw NO_TABLE;
			return target ? api.query(target, chart.sql) : api.queryAll(chart.sql);
		});
		return chart.show === "over-time" || chart.show === "rate" ? collect(key, chart, Date.now() / 1000, value) : value;
	});
	const { error } = asked;
	return (
		<section class="tile" aria-label={chart.title}>
			<h3>
				{chart.title}
				{target && <a class="faint" href={link("sql", { target, sql: chart.sql })}>SQL</a>}
				{remove && <button type="button" class="faint" aria-label={`Take ${chart.title} away`} onClick={remove}>×</button>}
			</h3>
			{error && (isMissing(error) ? <p class="faint">Not recorded here. {error.hint ?? (target && <a href={link("sql", { target, sql: chart.sql })}>How to record it</a>)}</p> : <Failure error={error} />)}
			{asked.value && !error && <Drawn chart={chart} rows={asked.value} />}
			{!asked.value && !error && <p class="fresh">reading…</p>}
		</section>
	);
}

export function Dashboards({ route, targets }: { route: Route; targets: api.Target[] }) {
	const name = route.values.get("name") ?? "service";
	const target = route.values.get("target") ?? "";
	const paused = route.values.has("paused");
	const [error, setError] = useState<ApiError | null>(null);
	const list = useAsked("dashboards", 0, api.dashboards);
	const asked = useAsked(`dashboard ${name}`, 0, () => api.dashboard(name));
	const board = asked.value;
	const known = list.value?.dashboards.find((one) => one.name === name);
	const attempt = async (what: () => Promise<unknown>) => {
		try {
			setError(null);
			await what();
		} catch (caught) {
			setError(asError(caught));
		}
		list.again();
		asked.again();
	};
	const take = (index: number) => board && attempt(() =>
		api.saveDashboard(name, { ...board, charts: board.charts.filter((_, place) => place !== index) }));
	return (
		<section aria-label="Dashboard">
			<div class="tools">
				<label>Dashboard{" "}
					<select id="dashboard" value={name} onChange={(event) => change({ name: event.currentTarget.value })}>
						{!known && <option value={name}>{name}</option>}
						{list.value?.dashboards.map((one) => <option key={one.name} value={one.name}>{one.title}{one.error && " (unreadable)"}</option>)}
					</select>
				</label>
				{board && <span class="faint">every {board.every} s, {target ? "of this process" : `of ${targets.length} ${targets.length === 1 ? "target" : "targets"}`}</span>}
				<button type="button" id="pause" aria-pressed={paused} onClick={() => change({ paused: !paused }, true)}>{paused ? "Go on" : "Pause"}</button>
				{known?.saved && <button type="button" onClick={() => void attempt(() => api.removeDashboard(name))}>Remove its file</button>}
				<Fresh when={asked.when} />
			</div>
			<Failure error={error ?? asked.error ?? list.error} />
			<div class="board">
				{board?.charts.map((chart, index) => (
					<Tile key={`${chart.title} ${chart.sql} ${chart.show}`} chart={chart} target={target} every={board.every} paused={paused}
						remove={list.value?.folder ? () => void take(index) : null} />
				))}
			</div>
			{list.value && (list.value.folder
				? <p class="faint">The panel SQL pins more to it.</p>
				: <p class="faint"><code>probing serve --dashboards FOLDER</code> keeps dashboards of your own, to which the panel SQL pins queries.</p>)}
		</section>
	);
}

/** Pins a query to a dashboard; nothing where none are kept. */
export function Pin({ chart }: { chart: Omit<api.DashboardChart, "title"> }) {
	const list = useAsked("dashboards", 0, api.dashboards);
	const [open, setOpen] = useState(false);
	const [state, setState] = useState<{ error: ApiError | null; name: string }>({ error: null, name: "" });
	if (!list.value?.folder)
		return null;
	const save = async (event: SubmitEvent) => {
		event.preventDefault();
		const form = new FormData(event.currentTarget as HTMLFormElement);
		const title = String(form.get("title")).trim();
		const chosen = String(form.get("to"));
		const name = chosen || title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 30) || "dashboard";
		try {
			const board = list.value?.dashboards.some((one) => one.name === name) ? await api.dashboard(name) : { title, every: 10, charts: [] };
			await api.saveDashboard(name, { ...board, charts: [...board.charts, { title, ...chart }] });
			setState({ error: null, name });
			setOpen(false);
			list.again();
		} catch (caught) {
			setState({ error: asError(caught), name: "" });
		}
	};
	return (
		<>
			<button type="button" id="pin" aria-expanded={open} onClick={() => setOpen(!open)}>Pin to a dashboard</button>{" "}
			{state.name && !open && <span role="status">pinned to <a href={link("dashboard", { name: state.name })}>{state.name}</a></span>}
			{open && (
				<form class="tools" id="pinning" onSubmit={(event) => void save(event)}>
					<label>Title <Field name="title" maxLength={60} required size={20} /></label>
					<label>Dashboard{" "}
						<select name="to">
							<option value="">a new one of this title</option>
							{list.value.dashboards.map((one) => <option key={one.name} value={one.name}>{one.title}</option>)}
						</select>
					</label>
					<button>Pin</button>
				</form>
			)}
			<Failure error={state.error} />
		</>
	);
}
