#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Two nodes with one folder that each node mounts separately, as with NFS:
# look-ups are cached for a while, and files that the other node removes become
# stale.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Net;

BEGIN { Test::Xet::Net->enter() }

use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Load;
use Test::Xet::Share;

use File::Path qw/ remove_tree /;
use File::Temp qw/ tempdir /;
use Time::HiRes qw/ sleep time /;

my $lacks = Test::Xet::Share->lacks();

plan(skip_all => $lacks) if $lacks;

my $dir = tempdir('xt-share-XXXXXX', DIR => '/tmp', CLEANUP => 1);
my $real = "$dir/real";

chmod(0755, $dir);
mkdir($real);

my @shares = map { Test::Xet::Share->new($real, "$dir/$_") } qw/ a b /;
my %conf = (workers => 2, log => 'info', timeout => 400, s3 => 0);

my $t = Test::Xet->new(%conf, folder => $shares[0]->path(),
	directives => { xet_gc => 'on grace=0s interval=1s' });
my $two = Test::Xet->new(%conf, folder => $shares[1]->path(),
	beside => $t);
my @nodes = ($t, $two);

# --------------------------------------------------------------------------
# both nodes start at the same time, with an empty store

$t->pg()->start();
$_->nginx()->run() for @nodes;

ok(wait_for(60, sub { $_->get('/api/health')->{status} == 200 }),
	'both nodes start') for @nodes;
is($t->sql('SELECT count(*) FROM xet.store'), 1, 'with one store');

# --------------------------------------------------------------------------
# under load

my $load = Test::Xet::Load->new($t,
	pool => [ Test::Xet::Load::make($t, 8) ]);

$load->nodes(@nodes);
$load->start(uploads => 3, reads => 2, deletes => 1);
ok(wait_for(60, sub { $load->acknowledged() >= 100 }), 'uploads');
$load->stop();

is(join("\n", $load->bad()), '', 'no wrong response');
is(join("\n", map { "@$_{qw/ addr what status /}" } $load->failures()), '',
	'no request has failed');

my %missing;

for my $file ($load->acknowledged()) {
	for my $node (@nodes) {
		my $r = $node->get("/api/v1/files/$file->[0]");

		$missing{"@$file: $r->{status}"}++ if $r->{status} != 200
			|| $r->{body} ne $load->bytes($file->[1]);
	}
}

is(join(', ', sort keys %missing), '',
	'acknowledged files, at both nodes');

ok(wait_for(60, sub { settled() }), 'the collector has nothing to do');

my $verify = xet(undef, { env => { XET_POSTGRES => $t->conninfo() } },
	'verify', '--store', $real);

is($verify->{code}, 0, 'the store is consistent') or diag($verify->{out},
	$verify->{err});
is(scalar(names()), $t->sql('SELECT count(*) FROM xet.xorbs'),
	'a copy for each row');

# the collector is off from here on: it might remove a xorb before its shard
# arrives

$t->sql("UPDATE xet.jobs SET until = now() + interval '1 hour',"
	. " turn = turn + 1, holder = decode(md5('x'), 'hex')"
	. " WHERE name = 'gc'");

# --------------------------------------------------------------------------
# a copy that is missing at the first look-up, and exists at the next look-up,
# as after a restore from a backup or after "xet store copy"

{
	my $data = mix(1, 200000);
	my $file = $t->upload($data);
	my ($copy) = copies($file->{xorbs}[0]{hash});

	rename($copy, "$dir/away") or die "$copy: $!\n";
	$two->allow(qr/\Q$file->{xorbs}[0]{hash}\E/);

	like($two->get("/api/v1/files/$file->{hash}")->{status}, qr/^5/,
		'back: the copy is missing');
	is(damaged(), 1, 'back: the loss is recorded');

	rename("$dir/away", $copy) or die;
	$t->sql('UPDATE xet.xorbs SET damaged_at = NULL');

	my $r = $two->get("/api/v1/files/$file->{hash}");

	is($r->{status}, 200, 'back: the copy exists');
	ok($r->{body} eq $data, 'back: its bytes');
	is(damaged(), 0, 'back: no damage is recorded');

	# a HEAD request also finds such a copy

	rename($copy, "$dir/away") or die;
	is($two->head("/api/v1/xorbs/default/$file->{xorbs}[0]{hash}")
		->{status}, 404, 'back: HEAD while it is missing');

	# a HEAD request gets its response before the row is marked

	ok(wait_for(10, sub { damaged() == 1 }), 'back: recorded again');
	rename("$dir/away", $copy) or die;
	$t->sql('UPDATE xet.xorbs SET damaged_at = NULL');
	is($two->head("/api/v1/xorbs/default/$file->{xorbs}[0]{hash}")
		->{status}, 200, 'back: HEAD when it exists');
}

