// SPDX-License-Identifier: GPL-3.0-or-later
// The address says what is shown, behind "#": "#/activity?target=4242&native=1".
import { useEffect, useState } from "preact/hooks";

export interface Route {
	panel: string;
	values: URLSearchParams;
}

export function current(): Route {
	const [panel = "", values = ""] = location.hash.replace(/^#\/?/, "").split("?");
	return { panel: panel || "overview", values: new URLSearchParams(values) };
}

export function link(panel: string, values: Record<string, string | number | boolean | null | undefined> = {}): string {
	const list = new URLSearchParams();
	for (const [name, value] of Object.entries(values))
		if (value !== null && value !== undefined && value !== "" && value !== false)
			list.set(name, value === true ? "1" : String(value));
	return `#/${panel}${list.size ? `?${list}` : ""}`;
}

/** Changes some values of this panel; `replace` leaves no step to go back to. */
export function change(values: Record<string, string | number | boolean | null>, replace = false): void {
	const { panel, values: now } = current();
	const address = link(panel, { ...Object.fromEntries(now), ...values });
	if (address === location.hash)
		return;
	if (replace) {
		history.replaceState(null, "", address);
		dispatchEvent(new HashChangeEvent("hashchange"));
	} else {
		location.hash = address;
	}
}

export function useRoute(): Route {
	const [route, set] = useState(current);
	useEffect(() => {
		const listen = () => set(current());
		addEventListener("hashchange", listen);
		return () => removeEventListener("hashchange", listen);
	}, []);
	return route;
}
