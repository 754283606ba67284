#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet put --recursive and xet get --recursive: a folder is stored in few xorbs
# and downloaded unchanged; no manifest or link can make xet write outside the
# folder.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ reap slurp spawn spew /;
use Test::Xet::Stall;

use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;
use JSON::PP ();
use POSIX qw/ mkfifo /;

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 600,
	http => 'log_format bytes "$request_method $uri $status";'
		. 'access_log %%DIR%%/bytes.log bytes;');

$t->run();

my $dir = tempdir(CLEANUP => 1);
my $json = JSON::PP->new()->canonical()->utf8();

# --------------------------------------------------------------------------
# all kinds of entries of a tree

make_path("$dir/in/a/b/c", "$dir/in/empty/deep", "$dir/in/.dot");

my %files = ('one' => 'abc', 'nothing' => '', '.dot/hidden' => 'x',
	'a/b/c/large' => mix(3, 3000000), 'a/run' => "#!/bin/sh\n",
	"a/\xc3\xa4 b\n\e[1m\\" => 'a name', 'a/b/same' => mix(3, 3000000),
	'-o' => 'no option');

spew("$dir/in/$_", $files{$_}) for keys %files;

chmod(0755, "$dir/in/a/run");
symlink('/etc/passwd', "$dir/in/a/link");
symlink('/etc', "$dir/in/out");
mkfifo("$dir/in/pipe", 0666);
spew("$dir/in/x.xet-part", 'left');

my $r = xet($t, 'put', '--json', '-r', "$dir/in");

is($r->{code}, 0, 'put') or diag($r->{err});
is($r->{err}, join('', map { "xet: $_\n" }
	'a/link: skipped: symbolic link',
	'out: skipped: symbolic link',
	'pipe: skipped: not a regular file',
	'x.xet-part: skipped: left over from a download'),
	'what is left out');
is(scalar(() = $t->read_file('bytes.log') =~ m!^POST \S*/shards 200!mg), 1,
	'one shard');
is(scalar(() = $t->read_file('bytes.log') =~ m!^POST \S*/xorbs/\S+ 200!mg), 1,
	'and one xorb');

my $manifest = $r->{out};

spew("$dir/manifest", $manifest);

# the tree contains a name that would be dangerous in a stranger's manifest

my @any = qw/ --names any /;

$r = xet($t, 'get', '-r', '-o', "$dir/refused", "$dir/manifest");
is($r->{code}, 1, 'get: names are looked at');

$r = xet($t, 'get', '-r', @any, '-o', "$dir/back", "$dir/manifest");
is($r->{code}, 0, 'get') or diag($r->{err});

unlink("$dir/in/a/link", "$dir/in/out", "$dir/in/pipe", "$dir/in/x.xet-part");
same("$dir/in", "$dir/back", 'it comes back');
ok(-d "$dir/back/empty/deep", 'empty folders, too');
ok(-x "$dir/back/a/run", 'programs are programs');
ok(!-x "$dir/back/one", 'and others are not');

# a second get fetches only changed files

spew("$dir/back/one", 'abd');
unlink("$dir/back/a/b/same");
chmod(0644, "$dir/back/a/run");

$r = xet($t, { stdin => "$dir/manifest" }, 'get', '--json', '-r', @any, '-o',
	"$dir/back", '-');
is($r->{code}, 0, 'get again');
same("$dir/in", "$dir/back", 'what has changed is as it was');
ok(-x "$dir/back/a/run", 'a program again');
is_deeply([ sort map { $_->{file} } grep { $_->{received_bytes} }
	@{ $r->{json} } ], [ 'a/b/same', 'one' ], 'no others are fetched');

# --------------------------------------------------------------------------
# manifests that other people have written

my ($one) = grep { $_->{file} eq 'one' } map { $json->decode($_) }
	grep { /"file"/ } split(/\n/, $manifest);

make_path("$dir/jail/in");
spew("$dir/jail/victim", 'mine');

