#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# "make run" and "make stop" start and stop two servers with separate folders
# and ports.  A second run takes over a running server, and a stop of one server
# leaves the other one running.  The test also covers processes that remain
# after a kill, ports in use, and addresses.  It runs the commands of README.md
# and docs/install.md that follow "sh docker/run.sh", all in one shell.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::HTTP;
use Test::Xet::Process qw/
	alive build_dir children free_port root run_command slurp spew wait_for
/;

use File::Path qw/ remove_tree /;
use File::Temp qw/ tempdir /;
use IO::Socket::INET ();

# below /tmp, which postgres and www-data can reach if the test runs as root

my @dirs = map { tempdir('xet-run-XXXXXX', DIR => '/tmp') } 1, 2;
my @ports = map { free_port() } @dirs;

chmod(0755, @dirs);

sub script {
	my ($name, $i, %env) = @_;

	return run_command([ 'sh', root() . "/docker/$name.sh" ],
		env => { DIR => $dirs[$i], PORT => $ports[$i],
			BUILD => build_dir(), %env },
		timeout => 300, dir => root());
}

# Runs docker/run.sh, which must succeed.

sub runs {
	my ($name, $i, %env) = @_;

	my ($status, $out) = script('run', $i, %env);

	is($status, 0, "$name: runs") or diag($out);
	is(get($i, $_)->{status}, 200, "$name: $_")
		for qw! /api/health /metrics /status !;

	return $out;
}

# Returns the ids of the process and of all its descendants.

sub family {
	my ($pid) = @_;

	return ($pid, map { family($_) } children($pid));
}

# Returns the scheme, host and port of xorb URLs in a response to a request with
# this Host.

