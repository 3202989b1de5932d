"""Cloud providers for tests: STS, a token endpoint like Azure's, and Google's token, IAM and IAM Credentials services, all on one
address. Each verifies what it is sent: STS the signature of each request (by botocore, where it is installed, and by our own
code), Google the assertion. Each can hang, throttle, lie and repeat secrets."""
import base64, datetime, hashlib, hmac, http.server, json, re, threading, urllib.parse, uuid

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

try:
	from botocore.auth import SigV4Auth
	from botocore.awsrequest import AWSRequest
	from botocore.credentials import Credentials
except ImportError:  # then our own code alone
	SigV4Auth = None

ARN, KEY_ID, SECRET, REGION = 'arn:aws:iam::999999999999:user/steward', 'AKIDOFSTEWARD', 'the/service+secret=of AWS', 'eu-west-1'
APP, APP_SECRET = '0a0a0a0a-1111-4222-8333-444444444444', 'the~service&secret=of Azure'
PROJECT = 'p-0123456789abcdefghijklmn'
OWN = 'steward@%s.iam.gserviceaccount.com' % PROJECT
SIGNED = re.compile(r'AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?'
		    r'SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$')
XMLNS = 'xmlns="https://sts.amazonaws.com/doc/2011-06-15/"'


def own_signature(secret, path, headers, signed, body, date, region, service='sts'):
	"""Of a POST without a query, as Amazon's documentation of Signature Version 4 has it."""
	canonical = '\n'.join(['POST', path, '', ''.join('%s:%s\n' % (n, ' '.join(headers[n].split())) for n in signed), ';'.join(signed),
			       hashlib.sha256(body).hexdigest()])
	scope = '%s/%s/%s/aws4_request' % (date[:8], region, service)
	text = '\n'.join(['AWS4-HMAC-SHA256', date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
	key = ('AWS4' + secret).encode()
	for part in (date[:8], region, service, 'aws4_request'):
		key = hmac.new(key, part.encode(), hashlib.sha256).digest()
	return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def botocore_signature(secret, url, headers, signed, body, date, region, service='sts'):
	request = AWSRequest(method='POST', url=url, headers={n: headers[n] for n in signed}, data=body)
	request.context['timestamp'] = date
	auth = SigV4Auth(Credentials(KEY_ID, secret), service, region)
	return auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)


def stamp(seconds):
	return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).strftime('%Y-%m-%dT%H:%M:%SZ')


def segment(value):
	return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b'=').decode()


def unsegment(text):
	return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))


