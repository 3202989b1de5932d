"""Certificates, and an LDAP directory of the test's own: slapd with its own folder and port, on loopback."""
import atexit, os, pathlib, random, shutil, socket, subprocess, tempfile, time

import database

SLAPD = shutil.which('slapd') or (os.access('/usr/sbin/slapd', os.X_OK) and '/usr/sbin/slapd')
SCHEMAS = pathlib.Path('/etc/ldap/schema')
SUFFIX = 'DC=example,DC=org'
ADMIN = 'CN=admin,' + SUFFIX
ADMIN_PASSWORD = 'directory "admin" \\ secret'
PEOPLE = {'ann': 'anns password', 'bob': 'bobs password'}


def openssl(*args, text=None):
	return subprocess.run(['openssl', *map(str, args)], input=text, check=True, text=True, stdout=subprocess.PIPE,
			      stderr=subprocess.PIPE).stdout


class Authority:
	"""A certificate authority in a folder."""

	def __init__(self, folder, name='Test CA'):
		self.folder = pathlib.Path(folder)
		self.folder.mkdir(parents=True, exist_ok=True)
		self.key, self.file = self.folder / 'ca.key', self.folder / 'ca.crt'
		openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', 2, '-keyout',
			self.key, '-out', self.file, '-subj', '/CN=' + name)
		self.pem = self.file.read_text()

	def issue(self, name, subject, *extensions):
		key, request, cert = (self.folder / (name + end) for end in ('.key', '.csr', '.crt'))
		openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', request,
			'-subj', subject)
		more = self.folder / (name + '.ext')
		more.write_text('\n'.join(extensions) + '\n')
		openssl('x509', '-req', '-in', request, '-CA', self.file, '-CAkey', self.key, '-CAcreateserial', '-days', 2, '-out',
			cert, '-extfile', more)
		key.chmod(0o600)
		return cert, key


running = []
ALLOWED = ['--inner-networks', '127.71.0.0/16']  # what a service needs that shall reach them


@atexit.register
def clean_up():
	for d in list(running):
		d.stop()


def loopback():
	"""An address that nobody else uses, where the port has to be 389: runs of these tests go side by side."""
	dice = random.SystemRandom()
	return '127.71.%d.%d' % (dice.randrange(256), dice.randrange(1, 255))


class Directory:
	"""ou=people below dc=example,dc=org, with two people; LDAPS on a free port, and LDAP with StartTLS on 389 where that
	port can be had."""

	def __init__(self, with_389=False):
		self.address = address = loopback()
		self.folder, self.process = pathlib.Path(tempfile.mkdtemp(prefix='steward-slapd-')), None
		running.append(self)
		self.ca = Authority(self.folder / 'tls')
		cert, key = self.ca.issue('slapd', '/CN=directory', 'subjectAltName=IP:%s' % address)
		self.port = database.free_port(address)
		(self.folder / 'data').mkdir()
		conf = self.folder / 'slapd.conf'
		conf.write_text('\n'.join([
			*('include %s/%s.schema' % (SCHEMAS, s) for s in ('core', 'cosine', 'inetorgperson')),
			'modulepath /usr/lib/ldap', 'moduleload back_mdb', 'pidfile %s/pid' % self.folder,
			'TLSCACertificateFile %s' % self.ca.file, 'TLSCertificateFile %s' % cert, 'TLSCertificateKeyFile %s' % key,
			'database mdb', 'maxsize 1048576', 'suffix "%s"' % SUFFIX, 'rootdn "%s"' % ADMIN,
			'rootpw %s' % subprocess.run(['slappasswd', '-s', ADMIN_PASSWORD, '-n'], check=True, text=True,
						    stdout=subprocess.PIPE).stdout, 'directory %s/data' % self.folder,
			'access to attrs=userPassword by anonymous auth by * none', 'access to * by users read by * none', '']))
		ldif = ['dn: %s\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n' % SUFFIX,
			'dn: ou=people,%s\nobjectClass: organizationalUnit\nou: people\n' % SUFFIX,
			'dn: %s\nobjectClass: organizationalRole\ncn: admin\n' % ADMIN]
		for name, password in PEOPLE.items():
			ldif.append('dn: uid=%s,ou=people,%s\nobjectClass: inetOrgPerson\ncn: %s\nsn: %s\nuid: %s\nmail: %s@example.org\n'
				    'userPassword: %s\n' % (name, SUFFIX, name, name, name, name, password))
		subprocess.run(['/usr/sbin/slapadd', '-f', str(conf)], input='\n'.join(ldif), text=True, check=True,
			       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
		urls = 'ldaps://%s:%d/' % (address, self.port) + (' ldap://%s:389/' % address if with_389 else '')
		self.process = subprocess.Popen([SLAPD, '-d', '0', '-f', str(conf), '-h', urls], stdout=subprocess.DEVNULL,
						stderr=subprocess.DEVNULL)
		end = time.monotonic() + 60
		while True:
			try:
				socket.create_connection((address, self.port), timeout=1).close()
				return
			except OSError:
				assert self.process.poll() is None and time.monotonic() < end, 'slapd did not start'
				time.sleep(0.02)

	def settings(self, **more):
		return {'hostname': self.address, 'port': self.port, 'bindUsername': ADMIN, 'bindPassword': ADMIN_PASSWORD,
			'caCertificate': self.ca.pem, **more}

	def stop(self):
		if self in running:
			running.remove(self)
		if self.process:
			self.process.terminate()
			self.process.wait(60)
		shutil.rmtree(self.folder, ignore_errors=True)
