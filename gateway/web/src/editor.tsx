// SPDX-License-Identifier: GPL-3.0-or-later
// The SQL editor: CodeMirror in a shadow root, where its styles are no inline ones.
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLite, sql } from "@codemirror/lang-sql";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import type { Table } from "./api";
import { draftOf, isWished, keepDraft } from "./field";

const colours = HighlightStyle.define([
	{ tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
	{ tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
	{ tag: tags.number, color: "var(--warm)" },
	{ tag: tags.comment, color: "var(--faint)" },
]);

const theme = EditorView.theme({
	"&": { color: "var(--text)", backgroundColor: "var(--field)", fontSize: "14px" },
	".cm-content": { caretColor: "var(--text)", fontFamily: "var(--mono)", minHeight: "6em" },
	".cm-gutters": { backgroundColor: "var(--field)", color: "var(--faint)", border: "none" },
	"&.cm-focused": { outline: "2px solid var(--accent)" },
	".cm-cursor": { borderLeftColor: "var(--text)" },
	".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { backgroundColor: "var(--select)" },
	".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
	".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--back)" },
});

/** Letters are put in by the editor: where one replaces coloured text, the browser gives it a style of its own, which is not allowed. */
const letters = EditorView.domEventHandlers({
	beforeinput: (event, view) => {
		if (event.inputType !== "insertText" || event.isComposing || !event.data)
			return false;
		view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
		return true;
	},
});

function schema(tables: Table[]) {
	const found: Record<string, Record<string, string[]>> = {};
	for (const table of tables)
		(found[table.schema] ??= {})[table.name] = table.columns.map((column) => column.name);
	return found;
}

/** `given` is what the address gives of `text`, which goes before what was typed and not run. `mend`: the text with the name that was meant. */
export function Editor({ text, given, tables, mend, onRun }: { text: string; given: string; tables: Table[]; mend: ((text: string) => string) | null; onRun: (text: string) => void }) {
	const host = useRef<HTMLDivElement>(null);
	const view = useRef<EditorView | null>(null);
	const language = useRef(new Compartment());
	const run = useRef(onRun);
	run.current = onRun;
	const mended = useRef(mend);
	mended.current = mend;
	const shown = useRef(text);
	useEffect(() => {
		const element = host.current;
		if (!element)
			return;
		const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
		const editor = new EditorView({
			root,
			parent: root,
			state: EditorState.create({
				doc: draftOf("sql", given) || text,
				extensions: [
					Prec.highest(keymap.of([{ key: "Mod-Enter", run: (it) => {
						run.current(it.state.doc.toString());
						return true;
					} }, { key: "Mod-.", run: (it) => {
						if (mended.current)
							run.current(mended.current(it.state.doc.toString()));
						return true;
					} }])),
					lineNumbers(), history(), bracketMatching(), autocompletion(), syntaxHighlighting(colours), theme, letters,
					EditorView.lineWrapping, EditorView.contentAttributes.of({ "aria-label": "SQL" }),
					keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
					language.current.of(sql({ dialect: SQLite })),
				],
			}),
		});
		view.current = editor;
		if (isWished()) {
			editor.focus();
			editor.dispatch({ selection: { anchor: 0, head: editor.state.doc.length } });
		}
		return () => {
			keepDraft("sql", shown.current, editor.state.doc.toString());
			editor.destroy();
		};
	}, []);
	useEffect(() => {
		view.current?.dispatch({ effects: language.current.reconfigure(sql({ dialect: SQLite, schema: schema(tables) })) });
	}, [tables]);
	useEffect(() => {
		const editor = view.current;
		if (editor && text !== shown.current)
			editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
		shown.current = text;
	}, [text]);
	return (
		<>
			<div id="editor" ref={host} />
			<button type="button" id="run" title="Ctrl-Enter" onClick={() => onRun(view.current?.state.doc.toString() ?? "")}>Run</button>
		</>
	);
}
