// SPDX-License-Identifier: GPL-3.0-or-later
// The panes beside the picture: the table of functions, and details of one of them.
import { describe, where } from "./data.js";
import { boundsOfChange, changesOf, changeText, pointsText } from "./diff.js";
import { abs, amount, boundsText, button, element, max, min, percent, round } from "./text.js";
import { functionsOf, hasParts, neighbours, partsOf, weigh } from "./weigh.js";

const MOST_ROWS = 300, MOST_NEIGHBOURS = 12;

function cells(row, ...texts) {
	for (const text of texts)
		row.append(element("td", {}, text));
	return row;
}

function shortFile(file) {
	return file.slice(file.lastIndexOf("/") + 1);
}

function shortPlace(d) {
	return where({ file: shortFile(d.file), line: d.line });
}

// The button that stands for a function.
function link(data, weighed, place, choose) {
	if (place < 0)
		return element("span", {}, "(thread start)");
	const d = describe(data, place, weighed.view.lines);
	return element("span", {}, button(d.name, () => choose(place), { title: where(d) }), " ",
		element("small", {}, shortPlace(d)));
}

export class Table {
	constructor(container, data, choose) {
		Object.assign(this, { container, data, choose, key: "self", all: false });
	}

	show(weighed, matches) {
		this.weighed = weighed;
		this.matches = matches;
		const isDiff = Boolean(weighed.before);
		const all = isDiff ? changesOf(this.data, weighed).rows : functionsOf(weighed);
		const rows = all.filter(({ place }) => !matches || matches(place));
		const size = ({ [this.key]: value }) => isDiff ? abs(value.by) : value;
		rows.sort((a, b) => size(b) - size(a) || a.place - b.place);
		const shown = this.all ? rows : rows.slice(0, MOST_ROWS);
		const body = element("tbody", {}, ...shown.map((row) => this.row(row)));
		const parts = [element("table", {}, element("thead", {}, this.head()), body)];
		if (shown.length < rows.length)
			parts.push(this.changing(`${rows.length - shown.length} more`, () => this.all = true));
		this.container.replaceChildren(...parts);
	}

	changing(text, change) {
		return button(text, () => {
			change();
			this.show(this.weighed, this.matches);
		});
	}

	head() {
		const row = element("tr", {});
		const columns = this.weighed.before
			? [[null, "before"], [null, "after"], ["self", "change"], [null, "95 %"],
				["total", "total"], [null, "function"]]
			: [["self", "self"], [null, "95 %"], ["total", "total"], ["samples", "samples"],
				[null, "function"]];
		for (const [key, text] of columns) {
			const head = element("th", { scope: "col" },
				key ? this.changing(text, () => this.key = key) : text);
			if (key)
				head.ariaSort = key === this.key ? "descending" : "none";
			row.append(head);
		}
		return row;
	}

	row(each) {
		return this.weighed.before ? this.changeRow(each) : this.plainRow(each);
	}

	changeRow({ place, self, total }) {
		const limits = changesOf(this.data, this.weighed);
		const row = cells(element("tr", {}), percent(self.was, 1), percent(self.is, 1),
			pointsText(self, limits.self), boundsOfChange(self), pointsText(total, limits.total),
			link(this.data, this.weighed, place, this.choose));
		row.dataset.self = self.by;
		row.dataset.total = total.by;
		return row;
	}

	plainRow({ place, self, total, samples }) {
		const { whole, n } = this.weighed;
		const row = cells(element("tr", {}), percent(self, whole), boundsText(self, whole, n),
			percent(total, whole), String(round(samples)),
			link(this.data, this.weighed, place, this.choose));
		row.dataset.self = self;
		row.dataset.total = total;
		return row;
	}
}

function neighbourTable(data, weighed, title, list, choose) {
	const rows = list.slice(0, MOST_NEIGHBOURS).map(([place, weight]) =>
		cells(element("tr", {}), percent(weight, weighed.whole),
			link(data, weighed, place, choose)));
	const more = list.length > rows.length ? [element("small", {}, `${list.length - rows.length} more`)]
		: [];
	return [element("h3", {}, title), element("table", {}, element("tbody", {}, ...rows)), ...more];
}

