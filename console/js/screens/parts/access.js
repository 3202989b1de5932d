/* Who is asking, as the service sees them, and whether their address is let in. */
import {call, callAll} from './kit.js';

/* {address, roles}: where the service sees the caller come from, and all roles that they hold in the project. */
export async function whoAmI(groupId) {
	const answer = await call('getGroup', {groupId}, {raw: true, headers: {'X-Steward-Describe-Caller': 'true'}});
	const roles = answer.headers.get('x-steward-caller-roles') ?? '';
	return {address: answer.headers.get('x-steward-caller-address') ?? '', roles: new Set(roles.split(/[,\s]+/).filter(Boolean))};
}

const bits = text => text.split('.').reduce((n, part) => n * 256 + Number(part), 0);
const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;

/* Whether an entry of the access list lets the address in. */
export function covers(entry, address) {
	const text = entry.cidrBlock || entry.ipAddress || '';
	const [net, length] = text.split('/');
	if (!IPV4.test(net) || !IPV4.test(address))
		return net === address;
	const size = 2 ** (32 - Number(length ?? 32));
	return Math.floor(bits(net) / size) === Math.floor(bits(address) / size);
}

export const isCovered = async (groupId, address) => (await callAll('listAccessListEntries', {groupId})).some(e => covers(e, address));

export const letIn = (groupId, address, {comment, deleteAfterDate} = {}) =>
	call('createAccessListEntry', {groupId}, {body: [{ipAddress: address, comment, ...(deleteAfterDate && {deleteAfterDate})}]});

/* Letters and digits alone: nothing in it means anything to a shell or in a URL. */
export function newPassword(length = 28) {
	const signs = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789';
	let text = '';
	while (text.length < length)
		for (const b of crypto.getRandomValues(new Uint8Array(length)))
			if (b < signs.length * 4 && text.length < length)
				text += signs[b % signs.length];
	return text;
}

/* Database roles that a person can give themselves, by their role in the project: as `steward connect` has it. */
const RIGHTS = [['GROUP_OWNER', ['svcAdmin', 'readWriteAnyDatabase', 'readAnyDatabase']],
	['GROUP_DATA_ACCESS_READ_WRITE', ['readWriteAnyDatabase', 'readAnyDatabase']], ['GROUP_DATA_ACCESS_READ_ONLY', ['readAnyDatabase']]];
export const rightsOf = roles => RIGHTS.find(([r]) => roles.has(r))?.[1] ?? [];
