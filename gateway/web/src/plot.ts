// SPDX-License-Identifier: GPL-3.0-or-later
// What all charts share: colours that follow the page's, axes whose labels do not touch, and a size that follows the window.
import { useEffect, useState } from "preact/hooks";
import uPlot from "uplot";

const DARK = matchMedia("(prefers-color-scheme: dark)");

/** Changes with the colours of the page: a chart is drawn again then. */
export function useDark(): boolean {
	const [dark, setDark] = useState(DARK.matches);
	useEffect(() => {
		const changed = () => setDark(DARK.matches);
		DARK.addEventListener("change", changed);
		return () => DARK.removeEventListener("change", changed);
	}, []);
	return dark;
}

/** To be told from each other, and from both backgrounds. */
const STROKES = ["#3b7dd8", "#d9822b", "#2f9e6e", "#b0499c", "#8a6d3b", "#c23030", "#3aa6b9", "#8f7ae5", "#7f8891", "#a0a52c"];
export const stroke = (index: number) => STROKES[index % STROKES.length] ?? "#888";

/** The colours of an axis. */
export function axis() {
	const style = getComputedStyle(document.body);
	const line = { stroke: style.getPropertyValue("--line"), width: 1 };
	return { stroke: style.color, grid: line, ticks: line };
}

/** Wide enough for a date, or a time with seconds. */
const TIME_SPACE = 96;
const MINUTE = 60;
const DAY = 86400;

function time(at: number, step: number): string {
	const date = new Date(at * 1000);
	const midnight = !date.getHours() && !date.getMinutes() && !date.getSeconds();
	if (step >= DAY || midnight)
		return date.toLocaleDateString([], step >= 300 * DAY ? { year: "numeric" } : { month: "short", day: "numeric" });
	return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...(step < MINUTE ? { second: "2-digit" } : {}) });
}

/** Local times along x. */
export const times = { space: TIME_SPACE, values: (_: uPlot, splits: number[], _axis: number, _space: number, step: number) => splits.map((at) => time(at, step)) };

/** With as many digits as tell one from the next: 2.30258 and 2.30259 are not both 2.303. */
export const exact = (_: uPlot, splits: number[], _axis: number, _space: number, step: number) => {
	const digits = Math.min(12, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
	return splits.map((at) => at.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
};

/** There is no half of a step. */
const WHOLE = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();

/** Numbers along x that do not touch. */
export const counts = (values: number[]) => ({ space: 72, values: exact, ...(values.every(Number.isInteger) ? { incrs: WHOLE } : {}) });

type Range = [number | null, number | null];

/** A single reading gets an axis of one minute: uPlot would choose years. */
export const along = (plot: uPlot, low: number | null, high: number | null): Range => {
	const [only, ...more] = plot.data[0];
	return only !== undefined && !more.length ? [only - 30, only + 30] : [low, high];
};

/** If all values are zero, the axis runs from 0 to 1: uPlot would choose 0 to 100. */
export const heights = (_: uPlot, low: number | null, high: number | null): Range =>
	low === null || high === null ? [null, null] : low === 0 && high === 0 ? [0, 1] : uPlot.rangeNum(low, high, 0.1, true);

/** A value of the legend. */
export const legend = (_: uPlot, value: number | null | undefined) => value === null || value === undefined ? "–"
	: value.toLocaleString("en", { maximumSignificantDigits: 6 });

/** Lets a plot be as wide as its place; the returned function ends that. */
export function fit(plot: uPlot, element: HTMLElement, height: number): () => void {
	const observer = new ResizeObserver(() => element.clientWidth && plot.setSize({ width: element.clientWidth, height }));
	observer.observe(element);
	return () => observer.disconnect();
}
