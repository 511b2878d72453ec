// SPDX-License-Identifier: GPL-3.0-or-later
// What charts of dashboards have collected: rows of each reading with its time, while the page is open.
import type { DashboardChart, Row } from "./api";

/** Rows that are kept of a chart. */
const KEPT = 3000;

const collected = new Map<string, { at: number; rows: Row[]; before: Map<string, Row> }>();

const numbers = (row: Row, series: string) => Object.keys(row).filter((name) => name !== series && typeof row[name] === "number");

/** Notes what a reading gave; all rows of the chart. A rate is the change a second since the reading before. */
export function collect(key: string, chart: DashboardChart, at: number, rows: Row[]): Row[] {
	const known = collected.get(key) ?? { at: 0, rows: [], before: new Map<string, Row>() };
	const series = chart.series ?? "";
	if (at <= known.at)
		return known.rows;
	const next = new Map<string, Row>();
	const added: Row[] = [];
	for (const row of rows) {
		const name = String(row[series] ?? "");
		const old = known.before.get(name);
		next.set(name, row);
		const shown: Row = { timestamp: at, ...(series ? { [series]: row[series] ?? null } : {}) };
		for (const column of numbers(row, series)) {
			const value = Number(row[column]);
			shown[column] = chart.show !== "rate" ? value : old && at > known.at ? (value - Number(old[column])) / (at - known.at) : null;
		}
		if (chart.show !== "rate" || old)
			added.push(shown);
	}
	const all = { at, rows: [...known.rows, ...added].slice(-KEPT), before: next };
	collected.set(key, all);
	return all.rows;
}
