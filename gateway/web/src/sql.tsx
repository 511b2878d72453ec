// SPDX-License-Identifier: GPL-3.0-or-later
// SQL over one target: an editor, rows as a table or a chart, and what tables there are.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { ApiError, type Row } from "./api";
import { Chart, Histogram, KINDS, seriesOf, type Kind } from "./chart";
import { Editor } from "./editor";
import { Field } from "./field";
import { Sentence } from "./findings";
import { Failure, Fresh, useAsked } from "./parts";
import { Pin } from "./dashboard";
import { BOOK, FIRST } from "./queries";
import { change, type Route } from "./route";
import { MOST, Rows } from "./rows";
import { saveQuery, savedQueries, useStore } from "./store";

/** Queries with a name, which stay in this browser. */
function Saved({ text, run }: { text: string; run: (sql: string) => void }) {
	useStore();
	const list = Object.entries(savedQueries()).sort(([a], [b]) => a.localeCompare(b));
	const save = (event: SubmitEvent) => {
		event.preventDefault();
		const form = event.currentTarget as HTMLFormElement;
		const name = String(new FormData(form).get("name")).trim();
		if (name)
			saveQuery(name, text);
		form.reset();
	};
	return (
		<>
			<h3>Saved</h3>
			<ul id="saved">
				{list.map(([name, sql]) => (
					<li key={name}>
						<button type="button" title={sql} onClick={() => run(sql)}>{name}</button>{" "}
						<button type="button" class="faint" aria-label={`Forget ${name}`} onClick={() => saveQuery(name, null)}>×</button>
					</li>
				))}
			</ul>
			<form onSubmit={save}>
				<Field name="name" size={14} maxLength={60} required aria-label="Name for the query that was run" placeholder="Name" />{" "}
				<button id="save">Save</button>
			</form>
		</>
	);
}

const TITLES: Record<Kind, string> = { auto: "chart", line: "lines", bar: "bars", histogram: "histogram" };

/** The sections of a diagnosis, with what each query gave. */
function Diagnosis({ id, name, run }: { id: string; name: string; run: (sql: string) => void }) {
	const asked = useAsked(`skill ${id} ${name}`, 0, () => api.skill(id, name));
	return (
		<div id="diagnosis">
			<div class="tools">
				<button type="button" onClick={asked.again}>Run again</button>
				<button type="button" onClick={() => change({ skill: null })}>Back to the editor</button>
				<Fresh when={asked.when} />
			</div>
			<Failure error={asked.error} />
			{asked.value?.map((section, index) => (
				<article key={section.title}>
					<h3>{section.title}</h3>
					{section.text.split("\n\n").map((part) => <p key={part} class="said"><Sentence text={part.replace(/\n(?!\s*[-*|\d])/g, " ")} /></p>)}
					{section.error && <p class="failure">cannot be told: {section.error}</p>}
					{section.rows && (section.rows.length ? <Rows rows={section.rows} id={`rows${index}`} label={`Rows of ${section.title}`} /> : <p class="faint">no rows</p>)}
					{section.sql && <p><button type="button" title={section.sql} onClick={() => run(section.sql ?? "")}>Edit the query</button></p>}
				</article>
			))}
		</div>
	);
}

/** The first name that an error proposes for one that does not exist. */
function proposalOf(error: ApiError | null): { name: string; mend: (sql: string) => string } | null {
	// Of a query of several lines, the place goes before it.
	const wrong = /(?:^|: )no such \w+: ([\w.]+)$/.exec(error?.message ?? "")?.[1];
	const name = /did you mean ([\w.]+)/.exec(error?.hint ?? "")?.[1];
	if (!wrong || !name)
		return null;
	// A column keeps the table that it is written with.
	const dot = name.includes(".") ? -1 : wrong.lastIndexOf(".");
	const meant = wrong.slice(0, dot + 1) + name;
	return { name: meant, mend: (sql) => sql.replace(new RegExp(`(?<![\\w.'"])${wrong.replaceAll(".", "\\.")}(?![\\w.'"])`, "gi"), meant) };
}

interface Outcome {
	rows: Row[] | null;
	error: ApiError | null;
	warnings: string[];
	ms: number;
}

