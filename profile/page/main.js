// SPDX-License-Identifier: GPL-3.0-or-later
// The page: what is looked at, and what happens at each key and click.
import { addressOf, readAddress } from "./address.js";
import { Chart } from "./chart.js";
import { describe, read, where } from "./data.js";
import { deltaOf, stackChanges, weighBoth } from "./diff.js";
import { Heat } from "./heat.js";
import { Inverted } from "./invert.js";
import { KINDS, NATIVE, NOTHING, sortFunctions } from "./kinds.js";
import { Overview } from "./overview.js";
import { checks, choices, shareText, showDetails, Table } from "./panes.js";
import { invertedPicture, locate, timePicture, treePicture } from "./pictures.js";
import { abs, amount, button, byId, duration, element, max, min, percent, plain, round, weighBytes } from "./text.js";
import { hasParts, matchedWeight, matcher, partsOf, weigh } from "./weigh.js";

const data = read(byId("data").textContent);
if (data.bytes)
	weighBytes();
const STEPS = 8; // of colours of changes, each way
const sorted = sortFunctions(data);
// The view as it is at first, and as it is now.
const first = {
	picture: "flame",
	weight: data.mode,
	lines: data.lines,
	merged: false,
	interpreter: false,
	threads: new Uint8Array(data.threads.length).fill(1),
	states: new Uint8Array(data.states.length).fill(1),
	processes: new Uint8Array(data.processes.length).fill(1),
	range: [0, data.before ? Infinity : data.duration],
	widths: "after",
};
const view = readAddress(data, "", first, { picture: [], weight: [], widths: [] }).view;
// `shown` is the tree whose boxes are drawn; `zoomed` are the box that was zoomed to and its callers, outermost first.
let weighed, shown, matches = null, chosen = null, zoomed = [];

