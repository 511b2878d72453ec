// SPDX-License-Identifier: GPL-3.0-or-later
// A value, and what it consists of, unfolded step by step: read from outside, no code runs.
import { useState } from "preact/hooks";
import * as api from "./api";
import { Numbers, isArray } from "./array";
import { Field } from "./field";
import { Failure, Value, useAsked } from "./parts";
import { change, type Route } from "./route";

/** Parts that are read and shown at once. */
const PAGE = 100;
// What is no container says so; an error of one that is must be seen.
const HAS_ITEMS = "_error NOT LIKE '% have no items that can be told'";

function Part({ id, name, type, value, address }: { id: string; name: string; type: string; value: string | null; address: number | null }) {
	const [open, setOpen] = useState(false);
	return (
		<li>
			{address !== null
				? <button type="button" class="fold" aria-expanded={open} aria-label={`Unfold ${name}`} onClick={() => setOpen(!open)}>{open ? "▾" : "▸"}</button>
				: <span class="fold" />}
			<span class="name">{name}</span> <span class="place">{type}</span> <Value text={value} open={open} />
			{open && address !== null && <ul class="parts">{isArray(type, value) && <Numbers id={id} place={Math.trunc(address)} value={value} />}
				<Parts id={id} place={Math.trunc(address)} from={0} /></ul>}
		</li>
	);
}

/** A page of items, and what is after it when it is asked for; attributes are with the first one. */
function Parts({ id, place, from }: { id: string; place: number; from: number }) {
	const [more, setMore] = useState(false);
	const asked = useAsked(`parts ${id} ${place} ${from}`, 0, async () => {
		const [items, attributes] = await Promise.all([
			api.query(id, `SELECT coalesce(key, number) AS name, type, value, value_address, _error FROM python.items(${place}) `
				+ `WHERE number BETWEEN ${from} AND ${from + PAGE} UNION ALL `
				+ `SELECT NULL, NULL, NULL, NULL, _error FROM python.items(${place}) WHERE number IS NULL AND ${HAS_ITEMS}`),
			from ? null : api.query(id, `SELECT name, type, value, value_address, _error FROM python.attributes(${place})`),
		]);
		const found = items.value.filter((row) => row["name"] !== null);
		return {
			rows: [...found.slice(0, PAGE).map((row): api.Row => ({ ...row, name: `[${row["name"]}]` })),
				...items.value.filter((row) => row["name"] === null), ...attributes?.value ?? []],
			more: found.length > PAGE,
		};
	});
	const named = asked.value?.rows.filter((row) => row["name"] !== null) ?? [];
	// What C code would have to compute is not known, and often long.
	const rows = named.filter((row) => row["value"] !== null || row["type"] !== "getset_descriptor");
	const computed = named.length - rows.length;
	const doubts = new Set(asked.value?.rows.flatMap((row) => row["_error"] === null ? [] : [String(row["_error"])]));
	return (
		<>
			<Failure error={asked.error} />
			{!asked.value && !asked.error && <li class="fresh" role="status">reading…</li>}
			{[...doubts].map((text) => <li key={text} class="failure">{text}</li>)}
			{rows.map((row, index) => (
				<Part key={index} id={id} name={String(row["name"])} type={String(row["type"] ?? "")}
					value={row["value"] === null ? null : String(row["value"])}
					address={row["value_address"] === null ? null : Number(row["value_address"])} />
			))}
			{computed > 0 && <li class="faint">{computed} attributes are computed by C code when they are asked for.</li>}
			{asked.value && !asked.value.rows.length && <li>Nothing in it.</li>}
			{asked.value?.more && !more && <li><button type="button" class="more" onClick={() => setMore(true)}>Show more, from [{from + PAGE}] on</button></li>}
			{more && <Parts id={id} place={place} from={from + PAGE} />}
		</>
	);
}

export function Inspect({ route }: { route: Route }) {
	const id = route.values.get("target") ?? "";
	const expression = route.values.get("expression") ?? "";
	const tid = Number(route.values.get("tid")) || undefined;
	const frame = Number(route.values.get("frame")) || 0;
	const asked = useAsked(`value ${id} ${expression} ${tid} ${frame}`, 0,
		async () => expression && id ? api.evaluated(id, expression, { frame, ...(tid ? { tid } : {}) }) : null);
	const submit = (event: SubmitEvent) => {
		event.preventDefault();
		const form = new FormData(event.currentTarget as HTMLFormElement);
		change({ expression: String(form.get("expression")), tid: String(form.get("tid")), frame: String(form.get("frame")) });
		asked.again();
	};
	return (
		<section aria-label="Inspect">
			<form class="tools" onSubmit={submit}>
				<label>Expression <Field id="expression" name="expression" size={40} value={expression} draft={`expression ${id}`} placeholder="self.layers[0]" /></label>
				<label>Thread <Field name="tid" size={8} value={tid ?? ""} placeholder="main" inputMode="numeric" /></label>
				<label>Frame <Field name="frame" size={4} value={frame} inputMode="numeric" /></label>
				<button>Look</button>
			</form>
			{!id && <p>Choose a process above.</p>}
			<Failure error={asked.error} />
			{asked.value && (
				<ul class="parts" id="value">
					<Part key={asked.when} id={id} name={asked.value.expression} type={asked.value.type} value={asked.value.value} address={asked.value.address} />
				</ul>
			)}
			{asked.value?.changed && <p class="mark">It changed while it was read.</p>}
			<p class="faint">Names, attributes, constant indexes, len(), type(): no code runs in the process. A module is a good start:
				<code> threading</code>, <code>__main__</code>.</p>
		</section>
	);
}
