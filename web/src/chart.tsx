// SPDX-License-Identifier: GPL-3.0-or-later
// Rows as a chart: the first column along x, all columns of numbers along y.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Row } from "./api";

const STROKES = ["#3b7dd8", "#d9822b", "#2f9e6e", "#b0499c", "#8a6d3b", "#c23030"];

export function Chart({ rows }: { rows: Row[] }) {
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
		const bars = uPlot.paths.bars;
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
					...(sorted || !bars ? {} : { paths: bars({ size: [0.6, 60] }), fill: STROKES[index % STROKES.length] ?? "#888" }),
				}))],
		} as uPlot.Options, [x, ...(heights.length ? heights : numeric).map((name) =>
			used.map((row) => row[name] === null ? null : Number(row[name])))] as uPlot.AlignedData, element);
		return () => plot.destroy();
	}, [rows]);
	return <div class="chart" ref={host} role="img" aria-label="Chart of the rows" />;
}
