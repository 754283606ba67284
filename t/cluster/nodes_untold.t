#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A node is cut off while PostgreSQL commits the row of its xorb, and sends the
# statement again after it is reconnected.  In the meantime the collector of
# another node has removed the row and the copy.  Only stored data is
# acknowledged, and a row without a copy is marked as damaged, even if the
# client has disconnected.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Net;

BEGIN { Test::Xet::Net->enter() }

use Test::Xet;
use Test::Xet::S3;

my $bucket = ($ENV{XET_TEST_STORE} // '') eq 's3';

if ($bucket) {
	my $lacks = Test::Xet::S3->missing('moto');

	plan(skip_all => "moto: $lacks") if $lacks;
}

my $net = Test::Xet::Net->new();
my @machines = map { $net->machine() } 1, 2;
my $s3 = $bucket ? Test::Xet::S3->new(server => 'moto',
	addr => $net->addr()) : 0;
my %conf = (log => 'info', workers => 2, net => $net, s3 => $s3,
	pg_params => 'lock_timeout=3s');

my $t = Test::Xet->new(%conf, machine => $machines[0],
	directives => { xet_gc => 'on grace=0s interval=1s' });

# Without these timeouts the node does not notice that it is cut off; with them
# its statements would fail before it is reconnected.

my $patient = $t->conninfo() =~ s/ (?:tcp_user_timeout|keepalives_\w+)=\d+//gr;

my $two = Test::Xet->new(%conf, machine => $machines[1], beside => $t,
	stalls => 1,
	directives => { xet_postgres => "\"$patient\" $conf{pg_params}" });

$_->run() for $t, $two;
$_->allow(qr/PostgreSQL|is retried|was removed|can't be read/) for $t, $two;

for my $how (qw/ xorb file /) {
	my $data = random_bytes(length($how), 40000);
	my $x = make_xorb($data, scheme => 'none');
	my ($c, $method) = untold($how, $how, $data, $x);

	back();

	my $r = $c->response($method, timeout => 60);

	like($r->{status}, qr/^(?:200|503)$/, "$how: $r->{status}");
	is(scalar(names()), $t->sql('SELECT count(*) FROM xet.xorbs'
		. ' WHERE damaged_at IS NULL'), "$how: no row without its copy")
		or diag($r->summary());

	if ($how eq 'file' && $r->{status} == 200) {
		my $f = $t->get('/api/v1/files/' . $r->json()->{hash});

		is($f->{status}, 200, "$how: can be read");
		ok($f->{body} eq $data, "$how: its bytes");
	}

	again($how, $data);
}

# --------------------------------------------------------------------------
# The client of a xorb upload disconnects.  The three cases:
#
#     waits  while the repeated INSERT waits for a lock
#     lost   while the repeated INSERT waits, and its result is lost, too
#     looks  while the node looks for the copy of the inserted row
#
# These cases do not apply to a PUT of a file: there the node notices only when
# it sends the response that the client has disconnected.

# To mark the row as damaged, the node needs a session.  If its pool has none
# yet, the row stays unmarked until the next upload finds it.  So the test may
# need several attempts.

for my $when (qw/ waits lost looks /) {
	my $marked;

	for my $time (1 .. 4) {
		$marked = left($when, $time) and last;
	}

	ok($marked, "left, $when: damage is recorded") unless $when eq 'lost';
}

sub left {
	my ($when, $time) = @_;

	my $name = "left, $when, $time";
	my $data = random_bytes(20 + 10 * $time + length($when), 40000);
	my $x = make_xorb($data, scheme => 'none');
	my ($c) = untold($name, 'xorb', $data, $x);
	my $from = $two->log_size();
	my $lock = $t->pg_lock('xet.xorbs', 'SHARE');

	back();
	ok(wait_for(30, sub { $t->pg_blocked() > 0 }), "$name: sent again");

	if ($when eq 'looks') {
		freeze();
		$lock->unlock();
		ok(frozen(), "$name: it looks for the copy");
	}

	$c->abort();
	ok($two->wait_log(qr/client .*(?:closed|reset by peer)/i, 20, $from),
		"$name: the client leaves") or diag($two->log($from));

	$machines[1]->cut() if $when eq 'lost';
	$when eq 'looks' ? thaw() : $lock->unlock();

	ok(wait_for(20, sub { rows() == 1 }), "$name: a row");
	is(scalar(names()), 0, "$name: without a copy");
	back() if $when eq 'lost';

	my $marked = $when eq 'lost'
		|| wait_for(10, sub { rows('damaged_at IS NOT NULL') == 1 });

	again($name, $data);

	return $marked;
}

# --------------------------------------------------------------------------
# a row that PostgreSQL never writes: the node gives up, and responds with 503

for my $how (qw/ xorb file /) {
	my $data = random_bytes(10 + length($how), 40000);
	my $x = make_xorb($data, scheme => 'none');
	my $lock = $t->pg_lock('xet.xorbs', 'SHARE');
	my ($c, $method) = begun($how, $data, $x);

	ok(wait_for(20, sub { $t->pg_blocked() > 0 }), "never, $how: waits");

	my $from = $two->log_size();

	$machines[1]->cut();
	$machines[1]->reset($net, 5432);
	ok($two->wait_log(qr/database_unavailable|connecting to PostgreSQL/,
		60, $from), "never, $how: no session");

	# PostgreSQL checks every second whether clients are still connected

	ok(wait_for(30, sub { $t->pg_blocked() == 0 }),
		"never, $how: no statement waits any more");
	$machines[1]->mend();

	my $r = $c->response($method, timeout => 90);

	$lock->unlock();

	is($r->{status}, 503, "never, $how: 503") or diag($r->summary());
	is($t->sql('SELECT count(*) FROM xet.xorbs'), 0,
		"never, $how: no row");
	ok(wait_for(60, sub { eval { $two->upload($data, scheme => 'none') } }),
		"never, $how: again");

	my $file = $two->upload($data, scheme => 'none', send => 0);

	is($t->get("/api/v1/files/$file->{hash}")->{body}, $data,
		"never, $how: the file exists");
	is($t->http('DELETE', "/api/v1/files/$file->{hash}")->{status}, 204,
		"never, $how: deleted");
	ok(wait_for(30, sub { $t->sql('SELECT count(*) FROM xet.xorbs')
		== 0 }), "never, $how: everything is deleted");
}

$t->done();

# --------------------------------------------------------------------------

# Starts an upload of the xorb or file to the node that will be cut off.

sub begun {
	my ($how, $data, $x) = @_;

	my ($method, $uri, $body) = $how eq 'xorb'
		? ('POST', "/api/v1/xorbs/default/$x->{hash}", $x->{bytes})
		: ('PUT', '/api/v1/files', $data);
	my $c = $two->http_start($method, $uri,
		{ 'Content-Length' => length($body) }, $body);

	return ($c, $method);
}

# Starts an upload.  Its row is committed, and row and copy are collected before
# the node gets the result; a file is deleted first.  Then the collector is
# turned off; otherwise it would remove the next row and copy as well.

sub untold {
	my ($name, $how, $data, $x) = @_;

	my $lock = $t->pg_lock('xet.xorbs', 'SHARE');
	my ($c, $method) = begun($how, $data, $x);

	my $before = collected();

	ok(wait_for(20, sub { $t->pg_blocked() > 0 }), "$name: waits");

	$machines[1]->cut();
	$lock->unlock();

	if ($how eq 'file') {
		my $file = $two->upload($data, scheme => 'none', send => 0);

		ok(wait_for(20, sub { $t->http('DELETE',
			"/api/v1/files/$file->{hash}")->{status} == 204 }),
			"$name: committed, and deleted");
	}

	ok(wait_for(30, sub { !names() && collected() > $before
		&& rows() + $t->sql('SELECT count(*) FROM xet.gc_copies')
		== 0 }), "$name: committed, and collected");

	$t->sql("UPDATE xet.jobs SET until = now() + interval '1 hour',"
		. " turn = turn + 1, holder = decode(md5('x'), 'hex')"
		. " WHERE name = 'gc'");

	return ($c, $method);
}

# Reconnects the node.  Results that PostgreSQL has sent in the meantime do not
# arrive.

sub back {
	$machines[1]->reset($net, 5432);
	$machines[1]->mend();
}

# Repeats the upload, reads the file, and deletes it.

sub again {
	my ($name, $data) = @_;

	my $file = eval { $two->upload($data, scheme => 'none') };

	ok($file, "$name: again") or diag($@);

	my $d = $t->download($file->{hash}, size => length($data));

	is_deeply($d->{errors}, [], "$name: again: can be read");
	ok(($d->{data} // '') eq $data, "$name: again: its bytes");

	$t->sql("UPDATE xet.jobs SET until = now() WHERE name = 'gc'");
	is($t->http('DELETE', "/api/v1/files/$file->{hash}")->{status}, 204,
		"$name: deleted");
	ok(wait_for(30, sub { !names() && rows() == 0 }),
		"$name: everything is deleted");
}

# Makes look-ups of copies hang until thaw().

sub freeze {
	$bucket ? kill('STOP', $s3->pid()) : $two->stall()->hold('stat');
}

sub frozen {
	return $two->stall()->wait_held('stat', 1, 30) if !$bucket;

	# the row is inserted before the look-up begins

	return wait_for(30, sub { rows() == 1 }) && sleep(1);
}

sub thaw {
	$bucket ? kill('CONT', $s3->pid()) : $two->stall()->release('stat');
}

sub rows {
	my ($where) = @_;

	return $t->sql('SELECT count(*) FROM xet.xorbs WHERE '
		. ($where // 'true'));
}

sub names {
	return grep { m!/xorbs/! } sort keys %{ $s3->objects() } if $bucket;
	return $t->files_in_store();
}

sub collected {
	return $t->sql("SELECT coalesce(sum((totals->>'copies')::bigint), 0)"
		. " FROM xet.jobs_show() WHERE name = 'gc'");
}
