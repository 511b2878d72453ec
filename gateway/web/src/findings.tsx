// SPDX-License-Identifier: GPL-3.0-or-later
// What is wrong, in sentences of the judge: the page has no rules of its own.
import type * as api from "./api";
import { link } from "./route";
import { nameOf } from "./target";

const MOST = 5;

/** Of what a verdict is best seen in. */
const PANEL_OF: Record<string, string> = { memory_limit: "memory", swapped: "memory", oom_killed: "memory", grows: "memory", hung_job: "job", server: "server" };

function place(finding: api.Finding, targets: api.Target[]): string {
	const { id } = finding;
	return targets.some((one) => one.id === id) ? link(PANEL_OF[finding.rule] ?? "activity", { target: id }) : link("overview");
}

/** At most five sentences, the worst first; or that there are none. */
export function Findings({ findings, judged, targets }: { findings: api.Finding[]; judged: number; targets: api.Target[] }) {
	if (!findings.length)
		return <p class="well" role="status" id="findings">nothing is wrong with {judged} {judged === 1 ? "process" : "processes"}</p>;
	return (
		<>
			<ol class="findings" id="findings" aria-label="What is wrong">
				{findings.slice(0, MOST).map((one, index) => {
					const target = targets.find(({ id }) => id === one.id);
					return (
						<li key={`${one.id} ${one.rule} ${index}`} class={one.confidence}>
							<a href={place(one, targets)}>
								<strong>{one.kind}</strong> {one.rule === "hung_job" ? "" : target ? `${nameOf(target)} (${one.id}): ` : `${one.id}: `}<Sentence text={one.sentence.replace(`${one.kind} `, "")} />{" "}
								<span class="faint">{one.confidence === "high" ? "" : `${one.confidence} confidence`}</span>
							</a>
						</li>
					);
				})}
			</ol>
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
	return <>{text.split(/(`[^`]*`|\b\d{2,}\b)/).map((part) => tids.has(part) ? <a href={link("activity", { target: id, tid: part })}>{part}</a> : <Sentence text={part} />)}</>;
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
