#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet verify: files on a server, and a complete store with its database; damage
# to the store and to the database is found.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Process qw/ slurp spew /;

use Fcntl qw/ O_NONBLOCK O_WRONLY /;
use POSIX qw/ mkfifo /;

Test::Xet->folder('damage to files by hand; that of a bucket is in t/s3/cli.t');

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 300);

$t->run();
$t->let_age();

# files with several terms, with more terms than fit into one row, and with no
# terms

my $data = mix(3, 9000000);
my $file = $t->upload($data, xorb_chunks => 20);
my $many = many(700);
my $empty = $t->upload('');

my @store = ('--store', $t->store());
my %pg = (env => { XET_POSTGRES => $t->conninfo() });

# --------------------------------------------------------------------------
# files on a server

my $r = xet($t, 'verify', '--json', $file->{hash}, '0' x 64);

is($r->{code}, 0, 'files of a server');
is($r->{json}[0]{size}, 9000000, 'the size');
is($r->{json}[1]{chunks}, 0, 'the empty file');
is(xet($t, 'verify', 'ab' x 32)->{code}, 1, 'no such file');
is(xet($t, 'verify')->{code}, 2, 'nothing to verify');
is(xet($t, 'verify', @store, 'ab' x 32)->{code}, 2, 'too much to verify');

# --------------------------------------------------------------------------
# an undamaged store

$r = store();

is($r->{code}, 0, 'a good store') or diag($r->{out}, $r->{err});
is_deeply($r->{json}, [ { xorbs => scalar(@{ $file->{xorbs} }) + 1,
	files => 3, proven => 2, faults => 0, orphans => 0,
	bytes => bytes_read() } ], 'what it tells');

is($t->sql('select count(*) from xet.files where sha256_proven'), 2,
	'what is proven is put down');

$r = xet(undef, { %pg }, 'verify', @store, '--parallel', 4);
like($r->{out}, qr/^\d+ xorbs, 3 files, \d+ bytes read: 0 faults, 0 orphans$/,
	'as text');

is(xet(undef, { %pg }, 'verify', '--store', $t->dir() . '/none')->{code}, 3,
	'no store');
is(xet(undef, 'verify', @store)->{code}, 2, 'no database');
is(xet(undef, 'verify', @store, '--postgres', 'host=/nowhere')->{code}, 3,
	'a database that is away');

# --------------------------------------------------------------------------
# damage to files

my $xorb = $file->{xorbs}[2]{hash};
my ($path) = map { $t->store() . "/$_" } grep { /\Q$xorb\E/ }
	$t->files_in_store();
my $good = slurp($path);

for my $pos (0, 7, 8, length($good) / 2, length($good) - 1) {
	my $bad = $good;
	substr($bad, $pos, 1) ^= "\x01";
	spew($path, $bad);

	fault("byte $pos", 'xorb', $xorb, qr/^chunk \d+: /);
}

spew($path, substr($good, 0, length($good) - 1));
fault('truncated', 'xorb', $xorb, qr/^the file has \d+ bytes instead of \d+$/);

spew($path, $good . 'x');
fault('too long', 'xorb', $xorb, qr/^the file has \d+ bytes instead of \d+$/);

unlink($path);
fault('missing', 'xorb', $xorb, qr/^the file is missing$/);

mkdir($path);
fault('a folder', 'xorb', $xorb, qr/./);
rmdir($path);

spew($path, $good);
is(store()->{code}, 0, 'repaired');

# --------------------------------------------------------------------------
# files without a row are reported, but are not faults

my $stray = $t->store() . '/xorbs/default/ab/' . 'ab' x 32;

spew($stray, 'x');
utime(time() - 1000, time() - 1000, $stray);
$r = store();
is($r->{code}, 0, 'an orphan: exit code');
is($r->{json}[0]{kind}, 'orphan', 'an orphan');
is($r->{json}[0]{name}, $stray, 'its name');
is($r->{json}[1]{orphans}, 1, 'it is counted');

rename($stray, $t->store() . '/xorbs/default/ab/junk');
is(store()->{json}[-1]{orphans}, 1, 'what is no xorb');
rename($t->store() . '/xorbs/default/ab/junk',
	$t->store() . "/xorbs/default/ab/$xorb");
is(store()->{json}[-1]{orphans}, 1, 'a xorb in another folder');

# file names may be chosen by other users

