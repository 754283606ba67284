#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A killed put is resumed: acknowledged data is not resent, unless the server
# has lost it, and the journal is not trusted.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ build_dir slurp spew /;
use Test::Xet::Real qw/ sha256_file /;

use File::Temp qw/ tempdir /;

my $mib = 1048576;

# The server refuses shards for a while, so that all xorbs are stored and no
# file exists.  Dedup is off; otherwise it would also prevent xorbs from being
# sent again.

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 400,
	http => 'log_format bytes "$request_method $uri $status";'
		. 'access_log %%DIR%%/bytes.log bytes;',
	locations => <<'EOC');
location /api/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }

        location = /api/v1/shards {
            if (-f %%DIR%%/held) {
                return 503;
            }

            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }

        location /api/v1/chunks/ {
            return 404;
        }

        location /xorbs/ {
            %%DATA%%
        }
EOC

$t->run();

my $dir = tempdir(CLEANUP => 1);
my $cache = tempdir(CLEANUP => 1) . '/a/cache';
my $file = "$dir/file";
my @put = ({ env => { XDG_CACHE_HOME => $cache } }, 'put', '--json',
	'--parallel', 1, '--retries', 100, $file);

system(build_dir() . '/tools/xet_make random 7 ' . 200 * $mib . " > $file") == 0
	or die;

# --------------------------------------------------------------------------
# the put is killed in the middle

spew($t->dir() . '/held', '');

my $run = xet_start($t, @put);

ok(wait_for(60, sub { sent() >= 2 }), 'two xorbs are sent');
kill('KILL', $run->{pid});
is(xet_wait($run)->{code}, undef, 'killed');
unlink($t->dir() . '/held');

my $before = sent();
my $r = xet($t, @put);

is($r->{code}, 0, 'resumed') or diag($r->{err});
is($r->{err}, '', 'without a word');

my %count;

$count{$_}++ for xorbs();
is((grep { $_ > 1 } values %count), 0, 'no xorb is sent twice');
cmp_ok($r->{json}[0]{deduplicated_bytes}, '>=', ($before - 1) * 60 * $mib,
	"$before xorbs were there");
cmp_ok(keys %count, '<=', 5, 'nor are their bytes in others');
is_deeply([ glob("$cache/xet/*") ], [], 'nothing is left to resume');
comes_back('killed');

# --------------------------------------------------------------------------
# the journal of a put that waits for its shard

my $n = 40;

sub broken_off {
	system(build_dir() . '/tools/xet_make random ' . $n++ . ' ' . 4 * $mib
		. " > $file") == 0 or die;

	spew($t->dir() . '/held', '');

	my $from = sent();
	my $put = xet_start($t, @put);

	wait_for(60, sub { sent() > $from && $t->read_file('bytes.log')
		=~ m!shards 503\n\z! }) or diag('the shard was not held');

	kill('KILL', $put->{pid});
	xet_wait($put);
	unlink($t->dir() . '/held');

	return (glob("$cache/xet/*"))[0];
}

my $journal = broken_off();

is((stat($journal))[2] & 07777, 0600, 'the journal is for the user alone');
is((stat("$cache/xet"))[2] & 07777, 0700, 'and so is its folder');

$before = sent();
is(xet($t, @put)->{code}, 0, 'all xorbs were sent');
is(sent(), $before, 'none is sent again');
comes_back('only the shard was missing');

# truncated or changed journals: the data is sent again

for my $damage (
	[ 'cut' => sub { truncate($_[0], (-s $_[0]) - 7) } ],
	[ 'a flipped bit' => sub { flip($_[0], 1000) } ],
	[ 'another xorb hash' => sub { flip($_[0], 10) } ],
	[ 'a wild count' => sub { flip($_[0], 8 + 32 + 3) } ],
	[ 'of another version' => sub { flip($_[0], 0) } ],
	[ 'nothing in it' => sub { truncate($_[0], 0) } ])
{
	my ($name, $do) = @$damage;

	$do->(broken_off());
	$before = sent();
	is(xet($t, @put)->{code}, 0, "$name: put");
	is(sent(), $before + 1, "$name: sent again");
	comes_back($name);
}

