#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Concurrent events during a backup: uploads, heals, the collector and a lost
# session.  A backup and a restore are also killed with SIGKILL in the middle.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Process qw/ build_dir slurp spew /;

use File::Path qw/ remove_tree /;

Test::Xet->folder('backups of a folder, file by file');

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 600);
my $r = Test::Xet->new(workers => 1, log => 'info', timeout => 600,
	allow => [ qr/has no identity|is its disk mounted/ ]);

my %data = map { $_ => random_bytes(100 + $_, 400000 + $_) } 1 .. 40;
my %file;
my @sql = ('--sql', build_dir() . '/sql');
my $backup = $t->dir() . '/backup';
my @from = (env => { XET_STORE => $t->store(),
	XET_POSTGRES => $t->conninfo() . ' application_name=backup' });
my @to = (env => { XET_STORE => $r->store(),
	XET_POSTGRES => $r->conninfo() });

$t->run();
$r->pg()->start();

$file{$_} = $t->upload($data{$_}, xorb_chunks => 3, scheme => 'lz4')
	for 1 .. 3;

# --------------------------------------------------------------------------
# the snapshot is taken, pg_dump waits, and no copies are read yet

my ($run, $lock) = held('backup', '--json', $backup);

is($t->sql("SELECT pg_try_advisory_xact_lock(hashtext('xet.copies'), 0)"),
	'f', 'the collector has to wait');

# the backup does not contain an upload that arrives now; at this time, a heal
# replaces a copy

$file{4} = $t->upload($data{4}, xorb_chunks => 3);

my $healed = $file{2}{xorbs}[0];
my $old = $t->xorb_file($healed->{hash});
my $new = heal($file{2}, $data{2});

isnt($new, $old, 'healed: another copy');
ok(!-e $old, 'healed: the old one is gone');

# another copy is damaged, but is not healed

my $hurt = $t->xorb_file($file{3}{xorbs}[1]{hash});

spew($hurt, substr(slurp($hurt), 1));
release($lock);

my $one = xet_wait($run);

is($one->{code}, 1, 'with a damaged copy') or diag($one->{err});
is($one->{json}[0]{lost}, 1, 'the damaged one');
is($one->{json}[0]{files}, 3, 'files of the snapshot');
is($t->sql("SELECT pg_try_advisory_xact_lock(hashtext('xet.copies'), 0)"),
	't', 'the collector may continue');
like(slurp((glob("$backup/generations/*.notes"))[0]),
	qr/^lost \S+\n|^healed \S+ \S+ \d+ \w+\n/m, 'notes');
is(xet(undef, 'backup', '--verify', $backup)->{code}, 0, 'it is whole');

my $back = restore();

is($back->{code}, 1, 'restored') or diag($back->{err});
is_deeply([ @{ $back->{json}[-1] }{ qw/ healed lost / } ], [ 1, 1 ],
	'restored: what was healed, and what is lost');
whole('held', 1, 2);
is($r->get("/api/v1/files/$file{4}{hash}")->{status}, 404,
	'what came later is not there');
is($r->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NOT NULL'), 1,
	'the lost xorb is marked');

# a client that refers to a newer xorb gets an error, and may send the xorb
# again

my $shard = $r->post('/api/v1/shards', \make_shard({ files => [ { terms =>
	[ { xorb => $file{4}{xorbs}[0]{hash}, start => 0, end => 1,
	chunks => [ $file{4}{xorbs}[0]{chunks}[0] ] } ] } ],
	xorbs => [ $file{4}{xorbs}[0] ] })->{bytes});

