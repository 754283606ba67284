#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Files inside a commit are stored together: the numbers of statements, rows and
# xorbs depend on the bytes of the commit, not on the number of files.  Known
# contents are not stored again.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Bytes;
use Test::Xet::Process qw/ wait_for /;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 ();

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth off;'), workers => 1);
my $json = JSON::PP->new()->canonical();

$t->token_key();
$t->pg_start();

$t->sql("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'",
	user => 'postgres');
$t->pg_restart();
$t->sql('CREATE EXTENSION pg_stat_statements SCHEMA public',
	user => 'postgres');
$t->run();

create('r');
create('first_upload');

# a worker's first upload waits for copy ids in the middle of its body

my $slow = body(map { inline("f$_", random_bytes(7000 + $_, 18_000)) }
	1 .. 150);
my $c = $t->http_start('POST', '/api/models/me/first_upload/commit/main', {
	'Content-Type' => 'application/x-ndjson',
	'Content-Length' => length($slow) }, substr($slow, 0, 2_000_000));

ok(wait_for(20, sub { $t->sql('SELECT count(*) FROM xet.files') }),
	'a commit half way');
$c->send(substr($slow, 2_000_000));
is($c->response('POST')->{status}, 200, 'succeeds');

# --------------------------------------------------------------------------
# many files

my %files = map { ("d/f$_" => random_bytes($_, 18_000)) } 1 .. 200;
my $got = measure('r', %files);

cmp_ok($got->{statements}, '<=', 60, '200 files: statements');
cmp_ok($got->{xorbs}, '<=', 4, '200 files: xorbs');
cmp_ok($got->{rows}, '<=', 2000, '200 files: rows');
same('r', \%files);
is($t->sql('SELECT count(*) FROM xet.files WHERE NOT sha256_proven'), 0,
	'all of them are proven');
is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
	'the counts are exact');

# ten times as many bytes in the same number of files

my %larger = map { ("d/g$_" => random_bytes(1000 + $_, 180_000)) } 1 .. 20;

$got = measure('r', %larger);
cmp_ok($got->{statements}, '<=', 90, '20 large files: statements');
same('r', \%larger);

# many tiny files

my %tiny = map { ("t/$_" => "content of $_") } 1 .. 1000;

$got = measure('r', %tiny);
cmp_ok($got->{statements}, '<=', 40, '1000 tiny files: statements');
is($got->{xorbs}, 1, '1000 tiny files: a xorb');
same('r', { map { ($_ => $tiny{$_}) } (sort keys(%tiny))[0, 5, 500, 999] });
is(commit('r', map { inline("n/$_", "new $_") } 1 .. 1001)->{status}, 413,
	'more than that: refused');

# --------------------------------------------------------------------------
# known contents

$got = measure('r', %files);
is($got->{xorbs}, 0, 'the same files: no xorb');
cmp_ok($got->{statements}, '<=', 40, 'the same files: statements');

$files{'d/f7'} = 'changed';
$got = measure('r', %files);
is($got->{xorbs}, 1, 'one of them is changed: a xorb');
is($t->sql('SELECT stored_size < 1000 FROM xet.xorbs ORDER BY id DESC LIMIT 1'),
	't', 'which has this file only');
same('r', { map { ($_ => $files{$_}) } qw! d/f1 d/f7 d/f200 ! });

# the same contents in another repo: the response does not reveal that the first
# repo has them

create('s');
$got = measure('s', 'd/f1' => $files{'d/f1'}, 'd/copy' => $files{'d/f1'});
cmp_ok($got->{xorbs}, '<=', 1,
	'another repo, one file twice: a xorb at most');
same('s', { 'd/f1' => $files{'d/f1'}, 'd/copy' => $files{'d/f1'} });

# a larger file with a changed end reuses its old chunks

my $data = random_bytes(5000, 700_000);

$got = measure('s', large => $data);
my $bytes = $t->sql('SELECT sum(stored_size) FROM xet.xorbs');
$got = measure('s', large => substr($data, 0, 650_000) . 'other', small => 'x');
cmp_ok($t->sql('SELECT sum(stored_size) FROM xet.xorbs') - $bytes, '<',
	200_000, 'a changed large file: only new data');
same('s', { large => substr($data, 0, 650_000) . 'other', small => 'x' });

# a file that is not in a commit is kept for a day; when a commit names the file
# again, a new day begins

my $loose = 'a file that goes';

is(commit('s', inline('l', $loose), { key => 'deletedFile',
	value => { path => 'none' } })->{status}, 404,
	'a commit that is refused');