export function Sql({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const given = route.values.get("sql") ?? "";
	const text = given || FIRST;
	const asked = route.values.get("chart");
	const chart = asked === "1" ? "auto" : KINDS.find((kind) => kind === asked);
	const series = route.values.get("series") ?? "";
	const skill = route.values.get("skill");
	const tables = useAsked("tables", 0, api.tables);
	const skills = useAsked("skills", 0, api.skills);
	const [outcome, setOutcome] = useState<Outcome | null>(null);
	const [busy, setBusy] = useState(false);
	const [turn, setTurn] = useState(0);
	const ending = useRef<AbortController | null>(null);

	useEffect(() => {
		if (!id || skill || !route.values.has("sql"))
			return;
		const controller = new AbortController();
		const start = performance.now();
		ending.current = controller;
		setBusy(true);
		api.query(id, text, controller.signal).then(
			({ value, warnings }) => setOutcome({ rows: value, error: null, warnings, ms: performance.now() - start }),
			(error) => setOutcome({ rows: null, warnings: [], ms: 0,
				error: error instanceof ApiError ? error : new ApiError("cancelled", "ended", null) }),
		).finally(() => {
			if (ending.current === controller)
				setBusy(false);
		});
		return () => controller.abort();
	}, [id, text, turn, skill, route.values.has("sql")]);

	const proposal = proposalOf((!skill && outcome?.error) || null);
	const run = (sql: string) => {
		if (sql === route.values.get("sql") && !skill)
			setTurn(turn + 1);
		else
			change({ sql, skill: null });
	};
	return (
		<section aria-label="SQL" class="columns">
			<div class="main">
				{!skill && <Editor text={text} given={given} tables={tables.value ?? []} mend={proposal?.mend ?? null} onRun={run} />}
				{skill && id && <Diagnosis key={`${id} ${skill}`} id={id} name={skill} run={run} />}
				{busy && <button type="button" id="end" onClick={() => ending.current?.abort()}>End it</button>}
				{outcome?.rows && !skill && (
					<div class="tools">
						<label>Shown as{" "}
							<select id="chart" value={chart ?? ""} onChange={(event) => change({ chart: event.currentTarget.value }, true)}>
								<option value="">table</option>
								{KINDS.map((kind) => <option key={kind} value={kind}>{TITLES[kind]}</option>)}
							</select>
						</label>
						{chart && chart !== "histogram" && seriesOf(outcome.rows).length > 0 && (
							<label>Series by{" "}
								<select id="series" value={series} onChange={(event) => change({ series: event.currentTarget.value }, true)}>
									<option value="">columns</option>
									{seriesOf(outcome.rows).map((name) => <option key={name} value={name}>{name}</option>)}
								</select>
							</label>
						)}
						<a href={api.queryLink(id, text, "csv")} download="rows.csv">CSV</a>
						<a href={api.queryLink(id, text, "json")} download="rows.json">JSON</a>
						<Pin chart={{ sql: text, show: chart === "histogram" || chart === "bar" ? chart : chart ? "line" : "table", ...(series ? { series } : {}) }} />
						<span class="fresh">{outcome.rows.length} {outcome.rows.length === 1 ? "row" : "rows"} in {outcome.ms.toFixed(0)} ms
							{outcome.rows.length > MOST && !chart && `, the first ${MOST} are shown: CSV has all`}</span>
					</div>
				)}
				{!id && <p>Choose a process above.</p>}
				<Failure error={(!skill && outcome?.error) || null} />
				{proposal && <button type="button" id="mend" title="Ctrl-." onClick={() => run(proposal.mend(text))}>Run with {proposal.name}</button>}
				{!skill && outcome?.warnings.map((warning) => <p class="failure" key={warning}>{warning}</p>)}
				{outcome?.rows && !skill && (chart === "histogram" ? <Histogram rows={outcome.rows} />
					: chart ? <Chart rows={outcome.rows} kind={chart} series={series} /> : <Rows rows={outcome.rows} />)}
			</div>
			<aside>
				<h3>Queries</h3>
				<ul>{BOOK.map(([name, sql]) => <li key={name}><button type="button" onClick={() => run(sql)}>{name}</button></li>)}</ul>
				<h3>Diagnoses</h3>
				<ul id="skills">
					{skills.value?.map((one) => (
						<li key={one.name}><button type="button" title={one.title} onClick={() => change({ skill: one.name })}>{one.name}</button></li>
					))}
				</ul>
				<Saved text={text} run={run} />
				<h3>Tables</h3>
				<ul>
					{tables.value?.map((table) => (
						<li key={`${table.schema}.${table.name}`}>
							<details>
								<summary title={table.doc}>{table.schema === "main" ? "" : `${table.schema}.`}{table.name}</summary>
								<ul>{table.columns.map((column) => <li key={column.name} title={column.doc ?? undefined}>{column.name}</li>)}</ul>
							</details>
						</li>
					))}
				</ul>
			</aside>
		</section>
	);
}
