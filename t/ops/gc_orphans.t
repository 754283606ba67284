#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Store files that never had a row: once a day, xet_gc removes those that are
# old enough, and no other files.  Between two steps of the sweep, an upload
# arrives, a row is inserted, a backup or a second node runs, a worker crashes,
# or another disk is mounted.  The next sweep handles files that an earlier
# sweep left in quarantine, and xet gc reports such files.

use warnings;
use strict;

use Test::More;

use File::Path qw/ make_path remove_tree /;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Process qw/ spew /;

Test::Xet->folder(
	'ages and links of files; orphans of a bucket are in t/s3/cli.t');

my $gc = { xet_gc => 'on grace=1d interval=1s' };

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 900);

$t->run();
$t->let_age();

my $store = $t->store();
my $xorb = send_xorb($t, mix(1, 300_000));
my $file = register_file($t, [ [ $xorb ] ]);
my $serial = 0;

age($t->xorb_files($xorb->{hash}));

# --------------------------------------------------------------------------
# old orphans are removed, and no other files

my @old = map { orphan() } 1 .. 300;
my $young = orphan(age => 0);
my $day = orphan(age => 86400 - 600);
my $other = "$store/xorbs/default/ab/README";
my $astray = "$store/xorbs/default/ab/" . 'cd' x 32 . '.00000001';

spew($_, 'x'), age($_) for $other, $astray;

my $node = node();

ok(wait_for(120, sub { total('orphans') == 300 }), 'old ones')
	or diag(chore('*'));
ok(wait_for(60, sub { swept() }), 'all was looked at');
is(scalar(grep { -e } @old), 0, 'are gone');
is(total('orphan_bytes'), 300 * 100, 'their bytes are reported');
is($t->sql('SELECT gc_orphans, gc_orphan_bytes, orphans FROM'
	. ' xet.figures(0, 0, 10)'), '300|30000|2', 'as figures');
ok(-e $_, "there: $_") for $young, $day, $other, $astray;
is(scalar(asides()), 0, 'nothing is left in quarantine');
whole('copies with a row are kept');

# --------------------------------------------------------------------------
# a sweep starts once a day, or when an operator requests it

my $orphan = orphan();

runs(2);
ok(-e $orphan, 'once a day');
sweep('on request');
ok(!-e $orphan, 'it is gone');

# files newer than the database, as after a restore of an older dump

{
	$orphan = orphan(age => 2 * 86400);
	$t->sql("UPDATE xet.xorbs SET created_at = now() - interval '3 days'");
	sweep('an older database');
	ok(-e $orphan, 'a file newer than the database stays');
	is($t->sql('SELECT orphans FROM xet.figures(0, 0, 10)'), 3, 'reported');
	$t->sql('UPDATE xet.xorbs SET created_at = now()');
	sweep('a newer one');
	ok(!-e $orphan, 'now it goes');
}

# --------------------------------------------------------------------------
# a copy that the collector has recorded is not an orphan

is($t->sql("INSERT INTO xet.gc_copies (hash, copy_id, stored_size) VALUES"
	. " ('\\x" . 'ab' x 32 . "', 7, 1); SELECT count(*) FROM"
	. " xet.copies_unknown(ARRAY['\\x" . 'ab' x 32 . "'::bytea,"
	. " '\\x" . 'ab' x 32 . "'], ARRAY[7, 8])"), 1, 'a recorded copy');
ok(wait_for(60, sub { $t->sql('SELECT count(*) FROM xet.gc_copies') == 0 }),
	'the copy is removed');

# --------------------------------------------------------------------------
# a backup; it takes the same lock as a rebuild

{
	my $backup = $t->pg_session();

	$backup->run("SELECT pg_advisory_lock_shared(hashtext('xet.copies'),"
		. ' 0)');
	$orphan = orphan();
	$t->sql("SELECT xet.job_now('orphans')");
	runs(2);
	ok(-e $orphan, 'a backup keeps all');
	like($node->log(), qr/files without a row are kept: a backup/,
		'which is logged');
	$backup->close();
	ok(wait_for(60, sub { swept() }), 'it has ended');
	ok(!-e $orphan, 'and the orphan goes');
}

# --------------------------------------------------------------------------
# files that a crashed sweep left in quarantine are handled by the next sweep or
# by xet gc

