#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Two nodes with one bucket: both get the same xorb at the same time, and both
# heal the same copy.  Upload grants run concurrently with a collector without a
# grace period, and with the sweep of copies without rows; the test stops them
# between any two steps.  No acknowledged data is lost, and no name of a copy is
# used twice.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Grant;
use Test::Xet::S3;
use Test::Xet::S3Fault;

use Time::HiRes qw/ sleep /;

my $lacks = Test::Xet::S3->missing('moto');

plan(skip_all => "moto: $lacks") if $lacks;

my $s3 = Test::Xet::S3->new(server => 'moto');
my $fault = Test::Xet::S3Fault->new($s3);

my %conf = (workers => 2, log => 'info', s3_endpoint => $fault->endpoint(),
	s3_server => '127.0.0.1:' . $fault->port(),
	s3_params => 'timeout=120s');
my %grants = (directives => { xet_grants => 'on' });
my %gc = (directives => { xet_grants => 'on',
	xet_gc => 'on grace=0s interval=1s' });

my $t = Test::Xet->new(%conf, s3 => $s3, %gc);
my $two = Test::Xet->new(%conf, %grants, beside => $t);
my @nodes = ($t, $two);
my $serial = 0;

$_->run() for @nodes;

# the collector runs only when the test turns it on

collector(0);

# --------------------------------------------------------------------------
# both nodes get the same xorb, in two encodings

for my $round (1 .. 4) {
	my @x = encodings(50000);
	my @status = sort map { "$_->{status} $_->{body}" }
		at_once(map { [ $nodes[$_], 'POST',
			"/api/v1/xorbs/default/$x[$_]{hash}", $x[$_]{bytes} ]
		} 0, 1);

	is_deeply(\@status, [ '200 {"was_inserted":false}',
		'200 {"was_inserted":true}' ], "at once, round $round");
	ok(wait_for(20, sub { objects($x[0]) == 1 }), 'one object');
	readable("at once, round $round", $x[0]);
}

# --------------------------------------------------------------------------
# both nodes heal the xorb

for my $round (1 .. 4) {
	my @x = encodings(60000);

	send_xorb($t, $x[0]{raw}, scheme => 'none');

	my $file = register_file($t, [ [ $x[0] ] ]);
	my ($name) = objects($x[0]);
	my $bytes = $s3->get($name)->{body};

	substr($bytes, 100, 1) ^= "\x01";
	$s3->put($name, $bytes);
	$_->allow(qr/\Q$x[0]{hash}\E/) for @nodes;

	my @status = map { $_->{status} }
		at_once(map { [ $nodes[$_], 'POST',
			"/api/v1/xorbs/default/$x[$_]{hash}", $x[$_]{bytes} ]
		} 0, 1);

	ok((grep { $_ == 200 } @status), "healed by both: @status");
	is((grep { $_ != 200 && $_ != 503 } @status), 0, 'no error');
	ok(wait_for(20, sub { objects($x[0]) == 1 }), 'one object')
		or diag(objects($x[0]));
	isnt((objects($x[0]))[0], $name, 'another object');
	is($t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at'
		. ' IS NOT NULL'), 0, 'no damage is recorded');
	same("healed by both, round $round", $file);
}

# --------------------------------------------------------------------------
# one grant is committed at both nodes at the same time

for my $round (1 .. 4) {
	my ($x) = encodings(50000);
	my $grant = grant($t, $x);

	is(put_granted($grant, $x->{bytes})->{status}, 200, 'put');

	my @status = sort map { $_->{status} } at_once(map { [ $_, 'POST',
		'/api' . commit_path($x, $grant), '' ] } @nodes);

	ok((grep { $_ == 200 } @status), "two commits: @status");
	is((grep { $_ !~ /^(?:200|404)$/ } @status), 0, 'no error');
	readable("two commits, round $round", $x);
	ok(wait_for(20, sub { !staged() && objects($x) == 1 }),
		'no staged object is left') or diag(staged(), objects($x));
}

# --------------------------------------------------------------------------
# a commit while the collector is removing the xorb's old row

