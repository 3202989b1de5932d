"""What a script in Python does: requests with a key's digest, requests_oauthlib with an account's token."""
import requests
from oauthlib.oauth2 import BackendApplicationClient
from requests.auth import HTTPDigestAuth
from requests_oauthlib import OAuth2Session

from client import unique

DATED = 'application/vnd.atlas.2025-03-12+json'


def test_digest(clients_server):
	key, base = clients_server.bootstrap['apiKey'], clients_server.base_url + '/api/atlas/v2'
	with requests.Session() as session:
		session.trust_env = False
		session.auth, session.verify = HTTPDigestAuth(key['publicKey'], key['privateKey']), clients_server.ca_file
		session.headers = {'Accept': DATED, 'Content-Type': DATED}
		made = session.post(base + '/groups', json={'name': unique(), 'orgId': clients_server.org, 'clusterCount': 0})
		assert made.status_code in (200, 201) and made.headers['Content-Type'].startswith('application/vnd.atlas.2023-01-01+json'), made.text
		own = next(link['href'] for link in made.json()['links'] if link['rel'] == 'self')
		assert own.startswith(base) and session.get(own).json()['name'] == made.json()['name']
		limit = session.get(own + '/limits/atlas.project.security.databaseAccess.users')
		assert limit.json()['name'] == 'atlas.project.security.databaseAccess.users', limit.text
		refused = session.get(own + '/clusters/nowhere')
		assert (refused.status_code, refused.json()['errorCode']) == (404, 'CLUSTER_NOT_FOUND')


def test_token(clients_server):
	account, base = clients_server.bootstrap['serviceAccount'], clients_server.base_url
	with OAuth2Session(client=BackendApplicationClient(account['clientId'])) as session:
		session.trust_env, session.verify = False, clients_server.ca_file
		session.fetch_token(base + '/api/oauth/token', auth=(account['clientId'], account['clientSecret']), verify=session.verify)
		found = session.get(base + '/api/atlas/v2/orgs', headers={'Accept': DATED})
		assert clients_server.org in {o['id'] for o in found.json()['results']}
