// SPDX-License-Identifier: GPL-3.0-or-later
// Recordings: start, watch, stop; the flame graph is a page of its own, in a frame without an origin.
import { useState } from "preact/hooks";
import * as api from "./api";
import { ApiError } from "./api";
import { Field } from "./field";
import { Failure, useAsked } from "./parts";
import { change, type Route } from "./route";
import { recordingOf } from "./target";

export function Profiles({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const shown = route.values.get("profile");
	const before = route.values.get("before") ?? "";
	const [error, setError] = useState<ApiError | null>(null);
	const [turn, setTurn] = useState(0);
	const list = useAsked("profiles", 1000, api.profiles);
	const current = list.value?.find((profile) => profile.id === shown);
	const others = list.value?.filter(({ id: one, state }) => one !== shown && state === "finished") ?? [];
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
			setTurn(0);
			change({ profile: made.id, before: null });
		});
	};
	return (
		<section aria-label="Profile">
			<form class="tools" onSubmit={start}>
				<label>Seconds <Field name="duration" type="number" min="0.1" max="3600" step="any" value="10" draft="duration" /></label>
				<label>Time <select name="mode"><option value="cpu">on a processor</option><option value="wall">that passes</option></select></label>
				<label><input name="native" type="checkbox" /> C frames</label>
				<button id="record" disabled={!id}>Record {id}</button>
			</form>
			<Failure error={error ?? list.error} />
			<ul class="recordings">
				{list.value?.map((profile) => (
					<li key={profile.id} class={profile.id === shown ? "chosen" : ""}>
						<button type="button" onClick={() => change({ profile: profile.id })}>{recordingOf(profile)}</button>
						<span class="state">{profile.state}</span>
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
			{current && current.state !== "failed" && (
				<>
					{current.state === "running" && (
						<p><button type="button" id="redraw" onClick={() => setTurn(turn + 1)}>Draw what there is now</button></p>
					)}
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
					{(current.state !== "running" || turn > 0) && (
						<iframe key={`${current.id} ${current.state} ${turn} ${compared}`} title="Flame graph"
							src={api.profileLink(current.id, "html", compared || undefined)} />
					)}
				</>
			)}
			{!list.value?.length && <p>Nothing was recorded yet.</p>}
		</section>
	);
}
