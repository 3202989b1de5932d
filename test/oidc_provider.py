#!/usr/bin/python3
"""An OpenID provider for tests: a process of its own, with its own authority and keys. It verifies what a client sends (client,
redirect URI, PKCE, single use of codes, a client secret where one is set), and lies where it is told to.

  oidc_provider.py FOLDER     prints {"url", "ca"} on one line, serves until its standard input ends

POST /control {"claims", "mode", "redirects", "client", "secret", "release", "rotate"} changes it; GET /control tells what it saw. It
signs in whoever asks, as "claims" say, without a question."""
import base64, datetime, hashlib, hmac, http.server, ipaddress, json, os, pathlib, ssl, sys, threading, time
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

HASHES = {'256': hashes.SHA256, '384': hashes.SHA384, '512': hashes.SHA512}


def b64(data):
	return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def number(value, size=None):
	return b64(value.to_bytes(size or (value.bit_length() + 7) // 8, 'big'))


class Key:
	def __init__(self, alg, kid):
		self.alg, self.kid = alg, kid
		self.private = {'R': lambda: rsa.generate_private_key(65537, 2048), 'P': lambda: rsa.generate_private_key(65537, 2048),
			'E': lambda: ed25519.Ed25519PrivateKey.generate() if alg == 'EdDSA' else ec.generate_private_key(ec.SECP256R1())}[alg[0]]()

	def jwk(self):
		public = self.private.public_key()
		own = {'kid': self.kid, 'use': 'sig', 'alg': self.alg}
		if self.alg == 'EdDSA':
			raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
			return {**own, 'kty': 'OKP', 'crv': 'Ed25519', 'x': b64(raw)}
		n = public.public_numbers()
		if self.alg[0] == 'E':
			return {**own, 'kty': 'EC', 'crv': 'P-256', 'x': number(n.x, 32), 'y': number(n.y, 32)}
		return {**own, 'kty': 'RSA', 'n': number(n.n), 'e': number(n.e)}

	def sign(self, message):
		if self.alg == 'EdDSA':
			return self.private.sign(message)
		digest = HASHES[self.alg[2:]]()
		if self.alg[0] == 'E':
			r, s = utils.decode_dss_signature(self.private.sign(message, ec.ECDSA(digest)))
			return r.to_bytes(32, 'big') + s.to_bytes(32, 'big')
		pad = padding.PKCS1v15() if self.alg[0] == 'R' else padding.PSS(padding.MGF1(digest), digest.digest_size)
		return self.private.sign(message, pad, digest)


def token(header, claims, sign):
	message = '.'.join(b64(json.dumps(x).encode()) for x in (header, claims)).encode()
	return (message + b'.' + b64(sign(message)).encode()).decode()


def certificates(folder):
	"""An authority, and a certificate of it for this machine."""
	now = datetime.datetime.utcnow()

	def make(name, public, issuer, signer, *extensions):
		made = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(public).serial_number(
			x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
			now + datetime.timedelta(days=9))
		for e in extensions:
			made = made.add_extension(e, critical=isinstance(e, x509.BasicConstraints))
		return made.sign(signer, hashes.SHA256())

	def named(text):
		return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
	authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
	root = make(named('identity authority'), authority.public_key(), named('identity authority'), authority,
		x509.BasicConstraints(True, None))
	leaf = make(named('identity provider'), own.public_key(), named('identity authority'), authority,
		x509.SubjectAlternativeName([x509.DNSName('localhost'), x509.IPAddress(ipaddress.ip_address('127.0.0.1'))]))
	pem = serialization.Encoding.PEM
	(folder / 'identity-ca.pem').write_bytes(root.public_bytes(pem))
	(folder / 'identity.pem').write_bytes(leaf.public_bytes(pem) + own.private_bytes(pem, serialization.PrivateFormat.PKCS8,
		serialization.NoEncryption()))


class Provider:
	def __init__(self, folder):
		certificates(folder)
		self.keys = {alg: Key(alg, alg.lower()) for alg in ('RS256', 'ES256', 'PS256', 'EdDSA')}
		self.hidden = Key('RS256', 'hidden')
		self.set = {'claims': {}, 'mode': 'RS256', 'redirects': [], 'client': 'steward', 'secret': None, 'endpoint': None}
		self.codes, self.used, self.seen, self.lock = {}, set(), [], threading.Lock()
		self.released = threading.Event()

	def discovery(self):
		return {'issuer': self.url, 'jwks_uri': self.url + '/keys', 'authorization_endpoint': self.url + '/authorize',
			'token_endpoint': self.set['endpoint'] or self.url + '/token', 'response_types_supported': ['code'],
			'subject_types_supported': ['public'], 'id_token_signing_alg_values_supported': sorted(self.keys),
			'code_challenge_methods_supported': ['S256']}

	def authorize(self, q):
		"""Where the browser goes; None: the request is not one."""
		if q.get('client_id') != self.set['client'] or q.get('redirect_uri') not in self.set['redirects']:
			return None
		back = q['redirect_uri'] + '?'
		if q.get('response_type') != 'code' or 'openid' not in q.get('scope', '').split() or \
				q.get('code_challenge_method') != 'S256' or len(q.get('code_challenge', '')) != 43 or not q.get('state') or not q.get('nonce'):
			return back + urlencode({'error': 'invalid_request', 'state': q.get('state', '')})
		if self.set['mode'] == 'denied':
			return back + urlencode({'error': 'access_denied', 'state': q['state']})
		code = b64(os.urandom(24))
		with self.lock:
			self.codes[code] = q
		state = ('y' if q['state'][0] == 'x' else 'x') + q['state'][1:] if self.set['mode'] == 'state' else q['state']
		issuer = {'iss': 'https://other.example'} if self.set['mode'] == 'mix' else {'iss': self.url}
		return back + urlencode({'code': code, 'state': state, **issuer})

	def exchange(self, form, authorization):
		"""(status, answer)"""
		with self.lock:
			asked = self.codes.pop(form.get('code'), None)
		if self.set['secret'] and form.get('client_secret') != self.set['secret']:
			return 401, {'error': 'invalid_client'}
		challenge = b64(hashlib.sha256(form.get('code_verifier', '').encode()).digest())
		if form.get('grant_type') != 'authorization_code' or not asked or form.get('client_id') != asked['client_id'] or \
				form.get('redirect_uri') != asked['redirect_uri'] or challenge != asked['code_challenge']:
			return 400, {'error': 'invalid_grant'}
		return 200, {'access_token': b64(os.urandom(24)), 'token_type': 'Bearer', 'expires_in': 300, 'id_token': self.id_token(asked)}

	def id_token(self, asked):
		mode, now = self.set['mode'], int(time.time())
		claims = {'iss': self.url, 'aud': asked['client_id'], 'sub': 'subject', 'iat': now, 'exp': now + 300, 'nonce': asked['nonce']}
		claims.update(self.set['claims'])
		claims.update({'nonce': {'nonce': 'another'}, 'audience': {'aud': 'another'}, 'azp': {'aud': [asked['client_id'], 'another']},
			'issuer': {'iss': 'https://another.example'}, 'expired': {'iat': now - 900, 'exp': now - 600},
			'future': {'iat': now + 3600, 'exp': now + 7200}}.get(mode, {}))
		if mode == 'endless':
			del claims['exp']
		if mode == 'none':
			return token({'alg': 'none'}, claims, lambda m: b'')
		if mode == 'hs256':  # the public key as the secret
			pem = self.keys['RS256'].private.public_key().public_bytes(serialization.Encoding.PEM,
				serialization.PublicFormat.SubjectPublicKeyInfo)
			return token({'alg': 'HS256', 'kid': 'rs256'}, claims, lambda m: hmac.digest(pem, m, 'sha256'))
		key = self.hidden if mode == 'unknown' else self.keys.get(mode, self.keys['RS256'])
		kid = 'rs256' if mode == 'forged' else key.kid
		return token({'alg': key.alg, 'kid': kid}, claims, (self.hidden if mode == 'forged' else key).sign)

	def control(self, body):
		if body.pop('release', False):
			self.released.set()
		for alg in body.pop('rotate', []):
			self.keys[alg] = Key(alg, alg.lower() + '-new')
		if body.get('mode') == 'hang':
			self.released.clear()
		self.set.update(body)


def handler(provider):
	class Handler(http.server.BaseHTTPRequestHandler):
		protocol_version = 'HTTP/1.1'

		def say(self, status, body, **headers):
			data = body if isinstance(body, bytes) else json.dumps(body).encode()
			self.send_response(status)
			for name, value in {'Content-Type': 'application/json', 'Content-Length': str(len(data)), **headers}.items():
				self.send_header(name, value)
			self.end_headers()
			self.wfile.write(data)

		def do_GET(self):
			url = urlsplit(self.path)
			provider.seen.append(url.path)
			if url.path == '/.well-known/openid-configuration':
				self.say(200, provider.discovery())
			elif url.path == '/keys':
				self.say(200, {'keys': [k.jwk() for k in provider.keys.values()]})
			elif url.path == '/control':
				self.say(200, {'seen': provider.seen})
			elif url.path == '/authorize':
				to = provider.authorize({k: v[0] for k, v in parse_qs(url.query).items()})
				self.say(302 if to else 400, b'', **({'Location': to} if to else {}))
			else:
				self.say(404, {})

		def do_POST(self):
			text = self.rfile.read(int(self.headers.get('Content-Length', 0))).decode()
			if self.path == '/control':
				provider.control(json.loads(text))
				self.say(200, {})
				return
			provider.seen.append(self.path)
			mode = provider.set['mode']
			if mode == 'hang':
				provider.released.wait(60)
			answers = {'huge': (200, b'"' + b'x' * 400000 + b'"'), 'words': (200, b'<html>'), 'away': (302, b'')}
			status, body = answers.get(mode) or provider.exchange({k: v[0] for k, v in parse_qs(text).items()},
				self.headers.get('Authorization'))
			try:
				self.say(status, body, **({'Location': provider.url + '/elsewhere'} if status == 302 else {}))
			except OSError:
				pass

		def log_message(self, *args):
			pass
	return Handler


def serve(folder, handler):
	"""On a port of its own, with the certificate of the folder. The address."""
	server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
	server.daemon_threads = True
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(folder / 'identity.pem')
	# The handshake is each connection's own, so that one that never ends holds up nobody.
	server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
	threading.Thread(target=server.serve_forever, daemon=True).start()
	return 'https://localhost:%d' % server.server_port


def main():
	folder = pathlib.Path(sys.argv[1])
	folder.mkdir(parents=True, exist_ok=True)
	provider = Provider(folder)
	provider.url = serve(folder, handler(provider))
	print(json.dumps({'url': provider.url, 'ca': str(folder / 'identity-ca.pem')}), flush=True)
	sys.stdin.read()


if __name__ == '__main__':
	main()
