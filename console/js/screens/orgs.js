/* The organizations that one belongs to. */
import {html, call, callAll, go, useState, useLoad, useQuery, setQuery, Page, Table, Empty, Fault, Button, DialogForm, Field, Input, words, once,
	loadSession} from './parts/kit.js';

const w = words('orgs');

function CreateDialog({onClose}) {
	const [name, setName] = useState('');
	const make = async () => {
		const made = await call('createOrg', {}, {body: {name: name.trim()}});
		await loadSession().catch(() => null);
		go(`/orgs/${(made.organization ?? made).id}`);
	};
	return html`<${DialogForm} title=${w('newTitle')} submit=${w('make')} onSubmit=${make} onClose=${onClose}><${Field} label=${w('name')} name="name"
		help=${w('nameHelp')} required><${Input} value=${name} onInput=${setName} maxlength="64" autofocus /><//><//>`;
}

const COLUMNS = once(() => [{key: 'name', label: w('name'), main: true, value: o => o.name},
	{key: 'id', label: w('id'), width: '40%', value: o => o.id, cell: o => html`<span class="mono">${o.id}</span>`}]);

export default function Screen() {
	const [asked] = useQuery('do'), {data, error, reload} = useLoad(() => callAll('listOrgs', {}), [], {key: 'orgs'});
	const make = html`<${Button} kind="go" icon="plus" onClick=${() => setQuery({do: 'new'})}>${w('newTitle')}<//>`;
	return html`<${Page} title=${w('title')} actions=${make}><${Fault} error=${error} retry=${reload} />
		<section class="card" aria-label=${w('title')}><${Table} label=${w('title')} columns=${COLUMNS()} rows=${data} failed=${error} to=${o => `/orgs/${o.id}`}
			empty=${html`<${Empty} title=${w('none')} text=${w('noneText')} action=${make} />`} /></section>
		${asked === 'new' && html`<${CreateDialog} onClose=${() => setQuery({do: ''})} />`}<//>`;
}
