// SPDX-License-Identifier: GPL-3.0-or-later
// Rows as a chart: lines or bars with the first column along x and all columns of numbers along y, or a histogram
// of one column.
import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Row } from "./api";
import * as shared from "./plot";


export const KINDS = ["auto", "line", "bar", "histogram"] as const;
export type Kind = (typeof KINDS)[number];

const MOST_BINS = 60;

/** How many rows are in each range of the first column of numbers that the rows have; null if there is none. */
export function bins(rows: Row[]): Row[] | null {
	const names = Object.keys(rows[0] ?? {});
	const name = [...names].reverse().find((one) => rows.some((row) => typeof row[one] === "number"));
	const values = rows.flatMap((row) => name !== undefined && typeof row[name] === "number" ? [Number(row[name])] : []);
	if (name === undefined || !values.length)
		return null;
	const low = values.reduce((a, b) => Math.min(a, b));
	const high = values.reduce((a, b) => Math.max(a, b));
	const whole = values.every(Number.isInteger);
	const wanted = Math.min(MOST_BINS, Math.ceil(Math.sqrt(values.length)) + 1);
	const exact = (high - low) / wanted || 1;
	// 1, 2 or 5 of some power of ten: a bound that can be read.
	const power = 10 ** Math.floor(Math.log10(exact));
	const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= exact) ?? exact;
	const width = whole ? Math.max(1, Math.round(step)) : step;
	const first = Math.floor(low / width);
	const counts = new Array<number>(Math.floor(high / width) - first + 1).fill(0);
	for (const value of values) {
		const place = Math.floor(value / width) - first;
		counts[place] = (counts[place] ?? 0) + 1;
	}
	const digits = Math.max(0, -Math.floor(Math.log10(width)));
	return counts.map((count, place) => ({
		[name]: whole && width === 1 ? String(first + place)
			: `${((first + place) * width).toFixed(digits)} … ${((first + place + 1) * width).toFixed(digits)}`,
		rows: count,
	}));
}

export function Histogram({ rows, height = 320 }: { rows: Row[]; height?: number }) {
	const counted = useMemo(() => bins(rows), [rows]);
	return counted ? <Chart rows={counted} kind="bar" height={height} /> : <p>No column has numbers.</p>;
}

const isNumeric = (rows: Row[], name: string) => rows.some((row) => typeof row[name] === "number")
	&& rows.every((row) => row[name] === null || typeof row[name] === "number");

/** Seconds since the epoch, of this century. */
const isTime = (rows: Row[], name: string) => /time|stamp|^(at|when|started|ended)$/i.test(name) && isNumeric(rows, name)
	&& rows.every((row) => row[name] === null || (Number(row[name]) > 9e8 && Number(row[name]) < 5e9));

/** What names something is no height. */
const NAMES = /^(p?pid|tid|id|ident|task|interpreter|seq|line|lineno|rank|.*_id|.*address)$/i;

/** Columns whose values may name series: few values, and none of what is drawn. */
export function seriesOf(rows: Row[]): string[] {
	return Object.keys(rows[0] ?? {}).filter((name) => {
		const values = new Set(rows.map((row) => row[name]));
		return values.size > 1 && values.size <= MOST_SERIES && values.size < rows.length && !isTime(rows, name)
			&& (NAMES.test(name) || !isNumeric(rows, name));
	});
}

const MOST_SERIES = 24;

interface Drawn {
	/** The column along x. */
	along: string;
	time: boolean;
	sorted: boolean;
	rows: Row[];
	lines: [string, (number | null)[]][];
	x: number[];
}

