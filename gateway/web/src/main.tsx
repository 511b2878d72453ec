// SPDX-License-Identifier: GPL-3.0-or-later
import "@xterm/xterm/css/xterm.css";
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Activity } from "./activity";
import { useAllowed } from "./allowed";
import * as api from "./api";
import { Console } from "./console";
import { Debug } from "./debug";
import { Inspect } from "./inspect";
import { JobPanel } from "./job";
import { later } from "./later";
import { MemoryPanel } from "./memory";
import { Overview } from "./overview";
import { Palette, type Choice } from "./palette";
import { MANY, useAsked } from "./parts";
import { Profiles } from "./profile";
import { BOOK } from "./queries";
import { Reconnect } from "./reconnect";
import { change, link, useRoute } from "./route";
import { savedQueries, useStore } from "./store";
import { isPid, lineOf, nameOf, pidOf, recordingOf } from "./target";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const Sql = later(async () => (await import("./sql")).Sql);
const Time = later(async () => (await import("./time")).Time);
const Dashboards = later(async () => (await import("./dashboard")).Dashboards);
const ServerPanel = later(async () => (await import("./server")).ServerPanel);
const Training = later(async () => (await import("./training")).Training);

const PANELS = [
	["overview", "Overview", Overview], ["activity", "Activity", Activity], ["profile", "Profile", Profiles],
	["training", "Training", Training], ["memory", "Memory", MemoryPanel], ["inspect", "Inspect", Inspect], ["sql", "SQL", Sql],
	["console", "Console", Console], ["debug", "Debug", Debug], ["job", "Job", JobPanel],
	["time", "Time", Time], ["dashboard", "Dashboard", Dashboards], ["server", "Server", ServerPanel],
] as const;

const KEYS = [["Ctrl-K", "go to a panel, target, query or diagnosis"], ["1 – 9, 0", "panels"], ["w", "what is wrong: the next finding"], ["/", "filter; Inspect: expression; SQL: editor"],
	["p", "pause, go on"], ["t", "choose a target"], ["r", "Profile: record"], ["c", "Profile: compare"], ["g", "Memory: what grows"], ["Ctrl-.", "SQL: run with the name that was meant"], ["F6, F5", "Debug: pause, resume"], ["F10, F11, Shift-F11", "Debug: step over calls, to the next line, out"], ["?", "this help"]];

/** Panels that are only offered of a process that has torch, or is one of an inference server. */
const TRAINS = "SELECT count(*) AS n FROM python.modules WHERE name = 'torch'";
const SERVES = "SELECT count(*) AS n FROM inference.servers";

type Panel = (typeof PANELS)[number];

/** Whether there is anything that a statement counts; what cannot be read is not. */
function useHas(target: string, sql: string): boolean {
	return useAsked(`${sql} of ${target}`, 0, async () => {
		try {
			return target ? Number((await api.query(target, sql)).value[0]?.["n"]) > 0 : false;
		} catch {
			return false;
		}
	}).value ?? false;
}

/** The panels that have something to show for a target. */
function usePanels(target: api.Target | undefined, targets: api.Target[]): Panel[] {
	const allowed = useAllowed();
	const id = target && !target.ended ? target.id : "";
	const trains = useHas(id, TRAINS);
	const serves = useHas(id, SERVES);
	const live = target?.kind === "process" && !target.ended;
	const inJob = targets.some(({ rank }) => typeof rank === "number") && (typeof target?.rank === "number" || !live);
	return PANELS.filter(([name]) => name === "overview" ? false : name === "training" ? trains : name === "server" ? serves
		: name === "console" || name === "debug" ? live && allowed : name === "job" ? inJob : name === "profile" || name === "time" ? live : true);
}

