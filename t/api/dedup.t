#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Global dedup: which chunks are known, and the form of a dedup response.
#
# "trap N" in names: docs/protocol.md numbers the traps.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

my $t = Test::Xet->new(workers => 2);

$t->run();
$t->fds_mark();

my $none = '0123456789abcdef' x 4;

sub query {
	my ($hash, %o) = @_;

	my $prefix = $o{prefix} // 'default';

	return $t->get("/api/v1/chunks/$prefix/$hash", $o{headers});
}

sub missing {
	my ($name, $hash, %o) = @_;

	my $r = query($hash, %o);
	is_deeply($r->refusal(), [ 404, 'application/json',
		'chunk_not_found' ], $name);
}

sub eligible {
	return (hex(substr($_[0], -3)) & 0x3ff) == 0;
}

# Checks every byte of a response: all fields that a client reads, and the
# fields that must be zero.

sub hit {
	my ($name, $hash, $xorb, %o) = @_;

	my $r = query($hash, %o);
	my $body = $r->{body};

	is($r->{status}, 200, "$name: status") or return;
	is($r->header_value('Content-Type'), 'application/octet-stream',
		"$name: type");

	my $n = @{ $xorb->{chunks} };
	my $parsed = parse_shard($body);
	my $end = 48 * 3;

	$end += 48 * (1 + @{ $_->{chunks} }) for @{ $parsed->{xorbs} };

	is(length($body), $end + 200, "trap 18: $name: size") or return;

	my $tag = "HFRepoMetaData\0"
		. pack('H*', '556967456a7b815783a5bdd95ccdd14aa9');
	my $bookend = "\xff" x 32 . "\0" x 16;

	is(substr($body, 0, 48), $tag . pack('Q<2', 2, 200),
		"trap 18: $name: header");
	ok(substr($body, 48, 48) eq $bookend,
		"trap 18: $name: empty file section");
	ok(substr($body, $end - 48, 48) eq $bookend,
		"trap 18: $name: end of the CAS info section");

	my @footer = unpack('Q<9 a32 Q<2 a48 Q<4', substr($body, $end));

	is_deeply([ @footer[0 .. 8] ], [ 1, 48, 96, ($end, 0) x 3 ],
		"trap 18: $name: version and offsets");
	is($footer[12], "\0" x 48, "$name: spare bytes");
	is($footer[16], $end, "trap 18: $name: footer offset");

	my ($key, $created, $expires) = @footer[9, 10, 11];

	isnt($key, "\0" x 32, "$name: a key");
	isnt($key, "\xd0" x 32, "$name: not the secret itself");
	cmp_ok($created, '<=', time(), "$name: created");
	cmp_ok($expires, '>=', time() + 7 * 86400 - 5, "$name: expiry")
		if !$o{period};
	cmp_ok($expires, '<=', time() + 15 * 86400, "$name: not for ever");

	my $got = $parsed->{xorbs}[0];

	is(@{ $parsed->{xorbs} }, $o{xorbs} || 1, "$name: xorbs");
	is(@{ $parsed->{files} }, 0, "$name: no file");
	is_deeply([ @$got{qw/ hash flags raw_size stored_size /} ],
		[ $xorb->{hash}, 0, $xorb->{raw_size}, $xorb->{stored_size} ],
		"$name: the xorb");

	is_deeply([ map { [ $_->{raw_start}, $_->{raw_length} ] }
		@{ $got->{chunks} } ],
		[ map { [ $_->{raw_start}, $_->{raw_length} ] }
		@{ $xorb->{chunks} } ], "trap 40: $name: lengths in order");

	$key = unpack('H*', $key);

	my @rows = $n <= 20 ? 0 .. $n - 1 : (0, 1, $n - 1,
		grep { $xorb->{chunks}[$_]{hash} eq $hash } 0 .. $n - 1);

	is_deeply([ map { $got->{chunks}[$_]{hash} } @rows ],
		[ map { keyed_hash($key, $xorb->{chunks}[$_]{hash}) } @rows ],
		"trap 40: $name: keyed hashes in order");
	is(scalar(grep { index($body, raw_hash($_->{hash})) >= 0 }
		@{ $xorb->{chunks} }), 0, "$name: no chunk hash in clear");
	is(index($body, raw_hash($xorb->{hash})), 96,
		"$name: xorb hash in clear");

	return { key => $key, body => $body, expires => $expires,
		created => $created, parsed => $parsed, response => $r };
}

sub put_xorb {
	my ($data, %o) = @_;

	return $t->put_xorb($data, scheme => 'none', %o);
}

# --------------------------------------------------------------------------
# unknown chunks

