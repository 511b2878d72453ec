// SPDX-License-Identifier: GPL-3.0-or-later
// Recordings: start, watch, stop; the flame graph is a page of its own, in a frame without an origin.
import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import { ApiError } from "./api";
import { Field } from "./field";
import { Failure, seconds, useAsked } from "./parts";
import { change, type Route } from "./route";
import { recordingOf } from "./target";

/** A recording that runs is drawn again so long after it was drawn. */
const REDRAW_MS = 1000;

/** What is left of a recording: it is known a little later that it has ended. */
function Left({ profile }: { profile: api.Profile }) {
	const [now, setNow] = useState(Date.now());
	useEffect(() => {
		const timer = setInterval(() => setNow(Date.now()), 500);
		return () => clearInterval(timer);
	}, []);
	const left = Math.ceil((profile.started ?? 0) + (profile.duration ?? 0) - now / 1000);
	// A recording that runs until it is stopped has no time left to show.
	return <span class="state" role="timer">running{left < 86400 && (left > 0 ? `, ${left < 60 ? `${left} s` : seconds(left)} left` : ", ends now")}</span>;
}

/** Whether an address answers; it is asked until it does. */
function useReady(address: string): boolean {
	const [ready, setReady] = useState(false);
	useEffect(() => {
		let timer = 0;
		let over = false;
		const ask = async () => {
			const error = await api.whyNot(address).catch((caught) => caught);
			if (!over && error)
				timer = window.setTimeout(ask, REDRAW_MS);
			else if (!over)
				setReady(true);
		};
		timer = window.setTimeout(ask, REDRAW_MS);
		return () => {
			over = true;
			clearTimeout(timer);
		};
	}, [address]);
	return ready;
}

/** The flame graph so far, drawn again and again: the new one takes the place of the old one when it is there. */
function Live({ id }: { id: string }) {
	const [turn, setTurn] = useState(1);
	const [shown, setShown] = useState(0);
	const [held, setHeld] = useState(false);
	const ready = useReady(api.profileLink(id, "html"));
	useEffect(() => {
		// Whoever clicks in the picture looks at something in it.
		const entered = () => document.activeElement?.tagName === "IFRAME" && setHeld(true);
		addEventListener("blur", entered);
		return () => removeEventListener("blur", entered);
	}, []);
	useEffect(() => {
		if (held || turn > shown)
			return;
		const timer = setTimeout(() => setTurn(shown + 1), REDRAW_MS);
		return () => clearTimeout(timer);
	}, [held, turn, shown]);
	const turns = [shown, turn].filter((one, place, all) => one && all.indexOf(one) === place);
	if (!ready)
		return <p class="fresh" role="status">The first samples are awaited…</p>;
	return (
		<>
			<p><label><input id="live" type="checkbox" checked={!held} onChange={(event) => setHeld(!event.currentTarget.checked)} /> Draw it anew each second</label></p>
			<div class="live">
				{turns.map((one) => (
					<iframe key={one} title={one === shown ? "Flame graph" : "The next one"} class={one === shown ? "" : "coming"} aria-hidden={one !== shown}
						src={api.profileLink(id, "html")} onLoad={() => setShown(Math.max(shown, one))} />
				))}
			</div>
		</>
	);
}

/** Its name and a note; they are kept by the gateway while it runs. */
function Naming({ profile, save }: { profile: api.Profile; save: (texts: { name: string; note: string }) => void }) {
	const submit = (event: SubmitEvent) => {
		event.preventDefault();
		const form = new FormData(event.currentTarget as HTMLFormElement);
		save({ name: String(form.get("name")), note: String(form.get("note")) });
	};
	return (
		<form class="tools" onSubmit={submit}>
			<label>Name <Field name="name" size={20} maxLength={80} value={profile.name ?? ""} draft={`name ${profile.id}`} /></label>
			<label>Note <Field name="note" size={50} maxLength={1000} value={profile.note ?? ""} draft={`note ${profile.id}`} /></label>
			<button id="rename">Keep</button>
		</form>
	);
}

