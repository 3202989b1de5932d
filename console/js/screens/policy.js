/* One policy: an editor that shows faults at their lines while one writes. */
import {html, call, go, useState, useEffect, useRef, useLoad, Page, Card, Form, Field, Input, Fault, Button, Select, say, words,
	atField, useMay} from './parts/kit.js';

const w = words('policy');
const EXAMPLES = {
	regions: 'forbid (principal, action == ResourcePolicy::Action::"cluster.modify", resource)\nunless {\n  [ResourcePolicy::Region::"aws:eu-central-1", ResourcePolicy::Region::"aws:eu-west-1"]\n    .containsAll(context.cluster.regions)\n};',
	world: 'forbid (principal, action == ResourcePolicy::Action::"project.ipAccessList.modify", resource)\nwhen { context.project.ipAccessList.contains(ip("0.0.0.0/0")) };',
	size: 'forbid (principal, action == ResourcePolicy::Action::"cluster.modify", resource)\nwhen { context.cluster has maxGeneralClusterSize && context.cluster.maxGeneralClusterSize > 40 };',
	backups: 'forbid (principal, action == ResourcePolicy::Action::"cluster.modify", resource)\nwhen { context.cluster.backupEnabled == false };'
};

/* "line 3, column 27: …" of the policy with that number */
function faultsOf(error, index) {
	const list = [];
	for (let i = 0; i + 1 < (error?.parameters?.length ?? 0); i += 2) {
		const found = error.parameters[i] === `policies[${index}].body` && /^line (\d+), column (\d+): ([^]*)$/.exec(error.parameters[i + 1]);
		if (found)
			list.push({line: Number(found[1]), column: Number(found[2]), text: found[3]});
	}
	return list;
}

function Editor({value, index, faults, onInput, onRemove}) {
	const area = useRef(), marks = useRef(), lines = value.split('\n'), id = `policy${index}`;
	const go2 = f => {
		const at = lines.slice(0, f.line - 1).reduce((n, l) => n + l.length + 1, 0) + f.column - 1;
		area.current.focus();
		area.current.setSelectionRange(at, at + 1);
	};
	const follow = () => { marks.current.scrollTop = area.current.scrollTop; };
	return html`<div class="editor"><label class="hidden" for=${id}>${w('rule', {n: index + 1})}</label>
		<div class="editor-in"><div class="gutter mono" ref=${marks}
			aria-hidden="true">${lines.map((_, i) => html`<div key=${i} class=${faults.some(f => f.line === i + 1) ? 'bad' :
			undefined}>${i + 1}</div>`)}</div>
			<textarea id=${id} class="mono" ref=${area} rows=${Math.max(6, Math.min(24, lines.length + 1))} wrap="off" spellcheck=${false}
				autocomplete="off" aria-invalid=${faults.length ? 'true' : undefined} aria-describedby=${`${id}f`} value=${value} onScroll=${follow}
				onInput=${e => onInput(e.target.value)}></textarea></div>
		<ul id=${`${id}f`} class="faults" aria-live="polite">${faults.map(f =>
			html`<li key=${`${f.line}:${f.column}`}><button type="button" class="fault"
			onClick=${() => go2(f)}><b>${w('at', {line: f.line, column: f.column})}</b> ${f.text}</button></li>`)}</ul>
		${onRemove && html`<${Button} small kind="danger" onClick=${onRemove}>${w('removeRule', {n: index + 1})}<//>`}</div>`;
}

/* Asks the service what a save would say, once one pauses. */
function useCheck(orgId, name, bodies) {
	const [error, setError] = useState(null), [checked, setChecked] = useState(false);
	useEffect(() => {
		const aborter = new AbortController();
		setChecked(false);
		const timer = setTimeout(async () => {
			if (bodies.every(b => !b.trim()))
				return;
			try {
				await call('validateResourcePolicies', {orgId}, {body: {name: name.trim() || 'draft', policies: bodies.map(body => ({body}))},
					signal: aborter.signal});
				setError(null);
				setChecked(true);
			} catch (e) {
				if (!aborter.signal.aborted)
					setError(e);
			}
		}, 400);
		return () => {
			clearTimeout(timer);
			aborter.abort();
		};
	}, [orgId, name, bodies.join('\0')]);
	return {error, checked};
}

function Edit({orgId, policy}) {
	const [name, setName] = useState(policy?.name ?? ''), [description, setDescription] = useState(policy?.description ?? ''),
		[bodies, setBodies] = useState(policy?.policies?.map(p => p.body) ?? [EXAMPLES.regions]);
	const may = useMay(), {error, checked} = useCheck(may('validateResourcePolicies') && orgId, policy ? name : '', bodies), wrong = error?.code === 'INVALID_RESOURCE_POLICY';
	const store = async () => {
		const body = {name: name.trim(), description, policies: bodies.map(b => ({body: b}))};
		const byCode = {DUPLICATE_RESOURCE_POLICY_NAME: 'name', RESOURCE_POLICY_NAME_EXISTS: 'name', RESOURCE_POLICY_ALREADY_EXISTS: 'name',
			DUPLICATE_RESOURCE_POLICY: 'name'};
		const saved = await atField(policy ? call('updateOrgResourcePolicy', {orgId, resourcePolicyId: policy.id}, {body}) :
			call('createOrgResourcePolicy', {orgId}, {body}), byCode);
		say(w('saved', {name: saved.name}));
		go(`/orgs/${orgId}/policies`);
	};
	return html`<${Card}><${Form} op=${policy ? 'updateOrgResourcePolicy' : 'createOrgResourcePolicy'} onSubmit=${store} submit=${w('save')} label=${w('title')} onCancel=${() => go(`/orgs/${orgId}/policies`)}
		disabled=${wrong}>
		<${Field} label=${w('name')} name="name" required><${Input} value=${name} onInput=${setName} maxlength="50" /><//>
		<${Field} label=${w('description')} name="description" hint=${w('optional')}><${Input} value=${description} onInput=${setDescription}
			maxlength="250" /><//>
		<p class="dim">${w('text')}</p>
		${bodies.map((b, i) => html`<${Editor} key=${i} index=${i} value=${b} faults=${faultsOf(error, i)}
			onInput=${v => setBodies(bodies.map((x, k) => k === i ? v : x))}
			onRemove=${bodies.length > 1 ? () => setBodies(bodies.filter((_, k) => k !== i)) : undefined} />`)}
		<p role="status" class=${wrong ? 'bad' : checked ? 'ok' : 'dim'}>${wrong ? w('faulty') : checked ? w('fine') : error?.detail ?? ''}</p>
		<div class="row"><${Field} label=${w('example')}><${Select} value=""
			onInput=${k => k && setBodies([...bodies.filter(b => b.trim()), EXAMPLES[k]])} empty=${w('choose')}
			options=${Object.keys(EXAMPLES).map(k => ({value: k, label: w(`example.${k}`)}))} /><//></div><//><//>`;
}

export default function Screen({params: {orgId, policyId}}) {
	const fresh = policyId === 'new', {data, error, reload} = useLoad(async () => fresh ? {} :
		{policy: await call('getOrgResourcePolicy', {orgId, resourcePolicyId: policyId})}, [orgId, policyId]);
	return html`<${Page} title=${fresh ? w('new') : data?.policy?.name ?? w('title')}><${Fault} error=${error} retry=${reload}
		/>${data && html`<${Edit} key=${policyId} orgId=${orgId} policy=${data.policy} />`}<//>`;
}
