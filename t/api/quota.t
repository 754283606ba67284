#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Quotas and usage: what is counted for whom, even if bytes are stored once and
# used by many.  Limits are enforced in the transaction that adds data, and
# before the server reads an upload.  Deleted bytes are free again.  A recount
# finds and repairs wrong sums.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();

my $t = Test::Xet->new(workers => 1, log => 'info',
	Test::Xet::Token::repos(<<'EOC'));
location /wide/ {
            xet_api;
            xet_api_base /wide;
            xet_auth token;
            xet_access repo;
            xet_dedup_scope store;
        }
EOC

$t->token_key();
$t->run();
$t->fds_mark();
$t->allow(qr/413 quota_exceeded/);

# --------------------------------------------------------------------------
# what is counted

my $data = random_bytes(1, 300000);
my $r = put('a/a@ann', $data);

is($r->{status}, 200, 'a file');

my $first = $r->json()->{hash};
my $stored = $t->sql('SELECT sum(stored_size) FROM xet.xorbs');

is(usage('repo', 'a/a'), "$stored 300000 1", 'counted for the repo');
is(usage('subject', 'ann'), "$stored 300000 1", 'and for the subject');

is(put('a/a@ann', $data)->{status}, 200, 'again');
is(usage('repo', 'a/a'), "$stored 300000 1", 'counted once');

is(put('b/b@bob', $data)->{status}, 200, 'the same in another repo');
is(usage('repo', 'b/b'), '0 300000 1', 'but not charged to it');
is(usage('repo', 'a/a'), "$stored 300000 1", 'charged to the first repo');
is(usage('subject', 'bob'), '0 300000 1', 'not charged to its subject');

is(put('a/a@bob', $data)->{status}, 200, 'another subject, the same repo');
is(usage('subject', 'bob'), '0 300000 1', 'adds nothing');

# --------------------------------------------------------------------------
# who may read usage

$r = $t->get('/api/v1/usage', $t->auth('read', 'a/a@ann'));

is($r->{status}, 200, 'usage');
is_deeply($r->json(), { map { $_ => { files => 1, metadata => { used => 0 },
	logical => { used => 300000 } } } qw/ repo subject / },
	'stored bytes would tell what others have');
is_deeply($r->{headers}{'cache-control'}, [ 'private, no-store' ],
	'not for caches');
is_deeply($t->get('/wide/v1/usage', $t->auth('read', 'b/b'))->json(),
	{ repo => { files => 1, logical => { used => 300000 },
	metadata => { used => 0 }, stored => { used => 0 } } },
	'stored bytes, if dedup shows them');
is_deeply($t->get('/api/v1/usage', $t->auth('read', 'c/c'))->json(),
	{ repo => { files => 0, logical => { used => 0 },
	metadata => { used => 0 } } },
	'a missing repo');
is($t->get('/api/v1/usage')->{status}, 401, 'without a token');

# --------------------------------------------------------------------------
# logical bytes: the commit of a PUT or of shards checks the limit

limit('repo', 'a/a', undef, 400000);

my $x = make_xorb(random_bytes(2, 200000), scheme => 'none',
	sizes => [ 20000 ]);

is(xorb('a/a@ann', $x)->{status}, 200, 'a xorb has no logical bytes');

for my $v (1, 2) {
	$r = shard('a/a@ann', $x, 0, 6, "/api/v$v/shards");

	over($r, "shard v$v", quota => 'repo', bytes => 'logical',
		limit => 400000, used => 300000, left => 100000);
}

is($t->sql('SELECT count(*) FROM xet.files'), 1, 'nothing is registered');

$r = shard('a/a@ann', $x, 0, 5);

