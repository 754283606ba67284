#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet backup and xet restore: successive generations in one folder, which may be
# packed with tar; damage in the store and in the backup.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Files;
use Test::Xet::Process qw/ build_dir run_command slurp spew /;

use Fcntl qw/ :flock /;
use File::Path qw/ remove_tree /;
use POSIX qw/ mkfifo /;

Test::Xet->folder(
	'backups by files; those of a bucket are in t/s3/cli.t');

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 600);
my $r = Test::Xet->new(workers => 1, log => 'info', timeout => 600);

# the test reads restored files through a server, as clients do

my %data = map { $_ => mix($_, 700000 + $_) } 1 .. 4;
my %file;
my @sql = ('--sql', build_dir() . '/sql');
my $backup = $t->dir() . '/backup';
my @to = (env => { XET_STORE => $r->store(),
	XET_POSTGRES => $r->conninfo() });

$t->run();
$r->pg()->start();

$file{$_} = $t->upload($data{$_}, xorb_chunks => 4) for 1, 2;
my $plain = mix(9, 3000000);

is($t->put('/api/v1/files', \$plain)->{status}, 200, 'a plain file');

# an operation of a commit that is not complete yet

$t->sql("INSERT INTO xet.hub_staged VALUES ('u', 0, now(), '{2}', '{p}', '{1}',"
	. " '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}')");

my $copies = () = $t->files_in_store();

# --------------------------------------------------------------------------
# generations

my $one = backup();

is($one->{code}, 0, 'backup') or diag($one->{err});
is_deeply([ @{ $one->{json}[0] }{ qw/ files copies new lost damaged / } ],
	[ 3, $copies, $copies, 0, 0 ], 'backup: all of it');
is_deeply([ generations() ], [ $one->{json}[0]{generation} ],
	'backup: a generation');
is_deeply(\@{ [ names($backup) ] }, [ names($t->store()) ],
	'backup: the copies of the store');
is(xet(undef, 'backup', '--verify', '--json', $backup)->{json}[0]{copies},
	$copies, 'backup: verified');
is($t->sql('SELECT count(*) FROM pg_locks WHERE locktype = \'advisory\''), 0,
	'backup: no lock is left');

my %was = map { $_ => inode("$backup/$_") } names($backup);

$file{3} = $t->upload($data{3}, xorb_chunks => 4);

my $two = backup();

is($two->{json}[0]{new}, @{ $file{3}{xorbs} }, 'again: what is new');
is_deeply({ map { $_ => inode("$backup/$_") } keys %was }, \%was,
	'again: nothing is written twice');
is(scalar(generations()), 2, 'again: two generations');
is(backup()->{json}[0]{new}, 0, 'again: nothing new');

# --------------------------------------------------------------------------
# restore

my $back = restore($backup);

is($back->{code}, 0, 'restore') or diag($back->{err});
is_deeply([ @{ $back->{json}[-1] }{ qw/ files there lost / } ], [ 4, 0, 0 ],
	'restore: all of it');
whole('restore', 1, 2, 3);
is($r->sql('SELECT count(*) FROM xet.hub_staged'), 0,
	'restore: no operations of unfinished commits');
is_deeply([ sort { $a cmp $b } grep { !/^xorbs/ } below($r->store()) ],
	[ 'identity' ], 'restore: nothing else is in the store');

# uploads to the restored store work, and clients need not send known xorbs
# again

is($r->upload($data{1}, xorb_chunks => 4)->{hash}, $file{1}{hash},
	'restore: an upload');

# restore does not overwrite existing data

$r->nginx()->stop();

my $refused = restore($backup);

is($refused->{code}, 3, 'a store that is not empty');
like($refused->{err}, qr/has files|not empty/, 'and why');
is($r->sql('SELECT count(*) FROM xet.files'), 4, 'its rows are there');

remove_tree($r->store() . "/$_") for qw/ xorbs tmp /;
unlink($r->store() . '/identity');
$refused = restore($backup);
is($refused->{code}, 3, 'a database with files');
like($refused->{err}, qr/the database has files/, 'a database: why');
is_deeply([ below($r->store()) ], [], 'the store is as it was');

$r->sql('CREATE SCHEMA xet_restore; COMMENT ON SCHEMA xet_restore IS'
	. " '20260101T000000Z'");
is(restore($backup)->{code}, 3, 'a database of another restore, with files');
is($r->sql('SELECT count(*) FROM xet.files'), 4, 'its files are there');
$r->sql('DROP SCHEMA xet_restore');

$back = restore('--force', '--generation', $one->{json}[0]{generation},
	$backup);
