// SPDX-License-Identifier: GPL-3.0-or-later
import "@xterm/xterm/css/xterm.css";
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Activity } from "./activity";
import * as api from "./api";
import { Console } from "./console";
import { Debug } from "./debug";
import { Inspect } from "./inspect";
import { JobPanel } from "./job";
import { later } from "./later";
import { MemoryPanel } from "./memory";
import { Overview } from "./overview";
import { Palette, type Choice } from "./palette";
import { useAsked } from "./parts";
import { Profiles } from "./profile";
import { BOOK } from "./queries";
import { Reconnect } from "./reconnect";
import { change, link, useRoute } from "./route";
import { savedQueries, useStore } from "./store";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const Sql = later(async () => (await import("./sql")).Sql);
const Torch = later(async () => (await import("./torch")).Torch);

const PANELS = [
	["overview", "Overview", Overview], ["activity", "Activity", Activity], ["profile", "Profile", Profiles],
	["torch", "Torch", Torch], ["memory", "Memory", MemoryPanel], ["inspect", "Inspect", Inspect], ["sql", "SQL", Sql],
	["console", "Console", Console], ["debug", "Debug", Debug], ["job", "Job", JobPanel],
] as const;

const KEYS = [["Ctrl-K", "go to a panel, target, query or diagnosis"], ["1 – 9, 0", "panels"], ["/", "filter"], ["p", "pause, go on"],
	["t", "choose a target"], ["?", "this help"]];

const named = ({ id, argv, file, ended }: api.Target) => `${id} ${(argv?.join(" ") ?? file ?? "").slice(0, 60)}${ended ? " (ended)" : ""}`;

/** What the palette offers. */
function choices(targets: api.Target[], skills: api.Skill[], panel: string, target: string): Choice[] {
	return [
		...PANELS.map(([name, title]) => ({ kind: "panel", text: title, go: link(name, { target }) })),
		...targets.map((one) => ({ kind: "target", text: named(one), go: link(panel === "overview" ? "activity" : panel, { target: one.id }) })),
		...skills.map((one) => ({ kind: "diagnosis", text: `${one.name}: ${one.title}`, go: link("sql", { target, skill: one.name }) })),
		...[...BOOK, ...Object.entries(savedQueries())].map(([text, sql]) => ({ kind: "query", text, go: link("sql", { target, sql }) })),
	];
}

/** A pause that is held from here must not be forgotten. */
function Pauses() {
	const { held } = useStore();
	const ids = [...held].filter(([, one]) => one.state === "paused").map(([id]) => id);
	return ids.length ? <p class="held" role="status">This page holds paused: {ids.map((id) => <a key={id} href={link("debug", { target: id })}>{id}</a>)}</p> : null;
}

function Page() {
	const route = useRoute();
	const help = useRef<HTMLDialogElement>(null);
	const [palette, setPalette] = useState(false);
	// The overview has a look of its own.
	const targets = useAsked("targets", route.panel === "overview" ? 15000 : 5000, api.targets);
	const skills = useAsked(`skills ${palette}`, 0, async () => palette ? api.skills() : []);
	const target = route.values.get("target") ?? "";
	const only = targets.value?.length === 1 ? targets.value[0]?.id : undefined;

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
			else if (event.key === "/")
				document.getElementById("filter")?.focus();
			else if (event.key === "p")
				document.getElementById("pause")?.click();
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
	const found = PANELS.find(([name]) => name === route.panel) ?? PANELS[0];
	const Panel = found[2];
	useEffect(() => {
		document.title = `${found[1]}${target ? ` ${target}` : ""} – Probing`;
	}, [found, target]);
	return (
		<>
			<header>
				<h1>Probing</h1>
				<nav aria-label="Panels">
					{PANELS.map(([name, title]) => (
						<a key={name} href={link(name, { target })} aria-current={found[0] === name ? "page" : undefined}>{title}</a>
					))}
				</nav>
				<label class="target">Target{" "}
					<select id="target" value={target} onChange={(event) => {
						location.hash = link(route.panel === "overview" ? "activity" : route.panel, { target: event.currentTarget.value });
					}}>
						<option value="">–</option>
						{target && !targets.value?.some(({ id }) => id === target) && <option value={target}>{target}</option>}
						{targets.value?.map((one) => <option key={one.id} value={one.id}>{named(one)}</option>)}
					</select>
				</label>
				<button type="button" id="go" title="Ctrl-K" onClick={() => setPalette(true)}>Go to…</button>
				<button type="button" aria-label="Keys" onClick={() => help.current?.showModal()}>?</button>
			</header>
			<main>
				<h2 class="unseen">{found[1]}</h2>
				<Reconnect />
				<Pauses />
				<Panel key={`${found[0]} ${target}`} route={route} />
			</main>
			{palette && <Palette choices={choices(targets.value ?? [], skills.value ?? [], found[0], target)} close={() => setPalette(false)} />}
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