// On a processor, waiting for one, asleep for what.
function partsTable(data, weighed, place) {
	if (!hasParts(weighed))
		return [];
	const list = partsOf(data, weighed, (stack) => weighed.place[stack] === place);
	const whole = list.reduce((sum, [, weight]) => sum + weight, 0);
	const rows = list.slice(0, MOST_NEIGHBOURS).map(([text, weight]) =>
		cells(element("tr", {}), percent(weight, whole), text));
	return [element("h3", {}, "What its time was"), element("table", { id: "parts" }, element("tbody", {}, ...rows))];
}

// The lines of a function that ran, and those around them, with what each of them weighs.
function sourceTable(data, weighed, place) {
	const number = weighed.view.lines ? data.frames.function[place] : place;
	const lines = data.source.get(data.functions.file[number]);
	if (!lines)
		return [];
	const byLine = weigh(data, { ...weighed.view, lines: true, merged: false });
	const spent = new Map();
	let first = data.functions.line[number], last = first;
	for (const row of functionsOf(byLine)) {
		const line = data.frames.line[row.place];
		if (data.frames.function[row.place] !== number)
			continue;
		spent.set(line, row);
		first = min(first, line);
		last = max(last, line + 2);
	}
	const rows = [];
	let before = first - 1;
	for (const [line, text] of lines) {
		if (line < first || line > last)
			continue;
		if (line > before + 1)
			rows.push(cells(element("tr", {}), "", "", "", "⋮"));
		const row = spent.get(line);
		rows.push(cells(element("tr", {}), row?.self ? percent(row.self, weighed.whole) : "",
			row ? percent(row.total, weighed.whole) : "", String(line), text));
		before = line;
	}
	return [element("h3", {}, "Source: self, total"), element("table", { className: "code" },
		element("tbody", {}, ...rows))];
}

// The share of the row with its bounds, as a line of text.
export function shareText(weighed, weight) {
	const { whole, n } = weighed;
	return `${percent(weight, whole)} (${boundsText(weight, whole, n)}), ${amount(weight)}`;
}

// What is said of a function: text("self") and text("total").
function sayings(data, weighed, place) {
	const isHere = (each) => each.place === place;
	if (weighed.before) {
		const changes = changesOf(data, weighed), row = changes.rows.find(isHere);
		return (key) => row ? changeText(row[key], changes[key]) : "–";
	}
	const row = functionsOf(weighed).find(isHere) ?? { self: 0, total: 0 };
	return (key) => shareText(weighed, row[key]);
}

export function showDetails(container, data, weighed, place, choose, shut) {
	const d = describe(data, place, weighed.view.lines);
	const text = sayings(data, weighed, place);
	const { callers, callees } = neighbours(weighed, place);
	container.replaceChildren(button("×", shut, { id: "shut", title: "Close" }), element("h2", {}, d.name), element("small", {}, where(d)),
		...["self", "total"].map((key) => element("p", {}, `${key} ${text(key)}`)),
		...partsTable(data, weighed, place),
		...neighbourTable(data, weighed, "Called by", callers, choose),
		...neighbourTable(data, weighed, "Calls", callees, choose),
		...sourceTable(data, weighed, place));
	container.hidden = false;
}

// A list of boxes to tick; `names` are [text, more].
export function checks(menu, names, chosen, changed) {
	const boxes = names.map(([text, more], i) => {
		const box = element("input", { type: "checkbox", checked: Boolean(chosen[i]) });
		box.onchange = () => {
			chosen[i] = box.checked ? 1 : 0;
			changed();
		};
		return [box, element("label", {}, box, text, element("small", {}, more))];
	});
	const all = (text, value) => button(text, () => {
		chosen.fill(value);
		boxes.forEach(([box]) => box.checked = Boolean(value));
		changed();
	});
	menu.replaceChildren(all("all", 1), " ", all("none", 0), ...boxes.map(([, label]) => label));
}

// A row of buttons, one of which is chosen.
export function choices(group, names, chosen, changed) {
	const buttons = names.map(([value, text, title]) => {
		const made = button(text, () => {
			buttons.forEach((each) => each.ariaChecked = String(each === made));
			changed(value);
		}, { role: "radio", title, value, ariaChecked: String(value === chosen) });
		return made;
	});
	group.replaceChildren(...buttons);
}