is($back->{code}, 0, 'an older generation, by force') or diag($back->{err});
whole('older', 1, 2);
is($r->get("/api/v1/files/$file{3}{hash}")->{status}, 404,
	'older: later ones are not there');
$refused = restore('--force', $backup);
is($refused->{code}, 3, 'beside a running server');
like($refused->{err}, qr/a server is connected/, 'beside a server: why');
$r->nginx()->stop();

is(xet(undef, { @to }, 'restore', @sql,
	'--generation', '../x', $backup)->{code}, 2,
	'a name that is no generation');

# only the database was lost: restore does not replace existing copies

%was = map { $_ => inode($r->store() . "/$_") } names($r->store());
$back = restore('--force', $backup);
is($back->{json}[-1]{there}, keys %was, 'the store was there');
is_deeply({ map { $_ => inode($r->store() . "/$_") } keys %was }, \%was,
	'its copies are as they were');
whole('database alone', 1, 2, 3);
empty();

# --------------------------------------------------------------------------
# the folder is packed with tar, then unpacked and verified

is(tar('-c', '-f', "$backup.tar", '-C', $backup, '.'), 0, 'tar: packed');
mkdir("$backup.unpacked") or die "mkdir: $!";
is(tar('-x', '-f', "$backup.tar", '-C', "$backup.unpacked"), 0,
	'tar: unpacked');
is(xet(undef, 'backup', '--verify', '--json', "$backup.unpacked")
	->{json}[0]{faults}, 0, 'tar: verified');

$back = restore("$backup.unpacked");
is($back->{code}, 0, 'tar: restored') or diag($back->{err});
is_deeply([ @{ $back->{json}[-1] }{ qw/ files there lost / } ], [ 4, 0, 0 ],
	'tar: all of it');
whole('tar', 1, 2, 3);
is_deeply([ grep { !/^xorbs/ } below($r->store()) ], [ 'identity' ],
	'tar: nothing else is in the store');
empty();

# a truncated archive

spew("$backup.tar", substr(slurp("$backup.tar"), 0, 2000000));
mkdir("$backup.cut") or die "mkdir: $!";
isnt(tar('-x', '-f', "$backup.tar", '-C', "$backup.cut"), 0, 'tar: cut short');
is(xet(undef, 'backup', '--verify', "$backup.cut")->{code}, 1,
	'tar: cut short, and verified');

# --------------------------------------------------------------------------
# damage in the store: the backup keeps its intact copies

my $path = named($t->store(), $file{1}{xorbs}[0]{hash});
my $good = slurp($t->store() . "/$path");

spew($t->store() . "/$path", 'x' . substr($good, 1));
is(backup()->{json}[0]{damaged}, 0, 'damage that only reading shows');
is(slurp("$backup/$path"), $good, 'the backup has good bytes');

unlink($t->store() . "/$path");

my $hurt = backup();

is($hurt->{code}, 1, 'a copy that is gone');
is($hurt->{json}[0]{damaged}, 1, 'a copy that is gone is counted');
like($hurt->{err}, qr/\Q@{[ $path =~ m!([^\/]+)$! ]}\E.*the backup has it/,
	'a copy that is gone is named');
is(slurp("$backup/$path"), $good, 'the backup still has good bytes');
is(restore($backup)->{code}, 0, 'and what is restored');
whole('gone', 1, 2, 3);
empty();

# the operator puts the intact copy back, as xet backup recommends

run_command([ 'cp', '-p', "$backup/$path", $t->store() . "/$path" ]);
is(xet(undef, { env => env() }, 'verify', '--json', '--store', $t->store())
	->{code}, 0, 'put back');

# a copy that was damaged before the first backup

$file{4} = $t->upload($data{4}, xorb_chunks => 4);

my $lost = named($t->store(), $file{4}{xorbs}[1]{hash});

spew($t->store() . "/$lost", 'x' . substr(slurp($t->store() . "/$lost"), 1));

$hurt = backup();
is($hurt->{code}, 1, 'a damaged copy');
is($hurt->{json}[0]{lost}, 1, 'a damaged copy is counted');
ok(!-e "$backup/$lost", 'and not copied');
is(xet(undef, 'backup', '--verify', $backup)->{code}, 0,
	'the backup is as it says');

$back = restore($backup);
is($back->{code}, 1, 'restored without it');
is($back->{json}[-1]{lost}, 1, 'restored without it: counted');
whole('without it', 1, 2, 3);
is($r->sql('SELECT count(*) FROM xet.xorbs WHERE damaged_at IS NOT NULL'), 1,
	'it is marked');