$t->sql("UPDATE xet.hub_loose SET since = now() - interval '23 hours'");
is(commit('s', inline('l', $loose))->{status}, 200, 'its file comes again');
is($t->sql("SELECT count(*) FROM xet.hub_loose l JOIN xet.files f"
	. " ON f.id = l.file_id WHERE f.sha256 = decode('"
	. sha256_hex($loose) . "', 'hex')"
	. " AND l.since < now() - interval '1 hour'"), 0, 'a new day begins');

# --------------------------------------------------------------------------
# operations take effect in the order in which the commit lists them

is(commit('s', map { inline($_, "old $_") } qw/ o q /)->{status}, 200,
	'two files');
is(commit('s', { key => 'deletedFile', value => { path => 'o' } },
	inline('p', 'two'), inline('o', 'three'), inline('empty', ''),
	inline('p', 'four'), { key => 'deletedFile', value => { path => 'q' } })
	->{status}, 200, 'files and deletions in one commit');
same('s', { o => 'three', p => 'four', empty => '' });
is($t->get('/me/s/resolve/main/q')->{status}, 404, 'the deletion comes last');

# a repo that is created with files; if the request is refused, no rows are left

my $r = $t->post('/api/repos/create', $json->encode({ name => 'first',
	files => [ map { { path => "f$_", content => "first $_" } }
		1 .. 50 ] }));

is($r->{status}, 200, 'a repo with files') or diag($r->summary());
same('first', { map { ("f$_" => "first $_") } 1 .. 50 });

# a client that disconnects during a commit leaves no staged rows

my $body = body(map { inline("x$_", random_bytes(9000 + $_, 18_000)) }
	1 .. 200);
$c = $t->http_start('POST', '/api/models/me/s/commit/main', {
	'Content-Type' => 'application/x-ndjson',
	'Content-Length' => length($body) }, substr($body, 0, 3_000_000));

ok(wait_for(20, sub { $t->sql('SELECT count(*) FROM xet.files f'
	. " WHERE sha256 = decode('" . sha256_hex(random_bytes(9001, 18_000))
	. "', 'hex')") }), 'a commit half way');
$c->close();
is($t->get('/me/s/resolve/main/x1')->{status}, 404, 'has made nothing');
ok(wait_for(20, sub { $t->sql('SELECT count(*) FROM xet.hub_staged') == 0 }),
	'and leaves nothing staged');
my ($xorbs) = counts();

is($t->http('POST', '/api/models/me/s/commit/main', {
	'Content-Type' => 'application/x-ndjson' }, $body)->{status}, 200,
	'sent again');
cmp_ok((counts())[0] - $xorbs, '<=', 3, 'only new contents are stored');
same('s', { map { ("x$_" => random_bytes(9000 + $_, 18_000)) } 1, 59, 200 });

$t->done();

# --------------------------------------------------------------------------

sub measure {
	my ($repo, %what) = @_;

	my ($xorbs, $rows) = counts();

	$t->sql('SELECT public.pg_stat_statements_reset()', user => 'postgres');

	my $r = commit($repo, map { inline($_, $what{$_}) } sort keys(%what));

	is($r->{status}, 200, 'a commit') or diag($r->summary());

	my $n = $t->sql(<<'EOF_SQL', user => 'postgres');
SELECT coalesce(sum(calls), 0)
  FROM public.pg_stat_statements
 WHERE query ~ 'xet\.[a-z_]+\(' AND query !~
       'xet\.(in_time|job_|copy_ids_take|sweep|figures|quota_any|usage_settle)'
EOF_SQL
	my ($now, $after) = counts();

	diag("$n statements, " . ($now - $xorbs) . ' xorbs, '
		. ($after - $rows) . ' rows');

	return { statements => $n, xorbs => $now - $xorbs,
		rows => $after - $rows };
}

sub counts {
	my $rows = $t->rows();
	my $sum = 0;

	$sum += $_ for values %$rows;

	return ($t->sql('SELECT count(*) FROM xet.xorbs'), $sum);
}

sub same {
	my ($repo, $files) = @_;

	my @bad = grep { $t->get("/me/$repo/resolve/main/$_")->{body}
		ne $files->{$_} } sort keys(%$files);

	is("@bad", '', 'all files are as sent');
}

sub body {
	return join('', map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 's' } }, @_);
}

sub commit {
	my ($repo, @ops) = @_;

	return $t->http('POST', "/api/models/me/$repo/commit/main", {
		'Content-Type' => 'application/x-ndjson' }, body(@ops),
		timeout => 120);
}

sub create {
	my $r = $t->post('/api/repos/create', $json->encode({ name => $_[0] }));

	is($r->{status}, 200, "repo $_[0]") or diag($r->summary());
}

sub inline {
	my ($path, $data) = @_;

	return { key => 'file', value => { path => $path,
		encoding => 'base64',
		content => MIME::Base64::encode_base64($data, '') } };
}
