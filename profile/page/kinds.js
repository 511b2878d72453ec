// SPDX-License-Identifier: GPL-3.0-or-later
// What kinds of functions there are: each has colours of its own; and which of them only run others.
import { shortPath } from "./data.js";

// [name, the first of its colours, how many it has]: one for each file or library.
export const KINDS = [["Python", 0, 4], ["C and C++", 4, 3], ["garbage collector", 7, 1], ["no function", 8, 1]];
export const [PYTHON, NATIVE, COLLECTOR, NOTHING] = KINDS.keys();

const INTERPRETER = /^(lib)?python[0-9.]*[a-z]*([.]so.*)?$/;
const LIBC = /^(libc|libpthread|ld-linux.*|ld-musl.*|libc[.]musl.*)[.-].*so/;
const COLLECTS = /^(_?PyGC_|_Py_RunGC|gc_(collect|main|generation)|collect($|_|[.])|deduce_unreachable|subtract_refs|update_refs|move_unreachable|visit_(decref|reachable)|(delete|untrack|finalize)_(garbage|tuples|dicts)|mark_(alive|reachable|stack))/;
// Of the interpreter: calls, the loop itself, and how a program and a thread begin.
const RUNS = /^(_?PyEval_|_?PyObject_(_?Call|Vectorcall|FastCall|MakeTpCall)|_?PyFunction_|_?PyVectorcall|_?PyCFunction_|cfunction_|method_vectorcall|vectorcall_|object_vacall|call_function|do_call_core|function_code_fastcall|slot_tp_(call|init|new)|type_call|_?PyRun_|run_(mod|eval_code)|pyrun_|Py_(RunMain|BytesMain|Main)|pymain_|builtin_exec|gen_(send|iternext|resume)|thread_run|t_bootstrap|pythread_wrapper|_start$|main$)/;
const STARTS = /^(_*clone3?|start_thread|_*libc_start.*|_start)$/;
// By the whole path: a program may have modules of such names.
const PYTHON_STARTS = [[/(^|\/)python[0-9.]+t?\/threading[.]py$/, /^(Thread[.])?(_bootstrap|_bootstrap_inner|run)$/],
	[/^<frozen runpy>$|(^|\/)python[0-9.]+t?\/runpy[.]py$/, /^_run_/]];

function facts({ functions, texts }, f) {
	const { kind, name, file, module } = functions;
	return { kind: kind[f], name: texts[name[f]].split(" ")[0], file: texts[file[f]] ?? "",
		library: shortPath(texts[module[f]]) };
}

function kindOf({ kind, name, library }) {
	if (kind === 1)
		return INTERPRETER.test(library) && COLLECTS.test(name) ? COLLECTOR : NATIVE;
	return kind === 0 ? PYTHON : NOTHING;
}

function onlyRuns({ kind, name, file, library }) {
	if (kind === 1)
		return (INTERPRETER.test(library) && RUNS.test(name)) || (STARTS.test(name) && (INTERPRETER.test(library) || LIBC.test(library)));
	return kind === 0 && PYTHON_STARTS.some(([files, names]) => files.test(file) && names.test(name));
}

// { kinds, hidden } of all functions.
export function sortFunctions(data) {
	const kinds = new Uint8Array(data.functions.count), hidden = new Uint8Array(data.functions.count);
	for (let f = 0; f < kinds.length; f++) {
		const known = facts(data, f);
		kinds[f] = kindOf(known);
		hidden[f] = onlyRuns(known) ? 1 : 0;
	}
	return { kinds, hidden };
}