for my $path ('../victim', 'a/../../victim', '/tmp/xet-victim', '', '.',
	'..', 'a//b', 'a/', './a', 'a/./b', "$dir/jail/victim", 'x.xet-part',
	'a.xet-state/b', join('/', ('d') x 200), 'n' x 300)
{
	for my $what ({ %$one, file => $path }, { folder => $path }) {
		$r = hostile($json->encode($what));

		is($r->{code}, 1, 'a path that leads out: '
			. substr($path, 0, 40));
		like($r->{err}, qr/\Axet: \S+: line 1: expected a file .*\n\z/,
			'reported');
	}
}

for my $line ('', '{', '[]', '1', $json->encode({ %$one, hash => 'x' }),
	$json->encode({ %$one, size => -1 }), $json->encode({ file => 'a' }),
	$json->encode({ %$one, file => "a\0b" }),
	$json->encode({ %$one, file => [ 'a' ] }), '{"file":"a","file":"b"}',
	$json->encode({ %$one, folder => 'b' }), 'x' x 100000)
{
	is(hostile($line)->{code}, 1, 'no line: ' . substr($line, 0, 60));
}

is_deeply([ map { s!.*/!!r } glob("$dir/jail/* $dir/jail/in/*") ],
	[ 'in', 'victim' ], 'nothing was made');

# existing links in the target

symlink("$dir/jail", "$dir/jail/in/up");
symlink("$dir/jail/victim", "$dir/jail/in/one");

is(hostile($json->encode({ %$one, file => 'up/victim' }))->{code}, 3,
	'a link on the way');
is(slurp("$dir/jail/victim"), 'mine', 'is not followed');
is(hostile($json->encode({ folder => 'up/new' }))->{code}, 3,
	'nor for a folder');
ok(!-e "$dir/jail/new", 'which is not made');
is(hostile($json->encode($one))->{code}, 0, 'a link at the end');
ok(!-l "$dir/jail/in/one", 'is replaced');
is(slurp("$dir/jail/victim"), 'mine', 'and not followed');

symlink("$dir/jail/victim", "$dir/jail/in/two.xet-part");
is(hostile($json->encode({ %$one, file => 'two' }))->{code}, 3,
	'a link at a temporary file');
is(slurp("$dir/jail/victim"), 'mine', 'is not followed');

# a missing file does not affect the other files

$r = hostile(join("\n", $json->encode({ %$one, file => 'gone',
	hash => 'ab' x 32 }), $json->encode({ %$one, file => 'there' }), ''));

is($r->{code}, 1, 'a file that the server has not');
ok(-f "$dir/jail/in/there", 'the next one is there');
is_deeply([ glob("$dir/jail/in/gone*") ], [], 'and nothing is left of it');

# a wrong size, and a line that continues after a zero byte

$r = hostile($json->encode({ %$one, file => 'sized',
	size => $one->{size} + 1 }));

is($r->{code}, 1, 'another size');
like($r->{err},
	qr/\Axet: sized: has 3 bytes instead of the 4 in the manifest\n\z/,
	'is reported');
is_deeply([ glob("$dir/jail/in/sized*") ], [], 'and nothing is left');

is(hostile($json->encode({ %$one, file => 'first' }) . "\0"
	. $json->encode({ %$one, file => 'second' }))->{code}, 1,
	'a zero byte in a line');

is(xet($t, 'put', '-r', "$dir/in", "$dir/in")->{code}, 2, 'two trees');
is(xet($t, 'put', '-r', "$dir/manifest")->{code}, 3, 'no tree');
is(xet($t, 'put', '-r', "$dir/jail/none")->{code}, 3, 'no such tree');

# files get their names only after a sync; the next run after an interruption
# finds the data that has arrived