$r->upload($data{4}, xorb_chunks => 4);
whole('healed', 1 .. 4);
empty();

# --------------------------------------------------------------------------
# the backup keeps both copies of a healed xorb until --keep removes the old
# copy

$t->upload($data{4}, xorb_chunks => 4, scheme => 'none');

my $healed = backup();

is($healed->{code}, 0, 'healed') or diag($healed->{err});
is($healed->{json}[0]{new}, 1, 'the new copy');

spew("$backup/xorbs/default/00/notes.txt", 'x');

my $kept = backup('--keep', 2);

is(scalar(generations()), 2, 'two are kept');
is($kept->{json}[0]{removed}, 0, 'and all copies');

# a copy to which no generation refers, as if its generation had been removed

my $old = "xorbs/default/ab/" . 'ab' x 32 . '.00000001';

spew("$backup/$old", 'x');
is(backup('--keep', 1)->{json}[0]{removed}, 1, 'a copy that none needs');
ok(!-e "$backup/$old", 'is gone');
ok(-e "$backup/xorbs/default/00/notes.txt", 'a file that is no copy is kept');
is(scalar(generations()), 1, 'one is kept');
is_deeply([ grep { !/notes/ } names($backup) ], [ names($t->store()) ],
	'with all that it needs');

# a backup removes nothing while another process reads the folder

my $run = xet_start(undef, 'backup', '--verify', '--rate', '50k', $backup);

ok(wait_for(20, sub { being_read() }), 'it is being verified');
$kept = backup('--keep', 1);
is($kept->{code}, 0, 'a backup meanwhile') or diag($kept->{err});
like($kept->{err}, qr/the backup is being read/, 'which removes nothing');
is(scalar(generations()), 2, 'no generation is removed meanwhile');
kill('KILL', $run->{pid});
xet_wait($run);

$run = xet_start(undef, { @to }, 'restore', @sql, '--rate', '50k', $backup);
ok(wait_for(20, sub { being_read() }), 'it is being restored');
kill('KILL', $run->{pid});
xet_wait($run);
ok(!being_read(), 'and nobody reads it any more');
empty();

# the list determines which copies are removed: if the list is truncated, no
# copies are removed

my ($last_list) = reverse(sort(glob("$backup/generations/*.list")));
my $lines = slurp($last_list);

