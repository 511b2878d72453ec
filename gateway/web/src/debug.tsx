// SPDX-License-Identifier: GPL-3.0-or-later
// Pause, step, resume; and debugpy for an editor. A pause is held by this page: it ends with it.
import { useEffect, useState } from "preact/hooks";
import { Locals, Stack } from "./activity";
import { NotAllowed, useAllowed } from "./allowed";
import * as api from "./api";
import { ApiError } from "./api";
import { Field } from "./field";
import { Listing } from "./listing";
import { Failure, Fresh, useAsked } from "./parts";
import { change, type Route } from "./route";
import { Session } from "./session";
import { asError, pause, useStore } from "./store";
import { pidOf } from "./target";

function Launch({ id }: { id: string }) {
	const [config, setConfig] = useState<string | null>(null);
	const [error, setError] = useState<ApiError | null>(null);
	const [copied, setCopied] = useState(false);
	const start = async (event: SubmitEvent) => {
		event.preventDefault();
		const port = Number(new FormData(event.currentTarget as HTMLFormElement).get("port"));
		setError(null);
		setCopied(false);
		try {
			setConfig(JSON.stringify(await api.debugpy(id, port), null, 2));
		} catch (caught) {
			setError(asError(caught));
		}
	};
	return (
		<>
			<h3>In an editor</h3>
			<form class="tools" onSubmit={(event) => void start(event)}>
				<label>Port <Field name="port" type="number" min="0" max="65535" value="0" draft="port" /></label>
				<button id="debugpy">Start debugpy</button>
				<span class="faint">It listens on 127.0.0.1 of the machine of the process until that ends; 0 is any free port. Whoever can connect there can run code.</span>
			</form>
			<Failure error={error} />
			{config && (
				<>
					<p>For <code>.vscode/launch.json</code>:{" "}
						<button type="button" onClick={() => void navigator.clipboard.writeText(config).then(() => setCopied(true), () => setCopied(false))}>Copy</button>
						{copied && <span role="status"> copied</span>}
					</p>
					<pre id="launch" tabIndex={0}>{config}</pre>
				</>
			)}
		</>
	);
}

function Place({ at }: { at: api.Stepped | null }) {
	if (!at?.file)
		return null;
	return (
		<div id="place">
			<p>Stopped in <strong>{at.qualname ?? at.func}</strong> at <span class="place">{at.file}:{at.line}</span></p>
			{at.source && <pre>{at.source}</pre>}
		</div>
	);
}

/** The keys of VS Code, each for a button. */
const STEP_KEYS: Record<string, string> = { "F5": "resume", "F6": "hold", "F10": "over", "F11": "step", "Shift-F11": "out" };

function useStepKeys() {
	useEffect(() => {
		const listen = (event: KeyboardEvent) => {
			const button = STEP_KEYS[`${event.shiftKey ? "Shift-" : ""}${event.key}`];
			if (!button || event.ctrlKey || event.altKey || event.metaKey)
				return;
			event.preventDefault();
			document.getElementById(button)?.click();
		};
		addEventListener("keydown", listen);
		return () => removeEventListener("keydown", listen);
	}, []);
}