is($shard->{status}, 400, 'a xorb of later');
is(($shard->json() // {})->{error}{code}, 'unknown_xorb', 'and why');
is($r->upload($data{4}, xorb_chunks => 3)->{hash}, $file{4}{hash},
	'sent again');
is($r->upload($data{3}, xorb_chunks => 3, scheme => 'lz4')->{hash},
	$file{3}{hash}, 'and the file of the lost xorb');
whole('sent again', 1 .. 4);
empty();

spew($hurt, '');
heal($file{3}, $data{3}, 1);

# --------------------------------------------------------------------------
# the backup loses the session that holds the lock

($run, $lock) = held('backup', '--json', $backup);
$t->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
	. " application_name = 'backup'");
release($lock);

my $two = xet_wait($run);

is($two->{code}, 3, 'a session that is lost') or diag($two->{out});
is(generations(), 1, 'is no generation');

# the session is lost while copies are read; after the dump, the backup sends no
# other queries that would detect the loss

$run = xet_start(undef, { @from }, 'backup', '--json', '--rate', '400k',
	"$backup.slow");
ok(wait_for(20, sub { coming("$backup.slow/tmp/copy.*") }),
	'copies are being read');
$t->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
	. " application_name = 'backup'");
$two = xet_wait($run);
is($two->{code}, 3, 'lost later') or diag($two->{out});
like($two->{err}, qr/lost the session.*incomplete/, 'and says so');
is_deeply([ glob("$backup.slow/generations/*.json") ], [],
	'is no generation either');

# --------------------------------------------------------------------------
# kill -9 in the middle of a backup; a second backup runs at the same time

$run = xet_start(undef, { @from }, 'backup', '--json', '--rate', '60k',
	"$backup.kill");
ok(wait_for(20, sub { coming("$backup.kill/tmp/copy.*") }),
	'copies are being read again');
is(xet(undef, { @from }, 'backup', "$backup.kill")->{code}, 3,
	'a second one meanwhile');

kill('KILL', $run->{pid});
is(xet_wait($run)->{code}, undef, 'killed');
is(xet(undef, 'backup', '--verify', "$backup.kill")->{code}, 1,
	'nothing of it is a backup');

# a killed backup may leave copies under final names: one is intact, one is not

my @names = map { substr($_, length($t->store() . '/')) }
	glob($t->store() . '/xorbs/default/*/*');

spew("$backup.kill/$names[0]", slurp($t->store() . "/$names[0]"));
spew("$backup.kill/$names[1]", 'x' x -s $t->store() . "/$names[1]");

my $inode = (stat("$backup.kill/$names[0]"))[1];
my $three = xet(undef, { @from }, 'backup', '--json', "$backup.kill");

is($three->{code}, 0, 'and once more') or diag($three->{err});
is($three->{json}[0]{new}, @names - 1, 'intact copies are not copied again');
is((stat("$backup.kill/$names[0]"))[1], $inode, 'the intact copy is unchanged');
ok(slurp("$backup.kill/$names[1]") eq slurp($t->store() . "/$names[1]"),
	'the damaged copy is replaced');
is(xet(undef, 'backup', '--verify', "$backup.kill")->{code}, 0, 'verified');
is_deeply([ glob("$backup.kill/tmp/*") ], [], 'nothing is left');

# --------------------------------------------------------------------------
# kill -9 in the middle of a restore

$run = xet_start(undef, { @to }, 'restore', @sql, '--rate', '60k',
	"$backup.kill");
ok(wait_for(20, sub { coming($r->store() . '/tmp/copy.*') }),
	'killed: copies come');

kill('KILL', $run->{pid});
xet_wait($run);

# a server that starts now does not accept the folder as its store

$r->run();
is($r->get('/api/health')->{status}, 503, 'killed: not served');
is($r->put('/api/v1/files', \$data{5})->{status}, 503, 'killed: no uploads');
ok(!-e $r->store() . '/identity', 'killed: no identity was made');

$r->nginx()->stop();

$back = restore("$backup.kill");
is($back->{code}, 0, 'killed: and once more') or diag($back->{err});
whole('killed', 1 .. 4);
ok(!-e $r->store() . '/restore', 'killed: no mark is left');
is($r->sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'xet_restore'"),
	0, 'killed: nor in the database');
empty();

# --------------------------------------------------------------------------
# clients upload all the time: a backup contains every upload that was
# acknowledged before the backup started