/** What the palette offers. */
function choices(targets: api.Target[], skills: api.Skill[], profiles: api.Profile[], panel: string, target: string): Choice[] {
	return [
		...PANELS.map(([name, title]) => ({ kind: "panel", text: title, go: link(name, { target }) })),
		...targets.map((one) => ({ kind: "target", text: `${lineOf(one)} ${one.argv?.join(" ").slice(0, 80) ?? ""}`, go: link(panel === "overview" ? "activity" : panel, { target: one.id }) })),
		...targets.filter(({ id }) => targets.length > 1 && id !== target).flatMap((one) => PANELS.filter(([name]) => name !== "overview").map(([name, title]) => (
			{ kind: "panel", text: `${title} of ${lineOf(one)}`, go: link(name, { target: one.id }) }))),
		...profiles.map((one) => ({ kind: "recording", text: recordingOf(one), go: link("profile", { target, profile: one.id }) })),
		...skills.map((one) => ({ kind: "diagnosis", text: `${one.name}: ${one.title}`, go: link("sql", { target, skill: one.name }) })),
		...[...BOOK, ...Object.entries(savedQueries())].map(([text, sql]) => ({ kind: "query", text, go: link("sql", { target, sql }) })),
	];
}

/** A pause that is held from here must not be forgotten. */
function Pauses() {
	const { held } = useStore();
	const ids = [...held].filter(([, one]) => one.state === "paused").map(([id]) => id);
	return ids.length ? <p class="held" role="status">This page holds paused: {ids.map((id) => <a key={id} href={link("debug", { target: id })}>{pidOf(id)}</a>)}</p> : null;
}

/** Panels that do not say it themselves. */
const SILENT = ["memory", "inspect", "sql", "dashboard", "training", "debug"];

/** That what a panel shows is of a process which is not there any more. */
function Ended({ panel, target }: { panel: string; target: api.Target | undefined }) {
	return target?.ended && SILENT.includes(panel) ? <p class="failure" role="status">Process {pidOf(target.id)} has ended: what was read before it did is below.</p> : null;
}

/** The target with that id, as it was last listed. If it is not listed any more, it has ended. */
function useSeen(id: string, targets: api.Target[] | null): api.Target | undefined {
	const seen = useRef(new Map<string, api.Target>());
	targets?.forEach((one) => seen.current.set(one.id, one));
	const now = targets?.find((one) => one.id === id);
	const before = seen.current.get(id);
	return now ?? (before && { ...before, ended: true });
}

/** Keys that press a button of the panel. */
const CLICKED: Record<string, string> = { p: "pause", r: "record", g: "grow" };

const press = (id: string) => document.getElementById(id)?.click();

/** The field that a panel is mostly used by. */
const mainField = () => document.getElementById("editor")?.shadowRoot?.querySelector<HTMLElement>(".cm-content")
	?? document.querySelector<HTMLElement>("#filter, #expression");

/** The focus goes to the next sentence of what is wrong, on the first view. */
function nextFinding(target: string) {
	const links = [...document.querySelectorAll<HTMLElement>("#findings a")];
	const at = links.indexOf(document.activeElement as HTMLElement);
	if (links.length)
		links[(at + 1) % links.length]?.focus();
	else
		location.hash = link("overview", { target });
}