class Clouds:
	"""`roles`: ARN -> the external id that it trusts; None: any. `principals`: tenant -> id of the application's principal there.
	`accounts`: of Google's project. `faults`: kinds for the next requests, used up one by one. `session`: what STS gives."""

	def __init__(self):
		self.roles, self.principals, self.accounts, self.faults, self.calls, self.bad = {}, {}, {}, [], [], []
		self.session = {'AccessKeyId': 'ASIASHORT', 'SecretAccessKey': 'short/lived+secret', 'SessionToken': 'short-lived-session=='}
		self.lasts, self.secret, self.given, self.lock = 3600, SECRET, [], threading.Lock()
		self.claims = {}  # that Azure's tokens have instead of the true ones
		self.odd = ''  # that Azure's tokens end with
		self.held = threading.Event()
		self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
		self.token = None
		box = self

		class Handler(http.server.BaseHTTPRequestHandler):
			protocol_version, disable_nagle_algorithm, timeout = 'HTTP/1.1', True, 60

			def log_message(self, *_):
				pass

			def do_POST(self):
				body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
				with box.lock:
					box.calls.append((self.command, self.path, body.decode()))
					fault = box.faults.pop(0) if box.faults else None
				if fault and box.spoil(self, fault, body):
					return
				status, kind, text = box.answer(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
				self.reply(status, kind, text)

			do_DELETE = do_GET = do_POST

			def reply(self, status, kind, text, **headers):
				data = text.encode()
				self.send_response(status)
				for name, value in {'Content-Type': kind, 'Content-Length': str(len(data)), **headers}.items():
					self.send_header(name, value)
				self.end_headers()
				self.wfile.write(data)

		class Server(http.server.ThreadingHTTPServer):
			request_queue_size, daemon_threads = 128, True

			def handle_error(self, *_):
				pass

		self.server = Server(('127.0.0.1', 0), Handler)
		self.url = 'http://127.0.0.1:%d' % self.server.server_address[1]
		threading.Thread(target=self.server.serve_forever, daemon=True).start()

	def stop(self):
		self.held.set()
		self.server.shutdown()
		self.server.server_close()

	def key_file(self, folder, **more):
		file = folder / 'google.json'
		pem = self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
		file.write_text(json.dumps({'type': 'service_account', 'project_id': PROJECT, 'private_key_id': 'k1', 'private_key': pem.decode(),
			'client_email': OWN, 'token_uri': self.url + '/token', **more}))
		return file

	def options(self, folder, secret=SECRET, app_secret=APP_SECRET):
		"""Of `steward serve`."""
		(folder / 'aws').write_text(secret + '\n')
		(folder / 'azure').write_text(app_secret + '\n')
		return ['--provider-aws-arn', ARN, '--provider-aws-key-id', KEY_ID, '--provider-aws-secret-file', folder / 'aws',
			'--provider-aws-region', REGION, '--provider-aws-endpoint', self.url,
			'--provider-azure-app-id', APP, '--provider-azure-secret-file', folder / 'azure', '--provider-azure-endpoint', self.url,
			'--provider-google-key-file', self.key_file(folder), '--provider-google-endpoint', self.url]

	def secrets(self):
		"""All that must be in no log, event or recording."""
		pem = self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
		return [SECRET, APP_SECRET, self.session['SecretAccessKey'], self.session['SessionToken'], pem.decode().split('\n')[3], *self.given]

	# What a fault does: True when it has answered.
	def spoil(self, handler, fault, body):
		xml, js = 'text/xml', 'application/json'
		if fault == 'hang':
			self.held.wait(60)
			return True
		if fault == 'cut':
			handler.close_connection = True
			handler.connection.close()
		elif fault == 'throttle':
			handler.reply(400, xml, '<ErrorResponse %s><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message>'
				'</Error></ErrorResponse>' % XMLNS)
		elif fault == 'busy':
			handler.reply(429, js, '{"error": "temporarily_unavailable"}')
		elif fault == 'quota':
			handler.reply(429, js, json.dumps({'error': {'code': 429, 'status': 'RESOURCE_EXHAUSTED',
				'message': 'Maximum number of service accounts on project reached.'}}))
		elif fault == 'rate':
			handler.reply(429, js, json.dumps({'error': {'code': 429, 'status': 'RESOURCE_EXHAUSTED', 'message': 'Quota exceeded',
				'details': [{'reason': 'RATE_LIMIT_EXCEEDED'}]}}))
		elif fault == 'huge':
			handler.reply(200, xml, '<AssumeRoleResponse>' + 'x' * (4 << 20))
		elif fault == 'redirect':
			handler.reply(302, 'text/html', '', Location=self.url + '/elsewhere')
		elif fault == 'html':
			handler.reply(200, 'text/html', '<html><body>Sign in</body></html>')
		elif fault == 'nothing':
			handler.reply(200, xml, '')
		elif fault == 'past':
			handler.reply(200, xml, self.assumed(-60))
		elif fault == 'entity':
			handler.reply(200, xml, '<!DOCTYPE a [<!ENTITY b "c">]>' + self.assumed(3600))
		elif fault == 'echo':
			handler.reply(403, xml, '<ErrorResponse %s><Error><Code>AccessDenied</Code><Message>you sent %s\x01 \u00e9</Message></Error>'
				'</ErrorResponse>' % (XMLNS, SECRET))
		elif fault == 'echo token':
			handler.reply(403, js, json.dumps({'error': {'status': 'PERMISSION_DENIED', 'message': 'x' * 290 + handler.headers['Authorization']}}))
		else:
			raise AssertionError(fault)
		return True

	def answer(self, method, path, headers, body):
		if path == '/':
			return self.sts(headers, body)
		if path == '/token':
			return self.google_token(body)
		if path.endswith('/oauth2/v2.0/token'):
			return self.azure_token(path.split('/')[1], body)
		if path.startswith('/v1/projects/'):
			return self.google_iam(method, path, headers, body)
		self.bad.append(path)
		return 404, 'text/plain', 'no'

	# STS.
	def assumed(self, lasts):
		fields = ''.join('<%s>%s</%s>' % (k, v, k) for k, v in {**self.session, 'Expiration': stamp(lasts)}.items())
		return '<AssumeRoleResponse %s><AssumeRoleResult><AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/x/y</Arn></AssumedRoleUser>' \
			'<Credentials>%s</Credentials></AssumeRoleResult></AssumeRoleResponse>' % (XMLNS, fields)

	def denied(self, status, code, message):
		return status, 'text/xml', '<ErrorResponse %s><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error></ErrorResponse>' \
			% (XMLNS, code, message)

	def signature_fault(self, headers, body):
		found = SIGNED.match(headers.get('authorization', ''))
		if not found:
			return 'IncompleteSignature'
		key_id, day, region, service, names, given = found.groups()
		names, date = names.split(';'), headers.get('x-amz-date', '')
		if key_id != KEY_ID:
			return 'InvalidClientTokenId'
		if (region, service, date[:8]) != (REGION, 'sts', day) or not {'host', 'x-amz-date'} <= set(names):
			return 'IncompleteSignature'
		if headers.get('x-amz-content-sha256', hashlib.sha256(body).hexdigest()) != hashlib.sha256(body).hexdigest():
			return 'SignatureDoesNotMatch'
		wanted = own_signature(self.secret, '/', headers, names, body, date, region)
		if SigV4Auth:
			assert wanted == botocore_signature(self.secret, self.url + '/', headers, names, body, date, region), 'botocore signs otherwise'
		return None if hmac.compare_digest(wanted, given) else 'SignatureDoesNotMatch'

	def sts(self, headers, body):
		fault = self.signature_fault(headers, body)
		form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
		if fault:
			return self.denied(403, fault, 'The request signature we calculated does not match.')
		if form['Action'] != 'AssumeRole' or form['Version'] != '2011-06-15' or not re.fullmatch(r'[\w+=,.@-]{2,64}', form['RoleSessionName']):
			return self.denied(400, 'ValidationError', 'no')
		arn = form['RoleArn']
		if arn not in self.roles or self.roles[arn] not in (None, form['ExternalId']):
			return self.denied(403, 'AccessDenied', 'User: %s is not authorized to perform: sts:AssumeRole on resource: %s' % (ARN, arn))
		return 200, 'text/xml', self.assumed(self.lasts)

	# Azure.
	def azure_token(self, tenant, body):
		form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
		js = 'application/json'
		if (form['client_id'], form['client_secret'], form['grant_type']) != (APP, APP_SECRET, 'client_credentials'):
			return 401, js, json.dumps({'error': 'invalid_client', 'error_description': 'AADSTS7000215: Invalid client secret provided.'})
		if tenant not in self.principals:
			return 400, js, json.dumps({'error': 'unauthorized_client',
				'error_description': 'AADSTS700016: Application was not found in the directory %s.' % tenant})
		now = int(datetime.datetime.now(datetime.timezone.utc).timestamp())
		claims = {'oid': self.principals[tenant], 'tid': tenant, 'appid': APP, 'aud': form['scope'].replace('/.default', ''),
			  'iss': 'https://sts.windows.net/%s/' % tenant, 'iat': now, 'nbf': now - 300, 'exp': now + self.lasts, **self.claims}
		token = '%s.%s.%s%s' % (segment({'alg': 'RS256'}), segment(claims), uuid.uuid4().hex, self.odd)
		self.given.append(token)
		return 200, js, json.dumps({'token_type': 'Bearer', 'expires_in': self.lasts, 'access_token': token})

	# Google.
	def assertion_fault(self, form):
		head, claims, signature = form['assertion'].split('.')
		try:
			self.key.public_key().verify(unsegment(signature), (head + '.' + claims).encode(), padding.PKCS1v15(), hashes.SHA256())
		except InvalidSignature:
			return 'Invalid JWT Signature.'
		head, claims = json.loads(unsegment(head)), json.loads(unsegment(claims))
		now = datetime.datetime.now(datetime.timezone.utc).timestamp()
		good = head == {'alg': 'RS256', 'kid': 'k1', 'typ': 'JWT'} and claims['iss'] == OWN and claims['aud'] == self.url + '/token' and \
			claims['scope'] == 'https://www.googleapis.com/auth/cloud-platform' and now - 300 < claims['iat'] < now + 60 and \
			claims['exp'] == claims['iat'] + 3600
		return None if good else 'Invalid JWT: %s %s' % (head, claims)

	def google_token(self, body):
		form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
		assert form['grant_type'] == 'urn:ietf:params:oauth:grant-type:jwt-bearer'
		fault = self.assertion_fault(form)
		if fault:
			return 400, 'application/json', json.dumps({'error': 'invalid_grant', 'error_description': fault})
		self.token = 'ya29.own-' + uuid.uuid4().hex
		self.given.append(self.token)
		return 200, 'application/json', json.dumps({'access_token': self.token, 'expires_in': self.lasts, 'token_type': 'Bearer'})

	def google_iam(self, method, path, headers, body):
		def no(status, word, message='no'):
			return status, 'application/json', json.dumps({'error': {'code': status, 'message': message, 'status': word}})
		if not self.token or headers.get('authorization') != 'Bearer ' + self.token:
			return no(401, 'UNAUTHENTICATED')
		accounts = '/v1/projects/%s/serviceAccounts' % PROJECT
		if method == 'POST' and path == accounts:
			name = json.loads(body)['accountId']
			assert re.fullmatch('[a-z][a-z0-9-]{4,28}[a-z0-9]', name)
			email = '%s@%s.iam.gserviceaccount.com' % (name, PROJECT)
			if email in self.accounts:
				return no(409, 'ALREADY_EXISTS')
			self.accounts[email] = True
			return 200, 'application/json', json.dumps({'email': email})
		if method == 'DELETE' and path.startswith(accounts + '/'):
			return (200, 'application/json', '{}') if self.accounts.pop(path[len(accounts) + 1:], None) is not None else no(404, 'NOT_FOUND')
		found = re.fullmatch(r'/v1/projects/-/serviceAccounts/([^/:]+):generateAccessToken', path)
		if not found or found.group(1) not in self.accounts:
			return no(404, 'NOT_FOUND')
		if not self.accounts[found.group(1)]:
			return no(403, 'PERMISSION_DENIED', "Permission 'iam.serviceAccounts.getAccessToken' denied")
		token = 'ya29.role-' + uuid.uuid4().hex
		self.given.append(token)
		return 200, 'application/json', json.dumps({'accessToken': token, 'expireTime': stamp(self.lasts)})
