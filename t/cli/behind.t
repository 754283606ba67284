#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet verify --store and the collector with a database that is older than the
# store.  A standby is refused.  With a clone that was made before later
# uploads, no copies are removed just because the clone has no row for them.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Collector;
use Test::Xet::Files;
use Test::Xet::Process qw/ spew /;

my $t = Test::Xet->new(workers => 1, timeout => 300);

$t->run();
$t->let_age();

my $store = $t->store();

# makes a file and its rows some days old, because other files are new

sub age {
	my ($file, $days) = @_;

	my $then = time() - $days * 86400;

	for my $xorb (@{ $file->{xorbs} }) {
		my $hash = plain_hash($xorb->{hash});

		utime($then, $then, glob("$store/xorbs/default/*/"
			. "$xorb->{hash}*"));
		$t->sql("UPDATE xet.xorbs SET created_at = now()"
			. " - interval '$days days' WHERE hash = '\\x$hash'");
	}
}

sub orphans {
	my ($pg, @args) = @_;

	my $r = xet(undef, { env => { XET_POSTGRES => $pg->conninfo() } },
		'verify', '--json', '--store', $store, @args);

	return [ $r->{code}, @{ $r->{json}[-1] // {} }{qw/ orphans / },
		$r->{err} ];
}

sub removed {
	my ($pg) = @_;

	my $r = collect($t, pg => $pg);

	return [ $r->{code}, @{ $r->{json}[-1] // {} }{
		qw/ orphans orphans_left / }, $r->{err} ];
}

sub files { return [ sort { $a cmp $b } glob("$store/xorbs/default/*/*") ] }

my $one = $t->upload(mix(3, 300000));

age($one, 5);

# a copy without a row in any database is a real orphan

my $stray = "$store/xorbs/default/ab/" . 'ab' x 32 . '.12345678';

spew($stray, 'x');
utime((time() - 7 * 86400) x 2, $stray);

my $copy = $t->pg()->copy($t->dir() . '/copy', standby => 1);

$copy->start();

# an upload after the database was cloned, aged to two days ago

my $two = $t->upload(mix(7, 400000));

age($two, 2);
is(xet($t, 'verify', $two->{hash})->{code}, 0, 'a file that came since');

my $all = files();

# --------------------------------------------------------------------------
# a standby

is($copy->sql('SELECT pg_is_in_recovery()'), 't', 'a standby');

for my $args ([ '--orphans' ], [], [ '--sha256' ])
{
	is_deeply(orphans($copy, @$args), [ 3, undef, 'xet: postgres:'
		. ' is a standby, which may lag behind; connect to the'
		. " primary\n" ], "standby: @$args");
}

is_deeply(files(), $all, 'standby: nothing was removed');

# --------------------------------------------------------------------------
# a clone of the database; it is a primary, so it is not refused

$copy->promote();
is($copy->sql('SELECT pg_is_in_recovery()'), 'f', 'a clone');

is_deeply(orphans($copy, '--orphans'), [ 0, 1 + @{ $two->{xorbs} }, '' ],
	'clone: orphans');
is_deeply(removed($copy), [ 0, 1, 0 + @{ $two->{xorbs} }, '' ],
	'clone: newer files are kept');
is_deeply(files(), [ grep { $_ ne $stray } @$all ],
	'clone: an old orphan is removed');
is(xet($t, 'verify', $two->{hash})->{code}, 0, 'clone: no byte is lost');

# a database without any xorb

my $n = @{ $one->{xorbs} } + @{ $two->{xorbs} };

$copy->sql('DELETE FROM xet.file_xorbs; DELETE FROM xet.xorbs');
is_deeply(removed($copy), [ 0, 0, $n, '' ], 'a database without xorbs');

# --------------------------------------------------------------------------
# the original database

is_deeply(removed($t->pg()), [ 0, 0, 0, '' ], 'the primary');
is(xet($t, 'verify', $_->{hash})->{code}, 0, 'all is there') for $one, $two;

$copy->stop();
$t->done();
