"""Key services for tests, beside the providers of clouds.py and on the same address: AWS KMS, which verifies the signature of each
request (by botocore, where it is installed, and by our own code), Azure Key Vault and Google Cloud KMS, which know whom they gave
tokens to. What they wrap is really encrypted. Keys can be disabled; the services can lie, hang, throttle and repeat what they were
sent (`faults`, `lies`)."""
import base64, hashlib, hmac, json, os, re, urllib.parse, uuid

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import clouds

REGION, ACCESS_KEY, ACCESS_SECRET = 'eu-central-1', 'AKIDOFATENANT0001', 'a/tenants+secret=of AWS'
CLIENT, CLIENT_SECRET = '12121212-3434-4565-8787-909090909090', 'a~tenants&secret=of Azure'
TENANT = 'abababab-cdcd-4efe-8a8a-bcbcbcbcbcbc'
ACCOUNT = 'tenant@their-project.iam.gserviceaccount.com'
RING = 'projects/their-project/locations/europe-west1/keyRings/ring/cryptoKeys/key/cryptoKeyVersions/'
JSON = 'application/json'


def arn(name):
	return 'arn:aws:kms:%s:123456789012:key/%s' % (REGION, name)


def vault(version, name='rest'):
	return 'https://their-vault.vault.azure.net/keys/%s/%s' % (name, version)


