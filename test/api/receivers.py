"""Receivers of what the service sends: HTTP, which may refuse, be silent or go away; and mail."""
import contextlib, hashlib, hmac, http.server, json, threading

from aiosmtpd.controller import Controller

from client import until
from database import free_port


class Received:
	def __init__(self, path, headers, body):
		self.path, self.headers, self.body = path, headers, body

	@property
	def json(self):
		return json.loads(self.body)

	def signed_with(self, secret):
		wanted = 'sha256=' + hmac.new(secret.encode(), self.body, hashlib.sha256).hexdigest()
		return hmac.compare_digest(wanted, self.headers.get('X-Steward-Signature', ''))


class Http:
	"""`answers` are the statuses of the next requests; then all get 200, or what `judge` says of their bodies. What was refused is in
	`refused`."""

	def __init__(self, port=None, body=b'{"ok": true}'):
		self.taken, self.refused, self.answers, self.port, self.body = [], [], [], port or free_port(), body
		self.judge = lambda body: 200
		self.hold = threading.Event()
		self.hold.set()
		self.server = None
		self.start()

	def start(self):
		box = self

		class Handler(http.server.BaseHTTPRequestHandler):
			def do_POST(self):
				body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
				box.hold.wait(60)
				status = box.answers.pop(0) if box.answers else box.judge(body)
				(box.taken if status < 300 else box.refused).append(Received(self.path, dict(self.headers), body))
				with contextlib.suppress(OSError):
					self.send_response(status)
					self.send_header('Content-Length', str(len(box.body)))
					self.end_headers()
					self.wfile.write(box.body)

			def log_message(self, *args):
				pass
		self.server = http.server.ThreadingHTTPServer(('127.0.0.1', self.port), Handler)
		self.server.daemon_threads = True
		threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

	def stop(self):
		if self.server:
			self.hold.set()
			self.server.shutdown()
			self.server.server_close()
			self.server = None

	@property
	def url(self):
		return 'http://127.0.0.1:%d' % self.port

	def wait(self, count=1, seconds=60):
		until(lambda: len(self.taken) >= count, seconds, '%d requests' % count)
		return self.taken


class Inbox:
	def __init__(self):
		self.letters, self.answers = [], []  # answers: of the next letters; then all are kept
		self.controller = Controller(self, hostname='127.0.0.1', port=free_port(), ready_timeout=60)
		self.controller.start()
		self.url = 'smtp://127.0.0.1:%d' % self.controller.port

	async def handle_DATA(self, server, session, envelope):
		if self.answers:
			return self.answers.pop(0)
		self.letters.append(envelope)
		return '250 kept'

	def wait(self, count=1):
		until(lambda: len(self.letters) >= count, what='%d letters' % count)
		return self.letters

	def stop(self):
		self.controller.stop()