{
	my ($x) = encodings(70000);
	my $old = send_xorb($t, $x->{raw}, scheme => 'none');
	my ($name) = objects($x);
	my $grant = forced($x);

	is(put_granted($grant, $x->{bytes})->{status}, 200, 'collected: put');

	# the row is deleted, but the deletion is not committed yet

	my $gate = $t->pg_session();

	$gate->run('BEGIN');
	$gate->run("SELECT * FROM xet.gc_xorbs('0', 1000)");

	my $c = $two->http_start('POST', '/api' . commit_path($x, $grant),
		{ 'Content-Length' => 0 });

	ok(wait_for(20, sub { $t->pg_blocked() > 0 }),
		'collected: the commit waits for the collector');
	$gate->run('COMMIT');
	$gate->close();

	my $r = $c->response('POST', timeout => 30);

	is($r->{status}, 200, 'collected: commit');
	is($r->{body}, '{"was_inserted":true}', 'collected: new');

	my $file = register_file($two, [ [ $old ] ]);

	collector(1);
	ok(wait_for(30, sub { !grep { $_ eq $name } objects($x) }),
		'collected: the old object is removed');
	settled();
	collector(0);
	same('collected: it is there', $file);
}

# a grant request reports that the xorb exists; then the xorb is collected, and
# a shard that names the xorb is refused

{
	my ($x) = encodings(70000);
	my $made = send_xorb($t, $x->{raw}, scheme => 'none');

	is(ask($two, $x)->{status}, 200, 'reported: the xorb exists');
	collector(1);
	ok(wait_for(30, sub { !objects($x) }),
		'reported: the xorb is collected');
	collector(0);

	my $file = eval { register_file($two, [ [ $made ] ]) };

	like($@, qr/400 .*unknown_xorb/, 'reported: the shard is refused');

	my $grant = grant($two, $x);

	put_granted($grant, $x->{bytes});
	is(commit($t, $x, $grant)->{status}, 200, 'reported: sent again');
	same('told: and taken', register_file($two, [ [ $made ] ]));
}

# an upload whose copy is to be removed: the collector has recorded the copy,
# but a row still refers to it

{
	my ($x) = encodings(70000);

	send_xorb($t, $x->{raw}, scheme => 'none');

	my $file = register_file($two, [ [ $x ] ]);
	my ($name) = objects($x);

	$t->sql('INSERT INTO xet.gc_copies (hash, copy_id, stored_size)'
		. ' SELECT hash, copy_id, stored_size FROM xet.xorbs'
		. " WHERE hash = '\\x" . plain_hash($x->{hash}) . "'");
	collector(1);
	rounds();
	collector(0);
	is_deeply([ objects($x) ], [ $name ],
		'recorded: a copy with a row stays');
	same('noted: it is there', $file);
	$t->sql('DELETE FROM xet.gc_copies');
}

# --------------------------------------------------------------------------
# a sweep while one upload has a copy and no row yet, and another client has a
# staged object and has not committed it yet: copy and object are too young to
# be removed

{
	my ($x) = encodings(60000);
	my ($y) = encodings(60000);
	my $grant = grant($two, $y);

	put_granted($grant, $y->{bytes});
	$t->let_age();

	# The response of the bucket is held until the sweep has ended, so that
	# the xorb has no row yet.  The collector has no grace period, and would
	# remove a row that no file needs.

	my $rule = $fault->add(op => 'PutObject', match => $x->{hash},
		do => 'hold', ms => 90000, count => 1, free => 1);
	my $c = $two->http_start('POST', "/api/v1/xorbs/default/$x->{hash}",
		{ 'Content-Length' => length($x->{bytes}) }, $x->{bytes});

	ok(wait_for(10, sub { objects($x) == 1 }), 'young: a copy');
	is(rows($x), 0, 'young: without a row');

	# The sweep keeps every object that is newer than the newest row.  The
	# test moves that row into the future, so that only their age protects
	# the copy and the staged object.

	newest("interval '3 hours'");
	sweep('young');

	is(scalar(objects($x)), 1, 'young: the copy stays');
	is(scalar(staged()), 1, 'young: the staged object stays');
	$fault->clear();

	my $r = $c->response('POST', timeout => 30);

	is($r->{status}, 200, 'young: acknowledged');
	readable('young: the xorb exists', $x);
	is(commit($t, $y, $grant)->{status}, 200, 'young: committed');
	readable('young: the staged xorb', $y);
	newest("interval '0'");
}

