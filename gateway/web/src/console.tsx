// SPDX-License-Identifier: GPL-3.0-or-later
// Python that runs in the target: pieces of code, as `probing eval` runs them, and `probing repl` in a terminal.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Ran } from "./store";
import { NotAllowed, useAllowed } from "./allowed";
import { Field } from "./field";
import { later } from "./later";
import { Failure } from "./parts";
import { change, type Route } from "./route";
import { forgetRuns, run, useStore } from "./store";

const Repl = later(async () => (await import("./terminal")).Repl);

function Answer({ one }: { one: Ran }) {
	const { answer } = one;
	return (
		<li>
			<pre class="code">{one.code}</pre>
			{!answer && !one.error && <p class="faint">runs…</p>}
			{answer?.stdout && <pre>{answer.stdout}</pre>}
			{answer?.stderr && <pre class="warm">{answer.stderr}</pre>}
			{answer?.value != null && <pre class="result">{answer.value}</pre>}
			{answer?.traceback && <pre class="failure">{answer.traceback}</pre>}
			{answer && answer.outcome !== "ok" && !answer.traceback && (
				<p class="failure">{answer.outcome === "timeout" ? "It ran for over 20 s, and was interrupted." : `It ended: ${answer.outcome}.`}</p>
			)}
			<Failure error={one.error} />
		</li>
	);
}

/** Enter runs what is complete: one line, or several that end with an empty one. */
function isComplete(code: string): boolean {
	return !code.includes("\n") ? !/[:\\([{,]\s*$/.test(code) : /\n\s*$/.test(code);
}

export function Console({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const thread = route.values.get("thread") === "main" ? "main" : "agent";
	const allowed = useAllowed();
	const { ran } = useStore();
	const list = ran.get(id) ?? [];
	const field = useRef<HTMLInputElement | HTMLTextAreaElement>(null);
	const end = useRef<HTMLDivElement>(null);
	// Where we are in what was run before; its end is what is being written.
	const [at, setAt] = useState<number | null>(null);
	const draft = useRef("");
	// Not a part of the address: a link that somebody follows must not open one.
	const [terminal, setTerminal] = useState(false);
	const busy = list.some((one) => !one.answer && !one.error);

	useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [list.length, busy]);
	const submit = () => {
		const code = field.current?.value ?? "";
		if (!code.trim() || busy || !field.current)
			return;
		field.current.value = "";
		setAt(null);
		void run(id, code, thread);
	};
	const walk = (by: number): boolean => {
		const now = at ?? list.length;
		const next = now + by;
		if (!field.current || next < 0 || next > list.length)
			return false;
		if (now === list.length)
			draft.current = field.current.value;
		field.current.value = next === list.length ? draft.current : list[next]?.code ?? "";
		setAt(next);
		return true;
	};
	const key = (event: KeyboardEvent) => {
		const { value, selectionStart, selectionEnd } = event.currentTarget as HTMLTextAreaElement;
		const runs = event.key === "Enter" && !event.shiftKey && (event.ctrlKey || event.metaKey || isComplete(value));
		const walked = (event.key === "ArrowUp" && !value.slice(0, selectionStart).includes("\n") && walk(-1))
			|| (event.key === "ArrowDown" && !value.slice(selectionEnd).includes("\n") && walk(1));
		if (runs)
			submit();
		else if (!walked)
			return;
		event.preventDefault();
	};
	if (!id)
		return <p>Choose a process above.</p>;
	if (allowed === false)
		return <NotAllowed what="run code in them" />;
	if (terminal)
		return <section aria-label="Console"><Repl id={id} thread={thread} close={() => setTerminal(false)} /></section>;
	return (
		<section aria-label="Console">
			<div role="log" aria-label="What was run">
				<ol class="transcript">{list.map((one, index) => <Answer key={index} one={one} />)}</ol>
			</div>
			<form class="prompt" onSubmit={(event) => {
				event.preventDefault();
				submit();
			}}>
				<Field id="code" field={field} draft={`code ${id}`} rows={4} aria-label="Python code" spellcheck={false} autocomplete="off" autocapitalize="off"
					placeholder="Python, in the namespace of __main__" onKeyDown={key} />
				<div class="tools">
					<button id="evaluate" disabled={busy || !allowed}>Run</button>
					<label>on <select value={thread} onChange={(event) => change({ thread: event.currentTarget.value }, true)}>
						<option value="agent">a thread of its own</option><option value="main">the main thread</option>
					</select></label>
					<button type="button" onClick={() => forgetRuns(id)}>Clear</button>
					<button type="button" id="terminal" disabled={!allowed} onClick={() => setTerminal(true)}>Open a terminal</button>
					<span class="faint">Enter runs a line, Ctrl-Enter all, Shift-Enter begins a new line; ↑ and ↓ bring back what was run.
						The code changes the process.</span>
				</div>
			</form>
			<div ref={end} />
		</section>
	);
}
