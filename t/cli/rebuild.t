#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet rebuild: if the database is lost, or is older than the store, it gets rows
# for the xorbs in the store, so that clients need not send them again.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ slurp spew /;

Test::Xet->folder('a rebuild from files');

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 300);
my @env = (env => { XET_STORE => $t->store(),
	XET_POSTGRES => $t->conninfo() });

$t->run();

my %data = map { $_ => random_bytes($_, 500000) . mix($_, 400000) } 1 .. 3;
my %file = map { $_ => $t->upload($data{$_}, xorb_chunks => 4) } 1, 2;
my $plain = random_bytes(9, 100000);

is($t->put('/api/v1/files', \$plain)->{status}, 200, 'a plain file');

my $copies = () = $t->files_in_store();
my $columns = 'hash, chunk_count, raw_size, stored_size, chunk_hashes,'
	. ' raw_ends, stored_ends, copy_id, digest';
my $was = xorbs();
my $chunks = $t->sql('SELECT count(*) FROM xet.chunks');

# --------------------------------------------------------------------------
# if the database is intact, the rebuild changes nothing

my $r = rebuild();

is($r->{code}, 0, 'a good database') or diag($r->{err});
is_deeply($r->{json}[0], { copies => $copies, known => $copies, added => 0,
	damaged => 0 }, 'nothing to do');
is(xorbs(), $was, 'its rows are as they were');

# --------------------------------------------------------------------------
# the database is lost; one store file is damaged, one is not a xorb

my $hurt = $t->xorb_file($file{2}{xorbs}[1]{hash});
my $good = slurp($hurt);

spew($hurt, substr($good, 0, -1) . ($good =~ /x\z/ ? 'y' : 'x'));
spew($t->store() . '/xorbs/default/ab/junk', 'x');

$t->nginx()->stop();
$t->sql('DROP SCHEMA xet CASCADE');
$t->pg()->migrate();

$r = rebuild();

is($r->{code}, 1, 'lost: a damaged copy') or diag($r->{err});
is_deeply($r->{json}[0], { copies => $copies, known => 0,
	added => $copies - 1, damaged => 1 }, 'lost: rows for the others');
my ($name) = $hurt =~ m!([^/]+)\z!;

like($r->{err}, qr/\Q$name\E: is damaged/, 'lost: which one');

spew($hurt, $good);
$r = rebuild();
is($r->{json}[0]{added}, 1, 'lost: when it is good again');
is(xorbs(), $was, 'lost: the rows are those of before');
cmp_ok($t->sql('SELECT count(*) FROM xet.chunks'), '>=', $chunks,
	'lost: the dedup index');
is($t->sql('SELECT identity FROM xet.store') . "\n",
	slurp($t->store() . '/identity'), 'lost: the identity');

# the server starts, and a client restores a file with just its shard

$t->run();
is($t->get('/api/health')->{status}, 200, 'lost: it serves');
is($t->get("/api/v1/files/$file{1}{hash}")->{status}, 404,
	'lost: no file is known');

my $again = $t->upload($data{1}, xorb_chunks => 4, send => 0);

is($t->post('/api/v1/shards', \$again->{shard})->{status}, 200,
	'lost: a shard, and no xorb');
is_deeply($t->download($file{1}{hash}, size => 900000)->{errors}, [],
	'lost: the file is there');
is($t->put('/api/v1/files', \$plain)->{status}, 200, 'lost: a plain file');
is(scalar(() = $t->files_in_store()), $copies + 1,
	'lost: and no new copy of it (junk is the one)');
is(xet(undef, { @env }, 'verify', '--store')->{code}, 0, 'lost: all is well');

# --------------------------------------------------------------------------
# an older database without later uploads and later heals

$t->sql('CREATE SCHEMA old; CREATE TABLE old.xorbs AS TABLE xet.xorbs');

my $first = $file{1}{xorbs}[0]{hash};

unlink($t->xorb_file($first));
$t->upload($data{1}, xorb_chunks => 4, scheme => 'none');
$file{3} = $t->upload($data{3}, xorb_chunks => 4);

$t->nginx()->stop();

my $packed = $t->sql('SELECT packed FROM xet.files ORDER BY id LIMIT 1');

$t->sql('DELETE FROM xet.files WHERE id = (SELECT max(id) FROM xet.files);'
	. ' DELETE FROM xet.xorbs WHERE hash NOT IN (SELECT hash FROM'
	. ' old.xorbs); UPDATE xet.xorbs x SET'
	. ' copy_id = o.copy_id, digest = o.digest,'
	. ' stored_size = o.stored_size, stored_ends = o.stored_ends,'
	. ' damaged_at = NULL FROM old.xorbs o WHERE o.hash = x.hash;'
	. ' UPDATE xet.files SET packed = xet.terms_moved(packed, o.hash,'
	. ' o.stored_ends, o.copy_id) FROM old.xorbs o'
	. ' WHERE position(o.hash IN packed) > 0');

isnt($t->sql('SELECT packed FROM xet.files ORDER BY id LIMIT 1'), $packed,
	'behind: terms of before');

# wrong sums, and a missing charge

$t->sql("INSERT INTO xet.usage (owner, stored, logical, files)"
	. " VALUES ('\\x0000000000000063', 5, 5, 5);"
	. ' DELETE FROM xet.charges WHERE xorb_id = (SELECT min(xorb_id)'
	. ' FROM xet.charges)');

$r = rebuild();
is($r->{code}, 0, 'behind') or diag($r->{err});
is($t->sql('SELECT sum(stored) FROM xet.usage'), 0, 'behind: usage');
is($t->sql('SELECT count(*) FROM xet.charges'),
	$t->sql('SELECT count(*) FROM xet.xorbs'), 'behind: charges');
is($r->{json}[0]{added}, 1 + @{ $file{3}{xorbs} }, 'behind: rows');
is($t->sql('SELECT packed FROM xet.files ORDER BY id LIMIT 1'), $packed,
	'behind: terms lead to the copy that is there');
is(xet(undef, { @env }, 'verify', '--store')->{code}, 0,
	'behind: all is well');

$t->run();
is_deeply($t->download($file{1}{hash}, size => 900000)->{errors}, [],
	'behind: the healed copy');

$again = $t->upload($data{3}, xorb_chunks => 4, send => 0);
is($t->post('/api/v1/shards', \$again->{shard})->{status}, 200,
	'behind: a client that remembers later xorbs');

# --------------------------------------------------------------------------
# another store

spew($t->store() . '/identity.other', '0' x 32 . "\n");
rename($t->store() . '/identity', $t->store() . '/identity.good') or die $!;
is(rebuild()->{code}, 3, 'no identity');
rename($t->store() . '/identity.other', $t->store() . '/identity') or die $!;
is(rebuild()->{code}, 3, 'another one');
rename($t->store() . '/identity.good', $t->store() . '/identity') or die $!;
unlink($t->store() . '/xorbs/default/ab/junk');

$t->done();

# --------------------------------------------------------------------------

sub rebuild { return xet(undef, { @env }, 'rebuild', '--json') }

sub xorbs {
	return join("\n", $t->sql("SELECT $columns FROM xet.xorbs"
		. ' ORDER BY hash'));
}
