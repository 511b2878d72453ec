// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers of an array or tensor: how they are spread, and as a picture where they have the shape of one.
import { useEffect, useRef } from "preact/hooks";
import * as api from "./api";
import { Failure, count, useAsked } from "./parts";

/** Classes whose objects python.elements may know. */
export const isArray = (type: string, value: string | null) => /(^|\.)(ndarray|Tensor|Parameter|memmap)$/.test(type) || /^<PIL\.\S+ image mode=/.test(value ?? "");

/** Elements that are counted, pixels along a side, bars. */
const MOST = 1000000;
const SIDE = 128;
const BARS = 40;

/** The mode of an image of Pillow, as its repr says it. */
const modeOf = (value: string | null) => /^<PIL\.\S+ image mode=(\S+)/.exec(value ?? "")?.[1] ?? null;

/** What is seen of the ink of a pixel. */
function fromInk([cyan = 0, magenta = 0, yellow = 0, black = 0]: number[]): number[] {
	return [cyan, magenta, yellow].map((ink) => (255 - ink) * (255 - black) / 255);
}

interface Picture {
	width: number;
	height: number;
	/** Distance of elements that are neighbours down, to the right, and of colours. */
	down: number;
	right: number;
	colour: number;
	colours: number;
}

/** Two dimensions, or three of which the last, or the first, are colours; two of them are light and opacity of an image. */
export function pictureOf(shape: number[], mode: string | null): Picture | null {
	const [a = 0, b = 0, c = 0] = shape;
	if (shape.length === 2 && a > 1 && b > 1)
		return { height: a, width: b, down: b, right: 1, colour: 1, colours: 1 };
	if (shape.length === 3 && ([1, 3, 4].includes(c) || mode === "LA") && a > 1 && b > 1)
		return { height: a, width: b, down: b * c, right: c, colour: 1, colours: c };
	if (shape.length === 3 && [1, 3].includes(a) && b > 1 && c > 1)
		return { height: b, width: c, down: c, right: 1, colour: b * c, colours: a };
	return null;
}

async function readPixels(id: string, place: number, picture: Picture): Promise<{ width: number; rows: (number | null)[][][] }> {
	const step = Math.ceil(Math.max(picture.width, picture.height) / SIDE);
	const last = picture.right * (picture.width - 1) + (picture.colour === 1 ? picture.colours - 1 : 0);
	const planes = await Promise.all(Array.from({ length: picture.colour === 1 ? 1 : picture.colours }, async (_, plane) => {
		const start = `r.value * ${picture.down} + ${plane * picture.colour}`;
		const sql = `SELECT group_concat(coalesce(e.value, 'x'), ' ') AS line FROM generate_series(0, ${picture.height - 1}, ${step}) r, `
			+ `python.elements(${place}) e WHERE e.number BETWEEN ${start} AND ${start} + ${last} `
			+ `AND (e.number - (${start})) / ${picture.right} % ${step} = 0 GROUP BY r.value`;
		return (await api.query(id, sql)).value.map((row) => String(row["line"] ?? "").split(" ").map((text) => text === "x" ? null : Number(text)));
	}));
	const inOne = picture.colour === 1 ? picture.colours : 1;
	const lines = planes[0] ?? [];
	const width = Math.floor((lines[0]?.length ?? 0) / inOne);
	return { width, rows: lines.map((line, y) => Array.from({ length: width }, (_, x) =>
		inOne > 1 ? line.slice(x * inOne, (x + 1) * inOne) : planes.map((plane) => plane[y]?.[x] ?? null))) };
}

function Drawing({ pixels, dtype, mode, low, high }: { pixels: Awaited<ReturnType<typeof readPixels>>; dtype: string; mode: string | null; low: number; high: number }) {
	const canvas = useRef<HTMLCanvasElement>(null);
	useEffect(() => {
		const context = canvas.current?.getContext("2d");
		if (!context || !pixels.width || !pixels.rows.length)
			return;
		const image = context.createImageData(pixels.width, pixels.rows.length);
		// Bytes are colours as they are, and so are numbers from 0 to 1; others are spread from the least to the greatest.
		const [from, to] = dtype === "uint8" ? [0, 255] : low >= 0 && high <= 1 ? [0, 1] : [low, high];
		pixels.rows.flat().forEach((values, index) => {
			const light = values.map((value) => value === null ? 0 : to > from ? (value - from) / (to - from) * 255 : 0);
			const [red = 0, green = red, blue = red, alpha = 255] = mode === "CMYK" ? fromInk(light) : light;
			image.data.set(light.length > 2 ? [red, green, blue, alpha] : [red, red, red, light[1] ?? 255], index * 4);
		});
		context.putImageData(image, 0, 0);
	}, [pixels]);
	return <canvas class={pixels.rows.length > pixels.width ? "pixels tall" : "pixels"} ref={canvas} width={pixels.width} height={pixels.rows.length} role="img" aria-label={`Picture of ${pixels.width} by ${pixels.rows.length} pixels`} />;
}

