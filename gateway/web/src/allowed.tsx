// SPDX-License-Identifier: GPL-3.0-or-later
// Whether this page may change targets, and what is shown if it may not.
import * as api from "./api";
import { useAsked } from "./parts";

/** null: not known yet. */
export function useAllowed(): boolean | null {
	return useAsked("server", 0, api.server).value?.allow_write ?? null;
}

export function NotAllowed({ what }: { what: string }) {
	return (
		<section aria-label="Not allowed">
			<p>This gateway only reads its targets. To {what} from here, start it with <code>probing serve --allow-write</code>: whoever has
				the token can then do what your user can.</p>
		</section>
	);
}
