// SPDX-License-Identifier: GPL-3.0-or-later
// Rows as a chart: lines or bars with the first column along x and all columns of numbers along y, or a histogram
// of one column.
import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Row } from "./api";

const STROKES = ["#3b7dd8", "#d9822b", "#2f9e6e", "#b0499c", "#8a6d3b", "#c23030"];

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

export function Histogram({ rows }: { rows: Row[] }) {
	const counted = useMemo(() => bins(rows), [rows]);
	return counted ? <Chart rows={counted} kind="bar" /> : <p>No column has numbers.</p>;
}

export function Chart({ rows, kind = "auto" }: { rows: Row[]; kind?: Kind }) {
	const host = useRef<HTMLDivElement>(null);
	useEffect(() => {
		const element = host.current;
		const names = Object.keys(rows[0] ?? {});
		const numeric = names.filter((name) => rows.some((row) => typeof row[name] === "number")
			&& rows.every((row) => row[name] === null || typeof row[name] === "number"));
		const along = names[0] ?? "";
		const heights = numeric.filter((name) => name !== along);
		if (!element || !rows.length)
			return;
		const sorted = numeric.includes(along);
		const used = sorted ? [...rows].sort((a, b) => Number(a[along]) - Number(b[along])) : rows;
		const x = used.map((row, index) => sorted ? Number(row[along]) : index);
		const bars = (kind === "auto" ? !sorted : kind === "bar") ? uPlot.paths.bars : undefined;
		const colour = getComputedStyle(document.body).color;
		const plot = new uPlot({
			width: element.clientWidth,
			height: 320,
			scales: { x: { time: false } },
			axes: [{
				stroke: colour, grid: { show: sorted },
				values: sorted ? undefined : (_, splits) => splits.map((at) =>
					Number.isInteger(at) ? String(used[at]?.[along] ?? "").slice(0, 18) : ""),
			}, { stroke: colour }],
			series: [{ label: along, value: (_, at) => sorted ? String(at) : String(used[at ?? -1]?.[along] ?? "") },
				...(heights.length ? heights : numeric).map((name, index) => ({
					label: name, stroke: STROKES[index % STROKES.length] ?? "#888", width: 2,
					...(!bars ? {} : { points: { show: false }, paths: bars({ size: [0.6, 60] }), fill: STROKES[index % STROKES.length] ?? "#888" }),
				}))],
		} as uPlot.Options, [x, ...(heights.length ? heights : numeric).map((name) =>
			used.map((row) => row[name] === null ? null : Number(row[name])))] as uPlot.AlignedData, element);
		return () => plot.destroy();
	}, [rows, kind]);
	return <div class="chart" ref={host} role="img" aria-label="Chart of the rows" />;
}
