#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# "make run" and "make stop", in folders and at ports of their own: there and
# back, two side by side, a second run that takes up what is there, a stop that
# stops one of them.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::Xet;
use Test::Xet::HTTP;
use Test::Xet::Process qw/
	alive build_dir free_port root run_command slurp
/;

use File::Path qw/ remove_tree /;
use File::Temp qw/ tempdir /;

# below /tmp, where postgres and www-data get at it when we are root

my @dirs = map { tempdir('xet-run-XXXXXX', DIR => '/tmp') } 1, 2;
my @ports = map { free_port() } @dirs;

chmod(0755, @dirs);

sub script {
	my ($name, $i) = @_;

	return run_command([ 'sh', root() . "/docker/$name.sh" ],
		env => { DIR => $dirs[$i], PORT => $ports[$i],
			BUILD => build_dir() }, timeout => 300, dir => root());
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
	like($out, qr!^Serving at http://127\.0\.0\.1:$ports[$i]/api!m,
		"$name: its URL");
	is(scalar(() = $out =~ /^  (?:curl|\S+python) /mg), 3,
		"$name: three examples");
	like($out, qr/^Stop it with: /m, "$name: how to stop it");
	like($out, qr/bytes, as signed$/m, "$name: there and back");

	$hash ||= ($out =~ /^hash (\w{64})$/m)[0];

	is(get($i, '/api/health')->{status}, 200, "$name: health");
	is(get($i, "/api/v1/reconstructions/$hash")->{status}, 200,
		"$name: the file");
}

my @first = pids(0);
my @second = pids(1);

is(scalar(grep { alive($_) } @first, @second), 4, 'two of each');

my ($status, $out) = script('stop', 0);

is($status, 0, 'stop') or diag($out);
is(scalar(grep { alive($_) } @first), 0, 'it is gone');
is(get(0, '/api/health')->{status}, 0, 'it does not answer');
is(scalar(grep { alive($_) } @second), 2, 'the other one goes on');
is(get(1, '/api/health')->{status}, 200, 'and answers');
is((script('stop', 0))[0], 0, 'stop where nothing runs');

# what is in the folder is all that it needs

($status, $out) = script('run', 0);

is($status, 0, 'started again') or diag($out);
is(get(0, "/api/v1/reconstructions/$hash")->{status}, 200,
	'the file is still there');

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
