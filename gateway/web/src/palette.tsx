// SPDX-License-Identifier: GPL-3.0-or-later
// All that can be gone to, found by a few letters: Ctrl-K.
import { useEffect, useRef, useState } from "preact/hooks";
import { Field, wishToType } from "./field";

export interface Choice {
	kind: string;
	text: string;
	/** Where it leads, or what it does. */
	go: string | (() => void);
}

const MOST = 50;

export function matching(choices: Choice[], typed: string): Choice[] {
	const words = typed.toLowerCase().split(/\s+/);
	return choices.filter(({ kind, text }) => words.every((word) => `${kind} ${text}`.toLowerCase().includes(word))).slice(0, MOST);
}

export function Palette({ choices, close }: { choices: Choice[]; close: () => void }) {
	const dialog = useRef<HTMLDialogElement>(null);
	const list = useRef<HTMLUListElement>(null);
	const [typed, setTyped] = useState("");
	const [at, setAt] = useState(0);
	const found = matching(choices, typed);
	useEffect(() => dialog.current?.showModal(), []);
	useEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);
	const take = (choice: Choice | undefined) => {
		if (!choice)
			return;
		dialog.current?.close();
		if (typeof choice.go === "string") {
			// A query is there already: letters are keys.
			if (choice.kind !== "query" && choice.kind !== "diagnosis")
				wishToType(choice.go);
			location.hash = choice.go;
		}
		else {
			choice.go();
		}
	};
	const key = (event: KeyboardEvent) => {
		if (event.key === "Enter")
			take(found[at]);
		else if (event.key === "ArrowDown")
			setAt(Math.min(at + 1, found.length - 1));
		else if (event.key === "ArrowUp")
			setAt(Math.max(at - 1, 0));
		else
			return;
		event.preventDefault();
	};
	return (
		<dialog ref={dialog} class="palette" aria-label="Go to" onClose={close}>
			<Field id="palette" type="text" role="combobox" aria-expanded="true" aria-controls="choices" aria-label="Panel, target or query"
				aria-activedescendant={found.length ? `choice-${at}` : undefined} placeholder="Panel, target or query" autocomplete="off"
				value={typed} onKeyDown={key} onTyped={(text) => {
					setTyped(text);
					setAt(0);
				}} />
			<ul id="choices" role="listbox" aria-label="Choices" ref={list}>
				{found.map((choice, index) => (
					<li key={`${choice.kind} ${choice.text}`} id={`choice-${index}`} role="option" aria-selected={index === at} onClick={() => take(choice)}>
						<span class="faint">{choice.kind}</span> {choice.text}
					</li>
				))}
			</ul>
			{!found.length && <p role="status">Nothing has that in its name.</p>}
		</dialog>
	);
}
