// SPDX-License-Identifier: GPL-3.0-or-later
// `probing repl` in a terminal. It is loaded when one is opened, and ends with the panel.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { ApiError } from "./api";
import { Failure } from "./parts";
import { asError } from "./store";

const PART = 8192;

/** An element in the place of <style>: what is put into it becomes a style sheet of the page. */
function styleElement(): HTMLElement {
	const element = Document.prototype.createElement.call(document, "span");
	const sheet = new CSSStyleSheet();
	element.hidden = true;
	document.adoptedStyleSheets.push(sheet);
	Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text) });
	element.remove = () => {
		document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
		Element.prototype.remove.call(element);
	};
	return element;
}

/**
 * xterm.js writes <style> elements and style attributes, which the page's policy allows nobody. As long as there is a
 * terminal, elements become style sheets and styles instead, as any script may set them.
 */
function restyle(): () => void {
	const createElement = (tag: string) => {
		const element = tag === "style" ? styleElement() : Document.prototype.createElement.call(document, tag);
		const set = element.setAttribute.bind(element);
		element.setAttribute = (name, text) => name === "style" ? void (element.style.cssText = text) : set(name, text);
		return element;
	};
	Object.assign(document, { createElement });
	return () => Reflect.deleteProperty(document, "createElement");
}

const DARK = matchMedia("(prefers-color-scheme: dark)");

/** The colours of the page, also when these change. */
function themeOf(place: HTMLElement): { background: string; foreground: string; cursor: string; cursorAccent: string } {
	const { backgroundColor, color } = getComputedStyle(place);
	return { background: backgroundColor, foreground: color, cursor: color, cursorAccent: backgroundColor };
}

function open(place: HTMLElement): { terminal: Terminal; fit: FitAddon } {
	const terminal = new Terminal({
		fontFamily: getComputedStyle(place).fontFamily,
		fontSize: 13,
		// Colours of a process are not made for our background.
		minimumContrastRatio: 4.5,
		scrollback: 5000,
		// A link of the process leads nowhere.
		linkHandler: { activate: () => undefined },
		theme: themeOf(place),
	});
	const fit = new FitAddon();
	terminal.loadAddon(fit);
	terminal.open(place);
	fit.fit();
	// Tab completes names; Shift-Tab leaves.
	terminal.attachCustomKeyEventHandler((event) => !(event.key === "Tab" && event.shiftKey));
	return { terminal, fit };
}

/** What is typed goes in the order in which it came, one request at a time. */
class Typing {
	private name: string | null = null;
	private left = "";
	private busy = false;

	constructor(private readonly failed: (error: unknown) => void) {}

	begin(name: string) {
		this.name = name;
		void this.go();
	}

	add(text: string) {
		this.left += text;
		void this.go();
	}

	private async go() {
		if (this.busy || !this.name)
			return;
		this.busy = true;
		try {
			while (this.left) {
				const input = this.left.slice(0, PART);
				this.left = this.left.slice(PART);
				await api.enter(this.name, { input });
			}
		} catch (error) {
			this.left = "";
			this.failed(error);
		}
		this.busy = false;
	}
}

export function Repl({ id, thread, close }: { id: string; thread: api.Where; close: () => void }) {
	const place = useRef<HTMLDivElement>(null);
	const [ended, setEnded] = useState(false);
	const [error, setError] = useState<ApiError | null>(null);
	useEffect(() => {
		if (!place.current)
			return;
		const restore = restyle();
		const host = place.current;
		const { terminal, fit } = open(host);
		const coloured = () => void (terminal.options.theme = themeOf(host));
		DARK.addEventListener("change", coloured);
		const ending = new AbortController();
		const failed = (caught: unknown) => {
			if (!ending.signal.aborted)
				setError(asError(caught));
		};
		const typing = new Typing(failed);
		let name = "";
		terminal.onData((text) => typing.add(text));
		terminal.onResize(({ rows, cols }) => {
			if (name)
				api.enter(name, { rows, columns: cols }).catch(failed);
		});
		const watch = new ResizeObserver(() => fit.fit());
		watch.observe(host);
		terminal.focus();
		api.terminal(id, { rows: terminal.rows, columns: terminal.cols, thread }, ending.signal, (given) => {
			name = given;
			typing.begin(given);
		}, (part) => terminal.write(part)).catch(failed).finally(() => {
			name = "";
			if (!ending.signal.aborted)
				setEnded(true);
		});
		return () => {
			ending.abort();
			DARK.removeEventListener("change", coloured);
			watch.disconnect();
			terminal.dispose();
			restore();
		};
	}, [id, thread]);
	return (
		<>
			<div id="repl" ref={place} />
			<div class="tools">
				<button type="button" id="close" onClick={close}>Close the terminal</button>
				<span class="faint" role="status">{ended ? "It has ended." : "Tab completes names, Ctrl-C interrupts, Ctrl-D ends it, Shift-Tab leaves it."}</span>
			</div>
			<Failure error={error} />
		</>
	);
}