/** What is drawn: heights along the time, if there is one, else along the first column. */
export function drawn(rows: Row[], series: string): Drawn {
	const names = Object.keys(rows[0] ?? {});
	const along = names.find((name) => isTime(rows, name)) ?? names.find((name) => name !== series) ?? "";
	const numeric = names.filter((name) => isNumeric(rows, name));
	const others = numeric.filter((name) => name !== along && name !== series);
	const said = others.filter((name) => !NAMES.test(name));
	const heights = said.length ? said : others.length ? others : numeric;
	const sorted = numeric.includes(along);
	const used = sorted ? [...rows].sort((a, b) => Number(a[along]) - Number(b[along])) : rows;
	const shown = { along, time: isTime(rows, along), sorted, rows: used };
	const height = (row: Row, name: string) => row[name] === null ? null : Number(row[name]);
	if (!series || !names.includes(series)) {
		const x = used.map((row, index) => sorted ? Number(row[along]) : index);
		return { ...shown, x, lines: heights.map((name) => [name, used.map((row) => height(row, name))]) };
	}
	const places = new Map<number | string, number>();
	for (const row of used)
		if (!places.has(row[along] ?? ""))
			places.set(row[along] ?? "", places.size);
	const firsts = [...places.keys()];
	const lines = new Map<string, (number | null)[]>();
	for (const row of used)
		for (const name of heights) {
			const label = `${row[series] ?? "NULL"}${heights.length > 1 ? ` ${name}` : ""}`;
			const line = lines.get(label) ?? new Array<number | null>(firsts.length).fill(null);
			line[places.get(row[along] ?? "") ?? 0] = height(row, name);
			lines.set(label, line);
		}
	return { ...shown, rows: firsts.map((value) => ({ [along]: value })), x: firsts.map((value, index) => sorted ? Number(value) : index), lines: [...lines].slice(0, MOST_SERIES) };
}

export function Chart({ rows, kind = "auto", series = "", height = 320 }: { rows: Row[]; kind?: Kind; series?: string; height?: number }) {
	const host = useRef<HTMLDivElement>(null);
	const dark = shared.useDark();
	useEffect(() => {
		const element = host.current;
		if (!element || !rows.length)
			return;
		const { along, time, sorted, rows: used, lines, x } = drawn(rows, series);
		const bars = (kind === "auto" ? !sorted : kind === "bar") ? uPlot.paths.bars : undefined;
		const axis = shared.axis();
		const plot = new uPlot({
			width: element.clientWidth,
			height,
			// A part along x is enlarged by dragging over it; a double click shows all again.
			cursor: { drag: { x: true, y: false } },
			// Half of the last label is on the right of the last value.
			...(sorted ? {} : { padding: [null, 48, null, null] as uPlot.Padding }),
			scales: { x: { time, ...(time ? { range: shared.along } : {}) }, y: { range: shared.heights } },
			axes: [{
				...axis, grid: { ...axis.grid, show: sorted }, ...(time ? shared.times : sorted ? shared.counts(x) : {
					space: 120, values: (_: uPlot, splits: number[]) => splits.map((at) => Number.isInteger(at) ? String(used[at]?.[along] ?? "").slice(0, 18) : ""),
				}),
			}, { ...axis, values: shared.exact, size: (_: uPlot, texts: string[] | null) => 24 + 8 * Math.max(2, ...(texts ?? []).map((text) => text.length)) }],
			series: [{ label: along, value: (_: uPlot, at: number | null) => at === null ? "–" : time ? new Date(at * 1000).toLocaleString()
				: sorted ? String(at) : String(used[at]?.[along] ?? "") },
				...lines.map(([label], index) => ({
					label, value: shared.legend, stroke: shared.stroke(index), width: 2, spanGaps: true,
					...(!bars ? {} : { points: { show: false }, paths: bars({ size: [0.6, 60] }), fill: shared.stroke(index) }),
				}))],
		} as uPlot.Options, [x, ...lines.map(([, heights]) => heights)] as uPlot.AlignedData, element);
		const end = shared.fit(plot, element, height);
		return () => {
			end();
			plot.destroy();
		};
	}, [rows, kind, series, height, dark]);
	return <div class="chart" ref={host} role="img" aria-label="Chart of the rows" />;
}