pipe(my $in, my $out) or die "pipe: $!\n";

my $child = fork() // die "fork: $!\n";

if ($child == 0) {
	close($in);

	for my $n (5 .. 40) {
		my $hash = eval {
			$t->upload($data{$n}, xorb_chunks => 3)->{hash}
		} // last;

		syswrite($out, "$n $hash\n");
	}

	require POSIX;
	POSIX::_exit(0);
}

close($out);

my @acked;

while (@acked < 6 && defined(my $line = <$in>)) {
	push @acked, [ split(' ', $line) ];
}

my $four = xet(undef, { @from }, 'backup', '--json', "$backup.kill");

is($four->{code}, 0, 'among uploads') or diag($four->{err});
1 while <$in>;
waitpid($child, 0);

$back = restore("$backup.kill");
is($back->{code}, 0, 'among uploads: restored') or diag($back->{err});
cmp_ok($back->{json}[-1]{files}, '>=', 4 + 6, 'among uploads: files');

$file{$_->[0]} = { hash => $_->[1] } for @acked;
whole('among uploads', 1 .. 4, map { $_->[0] } @acked);
$r->nginx()->stop();

# --------------------------------------------------------------------------

$t->done();

# --------------------------------------------------------------------------

# Starts a backup that takes its snapshot and then waits: its pg_dump is held
# before it connects.

sub held {
	my $bin = $t->dir() . '/bin';
	my ($real) = grep { -x $_ } map { "$_/pg_dump" }
		split(/:/, $ENV{PATH}), $t->pg()->bin();

	mkdir($bin);
	unlink("$bin/here", "$bin/go");
	spew("$bin/pg_dump", "#!/bin/sh\ntouch $bin/here\nuntil [ -e $bin/go ]"
		. "; do sleep 0.05; done\nexec $real \"\$@\"\n");
	chmod(0755, "$bin/pg_dump");

	my %o = (env => { %{ $from[1] }, PATH => "$bin:$ENV{PATH}" });
	my $xet = xet_start(undef, { %o }, @_);

	ok(wait_for(60, sub { -e "$bin/here" }), 'it is under way');

	return ($xet, "$bin/go");
}

# Returns whether a copy below a folder is partly written.

sub coming {
	my ($path) = @_;

	return grep { -s $_ } glob($path);
}

sub release { spew($_[0], '') }

sub generations { return scalar(() = glob("$backup/generations/*.json")) }

sub restore {
	return xet(undef, { @to }, 'restore', @sql,
	'--json', @_ ? @_ : $backup);
}

# Removes the copy of a xorb and uploads the xorb again, without compression;
# returns the path of the new copy.

sub heal {
	my ($what, $bytes, $n) = @_;

	my @all = map { $_->{hash} } @{ $what->{xorbs} };

	unlink($t->xorb_file($all[$n // 0]));
	$t->upload($bytes, xorb_chunks => 3, scheme => 'none');

	return $t->xorb_file($all[$n // 0]);
}

sub whole {
	my ($test, @which) = @_;

	$r->run() unless $r->nginx()->pid();

	for my $n (@which) {
		my $d = $r->download($file{$n}{hash},
			size => length($data{$n}));

		ok(!@{ $d->{errors} } && $d->{data} eq $data{$n},
			"$test: file $n") or diag(explain($d->{errors}));
	}

	my $v = xet(undef, { @to }, 'verify', '--json', '--store', $r->store());
	my ($sum) = grep { defined $_->{faults} } @{ $v->{json} };

	is($sum->{faults}, $r->sql('SELECT count(*) FROM xet.xorbs WHERE'
		. ' damaged_at IS NOT NULL'), "$test: no other faults")
		or diag($v->{out}, $v->{err});
}

sub empty {
	$r->nginx()->stop();
	$r->sql('DROP SCHEMA xet CASCADE');
	remove_tree($r->store() . "/$_") for qw/ xorbs tmp /;
	unlink($r->store() . "/$_") for qw/ identity restore /;
}
