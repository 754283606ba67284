#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Invalid shards: each gets a 4xx response in JSON and one line in the error
# log, and stores nothing.  The next valid shard is accepted.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ root slurp /;
use Test::Xet::Refusal;

use JSON::PP ();
use Time::HiRes qw/ sleep /;

my $t = Test::Xet->new(log => 'info');

$t->run();
$t->fds_mark();

my $one = '200 {"result":1}';
my $zero = '200 {"result":0}';

# --------------------------------------------------------------------------
# a xorb of five chunks; a xorb of three chunks, which is never uploaded; and a
# valid shard

sub xorb {
	my ($seed, $chunks, $size, %o) = @_;

	my $data = random_bytes($seed, $chunks * $size);
	my @how = (scheme => 'none', sizes => [ $size ]);

	return $o{absent} ? make_xorb($data, @how)
		: $t->put_xorb($data, @how);
}

my $x = xorb(1, 5, 100);
my $absent = xorb(2, 3, 100, absent => 1);

my $file = {
	verification => JSON::PP::true, sha256 => 'ab' x 32, terms => [
		{ xorb => $x->{hash}, start => 0, end => 5 },
		{ xorb => $x->{hash}, start => 1, end => 3 }
	]
};

my $good = make_shard({ files => [ $file ], xorbs => [ $x ] })->{bytes};

# Offsets in the shard: header, file, segments, verification, metadata, end,
# xorb, its chunks, end.

my %at = (file => 48, segment => 96, second => 144, verification => 192,
	metadata => 288, end => 336, xorb => 384, chunks => 432, last => 672);
my $length = 720;

is(length($good), $length, 'a good shard');

# Shards that are valid; each has one term more than the previous one.

my $n = 2;

sub next_good {
	return make_shard({ files => [ { terms => [ ($file->{terms}[1]) x ++$n ]
		} ], xorbs => [ $x ] })->{bytes};
}

my @next = map { next_good() } 1 .. 20;

# Returns the row counts of all tables, "files 1 terms 0 ...", by a session that
# stays open.

my @tables = sort keys %{ $t->rows() };
my $session = $t->pg_session();

sub rows {
	return join(' ', map { split /\|/ } split(/\n/, $session->run(
		join(' UNION ALL ', map {
			"SELECT '$_', count(*) FROM xet.$_" } @tables)
		. ' ORDER BY 1')));
}

sub row_count {
	my ($table) = @_;

	return (rows() =~ /(?:^| )\Q$table\E (\d+)/)[0];
}

my $refusal = Test::Xet::Refusal->new($t);
my @seen;

sub send_shard {
	my ($bytes, %o) = @_;

	return $refusal->send($o{uri} || '/api/v1/shards', $bytes, %o);
}

my $few = 0;
my $rows = rows();

# Sends an invalid shard, then a valid one.  Returns what is wrong with the
# responses, '' if nothing is.

