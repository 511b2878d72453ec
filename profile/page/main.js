// SPDX-License-Identifier: GPL-3.0-or-later
// The page: what is looked at, and what happens at each key and click.
import { Chart } from "./chart.js";
import { describe, read, where } from "./data.js";
import { deltaOf, stackChanges, weighBoth } from "./diff.js";
import { Overview } from "./overview.js";
import { checks, choices, shareText, showDetails, Table } from "./panes.js";
import { timePicture, treePicture } from "./pictures.js";
import { abs, amount, button, byId, duration, element, max, min, percent, plain, round, weighBytes } from "./text.js";
import { hasParts, matchedWeight, matcher, partsOf, weigh } from "./weigh.js";

const data = read(byId("data").textContent);
if (data.bytes)
	weighBytes();
const STEPS = 8; // of colours of changes, each way
const view = {
	picture: "flame",
	weight: data.mode,
	lines: data.lines,
	merged: false,
	threads: new Uint8Array(data.threads.length).fill(1),
	states: new Uint8Array(data.states.length).fill(1),
	processes: new Uint8Array(data.processes.length).fill(1),
	range: [0, data.before ? Infinity : data.duration],
	widths: "after",
};
let weighed, matches = null, chosen = null;

// Colours come from the style sheet, so that they follow light and dark.
const look = {
	colours: [],
	states: [],
	colour: (stack) => data.before ? look.changes[stepOf(stack)] : look.colours[colourOf(stack)],
	shade: (stack) => stack && !data.before ? 1 - hashOf(look.label(stack)) % 5 * 0.07 : 1,
	state: (number) => look.states[number],
	label: (stack) => stack ? describe(data, weighed.place[stack], view.lines).name : allLabel(),
	title: (thread) => threadName(data.threads[thread], thread),
	matched: (stack) => matches && stack ? matches(weighed.place[stack]) : null,
};

function readColours() {
	const style = getComputedStyle(document.documentElement);
	const colour = (name) => style.getPropertyValue(`--${name}`).trim();
	look.colours = Array.from({ length: 9 }, (_, i) => colour(`c${i}`));
	look.states = data.states.map((_, i) => colour(`s${i}`));
	look.changes = Array.from({ length: 2 * STEPS + 1 }, (_, i) => `color-mix(in srgb, ${
		colour(i < STEPS ? "less" : "more")} ${abs(i - STEPS) / STEPS * 100}%, ${colour("c8")})`);
	for (const name of ["ink", "paper", "accent", "found"])
		look[name] = colour(name);
}

const hashes = new Map();

function hashOf(text) {
	if (!hashes.has(text)) {
		let hash = 2166136261;
		for (let i = 0; i < text.length; i++)
			hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
		hashes.set(text, (hash ^ hash >>> 15) >>> 0);
	}
	return hashes.get(text);
}

// The colour is that of the file; how strong it is tells functions apart.
function colourOf(stack) {
	const d = stack ? describe(data, weighed.place[stack], view.lines) : { kind: 2 };
	return d.kind === 2 ? 8 : hashOf(d.file) % 8;
}

// Which of the colours from less to more.
function stepOf(stack) {
	return STEPS + (stack ? round(STEPS * deltaOf(weighed, stack) / weighed.most) : 0);
}

function threadName({ tid, name }, number) {
	return `${number < data.before?.threads ? "before: " : ""}${tid} ${name}`;
}

const WEIGHTS = data.bytes ? [
	["cpu", "allocated", "Memory that was allocated"],
	["runqueue", "alive", "Memory that was not freed by the end"],
] : [
	["cpu", "CPU", "Time on a processor"],
	["wall", "wall", "Time that passed, of each thread"],
	["runqueue", "run queue", "Time that threads waited for a processor"],
	["gil", "GIL", "Time that threads held the GIL"],
	["blocked", "blocked", "Time that threads waited for locks, descriptors, children and time"],
];

function allLabel() {
	if (data.bytes)
		return `all: ${amount(weighed.whole)} ${view.weight === "cpu" ? "allocated" : "alive at the end"}`;
	return `all: ${duration(weighed.whole)} ${
		{ cpu: "on a processor", wall: "of all threads", runqueue: "in the run queue",
			gil: "of holding the GIL", blocked: "of waiting" }[view.weight]}`;
}

const chart = new Chart(byId("chart"), byId("scroll"), byId("height"), look);
const overview = new Overview(byId("overview"), data, look, chooseRange);
const table = new Table(byId("functions"), data, choosePlace);

// Showing