{
	my $strange = $t->store() . "/xorbs/default/ab/\e[31mred\a\xc2\x9b";

	spew($strange, 'x');
	utime(time() - 1000, time() - 1000, $strange);
	$r = xet(undef, { %pg }, 'verify', @store);
	like($r->{out}, qr/\\x1b\[31mred\\x07\\xc2\\x9b/,
		'controls in a name are escaped');
	unlike($r->{out}, qr/[^\n[:print:]]/, 'and nowhere');
	unlink($strange) or die "unlink: $!\n";
}
unlink($t->store() . "/xorbs/default/ab/$xorb");

# orphans by age

sub orphans {
	my $result = xet(undef, { %pg }, 'verify', '--json', '--orphans', @_,
		@store);

	return [ $result->{code}, @{ $result->{json}[-1] // {} }{
		qw/ orphans files / } ];
}

my $now = time();
my %ages = ("$stray.12345678" => 90000, $stray => 90000,
	$stray =~ s/ab\z/ac/r => 80000, $t->store()
	. '/xorbs/default/ab/junk' => 90000);

for my $path (sort keys %ages) {
	spew($path, 'x');
	utime($now - $ages{$path}, $now - $ages{$path}, $path);
}

my @rows = map { $_->{hash} } @{ $file->{xorbs} };
my @kept = glob($t->store() . '/xorbs/default/*/*');
utime($now - 1000000, $now - 1000000, grep { !exists $ages{$_} } @kept);

is_deeply(orphans(), [ 0, 4, 0 ], 'orphans alone');
is_deeply(orphans('--older', '1d'), [ 0, 3, 0 ], 'those of a day');
is_deeply([ glob($t->store() . '/xorbs/default/*/*') ], \@kept,
	'all are there');

# with another database, or without an identity, all copies would look like
# orphans

my $identity = $t->store() . '/identity';

rename($identity, "$identity.gone") or die $!;
is(orphans()->[0], 3, 'no identity');
spew($identity, '0' x 32 . "\n");
is(orphans()->[0], 3, 'another one');
rename("$identity.gone", $identity) or die $!;
$t->sql('CREATE TABLE xet.store_was AS TABLE xet.store; DELETE FROM xet.store');
is(orphans()->[0], 3, 'a database that has none');
$t->sql('INSERT INTO xet.store TABLE xet.store_was; DROP TABLE xet.store_was');
is_deeply([ glob($t->store() . '/xorbs/default/*/*') ], \@kept,
	'nothing was removed');

is(xet(undef, { %pg }, 'verify', '--orphans', $file->{hash})->{code}, 2,
	'not of files');

unlink(keys %ages);
is(store()->{code}, 0, 'all is well');

# --------------------------------------------------------------------------
# damage to rows; each change is undone afterwards

my $id = "(select id from xet.xorbs where hash = '\\x" . plain($xorb) . "')";
my $row = "where hash = '\\x" . plain($xorb) . "'";
my $name = "where hash = '\\x" . plain($file->{hash}) . "'";

rows("update xet.xorbs set raw_size = raw_size + 1 $row",
	"update xet.xorbs set raw_size = raw_size - 1 $row",
	'raw size', 'xorb', $xorb, qr/raw size in its row differs/);

rows("update xet.xorbs set chunk_hashes = set_byte(chunk_hashes, 40,"
	. " get_byte(chunk_hashes, 40) # 1) $row",
	"update xet.xorbs set chunk_hashes = set_byte(chunk_hashes, 40,"
	. " get_byte(chunk_hashes, 40) # 1) $row",
	'a chunk hash', 'xorb', $xorb,
	qr/list of chunk hashes in its row differs/,
	'file', $file->{hash}, qr/those of another file/);

rows("update xet.xorbs set stored_ends = set_byte(stored_ends, 0,"
	. " get_byte(stored_ends, 0) # 1) $row",
	"update xet.xorbs set stored_ends = set_byte(stored_ends, 0,"
	. " get_byte(stored_ends, 0) # 1) $row",
	'an end', 'xorb', $xorb, qr/list of ends in its row differs/);

rows("update xet.files set size = size + 1 $name",
	"update xet.files set size = size - 1 $name",
	'size of a file', 'file', $file->{hash}, qr/add up to another size/);

rows("update xet.files set packed = set_byte(packed, 33, 32) $name",
	"update xet.files set packed = set_byte(packed, 33, 0) $name",
	'a term outside', 'file', $file->{hash}, qr/term/);

rows("update xet.files set packed = set_byte(packed, 36, 1) $name",
	"update xet.files set packed = set_byte(packed, 36, 0) $name",
	'a stored offset', 'file', $file->{hash},
	qr/byte range of a term does not match/);

rows("update xet.files set sha256 = set_byte(sha256, 0, get_byte(sha256, 0)"
	. " # 1) $name",
	"update xet.files set sha256 = set_byte(sha256, 0, get_byte(sha256, 0)"
	. " # 1) $name",
	'a claimed SHA-256', 'file', $file->{hash}, qr/its SHA-256 differs/);

rows('create table gone as select * from xet.terms where first_offset > 0;'
	. ' delete from xet.terms where first_offset > 0',
	'insert into xet.terms select * from gone; drop table gone',
	'a missing segment', 'file', $many, qr/terms are incomplete/);

# a missing row: the copy has no row, and files that need the row fail

rows("create table gone as select hash, id from xet.xorbs $row; update"
	. " xet.xorbs set hash = decode(repeat('cd', 32), 'hex') $row",
	'update xet.xorbs x set hash = g.hash from gone g where x.id = g.id;'
	. ' drop table gone',
	'a missing row', 'xorb', 'cd' x 32, qr/the file is missing/,
	'file', $file->{hash}, qr/refers to a xorb without a row/);

is(store()->{code}, 0, 'all is right again');

# --------------------------------------------------------------------------
# a xorb is healed after xet has read its row and before xet verifies its file.
# To pause xet, the copies of two xorbs without files are pipes: xet's only
# thread waits there.

{
	my @files = map { $t->upload(mix(30 + $_, 400000), scheme => 'lz4') }
		1 .. 2;
	my @xorbs = map { $_->{xorbs}[0]{hash} } @files;
	my ($mark, $last) = map {
		send_xorb($t, random_bytes($_, 1000))->{hash}
	} 41, 40;
	my @pipes = map { $t->xorb_file($_) } $mark, $last;
	my $gone = $t->xorb_file($xorbs[1]);

	# the only thread waits until the test opens the pipe for writing

	for (@pipes) {
		rename($_, "$_.aside") or die $!;
		mkfifo($_, 0600) or die $!;
	}

	my $passes = sub {
		my ($pipe) = @_;

		return wait_for(60, sub {
			sysopen(my $fh, $pipe, O_WRONLY | O_NONBLOCK)
		});
	};

	my $run = xet_start(undef, { env => { XET_POSTGRES => $t->conninfo()
		. ' application_name=verifier' } }, 'verify', '--json',
		'--sha256', '--parallel', 1, @store);

	ok(wait_for(60, sub {
		$t->sql('select count(*) from pg_stat_activity where'
			. " application_name = 'verifier' and query = 'COMMIT'"
			. " and state = 'idle'") == 1
	}), 'the rows are read');

	ok($passes->($pipes[0]), 'so are the xorbs');

	# one of the two files is healed

	heal($files[0], mix(31, 400000));
	rename($gone, "$gone.aside") or die $!;

	ok($passes->($pipes[1]), 'then files are read');

	my $healed = xet_wait($run);
	my %faults = map { ("$_->{kind} $_->{name}" => 1) }
		grep { $_->{kind} } @{ $healed->{json} };

	is_deeply([ map { $faults{"file $_->{hash}"} } @files ], [ undef, 1 ],
		'a xorb healed meanwhile is no fault')
		or diag($healed->{out}, $healed->{err});
	is($faults{"xorb $xorbs[0]"}, undef, 'nor is its xorb');
	ok($faults{"xorb $last"}, 'the pipe is a fault');

	is($t->sql('select count(*) from xet.files where sha256_proven'
		. " and hash = '\\x" . plain($files[0]{hash}) . "'"), 1,
		'and its SHA-256 is proven');

	for (@pipes) {
		unlink($_);
		rename("$_.aside", $_) or die $!;
	}

	rename("$gone.aside", $gone) or die $!;
	is(store()->{code}, 0, 'all is well');
}

# --------------------------------------------------------------------------
# the disk of the store is unmounted during a run: missing copies do not count
# as damage.  The first copy is a pipe, at which the only thread waits.

{
	my $store = $t->store();
	my ($first) = split(/\n/, $t->sql("SELECT encode(hash, 'hex')"
		. ' FROM xet.xorbs ORDER BY id'));
	my $path = $t->xorb_file(plain($first));
	my @disk = ('identity', 'xorbs');
	my $away = $path =~ s!^\Q$store\E!$store/away!r;

	rename($path, "$path.aside") or die $!;
	mkfifo($path, 0600) or die $!;

	my $run = xet_start(undef, { env => { XET_POSTGRES => $t->conninfo()
		. ' application_name=verifier' } }, 'verify', '--json',
		'--parallel', 1, @store);

	ok(wait_for(60, sub {
		$t->sql('select count(*) from pg_stat_activity where'
			. " application_name = 'verifier' and query = 'COMMIT'"
			. " and state = 'idle'") == 1
	}), 'away: it has begun');

	mkdir("$store/away") or die $!;
	rename("$store/$_", "$store/away/$_") or die $! for @disk;

	# on a busy machine the thread may not have reached the pipe yet

	ok(wait_for(60, sub {
		sysopen(my $fh, $away, O_WRONLY | O_NONBLOCK)
			|| slurp("/proc/$run->{pid}/stat") =~ /\) Z /
	}), 'away: it goes on');

	my $r = xet_wait($run);

	rename("$store/away/$_", "$store/$_") or die $! for @disk;
	rmdir("$store/away") or die $!;
	unlink($path) or die $!;
	rename("$path.aside", $path) or die $!;

	is($r->{code}, 3, 'away: broken off') or diag($r->{out}, $r->{err});
	like($r->{err}, qr/disk mounted/, 'away: and why');
	cmp_ok($t->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at'
		. ' IS NOT NULL'), '<=', 1, 'away: nothing but the pipe');
	is(store()->{code}, 0, 'away: and back');
}

