// SPDX-License-Identifier: GPL-3.0-or-later
// Breakpoints by a click beside the line, steps, the stack and its variables: `probing dap` on the other side.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { type ApiError } from "./api";
import { Debugger, type Frame, type Placed, type Variable } from "./dap";
import { Field } from "./field";
import { Listing } from "./listing";
import { Failure, Value, useAsked } from "./parts";
import { asError } from "./store";

interface Break {
	file: string;
	line: number;
	condition: string;
	placed: Placed | null;
}

interface Scope {
	name: string;
	variablesReference: number;
}

function VariableRow({ one, more }: { one: Variable; more: (reference: number) => Promise<Variable[]> }) {
	const [inside, setInside] = useState<Variable[] | null>(null);
	const fold = async () => setInside(inside ? null : await more(one.variablesReference).catch(() => []));
	return (
		<li>
			{one.variablesReference > 0
				? <button type="button" class="fold" aria-expanded={!!inside} aria-label={`Unfold ${one.name}`} onClick={() => void fold()}>{inside ? "▾" : "▸"}</button>
				: <span class="fold" />}
			<span class="name">{one.name}</span> <span class="place">{one.type ?? ""}</span> <Value text={one.value} open={!!inside} />
			{inside && <ul class="parts">{inside.map((each, index) => <VariableRow key={index} one={each} more={more} />)}</ul>}
		</li>
	);
}

/** Where threads are now: a click shows the source, to set a breakpoint in. */
function Functions({ id, choose }: { id: string; choose: (file: string, line: number) => void }) {
	const asked = useAsked(`functions ${id}`, 2000, () => api.stacks(id, {}));
	const seen = new Map<string, { file: string; line: number; text: string }>();
	for (const frame of asked.value?.threads.flatMap((thread) => thread.frames) ?? [])
		if (frame.kind === "python" && frame.file?.startsWith("/") && typeof frame.line === "number")
			seen.set(`${frame.file} ${frame.func}`, { file: frame.file, line: frame.line, text: `${frame.qualname ?? frame.func} ${frame.file.split("/").pop()}:${frame.line}` });
	return (
		<div id="functions">
			<p class="faint">Functions that are being executed: show one, and click beside a line to stop there.</p>
			{[...seen].map(([key, { file, line, text }]) => <button type="button" class="more" key={key} onClick={() => choose(file, line)}>{text}</button>)}
		</div>
	);
}

