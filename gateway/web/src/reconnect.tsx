// SPDX-License-Identifier: GPL-3.0-or-later
// What is shown while the gateway does not answer, and the form for its token.
import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import { ApiError } from "./api";
import { useConnection } from "./connection";
import { Field } from "./field";
import { Failure, useAsked } from "./parts";
import { asError } from "./store";

const EVERY_MS = 1000;

function Login() {
	const [error, setError] = useState<ApiError | null>(null);
	const submit = async (event: SubmitEvent) => {
		event.preventDefault();
		try {
			setError(null);
			await api.login(String(new FormData(event.currentTarget as HTMLFormElement).get("token")));
		} catch (caught) {
			setError(asError(caught));
		}
	};
	return (
		<form class="tools" onSubmit={(event) => void submit(event)}>
			<strong>The gateway has another token now.</strong>
			<label>Token <Field name="token" type="password" autocomplete="off" size={34} /></label>
			<button id="login">Go on</button>
			<span class="faint">It is in the address that 'probing serve' printed.</span>
			<Failure error={error} />
		</form>
	);
}

export function Reconnect() {
	const { state, turn } = useConnection();
	const version = useAsked("version", 0, api.server).value?.version;
	const [first, setFirst] = useState(version);
	useEffect(() => {
		if (!first)
			setFirst(version);
	}, [version]);
	useEffect(() => {
		if (state === "up")
			return;
		const timer = setInterval(() => {
			if (!document.hidden)
				api.server().catch(() => undefined);
		}, EVERY_MS);
		return () => clearInterval(timer);
	}, [state]);
	if (state === "locked")
		return <section id="locked" class="failure" aria-label="Token"><Login key={turn} /></section>;
	if (state === "gone")
		return <p id="gone" class="failure" role="status"><strong>the gateway does not answer</strong> This page goes on when it does again.</p>;
	return first && version && version !== first
		? <p class="failure" role="status">The gateway is another version now: <a href="/">load this page anew</a>.</p> : null;
}