# --------------------------------------------------------------------------

$t->done();

# --------------------------------------------------------------------------

sub store {
	return xet(undef, { %pg }, 'verify', '--json', '--sha256', @store);
}

# Checks that xet finds these faults, possibly among others, and that its exit
# code is not 0.

sub fault {
	my ($test, @faults) = @_;

	my $result = store();

	is($result->{code}, 1, "$test: exit code") or diag($result->{err});

	while (my ($kind, $hash, $text) = splice(@faults, 0, 3)) {
		my ($found) = grep { ($_->{kind} // '') eq $kind
			&& $_->{name} eq $hash } @{ $result->{json} };

		like($found->{fault} // '', $text, "$test: found")
			or diag($result->{out});
	}
}

sub rows {
	my ($do, $undo, @fault) = @_;

	$t->sql($do);
	fault(@fault);
	$t->sql($undo);
}

# Removes the copy of the only xorb of a file, and uploads the xorb again,
# without compression.

sub heal {
	my ($what, $bytes) = @_;

	unlink($t->xorb_file($what->{xorbs}[0]{hash})) or die $!;

	is(send_xorb($t, $bytes, scheme => 'none', sizes => [
		map { $_->{raw_length} } @{ hash_file($bytes)->{chunks} }
		])->{hash}, $what->{xorbs}[0]{hash}, 'healed');
}

# Makes a file of n terms, each with one chunk of the same xorb.

sub many {
	my ($n) = @_;

	my $part = make_xorb(random_bytes(9, 1000), sizes => [ 100 ]);
	my @chunks = @{ $part->{chunks} };

	my $shard = make_shard({ files => [ { terms => [ map { {
		xorb => $part->{hash}, start => $_ % 10, end => $_ % 10 + 1,
		chunks => [ $chunks[$_ % 10] ]
	} } 1 .. $n ] } ], xorbs => [ $part ] });

	is($t->post("/api/v1/xorbs/default/$part->{hash}", \$part->{bytes})
		->{status}, 200, 'xorb');
	is($t->post('/api/v1/shards', \$shard->{bytes})->{status}, 200,
		'shard of many terms');

	return $shard->{files}[0]{hash};
}

# Returns the number of bytes that a verification reads: each xorb once, and
# xorbs of files with a SHA-256 twice.

sub bytes_read {
	my @sizes = map { $_->{stored_size} } @{ $file->{xorbs} };
	my $sum = 0;

	$sum += 2 * $_ for @sizes;

	return $sum + -s (grep { $_ !~ join('|', map { $_->{hash} }
		@{ $file->{xorbs} }) } map { $t->store() . "/$_" }
		$t->files_in_store())[0];
}

sub plain {
	my ($hash) = @_;

	return join('', map { unpack('H16', reverse(pack('H16', $_))) }
		$hash =~ /(.{16})/g);
}