export function Session({ id, over }: { id: string; over: () => void }) {
	const debug = useRef<Debugger | null>(null);
	const [state, setState] = useState<"begins" | "runs" | "stopped" | "ended">("begins");
	const [reason, setReason] = useState("");
	const [error, setError] = useState<ApiError | null>(null);
	const [thread, setThread] = useState(0);
	const [frames, setFrames] = useState<Frame[]>([]);
	const [frame, setFrame] = useState(0);
	const [scopes, setScopes] = useState<[Scope, Variable[]][]>([]);
	// What was unfolded at one stop is of that stop.
	const [looks, setLooks] = useState(0);
	const [shown, setShown] = useState<{ file: string; line: number } | null>(null);
	const [breaks, setBreaks] = useState<Break[]>([]);

	const fail = (caught: unknown) => setError(asError(caught));
	const variables = async (reference: number) =>
		(await debug.current?.ask<{ variables: Variable[] }>("variables", { variablesReference: reference }))?.variables ?? [];

	const source = async (file: string) => ({
		first: 0, text: (await debug.current?.ask<{ content: string }>("source", { source: { path: file }, sourceReference: 0 }))?.content ?? "" });

	const stopped = async (tid: number, why: string) => {
		setThread(tid);
		setReason(why);
		setState("stopped");
		const found = (await debug.current?.ask<{ stackFrames: Frame[] }>("stackTrace", { threadId: tid, levels: 100 }))?.stackFrames ?? [];
		setFrames(found);
		await look(found, found.findIndex((one) => one.source?.path));
	};
	/** Shows the source and the variables of a frame. */
	const look = async (all: Frame[], number: number) => {
		const one = all[Math.max(0, number)];
		setFrame(Math.max(0, number));
		setScopes([]);
		setLooks((count) => count + 1);
		if (!one)
			return;
		if (one.source?.path)
			setShown({ file: one.source.path, line: one.line });
		const found = (await debug.current?.ask<{ scopes: Scope[] }>("scopes", { frameId: one.id }))?.scopes ?? [];
		setScopes(await Promise.all(found.slice(0, 1).map(async (scope): Promise<[Scope, Variable[]]> => [scope, await variables(scope.variablesReference)])));
	};
	const runs = () => {
		setState("runs");
		setFrames([]);
		setScopes([]);
	};

	useEffect(() => {
		const one = new Debugger(id, (event, body) => {
			const { threadId = 0, reason: why = "", description } = (body ?? {}) as { threadId?: number; reason?: string; description?: string };
			if (event === "stopped")
				void stopped(threadId, description ?? why).catch(fail);
			else if (event === "continued")
				runs();
			else if (event === "terminated")
				setState("ended");
			else if (event === "initialized")
				void one.ask("configurationDone").then(runs, fail);
		});
		debug.current = one;
		one.run().catch((caught) => caught instanceof DOMException || fail(caught)).finally(() => setState("ended"));
		one.ask("initialize", { adapterID: "probing", linesStartAt1: true, columnsStartAt1: true, pathFormat: "path" })
			.then(() => one.ask("attach", {})).catch(fail);
		return () => one.end();
	}, [id]);

	const place = async (all: Break[], file: string) => {
		setBreaks(all);
		setError(null);
		try {
			const mine = all.filter((one) => one.file === file);
			const answer = await debug.current?.ask<{ breakpoints: Placed[] }>("setBreakpoints", {
				source: { path: file }, breakpoints: mine.map(({ line, condition }) => ({ line, ...(condition ? { condition } : {}) })) });
			setBreaks(all.map((one) => one.file === file ? { ...one, placed: answer?.breakpoints[mine.indexOf(one)] ?? null } : one));
		} catch (caught) {
			fail(caught);
		}
	};
	const toggle = (file: string, line: number) => {
		const there = breaks.some((one) => one.file === file && one.line === line);
		void place(there ? breaks.filter((one) => one.file !== file || one.line !== line)
			: [...breaks, { file, line, condition: "", placed: null }], file);
	};
	const drive = (command: string) => {
		setError(null);
		if (command !== "pause")
			runs();
		debug.current?.ask(command, { threadId: thread }).catch(fail);
	};
	const at = state === "stopped" ? frames[frame] : undefined;
	return (
		<section aria-label="Debugger" id="debugger">
			<div class="tools">
				{state === "stopped"
					? <button type="button" id="resume" title="F5" onClick={() => drive("continue")}>Continue</button>
					: <button type="button" id="hold" title="F6" disabled={state !== "runs"} onClick={() => drive("pause")}>Pause</button>}
				<button type="button" id="over" title="F10" disabled={state !== "stopped"} onClick={() => drive("next")}>Over calls</button>
				<button type="button" id="step" title="F11" disabled={state !== "stopped"} onClick={() => drive("stepIn")}>Step</button>
				<button type="button" id="out" title="Shift-F11" disabled={state !== "stopped"} onClick={() => drive("stepOut")}>Out</button>
				<button type="button" id="detach" onClick={over}>End</button>
				<span role="status" id="pausing">
					{state === "begins" ? "Waits for the interpreter…" : state === "runs" ? "It runs."
						: state === "ended" ? "The session has ended; the process runs on, without breakpoints."
							: `Stopped: ${reason}${at ? ` in ${at.name}` : ""}. It runs again when the page is closed.`}
				</span>
			</div>
			<Failure error={error} />
			{breaks.length > 0 && (
				<ul class="recordings" aria-label="Breakpoints">
					{breaks.map((one) => (
						<li key={`${one.file}:${one.line}`}>
							<button type="button" class="more" onClick={() => setShown({ file: one.file, line: one.line })}>{one.file.split("/").pop()}:{one.line}</button>
							<form class="tools" onSubmit={(event) => {
								event.preventDefault();
								const condition = String(new FormData(event.currentTarget).get("condition"));
								void place(breaks.map((each) => each === one ? { ...one, condition } : each), one.file);
							}}>
								<label>if <Field name="condition" size={24} value={one.condition} placeholder="always" /></label>
								<button>Set</button>
							</form>
							<button type="button" onClick={() => toggle(one.file, one.line)}>Remove</button>
							{one.placed && !one.placed.verified && <span class="mark">{one.placed.message}</span>}
						</li>
					))}
				</ul>
			)}
			{state === "runs" && <Functions id={id} choose={(file, line) => setShown({ file, line })} />}
			<div class="beside">
				{shown && <Listing file={shown.file} read={source} line={shown.line} current={at?.source?.path === shown.file ? at.line : undefined}
					marked={breaks.filter(({ file }) => file === shown.file).map(({ line }) => line)} mark={(line) => toggle(shown.file, line)} />}
				{state === "stopped" && (
					<aside aria-label="Stack and variables">
						<ol class="stack">
							{frames.map((one, number) => (
								<li key={one.id}><button type="button" class="more" aria-current={number === frame ? "true" : undefined} onClick={() => void look(frames, number).catch(fail)}>
									{one.name} {one.source ? `${one.source.name}:${one.line}` : ""}</button></li>
							))}
						</ol>
						{scopes.map(([scope, list]) => <ul class="parts" key={scope.name}>{list.map((each) => <VariableRow key={`${looks} ${each.name}`} one={each} more={variables} />)}</ul>)}
					</aside>
				)}
			</div>
		</section>
	);
}
