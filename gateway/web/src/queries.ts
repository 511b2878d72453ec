// SPDX-License-Identifier: GPL-3.0-or-later
// Queries to begin with: name and SQL.

export const FIRST = "SELECT tid, name, state, waits_for FROM python.threads";

export const BOOK: [string, string][] = [
	["Threads", FIRST],
	["Main thread", "SELECT depth, func, file, lineno FROM python.backtrace ORDER BY depth"],
	["Waits", "SELECT waits_for, count(*) AS threads FROM python.threads GROUP BY waits_for ORDER BY threads DESC"],
	["CPU by thread", "SELECT name, round(run_seconds, 2) AS seconds FROM cpu.tasks ORDER BY seconds DESC LIMIT 20"],
	["Objects by type", "SELECT type, objects FROM python.types ORDER BY objects DESC LIMIT 20"],
	["Hot functions", "SELECT func, round(sum(cpu_ms)) AS cpu_ms FROM profile('2s') GROUP BY func ORDER BY cpu_ms DESC LIMIT 20"],
	["Open files", "SELECT * FROM process.fds"],
];