spew($last_list, $lines =~ s/[^\n]*\n\z//r);
$kept = backup('--keep', 2);
is($kept->{code}, 1, 'a list that was cut');
like($kept->{err}, qr/no generation was removed/, 'a list: what comes of it');
is(scalar(generations()), 3, 'all are there');
spew($last_list, $lines);

# other file names do not count as generations

spew("$backup/generations/$_.json", '{}') for qw/ zero 20261399 /;
$kept = backup('--keep', 1);
is($kept->{code}, 0, 'other files beside generations') or diag($kept->{err});
unlink("$backup/generations/$_.json") for qw/ zero 20261399 /;
is(scalar(generations()), 1, 'one is kept again');

# --------------------------------------------------------------------------
# damage in the backup

$path = named($backup, $file{2}{xorbs}[0]{hash});
$good = slurp("$backup/$path");
spew("$backup/$path", substr($good, 0, -1) . 'x');

my $bad = xet(undef, 'backup', '--verify', '--json', $backup);

is($bad->{code}, 1, 'damage in the backup');
is($bad->{json}[0]{faults}, 1, 'damage in the backup is counted');
like($bad->{err}, qr/\Q$path\E: is damaged/, 'damage is named');

unlink("$backup/$path");
mkfifo("$backup/$path", 0644) or die "mkfifo: $!";
is(xet(undef, 'backup', '--verify', '--json', $backup)->{json}[0]{faults}, 1,
	'a pipe is read at once');

unlink("$backup/$path");
is(backup()->{json}[0]{new}, 1, 'the next backup copies it again');
is(slurp("$backup/$path"), $good, 'and it is good');

my ($dump) = sort { $b cmp $a } glob("$backup/generations/*.dump");
my $bytes = slurp($dump);

spew($dump, substr($bytes, 0, -1));
is(xet(undef, 'backup', '--verify', $backup)->{code}, 1, 'a dump cut short');
$back = restore($backup);
is($back->{code}, 1, 'is not restored');
like($back->{err}, qr/SHA-256/, 'is not restored: why');
is_deeply([ below($r->store()) ], [], 'and nothing was written');
spew($dump, $bytes);

my ($json) = reverse(sort(glob("$backup/generations/*.json")));

$bytes = slurp($json);
spew($json, $bytes =~ s/("schema": )\d+/${1}9999/r);
$back = restore('--force', $backup);
is($back->{code}, 1, 'a backup of a later version');
like($back->{err}, qr/was made by a later version/, 'a later version: why');
is_deeply([ below($r->store()) ], [], 'nor was anything written of it');
spew($json, $bytes);

# --------------------------------------------------------------------------
# refused command lines

is(xet(undef, { env => { XET_POSTGRES => $t->conninfo(), XET_STORE => '' } },
	'backup', $backup)->{code}, 2, 'no store');
is(xet(undef, { env => env() }, 'backup', $t->store())->{code}, 2,
	'the store itself');
is(xet(undef, { env => env() }, 'backup', $t->dir())->{code}, 3,
	'a folder with other files');
is(xet(undef, { env => { %{ env() }, XET_STORE => $r->store() } }, 'backup',
	$backup)->{code}, 3, 'another store');
is(xet(undef, { env => env() }, 'backup', '--rate', 'fast', $backup)->{code},
	2, 'no rate');
is(xet(undef, { env => env() }, 'backup', '--keep', 0, $backup)->{code}, 2,
	'none to keep');

# a backup is a folder; "-" is refused

for my $verb ([ 'backup' ], [ 'backup', '--verify' ],
	[ 'restore', @sql, '--force' ])
{
	my $on = $verb->[0] eq 'restore' ? $to[1] : env();
	my $r = xet(undef, { env => $on, dir => $t->dir(),
		stdin => "$backup.tar" }, @$verb, '-');

	is($r->{code}, 2, "-: @$verb[0 .. $#$verb]");
	is($r->{out}, '', '-: nothing on the standard output');
	like($r->{err}, qr/^xet: -: is not a folder.* with tar\b[^\n]*\n\z/,
		'-: what to do');
}

is_deeply([ below($r->store()) ], [], '-: nothing is written to the store');
is($r->sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'xet'"), 0,
	'-: nor to the database');
ok(!-e $t->dir() . '/-', '-: no folder of this name is made');

# --------------------------------------------------------------------------

$t->done();

# --------------------------------------------------------------------------

sub env {
	return { XET_STORE => $t->store(), XET_POSTGRES => $t->conninfo() };
}

sub backup {
	return xet(undef, { env => env() }, 'backup', '--json', @_, $backup);
}

# Returns whether another process holds the readers lock.

sub being_read {
	open(my $fh, '<', "$backup/readers") or return 0;

	return !flock($fh, LOCK_EX | LOCK_NB);
}

sub restore {
	return xet(undef, { @to }, 'restore', @sql, '--json', @_);
}

sub tar { return (run_command([ 'tar', @_ ]))[0] }

sub generations {
	return map { m!([^/]+)\.json$! } sort { $a cmp $b }
		glob("$backup/generations/*.json");
}

sub names {
	my ($folder) = @_;

	return map { substr($_, length("$folder/")) } sort { $a cmp $b }
		glob("$folder/xorbs/default/*/*");
}

# Returns the path of a xorb's copy, relative to the folder.

sub named {
	my ($folder, $hash) = @_;

	return (grep { index($_, $hash) >= 0 } names($folder))[0];
}

# Returns all files below a folder, without the folders themselves.

sub below {
	my ($folder) = @_;

	return map { chomp; substr($_, length("$folder/")) } sort { $a cmp $b }
		`find $folder -type f`;
}

sub inode { return join(' ', (stat($_[0]))[1, 9]) }

# Checks that a server returns the files, and that the store passes
# verification.

sub whole {
	my ($test, @which) = @_;

	$r->run() unless $r->nginx()->pid();

	for my $n (@which) {
		my $d = $r->download($file{$n}{hash},
			size => length($data{$n}));

		is_deeply($d->{errors}, [], "$test: file $n");
		ok($d->{data} eq $data{$n}, "$test: bytes of file $n");
	}

	my $v = xet(undef, { @to }, 'verify', '--json', '--store', $r->store());
	my ($sum) = grep { defined $_->{faults} } @{ $v->{json} };

	is($sum->{orphans}, 0, "$test: no orphans");
	is($sum->{faults}, $r->sql('SELECT count(*) FROM xet.xorbs WHERE'
		. ' damaged_at IS NOT NULL'), "$test: no other faults")
		or diag($v->{out}, $v->{err});
}

# Empties the machine to which backups are restored.

sub empty {
	$r->nginx()->stop();
	$r->sql('DROP SCHEMA IF EXISTS xet CASCADE');
	remove_tree($r->store() . "/$_") for qw/ xorbs tmp /;
	unlink($r->store() . "/$_") for qw/ identity restore /;
}
