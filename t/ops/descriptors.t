#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# File descriptors: with the shipped configuration a worker serves more xorbs
# than the usual limit of open files.  Limits that are too low are reported at
# start-up.  When descriptors run out, no data is treated as lost.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ run_command /;

use constant XORBS => 1100;

# Sets the soft limit that nginx gets from most shells and services; the hard
# limit is not changed.

my ($status, $out) = run_command([ 'prlimit', '--pid', $$,
	'--nofile=1024:' ]);
plan skip_all => "prlimit: $out" if $status;

my $t = Test::Xet->new(workers => 1, timeout => 900);
my $seed = 0;

$t->write_conf($t->shipped_conf());
$t->run();

my @xorbs = map { $t->put_xorb(random_bytes(++$seed, 1000)) } 1 .. XORBS;
my ($file) = $t->put_file(map { [ $_, 0, 1 ] } @xorbs);

is(scalar(@xorbs), XORBS, 'xorbs');

sub put {
	return $t->http('PUT', '/api/v1/files', {},
		\random_bytes(++$seed, 200000));
}

sub descriptors {
	opendir(my $dir, '/proc/' . ($t->worker_pids())[0] . '/fd') or die $!;

	return scalar(grep { !/^\./ } readdir($dir));
}

# --------------------------------------------------------------------------
# the shipped configuration

my $d = $t->download($file->{hash}, size => XORBS * 1000);

is_deeply([ $d->{status}, $d->{errors} ], [ 200, [] ],
	'each xorb by a data URL');

is($t->get("/api/v1/files/$file->{hash}")->{status}, 200, 'GET of the file');
is(put()->{status}, 200, 'PUT of another');
is($t->get('/api/health')->{status}, 200, 'health');

cmp_ok(descriptors(), '>', XORBS, 'they are open, all of them');

$t->stop();

# --------------------------------------------------------------------------
# unsuitable limits are reported at start-up, also with the default level of
# error_log

sub warned {
	my ($http, $main, %o) = @_;

	my ($good, $output) = $t->config_test(undef, http => $http,
		main => $main, log => 'error', %o);

	diag($output) unless $good;
	$output =~ s/^(?!.*open_file_cache).*\n//mg;

	return $output;
}

my $cache = 'open_file_cache max=10000 inactive=10m;';

like(warned($cache, ''), qr/\[warn\].*xet:\ 512\ worker_connections\ and
	\ 10000\ files\ of\ open_file_cache\ need\ 11088\ descriptors,
	\ but\ a\ worker\ has\ 1024:/x, 'the limit of the shell');
like(warned($cache, 'worker_rlimit_nofile 11087;'), qr/ has 11087: /,
	'worker_rlimit_nofile, one too few');
is(warned($cache, 'worker_rlimit_nofile 11088;'), '', 'as many as it needs');
is(warned('', ''), '', 'no cache');
is(warned('open_file_cache off;', 'worker_rlimit_nofile 10;'), '', 'off');

# the worker shrinks the cache to keep descriptors for connections

$t->write_conf(undef, log => 'info', connections => 64, http => $cache,
	main => 'worker_rlimit_nofile 400;');
$t->run();

like($t->log(), qr/\[warn\].*open_file_cache of 10000 .* reduced to 208: /,
	'the cache is cut');
$d = $t->download($file->{hash}, size => XORBS * 1000);

is_deeply([ $d->{status}, $d->{errors} ], [ 200, [] ], 'a download');
is(put()->{status}, 200, 'PUT');
cmp_ok(descriptors(), '<', 272, 'descriptors');
$t->stop();

# --------------------------------------------------------------------------
# descriptors run out: 503, no data is treated as lost, and service resumes

$t->write_conf(undef, log => 'info', connections => 300, http => '',
	main => 'worker_rlimit_nofile 100;');
$t->allow(qr/\(24: Too many open files\)/);
$t->run();

my $c = $t->connect();

is($c->exchange('PUT', '/api/v1/files', {}, \random_bytes(++$seed, 200000))
	->{status}, 200, 'all is well');

my $from = $t->log_size();
my @idle = map { $t->connect() } 1 .. 120;

ok($t->wait_log(qr/accept4?\(\) failed \(24: /, 10, $from), 'none left');

# when a thread closes the file of the PUT, a connection gets its descriptor

ok(wait_for(10, sub {
	return descriptors() >= 100 && sleep(1) && descriptors() >= 100;
}), 'still none left');

for my $case ([ 'GET', "/api/v1/files/$file->{hash}" ],
	[ 'PUT', '/api/v1/files', {}, \random_bytes(++$seed, 200000) ])
{
	my $r = $c->exchange(@$case);

	is_deeply([ @{ $r->refusal() }, $r->header_value('Retry-After') ],
		[ 503, 'application/json', 'overloaded', 5 ], $case->[0]);
}

my $log = substr($t->log(), $from);

like($log, qr/\[crit\].*xet: xorb \S+: its file can't be opened \(24/,
	'the log says why');
unlike($log, qr/can't be read/, 'nothing is lost');

undef @idle;

ok(wait_for(10, sub {
	$c->exchange('GET', "/api/v1/files/$file->{hash}")->{status} == 200
}), 'the file is readable again');
is(put()->{status}, 200, 'and uploads succeed');

$t->done();
