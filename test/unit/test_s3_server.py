"""The S3 server of the tests signs as Amazon does: the examples of its documentation of Signature Version 4. What is
not signed, or signed otherwise, it refuses."""
import hashlib
import pathlib
import sys
import urllib.error
import urllib.request

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import s3_server  # noqa: E402

SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
DATE = '20130524T000000Z'
EXAMPLES = [
	('GET', '/test.txt', [], {'range': 'bytes=0-9'}, b'',
	 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41'),
	('PUT', '/test$file.text', [],
	 {'date': 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY'},
	 b'Welcome to Amazon S3.', '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd'),
	('GET', '/', [('lifecycle', '')], {}, b'', 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'),
	('GET', '/', [('prefix', 'J'), ('max-keys', '2')], {}, b'',
	 '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'),
]


@pytest.mark.parametrize('method, path, query, headers, body, wanted', EXAMPLES)
def test_signature(method, path, query, headers, body, wanted):
	payload = hashlib.sha256(body).hexdigest()
	headers = {'host': 'examplebucket.s3.amazonaws.com', 'x-amz-date': DATE, 'x-amz-content-sha256': payload, **headers}
	for secret, right in ((SECRET, True), (SECRET + 'x', False)):
		given = s3_server.signature(secret, method, path, query, headers, sorted(headers), payload, DATE, 'us-east-1')
		assert (given == wanted) == right


@pytest.fixture(scope='module')
def server():
	s = s3_server.Running()
	yield s
	s.stop()


def ask(server, body, *, secret=s3_server.SECRET, signed_body=None, path='/bucket/x', drop=(), extra=None):
	"""The status of a PUT that is signed by this test; `drop`: headers that the signature leaves out."""
	date = s3_server.now().strftime('%Y%m%dT%H%M%SZ')
	payload = hashlib.sha256(body if signed_body is None else signed_body).hexdigest()
	host = server.endpoint.split('//')[1]
	headers = {'host': host, 'x-amz-date': date, 'x-amz-content-sha256': payload, **(extra or {})}
	names = sorted(set(headers) - set(drop))
	sign = s3_server.signature(secret, 'PUT', '/bucket/x', [], headers, names, payload, date, 'us-east-1')
	headers['Authorization'] = (
		'AWS4-HMAC-SHA256 Credential=%s/%s/us-east-1/s3/aws4_request, SignedHeaders=%s, Signature=%s' % (
			s3_server.KEY_ID, date[:8], ';'.join(names), sign))
	request = urllib.request.Request(server.endpoint + path, data=body, method='PUT', headers=headers)
	try:
		with urllib.request.urlopen(request, timeout=30) as answer:
			return answer.status
	except urllib.error.HTTPError as e:
		return e.code


def test_verifies(server):
	assert ask(server, b'body') == 200
	assert ask(server, b'body', extra={'x-amz-meta': 'signed'}) == 200
	assert ask(server, b'body', secret='other') == 403
	assert ask(server, b'body', signed_body=b'another body') == 400
	assert ask(server, b'body', path='/bucket/y') == 403
	assert ask(server, b'body', path='/bucket/x?a=b') == 403
	for name in ('host', 'x-amz-date', 'x-amz-content-sha256', 'x-amz-meta'):
		assert ask(server, b'body', extra={'x-amz-meta': 'not signed'}, drop=[name]) == 403
	assert server.say('objects') == '1'