for my $prefix (qw/ default default-merkledb x /) {
	missing("trap 17, 20: a miss under $prefix", $none,
		prefix => $prefix);
}

missing('trap 17: the zero hash', '0' x 64);
missing('trap 17: an eligible hash', '0' x 61 . '400');
is($t->head("/api/v1/chunks/default/$none")->{status}, 404, 'HEAD of a miss');

# --------------------------------------------------------------------------
# the first chunk of a file

my $data = mix(1, 900000);
my $chunks = hash_file($data)->{chunks};

missing('before the upload', $chunks->[0]{hash});

my $file = $t->upload($data, scheme => 'none');
my $xorb = $file->{xorbs}[0];
my $first = $xorb->{chunks}[0]{hash};

cmp_ok(scalar @{ $xorb->{chunks} }, '>', 5, 'chunks of the file');

my $answer = hit('first chunk', $first, $xorb);

is($answer->{response}->header_value('Cache-Control'),
	'private, max-age=3600', 'Cache-Control');
is($answer->{response}->header_value('Vary'), 'Authorization', 'Vary');

for my $prefix (qw/ default-merkledb default Other /) {
	ok(query($first, prefix => $prefix)->{body} eq $answer->{body},
		"trap 20: the same under $prefix");
}

ok(query(uc($first))->{body} eq $answer->{body}, 'trap 39: upper case');
ok(query($first, headers => { Range => 'bytes=0-9' })->{body}
	eq $answer->{body}, 'trap 1: Range is ignored');
is(query($first, headers => { Range => 'bytes=0-9' })->{status}, 200,
	'trap 1: Range: status 200');
is(query($first, headers => { 'If-None-Match' => '*' })->{status}, 200,
	'If-None-Match is ignored');

my $head = $t->head("/api/v1/chunks/default/$first");

is_deeply([ $head->{status}, $head->header_value('Content-Length') ],
	[ 200, length($answer->{body}) ], 'HEAD of a hit');

ok(wait_for(5, sub { $t->sql('SELECT count(*) FROM xet.xorbs'
	. ' WHERE advertised_on = xet.today()') == 1 }),
	'trap 21: the response is recorded');

for my $i (1 .. $#{ $xorb->{chunks} }) {
	my $hash = $xorb->{chunks}[$i]{hash};

	missing("chunk $i of the file", $hash) if !eligible($hash);
}

# --------------------------------------------------------------------------
# the key stays the same

my %bodies;

$bodies{query($first)->{body}}++ for 1 .. 30;
is(scalar keys %bodies, 1, 'trap 19: equal responses of all workers');

my ($other) = @{ $t->upload(mix(3, 200000))->{xorbs} };
my $second = hit('another file', $other->{chunks}[0]{hash}, $other);

is($second->{key}, $answer->{key}, 'trap 19: the same key');
is($second->{created}, $answer->{created}, 'trap 19: the same times');

$t->check_fds();

$t->reload();
ok(query($first)->{body} eq $answer->{body}, 'trap 19: after a reload');
$t->pg_restart();
wait_for(10, sub { query($first)->{status} == 200 });
ok(query($first)->{body} eq $answer->{body}, 'trap 19: after a restart');

# --------------------------------------------------------------------------
# chunks whose hash is 0 modulo 1024

my ($many, @marked);

for my $seed (100 .. 110) {
	my $bytes = random_bytes($seed, 8192 * 64);
	my $h = hash_file($bytes, sizes => [ 64 ]);

	@marked = grep { eligible($h->{chunks}[$_]{hash}) } 1 .. 8190;
	$many = $bytes;

	last if @marked >= 3;
}

cmp_ok(scalar @marked, '>=', 3, 'marked chunks');

# a xorb that no file uses

my $full = put_xorb($many, sizes => [ 64 ]);

for my $i (@marked[0 .. 2]) {
	hit("chunk $i of a full xorb", $full->{chunks}[$i]{hash}, $full);
}

missing('its first chunk, as no file begins with it',
	$full->{chunks}[0]{hash}) if !eligible($full->{chunks}[0]{hash});
missing('a chunk before a marked one',
	$full->{chunks}[$marked[0] - 1]{hash})
	if !eligible($full->{chunks}[$marked[0] - 1]{hash});