// Colours come from the style sheet, so that they follow light and dark.
const look = {
	colours: [],
	states: [],
	colour: (stack) => data.before ? look.changes[stepOf(stack)] : look.colours[colourOf(stack)],
	shade: (stack) => stack && !data.before ? 1 - hashOf(data.texts[data.functions.name[functionOf(shown.place[stack])]]) % 5 * 0.07 : 1,
	state: (number) => look.states[number],
	label: (stack) => stack ? describe(data, shown.place[stack], view.lines).name : allLabel(),
	title: (thread) => threadName(data.threads[thread], thread),
	matched: (stack) => matches && stack ? matches(shown.place[stack]) : null,
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

function functionOf(place) {
	return view.lines ? data.frames.function[place] : place;
}

// The kind's own colours, one for each file or library; how strong it is tells functions apart.
function colourOf(stack) {
	const f = stack ? functionOf(shown.place[stack]) : -1, kind = f < 0 ? NOTHING : sorted.kinds[f];
	const [, colour, count] = KINDS[kind];
	return colour + hashOf(data.texts[data.functions[kind === NATIVE ? "module" : "file"][f]] ?? "") % count;
}

// Which of the colours from less to more.
function stepOf(stack) {
	const by = stack ? deltaOf(shown, stack) / weighed.most : 0;
	return STEPS + round(STEPS * min(max(by, -1), 1));
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

const chart = new Chart(byId("chart"), byId("scroll"), byId("height"), look, keepAddress);
const overview = new Overview(byId("overview"), data, look, chooseRange);
// What is a list, and no picture of boxes.
const lists = { functions: new Table(byId("functions"), data, choosePlace), heat: new Heat(byId("functions"), data, choosePlace) };

// Showing

let weighedFor = "";

// Weighs anew if that can differ.
function weighView() {
	const isHiding = !view.interpreter && !lists[view.picture] && sorted.hidden.includes(1);
	const hidden = isHiding ? sorted.hidden : null;
	const { weight, lines, merged, widths, range, threads, states } = view;
	const key = [weight, lines, merged, widths, range, threads, states, isHiding].join();
	if (key === weighedFor)
		return;
	weighedFor = key;
	weighed = data.before ? weighBoth(data, { ...view, hidden }) : weigh(data, { ...view, hidden });
	if (!data.before)
		overview.draw(view);
}

function refresh() {
	weighView();
	searchAgain();
	const isList = Boolean(lists[view.picture]);
	byId("scroll").hidden = isList;
	byId("functions").hidden = !isList;
	byId("interpreter").disabled = isList;
	showPicture();
	showFilters();
	if (chosen !== null)
		openDetails();
	keepAddress();
}

function showPicture() {
	shown = weighed;
	if (lists[view.picture])
		lists[view.picture].show(weighed, matches);
	else if (view.picture === "inverted")
		chart.show(invertedPicture(shown = weighed.inverted ??= new Inverted(weighed)), false);
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

function legendItem(text, ...colours) {
	const marks = colours.map((colour) => {
		const mark = element("i", {});
		mark.style.background = colour;
		return mark;
	});
	return element("span", {}, ...marks, " ", text);
}

function showLegend() {
	const points = data.before && (100 * weighed.most).toFixed(1);
	byId("legend").replaceChildren(...(data.before
		? [[0, `−${points} points of the run`], [STEPS, "as before"], [2 * STEPS, `+${points}`]]
			.map(([step, text]) => legendItem(text, look.changes[step]))
		: data.states.flatMap((name, i) => weighed.states[i] > 0
			? [legendItem(`${name} ${percent(weighed.states[i], weighed.whole)}`, look.states[i])]
			: [])));
}

// A box by what it holds, which its number may not be for long.
function extentOf({ row, box }) {
	const { start, end, stack } = chart.picture.rows[row];
	return { row, start: start[box], end: end[box], stack: stack[box] };
}

// A box and those that it lies in, outermost first.
function wayTo({ row, start, end }) {
	const way = [];
	for (let at = row; at >= 0 && !chart.picture.rows[at].state; at--) {
		const where = chart.holding(at, start, end);
		if (where && chart.stackAt(where))
			way.push(extentOf(where));
	}
	return way.reverse();
}

// The way to what is zoomed in to; each step of it zooms out to there. Its end is what is looked at.
function showPath(extent) {
	zoomed = extent ? wayTo(extent) : [];
	const items = [null, ...zoomed].map((step) => element("li", {}, button(
		step ? look.label(step.stack) : "all", () => zoomTo(step))));
	const path = byId("path");
	path.replaceChildren(...(!weighed.whole ? ["No samples weigh anything here: try wall, or other filters."]
		: lists[view.picture] ? [] : items));
	path.scrollLeft = path.scrollWidth;
}

// The text of a box, for the pointer and for screen readers.
function boxText({ row, box }) {
	const boxes = chart.picture.rows[row], span = boxes.end[box] - boxes.start[box];
	const stack = boxes.stack[box];
	if (boxes.state)
		return `${look.title(boxes.thread)}\n${data.states[boxes.state[box]]} for ${duration(span)}`;
	if (!stack)
		return allLabel();
	const d = describe(data, shown.place[stack], view.lines);
	const place = where(d) ? `\n${where(d)}` : "";
	if (chart.picture.isTime)
		return `${d.name}${place}\n${duration(span)} at ${(boxes.start[box] / 1e9).toFixed(3)} s`;
	if (data.before)
		return `${d.name}${place}\n${stackChanges(data, weighed, shown, stack).join("\n")}`;
	if (shown !== weighed)
		return `${d.name}${place}\n${invertedText(stack)}`;
	return `${d.name}${place}\ntotal ${shareText(weighed, weighed.total[stack])}\nself ${
		shareText(weighed, weighed.self[stack])}${partsText(stack)}`;
}

// An inverted box is time of the function that its row begins with.
function invertedText(stack) {
	let hot = stack;
	while (shown.caller[hot])
		hot = shown.caller[hot];
	const { name } = describe(data, shown.place[hot], view.lines);
	return `${shareText(weighed, shown.total[stack])}: ${hot === stack ? "its own" : `${name}, called through here`}`;
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

// Zooms to a box, or out if it is null.
function zoomTo(extent) {
	const { begin, end } = chart.picture;
	chart.zoom(extent?.start ?? begin, extent?.end ?? end);
	showPath(extent);
	keepAddress();
}

function chooseBox(where) {
	chart.focus = where;
	const extent = extentOf(where);
	byId("said").textContent = boxText(where);
	zoomTo(extent);
	if (extent.stack)
		choosePlace(shown.place[extent.stack]);
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

let addressTimer = 0;

// Puts the view into the address, without a step in the browser's history; not at each move, since browsers
// limit that.
function keepAddress() {
	clearTimeout(addressTimer);
	addressTimer = setTimeout(putAddress, 150);
}

function putAddress() {
	const { left, right, picture } = chart;
	let zoom = null;
	if (view.picture === "time" && (left > picture.begin || right < picture.end))
		zoom = { from: round(left), to: round(right) };
	else if (view.picture !== "time" && zoomed.length)
		zoom = { places: zoomed.map(({ stack }) => shown.place[stack]) };
	const text = addressOf(data, view, first, byId("search").value, zoom);
	if (location.hash.slice(1) !== text)
		history.replaceState(null, "", `#${text}`);
}

function followAddress() {
	const said = readAddress(data, location.hash, first, KNOWN);
	Object.assign(view, said.view);
	byId("search").value = said.search;
	showChoices();
	refresh();
	followZoom(said.zoomed);
}

function followZoom(said) {
	if (!said || lists[view.picture])
		return;
	const isTime = view.picture === "time";
	const found = isTime ? said.to && { start: said.from, end: said.to } : said.places && locate(shown, said.places);
	if (!found)
		return;
	chart.zoom(found.start, found.end);
	showPath(isTime ? null : found);
	keepAddress();
}

function resize() {
	if (!lists[view.picture]) {
		chart.measure();
		chart.refine(chart.left, chart.right);
		chart.draw();
	}
	if (!data.before)
		overview.draw(view);
}

function useTheme(theme) {
	document.documentElement.dataset.theme = theme;
	readColours();
	showKinds();
	if (weighed) {
		resize();
		showFilters();
	}
}

// Keys and pointers

const KEYS = [
	["arrows", "move from box to box", null],
	["Enter", "zoom in to the box", () => chart.focus && chooseBox(chart.focus)],
	["Escape", "zoom out", () => zoomTo(null)],
	["+", "zoom in", () => chart.zoomAround(chart.width / 2, 0.5)],
	["-", "zoom out a step", () => chart.zoomAround(chart.width / 2, 2)],
	["/", "search", () => byId("search").focus()],
	["f", "flame: callers at the bottom, the heaviest at the left", () => press("flame")],
	["i", "icicle: callers at the top", () => press("icicle")],
	["v", "inverted: callers of what is hot", () => press("inverted")],
	["t", "in the order of time", () => press("time")],
	["l", "list of functions", () => press("functions")],
	["h", "heat map of the source files", () => press("heat")],
	["?", "these keys", () => byId("keys").showModal()],
];

function press(value) {
	document.querySelector(`#pictures [value=${value}]`)?.click();
}

function onKey(event) {
	if (event.target.matches("input:not([type=checkbox])") || event.ctrlKey || event.metaKey || event.altKey)
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

// Each with what it weighs in the mode.
function listThreads() {
	const sums = new Float64Array(data.threads.length), { thread, count } = data.runs, weights = data.runs[view.weight];
	for (let i = 0; i < count; i++)
		sums[thread[i]] += weights[i];
	checks(byId("threads").lastElementChild, data.threads.map((each, i) =>
		[threadName(each, i), sums[i] ? amount(sums[i]) : ""]), view.threads, refresh);
}

const PICTURES = [["flame", "flame", "Callers at the bottom, the heaviest calls at the left"],
	["icicle", "icicle", "Callers at the top, the heaviest calls at the left"],
	["inverted", "inverted", "Functions by their own time, with their callers below"],
	["time", "time order", "What happened when"],
	["functions", "functions", "Self and total of each function"],
	["heat", "heat map", "Source files, and the time of each of their lines"]].filter(([name]) => (name !== "time" || !data.bytes) && (name !== "heat" || !data.before));

const KNOWN = { picture: PICTURES.map(([name]) => name), weight: WEIGHTS.map(([name]) => name), widths: ["before", "after"] };

// All that is chosen, as the view has it.
function showChoices() {
	choices(byId("pictures"), PICTURES, view.picture, (value) => {
		view.picture = value;
		refresh();
	});
	choices(byId("weights"), WEIGHTS, view.weight, (value) => {
		view.weight = value;
		listThreads();
		refresh();
	});
	if (data.before)
		choices(byId("widths"), [["before", "before", "As wide as before"],
			["after", "after", "As wide as after"]], view.widths, (value) => {
			view.widths = value;
			refresh();
		});
	listThreads();
	checks(byId("processes").lastElementChild, data.processes.map((name) => [plain(name), ""]),
		view.processes, () => {
			data.threads.forEach(({ process }, i) => view.threads[i] = view.processes[process]);
			listThreads();
			refresh();
		});
	checks(byId("states").lastElementChild, data.states.map((name) => [name, ""]), view.states, refresh);
	for (const id of ["lines", "merged", "interpreter"])
		byId(id).checked = view[id];
}

// The colours of the kinds of functions that there are.
function showKinds() {
	const items = KINDS.filter((_, kind) => kind !== NOTHING && sorted.kinds.includes(kind)).map(
		([name, colour, count]) => legendItem(name, ...look.colours.slice(colour, colour + count)));
	byId("kinds").replaceChildren(...(data.before ? [] : items));
}

function listen() {
	for (const id of ["overview", "range"])
		byId(id).hidden = data.before || data.bytes;
	byId("states").hidden = data.bytes;
	byId("processes").hidden = data.before || data.processes.length < 2;
	byId("interpreter").parentElement.hidden = !sorted.hidden.includes(1);
	for (const id of ["lines", "merged", "interpreter"])
		byId(id).onchange = () => {
			view[id] = byId(id).checked;
			if (id !== "interpreter") {
				chosen = null;
				byId("details").hidden = true;
			}
			refresh();
		};
	byId("search").oninput = () => {
		searchAgain();
		if (lists[view.picture])
			lists[view.picture].show(weighed, matches);
		else
			chart.draw();
		keepAddress();
	};
	byId("range").onchange = () => chooseRange(byId("from").value * 1e9, byId("to").value * 1e9);
	byId("range").onsubmit = (event) => event.preventDefault();
	byId("whole").onclick = () => chooseRange(0, data.duration);
	byId("theme").onclick = () =>
		useTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
	byId("help").onclick = () => byId("keys").showModal();
	byId("keys").onclick = () => byId("keys").close();
	document.onkeydown = onKey;
	document.onclick = (event) => document.querySelectorAll("nav details[open]").forEach(
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
followAddress();
addEventListener("hashchange", followAddress);
// For consoles: what is looked at, and how it is drawn.
globalThis.probing = { data, view, chart, refresh, putAddress, weighed: () => weighed, shown: () => shown };