function Page() {
	const route = useRoute();
	const help = useRef<HTMLDialogElement>(null);
	const [palette, setPalette] = useState(false);
	// The overview has a look of its own.
	const [many, setMany] = useState(false);
	const targets = useAsked("targets", many ? 60000 : route.panel === "overview" ? 15000 : 5000, api.targets);
	useEffect(() => setMany((targets.value?.length ?? 0) > MANY), [targets.value]);
	const skills = useAsked(`skills ${palette}`, 0, async () => palette ? api.skills() : []);
	const profiles = useAsked(`recordings ${palette}`, 0, async () => palette ? api.profiles() : []);
	const target = route.values.get("target") ?? "";
	const only = targets.value?.length === 1 ? targets.value[0]?.id : undefined;

	// A pid alone means the process that has it now. The address is then changed to its id.
	const exact = isPid(target) ? targets.value?.find(({ id }) => pidOf(id) === target)?.id : undefined;
	useEffect(() => {
		if (exact)
			change({ target: exact }, true);
	}, [exact]);
	const unsure = !!exact || (isPid(target) && !targets.value && !targets.error);

	// A gateway of one process shows that one.
	useEffect(() => {
		if (only && !target && route.panel !== "overview")
			change({ target: only }, true);
		else if (only && !location.hash)
			location.replace(link("activity", { target: only }));
	}, [only, target, route.panel]);
	useEffect(() => {
		const listen = (event: KeyboardEvent) => {
			const place = event.target as HTMLElement;
			if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
				setPalette(true);
				event.preventDefault();
				return;
			}
			if (event.ctrlKey || event.metaKey || event.altKey || place.closest("input, select, textarea, dialog, #editor"))
				return;
			const panel = /^\d$/.test(event.key) ? PANELS[(Number(event.key) + 9) % 10] : undefined;
			if (panel)
				location.hash = link(panel[0], { target });
			else if (event.key === "w")
				nextFinding(target);
			else if (event.key in CLICKED)
				press(CLICKED[event.key] ?? "");
			else if (event.key === "/")
				mainField()?.focus();
			else if (event.key === "c")
				document.getElementById("before")?.focus();
			else if (event.key === "t")
				document.getElementById("target")?.focus();
			else if (event.key === "?")
				help.current?.showModal();
			else
				return;
			event.preventDefault();
		};
		addEventListener("keydown", listen);
		return () => removeEventListener("keydown", listen);
	}, [target]);
	const found = PANELS.find(([name]) => name === (route.panel === "torch" ? "training" : route.panel)) ?? PANELS[0];
	const Panel = found[2];
	const one = useSeen(target, targets.value);
	const whole = found[0] === "overview" || !target;
	const offered = usePanels(whole ? undefined : one, targets.value ?? []);
	const title = whole ? found[1] : one ? nameOf(one) : pidOf(target);
	useEffect(() => {
		document.title = whole ? `${title} – Probing` : `${title} ${found[1]} – Probing`;
	}, [title, found]);
	// In a narrow window the tabs scroll.
	const tabs = useRef<HTMLElement>(null);
	useEffect(() => {
		const tab = tabs.current?.querySelector<HTMLElement>("[aria-current]");
		if (tabs.current && tab)
			tabs.current.scrollLeft = tab.offsetLeft - (tabs.current.clientWidth - tab.offsetWidth) / 2;
	}, [found, offered.length]);
	return (
		<>
			<header>
				<div class="top">
					<a class="brand" href={link("overview")}>Probing</a>
					<h1 title={one?.argv?.join(" ")}><span>{title}</span>{!whole && title !== pidOf(target) && <span class="faint"> {pidOf(target)}{one?.ended && " (ended)"}</span>}</h1>
					<select id="target" aria-label="Target" value={target} onChange={(event) => {
						location.hash = link(found[0] === "overview" ? "activity" : found[0], { target: event.currentTarget.value });
					}}>
						<option value="">All processes</option>
						{target && !targets.value?.some(({ id }) => id === target) && <option value={target}>{one ? lineOf(one) : pidOf(target)}</option>}
						{targets.value?.map((each) => <option key={each.id} value={each.id}>{lineOf(each)}</option>)}
					</select>
					<a id="boards" href={link("dashboard", { target })}>Dashboards</a>
					<button type="button" id="go" title="Ctrl-K" onClick={() => setPalette(true)}>Go to…</button>
					<button type="button" aria-label="Keys" onClick={() => help.current?.showModal()}>?</button>
				</div>
				{!whole && (
					<nav aria-label="Panels" ref={tabs}>
						{PANELS.filter((each) => offered.includes(each) || each === found).map(([name, text]) => (
							<a key={name} href={link(name, { target })} aria-current={found[0] === name ? "page" : undefined}>{text}</a>
						))}
					</nav>
				)}
			</header>
			<main data-panel={found[0]}>
				{found[0] !== "overview" && <h2 class="unseen">{found[1]}</h2>}
				<Reconnect />
				<Pauses />
				<Ended panel={found[0]} target={one} />
				{!unsure && <Panel key={`${found[0]} ${target}`} route={route} targets={targets.value ?? []} />}
			</main>
			{palette && <Palette choices={choices(targets.value ?? [], skills.value ?? [], profiles.value ?? [], found[0], target)} close={() => setPalette(false)} />}
			<dialog ref={help} aria-label="Keys">
				<h2>Keys</h2>
				<dl>{KEYS.map(([key, does]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{does}</dd></div>)}</dl>
				<form method="dialog"><button>Close</button></form>
			</dialog>
		</>
	);
}

const place = document.getElementById("page");
if (place)
	render(<Page />, place);
