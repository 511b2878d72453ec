// SPDX-License-Identifier: GPL-3.0-or-later
// Whether the gateway answers this page. Each request notes it; what is shown is asked for anew when it answers again.
import { useEffect, useState } from "preact/hooks";

/** "gone": it does not answer; "locked": it has another token now. */
export type State = "up" | "gone" | "locked";

let state: State = "up";
// How often it came back.
let turn = 0;
const listeners = new Set<() => void>();

export function note(next: State) {
	if (next === state)
		return;
	turn += Number(next === "up");
	state = next;
	listeners.forEach((tell) => tell());
}

export const isUp = () => state === "up";

export function useConnection(): { state: State; turn: number } {
	const [, draw] = useState(0);
	useEffect(() => {
		const tell = () => draw((count) => count + 1);
		listeners.add(tell);
		return () => {
			listeners.delete(tell);
		};
	}, []);
	return { state, turn };
}
