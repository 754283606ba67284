#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A node that is cut off while PostgreSQL commits the row of its xorb, and sends
# the statement again when it is back: the collector of another node has removed
# row and copy meanwhile.  Nothing is acknowledged that is not there.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
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
my %conf = (log => 'info', workers => 2, net => $net, s3 => $s3);

my $t = Test::Xet->new(%conf, machine => $machines[0],
	directives => { xet_gc => 'on grace=0s interval=1s' });
my $two = Test::Xet->new(%conf, machine => $machines[1], beside => $t);

$_->run() for $t, $two;
$_->allow(qr/PostgreSQL|is sent again|was collected|is lost/) for $t, $two;

for my $how (qw/ xorb file /) {
	my $data = random_bytes(length($how), 40000);
	my $x = make_xorb($data, scheme => 'none');
	my $lock = $t->pg_lock('xet.xorbs', 'SHARE');
	my ($method, $uri, $body) = $how eq 'xorb'
		? ('POST', "/api/v1/xorbs/default/$x->{hash}", $x->{bytes})
		: ('PUT', '/api/v1/files', $data);
	my $c = $two->http_start($method, $uri,
		{ 'Content-Length' => length($body) }, $body);

	my $before = collected();

	ok(wait_for(20, sub { $t->pg_blocked() > 0 }), "$how: waits");

	$machines[1]->cut();
	$lock->unlock();

	ok(wait_for(30, sub { !names()
		&& collected() > $before
		&& $t->sql('SELECT (SELECT count(*) FROM xet.xorbs)'
		. ' + (SELECT count(*) FROM xet.gc_copies)') == 0 }),
		"$how: committed, and collected");

	# nobody collects any more, or it would be gone again

	$t->sql("UPDATE xet.chores SET until = now() + interval '1 hour',"
		. " turn = turn + 1, holder = decode(md5('x'), 'hex')"
		. " WHERE name = 'gc'");

	# what PostgreSQL has said meanwhile must not come

	$machines[1]->reset($net, 5432);
	$machines[1]->mend();

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

	# who comes again has all of it there

	my $file = eval { $two->upload($data, scheme => 'none') };

	ok($file, "$how: again") or diag($@);

	my $d = $t->download($file->{hash}, size => length($data));

	is_deeply($d->{errors}, [], "$how: again: can be read");
	ok(($d->{data} // '') eq $data, "$how: again: its bytes");

	$t->sql("UPDATE xet.chores SET until = now() WHERE name = 'gc'");
	is($t->http('DELETE', "/api/v1/files/$file->{hash}")->{status}, 204,
		"$how: deleted");
	ok(wait_for(30, sub { !names() }), "$how: all is gone");
}

$t->done();

# --------------------------------------------------------------------------

sub names {
	return grep { m!/xorbs/! } sort keys %{ $s3->objects() } if $bucket;
	return $t->files_in_store();
}

sub collected {
	return $t->sql("SELECT coalesce(sum((totals->>'copies')::bigint), 0)"
		. " FROM xet.chores_show() WHERE name = 'gc'");
}