function Histogram({ bars, low, high }: { bars: number[]; low: number; high: number }) {
	const most = Math.max(1, ...bars);
	return (
		<figure class="histogram">
			<svg viewBox={`0 0 ${BARS * 8} 80`} width={BARS * 8} height="80" role="img" aria-label={`Histogram from ${low} to ${high}`}>
				{bars.map((n, place) => (
					<rect key={place} x={place * 8} y={80 - n / most * 80} width="7" height={n / most * 80}>
						<title>{count(n)} from {(low + (high - low) * place / BARS).toPrecision(4)}</title>
					</rect>
				))}
			</svg>
			<figcaption class="faint">{low.toPrecision(4)} to {high.toPrecision(4)}</figcaption>
		</figure>
	);
}

export function Numbers({ id, place, value }: { id: string; place: number; value: string | null }) {
	const mode = modeOf(value);
	const asked = useAsked(`elements ${id} ${place}`, 0, async () => {
		const from = `FROM python.elements(${place})`;
		const [first] = (await api.query(id, `SELECT dtype, shape, _error ${from} LIMIT 1`)).value;
		if (!first || first["_error"] !== null)
			return { why: first ? String(first["_error"]) : "It has no elements." };
		const shape = String(first["shape"]).match(/\d+/g)?.map(Number) ?? [];
		// Infinity has no place among the bars.
		const finite = "value BETWEEN -1.7e308 AND 1.7e308";
		const [facts] = (await api.query(id, `SELECT count(*) AS n, count(value) AS numbers, sum(${finite}) AS finite, min(CASE WHEN ${finite} THEN value END) AS low, `
			+ `max(CASE WHEN ${finite} THEN value END) AS high, avg(CASE WHEN ${finite} THEN value END) AS mean, max(_error) AS error ${from} WHERE number < ${MOST}`)).value;
		const low = Number(facts?.["low"]), high = Number(facts?.["high"]);
		const bars = new Array<number>(BARS).fill(0);
		if (high > low)
			for (const row of (await api.query(id, `SELECT min(${BARS - 1}, CAST((value - ${low}) / ${(high - low) / BARS} AS INTEGER)) AS bar, count(*) AS n ${from} `
				+ `WHERE number < ${MOST} AND ${finite} GROUP BY bar`)).value)
				bars[Number(row["bar"])] = Number(row["n"]);
		const picture = pictureOf(shape, mode);
		return { shape, dtype: String(first["dtype"]), facts, low, high, bars, pixels: picture && await readPixels(id, place, picture) };
	});
	const seen = asked.value;
	return (
		<li class="numbers">
			<Failure error={asked.error} />
			{!seen && !asked.error && <span class="fresh" role="status">reading…</span>}
			{seen?.why && <span class="faint">{seen.why}</span>}
			{seen?.facts && (
				<>
					<p class="faint">
						{seen.shape.join(" × ") || "one"} {seen.dtype}
						{Number(seen.facts["n"]) === MOST && `, of which the first ${count(MOST)}`}: mean {Number(seen.facts["mean"]).toPrecision(4)}
						{Number(seen.facts["numbers"]) < Number(seen.facts["n"]) && `, ${count(Number(seen.facts["n"]) - Number(seen.facts["numbers"]))} NaN`}
						{Number(seen.facts["finite"]) < Number(seen.facts["numbers"]) && `, ${count(Number(seen.facts["numbers"]) - Number(seen.facts["finite"]))} infinite`}
						{seen.facts["error"] !== null && <span class="mark"> {String(seen.facts["error"])}</span>}
					</p>
					{seen.pixels && <Drawing pixels={seen.pixels} dtype={seen.dtype} mode={mode} low={seen.low} high={seen.high} />}
					{seen.high > seen.low && <Histogram bars={seen.bars} low={seen.low} high={seen.high} />}
				</>
			)}
		</li>
	);
}