export function Profiles({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const shown = route.values.get("profile");
	const before = route.values.get("before") ?? "";
	const [error, setError] = useState<ApiError | null>(null);
	const list = useAsked("profiles", 1000, api.profiles);
	// The newest first; those of other processes only on demand.
	const newest = [...list.value ?? []].reverse();
	const own = newest.filter(({ target, file, id: one }) => !id || file || target === id || one === shown);
	const listed = route.values.has("all") ? newest : own;
	const current = list.value?.find((profile) => profile.id === shown);
	const others = newest.filter(({ id: one, state }) => one !== shown && state === "finished");
	const compared = others.some((one) => one.id === before) ? before : "";

	const attempt = async (what: () => Promise<unknown>) => {
		try {
			setError(null);
			await what();
		} catch (caught) {
			setError(caught instanceof ApiError ? caught : new ApiError("failed", String(caught), null));
		}
		list.again();
	};
	const start = (event: SubmitEvent) => {
		event.preventDefault();
		const form = new FormData(event.currentTarget as HTMLFormElement);
		void attempt(async () => {
			const made = await api.record(id, {
				duration: Number(form.get("duration")), mode: form.get("mode") === "wall" ? "wall" : "cpu", native: form.has("native") });
			change({ profile: made.id, before: null });
		});
	};
	return (
		<section aria-label="Profile">
			<form class="tools" onSubmit={start}>
				<label>Seconds <Field name="duration" type="number" min="0.1" max="3600" step="any" value="10" draft="duration" /></label>
				<label>Time <select name="mode"><option value="cpu">on a processor</option><option value="wall">that passes</option></select></label>
				<label><input name="native" type="checkbox" /> C frames</label>
				<button id="record" disabled={!id}>Record</button>
			</form>
			<Failure error={error ?? list.error} />
			<ul class="recordings">
				{listed.map((profile) => (
					<li key={profile.id} class={profile.id === shown ? "chosen" : ""}>
						<button type="button" onClick={() => change({ profile: profile.id })}>{recordingOf(profile)}</button>
						{profile.state === "running" ? <Left profile={profile} /> : <span class="state">{profile.state}</span>}
						{profile.note && <span class="faint">{profile.note}</span>}
						{profile.error && <span class="mark">{profile.error}</span>}
						{profile.state === "running"
							? <button type="button" onClick={() => attempt(() => api.stop(profile.id))}>Stop</button>
							: <><a href={api.profileLink(profile.id, "profile")}>.profile</a>{" "}
								<a href={api.profileLink(profile.id, "speedscope")}>speedscope</a>{" "}
								<a href={api.profileLink(profile.id, "pprof")}>pprof</a>{" "}
								{!profile.file && <button type="button" onClick={() => attempt(() => api.forget(profile.id))}>Delete</button>}</>}
					</li>
				))}
			</ul>
			{newest.length > own.length && (
				<p><label><input id="all" type="checkbox" checked={listed === newest} onChange={(event) => change({ all: event.currentTarget.checked }, true)} />{" "}
					Those of other processes, too ({newest.length - own.length})</label></p>
			)}
			{current && current.state !== "failed" && (
				<>
					{!current.file && <Naming key={current.id} profile={current} save={(texts) => void attempt(() => api.nameRecording(current.id, texts))} />}
					{current.state === "running" && <Live key={current.id} id={current.id} />}
					{current.state === "finished" && others.length > 0 && (
						<p>
							<label>Compare with{" "}
								<select id="before" value={compared} onChange={(event) => change({ before: event.currentTarget.value })}>
									<option value="">nothing</option>
									{others.map((one) => <option key={one.id} value={one.id}>{recordingOf(one)}</option>)}
								</select>
							</label>
							{compared && <span class="faint"> orange takes more of the time than before, blue less</span>}
						</p>
					)}
					{current.state !== "running" && (
						<iframe key={`${current.id} ${compared}`} title="Flame graph"
							src={api.profileLink(current.id, "html", compared || undefined)} />
					)}
				</>
			)}
			{!listed.length && <p>Nothing was recorded yet.</p>}
		</section>
	);
}
