#!/usr/bin/python3
"""A SAML identity provider for tests: a process of its own, with its own authority and keys; Debian's lasso speaks the protocol.

  saml_provider.py FOLDER     prints {"url", "ca", "issuer", "sso", "certificate"} on one line, serves until its standard input ends

POST /control {"metadata", "name", "attributes", "key"} tells it of the service and whom it signs in; "key": "other" has it sign with a
key that nobody knows. It signs in whoever asks, and its page posts the answer by a script, as those of others do."""
import datetime, html, http.server, json, pathlib, sys
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
import lasso

from oidc_provider import certificates, serve

METADATA = '''<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="%s"><IDPSSODescriptor
 protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><SingleSignOnService
 Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="%s"/></IDPSSODescriptor></EntityDescriptor>'''
PAGE = '''<!doctype html><title>Provider</title><link rel="icon" href="data:,"><form method="post" action="%s"><input type="hidden" name="SAMLResponse" value="%s"></form>
<script>document.forms[0].submit()</script>'''


class Provider:
	def __init__(self, folder):
		certificates(folder)
		self.keys = {name: rsa.generate_private_key(65537, 2048) for name in ('own', 'other')}
		self.set = {'metadata': None, 'name': '', 'attributes': {}, 'key': 'own'}

	def certificate(self):
		now, name = datetime.datetime.utcnow(), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, 'saml')])
		made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self.keys['own'].public_key()).serial_number(1)
		made = made.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=2000))
		return made.sign(self.keys['own'], hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()

	def answer(self, query):
		"""Where the answer to a request goes, and the answer."""
		pem = self.keys[self.set['key']].private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
			serialization.NoEncryption()).decode()
		server = lasso.Server.newFromBuffers(METADATA % (self.issuer, self.sso), pem)
		server.signatureMethod = lasso.SIGNATURE_METHOD_RSA_SHA256
		server.addProviderFromBuffer(lasso.PROVIDER_ROLE_SP, self.set['metadata'])
		login = lasso.Login(server)
		login.processAuthnRequestMsg(query)
		login.validateRequestMsg(True, True)
		times = [(datetime.datetime.utcnow() + datetime.timedelta(seconds=s)).strftime('%Y-%m-%dT%H:%M:%SZ') for s in (-60, 600)]
		login.buildAssertion(lasso.SAML2_AUTHN_CONTEXT_PASSWORD, *times, *times)
		login.assertion.subject.nameID.content = self.set['name']
		for name, values in self.set['attributes'].items():
			for value in values:
				node = lasso.MiscTextNode.newWithString(value)
				node.textChild = True
				login.assertion.addAttributeWithNode(name, lasso.SAML2_ATTRIBUTE_NAME_FORMAT_BASIC, node)
		login.buildAuthnResponseMsg()
		return login.msgUrl, login.msgBody


def handler(provider):
	class Handler(http.server.BaseHTTPRequestHandler):
		protocol_version = 'HTTP/1.1'

		def say(self, status, body, kind):
			data = body.encode()
			self.send_response(status)
			self.send_header('Content-Type', kind)
			self.send_header('Content-Length', str(len(data)))
			self.end_headers()
			self.wfile.write(data)

		def do_GET(self):
			url = urlsplit(self.path)
			if url.path != '/sso':
				self.say(404, '', 'text/plain')
				return
			to, text = provider.answer(url.query)
			self.say(200, PAGE % (html.escape(to), html.escape(text)), 'text/html; charset=utf-8')

		def do_POST(self):
			provider.set.update(json.loads(self.rfile.read(int(self.headers['Content-Length']))))
			self.say(200, '{}', 'application/json')

		def log_message(self, *args):
			pass
	return Handler


def main():
	folder = pathlib.Path(sys.argv[1])
	folder.mkdir(parents=True, exist_ok=True)
	provider = Provider(folder)
	url = serve(folder, handler(provider))
	provider.issuer, provider.sso = url + '/metadata', url + '/sso'
	print(json.dumps({'url': url, 'ca': str(folder / 'identity-ca.pem'), 'issuer': provider.issuer, 'sso': provider.sso,
		'certificate': provider.certificate()}), flush=True)
	sys.stdin.read()


if __name__ == '__main__':
	main()
