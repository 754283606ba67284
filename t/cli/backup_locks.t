#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet restore while a collector runs, and a collector while xet restore runs;
# other commands refuse to run during a restore.  Then only the database is
# restored, by xet restore or pg_restore, while the store is intact: copies that
# are newer than the backup are not removed as orphans.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Collector;
use Test::Xet::Files;
use Test::Xet::Process qw/ build_dir run_command spew /;

Test::Xet->folder('backups of a folder, file by file');

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 600);

my @sql = ('--sql', build_dir() . '/sql');
my %env = (XET_STORE => $t->store(), XET_POSTGRES => $t->conninfo());
my $backup = $t->dir() . '/backup';
my $bin = $t->dir() . '/bin';
my %data = map { $_ => random_bytes(300 + $_, 300000 + $_) } 1 .. 4;
my %file;

$t->run();
$file{$_} = $t->upload($data{$_}, xorb_chunks => 2) for 1, 2;

my $gone = send_xorb($t, random_bytes(310, 200000));

is(xet(undef, { env => { %env } }, 'backup', $backup)->{code}, 0, 'a backup');

# --------------------------------------------------------------------------
# a collector runs when the restore begins: it has deleted the row of a xorb in
# the backup, and is about to remove the copy

$t->nginx()->stop();

my $lock = $t->pg_session();

$lock->run('BEGIN; LOCK TABLE xet.usage_left IN ACCESS EXCLUSIVE MODE');

my $r;
my $gc = collect($t, grace => '0s', meanwhile => sub {
	ok(wait_for(30, sub { $t->pg_blocked() == 1 }), 'gc: under way');

	$r = restore('--force');

	is($r->{code}, 3, 'gc first: the restore is refused');
	like($r->{err}, qr/xet gc.*is running; wait/, 'gc first: why');
	is($t->sql('SELECT count(*) FROM xet.files'), 2,
		'gc first: all is there');
	ok(-e $t->store() . '/identity', 'gc first: the store is');
	$lock->run('ROLLBACK');
});

is($gc->{code}, 0, 'gc first: it ends') or diag($gc->{err});
is($gc->{json}[0]{copies}, 1, 'gc first: the copy is gone');

# the restore writes the copy again, because the backup needs it

$r = restore('--force');
is($r->{code}, 0, 'gc first: then it restores') or diag($r->{err});
is(scalar($t->xorb_files($gone->{hash})), 1, 'gc first: the copy as well');
verified('gc first');

# another collector is running, which removes only orphans

$lock->run("SELECT pg_advisory_lock(hashtext('xet.copies'), 0)");
$r = restore('--force');
is($r->{code}, 3, 'orphans first: the restore is refused');
like($r->{err}, qr/copies are being removed/, 'orphans first: why');
$lock->run('SELECT pg_advisory_unlock_all()');

# --------------------------------------------------------------------------
# a restore runs when the other commands begin

my $run = held('pg_restore', 'restore', @sql, '--force', $backup);

$r = xet(undef, { env => { %env } }, 'gc', '--json');
is($r->{code}, 3, 'restore first: gc is refused');
like($r->{err}, qr/a restore is running/, 'restore first: why');

# the commands refuse to run because the folder has no identity during the
# restore.  Here the test adds an identity, and the commands still refuse to
# run.

spew($t->store() . '/identity', identity() . "\n");

for my $args ([ 'gc' ], [ 'rebuild' ], [ 'backup', $backup ],
	[ 'restore', @sql, '--force', $backup ])
{
	$r = xet(undef, { env => { %env } }, @$args);
	isnt($r->{code}, 0, "restore first: @$args[0]");
}

like($r->{err}, qr/another restore is running/,
	'restore first: a second one, why');
unlink($t->store() . '/identity');
spew("$bin/go", '');
$r = xet_wait($run);
is($r->{code}, 0, 'restore first: it ends') or diag($r->{err});
verified('restore first');

# the restore is writing copies: the schema and the rows exist already

$t->sql('SELECT count(*) FROM xet.store');
system('rm', '-rf', $t->store() . '/xorbs') == 0 or die "rm\n";
$run = xet_start(undef, { env => { %env } }, 'restore', @sql, '--force',
	'--rate', '200k', $backup);
ok(wait_for(60, sub { glob($t->store() . '/tmp/copy.*') }),
	'copies: they come');
kill('STOP', $run->{pid});

for my $args ([ 'gc' ], [ 'rebuild' ], [ 'backup', $backup ]) {
	spew($t->store() . '/identity', identity() . "\n");
	$r = xet(undef, { env => { %env } }, @$args);
	like($r->{err}, qr/a restore is running/, "copies: @$args[0]");
}

is($t->sql('SELECT count(*) FROM xet.gc_copies(100)'), 0,
	'copies: the function gives none');

unlink($t->store() . '/identity');
kill('CONT', $run->{pid});
$r = xet_wait($run);
is($r->{code}, 0, 'copies: it ends') or diag($r->{err});
verified('copies');

# --------------------------------------------------------------------------
# the store was not lost: newer xorbs are kept until xet rebuild has found them

