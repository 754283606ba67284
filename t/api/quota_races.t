#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Quotas under concurrency: uploads that reach a limit on two nodes, a session
# that dies during an upload, long transactions that must not delay other
# sessions.  The test also checks the sums after 2,000 random operations of
# several sessions, including deletions, repairs and collections.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

use JSON::PP ();

my $operations = 2000;
my $writers = 4;

my %o = Test::Xet::Token::repos();
my $t = Test::Xet->new(workers => 2, log => 'info', %o, timeout => 900);

$t->token_key();
$t->run();

my $other = Test::Xet->new(workers => 2, log => 'info', %o, beside => $t);

$other->token_key();
$other->run();

my @nodes = ($t, $other);

$_->allow(qr/413 quota_exceeded|is retried|terminating connection/)
	for @nodes;

# --------------------------------------------------------------------------
# a limit with room for two of six uploads, which arrive at two nodes at the
# same time: first for stored bytes, then for logical bytes

my $room = 20000;

for my $round (1 .. 8) {
	my @x = map { make_xorb(random_bytes(100 * $round + $_, $room),
		scheme => 'none', sizes => [ 5000 ]) } 1 .. 6;
	my $repo = "r/stored$round";

	limit('repo', $repo, 2 * $x[0]{stored_size} + 10, undef);

	my $answers = at_once($repo, map { [ 'POST',
		"/api/v1/xorbs/default/$_->{hash}", $_->{bytes} ] } @x);

	is_deeply($answers, { 200 => 2, 413 => 4 }, "stored, round $round");
	is(used($repo), 2 * $x[0]{stored_size} . ' 0 0', 'and are counted');
}

for my $round (1 .. 8) {
	my @files = map { random_bytes(1000 + 100 * $round + $_, $room) }
		1 .. 6;
	my $repo = "r/logical$round";

	limit('repo', $repo, undef, 2 * $room);

	my $answers = at_once($repo, map { [ 'PUT', '/api/v1/files', $_ ] }
		@files);

	is_deeply($answers, { 200 => 2, 413 => 4 }, "logical, round $round");
	is(used($repo) =~ s/^\d+ //r, 2 * $room . ' 2', 'and are counted');
}

sums('at the edge');

# two repos send the same bytes at the same time: only one repo is charged

for my $round (1 .. 8) {
	my $x = make_xorb(random_bytes(5000 + $round, $room),
		scheme => 'none', sizes => [ 5000 ]);
	my @c = map { my $n = $_; [ $n, begin($nodes[$n], 'POST',
		"/api/v1/xorbs/default/$x->{hash}", $x->{bytes},
		"s/$round-$n") ] } 0, 1;

	$_->[1][0]->send($_->[1][1]) for @c;
	is($_->[1][0]->response('POST', timeout => 30)->{status}, 200,
		'accepted') for @c;
	is(join(' ', sort map { (used("s/$round-$_") =~ /^(\d+)/)[0] }
		0, 1), join(' ', sort 0, $x->{stored_size}),
		"the same at once, round $round");
}

# --------------------------------------------------------------------------
# a session that dies while it waits for the lock does not change the sums

my $lone = make_xorb(random_bytes(7000, $room), scheme => 'none');

limit('repo', 'k/k', 1000000, undef);

my $holder = $t->pg_session();

# creates the row of the repo first; otherwise sessions would wait for its
# creation

$t->sql("SELECT xet.repo_row('k/k')");
$holder->send("BEGIN; SELECT pg_advisory_xact_lock("
	. "hashtext('xet.quota.repo'), hashtext(encode(int8send(id), 'hex')))"
	. " FROM xet.repos WHERE name = 'k/k'");

my $c = begin($t, 'POST', "/api/v1/xorbs/default/$lone->{hash}",
	$lone->{bytes}, 'k/k');

$c->[0]->send($c->[1]);
ok(wait_for(20, sub { $t->pg_blocked() == 1 }), 'an upload at the lock');

# a lock on one repo's sums delays neither another repo nor a deletion

is(put($other, 'l/l', random_bytes(7001, $room))->{status}, 200,
	'other repos work');

$t->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
	. " WHERE wait_event_type = 'Lock' AND application_name = 'nginx-xet'");