function refresh() {
	weighed = data.before ? weighBoth(data, view) : weigh(data, view);
	searchAgain();
	const isTable = view.picture === "functions";
	byId("scroll").hidden = isTable;
	byId("functions").hidden = !isTable;
	showPicture();
	showFilters();
	if (!data.before)
		overview.draw(view);
	if (chosen !== null)
		openDetails();
}

function showPicture() {
	if (view.picture === "functions")
		table.show(weighed, matches);
	else
		chart.show(view.picture === "time" ? timePicture(data, weighed) : treePicture(weighed),
			view.picture === "flame");
	showPath(null);
}

function searchAgain() {
	const input = byId("search");
	input.setCustomValidity("");
	try {
		matches = matcher(data, input.value, view.lines);
	} catch (error) {
		matches = () => false;
		input.setCustomValidity(error.message);
	}
	byId("matched").value = matches
		? `${percent(matchedWeight(weighed, matches), weighed.whole)} matched` : "";
}

function showFilters() {
	const count = (list) => list.reduce((a, b) => a + b, 0);
	const some = (list) => count(list) < list.length ? `${count(list)} of ${list.length} ` : "";
	byId("threads").firstElementChild.textContent = `${some(view.threads)}threads`;
	byId("states").firstElementChild.textContent = `${some(view.states)}states`;
	byId("processes").firstElementChild.textContent = `${some(view.processes)}processes`;
	byId("from").value = (view.range[0] / 1e9).toFixed(3);
	byId("to").value = (view.range[1] / 1e9).toFixed(3);
	showLegend();
}

function legendItem(colour, text) {
	const mark = element("i", {});
	mark.style.background = colour;
	return element("span", {}, mark, text);
}

function showLegend() {
	const points = data.before && (100 * weighed.most).toFixed(1);
	byId("legend").replaceChildren(...(data.before
		? [[0, `−${points} points of the run`], [STEPS, "as before"], [2 * STEPS, `+${points}`]]
			.map(([step, text]) => legendItem(look.changes[step], text))
		: data.states.flatMap((name, i) => weighed.states[i] > 0
			? [legendItem(look.states[i], `${name} ${percent(weighed.states[i], weighed.whole)}`)]
			: [])));
}

// The way to what is zoomed in to; each step of it zooms out to there.
function showPath(where) {
	const steps = [];
	if (where && !chart.picture.rows[where.row].state) {
		for (let at = chart.stackAt(where); at; at = weighed.caller[at])
			steps.push(at);
	}
	const items = [0, ...steps.reverse()].map((stack) => {
		const text = stack ? look.label(stack) : "all";
		return element("li", {}, button(text, () => zoomToStack(stack, where)));
	});
	byId("path").replaceChildren(...(!weighed.whole ? ["No samples weigh anything here: try wall, or other filters."]
		: view.picture === "functions" ? [] : items));
}

function zoomToStack(stack, from) {
	if (!stack) {
		chart.zoom(chart.picture.begin, chart.picture.end);
		showPath(null);
		return;
	}
	const middle = (chart.picture.rows[from.row].start[from.box] +
		chart.picture.rows[from.row].end[from.box]) / 2;
	for (let row = from.row; row >= 0; row--) {
		const boxes = chart.picture.rows[row];
		const box = boxes.stack.findIndex((each, i) => each === stack && boxes.start[i] <= middle &&
			middle <= boxes.end[i]);
		if (box >= 0) {
			zoomTo({ row, box });
			return;
		}
	}
}

// The text of a box, for the pointer and for screen readers.
function boxText({ row, box }) {
	const boxes = chart.picture.rows[row], span = boxes.end[box] - boxes.start[box];
	const stack = boxes.stack[box];
	if (boxes.state)
		return `${look.title(boxes.thread)}\n${data.states[boxes.state[box]]} for ${duration(span)}`;
	if (!stack)
		return allLabel();
	const d = describe(data, weighed.place[stack], view.lines);
	const place = where(d) ? `\n${where(d)}` : "";
	if (chart.picture.isTime)
		return `${d.name}${place}\n${duration(span)} at ${(boxes.start[box] / 1e9).toFixed(3)} s`;
	if (data.before)
		return `${d.name}${place}\n${stackChanges(data, weighed, stack).join("\n")}`;
	return `${d.name}${place}\ntotal ${shareText(weighed, weighed.total[stack])}\nself ${
		shareText(weighed, weighed.self[stack])}${partsText(stack)}`;
}

// The most of what the time of a box was, a line each.
function partsText(stack) {
	const list = hasParts(weighed) ? partsOf(data, weighed, (each) => each === stack) : [];
	return list.slice(0, 3).map(([text, weight]) => `\n${percent(weight, weighed.total[stack])} ${text}`).join("");
}

