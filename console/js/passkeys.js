/* Passkeys: what the browser's authenticator takes and gives as buffers goes over the wire in base64url. */
import {send} from './api.js';

const toBuffer = text => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), c => c.charCodeAt(0));
const toText = buffer => buffer ? btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '') : undefined;
const listed = list => list?.map(c => ({...c, id: toBuffer(c.id)}));

export const canUse = () => Boolean(globalThis.PublicKeyCredential && navigator.credentials);

/* undefined when the person has closed the browser's window. */
async function asked(promise) {
	try {
		return await promise;
	} catch (e) {
		if (e.name === 'NotAllowedError' || e.name === 'AbortError')
			return undefined;
		throw e;
	}
}

async function answer(path) {
	const {ticket, publicKey} = await send('POST', '/api/session/passkey/options', {});
	const got = await asked(navigator.credentials.get({publicKey: {...publicKey, challenge: toBuffer(publicKey.challenge), allowCredentials: listed(publicKey.allowCredentials)}}));
	if (!got)
		return false;
	const r = got.response;
	await send('POST', path, {ticket, credential: {id: got.id, type: got.type, response: {clientDataJSON: toText(r.clientDataJSON),
		authenticatorData: toText(r.authenticatorData), signature: toText(r.signature), userHandle: toText(r.userHandle)}}});
	return true;
}

export const signInByPasskey = () => answer('/api/session/passkey');
export const proveByPasskey = () => answer('/api/session/passkey/proof');

export async function addPasskey(name) {
	const {ticket, publicKey} = await send('POST', '/api/session/passkeys/options', {});
	const made = await asked(navigator.credentials.create({publicKey: {...publicKey, challenge: toBuffer(publicKey.challenge),
		user: {...publicKey.user, id: toBuffer(publicKey.user.id)}, excludeCredentials: listed(publicKey.excludeCredentials)}}));
	if (!made)
		return false;
	const r = made.response;
	await send('POST', '/api/session/passkeys', {ticket, name, credential: {id: made.id, type: made.type, response: {clientDataJSON: toText(r.clientDataJSON),
		authenticatorData: toText(r.getAuthenticatorData()), publicKey: toText(r.getPublicKey())}}});
	return true;
}