sub refusal {
	my ($code, $bytes, %o) = @_;

	$refusal->lines();

	my $r = send_shard($bytes, %o);
	my @wrong = $refusal->wrong($r, 400, $code,
		frame => $code eq 'unknown_xorb'
			&& ($o{uri} // '') eq '/api/v2/shards');
	my $now = rows();

	push @wrong, "rows: $now" if $now ne $rows;

	return join('; ', @wrong) if $o{few} && ++$few % 10;

	my $next = @next && !$o{few} ? shift(@next) : undef;

	$r = send_shard($next // $good);

	push @wrong, "then $r->{status} $r->{body}"
		unless $r->{status} == 200 && (!$next || $r->{body} =~ /1/);
	$rows = rows();

	return join('; ', @wrong);
}

sub bad {
	my ($name, $code, $bytes) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(refusal($code, $bytes), '', $name);
	is(refusal($code, $bytes, chunked => 100, few => 1), '',
		"$name, chunked");
	is(refusal($code, $bytes, uri => '/api/v2/shards', few => 1), '',
		"$name, v2");
}

# Returns the valid shard with some bytes replaced.

sub with {
	my ($offset, $format, $value) = @_;

	my $bytes = $good;
	my $field = pack($format, $value);

	substr($bytes, $offset, length($field)) = $field;

	return $bytes;
}

# Returns a shard whose description differs in one file.

sub shard {
	my ($change, %o) = @_;

	my %file = %$file;
	my @terms = map { { %$_ } } @{ $file->{terms} };

	$file{terms} = \@terms;
	$change->(\%file);

	return make_shard({ files => [ \%file ], xorbs => [ $x ], %o })
		->{bytes};
}

# --------------------------------------------------------------------------
# the format

bad('no bytes', 'invalid_shard', '');
bad('text', 'invalid_shard', "hello, world\n" x 100);
bad('zeros', 'invalid_shard', "\0" x 1000);
bad('noise', 'invalid_shard', random_bytes(3, 5000));
bad('much noise', 'invalid_shard', random_bytes(3, 3 << 20));
bad('0xff', 'invalid_shard', "\xff" x 1000);
bad('a xorb', 'invalid_shard', make_xorb(random_bytes(4, 1000))->{bytes});

my %wrong;

for my $i (0 .. 31) {
	my $wrong = refusal('invalid_shard', with($i, 'C',
		ord(substr($good, $i, 1)) ^ 1), few => 1);
	$wrong{$i} = $wrong if $wrong ne '';
}

is_deeply(\%wrong, {}, 'each byte of the tag');

for my $version (0, 1, 3, 0x0200, '8589934594', '18446744073709551615') {
	bad("version $version", 'invalid_shard', with(32, 'Q<', $version));
}

# counts

for my $count (1, 3, 4, 5, 100, 0xffff, 1 << 26, (1 << 26) + 1, 0x7fffffff,
	0x80000000, 0xffffffff)
{
	bad("$count segments", 'invalid_shard',
		with($at{file} + 36, 'V', $count));
}

bad('no segments', 'invalid_shard', with($at{file} + 36, 'V', 0));

for my $count (4, 6, 8192, 8193, 0x80000000, 0xffffffff) {
	bad("$count chunks", 'invalid_shard',
		with($at{xorb} + 36, 'V', $count));
}

# records

bad('no end of the files', 'invalid_shard', substr($good, 0, $at{end})
	. substr($good, $at{xorb}));
bad('no end of the xorbs', 'invalid_shard', substr($good, 0, $at{last}));
bad('no ends at all', 'invalid_shard', substr($good, 0, $at{end}));
bad('a bad end', 'invalid_shard', with($at{end} + 31, 'C', 0xfe));
bad('a bad end, after the hash', 'invalid_shard', with($at{end} + 47, 'C', 1));
bad('a bad last end', 'invalid_shard', with($at{last} + 40, 'C', 1));
bad('half a record', 'invalid_shard', substr($good, 24));

for my $end (0, 1, 8193, 0xffffffff) {
	bad("chunk 1 to $end", 'invalid_shard',
		with($at{second} + 44, 'V', $end));
}

bad('chunk 0xffffffff', 'invalid_shard',
	with($at{second} + 40, 'V', 0xffffffff));

bad("a segment of $_ bytes", 'invalid_shard', with($at{second} + 36, 'V', $_))
	for 0, (1 << 30) + 1, 0xffffffff;
bad("a chunk of $_ bytes", 'invalid_shard', with($at{chunks} + 36, 'V', $_))
	for 0, 131073, 0xffffffff;

bad('without the flag of verification', 'invalid_shard',
	with($at{file} + 32, 'V', 0x40000000));

# --------------------------------------------------------------------------
# shards truncated at any byte

%wrong = ();

for my $len (1 .. $length - 1) {
	my $wrong = refusal('invalid_shard', substr($good, 0, $len), few => 1,
		$len % 2 ? (chunked => 1) : ());

	$wrong{$len} = $wrong if $wrong ne '';
}

is_deeply(\%wrong, {}, "truncated at each of $length bytes");

# --------------------------------------------------------------------------
# the contents

bad('a term past its xorb', 'invalid_shard', shard(sub {
	$_[0]{terms}[1] = { xorb => $x->{hash}, start => 4, end => 6,
		raw_length => 200, chunks => $x->{chunks} };
}));
bad('a term after the end of its xorb', 'invalid_shard', shard(sub {
	$_[0]{terms}[1] = { xorb => $x->{hash}, start => 5, end => 6,
		raw_length => 100, chunks => [ $x->{chunks}[0] ] };
}));
bad('a term of 8,192 chunks', 'invalid_shard', shard(sub {
	$_[0]{terms}[1] = { xorb => $x->{hash}, start => 0, end => 8192,
		raw_length => 500, chunks => $x->{chunks} };
}));

for my $len (1, 199, 201, 300, 1 << 30) {
	bad("a term of $len bytes", 'invalid_shard', shard(sub {
		$_[0]{terms}[1]{raw_length} = $len;
	}));
}

bad('a wrong verification hash', 'verification_failed', shard(sub {
	$_[0]{terms}[0]{verification} = 'ab' x 32;
}));
bad('a wrong verification hash at the end', 'verification_failed', shard(sub {
	$_[0]{terms}[1]{verification} = '0' x 64;
}));
bad('verification hashes in another order', 'verification_failed',
	substr($good, 0, $at{verification})
	. substr($good, $at{verification} + 48, 48)
	. substr($good, $at{verification}, 48) . substr($good, $at{metadata}));

for my $i (0, 31) {
	bad("byte $i of a verification hash", 'verification_failed',
		with($at{verification} + $i, 'C',
		ord(substr($good, $at{verification} + $i, 1)) ^ 0x80));
	bad("byte $i of the file hash", 'hash_mismatch', with($at{file} + $i,
		'C', ord(substr($good, $at{file} + $i, 1)) ^ 0x80));
}

bad('another file hash', 'hash_mismatch', shard(sub {
	$_[0]{hash} = 'cd' x 32;
}));
bad('the hash of the empty file', 'hash_mismatch', shard(sub {
	$_[0]{hash} = '0' x 64;
}));
bad('the hash of the xorb', 'hash_mismatch', shard(sub {
	$_[0]{hash} = $x->{hash};
}));
bad('another hash, not verified', 'hash_mismatch', shard(sub {
	$_[0]{hash} = 'cd' x 32;
	$_[0]{verification} = JSON::PP::false;
}));
bad('terms in another order', 'hash_mismatch',
	substr($good, 0, $at{segment}) . substr($good, $at{second}, 48)
	. substr($good, $at{segment}, 48)
	. substr($good, $at{verification} + 48, 48)
	. substr($good, $at{verification}, 48) . substr($good, $at{metadata}));
bad('other chunks, well verified', 'hash_mismatch', with($at{file}, 'a32',
	substr(shard(sub { pop @{ $_[0]{terms} } }), $at{file}, 32)));

# a file without bytes whose hash is not that of the empty file

bad('an empty file of another hash', 'invalid_shard', make_shard({
	files => [ { terms => [], hash => 'ab' x 32 } ] })->{bytes});
bad("an empty file with the draft's hash", 'invalid_shard', make_shard({
	files => [ { terms => [], hash => '638a6bc391964a85939d48f008e8bdba'
		. 'e6a7975e7ca2d87a3ce2492f4e4d8a4c' } ] })->{bytes});

# xorbs

sub of_absent {
	return make_shard({ files => [ { verification => JSON::PP::true,
		terms => [ @{ $file->{terms} }, {
			xorb => $absent->{hash}, start => 0, end => 3,
			chunks => $absent->{chunks} } ] } ], xorbs => [ $x ],
		@_ })->{bytes};
}

bad('an unknown xorb', 'unknown_xorb', of_absent());
bad('an unknown xorb that is listed', 'unknown_xorb',
	of_absent(xorbs => [ $x, $absent ]));
for my $version (1, 2) {
	my $made = make_shard({ files => [ { verification => JSON::PP::true,
		terms => [ @{ $file->{terms} }, { xorb => $absent->{hash},
			start => 0, end => 3, chunks => $absent->{chunks} } ]
		} ], xorbs => [ $x ] });
	my ($name) = map { $_->{hash} } @{ $made->{files} };

	my $r = $t->post("/api/v$version/shards", $made->{bytes});
	my $told = $version == 1 ? $r->json()->{error}{message}
		: $r->frames()->[-1]{data}{message};

	is($told, "a term of file $name refers to xorb $absent->{hash}, which "
		. 'is not stored here, or which you may not use; the Xet '
		. 'cache of this machine may still list it: upload again, and '
		. 'if that fails too, remove HF_XET_CACHE (by default xet in '
		. 'HF_HOME, ~/.cache/huggingface/xet)',
		"v$version: file and xorb are named");
}

# hf_xet shows the reason phrase of a status; only this response has its own
# phrase

for my $uri ('v1/shards', 'shards', "shard/default/$absent->{hash}") {
	is($t->post("/api/$uri", of_absent())->{reason}, 'Unknown Xorb; upload '
		. 'again, or remove HF_XET_CACHE (~/.cache/huggingface/xet)',
		"$uri: reason phrase");
}

{
	my $c = $t->connect();
	my @r = map { $c->exchange('POST', '/api/v1/shards', {}, \$_) }
		of_absent(), $good, 'x' x 100;

	is_deeply([ map { "$_->{status} $_->{reason}" =~ s/;.*//sr } @r ],
		[ '400 Unknown Xorb', '200 OK', '400 Bad Request' ],
		'other reason phrases, same connection');
	$c->close();
}

bad('a chunk of that name is no xorb', 'unknown_xorb', shard(sub {
	$_[0]{terms} = [ { xorb => $x->{chunks}[0]{hash}, start => 0, end => 1,
		chunks => [ $x->{chunks}[0] ] } ];
}));
bad('the zero hash is no xorb', 'unknown_xorb', shard(sub {
	$_[0]{terms} = [ { xorb => '0' x 64, start => 0, end => 1,
		chunks => [ $x->{chunks}[0] ] } ];
}));

# two files in a shard, of which one is valid

bad('verified and not', 'invalid_shard', make_shard({ xorbs => [ $x ],
	files => [ $file, { %$file, verification => JSON::PP::false,
		terms => [ $file->{terms}[0] ] } ] })->{bytes});
bad('not verified and verified', 'invalid_shard', make_shard({
	xorbs => [ $x ], files => [
		{ verification => JSON::PP::false,
			terms => [ $file->{terms}[0] ] }, $file
	] })->{bytes});
bad('a good file and a bad one', 'hash_mismatch', make_shard({
	xorbs => [ $x ], files => [ { terms => [ ($file->{terms}[0]) x 7 ] },
		{ %$file, hash => 'ab' x 32 } ] })->{bytes});
bad('a bad file and a good one', 'hash_mismatch', make_shard({
	xorbs => [ $x ], files => [ { %$file, hash => 'ab' x 32 },
		{ terms => [ ($file->{terms}[0]) x 7 ] } ] })->{bytes});

# shards of other clients, whose xorbs are not stored here

SKIP: {
	my $dir = ($ENV{XET_TEST_DATA} || root() . '/../shared/data') . '/xet';
	my @files = map { "$dir/$_" } 'hf_xet-client-shards/'
		. 'one-file-one-chunk.no-footer.shard',
		map { "xet-spec-reference-files/ev-population.csv.shard$_" }
			'', '.verification', '.verification-no-footer';

	skip 'reference data absent', 3 * @files unless -f $files[0];
	bad($_, 'unknown_xorb', slurp($_)) for @files;
}

# --------------------------------------------------------------------------
# large shards: batches are in xet.staged when the end of the shard is invalid

my $w = xorb(5, 5000, 12);

sub large {
	my ($files, $last) = @_;

	return make_large_shard($w, [ (map { [ [ $_, $_ + 1 ] ] }
		0 .. $files - 1), [ [ 0, 2 ] ] ], last => $last)->{bytes};
}

$t->pg()->count_inserts('xet.staged');

my $bad = large(4999, '"hash":"' . 'ab' x 32 . '",');
$rows = rows();

for my $uri (qw! /api/v1/shards /api/v2/shards !) {
	$refusal->lines();

	my $r = $t->post($uri, \$bad, {}, timeout => 30);
	my @lines = $refusal->lines();

	# on a slow machine the server has already sent frames

	if ($r->{status} == 200) {
		is($r->frames()->[-1]{data}{type}, 'error', "$uri: a frame");

	} else {
		is($r->{status}, 400, "$uri: a bad last file");
		is($r->json()->{error}{code}, 'hash_mismatch', 'its code');
	}

	is(scalar @lines, 1, 'one line') or diag("@lines");
	ok(wait_for(5, sub { !row_count('staged') }), 'nothing staged');
	is(rows(), $rows, 'nothing registered');
}

cmp_ok($t->pg()->inserted(), '>', 0, 'rows were staged');

# a client that disconnects while a batch is being staged: a trigger blocks it

$t->sql('CREATE FUNCTION xet.hold() RETURNS trigger LANGUAGE plpgsql AS'
	. ' $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$');
$t->sql('CREATE TRIGGER hold BEFORE INSERT ON xet.staged FOR EACH ROW'
	. ' EXECUTE FUNCTION xet.hold()');

for my $how (qw/ close abort /) {
	my $hold = $t->pg_session();
	$hold->run('SELECT pg_advisory_lock(7)');

	my $c = $t->http_start('POST', '/api/v1/shards',
		{ 'Content-Length' => length($bad) }, $bad);

	ok(wait_for(10, sub { $t->sql("SELECT count(*) FROM pg_stat_activity"
		. " WHERE wait_event = 'advisory'") }), "$how: blocked");
	$c->$how();
	sleep(0.2);
	$hold->run('SELECT pg_advisory_unlock(7)');
	$hold->close();

	ok(wait_for(5, sub { !$t->sql("SELECT count(*) FROM pg_stat_activity"
		. " WHERE usename = 'xet' AND state <> 'idle'") }),
		'the session is idle');
	ok(wait_for(3, sub { !row_count('staged') }),
		"$how: nothing staged");
	is(rows(), $rows, "$how: nothing registered");
	$t->sql('DELETE FROM xet.staged');
}

$t->sql('DROP TRIGGER hold ON xet.staged');

# a valid shard with the same contents is accepted

my $files = row_count('files');

is($t->post('/api/v1/shards', large(4999), {}, timeout => 30)->{body},
	'{"result":1}', 'a valid shard after that');
is(row_count('files'), $files + 5000, 'its rows');
is(row_count('staged'), 0, 'nothing staged');

# --------------------------------------------------------------------------
# a xorb that is deleted between the verification and the commit

my $gone = xorb(6, 3, 100);
my $body = make_shard({ files => [ { terms => [ { xorb => $gone->{hash},
	start => 0, end => 3 } ] } ], xorbs => [ $gone ] })->{bytes};

$rows = rows();
$refusal->lines();

my $lock = $t->pg_lock('xet.files', 'SHARE');
my $plain = plain_hash($gone->{hash});

my $c = $t->http_start('POST', '/api/v1/shards',
	{ 'Content-Length' => length($body) }, $body);
ok(wait_for(10, sub { $t->pg_blocked() }), 'blocked');
$t->sql("DELETE FROM xet.xorbs WHERE hash = '\\x$plain'");
$lock->unlock();

my $r = $c->response('POST');
is($r->{status}, 400, 'a deleted xorb');
is($r->json()->{error}{code}, 'unknown_xorb', 'its code');
is(scalar(@seen = $refusal->lines()), 1, 'one line') or diag("@seen");
$c->close();

$rows =~ s/\b(xorbs|charges|xorb_names) (\d+)/"$1 " . ($2 - 1)/eg;
is(rows(), $rows, 'nothing registered');

is(send_shard($good)->{status}, 200, 'the good one once more');
$refusal->close();

# --------------------------------------------------------------------------
# methods and sizes

$r = $t->post('/api/v1/shards/x', $good);
is($r->{status}, 404, 'no such route');
is($r->json()->{error}{code}, 'no_route', 'JSON');

$refusal->lines();
$r = $t->post('/api/v1/shards', undef, { 'Content-Length' => 81 << 20 });
is($r->{status}, 413, 'too large');
is($r->json()->{error}{code}, 'body_too_large', 'JSON');
is(scalar(@seen = $refusal->lines()), 1, 'one line') or diag("@seen");

is(scalar(() = $t->files_in_store()), 3, 'only files of xorbs');

$t->done();