function showTip(event) {
	const tip = byId("tip");
	tip.hidden = !chart.hover;
	if (!chart.hover)
		return;
	tip.textContent = boxText(chart.hover);
	const { offsetWidth: width, offsetHeight: height } = tip;
	tip.style.left = `${max(min(event.clientX + 14, innerWidth - width - 8), 8)}px`;
	tip.style.top = `${event.clientY + 18 + height < innerHeight ? event.clientY + 18
		: max(event.clientY - height - 10, 8)}px`;
}

// Choosing

function zoomTo(where) {
	chart.zoomTo(where);
	showPath(where);
}

function chooseBox(where) {
	chart.focus = where;
	const stack = chart.stackAt(where);
	zoomTo(where);
	byId("said").textContent = boxText(where);
	if (stack)
		choosePlace(weighed.place[stack]);
}

function choosePlace(place) {
	chosen = place;
	openDetails();
}

function openDetails() {
	const pane = byId("details");
	showDetails(pane, data, weighed, chosen, choosePlace, () => {
		chosen = null;
		pane.hidden = true;
	});
}

function chooseRange(from, to) {
	view.range = to > from ? [max(from, 0), min(to, data.duration)] : [0, data.duration];
	refresh();
}

/** A page that shows this one names a range in the address: "#at=FROM-TO", in seconds since the epoch. */
function followAddress() {
	const [, from, to] = /^#at=([\d.]+)-([\d.]+)$/.exec(location.hash) ?? [];
	if (to)
		chooseRange((from - data.started) * 1e9, (to - data.started) * 1e9);
}

function resize() {
	if (view.picture !== "functions") {
		chart.measure();
		chart.draw();
	}
	if (!data.before)
		overview.draw(view);
}

function useTheme(theme) {
	document.documentElement.dataset.theme = theme;
	readColours();
	if (weighed) {
		resize();
		showFilters();
	}
}

// Keys and pointers

const KEYS = [
	["arrows", "move from box to box", null],
	["Enter", "zoom in to the box", () => chart.focus && chooseBox(chart.focus)],
	["Escape", "zoom out", () => zoomToStack(0)],
	["+", "zoom in", () => chart.zoomAround(chart.width / 2, 0.5)],
	["-", "zoom out a step", () => chart.zoomAround(chart.width / 2, 2)],
	["/", "search", () => byId("search").focus()],
	["f", "flame: callers at the bottom", () => press("flame")],
	["i", "icicle: callers at the top", () => press("icicle")],
	["t", "in the order of time", () => press("time")],
	["l", "list of functions", () => press("functions")],
	["?", "these keys", () => byId("keys").showModal()],
];

function press(value) {
	document.querySelector(`#pictures [value=${value}]`)?.click();
}

function onKey(event) {
	if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey)
		return;
	const found = KEYS.find(([key]) => key === event.key);
	if (event.key.startsWith("Arrow") && event.target === chart.canvas) {
		chart.focus = chart.move(event.key);
		if (chart.focus) {
			chart.reveal();
			byId("said").textContent = boxText(chart.focus);
		}
	} else if (found?.[2] && !(event.key === "Enter" && event.target !== chart.canvas)) {
		found[2]();
	} else {
		return;
	}
	event.preventDefault();
}

function listenToChart() {
	const canvas = chart.canvas;
	let press = null;
	canvas.onpointerdown = (event) => {
		press = { x: event.clientX, moved: false };
		canvas.setPointerCapture(event.pointerId);
	};
	canvas.onpointermove = (event) => {
		if (press && abs(event.clientX - press.x) > (press.moved ? 0 : 4)) {
			chart.pan(press.x - event.clientX);
			press = { x: event.clientX, moved: true };
		}
		chart.hover = press?.moved ? null : chart.at(event.offsetX, event.offsetY);
		chart.draw();
		showTip(event);
	};
	canvas.onpointerup = (event) => {
		const where = chart.at(event.offsetX, event.offsetY);
		if (press && !press.moved && where)
			chooseBox(where);
		press = null;
	};
	canvas.onpointerleave = (event) => {
		chart.hover = null;
		chart.draw();
		showTip(event);
	};
	canvas.addEventListener("wheel", (event) => {
		if (event.ctrlKey || event.metaKey)
			chart.zoomAround(event.offsetX, 1.003 ** event.deltaY);
		else if (event.deltaX && abs(event.deltaX) > abs(event.deltaY))
			chart.pan(event.deltaX);
		else
			return;
		event.preventDefault();
	}, { passive: false });
	chart.scroll.onscroll = () => chart.draw();
}

// The head and foot of the page

