// SPDX-License-Identifier: GPL-3.0-or-later
// The view in the address, behind its "#", so that it can be sent: "#picture=inverted&search=decode". What is
// as it is at first is left out. A page that shows this one names a range by it: "#at=FROM-TO", in
// seconds since the epoch.

const RANGE = /^([0-9.]+)-([0-9.]+)$/;
const FLAGS = ["lines", "merged", "interpreter"];
const CHOICES = ["picture", "weight", "widths"];
const LISTS = ["threads", "states", "processes"];

// The indices of the chosen items, or null if all items are chosen.
function chosenOf(list) {
	const chosen = [...list.keys()].filter((i) => list[i]);
	return chosen.length < list.length ? chosen.join(".") : null;
}

// `zoomed` is { places } of a box, or { from, to } in the order of time, or null.
export function addressOf(data, view, first, search, zoomed) {
	const parts = [];
	for (const name of CHOICES)
		if (view[name] !== first[name])
			parts.push([name, view[name]]);
	for (const name of FLAGS)
		if (view[name] !== first[name])
			parts.push([name, Number(view[name])]);
	for (const name of LISTS) {
		const chosen = chosenOf(view[name]);
		if (chosen !== null)
			parts.push([name, chosen]);
	}
	if (view.range[0] > 0 || view.range[1] < data.duration)
		parts.push(["at", view.range.map((time) => (data.started + time / 1e9).toFixed(6)).join("-")]);
	if (search)
		parts.push(["search", search]);
	if (zoomed)
		parts.push(["zoom", zoomed.places ? zoomed.places.join(".") : `${zoomed.from}-${zoomed.to}`]);
	return parts.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
}

function rangeOf(text) {
	const [, from, to] = RANGE.exec(text ?? "") ?? [];
	return to > 0 && Number(to) > Number(from) ? [Number(from), Number(to)] : null;
}

// What an address says, over what the view is at first: { view, search, zoomed }. An address is anybody's
// text: what is no value of a view is passed over.
export function readAddress(data, text, first, known) {
	const said = new URLSearchParams(text.replace(/^#/, ""));
	const view = { ...first };
	for (const name of CHOICES)
		if (known[name].includes(said.get(name)))
			view[name] = said.get(name);
	for (const name of FLAGS)
		if (said.has(name))
			view[name] = said.get(name) === "1";
	for (const name of LISTS) {
		const chosen = said.has(name) ? said.get(name).split(".") : null;
		view[name] = first[name].map((value, i) => chosen ? Number(chosen.includes(String(i))) : value);
	}
	const at = rangeOf(said.get("at")), zoom = said.get("zoom") ?? "", span = rangeOf(zoom);
	if (at && !data.before)
		view.range = at.map((time) => Math.min(Math.max(0, (time - data.started) * 1e9), data.duration));
	const places = /^[0-9.]+$/.test(zoom) ? zoom.split(".").map(Number) : null;
	return { view, search: said.get("search") ?? "",
		zoomed: span ? { from: span[0], to: span[1] } : places && { places } };
}