# an old journal is not used

my $old = time() - 8 * 86400;

utime($old, $old, broken_off());
$before = sent();
is(xet($t, @put)->{code}, 0, 'a week old: put');
is(sent(), $before + 1, 'a week old: sent again');

# a folder to which others can write is not used

broken_off();
chmod(0777, "$cache/xet");
$before = sent();
is(xet($t, @put)->{code}, 0, 'a folder of all: put');
is(sent(), $before + 1, 'a folder of all: sent again');
chmod(0700, "$cache/xet");
unlink(glob("$cache/xet/*"));

# each command line has its own journal

$journal = broken_off();
spew("$dir/small", 'abc');
is(xet($t, { env => { XDG_CACHE_HOME => $cache } }, 'put', "$dir/small")
	->{code}, 0, 'another put');
ok(-e $journal, 'leaves it alone');
$before = sent();
is(xet($t, @put)->{code}, 0, 'the first put is resumed');
is(sent(), $before, 'and sends nothing');

# --------------------------------------------------------------------------
# the server has lost all data: it refuses the shard, and xet sends the data
# again

broken_off();
$t->sql('DELETE FROM xet.chunks');
$t->sql('DELETE FROM xet.file_xorbs; DELETE FROM xet.xorbs');
$before = sent();

$r = xet($t, @put);

is($r->{code}, 0, 'an emptied server') or diag($r->{err});
is($r->{err}, '', 'an emptied server: without a word');
is(sent(), $before + 1, 'an emptied server: sent again, once');
comes_back('an emptied server');

# the current folder was deleted: xet has no journal, and reports no error

mkdir("$dir/gone");
is(system('cd ' . "$dir/gone && rmdir ../gone && XDG_CACHE_HOME=$cache"
	. ' XET_ENDPOINT=' . $t->url('/api') . ' '
	. Test::Xet::Cli::binary() . " put $file > $dir/put 2>&1"), 0,
	'a put in a folder that is gone') or diag(slurp("$dir/put"));

# data from a pipe cannot be read twice: the put fails, and the next run sends
# the data

for my $code (4, 0) {
	if ($code) {
		system(build_dir() . '/tools/xet_make random 99 ' . 20 * $mib
			. " > $file") == 0 or die;

		spew($t->dir() . '/held', '');
		$put[-1] = '-';
		$put[0]{stdin} = $file;
		$before = sent();
		$run = xet_start($t, @put);
		wait_for(60, sub { sent() > $before
			&& $t->read_file('bytes.log') =~ m!shards 503\n\z! });
		kill('KILL', $run->{pid});
		xet_wait($run);
		unlink($t->dir() . '/held');
		$t->sql('DELETE FROM xet.file_xorbs; DELETE FROM xet.xorbs');
	}

	$r = xet($t, @put);
	is($r->{code}, $code, "a pipe: $code") or diag($r->{err});
}

comes_back('a pipe');

$t->allow(qr/./);
$t->done();

# --------------------------------------------------------------------------

sub xorbs {
	return $t->read_file('bytes.log') =~ m!^POST \S*/xorbs/(\S+) 200$!mg;
}

sub sent { return scalar(my @all = xorbs()) }

sub comes_back {
	my ($name) = @_;

	my $hash = xet(undef, 'hash', '--json', $file)->{json}[0]{hash};

	is(xet($t, 'get', '-o', "$dir/out", $hash)->{code}, 0, "$name: get");
	is(sha256_file("$dir/out"), sha256_file($file), "$name: comes back");
}

sub flip {
	my ($name, $pos) = @_;

	open(my $fh, '+<:raw', $name) or die;
	seek($fh, $pos, 0);
	read($fh, my $byte, 1);
	seek($fh, $pos, 0);
	print $fh chr(ord($byte) ^ 1);
	close($fh);
}