# a backup starts between the sweep's two checks of an old copy without a row;
# the backup may have read that copy, so the sweep keeps it

{
	my ($x) = encodings(40000);

	send_xorb($t, $x->{raw}, scheme => 'none');

	my $file = register_file($two, [ [ $x ] ]);
	my ($name) = objects($x);
	my $orphan = $name =~ s/(.)\z/$1 eq '0' ? '1' : '0'/er;
	my $function = $t->sql("SELECT pg_get_functiondef('xet.orphans(bytea[],"
		. " integer[])'::regprocedure)");

	(my $gated = $function) =~ s/^BEGIN$/BEGIN PERFORM
		pg_advisory_xact_lock(4711);/m or die $function;

	my ($gate, $backup) = map { $t->pg_session() } 1, 2;

	$s3->put($orphan, 'x' x 100);
	$_->allow(qr/RequestTimeTooSkewed|clock/) for @nodes;
	newest("interval '3 hours'");
	$s3->set_clock(90000);

	$gate->run('SELECT pg_advisory_lock(4711)');
	$t->sql($gated);
	$t->sql("SELECT xet.job_now('orphans')");
	collector(1);
	ok(wait_for(30, sub { $t->pg_blocked() > 0 }),
		'a backup: between the two checks');
	$backup->run("SELECT pg_advisory_lock_shared(hashtext('xet.copies'),"
		. ' 0)');
	$t->sql($function);
	$gate->close();
	rounds();
	is(scalar(objects($x)), 2, 'a backup: the copy stays');

	$backup->close();
	sweep('a backup has ended');
	is_deeply([ objects($x) ], [ $name ],
		'a backup has ended: the copy is removed');
	$s3->set_clock(0);
	newest("interval '0'");
	same('a backup: what has a row', $file);
}

# --------------------------------------------------------------------------
# a commit during a sweep: its staged object disappears before or during the
# commit