sub base {
	my ($i, $hash, $host) = @_;

	my $r = Test::Xet::HTTP->request($ports[$i], 'GET',
		"/api/v1/reconstructions/$hash", { Host => $host });

	return ($r->{body} =~ m!"url":"(.*?)/xorbs/!)[0];
}

sub get {
	my ($i, $uri) = @_;

	return eval { Test::Xet::HTTP->request($ports[$i], 'GET', $uri) }
		|| { status => 0 };
}

sub pids {
	my ($i) = @_;

	return map { (slurp("$dirs[$i]/$_", 1) // '') =~ /\A(\d+)/ }
		'nginx/nginx.pid', 'pg/postmaster.pid';
}

my ($hash, @seen);

for my $i (0, 1, 0) {
	my $name = 'server ' . ($i + 1) . ($seen[$i]++ ? ' again' : '');
	my ($status, $out) = script('run', $i);

	is($status, 0, "$name: runs") or diag($out);
	like($out, qr!^The server runs at http://127\.0\.0\.1:$ports[$i]/api!m,
		"$name: its URL");
	is(scalar(() = $out =~ /^  (?:curl|\S+python) /mg), 3,
		"$name: three examples");
	like($out, qr!^Open in a browser: +http://127\.0\.0\.1:$ports[$i]/$!m,
		"$name: the page");
	like($out, qr!export HF_ENDPOINT=http://127\.0\.0\.1:$ports[$i]$!m,
		"$name: HF_ENDPOINT");
	like($out, qr/^Stop the server with: .*\n\z/m, "$name: how to stop it");
	like($out, qr/bytes, the signed range$/m, "$name: there and back");

	$hash ||= ($out =~ /^hash (\w{64})$/m)[0];

	is(get($i, '/api/health')->{status}, 200, "$name: health");
	is(get($i, "/api/v1/reconstructions/$hash")->{status}, 200,
		"$name: the file");
}

# --------------------------------------------------------------------------
# the commands of README.md and docs/install.md after "sh docker/run.sh"

SKIP: {
	my ($readme) = slurp(root() . '/README.md')
		=~ /^## The first model\n(.*?)^## Documents\n/ms;
	my ($install) = slurp(root() . '/docs/install.md')
		=~ /^## Try it\n(.*?)^## From packages\n/ms;
	my @blocks = "$readme$install" =~ /^```sh\n(.*?)^```$/gms;
	my $build = build_dir();

	is(scalar @blocks, 4, 'README: commands');

	skip('README: no hf_xet', 1) if (run_command([
		"$build/venv/bin/python", '-c',
		'import hf_xet, huggingface_hub' ]))[0] != 0;

	my $script = join('', "set -eux\n", @blocks);

	$script =~ s!127\.0\.0\.1:8080!127.0.0.1:$ports[0]!g;
	$script =~ s!/tmp/!$dirs[0]/!g;
	$script =~ s!\./\.run/!$dirs[0]/!g;
	$script =~ s!^build/!$build/!gm;

	my ($status, $out) = run_command([ 'sh', '-c', $script ],
		env => { BUILD => $build,
			HF_HOME => "$dirs[0]/home",
			HF_XET_CACHE => "$dirs[0]/cache" },
		timeout => 300, dir => root());

	is($status, 0, 'README: all of them work') or diag($out);
}

my @first = pids(0);
my @second = pids(1);

is(scalar(grep { alive($_) } @first, @second), 4, 'two of each');

my ($status, $out) = script('stop', 0);

is($status, 0, 'stop') or diag($out);
is($out, "stop: stopped nginx and PostgreSQL in $dirs[0]\n",
	'stop: what it stopped');
is(scalar(grep { alive($_) } @first), 0, 'it is gone');
is(get(0, '/api/health')->{status}, 0, 'it does not answer');
is(scalar(grep { alive($_) } @second), 2, 'the other server still runs');
is(get(1, '/api/health')->{status}, 200, 'and answers');

($status, $out) = script('stop', 0);
is($status, 0, 'stop where nothing runs');
is($out, "stop: no server was running in $dirs[0]\n",
	'stop where nothing runs: reported');

# a stopped server is started again in the same folder

($status, $out) = script('run', 0);

is($status, 0, 'started again') or diag($out);
is(get(0, "/api/v1/reconstructions/$hash")->{status}, 200,
	'the file is still there');

is(base(0, $hash, "localhost:$ports[0]"), "http://localhost:$ports[0]",
	'URLs have the name that the client used');
is(base(0, $hash, 'other.example'), undef, 'another host name is refused');

# --------------------------------------------------------------------------
# a killed master leaves its workers, which hold the port

sub killed_master {
	my ($pid) = pids(0);
	my @all = family($pid);

	cmp_ok(scalar @all, '>', 1, 'workers');
	kill('KILL', $pid);
	ok(wait_for(10, sub { !alive($pid) }), 'the master is killed');
	is(get(0, '/api/health')->{status}, 200, 'its workers still serve');

	return @all;
}

my @left = killed_master();

runs('nginx killed', 0);
is(scalar(grep { alive($_) } @left), 0, 'nginx killed: the old ones are gone');
is(get(0, "/api/v1/reconstructions/$hash")->{status}, 200,
	'nginx killed: the file');

@left = killed_master();

is((script('stop', 0))[0], 0, 'nginx killed: stop');
is(scalar(grep { alive($_) } @left), 0, 'nginx killed: nothing is left');

# the process ids in both files now belong to another process

runs('stopped', 0);
(undef, my $postmaster) = pids(0);
script('stop', 0);

spew("$dirs[0]/nginx/nginx.pid", "$$\n");
spew("$dirs[0]/pg/postmaster.pid", "$$\n$dirs[0]/pg\n");

runs('numbers of others', 0);
ok(alive($$), 'numbers of others: not killed');

# the postmaster is killed; one of its children is stopped, and does not exit

(undef, $postmaster) = pids(0);
@left = family($postmaster);
kill('STOP', $left[-1]);
kill('KILL', $postmaster);
ok(wait_for(20, sub { 1 == grep { alive($_) } @left }),
	'PostgreSQL killed: one is left');

runs('PostgreSQL killed', 0);
is(scalar(grep { alive($_) } @left), 0, 'PostgreSQL killed: it is gone');
is(get(0, "/api/v1/reconstructions/$hash")->{status}, 200,
	'PostgreSQL killed: the file');

# --------------------------------------------------------------------------
# a port in use is reported before anything is built

my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)
	or die "socket: $!\n";
my $none = "$dirs[1]/build";

for my $i (0, 1) {
	my $port = $i ? $taken->sockport() : $ports[1];
	my $name = $i ? 'taken by somebody' : 'taken by another of ours';

	($status, $out) = script('run', 0, PORT => $port, BUILD => $none);

	is($status >> 8, 1, "$name: does not run");
	like($out, qr/^run: port $port of 127\.0\.0\.1 is in use; set PORT=\d/m,
		"$name: says so");
	ok(!-e $none, "$name: has built nothing");
	is(get(0, '/api/health')->{status}, 200, "$name: it still runs");
}

for (
	[ 'no port', { PORT => 'http' }, qr/^run: PORT must be a number/ ],
	[ 'no address', { ADDR => '192.0.2.1' }, qr/cannot listen on 192/ ],
	[ 'no URL', { URL => 'http://x;' }, qr/^run: unsupported character/ ])
{
	my ($name, $env, $why) = @$_;

	($status, $out) = script('run', 0, %$env, BUILD => $none);

	is($status >> 8, 1, "$name: does not run");
	like($out, $why, "$name: says so");
}

# --------------------------------------------------------------------------
# arguments

sub arguments {
	my ($name, @args) = @_;

	return run_command([ 'sh', root() . "/docker/$name.sh", @args ],
		env => { DIR => $dirs[0], PORT => $ports[0], BUILD => $none },
		dir => root());
}

for my $name (qw/ run stop /) {
	($status, $out) = arguments($name, '--help');
	is($status, 0, "$name --help");
	like($out, qr/^usage: .*docker\/$name\.sh/, "$name --help: the usage");

	for my $arg ('--frob', 'frob') {
		($status, $out) = arguments($name, $arg);
		is($status >> 8, 2, "$name $arg: refused");
		like($out, qr/\Q$arg\E/, "$name $arg: named");
	}
}

is(get(0, '/api/health')->{status}, 200, 'arguments: it still runs');

for my $args ([ '--port', $ports[1] ], [ "--port=$ports[1]" ]) {
	($status, $out) = arguments('run', @$args);
	is($status >> 8, 1, "@$args: in use");
	like($out, qr/^run: port $ports[1] /m, "@$args: instead of PORT");
}

like((arguments('run', '--port'))[1], qr/--port requires an argument/,
	'--port without a value');
like((arguments('run', '--port', '70000'))[1], qr/from 1 to 65535/,
	'--port 70000');
ok(!-e $none, 'arguments: nothing was built');

# --------------------------------------------------------------------------
# a parallel build that fails is continued with one job, and ends with the error

mkdir("$dirs[0]/bin");
spew("$dirs[0]/bin/make", << 'END');
#!/bin/sh
case $* in
*"-j 1 "*) echo 'x.c:1: error: the error' >&2 ;;
*) echo 'x.c:1: error: early' >&2; echo '  cc y.c' ;;
esac
exit 2
END
chmod(0755, "$dirs[0]/bin/make");

