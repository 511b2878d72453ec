// SPDX-License-Identifier: GPL-3.0-or-later
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Activity } from "./activity";
import * as api from "./api";
import { Inspect } from "./inspect";
import { Overview } from "./overview";
import { useAsked } from "./parts";
import { Profiles } from "./profile";
import { change, link, useRoute } from "./route";
import { Sql } from "./sql";
import "./style.css";

const PANELS = [
	["overview", "Overview", Overview], ["activity", "Activity", Activity], ["profile", "Profile", Profiles],
	["sql", "SQL", Sql], ["inspect", "Inspect", Inspect],
] as const;

const KEYS = [["1 – 5", "panels"], ["/", "filter"], ["p", "pause, go on"], ["t", "choose a target"], ["?", "this help"]];

function Page() {
	const route = useRoute();
	const help = useRef<HTMLDialogElement>(null);
	const targets = useAsked("targets", 5000, api.targets);
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
			if (event.ctrlKey || event.metaKey || event.altKey || place.closest("input, select, textarea, #editor"))
				return;
			const panel = PANELS[Number(event.key) - 1];
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
				<strong>Probing</strong>
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
						{targets.value?.map(({ id, argv, file, ended }) => (
							<option key={id} value={id}>{id} {(argv?.join(" ") ?? file ?? "").slice(0, 60)}{ended ? " (ended)" : ""}</option>
						))}
					</select>
				</label>
				<button type="button" aria-label="Keys" onClick={() => help.current?.showModal()}>?</button>
			</header>
			<main><Panel key={`${found[0]} ${target}`} route={route} /></main>
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
