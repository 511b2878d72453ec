// SPDX-License-Identifier: GPL-3.0-or-later
// What takes the memory, and what grows: a walk over all objects, made when it is asked for.
import { useRef, useState } from "preact/hooks";
import * as api from "./api";
import { ApiError } from "./api";
import { Field } from "./field";
import { Verdicts } from "./findings";
import { Failure, Fresh, Table, bytes, count, useAsked } from "./parts";
import { change, type Route } from "./route";
import { asError } from "./store";

const MOST = 40;

function Process({ process }: { process: api.Memory["process"] }) {
	const shares = ([["anonymous", process.anonymous], ["files", process.file], ["shared", process.shared], ["swapped out", process.swap]] as const)
		.filter(([, size]) => size !== null);
	const tight = process.limit !== null && process.limit_used !== null && process.limit_used > process.limit * 0.9;
	return (
		<>
			<p class="facts">
				{process.rss === null ? "The kernel tells nothing of its memory." : `In RAM ${bytes(process.rss)}`}
				{process.peak !== null && ` · peak ${bytes(process.peak)}`}
				{process.pss !== null && ` · its share ${bytes(process.pss)}`}
				{process.limit !== null && ` · limit of its control group ${bytes(process.limit)}, ${bytes(process.limit_used)} used`}
			</p>
			{tight && <p class="failure">Its control group is nearly at its limit.</p>}
			<Table caption="Memory of the process" heads={["Memory", "Size"]} rows={shares.map(([name, size]) => [name, bytes(size)])} />
		</>
	);
}

function Objects({ census }: { census: api.Memory["interpreters"][number] }) {
	if (census.error !== null)
		return <p class="failure">{census.error}</p>;
	const small = census.small_objects;
	return (
		<>
			<h3>Python objects{census.interpreter ? ` of interpreter ${census.interpreter}` : ""}</h3>
			<p class="facts">
				{count(census.objects)} objects, {bytes(census.bytes)}, read in {census.seconds.toFixed(1)} s
				{census.unheld_objects > 0 && ` · ${count(census.unheld_objects)} (${bytes(census.unheld_bytes)}) are held by C code only`}
				{census.garbage_objects > 0 && ` · ${count(census.garbage_objects)} (${bytes(census.garbage_bytes)}) are garbage in cycles`}
				{small && ` · small objects: ${small.arenas} arenas, ${bytes(small.used)} used, ${bytes(small.free + small.unused)} free or of others`}
			</p>
			{census.doubt && <p class="failure">{census.doubt}</p>}
			<Table caption="Types" heads={["Type", "Objects", "Bytes", "Owned buffers"]}
				rows={census.types.slice(0, MOST).map((type) => [type.type, count(type.objects), bytes(type.bytes), type.owned ? bytes(type.owned) : ""])} />
			{census.types.length > MOST && <p class="faint">and {census.types.length - MOST} more types</p>}
			{census.tensors.length > 0 && (
				<>
					<h3>Tensors</h3>
					<Table caption="Tensors by device" heads={["Device", "Type", "Tensors", "Bytes"]}
						rows={census.tensors.map((one) => [one.device ?? "unknown", one.dtype, count(one.tensors), bytes(one.bytes)])} />
					<Table caption="Largest tensors" heads={["Held by", "Type", "Shape", "Bytes"]}
						rows={census.largest_tensors.slice(0, MOST).map((one) => [
							`${one.gradient ? "gradient of " : ""}${one.holder ?? "?"}`, one.dtype, `(${one.shape.join(", ")})`, bytes(one.bytes)])} />
				</>
			)}
		</>
	);
}

const signed = (value: number, text: string) => `${value < 0 ? "−" : "+"}${text}`;

function Grown({ grown }: { grown: api.Growth }) {
	return (
		<>
			{grown.interpreters.map((one) => (
				<div key={one.interpreter}>
					<p class="facts" id="grown">
						in {grown.seconds.toFixed(1)} s: {signed(one.objects, count(Math.abs(one.objects)))} objects, {signed(one.bytes, bytes(Math.abs(one.bytes)))}
					</p>
					{one.doubt && <p class="failure">{one.doubt}</p>}
					<Table caption="What holds what is new" heads={["Held by", "Objects", "Bytes", "For example"]}
						rows={one.holders.slice(0, MOST).map((holder) => [
							holder.holder ?? (holder.garbage ? "only cycles: garbage that was not collected yet" : "C code"),
							signed(holder.objects, count(Math.abs(holder.objects))), signed(holder.bytes, bytes(Math.abs(holder.bytes))), holder.example ?? ""])} />
					<Table caption="Types that changed" heads={["Type", "Objects", "Bytes"]}
						rows={one.types.slice(0, MOST).map((type) => [
							type.type, signed(type.objects, count(Math.abs(type.objects))), signed(type.bytes, bytes(Math.abs(type.bytes)))])} />
				</div>
			))}
		</>
	);
}

export function MemoryPanel({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const seconds = Number(route.values.get("growth")) || 10;
	const asked = useAsked(`memory ${id}`, 0, async () => id ? api.memory(id) : null);
	const [grown, setGrown] = useState<api.Growth | null>(null);
	const [error, setError] = useState<ApiError | null>(null);
	const [ending, setEnding] = useState<AbortController | null>(null);
	const mine = useRef<AbortController | null>(null);
	const grow = async () => {
		const controller = mine.current = new AbortController();
		setEnding(controller);
		setError(null);
		try {
			setGrown(await api.growth(id, seconds, controller.signal));
		} catch (caught) {
			if (!controller.signal.aborted)
				setError(asError(caught));
		}
		setEnding(null);
	};
	if (!id)
		return <p>Choose a process above.</p>;
	return (
		<section aria-label="Memory">
			<div class="tools">
				<button type="button" onClick={asked.again}>Read again</button>
				<label>Seconds <Field name="growth" type="number" min="0.5" max="600" step="any" value={seconds}
					onChange={(event) => change({ growth: event.currentTarget.value }, true)} /></label>
				<button type="button" id="grow" disabled={!!ending} onClick={() => void grow()}>What grows?</button>
				{ending && <><span role="status">two readings, {seconds} s apart…</span><button type="button" onClick={() => ending.abort()}>End it</button></>}
				<Fresh when={asked.when} />
			</div>
			<Failure error={error ?? asked.error} />
			<Verdicts id={id} kinds={["leak", "memory"]} />
			{grown && <Grown grown={grown} />}
			{asked.value && <Process process={asked.value.process} />}
			{asked.value?.error && <p class="failure">{asked.value.error}</p>}
			{asked.value?.interpreters.map((census) => <Objects key={census.interpreter} census={census} />)}
		</section>
	);
}