($status, $out) = script('run', 0, PATH => "$dirs[0]/bin:$ENV{PATH}");
is($status >> 8, 1, 'a build that fails');
like($out, qr/x\.c:1: error: the error\nrun: the build failed; .*\n\z/,
	'a build that fails: the error comes last');
is(get(0, '/api/health')->{status}, 200, 'a build that fails: it still runs');

# --------------------------------------------------------------------------
# addresses, and the URLs that clients get

runs('all addresses', 0, ADDR => '0.0.0.0', HOSTS => 'xet.example b.example');
is(base(0, $hash, 'xet.example:99'), 'http://xet.example:99',
	'all addresses: URLs are as the client has asked');

$out = runs('all addresses, a URL', 0, ADDR => '0.0.0.0',
	URL => 'https://xet.example');
is(base(0, $hash, 'b.example'), undef, 'a URL: no name of before');
like($out, qr!^The server runs at https://xet\.example/api,!m,
	'a URL: it is shown');
is(base(0, $hash, 'localhost'), 'https://xet.example',
	'a URL: clients get it');

($status, $out) = script('run', 0, ADDR => '127.0.0.2');
is($status, 0, 'another address: runs') or diag($out);
like($out, qr!^The server runs at http://127\.0\.0\.2:$ports[0]/api,!m,
	'another address: it is shown');
like($out, qr/^hash $hash$/m, 'another address: there and back');

for my $i (0, 1) {
	is((script('stop', $i))[0], 0, 'stop');
	is(scalar(grep { alive($_) } pids($i)), 0, 'nothing is left');
}

done_testing();

END {
	my $code = $?;

	for my $i (0 .. $#dirs) {
		script('stop', $i) if -d $dirs[$i];
		remove_tree($dirs[$i]);
	}

	$? = $code;
}
