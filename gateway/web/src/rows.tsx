// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of SQL as a table.
import type { Row } from "./api";

/** Rows that are shown. */
export const MOST = 2000;

/** Whole numbers as they are; others as far as they are read, all of it on a longer look. */
const told = (value: number) => Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(9)));

/** What is this short is not broken into lines. */
const SHORT = 28;

export function Rows({ rows, id = "rows", label = "Rows" }: { rows: Row[]; id?: string; label?: string }) {
	const names = Object.keys(rows[0] ?? {});
	const numeric = new Set(names.filter((name) => rows.some((row) => typeof row[name] === "number")));
	return (
		<div class="wide" role="region" aria-label={label} tabIndex={0}>
			<table id={id || undefined} class="rows">
				<thead><tr>{names.map((name) => <th key={name} scope="col" class={numeric.has(name) ? "number" : ""}>{name}</th>)}</tr></thead>
				<tbody>
					{rows.slice(0, MOST).map((row, index) => (
						<tr key={index}>
							{names.map((name) => {
								const value = row[name];
								return typeof value === "number" ? <td key={name} class="number" title={String(value)}>{told(value)}</td>
									: value === null || value === undefined ? <td key={name} class={numeric.has(name) ? "null number" : "null"}>NULL</td>
										: <td key={name} class={value.length <= SHORT ? "short" : ""}>{value}</td>;
							})}
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}
