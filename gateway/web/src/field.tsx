// SPDX-License-Identifier: GPL-3.0-or-later
// The fields of the page. A field belongs to whoever types into it: a panel may be drawn again at any time, so a
// drawing writes into a field only what was not in its `value` before, and nothing over what is being typed.
import type { ComponentProps, Ref } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** What was typed and not used, by a name, with the value that it was typed over: it outlives its panel. */
const drafts = new Map<string, { over: string; text: string }>();

/** What a field begins with: a value that an address gives goes before a draft. */
export function draftOf(name: string, given: string): string {
	const draft = drafts.get(name);
	return draft && (draft.over === given || !given) ? draft.text : given;
}

export function keepDraft(name: string, given: string, text: string) {
	if (text === given)
		drafts.delete(name);
	else
		drafts.set(name, { over: given, text });
}

/** Where whoever has gone to a panel by keys wants to type. */
let wished = "";

export const wishToType = (address: string) => void (wished = address);

/** Whether that is here; once. */
export function isWished(): boolean {
	const is = wished !== "" && wished === location.hash;
	wished = "";
	return is;
}

type Text = HTMLInputElement | HTMLTextAreaElement;

interface Own {
	/** What it has at first, and again when this changes. */
	value?: string | number;
	/** Gets each text that is typed. */
	onTyped?: (text: string) => void;
	/** A name for its draft; none: it is forgotten with the panel. */
	draft?: string;
	field?: Ref<Text>;
	/** Makes it one of several lines. */
	rows?: number;
}

export function Field({ value = "", onTyped, draft, field, ...more }: Own & Omit<ComponentProps<"input"> & ComponentProps<"textarea">, keyof Own | "onInput" | "defaultValue">) {
	const own = useRef<Text>(null);
	const given = String(value);
	const latest = useRef(given);
	latest.current = given;
	// It has something that is not its value yet.
	const typed = useRef(false);
	useLayoutEffect(() => {
		const element = own.current;
		if (!element)
			return;
		element.value = draft ? draftOf(draft, latest.current) : latest.current;
		typed.current = element.value !== latest.current;
		return () => {
			if (draft)
				keepDraft(draft, latest.current, element.value);
		};
	}, [draft]);
	useLayoutEffect(() => {
		if (own.current && !typed.current)
			own.current.value = given;
		typed.current &&= own.current?.value !== given;
	}, [given]);
	const all = {
		...more, onInput: () => {
			typed.current = own.current?.value !== latest.current;
			onTyped?.(own.current?.value ?? "");
		}, ref: (element: Text | null) => {
			own.current = element;
			if (typeof field === "function")
				field(element);
			else if (field)
				field.current = element;
		},
	};
	return more.rows ? <textarea {...all as ComponentProps<"textarea">} /> : <input {...all as ComponentProps<"input">} />;
}