for my $way ('xet restore', 'pg_restore') {
	my $n = $way eq 'xet restore' ? 3 : 4;

	$t->run() unless $t->nginx()->pid();

	my $dump = $t->dir() . "/xet.$n.dump";

	run_command([ $t->pg()->bin() . '/pg_dump', '-Fc', '-n', 'xet', '-f',
		$dump, '-d', $t->conninfo() ]);

	$file{$n} = $t->upload($data{$n}, xorb_chunks => 2);
	$t->nginx()->stop();

	if ($way eq 'xet restore') {
		$r = restore('--force', '--json');
		is($r->{code}, 0, "$way: beside the store")
			or diag($r->{err});
		is($r->{json}[-1]{others}, @{ $file{$n}{xorbs} },
			"$way: copies of later");
		like($r->{err}, qr/not from this backup.*see "xet rebuild"/,
			"$way: which it says");

	} else {
		$t->sql('DROP SCHEMA xet CASCADE');

		my ($status, $out) = run_command([ $t->pg()->bin()
			. '/pg_restore', '--no-owner', '-d', $t->conninfo(),
			$dump ]);

		is($status, 0, "$way: beside the store") or diag($out);
	}

	utime((time() - 2 * 86400) x 2, glob($t->store()
		. '/xorbs/default/*/*'));
	$t->run();
	is($t->put('/api/v1/files', \random_bytes(400 + $n, 50000))->{status},
		200, "$way: an upload");

	$r = collect($t);
	is($r->{code}, 0, "$way: gc") or diag($r->{err});
	like($r->{err}, qr/no files are removed: the database came/,
		"$way: gc says why");

	for my $xorb (@{ $file{$n}{xorbs} }) {
		is(scalar($t->xorb_files($xorb->{hash})), 1,
			"$way: what came later is there");
	}

	$r = xet(undef, { env => { %env } }, 'rebuild', '--json');
	is($r->{code}, 0, "$way: rebuilt") or diag($r->{err});
	is($r->{json}[0]{added}, @{ $file{$n}{xorbs} }, "$way: their rows");

	my $again = $t->upload($data{$n}, xorb_chunks => 2, send => 0);

	is($t->post('/api/v1/shards', \$again->{shard})->{status}, 200,
		"$way: a client that remembers");
	unlike(collect($t)->{err}, qr/kept|no files are removed/,
		"$way: orphans are removed again");
	verified($way);
}

# --------------------------------------------------------------------------
# a clone of the database, made from a dump, uses the folder of the original
# database: deletions in the clone do not remove copies

my $clone = $t->conninfo() =~ s/dbname=xet/dbname=clone/r;
my $all = join(' ', glob($t->store() . '/xorbs/default/*/*'));

$t->pg()->sql('CREATE DATABASE clone OWNER xet', db => 'postgres');
run_command([ $t->pg()->bin() . '/pg_dump', '-Fc', '-n', 'xet', '-f',
	$t->dir() . '/clone.dump', '-d', $t->conninfo() ]);
is((run_command([ $t->pg()->bin() . '/pg_restore', '--no-owner', '-d', $clone,
	$t->dir() . '/clone.dump' ]))[0], 0, 'a clone');
$t->pg()->sql('UPDATE xet.files SET held = false', db => 'clone');

$r = collect($t, conninfo => $clone, grace => '0s');
is($r->{code}, 0, 'clone: gc') or diag($r->{err});
cmp_ok($r->{json}[-1]{xorbs}, '>', 2, 'clone: rows are gone');
is($r->{json}[-1]{copies}, 0, 'clone: no copy is removed');
is(join(' ', glob($t->store() . '/xorbs/default/*/*')), $all,
	'clone: all are there');
verified('clone');

# after a restore into an empty folder, every copy has a row

$t->nginx()->stop();
system('rm', '-rf', $t->store() . '/xorbs') == 0 or die "rm\n";
$r = restore('--force', '--json');
is($r->{json}[-1]{others}, 0, 'an empty folder');
is($t->sql('SELECT xet.store_suspects() IS NULL'), 't', 'and no suspects');

$t->done();

# --------------------------------------------------------------------------

sub restore {
	return xet(undef, { env => { %env } }, 'restore', @sql, @_, $backup);
}

sub identity {
	return (slurp_line("$backup/backup") =~ /(\w+)$/)[0];
}

sub slurp_line {
	open(my $in, '<', $_[0]) or die "$_[0]: $!\n";
	my $line = <$in>;
	chomp($line);
	return $line;
}

# Starts a command whose pg_dump or pg_restore waits before it begins.

sub held {
	my ($program, @args) = @_;

	my ($real) = grep { -x $_ } map { "$_/$program" }
		split(/:/, $ENV{PATH}), $t->pg()->bin();

	mkdir($bin);
	unlink("$bin/here", "$bin/go");
	spew("$bin/$program", "#!/bin/sh\ntouch $bin/here\nuntil [ -e $bin/go ]"
		. "; do sleep 0.05; done\nexec $real \"\$@\"\n");
	chmod(0755, "$bin/$program");

	my $xet = xet_start(undef, { env => { %env,
		PATH => "$bin:$ENV{PATH}" } }, @args);

	ok(wait_for(60, sub { -e "$bin/here" }), "$program: under way");

	return $xet;
}

sub verified {
	my ($test) = @_;

	my $v = xet(undef, { env => { %env } }, 'verify', '--json', '--store',
		$t->store());
	my ($sum) = grep { defined $_->{faults} } @{ $v->{json} };

	is($sum->{faults}, 0, "$test: no faults") or diag($v->{out}, $v->{err});
}
