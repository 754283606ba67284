#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Concurrent events during xet rebuild and after an interrupted rebuild:
# collectors; uploads of the same xorbs and of other xorbs; an upload that is
# refused at its end; heals.  The test also uses a database that does not belong
# to the store.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Collector;
use Test::Xet::Files;
use Test::Xet::Process qw/ slurp spew /;

use POSIX ();

Test::Xet->folder('a rebuild from files');

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 600,
	allow => [ qr/refused by the test|xorb_put|PostgreSQL/,
	qr/is missing or has another size|can't be read: / ]);
my @env = (env => { XET_STORE => $t->store(),
	XET_POSTGRES => $t->conninfo() });

$t->run();

my %data = map { $_ => random_bytes(200 + $_, 300000 + $_) } 1 .. 24;
my %file = map { $_ => $t->upload($data{$_}, xorb_chunks => 2) } 1 .. 4;
my $copies = () = copies();

# --------------------------------------------------------------------------
# the rebuild is interrupted in the middle, and all copies are a day old

lose();
age();

my $lock = $t->pg_session();

$lock->run('SELECT pg_advisory_lock(77)');
pause('rebuild', '(SELECT count(*) FROM xet.xorbs) = 3');

my $run = xet_start(undef, { @env }, 'rebuild', '--json');

ok(wait_for(30, sub { waits() == 1 }), 'some rows are there');

# collectors remove nothing during a rebuild

my $r = collect($t);

is($r->{json}[0]{orphans}, 0, 'beside it: no orphans');
like($r->{err}, qr/no files are removed: a rebuild is not/,
	'beside it: why');

kill('KILL', $run->{pid});
is(xet_wait($run)->{code}, undef, 'killed');
$t->pg()->terminate();
$lock->run('SELECT pg_advisory_unlock(77)');
go();

# the next upload inserts a row that is newer than all other copies

$t->run();
is($t->put('/api/v1/files', \random_bytes(9, 60000))->{status}, 200,
	'an upload');
cmp_ok($t->sql('SELECT count(*) FROM xet.xorbs'), '<', $copies,
	'rows are missing');

my $before = join(' ', copies());

$r = collect($t);
is($r->{code}, 0, 'broken off: gc') or diag($r->{err});
like($r->{err}, qr/no files are removed: a rebuild is not/,
	'broken off: why');
like($r->{err}, qr/complete "xet rebuild", .*SELECT xet.store_known\(\)/,
	'broken off: what to do');
is(join(' ', copies()), $before, 'broken off: all copies are there');

# xet.orphans() is called directly: it also reports no orphans during a rebuild

my ($hash, $copy_id) = row_less();

is(orphans($hash, $copy_id), 0, 'interrupted: xet.orphans() finds none');

# a backup removes no copies either, because it cannot know which ones are
# needed

my $backup = $t->dir() . '/backup';

xet(undef, { @env }, 'backup', $backup);
sleep(1);
$r = xet(undef, { @env }, 'backup', '--json', '--keep', 1, $backup);
is($r->{code}, 0, 'broken off: a backup') or diag($r->{err});
like($r->{err}, qr/no generation was removed: a rebuild is/,
	'broken off: which keeps all generations');
is(scalar(() = glob("$backup/generations/*.json")), 2, 'broken off: both');

# the next rebuild runs to its end

$r = rebuild();
is($r->{code}, 0, 'complete') or diag($r->{err});
is($r->{json}[0]{known} + $r->{json}[0]{added}, $r->{json}[0]{copies},
	'complete: all of it');
like($r->{err}, qr/usage --recount/, 'complete: who pays');
verified('complete');

my $stray = $t->store() . '/xorbs/default/ab/' . 'ab' x 32 . '.12345678';

spew($stray, 'x');
utime((time() - 90000) x 2, $stray);

is(collect($t)->{json}[0]{orphans}, 1, 'complete: an orphan is one');
is(xet(undef, { @env }, 'backup', '--json', '--keep', 1, $backup)->{code}, 0,
	'complete: a backup');
is(scalar(() = glob("$backup/generations/*.json")), 1,
	'complete: the older ones go');
shards('complete', 1 .. 4);

# --------------------------------------------------------------------------
# a damaged copy may be the only copy of a xorb: it is kept until an
# administrator repairs the copy or gives it up

my ($hurt) = $t->xorb_files($file{1}{xorbs}[0]{hash});
my $good = slurp($hurt);

$t->nginx()->stop();
lose();
spew($hurt, 'x' . substr($good, 1));
is(rebuild()->{code}, 1, 'damaged');
age();
$t->run();
$t->put('/api/v1/files', \random_bytes(10, 60000));
$r = collect($t);
is($r->{json}[0]{orphans}, 0, 'damaged: no orphans');
like($r->{err}, qr/a rebuild is not complete/, 'damaged: why');
ok(-e $hurt, 'damaged: it is there');
$t->sql('SELECT xet.store_known()');

# two orphans: the damaged copy, and the old name of a recent copy to which the
# rebuild has given a new name

is(collect($t)->{json}[0]{orphans}, 2, 'damaged: given up');
ok(!-e $hurt, 'damaged: it is gone');

# --------------------------------------------------------------------------
# a row with a damaged copy is switched to a good copy without a row

my $xorb = send_xorb($t, random_bytes(40, 200000));
my ($old) = $t->xorb_files($xorb->{hash});
my $new = $old =~ s/\.\w+\z/.0000abcd/r;

system('cp', $old, $new) == 0 or die "cp\n";
spew($old, 'x' . substr(slurp($old), 1));
is(xet(undef, { @env }, 'verify', '--store')->{code}, 1, 'a damaged row');
is(rebuild()->{json}[0]{added}, 1, 'a damaged row: healed');
verified('a damaged row');
unlink($old);

# --------------------------------------------------------------------------
# the rebuild finds a copy whose upload is refused afterwards

$lock->run('SELECT pg_advisory_lock(77)');
refuse();

my $late = make_xorb(random_bytes(50, 150000), large => 1);
my $child = fork() // die "fork: $!\n";

if ($child == 0) {
	alarm(0);
	my $a = $t->http('POST', "/api/v1/xorbs/default/$late->{hash}", {},
		\$late->{bytes}, timeout => 60);
	POSIX::_exit($a->{status} == 200 ? 1 : 0);
}

ok(wait_for(30, sub { waits() == 1 }), 'its copy is there, and no row');
is(scalar($t->xorb_files($late->{hash})), 1, 'under its name');

$r = rebuild();
is($r->{code}, 0, 'beside an upload') or diag($r->{err});
is($r->{json}[0]{added}, 1, 'beside an upload: its xorb, too');

$lock->run('SELECT pg_advisory_unlock(77)');
waitpid($child, 0);
is($?, 0, 'the upload is refused');
go();

ok(wait_for(10, sub { $t->xorb_files($late->{hash}) == 1 }),
	'and its copy is removed');
verified('beside an upload');

# --------------------------------------------------------------------------
# constant uploads of the same xorbs and of other xorbs, heals, and a collector

lose();
is(rebuild()->{code}, 0, 'the folder gets its database');
$t->run();

# the rows are deleted again, as in a restored database, and half of the copies
# become old

$t->sql('DELETE FROM xet.xorbs; DELETE FROM xet.gc_xorbs');
utime((time() - 90000) x 2, $_) for grep { rand() < 0.5 } copies();

my ($in, @pids) = clients();
my $rounds = 0;

while ($rounds < 4) {
	$r = rebuild();
	is($r->{code}, 0, "uploads: rebuild $rounds") or diag($r->{err});
	is(collect($t)->{code}, 0, "uploads: gc $rounds");

	my ($some) = grep { rand() < 0.3 } copies();
	unlink($some) if $some;

	$rounds++;
}

kill('TERM', @pids);

my (%acked, $bad);

while (my $line = <$in>) {
	chomp($line);
	$line =~ /^ok (\d+)/ ? $acked{$1} = 1 : ($bad .= "$line\n");
}

waitpid($_, 0) for @pids;
is($bad, undef, 'uploads: none has failed');
cmp_ok(keys %acked, '>', 5, 'uploads: files');

# a further upload heals the xorbs whose copies this test has removed

$t->upload($data{$_}, xorb_chunks => 2, scheme => 'none') for keys %acked;
is(rebuild()->{code}, 0, 'uploads: at the end');
is(scalar(grep { my $d = $t->download(name($_), size => length($data{$_}));
	@{ $d->{errors} } || $d->{data} ne $data{$_} } keys %acked), 0,
	'uploads: every file is there');

# a xorb without files may be one of the xorbs whose copies this test has
# removed

xet(undef, { @env }, 'verify', '--store');
$t->sql('DELETE FROM xet.xorbs x WHERE damaged_at IS NOT NULL AND NOT EXISTS'
	. ' (SELECT FROM xet.file_xorbs f WHERE f.xorb_id = x.id)');
verified('uploads');

# --------------------------------------------------------------------------
# the file "identity" is removed, and another database takes over the folder:
# the existing copies have no rows in that database, and are kept

$t->nginx()->stop();
age();
$t->sql('DROP SCHEMA xet CASCADE');
$t->pg()->migrate();
unlink($t->store() . '/identity') or die $!;
sleep(2);
$t->run();
is($t->put('/api/v1/files', \random_bytes(11, 60000))->{status}, 200,
	'another database');

$copies = () = copies();
$r = collect($t);
is($r->{json}[-1]{orphans}, 0, 'another database: no orphans');
is($r->{json}[-1]{orphans_left}, $copies - 1, 'another database: all are left');
is(scalar(() = copies()), $copies, 'another database: they are there');

# a file newer than the database is an orphan; older files only have a new inode
# change time, as after chown

$t->sql("UPDATE xet.store SET since = now() - interval '2 days'");
utime((time() - 5 * 86400) x 2, copies());
spew($stray, 'x');
utime((time() - 90000) x 2, $stray);
is(collect($t)->{json}[-1]{orphans}, 1,
	'another database: a young one is removed');
is(rebuild()->{code}, 0, 'another database: rebuilt');
verified('another database');

# --------------------------------------------------------------------------
# files older than the database are kept until an administrator declares that
# the database is complete

$t->nginx()->stop();
$t->sql('UPDATE xet.store SET since = now()');
is($t->sql('SELECT xet.store_suspects() IS NULL'), 't', 'older: no suspects');
spew($stray, 'x');
utime((time() - 90000) x 2, $stray);
collect($t);
ok(-e $stray, 'older: orphans are left');
$t->sql('SELECT xet.store_known()');
collect($t);
ok(!-e $stray, 'known: orphans are removed');

# --------------------------------------------------------------------------
# a rebuild finds copies that an interrupted sweep has moved to quarantine

$t->run();

{
	my $x = send_xorb($t, random_bytes(60, 100000));
	my ($path) = $t->xorb_files($x->{hash});
	my $aside = $t->store() . '/tmp/orphan.7.' . ($path =~ s!.*/!!r);

	$t->sql("DELETE FROM xet.xorbs WHERE encode(hash, 'hex') = '"
		. plain_hash($x->{hash}) . "'");
	$t->sql('SELECT xet.store_unknown()');
	rename($path, $aside) or die $!;

	$r = rebuild();
	is($r->{code}, 0, 'quarantine: rebuilt') or diag($r->{err});
	is($r->{json}[0]{added}, 1, 'quarantine: it has a row');
	ok(-e $path && !-e $aside, 'quarantine: and its name');
	is($t->get("/api/v1/xorbs/default/$x->{hash}")->{status}, 200,
		'quarantine: it is served');
	verified('quarantine');
}

$t->done();

# --------------------------------------------------------------------------

sub rebuild { return xet(undef, { @env }, 'rebuild', '--json') }

sub copies {
	return sort { $a cmp $b } glob($t->store() . '/xorbs/default/*/*');
}

sub age { utime((time() - 2 * 86400) x 2, copies()) }

# Drops the database, and creates a new one.

sub lose {
	$t->nginx()->stop() if $t->nginx()->pid();
	$t->sql('DROP SCHEMA xet CASCADE');
	$t->pg()->migrate();
}

# Makes new rows of xorbs wait while the lock 77 is held.

sub pause {
	my ($name, $if) = @_;

	$t->sql("CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql"
		. " AS \$\$ BEGIN IF $if THEN PERFORM"
		. " pg_advisory_xact_lock(77); END IF; RETURN NEW; END; \$\$;"
		. ' CREATE TRIGGER hold BEFORE INSERT ON xet.xorbs FOR EACH ROW'
		. ' EXECUTE FUNCTION public.hold()');
}

# Makes rows that the server inserts wait, and then fail.

sub refuse {
	$t->sql('CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql'
		. " AS \$\$ BEGIN IF current_setting('application_name') ="
		. " 'nginx-xet' THEN PERFORM pg_advisory_xact_lock(77); RAISE"
		. " EXCEPTION 'refused by the test' USING ERRCODE = '23514';"
		. ' END IF; RETURN NEW; END; $$;'
		. ' CREATE TRIGGER hold BEFORE INSERT ON xet.xorbs FOR EACH ROW'
		. ' EXECUTE FUNCTION public.hold()');
}

sub go { $t->sql('DROP FUNCTION public.hold CASCADE') }

sub waits {
	return $t->sql('SELECT count(*) FROM pg_locks WHERE locktype ='
		. " 'advisory' AND objid = 77 AND NOT granted");
}

# Returns the hash and id of a copy without a row.

sub row_less {
	my %rows = map { $_ => 1 } $t->sql("SELECT encode(hash, 'hex') || ' '"
		. ' || copy_id FROM xet.xorbs');

	for (copies()) {
		my ($name, $hex) = m!([^/.]+)\.(\w{8})\z! or next;
		my $bytes = plain_hash($name);
		my $n = unpack('l', pack('L', hex($hex)));

		return ($bytes, $n) unless $rows{"$bytes $n"};
	}

	die "no copy without a row\n";
}

sub orphans {
	my ($bytes, $n) = @_;

	return $t->sql("SELECT count(*) FROM xet.orphans(ARRAY['\\x$bytes'"
		. "::bytea], ARRAY[$n])");
}

sub verified {
	my ($test) = @_;

	my $v = xet(undef, { @env }, 'verify', '--json', '--store',
		$t->store());
	my ($sum) = grep { defined $_->{faults} } @{ $v->{json} };

	is($sum->{faults}, 0, "$test: no faults") or diag($v->{out}, $v->{err});
}

# A client that has the files sends just shards, no xorbs.

sub shards {
	my ($test, @which) = @_;

	for my $n (@which) {
		my $again = $t->upload($data{$n}, xorb_chunks => 2, send => 0);

		is($t->post('/api/v1/shards', \$again->{shard})->{status}, 200,
			"$test: a shard");
		is_deeply($t->download($again->{hash},
			size => length($data{$n}))->{errors}, [],
			"$test: a file");
	}
}

sub name {
	return $t->upload($data{$_[0]}, xorb_chunks => 2, send => 0)->{hash};
}

# Two clients send the same files, and two send different files, repeatedly.  If
# a file is refused because one of its xorbs is missing, the client sends it
# again.

sub clients {
	pipe(my $from, my $to) or die "pipe: $!\n";

	my @children;
	my $parent = $$;

	for my $n (1 .. 4) {
		my $pid = fork() // die "fork: $!\n";

		if ($pid) {
			push @children, $pid;
			next;
		}

		my $stop = 0;
		my $i = 0;

		alarm(0);

		local $SIG{TERM} = sub { $stop = 1 };

		while (!$stop && getppid() == $parent) {
			my $k = $n < 3 ? 1 + $i % 8 : 8 * $n - 16 + $i % 8 + 1;
			my $why = '';

			$i++;

			for my $try (1 .. 20) {
				my $up = eval { $t->upload($data{$k},
					xorb_chunks => 2, scheme => $n % 2
					? 'lz4' : 'none') };

				$why = $up ? '' : $@;
				last if $up;
				select(undef, undef, undef, 0.2);
			}

			$why =~ s/\s+/ /g;
			syswrite($to, $why ? "$k: " . substr($why, 0, 200)
				. "\n" : "ok $k\n");
		}

		POSIX::_exit(0);
	}

	close($to);

	return ($from, @children);
}
