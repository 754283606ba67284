#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A client that disconnects while its large shard is being committed: the server
# removes the staged rows, but not in the middle of the commit.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ wait_for /;

my $t = Test::Xet->new(workers => 1, log => 'info');

$t->run();

my $x = send_xorb($t, random_bytes(1, 640), scheme => 'none',
	sizes => [ 10 ]);

$t->sql('CREATE FUNCTION xet.hold() RETURNS trigger LANGUAGE plpgsql AS'
	. ' $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$');
$t->sql('CREATE TRIGGER hold BEFORE INSERT ON xet.files FOR EACH STATEMENT'
	. ' EXECUTE FUNCTION xet.hold()');

sub shard {
	my ($n) = @_;

	return make_large_shard($x, [ map { my $n = $_; [ map {
		my $start = ($_ * 7 + $n) % 60;
		[ $start, $start + 1 + $_ % 4 ]
	} 1 .. 25000 ] } $n, $n + 1 ]);
}

# Returns the number of files that have fewer terms than they declare.

sub lacking {
	return $t->sql('SELECT count(*) FROM xet.files f WHERE f.packed IS NULL'
		. ' AND f.term_count <> (SELECT coalesce(sum(length(t.packed)'
		. ' / 52), 0) FROM xet.terms t WHERE t.file_id = f.id)');
}

my $round = 0;

for my $how (qw/ close abort /) {
	my $s = shard(10 * ++$round);
	my $hold = $t->pg_session();

	$hold->run('SELECT pg_advisory_lock(7)');

	my $c = $t->http_start('POST', '/api/v1/shards',
		{ 'Content-Length' => length($s->{bytes}) }, $s->{bytes});

	ok(wait_for(20, sub { $t->sql('SELECT count(*) FROM pg_stat_activity'
		. " WHERE wait_event = 'advisory'") }), "$how: blocked");
	cmp_ok($t->sql('SELECT count(*) FROM xet.staged'), '>', 0,
		"$how: batches are staged");

	$c->$how();
	sleep(1);
	$hold->run('SELECT pg_advisory_unlock(7)');
	$hold->close();

	ok(wait_for(20, sub { !$t->sql('SELECT count(*) FROM pg_stat_activity'
		. " WHERE usename = 'xet' AND state <> 'idle'") }),
		"$how: the sessions are idle");
	is(lacking(), 0, "$how: all or nothing");

	like($t->post('/api/v1/shards', \$s->{bytes}, {}, timeout => 60)
		->summary(), qr/^200 \{"result":[01]\}$/, "$how: again");
	is(lacking(), 0, "$how: all terms");
	is($t->sql('SELECT count(*) FROM xet.files'), 2 * $round,
		"$how: its files");
	ok(wait_for(10, sub {
		$t->sql('SELECT count(*) FROM xet.staged') == 0
	}), "$how: nothing is staged");
}

$t->done();