ok(wait_for(20, sub { $t->pg_blocked() == 1 }), 'the statement is sent again');
$holder->send('COMMIT');
is($c->[0]->response('POST', timeout => 30)->{status}, 200,
	'the upload succeeds');
is(used('k/k'), "$lone->{stored_size} 0 0", 'counted once');
sums('a session that dies');

# --------------------------------------------------------------------------
# without a limit, uploads do not wait for a long transaction

my $add = "SELECT xet.usage_add(ARRAY[int8send(xet.repo_row('m/m'))],";

$t->sql("$add 1, 0, 0)");
$holder->send("BEGIN; $add 10, 0, 0)");
is(put($t, 'm/m', random_bytes(7002, $room))->{status}, 200, 'no wait');
$holder->send('ROLLBACK');
$t->sql("$add -1, 0, 0)");
cmp_ok($t->sql("SELECT count(*) FROM xet.usage WHERE owner ="
	. " int8send(xet.repo_row('m/m'))"), '>=', 2, 'in a separate row');
sums('a long transaction');

# --------------------------------------------------------------------------
# random operations: the test checks the sums during and after them

my @repos = map { "z/$_" } 1 .. 4;
my @xorbs = map { my $d = substr("line $_ of a text " x 2000, 0, 12000);
	[ map { make_xorb($d, scheme => $_, sizes => [ 3000 ]) }
		qw/ none lz4 / ] } 1 .. 12;

limit('repo', $repos[0], 60000, 60000);
limit('subject', 'u1', undef, 90000);

# a recount from one snapshot is correct while the operations run

my @sessions = map { $t->pg_session() } 1 .. $writers;
my ($during, $odd, %done) = (0, '');
my $expected = join('|', 'the quota of', 'deleted in the',
	'replaced or lost', 'is not stored');

srand(1);

for my $n (1 .. $operations / $writers) {
	my @acts = map { [ $_, operation() ] } @sessions;

	$_->[0]->send($_->[2]) for @acts;

	$during += $t->sql('SELECT count(*) FROM xet.usage_recount()')
		if $n % 20 == 0;

	for (@acts) {
		my $output = $_->[0]->wait(60) // 'too slow';

		if ($output !~ /ERROR|FATAL|too slow/) {
			$done{$_->[1]}++;

		} elsif ($output !~ /$expected/) {
			$odd .= "$_->[1]: $output\n";

		} else {
			$done{"$_->[1] refused"}++;
		}
	}
}

$_->close() for @sessions;

is($odd, '', 'no other errors');

# how many are refused depends on their order, which is different in each run

cmp_ok($done{$_}, '>', 10, "$_: $done{$_}")
	for grep { !/refused/ } sort keys %done;
is($during, 0, 'concurrent recounts found nothing');
sums('at random');
cmp_ok($t->sql("SELECT sum(logical) FROM xet.usage WHERE owner ="
	. " int8send(xet.repo_row('$repos[0]'))"), '<=', 60000,
	'the limit of logical bytes');

# deleting everything returns all bytes

$t->sql("DELETE FROM xet.repo_files");
collect();
is($t->sql('SELECT count(*) FROM (SELECT FROM xet.usage GROUP BY owner'
	. ' HAVING sum(stored) <> 0 OR sum(logical) <> 0 OR sum(files) <> 0)'
	. ' u'), 0, 'no bytes are charged');

$holder->close();
$t->done();

# --------------------------------------------------------------------------