for my $which ('before', 'reading', 'made') {
	my ($x) = encodings(80000);
	my $grant = grant($two, $x);

	put_granted($grant, $x->{bytes});

	my $rule = $which eq 'before' ? undef : $fault->add(
		op => $which eq 'made' ? 'CopyObject' : 'GetObject',
		match => 'staging', do => 'hold', ms => 1000, count => 1);
	my $c = $two->connect();

	if ($rule) {
		$c->start('POST', '/api' . commit_path($x, $grant),
			{ 'Content-Length' => 0 });
		ok(wait_for(10, sub { $fault->used($rule) }),
			"swept $which: in progress");
	}

	$s3->must('DELETE', $_) for staged();
	$_->allow(qr/xet: "s3:/) for @nodes;

	$c->start('POST', '/api' . commit_path($x, $grant),
		{ 'Content-Length' => 0 }) unless $rule;

	my $r = $c->response('POST', timeout => 30);

	$fault->clear();

	# a commit may succeed if it has already read all bytes

	like($r->{status}, !$rule ? qr/^404$/
		: qr/^(?:200|404|500|503)$/, "swept $which: $r->{status}");

	if ($r->{status} == 200) {
		readable("swept $which", $x);

	} else {
		is(rows($x), 0, "swept $which: no row");

		$grant = grant($two, $x);
		put_granted($grant, $x->{bytes});
		is(commit($two, $x, $grant)->{status}, 200,
			"swept $which: once more");
		readable("swept $which, once more", $x);
	}
}

# the same with a real sweep, to which all staged objects seem old: the clock of
# the store is a day fast

{
	my $swept = 0;
	my @taken;

	$t->let_age();
	$_->allow(qr/RequestTimeTooSkewed|clock/) for @nodes;

	for my $round (1 .. 3) {
		my @x = map { (encodings(20000))[0] } 1 .. 6;
		my @grants = map { grant($two, $_) } @x;

		put_granted($grants[$_], $x[$_]{bytes}) for 0 .. $#x;

		$s3->set_clock(90000);
		$t->sql("SELECT xet.job_now('orphans')");
		collector(1);

		# in later rounds the commits start when the sweep has removed
		# some staged objects

		wait_for(10, sub { staged() < @x }) if $round > 1;

		my @r = at_once(map { [ $nodes[$_ % 2], 'POST',
			'/api' . commit_path($x[$_], $grants[$_]), '' ]
		} 0 .. $#x);

		is((grep { $_->{status} !~ /^(?:200|404|500|503)$/ } @r), 0,
			"old, round $round: "
			. join(' ', map { $_->{status} } @r));

		# objects that such a commit leaves are removed by the next
		# sweep

		ok(wait_for(30, sub {
			return 1 if !staged();
			$t->sql("SELECT xet.job_now('orphans')");
			return 0;
		}), "old, round $round: nothing is staged") or diag(staged());
		$swept += grep { $_->{status} != 200 } @r;

		# if a committed xorb is collected before its shard arrives, the
		# shard gets an error

		for (grep { $r[$_]{status} == 200 } 0 .. $#x) {
			my $file = eval { register_file($t, [ [ $x[$_] ] ]) };

			push @taken, $file if $file;
			like($@, qr/unknown_xorb/, 'old: collected')
				if !$file;
		}

		collector(0);
		$s3->set_clock(0);
	}

	cmp_ok($swept, '>', 0, "old: $swept were swept first");
	same("old: $_->{hash}", $_) for @taken;
}

# --------------------------------------------------------------------------
# all of these requests, while the collector and one sweep after another run

collector(1);

my ($files, @files) = (0);

for my $round (1 .. 12) {
	my ($x) = encodings(30000);
	my ($one, $other) = $round % 2 ? @nodes : reverse(@nodes);

	$t->sql("SELECT xet.job_now('orphans')") if $round % 3 == 0;

	my @tries;

	# the xorb may be collected before its shard arrives, often on a slow
	# machine

	while (@tries < 60) {
		my $ask = ask($one, $x);

		if ($ask->{status} == 201) {
			my $grant = $ask->json();

			put_granted($grant, $x->{bytes});

			my $r = commit($other, $x, $grant);

			push @tries, "commit $r->{status}";
			next if $r->{status} != 200;

		} else {
			push @tries, "told $ask->{status}";
		}

		# the collector may remove the xorb before the commit

		sleep(rand(1.2)) if @tries == 1 && $round % 4 == 0;

		my $file = eval { register_file($one, [ [ $x ] ]) };

		push @tries, $@, next if !$file;

		@tries = ();
		$files++;
		push @files, $file;
		last;
	}

	diag("round $round: @tries") if @tries;

	# an older file is deleted, and its xorb is collected

	if (@files > 4) {
		my $gone = shift @files;

		is($one->http('DELETE', "/api/v1/files/$gone->{hash}")
			->{status}, 204, "round $round: deleted");
	}
}

is($files, 12, 'all files were accepted');
ok(settled(), 'the collector has nothing to do');
same("acknowledged: $_->{hash}", $_) for @files;
is_deeply([ staged() ], [], 'nothing is staged');
ok(wait_for(30, sub { objects() == $t->sql('SELECT count(*) FROM xet.xorbs')
	}), 'an object for each row') or diag(objects());

# no request has tried to create a name that existed, which the store refuses

{
	my (%made, @twice);

	for ($fault->seen()) {
		next if $_->{op} !~ /^(?:Put|Copy)Object$/
			|| $_->{target} !~ m!/(xorbs/[^?]+)!;

		push @twice, "$_->{status} $1" if $_->{status} == 412
			|| $_->{status} == 200 && $made{$1}++;
	}

	cmp_ok(scalar keys %made, '>', 50, 'copies were made');
	is("@twice", '', 'each has its own name');
}

my $verify = xet(undef, { env => { XET_POSTGRES => $t->conninfo() } },
	'verify', '--store', $t->conf_store());

is($verify->{code}, 0, 'the store is consistent') or diag($verify->{out},
	$verify->{err});

$t->done();

# --------------------------------------------------------------------------

# Returns one xorb in two encodings, which have the same hash.

sub encodings {
	my ($size) = @_;

	my $data = mix(++$serial, $size);

	return map { { %{ make_xorb($data, scheme => $_) }, raw => $data } }
		qw/ none lz4 /;
}

# Takes a list of [ node, method, uri, body ].  Sends all but the last byte of
# every body, then all last bytes.  Returns the responses.

sub at_once {
	my @c = map {
		my ($node, $method, $uri, $body) = @$_;

		[ $node->http_start($method, $uri, { 'Content-Length' =>
			length($body) }, length($body) ? substr($body, 0, -1)
			: undef), length($body) ? substr($body, -1) : undef ]
	} @_;

	$_->[0]->send($_->[1]) for grep { defined $_->[1] } @c;

	return map { $_->[0]->response('POST', timeout => 30) } @c;
}

sub ask {
	my ($node, $x) = @_;

	return $node->post("/api/v1/xorb-grants/default/$x->{hash}",
		\grant_body($x->{bytes}));
}

sub grant {
	my ($node, $x) = @_;

	my $r = ask($node, $x);

	die "$r->{status} $r->{body}\n" if $r->{status} != 201;

	return $r->json();
}

# Returns a grant for a stored xorb, as if it was given before the upload.

sub forced {
	my ($x) = @_;

	my $where = "hash = '\\x" . plain_hash($x->{hash}) . "'";

	$t->sql("UPDATE xet.xorbs SET damaged_at = now() WHERE $where");

	my $grant = grant($t, $x);

	$t->sql("UPDATE xet.xorbs SET damaged_at = NULL WHERE $where");

	return $grant;
}

sub commit {
	my ($node, $x, $grant) = @_;

	return $node->post('/api' . commit_path($x, $grant), \'');
}

sub staged {
	return grep { m!/staging/! } sort keys %{ $s3->objects() };
}

# Lists the copies of one xorb, or of all xorbs.

sub objects {
	my ($x) = @_;

	my $hash = $x ? $x->{hash} : '';

	return grep { m!/xorbs/.*/\Q$hash\E! } sort keys %{ $s3->objects() };
}

sub rows {
	my ($x) = @_;

	return $t->sql("SELECT count(*) FROM xet.xorbs WHERE hash = '\\x"
		. plain_hash($x->{hash}) . "'");
}

sub readable {
	my ($name, $x) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $file = eval { register_file($two, [ [ $x ] ]) };

	return same($name, $file) if $file;

	fail("$name: at both nodes");
	diag($@);
}

sub same {
	my ($name, $file) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my @wrong = grep { $_ } map {
		my $r = $_->get("/api/v1/files/$file->{hash}");

		$r->{body} eq $file->{data} ? '' : $r->summary();
	} @nodes;

	is("@wrong", '', "$name: at both nodes");
}

# Turns the collector on, or off by giving its job to a holder that does
# nothing.

sub collector {
	my ($on) = @_;

	wait_for(20, sub { $t->sql("SELECT count(*) FROM xet.jobs"
		. " WHERE name = 'gc'") });
	$t->sql('UPDATE xet.jobs SET turn = turn + 1, until = now() + '
		. ($on ? "interval '0'" : "interval '1 hour'")
		. ", holder = decode(md5('test'), 'hex') WHERE name = 'gc'");
}

# Runs one complete sweep.

sub sweep {
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$t->sql("SELECT xet.job_now('orphans')");
	collector(1);
	ok(wait_for(60, sub { $t->sql('SELECT count(*) FROM xet.jobs WHERE'
		. " name = 'orphans' AND started_at IS NOT NULL") }),
		"$name: a sweep");
	collector(0);
}

# Waits for two collector runs that begin after this call.

sub rounds {
	my $at = sub { $t->sql("SELECT coalesce(finished_at, 'epoch')"
		. " FROM xet.jobs WHERE name = 'gc'") };

	for (1 .. 2) {
		my $before = $at->();

		wait_for(30, sub { $at->() ne $before })
			or diag('the collector does not run');
	}
}

# Sets the creation time of the newest row, relative to now; a sweep compares
# copies with that row.  Normally rows in the future are ignored; here they save
# hours of waiting.

sub newest {
	my ($far) = @_;
	my $function = $t->sql("SELECT pg_get_functiondef("
		. "'xet.orphans_from()'::regprocedure)");

	$t->sql($function) if $function =~ s/WHERE x\.created_at <= now\(\)//;

	$t->sql("UPDATE xet.xorbs SET created_at = now() + $far WHERE id ="
		. ' (SELECT max(id) FROM xet.xorbs)');
}

sub settled {
	return wait_for(60, sub {
		$t->sql('SELECT (SELECT count(*) FROM xet.gc_copies)'
			. ' + (SELECT count(*) FROM xet.gc_files)'
			. ' + (SELECT count(*) FROM xet.gc_xorbs)') == 0
	});
}
