// SPDX-License-Identifier: GPL-3.0-or-later
// Source with line numbers, and the marks beside them.
import { useEffect, useRef } from "preact/hooks";
import { Failure, useAsked } from "./parts";

/** This many lines before `line` and after it are shown. */
const AROUND = 150;

interface Listed {
	file: string;
	/** Its text, of lines [first, first + count) or whole. */
	read: (file: string, first: number, count: number) => Promise<{ first: number; text: string }>;
	/** In the middle. */
	line: number;
	/** Where it stopped. */
	current?: number | undefined;
	/** Lines with a breakpoint; `mark` adds or removes one. */
	marked?: number[];
	mark?: (line: number) => void;
}

export function Listing({ file, read, line, current, marked = [], mark }: Listed) {
	const shown = useRef<HTMLLIElement>(null);
	const first = Math.max(0, line - 1 - AROUND);
	const asked = useAsked(`source ${file} ${first}`, 0, async () => {
		const got = await read(file, first, 2 * AROUND + 1);
		return got.text.replace(/\n$/, "").split("\n").slice(first - got.first).slice(0, 2 * AROUND + 1);
	});
	const lines = asked.value ?? [];
	useEffect(() => shown.current?.scrollIntoView({ block: "center" }), [lines.length, line]);
	if (lines.join("") === "")
		return <Failure error={asked.error} />;
	return (
		<ol class="listing" id="listing" aria-label={`Source of ${file}`} tabIndex={0}>
			{lines.map((text, index) => {
				const number = first + index + 1;
				return (
					<li key={index} ref={number === line ? shown : undefined} aria-current={number === current ? "step" : undefined}>
						{mark
							? <button type="button" class="margin" aria-pressed={marked.includes(number)} aria-label={`Breakpoint in line ${number}`} onClick={() => mark(number)}>{number}</button>
							: <span>{number}</span>}
						{text || " "}
					</li>
				);
			})}
		</ol>
	);
}
