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

const base = (path: string) => path.slice(path.lastIndexOf("/") + 1);
/** Options of Python with an argument of their own. */
const TAKES = new Set(["-W", "-X", "--check-hash-based-pycs"]);

/** "train.py", "-m http.server", "python -c", "gunicorn worker [shop]". */
export function scriptOf({ id, argv = [], file, program }: Named): string {
	if (program)
		return program;
	const [command = ""] = argv;
	if (!command)
		return file ? base(file) : id;
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
export const lineOf = (target: api.Target) => `${nameOf(target)} ${target.id === nameOf(target) ? "" : target.id}${target.ended ? " (ended)" : ""}`;

export const recordingOf = ({ id, target, file, name, started }: api.Profile) =>
	file || name ? `${id}: ${name ?? file}` : `${id}: process ${target}, ${new Date((started ?? 0) * 1000).toLocaleTimeString()}`;
