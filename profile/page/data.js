// SPDX-License-Identifier: GPL-3.0-or-later
// The recording that the file holds, in arrays of numbers.
//
// A run is one or more samples in a row of one thread with the same stack in the same state. Stacks
// have numbers; that of a caller is lower than those of what it calls. Times are nanoseconds.
import { floor, plain } from "./text.js";

const COLUMNS = ["thread", "stack", "state", "samples", "begin", "wall", "cpu", "runqueue", "squares",
	"flags"];

function columns(flat, names) {
	const count = flat.length / names.length;
	const made = { count };
	names.forEach((name, offset) => {
		const column = made[name] = new Float64Array(count);
		for (let i = 0, at = offset; i < count; i++, at += names.length)
			column[i] = flat[at];
	});
	return made;
}

export function read(text) {
	const data = JSON.parse(text);
	data.texts = data.texts.map(plain);
	data.waits = data.waits.map(plain);
	data.functions = columns(data.functions, ["kind", "name", "file", "line", "module"]);
	data.frames = columns(data.frames, ["function", "line"]);
	data.stacks = columns([0, 0].concat(data.stacks), ["parent", "frame"]);
	const runs = data.runs = columns(data.runs, COLUMNS);
	// The time that passed while a thread held the GIL, and while it waited for something else.
	["gil", "blocked"].forEach((name, bit) =>
		runs[name] = runs.wall.map((wall, i) => runs.flags[i] >> bit & 1 ? wall : 0));
	runs.wait = runs.flags.map((flags) => floor(flags / 4));
	const source = data.source;
	data.source = new Map();
	for (let i = 0; i < source.length; i += 3) {
		const [file, line, text] = source.slice(i, i + 3);
		if (!data.source.has(file))
			data.source.set(file, new Map());
		data.source.get(file).set(line, plain(text.replaceAll("\t", "    ")));
	}
	return data;
}

// A place is a function, or, with lines, a frame: a line of a function.
// { name, file, line, kind } of a place; file is "" where there is none.
export function describe(data, place, lines) {
	const f = lines ? data.frames.function[place] : place;
	const { kind, name, file, line } = data.functions, library = libraryOf(data, f);
	return {
		kind: kind[f],
		name: (data.texts[name[f]] || "?") + library,
		file: file[f] < 0 ? "" : data.texts[file[f]],
		line: lines ? data.frames.line[place] : line[f],
	};
}

// " [libz.so.1]" of a native function whose name does not say it yet.
function libraryOf({ functions, texts }, f) {
	const library = shortPath(texts[functions.module[f]]);
	return library && !texts[functions.name[f]].endsWith("]") ? ` [${library}]` : "";
}

export function shortPath(path = "") {
	return path.slice(path.lastIndexOf("/") + 1);
}

export function where({ file, line }) {
	return file && line > 0 ? `${file}:${line}` : file;
}
