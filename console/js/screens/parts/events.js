/* Events in words. Their types say what happened; who and where stand in the event. */
import {html, Link, Time, words, hasText, t} from './kit.js';

const w = words('events');
const SHORT = {DB: 'database', CPS: 'backup:', X509: 'X.509', GROUP: 'project', ORG: 'organization', FTS: 'search', SVC: '', NDS: ''};
const KEPT = /^(API|AWS|CA|GCP|IP|LDAP|MFA|OIDC|S3|SAML|TLS|URL)$/;

/* CLUSTER_UPDATE_COMPLETED -> "Cluster update completed" */
export function eventWords(type = '') {
	const key = `screens.event.${type}`;
	if (hasText(key))
		return t(key);
	const text = type.replace(/_AUDIT$/, '').split('_').map(x => KEPT.test(x) ? x : SHORT[x] ?? x.toLowerCase()).filter(Boolean).join(' ');
	return text.charAt(0).toUpperCase() + text.slice(1);
}

export const eventWho = e => e.username ?? e.publicKey ?? e.clientId ?? e.apiKeyName ?? '';
/* A service account has a long id and, in its events, no name. */
export const whoText = e => {
	const who = eventWho(e);
	return /^mdb_sa_id_/.test(who) ? w('account', {end: who.slice(-6)}) : who;
};
/* Most types have no field for the cluster; the raw form says it in words. */
export const eventCluster = e => e.clusterName ?? /; clusterName: ([^;]+)/.exec(e.raw?.description ?? '')?.[1]?.trim();
export const eventAbout = e => eventCluster(e) ?? e.targetUsername ?? e.dbUserUsername ?? e.whitelistEntry ?? e.teamName ?? e.hostname ??
	e.resourcePolicyName ?? e.groupName ?? '';

/* plain: without links of its own, for a cell that opens something. */
export function EventLine({e, plain}) {
	const about = eventAbout(e), who = whoText(e), cluster = eventCluster(e);
	return html`${about && html`<b>${!plain && cluster && e.groupId ?
		html`<${Link} to=${`/projects/${e.groupId}/clusters/${encodeURIComponent(cluster)}`}>${about}<//>` :
		about}</b>`} ${eventWords(e.eventTypeName)}${!plain && who && html`<span class="dim"> ${w('by', {who})}</span>`}`;
}

export function Activity({items}) {
	if (!items.length)
		return html`<p class="calm">${w('none')}</p>`;
	return html`<ul class="feed" tabindex="0" aria-label=${w('title')}>${items.map(e =>
		html`<li key=${e.id}><${Time} at=${e.created} kind="short" /><div><${EventLine} e=${e} /></div></li>`)}</ul>`;
}