is($r->{status}, 200, 'the remaining bytes');
is(usage('repo', 'a/a') =~ s/^\d+ //r, '400000 2', 'to the byte');
is(shard('a/a@ann', $x, 0, 5)->{status}, 200, 'again, which adds nothing');

over(shard('a/a@ann', $x, 5, 6), 'full', quota => 'repo',
	bytes => 'logical', limit => 400000, used => 400000, left => 0);

# the refused shard was not counted

$r = $t->get('/api/v1/usage', $t->auth('read', 'a/a'))->json();
is_deeply($r->{repo}{logical}, { used => 400000, limit => 400000,
	left => 0 }, 'usage has the remaining bytes');

# --------------------------------------------------------------------------
# deleted bytes are free immediately

my $small = make_file($x, 0, 5);

is($t->http('DELETE', "/api/v1/files/$small",
	$t->auth('delete', 'a/a'))->{status}, 204, 'deleted');
is(usage('repo', 'a/a') =~ s/^\d+ //r, '300000 1', 'its bytes are free');
is(shard('a/a@ann', $x, 5, 10)->{status}, 200, 'other files fit');

# --------------------------------------------------------------------------
# requests refused before their body is read; a changed limit reaches the
# workers within seconds

my $refused;

ok(wait_for(30, sub {
	($refused) = early('PUT', '/api/v1/files', 70000000, 'a/a@ann');
	return $refused;
}), 'a PUT is refused before it is sent');

over($refused, 'PUT', quota => 'repo', bytes => 'logical', limit => 400000,
	used => 400000, left => 0);
over(put('a/a@ann', random_bytes(3, 1000)), 'PUT of a few bytes',
	quota => 'repo', bytes => 'logical', limit => 400000, used => 400000,
	left => 0);

is(put('a/a@ann', $data, { 'X-Xet-Hash' => $first })->{status}, 200,
	'a known file with X-Xet-Hash is accepted');
is(put('b/b@bob', random_bytes(4, 1000))->{status}, 200,
	'other repos work');

# --------------------------------------------------------------------------
# stored bytes

limit('repo', 'a/a', undef, undef);
limit('repo', 'c/c', 150000, undef);

my $y = make_xorb(random_bytes(5, 100000), scheme => 'none',
	sizes => [ 20000 ]);
my $z = make_xorb(random_bytes(6, 100000), scheme => 'none',
	sizes => [ 20000 ]);

is(xorb('c/c@cyd', $y)->{status}, 200, 'a xorb');
is(xorb('c/c@cyd', $y)->{status}, 200, 'again');

my $used = $y->{stored_size};

is(usage('repo', 'c/c'), "$used 0 0", 'counted once');
over(xorb('c/c@cyd', $z), 'one more', quota => 'repo', bytes => 'stored',
	limit => 150000, used => $used, left => 150000 - $used);
is(usage('repo', 'c/c'), "$used 0 0", 'the refused xorb is not charged');
is($t->sql("SELECT count(*) FROM xet.xorbs WHERE encode(hash, 'hex') = '"
	. plain_hash($z->{hash}) . "'"), 0, 'no row');
is(scalar($t->copies($z->{hash})), 0, 'and no copy');
is(xorb('c/c@cyd', $x)->{status}, 200, 'a stored xorb costs nothing');
is(put('c/c@cyd', $data)->{status}, 200, 'nor does a file of stored xorbs');
over(put('c/c@cyd', random_bytes(7, 100000)), 'a new file', quota => 'repo',
	bytes => 'stored', limit => 150000, used => $used,
	left => 150000 - $used);

($refused) = early('POST', "/api/v1/xorbs/default/$z->{hash}", 60000000,
	'c/c@cyd');
over($refused, 'a xorb before it is sent', quota => 'repo',
	bytes => 'stored', limit => 150000, used => $used,
	left => 150000 - $used);

# a caller who only knows a hash does not learn whether other repos have the
# xorb

my $others = make_xorb(random_bytes(10, 100000), scheme => 'none');

is(xorb('a/a@ann', $others)->{status}, 200, 'a xorb of others');
($refused) = early('POST', "/api/v1/xorbs/default/$others->{hash}", 60000000,
	'c/c@cyd');
over($refused, 'is refused as one that is not there', quota => 'repo',
	bytes => 'stored', limit => 150000, used => $used,
	left => 150000 - $used);
is((early('POST', "/api/v1/xorbs/default/$y->{hash}", 60000000,
	'c/c@cyd'))[0], undef, 'its own xorb is read');

is_deeply($t->get('/api/v1/usage', $t->auth('read', 'c/c'))->json()->{repo}
	{stored}, { used => $used, limit => 150000,
	left => 150000 - $used }, 'usage has the limit');

# subjects, with and without a limit of their own

limit('subject', undef, 50000, undef);
limit('subject', 'ann', undef, 900000);

over(xorb('d/d@dan', $z), 'a subject', quota => 'subject',
	bytes => 'stored', limit => 50000, used => 0, left => 50000);
is(xorb('d/d@ann', $z)->{status}, 200, 'a subject with its own limit');
is(usage('subject', 'ann') =~ s/ .*//r, $stored + $x->{stored_size}
	+ $others->{stored_size} + $z->{stored_size}, 'pays');
over(put('d/d@ann', random_bytes(8, 600000)), 'logical bytes of a subject',
	quota => 'subject', bytes => 'logical', limit => 900000,
	used => 400000, left => 500000);

limit('subject', $_, undef, undef) for undef, 'ann';
limit('repo', 'c/c', undef, undef);

is($t->sql('SELECT count(*) FROM xet.quotas'), 0, 'no limits are left');

# --------------------------------------------------------------------------
# the charged owner of a file deletes it, other owners keep it, and one of them
# is charged

my $ann = usage('repo', 'a/a');

is($t->http('DELETE', "/api/v1/files/$first",
	$t->auth('delete', 'a/a'))->{status}, 204,
	'deleted by the charged repo');
like(usage('repo', 'a/a'), qr/^\d+ 100000 1$/, 'logical bytes at once');
settle();
is(usage('repo', 'a/a'), $x->{stored_size} + $others->{stored_size}
	. ' 100000 1', 'the repo is not charged any more');
like(usage('repo', 'b/b'), qr/^\d+ 301000 2$/,
	'another repo still has the file');
cmp_ok((usage('repo', 'b/b') =~ /^(\d+)/)[0], '>=', $stored,
	'and is charged now');
sums('settled');

# the other owners delete the file as well: the collection frees the bytes

$t->http('DELETE', "/api/v1/files/$first", $t->auth('delete', $_))
	for qw! b/b c/c !;
collect();
is($t->sql("SELECT count(*) FROM xet.charges WHERE bytes = $stored"), 0,
	'collected');
unlike(usage('repo', 'b/b'), qr/^$stored/, 'the bytes are free');
is(usage('repo', 'b/b') =~ s/^\d+ //r, '1000 1', 'to the byte');
sums('collected');

# a repo that is deleted with all of its files

my $gone = 'int8send(' . $t->sql('SELECT id FROM xet.repos'
	. " WHERE name = 'a/a'") . '::bigint)';

is($t->sql("SELECT xet.repo_delete('a/a')"), 't', 'a repo is deleted');
collect();
is(usage('repo', 'a/a'), '', 'usage does not list it');
sums('deleted');

# the sums of a deleted repo are deleted when they are zero and no transaction
# changes them

{
	my $rows = "SELECT count(*) FROM xet.usage WHERE owner = $gone";
	my $live = $t->sql('SELECT count(*) FROM xet.usage'
		. " WHERE owner <> $gone");

	cmp_ok($t->sql($rows), '>', 0, 'its sums still exist');

	my $busy = $t->pg_session();

	$busy->run("BEGIN; SELECT id FROM xet.usage WHERE owner = $gone"
		. ' FOR NO KEY UPDATE');
	is($t->sql('SELECT xet.usage_forget()'), 0,
		'a transaction is counting');
	$busy->run("SELECT xet.usage_add(ARRAY[$gone], 7, 0, 0)");
	$busy->run('COMMIT');
	is($t->sql('SELECT xet.usage_forget()'), 0, 'the sums are not zero');

	$busy->run("BEGIN; SELECT id FROM xet.usage WHERE owner = $gone"
		. ' FOR NO KEY UPDATE');
	$t->sql("SELECT xet.usage_add(ARRAY[$gone], -7, 0, 0)");
	$busy->run('COMMIT');
	$busy->close();
	cmp_ok($t->sql($rows), '>', 1, 'several rows, zero in total');
	$t->sql('SELECT xet.sweep()');
	is($t->sql($rows), 0, 'the sweep deletes them');
	is($t->sql("SELECT count(*) FROM xet.usage WHERE owner <> $gone"),
		$live, 'and no other rows');
	sums('forgotten');
}

# --------------------------------------------------------------------------
# a repair with another encoding

my $text = 'all work and no play ' x 20000;
my $packed = make_xorb($text, scheme => 'lz4');
my $plain = make_xorb($text, scheme => 'none');

is($packed->{hash}, $plain->{hash}, 'one xorb, two encodings');
is(xorb('e/e@eve', $packed)->{status}, 200, 'the small one');
is(usage('repo', 'e/e'), "$packed->{stored_size} 0 0", 'charged');

$t->put_copy($t->copy($packed->{hash}), 'damaged');
$t->allow(qr/is missing or has another size|is damaged|has \d+ bytes/);
limit('repo', 'e/e', $packed->{stored_size}, undef);
is(xorb('f/f@fay', $plain)->{status}, 200, 'healed by another repo');
is(usage('repo', 'e/e'), "$plain->{stored_size} 0 0",
	'charged with the new size');
is(usage('repo', 'f/f'), '0 0 0', 'the repairing repo is not charged');
sums('healed');

# --------------------------------------------------------------------------
# other operations, and wrong sums, which a recount finds

limit('repo', 'e/e', undef, undef);
$t->sql("DELETE FROM xet.files WHERE size = 1000");
is(usage('repo', 'b/b') =~ s/^\d+ //r, '0 0', 'a deleted row');
sums('by hand');

$t->sql("UPDATE xet.usage SET stored = stored + 5, files = files - 1
	WHERE owner = int8send((SELECT id FROM xet.repos
	WHERE name = 'e/e'))");
is($t->sql('SELECT kind, name, stored, logical, files'
	. ' FROM xet.usage_recount()') =~ tr/|/ /r, 'repo e/e -5 0 1',
	'a recount returns the wrong sums');
sums('recounted');

# --------------------------------------------------------------------------
# the command-line tool

$ENV{XET_POSTGRES} = $t->conninfo();

is(cli('--repo', 'e/e', '--set', 'stored=1K,logical=3G'), '',
	'xet usage --set');
is_deeply(JSON::PP::decode_json(cli(qw! --json --repo e/e !)), { repo => 'e/e',
	files => 0, deduplicated => 0, metadata => { used => 0 },
	logical => { used => 0,
	limit => 3 * 1024 ** 3, left => 3 * 1024 ** 3 }, stored => {
	used => $plain->{stored_size}, limit => 1024, left => 0 } },
	'usage as JSON');
is(cli(qw! --repo * --set logical=0 !), '', 'a default for all repos');
over(put('h/h', random_bytes(9, 100)), 'nothing', quota => 'repo',
	bytes => 'logical', limit => 0, used => 0, left => 0);
is(cli(qw! --repo * --set none !), '', 'no limit any more');
is(cli(qw! --subject eve --issuer me --set stored=5 !), '', 'a subject');
is($t->sql("SELECT owner = '\\x6d6500657665' FROM xet.quotas"
	. " WHERE kind = 'subject'"), 't', 'with its issuer');
is(cli(qw! --subject eve --issuer me --set none !), '', 'a limit is removed');
like(cli(), qr/^repo +0 +0 +\d+ +$plain->{stored_size} +1024 .* e\/e$/m,
	'a table');
like(cli(), qr/^store .* xorbs \d+, bytes charged to nobody \d+, bytes to be/m,
	'and the store');

$t->sql("UPDATE xet.usage SET logical = logical + 7
	WHERE owner = int8send((SELECT id FROM xet.repos
	WHERE name = 'e/e'))");
is(cli('--recount'),
	"repo    files +0 logical -7 stored +0 metadata +0 e/e\n",
	'xet usage --recount');
is(cli('--recount'), '', 'once');

for my $bad ([ '--set', 'none' ], [ qw/ --repo a --set 5 / ],
	[ qw/ --repo a --set stored=5X / ], [ qw/ --repo a --set stored= / ],
	[ qw/ --repo a --set stored=99999999999999999999 / ],
	[ qw/ --repo a --set stored=9999999P / ],
	[ '--repo', 'a', '--set', 'stored=1,logical' ],
	[ qw/ --repo a --subject b / ], [ qw/ --issuer b / ])
{
	is(xet($t, 'usage', @$bad)->{code}, 2, "usage: @$bad");
}

is($t->sql("SELECT xet.repo_create('g/g')"), 't', 'a repo created by SQL');
is($t->sql("SELECT count(*) FROM xet.usage_list()
	WHERE name = 'g/g' AND logical = 0"), 1, 'is listed');

# --------------------------------------------------------------------------
# the owners to charge are looked up in batches, however many xorbs a file has

my ($many, $few) = map { $t->sql(<<EOF_SQL) } 9, 2;
WITH f AS (
    INSERT INTO xet.files (hash, size, term_count, packed)
    VALUES (sha256('file $_'), 1, 0, '') RETURNING id
), x AS (
    INSERT INTO xet.xorbs (hash, chunk_count, raw_size, stored_size,
                           chunk_hashes, raw_ends, stored_ends)
    SELECT sha256(textsend('xorb $_ ' || i)), 1, 1, 1,
           sha256(textsend('chunk $_ ' || i)), '\\x01000000', '\\x01000000'
      FROM generate_series(1, $_) AS i
    RETURNING id
), u AS (
    SELECT f.id AS file_id, x.id AS xorb_id FROM f, x
)
SELECT json_build_object('file', min(u.file_id), 'xorbs',
                         json_agg(u.xorb_id))
  FROM u
EOF_SQL

for my $made (map { JSON::PP::decode_json($_) } $many, $few) {
	$t->sql("INSERT INTO xet.file_xorbs (file_id, xorb_id) SELECT"
		. " $made->{file}, x FROM unnest('{"
		. join(',', @{ $made->{xorbs} }) . "}'::bigint[]) AS x");
	$t->sql('INSERT INTO xet.charges (xorb_id, bytes) SELECT x, 1 FROM'
		. " unnest('{" . join(',', @{ $made->{xorbs} })
		. "}'::bigint[]) AS x");
	$t->sql('INSERT INTO xet.repo_files (repo_id, file_id) SELECT id,'
		. " $made->{file} FROM xet.repos WHERE name = 'g/g'");
	$t->sql("INSERT INTO xet.usage_left (file_id) VALUES ($made->{file})");
}

my @charged;

for (1 .. 20) {
	my $seen = $t->sql('SELECT xet.usage_settle(4)');

	push @charged, $t->sql('SELECT count(*) FROM xet.charges WHERE'
		. " repo_id = (SELECT id FROM xet.repos WHERE name = 'g/g')");

	last if $seen == 0;
}

is($charged[-1], 11, 'all are charged to users');
cmp_ok($charged[0], '<=', 8, 'in batches');
is($t->sql('SELECT count(*) FROM xet.usage_left'), 0, 'no entry stays');

# --------------------------------------------------------------------------
# the planner overestimates the cost of the counting statements so much that it
# would use JIT

$t->sql($_) for 'ALTER SYSTEM SET jit = on', 'SELECT pg_reload_conf()',
	'CREATE TABLE public.seen (jit text)',
	'GRANT ALL ON public.seen TO PUBLIC',
	<<'EOF_SQL', <<'EOF_SQL';
CREATE FUNCTION public.seen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.seen VALUES (current_setting('jit'));
    RETURN NEW;
END;
$$
EOF_SQL
CREATE TRIGGER seen AFTER INSERT ON xet.repo_files
    FOR EACH ROW EXECUTE FUNCTION public.seen()
EOF_SQL

$t->sql('SELECT pg_sleep(0.1)') until $t->sql('SHOW jit') eq 'on';

is(put('g/g', random_bytes(77, 1000))->{status}, 200, 'a file, with jit on');
is($t->sql('SELECT DISTINCT jit FROM public.seen'), 'off',
	"the server's sessions do not use jit");

$t->done();

# --------------------------------------------------------------------------

sub cli {
	my $x = xet($t, 'usage', @_);

	diag($x->{err}) if $x->{code};

	return $x->{out};
}

sub put {
	my ($who, $bytes, $more) = @_;

	return $t->http('PUT', '/api/v1/files',
		{ %{ $t->auth('write', $who) }, %{ $more || {} } }, \$bytes);
}

sub xorb {
	my ($who, $xorb) = @_;

	return $t->post("/api/v1/xorbs/default/$xorb->{hash}",
		\$xorb->{bytes}, $t->auth('write', $who));
}

sub shard_of {
	my ($xorb, $start, $end) = @_;

	return make_shard({ files => [ { verification => JSON::PP::true,
		terms => [ { xorb => $xorb->{hash}, start => $start,
			end => $end, chunks =>
			[ @{ $xorb->{chunks} }[$start .. $end - 1] ] } ]
		} ], xorbs => [] });
}

sub make_file { return shard_of(@_)->{files}[0]{hash} }

sub shard {
	my ($who, $xorb, $start, $end, $uri) = @_;

	return $t->post($uri // '/api/v1/shards',
		\shard_of($xorb, $start, $end)->{bytes},
		$t->auth('write', $who));
}

# Sends the headers of an upload.  Returns the response that comes before the
# body, or nothing if the server waits for the body.

sub early {
	my ($method, $uri, $size, $who) = @_;

	my $c = $t->http_start($method, $uri, { 'Content-Length' => $size,
		%{ $t->auth('write', $who) } }, '');
	my $r = $c->response($method, timeout => 3);

	$c->close();

	return $r->{status} ? $r : ();
}

sub over {
	my ($r, $name, %want) = @_;

	is($r->{status}, 413, "$name: 413") or diag($r->{body});
	is($r->{reason}, $r->json()->{error}{message},
		"$name: the reason phrase, which hf_xet prints");

	my $error = eval { $r->json()->{error} } || {};

	is($error->{code}, 'quota_exceeded', "$name: code");
	like($error->{message}, qr/\b$want{left} of $want{limit} $want{bytes}/,
		"$name: text");
	is_deeply({ map { $_ => $error->{$_} } keys %want }, \%want,
		"$name: members");
}

sub usage {
	my ($kind, $name) = @_;

	$name = sha256_hex("\0$name") if $kind eq 'subject'
		&& $t->sql("SELECT count(*) FROM xet.quotas WHERE kind ="
			. " 'subject' AND owner = '\\x00' || '$name'::bytea")
		== 0;
	$name = "/$name" if $kind eq 'subject' && length($name) != 64;

	return $t->sql("SELECT stored, logical, files FROM xet.usage_list()"
		. " WHERE kind = '$kind' AND name = '$name'") =~ tr/|/ /r;
}

sub limit {
	my ($kind, $name, @limits) = @_;

	my ($n, $s, $l) = map { defined ? "'$_'" : 'NULL' } $name, @limits;

	$t->sql("SELECT xet.quota_set('$kind', $n, NULL, $s, $l)");
}

sub settle {
	1 while $t->sql('SELECT xet.usage_settle(1000)');
}

sub collect {
	1 while $t->sql('SELECT files + refs FROM xet.gc_files(1000)');
	1 while $t->sql("SELECT xorbs FROM xet.gc_xorbs('0', 1000)");
	settle();
}

# Checks that a recount finds no wrong sums, and that each xorb is charged once:
# to a repo with a file that uses the xorb, if such a repo exists.

sub sums {
	my ($name) = @_;

	is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
		"$name: sums are right");
	is($t->sql('SELECT sum(stored_size) FROM xet.xorbs'),
		$t->sql('SELECT sum(bytes) FROM xet.charges'),
		"$name: each xorb is charged once");
	is($t->sql(<<'EOF_SQL'), 0, "$name: to owners that use it");
SELECT count(*)
  FROM xet.charges c
 WHERE EXISTS (SELECT FROM xet.file_xorbs fx
                 JOIN xet.repo_files rf ON rf.file_id = fx.file_id
                WHERE fx.xorb_id = c.xorb_id)
   AND NOT EXISTS (SELECT FROM xet.file_xorbs fx
                     JOIN xet.repo_files rf ON rf.file_id = fx.file_id
                    WHERE fx.xorb_id = c.xorb_id AND rf.repo_id = c.repo_id)
EOF_SQL
}