{
	my $stall = Test::Xet::Stall->new(dir => tempdir(CLEANUP => 1));
	my @names = ('n/1', 'n/2', 'n/3', 'n/1');
	my $there = sub { [ map { s!.*/!!r } glob("$dir/jail/in/n/*") ] };
	my $half = [ map { ("$_.xet-part", "$_.xet-state") } 1 .. 3 ];

	spew("$dir/evil", join('', map { $json->encode({ %$one, file => $_ })
		. "\n" } @names[0 .. 2]));

	for my $kill (1, 0) {
		$stall->hold('syncfs');

		my $run = xet_start($t, { env => $stall->env() }, 'get', '-r',
			'--json', '-o', "$dir/jail/in", "$dir/evil");

		ok($stall->wait_held('syncfs', 1, 60), 'a tree is synced');
		is_deeply($there->(), $half, 'before it has its names');

		kill('KILL', $run->{pid}) if $kill;
		$stall->release('syncfs');

		my $r = xet_wait($run);

		is($r->{code}, $kill ? undef : 0, 'and done');
		is_deeply([ map { $_->{file} } @{ $r->{json} } ],
			$kill ? [] : [ @names[0 .. 2] ], 'which is told');
		is($r->{json}[0]{received_bytes}, 0, 'of what was there')
			if !$kill;
	}

	is_deeply($there->(), [ 1 .. 3 ], 'it has its names');
	is(slurp("$dir/jail/in/n/$_"), 'abc', "n/$_") for 1 .. 3;
	unlink("$dir/jail/in/n/$_") for 1 .. 3;

	# the other files get their names even if one file fails and a name is
	# repeated

	my $line = $json->encode({ %$one, file => 'n/4', hash => 'ab' x 32 });

	spew("$dir/evil", join('', (map { $json->encode({ %$one, file => $_ })
		. "\n" } @names), "$line\n"));
	is(xet($t, 'get', '-r', '-o', "$dir/jail/in", "$dir/evil")->{code}, 1,
		'one that fails');
	is_deeply($there->(), [ 1 .. 3 ], 'the others have their names');
}

# xet get also syncs a file system that is mounted inside the target folder:
# while that sync hangs, the file has no name

SKIP: {
	my $binary = Test::Xet::Cli::binary();
	my $mount = "mount -t tmpfs none $dir/jail/in/far";

	mkdir("$dir/jail/in/far");

	skip 'no mounts here', 2
		if system("unshare -m sh -c '$mount' 2> /dev/null") != 0;

	my $stall = Test::Xet::Stall->new(dir => $dir);
	my $env = $stall->env();

	spew("$dir/evil", $json->encode({ %$one, file => 'far/one' }) . "\n");
	spew("$dir/run", "$mount && export LD_PRELOAD=$env->{LD_PRELOAD}"
		. " XET_STALL=$env->{XET_STALL} && exec $binary get -r"
		. " -o $dir/jail/in $dir/evil\n");

	$stall->hold('fdatasync');

	my $pid = spawn([ 'unshare', '-m', 'sh', "$dir/run" ],
		env => { XET_ENDPOINT => $t->url('/api'),
		ASAN_OPTIONS => $env->{ASAN_OPTIONS} });

	ok($stall->wait_held('fdatasync', 1, 60), 'a mount is synced');
	$stall->release('fdatasync');
	is(reap($pid, 60), 0, 'and done');
}

# --------------------------------------------------------------------------
# many small files

my $many = 2000;

make_path("$dir/many/" . $_ % 10) for 0 .. 9;
spew("$dir/many/" . $_ % 10 . "/$_", "file $_\n" x (1 + $_ % 50))
	for 1 .. $many;

spew($t->dir() . '/bytes.log', '');

$r = xet($t, { timeout => 300 }, 'put', '--json', '--recursive',
	"$dir/many");

is($r->{code}, 0, "$many files") or diag($r->{err});
is(scalar(@{ $r->{json} }), $many, 'all of them');
is(scalar(() = $t->read_file('bytes.log') =~ m!^POST \S* 200$!mg), 2,
	'in one xorb and one shard');

spew("$dir/manifest", $r->{out});

$r = xet($t, { timeout => 300 }, 'get', '-r', '-o', "$dir/many-back",
	"$dir/manifest");

is($r->{code}, 0, 'they come back') or diag($r->{err});
same("$dir/many", "$dir/many-back", 'as they were');

$t->done();

# --------------------------------------------------------------------------

sub hostile {
	my ($lines) = @_;

	spew("$dir/evil", "$lines\n");

	return xet($t, 'get', '-r', '-o', "$dir/jail/in", "$dir/evil");
}

sub same {
	my ($one, $two, $name) = @_;

	is(`diff -r '$one' '$two' 2>&1`, '', $name);
}
