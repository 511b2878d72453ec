// SPDX-License-Identifier: GPL-3.0-or-later
// The heat map: source files, hottest first, and how much of the time each of their lines takes.
import { button, element, max, percent } from "./text.js";
import { functionsOf, weigh } from "./weigh.js";

const MOST_FILES = 50, OPEN_FILES = 3, MOST_LINES = 4000;

// { file, self, lines: Map of line to { self, total, best, place } } of Python's files, the hottest first. A place
// is what a click chooses, of the function that has `best` of the line's own time.
function filesOf(data, weighed, matches) {
	const { lines: byLine } = weighed.view, files = new Map();
	// Each key of a search comes here: what it looks through is weighed once.
	weighed.byLines ??= functionsOf(byLine ? weighed : weigh(data, { ...weighed.view, lines: true }));
	for (const row of weighed.byLines) {
		const f = data.frames.function[row.place], line = data.frames.line[row.place];
		const place = byLine ? row.place : f, file = data.functions.file[f];
		if (file < 0 || line <= 0 || data.functions.kind[f] !== 0 || (matches && !matches(place)))
			continue;
		if (!files.has(file))
			files.set(file, { file, self: 0, lines: new Map() });
		const { lines } = files.get(file), known = lines.get(line);
		files.get(file).self += row.self;
		// Of several functions in a line, such as a lambda's, one may call the other, or not: the most is certain.
		const self = row.self + (known?.self ?? 0), first = !known || row.self > known.best;
		lines.set(line, { self, total: max(max(row.total, known?.total ?? 0), self),
			best: first ? row.self : known.best, place: first ? place : known.place });
	}
	return [...files.values()].sort((a, b) => b.self - a.self || a.file - b.file);
}

export class Heat {
	constructor(container, data, choose) {
		Object.assign(this, { container, data, choose });
	}

	show(weighed, matches) {
		const files = filesOf(this.data, weighed, matches), shown = files.slice(0, MOST_FILES);
		// One scale for all files, so that they can be compared.
		let most = 0;
		for (const { lines } of shown)
			for (const { self } of lines.values())
				most = max(most, self);
		const parts = shown.map((each, i) => this.fileOf(weighed, each, most, i < OPEN_FILES));
		if (files.length > shown.length)
			parts.push(element("small", {}, `${files.length - shown.length} more files`));
		this.container.replaceChildren(...parts.length ? parts : ["No source file has samples here."]);
	}

	// Its lines are made when it is opened.
	fileOf(weighed, each, most, open) {
		const made = element("details", { className: "file" }, element("summary", {},
			`${percent(each.self, weighed.whole)} ${this.data.texts[each.file]}`));
		made.ontoggle = () => {
			if (made.open && made.childElementCount === 1)
				made.append(this.linesOf(weighed, each, most));
		};
		if (open) {
			made.append(this.linesOf(weighed, each, most));
			made.open = true;
		}
		return made;
	}

	linesOf(weighed, { file, lines }, most) {
		const source = this.data.source.get(file) ?? new Map();
		const numbers = [...new Set([...source.keys(), ...lines.keys()])].sort((a, b) => a - b);
		const rows = [];
		let before = 0;
		for (const number of numbers.slice(0, MOST_LINES)) {
			if (number > before + 1)
				rows.push(element("tr", {}, ...["", "", "", "⋮"].map((text) => element("td", {}, text))));
			rows.push(this.row(weighed, number, source.get(number) ?? "", lines.get(number), most));
			before = number;
		}
		if (numbers.length > MOST_LINES)
			rows.push(element("tr", {}, element("td", { colSpan: 4 }, `${numbers.length - MOST_LINES} more lines`)));
		return element("table", { className: "code" }, element("tbody", {}, ...rows));
	}

	row(weighed, number, text, spent, most) {
		const { whole } = weighed, line = spent
			? button(String(number), () => this.choose(spent.place), { title: "The function" }) : String(number);
		const row = element("tr", {}, element("td", {}, spent?.self ? percent(spent.self, whole) : ""),
			element("td", {}, spent ? percent(spent.total, whole) : ""), element("td", {}, line), element("td", {}, text));
		if (!spent?.self)
			return row;
		// The square root makes a line of a few percent visible beside one of ninety.
		const heat = 100 * Math.sqrt(spent.self / most);
		for (const cell of row.children)
			cell.style.background = `color-mix(in srgb, var(--more) ${heat.toFixed(0)}%, transparent)`;
		row.dataset.self = spent.self;
		return row;
	}
}