class KeyServices(clouds.Clouds):
	"""`keys`: name -> the service's own key, or None while it is disabled. `plain`: every data key that was seen. `away`: projects
	for which KMS is away."""

	def __init__(self):
		self.keys, self.plain, self.lies, self.tokens, self.account_key = {}, [], False, {}, None
		self.access = {ACCESS_KEY: ACCESS_SECRET}
		self.targets, self.away, self.turned_away = [], set(), 0
		super().__init__()

	def enable(self, *names):
		for name in names:
			self.keys[name] = hashlib.sha256(name.encode()).digest()

	def disable(self, *names):
		for name in names:
			self.keys[name] = None

	def options(self, folder, **more):
		return [*super().options(folder, **more), '--keys-aws-endpoint', self.url, '--keys-azure-endpoint', self.url, '--keys-google-endpoint', self.url]

	def account(self, **more):
		"""The key of a tenant's own account at Google; where its tokens come from is a lie."""
		self.account_key = self.account_key or rsa.generate_private_key(public_exponent=65537, key_size=2048)
		pem = self.account_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
		return json.dumps({'type': 'service_account', 'private_key': pem.decode(), 'private_key_id': 'k1', 'client_email': ACCOUNT,
			'token_uri': self.url + '/elsewhere', **more})

	def secrets(self):
		pem = [json.loads(self.account())['private_key'].split('\n')[3]]
		return [*super().secrets(), ACCESS_SECRET, CLIENT_SECRET, *pem, *self.plain]

	# Wrapping.
	def wrap(self, name, plain, context):
		nonce = os.urandom(12)
		return nonce + AESGCM(self.keys[name]).encrypt(nonce, plain, context)

	def unwrap(self, name, wrapped, context):
		"""None: it was not wrapped so."""
		try:
			plain = AESGCM(self.keys[name]).decrypt(wrapped[:12], wrapped[12:], context)
		except (InvalidTag, ValueError):
			return None
		return os.urandom(len(plain)) if self.lies else plain

	def see(self, plain):
		assert len(plain) == 32, 'a data key has 256 bits'
		self.plain += [t for t in (base64.b64encode(plain).decode(), plain.hex(), base64.urlsafe_b64encode(plain).rstrip(b'=').decode())
			       if t not in self.plain]

	def answer(self, method, path, headers, body):
		if path == '/' and 'x-amz-target' in headers:
			return self.kms(headers, body)
		if path.startswith('/keys/'):
			return self.key_vault(path, headers, body)
		if path.startswith('/v1/projects/') and '/cryptoKeys/' in path:
			return self.google_kms(path, headers, body)
		return super().answer(method, path, headers, body)

	def spoil(self, handler, fault, body):
		if fault == 'kms throttle':
			handler.reply(400, JSON, '{"__type":"ThrottlingException","message":"Rate exceeded"}')
		elif fault == 'kms late':
			handler.reply(400, JSON, '{"__type":"InvalidSignatureException","message":"Signature expired: 20260101T000000Z is now earlier than 20260101T001000Z"}')
		elif fault == 'kms echo':
			sent = json.loads(body).get('Plaintext', '')
			handler.reply(400, JSON, json.dumps({'__type': 'AccessDeniedException', 'message': 'you sent %s with %s' % (sent, ACCESS_SECRET)}))
		elif fault == 'short':
			handler.reply(200, JSON, json.dumps({'CiphertextBlob': 'AAAA', 'KeyId': 'x', 'Plaintext': 'c2hvcnQ='}))
		else:
			return super().spoil(handler, fault, body)
		return True

	# AWS.
	def kms_fault(self, headers, body):
		found = clouds.SIGNED.match(headers.get('authorization', ''))
		if not found:
			return 'IncompleteSignatureException'
		key_id, day, region, service, names, given = found.groups()
		names, date = names.split(';'), headers.get('x-amz-date', '')
		secret = self.access.get(key_id)
		if key_id == self.session['AccessKeyId'] and headers.get('x-amz-security-token') == self.session['SessionToken'] and \
				'x-amz-security-token' in names:
			secret = self.session['SecretAccessKey']
		if not secret:
			return 'UnrecognizedClientException'
		if (region, service, date[:8]) != (REGION, 'kms', day) or not {'host', 'x-amz-date', 'x-amz-target'} <= set(names):
			return 'IncompleteSignatureException'
		wanted = clouds.own_signature(secret, '/', headers, names, body, date, region, 'kms')
		if clouds.SigV4Auth:
			assert wanted == clouds.botocore_signature(secret, self.url + '/', headers, names, body, date, region, 'kms'), 'botocore signs otherwise'
		return None if hmac.compare_digest(wanted, given) else 'InvalidSignatureException'

	def kms(self, headers, body):
		def no(kind, message='no'):
			return 400, JSON, json.dumps({'__type': kind, 'message': message})
		fault, wish = self.kms_fault(headers, body), json.loads(body)
		if headers.get('content-type') != 'application/x-amz-json-1.1':
			return no('SerializationException')
		if fault:
			return no(fault, 'The request signature we calculated does not match.')
		what, name = headers['x-amz-target'], wish['KeyId']
		context = json.dumps(wish['EncryptionContext'], sort_keys=True).encode()
		if wish['EncryptionContext'].get('steward:project') in self.away:
			self.turned_away += 1
			return 503, JSON, '{"__type":"DependencyTimeoutException"}'
		self.targets.append((what, name, wish['EncryptionContext']))
		if name not in self.keys:
			return no('NotFoundException', 'Key %s does not exist' % name)
		if self.keys[name] is None:
			return no('DisabledException', '%s is disabled.' % name)
		if what == 'TrentService.Encrypt':
			plain = base64.b64decode(wish['Plaintext'], validate=True)
			self.see(plain)
			return 200, JSON, json.dumps({'CiphertextBlob': base64.b64encode(self.wrap(name, plain, context)).decode(), 'KeyId': name})
		assert what == 'TrentService.Decrypt', what
		plain = self.unwrap(name, base64.b64decode(wish['CiphertextBlob'], validate=True), context)
		if plain is None:
			return no('InvalidCiphertextException')
		return 200, JSON, json.dumps({'Plaintext': base64.b64encode(plain).decode(), 'KeyId': name})

	# Azure.
	def azure_token(self, tenant, body):
		form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
		own = form['client_id'] == CLIENT
		if own and (tenant, form['client_secret']) != (TENANT, CLIENT_SECRET):
			return 401, JSON, json.dumps({'error': 'invalid_client', 'error_description': 'AADSTS7000215: Invalid client secret provided.'})
		if not own:
			status, kind, text = super().azure_token(tenant, body)
		else:
			status, kind, text = 200, JSON, json.dumps({'token_type': 'Bearer', 'expires_in': 3600, 'access_token': 'azure-' + uuid.uuid4().hex})
		if status == 200:
			token = json.loads(text)['access_token']
			self.given.append(token)
			self.tokens[token] = form['scope']
		return status, kind, text

	def key_vault(self, path, headers, body):
		def no(status, code, message='no'):
			return status, JSON, json.dumps({'error': {'code': code, 'message': message}})
		found = re.fullmatch(r'/keys/([\w-]+)/(\w+)/(wrapkey|unwrapkey)\?api-version=7\.4', path)
		wish = json.loads(body)
		if self.tokens.get(headers.get('authorization', '')[7:]) != 'https://vault.azure.net/.default':
			return no(401, 'Unauthorized')
		name = found and vault(found.group(2), found.group(1))
		if name not in self.keys:
			return no(404, 'KeyNotFound')
		if self.keys[name] is None:
			return no(403, 'Forbidden', 'Operation is not allowed on a disabled key.')
		assert wish['alg'] == 'RSA-OAEP-256'
		value = clouds.unsegment(wish['value'])
		if found.group(3) == 'wrapkey':
			self.see(value)
			value = self.wrap(name, value, b'')
		else:
			value = self.unwrap(name, value, b'')
			if value is None:
				return no(400, 'BadParameter')
		return 200, JSON, json.dumps({'kid': name, 'value': base64.urlsafe_b64encode(value).rstrip(b'=').decode()})

	# Google.
	def google_token(self, body):
		form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
		claims = json.loads(clouds.unsegment(form['assertion'].split('.')[1]))
		if claims['iss'] != ACCOUNT:
			return super().google_token(body)
		own, clouds_own, self.key = self.key, clouds.OWN, self.account_key
		clouds.OWN = ACCOUNT
		try:
			fault = self.assertion_fault(form)
		finally:
			self.key, clouds.OWN = own, clouds_own
		if fault:
			return 400, JSON, json.dumps({'error': 'invalid_grant', 'error_description': fault})
		token = 'ya29.tenant-' + uuid.uuid4().hex
		self.given.append(token)
		return 200, JSON, json.dumps({'access_token': token, 'expires_in': 3600, 'token_type': 'Bearer'})

	def google_kms(self, path, headers, body):
		def no(status, word, message='no'):
			return status, JSON, json.dumps({'error': {'code': status, 'message': message, 'status': word}})
		found, wish = re.fullmatch(r'/v1/([^:]+):(encrypt|decrypt)', path), json.loads(body)
		token = headers.get('authorization', '')[7:]
		if token not in self.given or token == self.token:
			return no(401, 'UNAUTHENTICATED')
		name, what = found.groups()
		context = base64.b64decode(wish['additionalAuthenticatedData'], validate=True)
		if what == 'encrypt':
			if name not in self.keys:
				return no(404, 'NOT_FOUND')
			if self.keys[name] is None:
				return no(400, 'FAILED_PRECONDITION', '%s is not enabled, current state is: DISABLED.' % name)
			plain = base64.b64decode(wish['plaintext'], validate=True)
			self.see(plain)
			return 200, JSON, json.dumps({'name': name, 'ciphertext': base64.b64encode(self.wrap(name, plain, context)).decode()})
		for version, key in self.keys.items():
			plain = version.startswith(name + '/') and key and self.unwrap(version, base64.b64decode(wish['ciphertext']), context)
			if plain:
				return 200, JSON, json.dumps({'plaintext': base64.b64encode(plain).decode()})
		return no(400, 'FAILED_PRECONDITION', 'no version that is enabled')
