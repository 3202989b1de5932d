"""DuckDB as it comes from npm, by its C interface: what reads a file here has no part of ours in it."""
import ctypes, pathlib, platform

import pytest

MACHINE = {'x86_64': 'x64', 'aarch64': 'arm64'}.get(platform.machine())
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / 'src/programs/duckdb/node_modules/@duckdb' / ('node-bindings-linux-%s' % MACHINE)


class Result(ctypes.Structure):
	_fields_ = [('columns', ctypes.c_uint64), ('rows', ctypes.c_uint64), ('changed', ctypes.c_uint64), ('data', ctypes.c_void_p),
		('error', ctypes.c_char_p), ('own', ctypes.c_void_p)]


class Duck:
	def __init__(self):
		if not (PACKAGE / 'libduckdb.so').exists():
			pytest.skip('libduckdb is not there: script/npm-packages src/programs/duckdb')
		self.lib = ctypes.CDLL(str(PACKAGE / 'libduckdb.so'))
		self.database, self.connection = ctypes.c_void_p(), ctypes.c_void_p()
		self.lib.duckdb_result_error.restype = ctypes.c_char_p
		self.lib.duckdb_value_varchar.restype = ctypes.c_void_p
		for name in ('duckdb_column_count', 'duckdb_row_count'):
			getattr(self.lib, name).restype = ctypes.c_uint64
		assert self.lib.duckdb_open(None, ctypes.byref(self.database)) == 0
		assert self.lib.duckdb_connect(self.database, ctypes.byref(self.connection)) == 0
		self.run("SET TimeZone = 'UTC'")

	def value(self, result, column, row):
		p = self.lib.duckdb_value_varchar(ctypes.byref(result), ctypes.c_uint64(column), ctypes.c_uint64(row))
		text = ctypes.string_at(p).decode() if p else None
		self.lib.duckdb_free(ctypes.c_void_p(p))
		return text

	def query(self, sql):
		"""Rows of texts, None for what is null. This interface has no other way to the text of every type."""
		return self.run('SELECT COLUMNS(*)::VARCHAR FROM (%s)' % sql)

	def run(self, sql):
		result = Result()
		failed = self.lib.duckdb_query(self.connection, sql.encode(), ctypes.byref(result))
		try:
			assert not failed, self.lib.duckdb_result_error(ctypes.byref(result)).decode()
			columns = range(self.lib.duckdb_column_count(ctypes.byref(result)))
			return [[self.value(result, c, r) for c in columns] for r in range(self.lib.duckdb_row_count(ctypes.byref(result)))]
		finally:
			self.lib.duckdb_destroy_result(ctypes.byref(result))

	def close(self):
		self.lib.duckdb_disconnect(ctypes.byref(self.connection))
		self.lib.duckdb_close(ctypes.byref(self.database))
