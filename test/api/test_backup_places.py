"""Where backups are kept: what the options take, and what they refuse before the service starts."""
import pytest


@pytest.mark.parametrize('args, word', [
	(['--backups', 'ftp://x/y'], '--backups'), (['--backups', 'file://relative'], '--backups'),
	(['--backups-region', 'US_EAST_1'], '--backups-region'), (['--backups-region', '=/x'], '--backups-region'),
	(['--backups-region', 'US_EAST_1=ftp://x'], '--backups-region'), (['--backups-region', 'US/EAST=/x'], '--backups-region'),
	(['--backup-spool', '15'], '--backup-spool'), (['--backup-spool', 'much'], '--backup-spool'), (['--backup-quota', '-1'], '--backup-quota'),
	(['--backups', 's3://bucket/prefix'], '--s3-key-id'), (['--backups-region', 'A=s3://bucket'], '--s3-key-id'),
	(['--backups', 's3://bucket/prefix', '--s3-key-id', 'me'], 'STEWARD_S3_SECRET'),
	(['--backups', 's3://bucket/prefix', '--s3-key-id', 'me', '--s3-secret-file', '/dev/null'], 'holds no secret'),
	(['--backups', 'gs://bucket/prefix'], '--backups'), (['--backups', 'azure://container'], '--azure-account'),
	(['--export-buckets', 'azure://'], '--azure-account'), (['--backups', 'azure://container', '--azure-account', 'me'], 'STEWARD_AZURE_KEY'),
	(['--backups', 'azure://container', '--azure-account', 'me', '--azure-key-file', '/dev/null'], 'holds no secret')])
def test_places_that_are_refused(start_server, args, word):
	with pytest.raises(AssertionError) as e:
		start_server(*args)
	assert word in str(e.value)


def test_a_store_that_is_away_does_not_keep_the_service_from_starting(start_server, tmp_path):
	secret = tmp_path / 'secret'
	secret.write_text('not the right one\n', encoding='utf-8')
	s = start_server('--backups', 's3://bucket/prefix', '--s3-endpoint', 'http://127.0.0.1:9', '--s3-key-id', 'me',
			 '--s3-secret-file', str(secret), '--backups-region', 'EU_WEST_1=%s' % (tmp_path / 'west'))
	assert s.get('/groups').status_code == 200
