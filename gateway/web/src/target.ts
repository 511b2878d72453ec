// SPDX-License-Identifier: GPL-3.0-or-later
// How a target is named: by its script, not by its command line.
import * as api from "./api";

interface Named {
	id: string;
	argv?: string[];
	file?: string | null;
	program?: string | null;
	rank?: number | null;
}

/** What people call it: of a process "PID-START", which no other process ever has, the pid. */
export const pidOf = (id: string) => id.replace(/^(\d+)-\d+$/, "$1");

/** A pid alone, as people type it: whatever process has it now. */
export const isPid = (id: string) => /^\d+$/.test(id);

const base = (path: string) => path.slice(path.lastIndexOf("/") + 1);
/** Options of Python with an argument of their own. */
const TAKES = new Set(["-W", "-X", "--check-hash-based-pycs"]);

/** "train.py", "-m http.server", "python -c", "gunicorn worker [shop]". */
export function scriptOf({ id, argv = [], file, program }: Named): string {
	if (program)
		return program;
	const [command = ""] = argv;
	if (!command)
		return file ? base(file) : pidOf(id);
	if (!/^(python|pypy)/.test(base(command)))
		return command.includes(" ") ? command : base(command);
	for (let i = 1; i < argv.length; i++) {
		const word = argv[i] ?? "";
		if (word === "-m" || word === "-c")
			return word === "-m" ? `-m ${argv[i + 1] ?? ""}` : `${base(command)} -c`;
		if (TAKES.has(word))
			i++;
		else if (!word.startsWith("-"))
			return base(word);
	}
	return base(command);
}

export const nameOf = (target: Named) => `${scriptOf(target)}${typeof target.rank === "number" ? ` rank ${target.rank}` : ""}`;

/** One line for lists: name, number and what else tells it from others. */
export const lineOf = (target: api.Target) => `${nameOf(target)} ${pidOf(target.id) === nameOf(target) ? "" : pidOf(target.id)}${target.ended ? " (ended)" : ""}`;

/** A recording by its name, or else by what was recorded and when. */
export const recordingOf = ({ id, target, argv, file, name, started }: api.Profile) =>
	file || name ? `${id}: ${name ?? file}`
		: `${id}: ${argv?.length ? nameOf({ id: target, argv }) : "process"} ${pidOf(target)}, ${new Date((started ?? 0) * 1000).toLocaleTimeString()}`;