function costText({ duration: whole, stops, p50, p99, max, pauses, own, missed, late, unreadable }) {
	const stopped = stops ? ` of ${p50.toFixed(0)} µs (99 %: ${p99.toFixed(0)} µs, longest ${
		max.toFixed(0)} µs), ${duration(pauses * 1e3)} in all` : "";
	const of = whole > data.duration ? ` of the whole recording, ${duration(whole)}` : "";
	return `probing ${data.probing} · cost${of}: ${stops} stops${stopped} · own CPU ${
		percent(own, whole)} · ${missed} missed, ${late} late, ${unreadable} unreadable`;
}

function factsText(r, threads) {
	return [`process ${r.pid}`, `Python ${r.python}`, new Date(r.started * 1e3).toLocaleString(),
		duration(r.duration), `${threads} thread${threads === 1 ? "" : "s"}`, data.bytes ? `a sample for each ${amount(r.rate)}` : `${r.rate} samples a second`, r.ended]
		.filter(Boolean).join(" · ");
}

function showFacts() {
	document.title = `${data.command} – flame graph`;
	byId("command").textContent = data.command;
	const { length } = data.threads, of = data.before?.threads ?? 0;
	byId("facts").textContent = (data.before ? "after: " : "") + factsText(data, length - of);
	byId("before").textContent = data.before
		? `before: ${data.before.command} · ${factsText(data.before, of)}` : "";
	if (data.step)
		byId("facts").textContent += ` · in steps of ${duration(data.step)}`;
	byId("cost").textContent = data.bytes ? `probing ${data.probing}` : costText(data.cost);
	byId("keys").append(element("table", {}, ...KEYS.map(([key, does]) =>
		element("tr", {}, element("td", {}, element("b", {}, key)), element("td", {}, does)))));
}

function listThreads() {
	checks(byId("threads").lastElementChild, data.threads.map((each, i) =>
		[threadName(each, i), each.cpu ? amount(each.cpu) : ""]), view.threads, refresh);
}

function listen() {
	choices(byId("pictures"), [["flame", "flame", "Callers at the bottom"],
		["icicle", "icicle", "Callers at the top"],
		["time", "time order", "What happened when"],
		["functions", "functions", "Self and total of each function"]].filter(([name]) =>
		name !== "time" || !data.bytes), view.picture, (value) => {
		view.picture = value;
		refresh();
	});
	choices(byId("weights"), WEIGHTS, view.weight, (value) => {
		view.weight = value;
		refresh();
	});
	if (data.before)
		choices(byId("widths"), [["before", "before", "As wide as before"],
			["after", "after", "As wide as after"]], view.widths, (value) => {
			view.widths = value;
			refresh();
		});
	for (const id of ["overview", "range"])
		byId(id).hidden = data.before || data.bytes;
	byId("states").hidden = data.bytes;
	listThreads();
	byId("processes").hidden = data.before || data.processes.length < 2;
	checks(byId("processes").lastElementChild, data.processes.map((name) => [plain(name), ""]),
		view.processes, () => {
			data.threads.forEach(({ process }, i) => view.threads[i] = view.processes[process]);
			listThreads();
			refresh();
		});
	checks(byId("states").lastElementChild, data.states.map((name) => [name, ""]), view.states, refresh);
	for (const id of ["lines", "merged"]) {
		byId(id).checked = view[id];
		byId(id).onchange = () => {
			view[id] = byId(id).checked;
			chosen = null;
			byId("details").hidden = true;
			refresh();
		};
	}
	byId("search").oninput = () => {
		searchAgain();
		if (view.picture === "functions")
			table.show(weighed, matches);
		else
			chart.draw();
	};
	byId("range").onchange = () => chooseRange(byId("from").value * 1e9, byId("to").value * 1e9);
	byId("range").onsubmit = (event) => event.preventDefault();
	byId("whole").onclick = () => chooseRange(0, data.duration);
	byId("theme").onclick = () =>
		useTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
	byId("help").onclick = () => byId("keys").showModal();
	byId("keys").onclick = () => byId("keys").close();
	document.onkeydown = onKey;
	document.onclick = (event) => document.querySelectorAll("details[open]").forEach(
		(each) => each.contains(event.target) || each.removeAttribute("open"));
	new ResizeObserver(resize).observe(byId("scroll"));
	listenToChart();
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => useTheme(dark.matches ? "dark" : "light");
dark.onchange = follow;
follow();
showFacts();
listen();
refresh();
followAddress();
addEventListener("hashchange", followAddress);
// For consoles: what is looked at, and how it is drawn.
globalThis.probing = { data, view, chart, refresh, weighed: () => weighed };