sub limit {
	my ($kind, $name, @limits) = @_;

	my ($s, $l) = map { $_ // 'NULL' } @limits;

	$t->sql("SELECT xet.quota_set('$kind', '$name', NULL, $s, $l)");
}

sub used {
	my ($repo) = @_;

	return $t->sql("SELECT stored, logical, files FROM xet.usage_list()"
		. " WHERE name = '$repo'") =~ tr/|/ /r;
}

sub put {
	my ($node, $who, $bytes) = @_;

	return $node->http('PUT', '/api/v1/files', auth($who), \$bytes);
}

sub auth { return $t->auth('write', $_[0]) }

# Sends a request except for its last byte.

sub begin {
	my ($node, $method, $uri, $body, $who) = @_;

	return [ $node->http_start($method, $uri, { %{ auth($who) },
		'Content-Length' => length($body) }, substr($body, 0, -1)),
		substr($body, -1) ];
}

sub at_once {
	my ($who, @requests) = @_;

	my $n = 0;
	my (@c, %answers);

	for (@requests) {
		push @c, [ $_->[0], @{ begin($nodes[$n++ % 2], @$_, $who) } ];
	}

	# all these sessions wait for the lock of the table of sums; sessions
	# that only read the table, before a body arrives, do not wait

	my $lock = $t->pg_lock('xet.usage', 'EXCLUSIVE');

	$_->[1]->send($_->[2]) for @c;

	wait_for(20, sub { $t->pg_blocked() == @c })
		or diag('only ' . $t->pg_blocked() . ' of them wait');
	$lock->unlock();

	for (@c) {
		$answers{$_->[1]->response($_->[0], timeout => 30)
			->{status}}++;
		$_->[1]->close();
	}

	return \%answers;
}

# Returns a random operation: its name, and the SQL that the server would send.

sub operation {
	my ($xorb, $repo, $subject) = ($xorbs[rand(@xorbs)],
		$repos[rand(@repos)], 'u' . int(rand(3)));

	my $copy = $xorb->[rand(2)];
	my $copy_id = int(rand(1000000)) + 1;
	my @c = @{ $copy->{chunks} };
	my $hash = "'\\x" . plain_hash($copy->{hash}) . "'::bytea";
	my $hashes = join('', map { plain_hash($_->{hash}) } @c);
	my $raw = join('', map { u32($_->{raw_start} + $_->{raw_length}) } @c);
	my $ends = join('', map { u32($_->{stored_end}) } @c);
	my $zeros = "'\\x" . '00' x 16 . "'";
	my $who = "false, '$repo', '\\x00' || '$subject'::bytea";

	# a file made of the first k chunks of the xorb

	my $k = 1 + int(rand(@c));
	my $size = $c[$k - 1]{raw_start} + $c[$k - 1]{raw_length};
	my $file = "sha256($hash || int4send($k))";
	my $lot = rand();

	return ('xorb', "SELECT the_copy_id FROM xet.xorb_put($hash,"
		. " '\\x$hashes',"
		. " '\\x$raw', '\\x$ends', 12000, $copy->{stored_size},"
		. " '{}', $copy_id, $zeros, $who)") if $lot < 0.3;

	return ('shard', "SELECT xet.shard_put($zeros, 0, '{1}', ARRAY[$file],"
		. " '{$size}', '{NULL}', '{1}', ARRAY[$hash"
		. " || substring(xet.le4(0) FOR 2) || substring(xet.le4($k - 1)"
		. " FOR 2) || xet.le4(0) || substring(x.stored_ends"
		. " FROM 4 * $k - 3 FOR 4) || xet.le4($size)"
		. " || xet.le4(x.copy_id)], '{}', '{}', '{}', '{}', '{}', '{}',"
		. " '{}', $who, 0) FROM xet.xorbs x WHERE x.hash = $hash")
		if $lot < 0.65;

	return ('forget', "SELECT xet.repo_forget('$repo', $file)")
		if $lot < 0.85;

	return ('heal', "SELECT h.the_copy_id FROM xet.xorbs x, xet.xorb_heal("
		. "$hash, '\\x$ends', $copy->{stored_size}, $copy_id, $zeros,"
		. " x.copy_id) h WHERE x.hash = $hash") if $lot < 0.90;

	return ('files', 'SELECT files FROM xet.gc_files(100)') if $lot < 0.93;
	return ('xorbs', "SELECT xorbs FROM xet.gc_xorbs('0', 100)")
		if $lot < 0.96;

	return ('settle', 'SELECT xet.usage_settle(100)');
}

sub u32 { return unpack('H*', pack('V', $_[0])) }

sub collect {
	1 while $t->sql('SELECT files + refs FROM xet.gc_files(1000)');
	1 while $t->sql("SELECT xorbs FROM xet.gc_xorbs('0', 1000)");
	1 while $t->sql('SELECT xet.usage_settle(1000)');
}

sub sums {
	my ($name) = @_;

	is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
		"$name: sums are right");
	is($t->sql('SELECT sum(stored_size) FROM xet.xorbs'),
		$t->sql('SELECT sum(bytes) FROM xet.charges'),
		"$name: each xorb is charged once");
}