export function Debug({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const tid = Number(route.values.get("tid")) || undefined;
	const allowed = useAllowed();
	const one = useStore().held.get(id);
	const [error, setError] = useState<ApiError | null>(null);
	const [at, setAt] = useState<api.Stepped | null>(null);
	const [busy, setBusy] = useState(false);
	const [attached, setAttached] = useState(false);
	const list = useAsked("targets", 2000, api.targets);
	const target = list.value?.find((each) => each.id === id);
	useStepKeys();
	const mine = one?.state === "paused";
	const paused = mine || !!target?.paused;
	const stacks = useAsked(`debug ${id} ${paused}`, paused ? 0 : 2000, async () => id ? api.stacks(id, {}) : null);
	const threads = stacks.value?.threads.filter((thread) => thread.frames.length) ?? [];
	const chosen = threads.find((thread) => thread.tid === tid) ?? threads.find((thread) => String(thread.tid) === pidOf(id)) ?? threads[0];

	const python = chosen?.frames.filter((frame) => frame.kind === "python") ?? [];
	const [innermost] = python;

	// As the process finds it. There is none where code cannot run, as in a hard pause.
	const source = async (file: string, first: number, count: number) => {
		const code = `print("".join(__import__("linecache").getlines(${JSON.stringify(file)})[${first}:${first + count}]), end="")`;
		return { first, text: (await api.run(id, code, "agent")).stdout };
	};

	const attempt = async (what: () => Promise<unknown>) => {
		setError(null);
		setBusy(true);
		try {
			await what();
		} catch (caught) {
			setError(asError(caught));
		}
		setBusy(false);
		list.again();
		stacks.again();
	};
	const begin = (event: SubmitEvent) => {
		event.preventDefault();
		const form = new FormData(event.currentTarget as HTMLFormElement);
		setAt(null);
		void pause(id, { max: Number(form.get("max")), hard: form.has("hard") });
	};
	const step = (options: { over?: boolean; out?: boolean; time?: number }) =>
		attempt(async () => setAt(await api.step(id, { ...options, ...(tid ? { tid } : {}) })));
	if (!id)
		return <p>Choose a process above.</p>;
	if (allowed === false)
		return <NotAllowed what="pause and step them" />;
	if (attached)
		return <Session key={id} id={id} over={() => setAttached(false)} />;
	return (
		<section aria-label="Debug">
			<form class="tools" onSubmit={begin}>
				{!paused && (
					<>
						<button id="hold" title="F6" disabled={!allowed || one?.state === "asked"}>Pause</button>
						<label>for at most <Field name="max" type="number" min="1" max="3600" value="60" draft="max" /> s</label>
						<button type="button" id="attach" disabled={!allowed} onClick={() => setAttached(true)}>Breakpoints…</button>
						<label><input name="hard" type="checkbox" /> C code too (nothing can be stepped or run then)</label>
					</>
				)}
				{paused && (
					<>
						<button type="button" id="resume" title="F5" onClick={() => void attempt(() => api.resume(id))}>Resume</button>
						<button type="button" id="step" title="F11" disabled={busy} onClick={() => void step({})}>Step</button>
						<button type="button" id="over" title="F10" disabled={busy} onClick={() => void step({ over: true })}>Over calls</button>
						<button type="button" id="out" title="Shift-F11" disabled={busy} onClick={() => void step({ out: true })}>Out</button>
						<button type="button" id="moment" disabled={busy} onClick={() => void step({ time: 0.1 })}>Run for 0.1 s</button>
					</>
				)}
				<label>Thread <select value={chosen?.tid ?? ""} onChange={(event) => change({ tid: event.currentTarget.value }, true)}>
					{threads.map((thread) => <option key={thread.tid} value={thread.tid ?? ""}>{thread.tid} {thread.name ?? thread.os_name ?? ""}</option>)}
				</select></label>
				<Fresh when={stacks.when} />
			</form>
			<p role="status" id="pausing">
				{mine ? `Paused by this page: it runs again when the page is closed or loaded anew.`
					: target?.paused ? `Paused by process ${target.paused.pid} since ${new Date(target.paused.since * 1000).toLocaleTimeString()}.`
						: one?.state === "asked" ? "Waits for the interpreter…" : one?.told ? `It ${one.told}.` : "It runs."}
			</p>
			<Failure error={error ?? one?.error ?? stacks.error ?? list.error} />
			<Place at={at} />
			{mine && innermost?.file && typeof innermost.line === "number" && typeof chosen?.tid === "number" && (
				<div class="beside">
					<Listing file={innermost.file} read={source} line={innermost.line} current={innermost.line} />
					<aside aria-label="Variables"><Locals key={stacks.when} id={id} tid={chosen.tid} place={python.length - 1} /></aside>
				</div>
			)}
			{chosen && <article class={`thread ${chosen.state}`}><h3>{chosen.tid} {chosen.name ?? chosen.os_name ?? ""}</h3><Stack thread={chosen} id={id} /></article>}
			<p class="faint">Variables unfold in the stack; Console runs code while it is paused; SQL and Inspect read it.</p>
			<Launch id={id} />
		</section>
	);
}
