// SPDX-License-Identifier: GPL-3.0-or-later
// A client of the Debug Adapter Protocol: messages come as one answer of the gateway, and go as requests.
import * as api from "./api";

export interface Frame {
	id: number;
	name: string;
	line: number;
	source?: { path?: string; name: string };
}

export interface Variable {
	name: string;
	value: string;
	type?: string;
	variablesReference: number;
}

export interface Placed {
	verified: boolean;
	line?: number;
	message?: string;
}

interface Message {
	type: "response" | "event";
	request_seq?: number;
	success?: boolean;
	message?: string;
	event?: string;
	body?: unknown;
}

interface Waiting {
	resolve: (body: unknown) => void;
	reject: (error: Error) => void;
}

export class Debugger {
	private readonly ending = new AbortController();
	private readonly waiting = new Map<number, Waiting>();
	private seq = 0;
	private name: string | null = null;
	private unsent = "";
	private sending = false;
	private left = "";

	constructor(private readonly id: string, private readonly happened: (event: string, body: unknown) => void) {}

	/** Until the session ends, or the page leaves it. */
	async run(): Promise<void> {
		const decoder = new TextDecoder();
		try {
			await api.session(this.id, this.ending.signal, (name) => {
				this.name = name;
				void this.send();
			}, (part) => this.take(decoder.decode(part, { stream: true })));
		} finally {
			for (const { reject } of this.waiting.values())
				reject(new api.ApiError("failed", "the session has ended", null));
			this.waiting.clear();
		}
	}

	/** The process runs on, without breakpoints. */
	end() {
		this.ending.abort();
	}

	ask<T>(command: string, args: Record<string, unknown> = {}): Promise<T> {
		const seq = ++this.seq;
		const text = JSON.stringify({ seq, type: "request", command, arguments: args });
		this.unsent += `Content-Length: ${new TextEncoder().encode(text).length}\r\n\r\n${text}`;
		return new Promise((resolve, reject) => {
			this.waiting.set(seq, { resolve: (body) => resolve(body as T), reject });
			void this.send();
		});
	}

	private async send() {
		while (this.name && this.unsent && !this.sending) {
			const part = this.unsent;
			this.unsent = "";
			this.sending = true;
			try {
				await api.enter(this.name, { input: part });
			} catch {
				this.end();
			}
			this.sending = false;
		}
	}

	/** What comes is ASCII: a length in bytes is one in characters. */
	private take(text: string) {
		this.left += text;
		for (;;) {
			const head = /^Content-Length: (\d+)\r\n\r\n/.exec(this.left);
			const end = head ? head[0].length + Number(head[1]) : 0;
			if (!head || this.left.length < end)
				return;
			const message = JSON.parse(this.left.slice(head[0].length, end)) as Message;
			this.left = this.left.slice(end);
			if (message.type === "event")
				this.happened(message.event ?? "", message.body);
			else
				this.answered(message);
		}
	}

	private answered({ request_seq: seq = 0, success, message, body }: Message) {
		const waiting = this.waiting.get(seq);
		this.waiting.delete(seq);
		if (success)
			waiting?.resolve(body);
		else
			waiting?.reject(new api.ApiError("failed", message ?? "refused", null));
	}
}
