/* What programs sign in with, in a project. */
import {html, Page, words} from './parts/kit.js';
import {Keys, NewKeyButton} from './parts/keys.js';
import {PROJECT_ROLES} from './parts/roles.js';

const w = words('keys');
export default function Screen({params: {groupId}}) {
	return html`<${Page} title=${w('title')} needs="createGroupServiceAccount" actions=${html`<${NewKeyButton} kind="group" />`}><${Keys} kind="group" scope=${{groupId}} roles=${PROJECT_ROLES}
		/><//>`;
}
