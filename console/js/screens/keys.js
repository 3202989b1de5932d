/* What programs sign in with, in an organization. */
import {html, Page, words} from './parts/kit.js';
import {Keys, NewKeyButton} from './parts/keys.js';
import {ORG_ROLES} from './parts/roles.js';

const w = words('keys');
export default function Screen({params: {orgId}}) {
	return html`<${Page} title=${w('title')} needs="createOrgServiceAccount" actions=${html`<${NewKeyButton} kind="org" />`}><${Keys} kind="org" scope=${{orgId}} roles=${ORG_ROLES} /><//>`;
}
