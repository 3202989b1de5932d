"""What databases answer is read in one way: PQgetvalue() gives NULL for a column or a row that is not there, which a superuser's own server
behind a node's socket can leave out, and the process ended with it."""
import pathlib, re

ENGINE = pathlib.Path(__file__).resolve().parents[2] / 'src/engine'


def test_values_are_read_by_one_function():
	found = {str(f.relative_to(ENGINE)): len(re.findall(r'\bPQgetvalue\(\w', f.read_text())) for f in ENGINE.rglob('*.[ch]')}
	assert {name: n for name, n in found.items() if n} == {'postgres/sql/sql.h': 1}