for my $how ('server', 'command') {
	my $dead = aside(orphan(), 77);
	my ($copy) = $t->xorb_files($xorb->{hash});
	my $back = aside($copy, 4711);

	# the sweep crashed after it had restored the name of a file

	my $both = orphan(age => 0);
	age($both);
	link($both, "$store/tmp/" . name_aside($both, 5)) or die;

	# when nginx starts it removes old files in this folder, except for
	# files in quarantine

	my $calm = Test::Xet->new(workers => 1, beside => $t);

	$calm->run();
	ok(-e $dead && -e $back, "$how: a start leaves them");
	$calm->stop();

	if ($how eq 'server') {
		sweep($how);

	} else {
		my $bytes = total('orphan_bytes');
		my $r = xet(undef, { env => {
			XET_POSTGRES => $t->conninfo() } }, 'gc', '--json');

		is($r->{code}, 0, 'xet gc') or diag($r->{err});
		like($r->{err}, qr/are kept: removal of 1 is no longer/,
			'xet gc: a restored file ends the run');
		ok(wait_for(60, sub { swept() }), 'xet gc: it is a sweep');
		is(total('orphan_bytes') - $bytes, 200, 'xet gc: counted');
	}

	is(scalar(asides()), 0, "$how: quarantine is empty");
	ok(!-e $both, "$how: the file without a row is gone");
	ok(-e $copy, "$how: the file with a row is back");
	whole("$how: whole");
}

# --------------------------------------------------------------------------
# events between the move to quarantine and the second check: a lock pauses the
# sweep there

my $function = $t->sql("SELECT pg_get_functiondef('xet.orphans(bytea[],"
	. " integer[])'::regprocedure)");

(my $gated = $function) =~ s/^BEGIN$/BEGIN PERFORM
	pg_advisory_xact_lock(4711);/m or die $function;

# by the time of the second check, a row refers to the file

{
	my ($copy) = $t->xorb_files($xorb->{hash});

	$t->sql('UPDATE xet.xorbs SET copy_id = copy_id # 1');
	meanwhile('a row', sub {
		ok(!-e $copy, 'a row: the file is in quarantine');
		$t->sql('UPDATE xet.xorbs SET copy_id = copy_id # 1');
	});
	ok(wait_for(60, sub { -e $copy }), 'a row: the file is back');
	ok(wait_for(60, sub { !asides() }), 'a row: quarantine is empty');
	ok(wait_for(60, sub {
		$node->log() =~ /kept: removal of 1 is no longer allowed/
	}), 'a row: logged');
	whole('a row: whole');
	ok(wait_for(60, sub { swept() }), 'a row: the next run looks again');
}

# an upload of the same xorb while its file is in quarantine

{
	my $raw = mix(2, 200_000);
	my $made = send_xorb($t, $raw);
	my ($copy) = $t->xorb_files($made->{hash});
	my $new;

	$t->sql('DELETE FROM xet.xorbs WHERE copy_id <> (SELECT copy_id'
		. " FROM xet.xorbs WHERE hash = '\\x"
		. plain_hash($xorb->{hash}) . "')");
	age($copy);
	meanwhile('an upload', sub {
		ok(!-e $copy, 'an upload: the orphan is in quarantine');
		send_xorb($t, $raw);
		$new = register_file($t, [ [ $made ] ]);
	});
	ok(wait_for(60, sub { swept() }), 'an upload: the sweep ends');
	ok(!-e $copy, 'an upload: the orphan is gone');
	is(scalar($t->xorb_files($made->{hash})), 1,
		'an upload: its own copy is there');

	my $r = $t->get("/api/v1/files/$new->{hash}");

	ok($r->{body} eq $new->{data}, 'an upload: the file') or
		diag($r->summary());
}

# the worker is killed: the next worker continues in the middle of the sweep

{
	my @more = map { orphan() } 1 .. 40;
	my $turn = chore('turn');

	$node->allow(qr/exited on signal 9/);
	meanwhile('killed', sub {
		kill('KILL', $node->worker_pids());
		ok(wait_for(60, sub { chore('turn') > $turn }),
			'killed: taken over');
		cmp_ok(scalar(asides()), '>', 0, 'killed: files in quarantine');
	});
	ok(wait_for(120, sub { swept() }), 'killed: the sweep ends')
		or diag(chore('*'));
	is(scalar(asides()), 0, 'killed: quarantine is empty');
	is(scalar(grep { -e } @more), 0, 'killed: all are gone');
}

# a second node removes orphans at the same time, because it has taken over the
# lease

{
	my @more = map { orphan() } 1 .. 40;
	my $two = node();

	# the node that waits for the lock has lost the lease, and continues
	# while the other node works

	meanwhile('two nodes', sub {
		my $turn = chore('turn');

		$t->sql("UPDATE xet.jobs SET turn = turn + 1, until ="
			. " now(), holder = decode(md5('x'), 'hex')"
			. " WHERE name = 'gc'");
		ok(wait_for(60, sub { chore('turn') > $turn + 1
			&& $t->pg_blocked() > 0 }), 'two nodes: both');
	});
	ok(wait_for(120, sub { swept() }), 'two nodes: to the end')
		or diag(chore('*'));

	# if both ask at the same moment, one of them restores its files, and
	# the other one may have listed their folders already

	sweep('two nodes: the next one');
	is(scalar(asides()), 0, 'two nodes: quarantine is empty');
	is(scalar(grep { -e } @more), 0, 'two nodes: all are gone');
	whole('two nodes: whole');
	$two->stop();
}