# --------------------------------------------------------------------------
# ESTALE: the node opens or reads the file again before it reports a fault

{
	my $data = mix(2, 300000);
	my $file = $two->upload($data, scheme => 'none');

	# the kernel itself retries a stale open, but not a stale read

	for my $n (1 .. 3) {
		drop_caches();
		$shares[1]->stale($n);

		my $r = $two->get("/api/v1/files/$file->{hash}");

		is($r->{status}, 200, "stale, $n times: status")
			or diag($r->summary());
		ok($r->{body} eq $data, "stale, $n times: its bytes");
		$shares[1]->stale(0);
	}

	is(damaged(), 0, 'stale: no damage is recorded');
}

# one node heals the xorb while the other node has the file open

{
	my $data = random_bytes(3, 6_000_000);
	my $file = $two->upload($data, scheme => 'none');
	my $xorb = $file->{xorbs}[0]{hash};
	my ($copy) = copies($xorb);

	# a slow reader, for which the node opens the file again for each piece

	my $c = $two->http_start('GET', "/api/v1/files/$file->{hash}", {},
		undef, rcvbuf => 32768);

	sleep(0.5);

	# the copy is truncated, so that the next upload replaces it

	$_->allow(qr/\Q$xorb\E/) for @nodes;
	truncate($copy, 100) or die;

	my $again = $t->upload($data, scheme => 'lz4');

	ok(wait_for(20, sub { !-e $copy }), 'healed: the old copy is gone');

	my $r = $c->response('GET', timeout => 60);

	is($r->{status}, 200, 'healed: a reader');
	ok($r->{body} eq $data, 'healed: gets all bytes')
		or diag(length($r->{body}) . ' ' . ($r->{error} // ''));

	$r = $two->get("/api/v1/files/$file->{hash}", {}, timeout => 60);
	ok($r->{body} eq $data, 'healed: at the other node');

	my $d = $two->download($file->{hash}, size => length($data));

	is_deeply($d->{errors}, [], 'healed: by URLs of the other node');
	ok(($d->{data} // '') eq $data, 'healed: the bytes of the URLs');
	is(damaged(), 0, 'healed: nothing is damaged');
}

# --------------------------------------------------------------------------
# files that NFS keeps because a node has them open when they are removed

{
	my $young = "$real/tmp/.nfs000000010000002a";
	my $old = "$real/tmp/.nfs000000010000002b";
	my $day = time() - 2 * 86400;

	for ($young, $old) {
		open(my $out, '>', $_) or die;
	}

	utime($day, $day, $old) or die;
	$two->stop();
	$two->run();
	ok(-e $young, 'left: by a node that may be alive');
	ok(!-e $old, 'left: by a node that has died');
	unlink($young);
}

cmp_ok($shares[$_]->seen('negative'), '>', 0,
	'a cached ENOENT was outdated') for 1;

$t->done();

# --------------------------------------------------------------------------

sub names {
	my @names = glob("$real/xorbs/default/*/*");

	return @names;
}

sub copies { return grep { m!/\Q$_[0]\E\.! } names() }

sub damaged {
	return $t->sql('SELECT count(*) FROM xet.xorbs'
		. ' WHERE damaged_at IS NOT NULL');
}

sub settled {
	return $t->sql('SELECT (SELECT count(*) FROM xet.gc_copies)'
		. ' + (SELECT count(*) FROM xet.gc_files)'
		. ' + (SELECT count(*) FROM xet.gc_xorbs)') == 0;
}

# Drops the page cache, because the share gets no requests for cached data.

sub drop_caches {
	open(my $out, '>', '/proc/sys/vm/drop_caches') or return;
	print $out "1\n";
}
