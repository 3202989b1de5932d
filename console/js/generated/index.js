/* All operations: by words, by family, and what the session may call. */
import {html, useMemo} from '../lib.js';
import {t} from '../texts.js';
import {Card, Empty, Link, Notice, Page, Search, Segments, Select, errorText, useLoad, useQuery} from '../ui/index.js';
import {heldIn, session} from '../session.js';
import {rolesText} from '../may.js';
import {everyOperation, families, loadIndex} from './data.js';

/* All roles that the session holds somewhere, with those that they include. */
function heldAnywhere() {
	const held = new Set();
	for (const {orgId, groupId} of session.get()?.roles ?? []) {
		const scopes = groupId ? [{groupId}] : [{orgId}, {orgId, groupId: '-'}];
		for (const scope of scopes)
			heldIn(scope).forEach(role => held.add(role));
	}
	return held;
}

export const mayCall = (op, held) => !op.roles.length || op.roles.some(role => held.has(role));

export default function Operations() {
	const [q, setQ] = useQuery('q'), [family, setFamily] = useQuery('family'), [which, setWhich] = useQuery('show', 'all');
	const {data: held, error} = useLoad(async () => {
		await loadIndex();
		return heldAnywhere();
	}, []);
	const words = q.toLowerCase().split(/\s+/).filter(Boolean);
	const found = useMemo(() => held ? everyOperation().filter(op => {
		const text = `${op.id} ${op.summary} ${op.command} ${op.method} ${op.path} ${op.family}`.toLowerCase();
		return words.every(word => text.includes(word)) && (!family || op.family === family) && (which === 'all' || mayCall(op, held) === (which === 'mine'));
	}) : [], [held, q, family, which]);
	if (error)
		return html`<${Page} title=${t('generated.title')}><${Notice} kind="bad">${errorText(error)}<//><//>`;
	if (!held)
		return html`<${Page} title=${t('generated.title')}><p class="dim" role="status">${t('loading')}</p><//>`;
	const shown = families().map(f => ({...f, found: found.filter(op => op.family === f.id)})).filter(f => f.found.length);
	return html`<${Page} title=${t('generated.title')} facts=${html`<span role="status">${t('generated.count', {n: found.length})}</span>`}>
		<div class="bar"><${Search} value=${q} onInput=${setQ} label=${t('generated.search')} />
			<label class="gen-family"><span class="hidden">${t('generated.family')}</span><${Select} aria-label=${t('generated.family')} value=${family} empty=${t('generated.allFamilies')} onInput=${setFamily}
				options=${families().map(f => ({value: f.id, label: f.title}))} /></label>
			<${Segments} label=${t('generated.show')} current=${which} onPick=${setWhich} options=${[{id: 'all', label: t('generated.all')}, {id: 'mine', label: t('generated.mine')}, {id: 'others', label: t('generated.notMine')}]} /></div>
		${!shown.length && html`<${Empty} title=${t('generated.none')} text=${t('generated.noneText')} />`}
		${shown.map(f => html`<${Card} key=${f.id} title=${f.title} note=${f.about}><ul class="gen-index">${f.found.map(op => html`<li key=${op.id}><${Link} to=${`/operations/${op.id}`}>${op.summary}<//>
			<span class="gen-method mono">${op.method}</span>${op.unbuilt && html`<span class="gen-tag">${t('generated.unbuilt')}</span>`}${op.deprecated && html`<span class="gen-tag">${t('generated.deprecated')}</span>`}${
			!mayCall(op, held) && html`<span class="gen-tag">${t('generated.needs', {roles: rolesText(op.roles)})}</span>`}</li>`)}</ul><//>`)}<//>`;
}