is($t->rows()->{chunks}, 2 + grep({ eligible($_->{hash}) }
	@{ $full->{chunks} }) + grep({ eligible($_->{hash}) } map {
	@{ $_->{chunks} }[1 .. $#{ $_->{chunks} }] } $xorb, $other),
	'no other chunk is in the index');

# --------------------------------------------------------------------------
# a chunk in several xorbs: the response has the longest run

my $run = $marked[-1];
my $mark = substr($many, 64 * $run, 64);
my $marked = $full->{chunks}[$run]{hash};
my $left = 8191 - $run;

sub around {
	my ($seed, $before, $after) = @_;

	return put_xorb(random_bytes($seed, 64 * $before) . $mark
		. random_bytes($seed + 1, 64 * $after), sizes => [ 64 ]);
}

my $short = around(200, 10, 2);

is(parse_shard(query($marked)->{body})->{xorbs}[0]{hash}, $left >= 2
	? $full->{hash} : $short->{hash}, 'a shorter run does not win');

my $longer = around(210, 3, $left + 5);
my $found = hit('a longer run', $marked, $longer);

around(220, 500, $left + 4);
is(parse_shard(query($marked)->{body})->{xorbs}[0]{hash}, $longer->{hash},
	'nor a longer xorb with a shorter run');

around(230, 1, $left + 5);
ok(query($marked)->{body} eq $found->{body}, 'nor a later run of equal length');

hit('the longest run', $marked, around(240, 0, $left + 6));

# --------------------------------------------------------------------------
# one chunk repeated: there is one row, with the first index

my $over = put_xorb(random_bytes(260, 64 * 2) . $mark x 8000, sizes => [ 64 ]);

is($t->sql("SELECT string_agg(idx::text, ',') FROM xet.chunks c"
	. " JOIN xet.xorbs x ON x.id = c.xorb_id"
	. " WHERE x.hash = '\\x" . unpack('H*', raw_hash($over->{hash}))
	. "' AND c.hash = '\\x" . unpack('H*', raw_hash($marked)) . "'"), 2,
	'a chunk 8,000 times: one row');
is(parse_shard(query($marked)->{body})->{xorbs}[0]{hash}, $over->{hash},
	'the run begins at the first');

my $rows = $t->rows()->{chunks};

is(($t->put_file(map { [ $over, $_, $_ + 1 ] } 2 .. 6))[1]{status}, 200,
	'a file that begins with the chunk');
is(($t->put_file([ $over, 9, 10 ]))[1]{status}, 200, 'at another index');
is($t->rows()->{chunks}, $rows, 'a shard adds no row');

# --------------------------------------------------------------------------
# a file that begins in the middle of a xorb

my $middle = put_xorb(random_bytes(300, 10 * 9000), sizes => [ 9000 ]);

sub put_file {
	return ($t->put_file(@_))[1]{status};
}

missing('before the file', $middle->{chunks}[4]{hash});
is(put_file([ $middle, 4, 6 ], [ $middle, 7, 9 ]), 200, 'file registered');
hit('first chunk of a first term', $middle->{chunks}[4]{hash}, $middle);
missing('first chunk of another term', $middle->{chunks}[7]{hash})
	if !eligible($middle->{chunks}[7]{hash});

# --------------------------------------------------------------------------
# a client that uses the response without verifying it

my $start = 0;
$start += $_->{raw_length} for @{ $xorb->{chunks} }[0 .. 2];

my $mine = substr($data, 0, $start) . random_bytes(400, 100000);
my @cut = @{ hash_file($mine, sizes => [
	map({ $_->{raw_length} } @{ $xorb->{chunks} }[0 .. 2]), 50000 ])
	->{chunks} };

# what the client knows after the response: keyed hash => xorb and index

my $shard = parse_shard(query($cut[0]{hash})->{body});
my %index;

for my $xorb (@{ $shard->{xorbs} }) {
	$index{$xorb->{chunks}[$_]{hash}} = [ $xorb->{hash}, $_ ]
		for 0 .. $#{ $xorb->{chunks} };
}

my @hits = map { $index{keyed_hash($shard->{footer}{key}, $_->{hash})} }
	@cut;

is_deeply([ map { $_ ? $_->[1] : undef } @hits ],
	[ 0, 1, 2, (undef) x (@cut - 3) ], 'chunks that are known');

my $new = put_xorb(substr($mine, $start), sizes => [ 50000 ]);
$shard = make_shard({ files => [ { terms => [
	{ xorb => $hits[0][0], start => 0, end => 3,
		chunks => [ @cut[0 .. 2] ] },
	{ xorb => $new->{hash}, start => 0,
		end => scalar @{ $new->{chunks} } }
] } ], xorbs => [ { %$new, data => '' } ] });

is($t->post('/api/v1/shards', \$shard->{bytes})->{body}, '{"result":1}',
	"registered with others' chunks");

my $d = $t->download($shard->{files}[0]{hash}, size => length($mine));

is_deeply($d->{errors}, [], 'its reconstruction');
ok($d->{data} eq $mine, 'its data');
is($d->{plan}{terms}[0]{hash}, $xorb->{hash}, 'and the xorb that it uses');

# --------------------------------------------------------------------------
# a file of several xorbs: its first chunk names all of them, in order

my $wide = $t->upload(mix(21, 3000000), xorb_chunks => 6);
my $told = parse_shard(query($wide->{chunks}[0]{hash}
	// $wide->{xorbs}[0]{chunks}[0]{hash})->{body});

cmp_ok(scalar(@{ $wide->{xorbs} }), '>', 3, 'wide: several xorbs');
is_deeply([ map { $_->{hash} } @{ $told->{xorbs} } ],
	[ map { $_->{hash} } @{ $wide->{xorbs} } ], 'wide: all are named');
is($t->sql("select count(*) from xet.xorbs where advertised_on = xet.today()")
	>= @{ $wide->{xorbs} }, 1, 'wide: all are recorded');

# --------------------------------------------------------------------------
# directives

$t->write_conf(undef, directives => { xet_dedup_period => '1h' });
$t->reload();

# the newest file that uses the xorb also has another xorb, and the response
# names that xorb, too

my $hourly = hit('a period of an hour', $first, $xorb, period => 1,
	xorbs => 2);

is($hourly->{created} % 3600, 0, 'created when the period begins');
is($hourly->{expires}, $hourly->{created} + 7200, 'valid for two periods');
isnt($hourly->{key}, $answer->{key}, 'another key');

# ---- the key changes without a reload

# Returns the length and end of a period that ends between 5 and 30 seconds from
# now.  There always is such a period with a length of up to six days.

sub ending_period {
	my $now = time();

	for my $period (3600 .. 6 * 86400) {
		my $end = (int(($now + 5) / $period) + 1) * $period;

		return ($period, $end) if $end <= $now + 30;
	}

	die "no such period\n";
}

my ($period, $end, @before);

# repeats the query if the machine was too slow to send it before the period
# ends

for (1 .. 5) {
	($period, $end) = ending_period();

	$t->write_conf(undef, directives => {
		xet_dedup_period => "${period}s" });
	$t->reload();

	@before = map { query($first) } 1 .. 10;
	last if time() < $end;
}

my @workers = sort $t->worker_pids();
my $old = parse_shard($before[0]{body});

is(scalar(grep { $_->{body} ne $before[0]{body} } @before), 0,
	'rotation: equal responses before');
is($old->{footer}{created} + $period, $end, 'rotation: of that period');

ok(wait_for(60, sub { time() > $end
	&& query($first)->{body} ne $before[0]{body} }),
	'rotation: another response after it');

my $next = hit('rotation', $first, $xorb, period => 1, xorbs => 2);
my @after = map { query($first)->{body} } 1 .. 10;

is(scalar(grep { $_ ne $next->{body} } @after), 0,
	'rotation: equal responses again');
isnt($next->{key}, $old->{footer}{key}, 'rotation: another key');
is($next->{created}, $end, 'rotation: created at the end of the old period');
is("@{[ sort $t->worker_pids() ]}", "@workers", 'rotation: without a restart');

# a response of the previous period is as good as a new one: the client finds
# its chunks by the old key, and the xorbs that the response names exist

cmp_ok($old->{footer}{expires}, '>=', $end + $period,
	'overlap: good through the next period');
is_deeply([ map { $_->{hash} } @{ $old->{xorbs} } ],
	[ map { $_->{hash} } @{ $next->{parsed}{xorbs} } ],
	'overlap: the same xorbs');

my ($known) = grep { $_->{hash} eq $xorb->{hash} } @{ $old->{xorbs} };

is($known->{chunks}[0]{hash}, keyed_hash($old->{footer}{key}, $first),
	'overlap: the old key still finds the chunk');
is(put_file([ $xorb, 0, 2 ], [ $new, 0, 1 ]), 200,
	'overlap: a file with it is accepted');

$t->write_file('dedup.key', 'dedup:' . '1f' x 32 . "\n");
$t->write_conf(undef, directives => {});
$t->reload();

my $changed = hit('another secret', $first, $xorb, xorbs => 2);

isnt($changed->{key}, $answer->{key}, 'another key');

$t->write_conf(undef, directives => { xet_dedup_key => undef });
$t->reload();

missing('no xet_dedup_key', $first);
missing('no xet_dedup_key, unknown', $none);
is($t->head("/api/v1/chunks/default/$first")->{status}, 404,
	'no xet_dedup_key, HEAD');
is($t->upload(mix(9, 100000))->{result}, 1, 'uploads work without the key');

# --------------------------------------------------------------------------
# the cost of a query is bounded, whatever other repos have stored: a chunk in
# 20,000 xorbs; one of these xorbs in 20,000 files; one of these files in 20,000
# repos

sub blocks {
	my ($repo, $subject) = (@_, 'NULL');

	my $out = $t->sql('SET enable_seqscan = off;'
		. ' SET plan_cache_mode = force_generic_plan;'
		. ' PREPARE find AS SELECT *'
		. ' FROM xet.chunk_find($1, false, $2, $3, $4);'
		. join(' EXPLAIN (ANALYZE, BUFFERS)', map {
			" EXECUTE find ($_, $repo, $subject);" }
			"sha256('plans')", "sha256('chunk')"));

	my ($hit) = $out =~ /Buffers: shared hit=(\d+)/;
	my ($read) = $out =~ /Buffers: shared [^\n]*read=(\d+)/;

	return ($hit // 0) + ($read // 0);
}

# a session without these options keeps the plan of an empty table, which reads
# all of xet.usage for each of the 20,000 repos

$t->sql($_, options => $Test::Xet::Postgres::session)
	for "INSERT INTO xet.xorbs (hash, chunk_count, raw_size,"
	. " stored_size, chunk_hashes, raw_ends, stored_ends)"
	. " SELECT sha256(n::text::bytea), 1, 64, 72, sha256('chunk'),"
	. " '\\x40000000', '\\x48000000' FROM generate_series(1, 20000) n",
	"INSERT INTO xet.chunks (hash, xorb_id, idx)"
	. " SELECT sha256('chunk'), id, 0 FROM xet.xorbs"
	. " WHERE chunk_hashes = sha256('chunk')",
	"INSERT INTO xet.files (hash, size, term_count)"
	. " SELECT sha256(n::text::bytea), 64, 1"
	. " FROM generate_series(1, 20000) n",
	"INSERT INTO xet.file_xorbs (file_id, xorb_id, chunks)"
	. " SELECT f.id, x.id, '{[0,1)}' FROM xet.files f, xet.xorbs x"
	. " WHERE f.hash = ANY (SELECT sha256(n::text::bytea)"
	. " FROM generate_series(1, 20000) n)"
	. " AND x.hash = sha256('1')",
	"INSERT INTO xet.repos (name)"
	. " SELECT 'other' || n FROM generate_series(1, 20000) n",
	"INSERT INTO xet.repo_files (repo_id, file_id)"
	. " SELECT r.id, f.id FROM xet.repos r, xet.files f"
	. " WHERE f.hash = sha256('20000') AND r.name LIKE 'other%'",
	"INSERT INTO xet.repos (name) VALUES ('mine')", 'ANALYZE';

for my $repo ("true, ''", "false, 'mine'", "false, 'other777'") {
	my $n = blocks($repo);

	ok($n > 0 && $n < 3000, "repo $repo: bounded")
		or diag("$n blocks");
}

sub found {
	return scalar $t->sql('SELECT count(*) FROM'
		. " xet.chunk_find(sha256('chunk'), false, false, '$_[0]',"
		. ' NULL)');
}

is(found('mine'), 0, 'no file is visible');
is(found('other777'), 1, 'a file of 20,000 repos is, in each repo');
$t->sql("INSERT INTO xet.repo_files (repo_id, file_id)"
	. " SELECT r.id, f.id FROM xet.repos r, xet.files f"
	. " WHERE f.hash = sha256('19990') AND r.name = 'mine'");
is(found('mine'), 1, "a file of the caller's repo is");

# the repo and the subject have sent all of these xorbs

$t->sql($_) for "INSERT INTO xet.xorb_repos (xorb_id, repo_id)"
	. " SELECT c.xorb_id, r.id FROM xet.chunks c, xet.repos r"
	. " WHERE c.hash = sha256('chunk') AND r.name IN ('mine', 'other777')",
	"INSERT INTO xet.xorb_subjects (xorb_id, subject, chunks)"
	. " SELECT c.xorb_id, sha256(s::bytea), '{[0,)}'"
	. " FROM xet.chunks c, unnest(ARRAY['me', 'other']) s"
	. " WHERE c.hash = sha256('chunk')";

for my $state ('not analyzed', 'analyzed') {
	my $n = blocks("false, 'mine'", "'me'");

	ok($n > 0 && $n < 3000, "neighbours, $state: bounded")
		or diag("$n blocks");
	$t->sql('ANALYZE');
}

is($t->sql("SELECT count(*) FROM xet.chunk_find(sha256('chunk'), false, false,"
	. " 'mine', 'me')"), 64, 'neighbours: at most 63');

$t->done();