# --------------------------------------------------------------------------
# another disk, whose files have no rows

{
	my $theirs = "$store/xorbs/default/ef/" . 'ef' x 32 . '.00000001';

	$_->allow(qr/identity|is not the store|the folder|No such file/)
		for $t, $node;
	rename($store, "$store.away") or die;
	make_path("$store/xorbs/default/ef", "$store/tmp");
	spew($theirs, 'x');
	age($theirs);
	$t->sql("SELECT xet.job_now('orphans')");

	ok(wait_for(60, sub {
		$node->log() =~ /job "gc" is waiting: the store does not/
	}), 'another disk: it waits') or diag(chore('*'));
	ok(-e $theirs, 'another disk: nothing is touched');

	remove_tree($store);
	rename("$store.away", $store) or die;
	$orphan = orphan();

	ok(wait_for(180, sub { swept() }), 'it is back') or diag(chore('*'));
	ok(!-e $orphan, 'it is back: and the orphan goes');
	whole('it is back: whole');
}

is(xet(undef, { env => { XET_POSTGRES => $t->conninfo() } }, 'verify',
	'--store', $store)->{code}, 0, 'the store is right in the end');

$t->done();

# --------------------------------------------------------------------------

sub node {
	my $n = Test::Xet->new(workers => 2, log => 'info', timeout => 900,
		directives => $gc, beside => $t);

	$n->run();

	return $n;
}

# Creates a copy of a xorb that was never uploaded, with the same owner as all
# copies.  The server could not restore another user's file, because it may not
# create a second link to it.

sub orphan {
	my (%o) = @_;

	my ($user) = Test::Xet::Nginx::user();

	my $hash = sprintf('%02x', $serial % 256) . sprintf('%062x', ++$serial);
	my $path = "$store/xorbs/default/" . substr($hash, 0, 2)
		. "/$hash.00000001";

	spew($path, 'x' x 100);
	chown((getpwnam($user))[2, 3], $path) if $user;
	age($path, $o{age});

	return $path;
}

sub age {
	my ($path, $age) = @_;

	my $time = time() - ($age // 90000);

	utime($time, $time, $path) or die "$path: $!\n";
}

sub name_aside {
	my ($path, $sweep) = @_;

	return "orphan.$sweep." . substr($path, rindex($path, '/') + 1);
}

sub aside {
	my ($path, $sweep) = @_;

	my $aside = "$store/tmp/" . name_aside($path, $sweep);

	rename($path, $aside) or die "$path: $!\n";

	return $aside;
}

sub asides {
	my @asides = glob("$store/tmp/orphan.*");

	return @asides;
}

# Starts a sweep, and runs the code while a file is in quarantine.

sub meanwhile {
	my ($name, $code) = @_;

	my $gate = $t->pg_session();

	$gate->run('SELECT pg_advisory_lock(4711)');
	$t->sql($gated);
	orphan();
	$t->sql("SELECT xet.job_now('orphans')");

	ok(wait_for(60, sub { asides() > 0 && $t->pg_blocked() > 0 }),
		"$name: in quarantine") or diag(chore('*'));

	$code->();

	$t->sql($function);
	$gate->close();
}

# Returns whether the requested sweep has ended.

sub swept {
	return $t->sql('SELECT count(*) FROM xet.jobs WHERE'
		. " name = 'orphans' AND started_at IS NOT NULL");
}

sub sweep {
	my ($name) = @_;

	$t->sql("SELECT xet.job_now('orphans')");
	ok(wait_for(60, sub { swept() }), "$name: a sweep") or diag(chore('*'));
}

# Waits until the collector has completed n runs.

sub runs {
	my ($n) = @_;

	for (1 .. $n + 1) {
		my $at = chore("coalesce(finished_at, 'epoch')");

		ok(wait_for(60, sub { chore("coalesce(finished_at, 'epoch')")
			ne $at }), 'a run') or diag(chore('*'));
	}
}

sub chore {
	return $t->sql("SELECT $_[0] FROM xet.jobs WHERE name = 'gc'");
}

sub total {
	my ($figure) = @_;

	return $t->sql("SELECT coalesce(sum((totals->>'$figure')::bigint), 0)"
		. " FROM xet.jobs_show() WHERE name = 'gc'");
}

sub whole {
	my ($name) = @_;

	my $r = $t->get("/api/v1/files/$file->{hash}");

	ok($r->{body} eq $file->{data}, $name) or diag($r->summary());
}
