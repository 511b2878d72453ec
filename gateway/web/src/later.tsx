// SPDX-License-Identifier: GPL-3.0-or-later
// Parts whose code is loaded when they are first shown, so that the first view need not wait for it.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "./api";
import { Failure } from "./parts";

export function later<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
	let loaded: ComponentType<P> | null = null;
	return function Later(props: P) {
		const [Part, setPart] = useState(() => loaded);
		const [error, setError] = useState<ApiError | null>(null);
		useEffect(() => {
			if (!Part)
				load().then((part) => {
					loaded = part;
					setPart(() => part);
				}, () => setError(new ApiError("gone", "a part of this page cannot be loaded", "has 'probing serve' ended, or is it another one now? Load the page anew")));
		}, []);
		return Part ? <Part {...props} /> : error ? <Failure error={error} /> : <p class="fresh">loading…</p>;
	};
}
