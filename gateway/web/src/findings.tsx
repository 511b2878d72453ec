// SPDX-License-Identifier: GPL-3.0-or-later
// What is wrong, in sentences of the judge: the page has no rules of its own.
import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import { byNumbers, useAsked } from "./parts";
import { link } from "./route";
import { nameOf, pidOf } from "./target";

const MOST = 5;

/** Of what a verdict is best seen in. */
const PANEL_OF: Record<string, string> = { memory_limit: "memory", swapped: "memory", oom_killed: "memory", leak: "memory", hung_job: "job", ended_rank: "job", server: "server" };

function place(finding: api.Finding, targets: api.Target[]): string {
	const { id } = finding;
	return targets.some((one) => one.id === id) ? link(PANEL_OF[finding.rule] ?? "activity", { target: id }) : link("overview");
}

/** At most five sentences, the worst first; or that there are none. */
export function Findings({ look, targets }: { look: Awaited<ReturnType<typeof api.overview>>; targets: api.Target[] }) {
	const { findings, judged, pending } = look;
	const processes = (count: number) => `${count} ${count === 1 ? "process" : "processes"}`;
	if (!findings.length)
		return pending ? <p class="fresh" role="status" id="findings">judging {processes(look.targets.length)}…</p>
			: <p class="well" role="status" id="findings">nothing is wrong with {processes(judged)}</p>;
	return (
		<>
			<ol class="findings" id="findings" aria-label="What is wrong">
				{findings.slice(0, MOST).map((one, index) => {
					const target = targets.find(({ id }) => id === one.id);
					return (
						<li key={`${one.id} ${one.rule} ${index}`} class={one.confidence}>
							<a href={place(one, targets)}>
								<strong>{one.kind}</strong> {one.kind === "job" ? "" : target ? `${nameOf(target)} (${pidOf(one.id)}): ` : `${pidOf(one.id)}: `}<Sentence text={one.sentence.replace(`${one.kind} `, "")} />{" "}
								<span class="faint">{one.confidence === "high" ? "" : `${one.confidence} confidence`}</span>
							</a>
						</li>
					);
				})}
			</ol>
			{pending && <p class="fresh" role="status">still judging…</p>}
			{findings.length > MOST && <p class="faint">and {findings.length - MOST} more, marked in the table</p>}
		</>
	);
}

/** A sentence: names of the program's own are between backticks. */
export function Sentence({ text }: { text: string }) {
	return <>{text.split("`").map((part, place) => place % 2 ? <code>{part}</code> : part)}</>;
}

/** A text that names threads by their numbers: those of the process lead to their stacks. */
function Linked({ text, id, tids }: { text: string; id: string; tids: Set<string> }) {
	return (
		<>
			{text.split(/(`[^`]*`)/).map((part) => part.startsWith("`") ? <Sentence text={part} />
				: byNumbers(part).map((one) => tids.has(one) ? <a href={link("activity", { target: id, tid: one })}>{one}</a> : one))}
		</>
	);
}

/** A finding with all that it rests on. */
export function Verdict({ finding, id }: { finding: api.Finding; id: string }) {
	const tids = new Set(finding.tids.map(String));
	const parts: [string, string | null][] = [
		["rests on", finding.rests_on], ["confidence", finding.confidence + (finding.proof ? ", proven" : "")], ["wrong if", finding.wrong_if],
		["next", finding.next]];
	return (
		<section class={`verdict ${finding.confidence}`} aria-label={`Verdict: ${finding.kind}`}>
			<p><strong>{finding.kind}</strong>: <Linked text={finding.sentence.replace(`${finding.kind} `, "")} id={id} tids={tids} /></p>
			<dl>
				{finding.evidence.length > 0 && (
					<div><dt>evidence</dt><dd>{finding.evidence.map(({ text }) => <div key={text}><Linked text={text} id={id} tids={tids} /></div>)}</dd></div>
				)}
				{parts.map(([name, text]) => text && <div key={name}><dt>{name}</dt><dd>{name === "next" ? <code>{text}</code> : text}</dd></div>)}
			</dl>
		</section>
	);
}

/** Asked for again after so long: the overview is read anew every few seconds. Sooner while some are still to be judged. */
const AGAIN_MS = 10000;
const SOON_MS = 1000;

/** What the judge says of all targets, as far as it is known. */
export function useLook(paused = false): Awaited<ReturnType<typeof api.overview>> | null {
	const [every, setEvery] = useState(SOON_MS);
	const asked = useAsked("findings", paused ? 0 : every, () => api.overview(true));
	const pending = asked.value?.pending ?? true;
	useEffect(() => setEvery(pending ? SOON_MS : AGAIN_MS), [pending]);
	return asked.value ?? null;
}

const useFindings = (paused: boolean) => useLook(paused)?.findings ?? [];

/** What the judge says of one target, or only the findings of some kinds. */
export function Verdicts({ id, kinds, paused = false }: { id: string; kinds?: string[]; paused?: boolean }) {
	return (
		<>
			{useFindings(paused).filter((one) => one.id === id && (!kinds || kinds.includes(one.kind)))
				.map((one) => <Verdict key={`${one.rule} ${one.tids}`} finding={one} id={id} />)}
		</>
	);
}
