#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Errors that docker/entrypoint.sh reports before it changes anything: variables
# that would inject directives into a configuration, a missing password, and
# other data in the folder for its PostgreSQL.  docker/run.sh leaves such data
# alone, too.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Process qw/ build_dir free_port root run_command slurp spew /;

use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;

# below /tmp, which postgres and www-data can reach if the test runs as root

my $dir = tempdir('xet-entry-XXXXXX', DIR => '/tmp', CLEANUP => 1);

chmod(0755, $dir);

sub script {
	my ($name, %env) = @_;

	my ($status, $out) = run_command([ 'sh', '-c',
		'exec sh "$0" 2>&1', root() . "/docker/$name" ],
		env => \%env, timeout => 120);

	return ($status >> 8, $out);
}

sub entrypoint {
	return script('entrypoint.sh', AUTH => 'off', DATA => "$dir/data",
		RUN => "$dir/run", SHARE => root() . '/conf', @_);
}

# --------------------------------------------------------------------------
# variables cannot inject directives into a configuration

my @bad = ('http://x;y', "http://x\ny", 'http://x"', "http://x'",
	'http://x{', 'http://x}', 'http://$host', 'http://x#', 'http://x\\');

for my $name (qw/ URL_BASE ADDR EDGE KEYS POSTGRES /) {
	my @taken = grep {
		my ($code, $out) = entrypoint($name => $_);
		$code != 1 || $out !~ /unsupported character in $name;/;
	} @bad;

	is_deeply(\@taken, [], "$name: what is special in a configuration");
}

# --------------------------------------------------------------------------
# a password that cannot be read is an error

my ($code, $out) = entrypoint(POSTGRES => 'host=/none dbname=x',
	MIGRATE => 'no', POSTGRES_PASSWORD_FILE => "$dir/none");

is($code, 1, 'no password');
like($out, qr!^xet-server: cannot read \Q$dir\E/none; set POSTGRES_PASS!m,
	'no password: said');

# --------------------------------------------------------------------------
# a database cluster one folder deeper, as in other container images

my $version = "$dir/data/pg/pgdata/PG_VERSION";

make_path("$dir/data/pg/pgdata");
chmod(0755, "$dir/data");
spew($version, "17\n");

($code, $out) = entrypoint();

is($code, 1, 'data of others');
like($out, qr!data/pg exists and is not a PostgreSQL cluster;!,
	'data of others: said');
is(slurp($version, 1), "17\n", 'data of others: left');

($code, $out) = script('run.sh', DIR => "$dir/data", PORT => free_port(),
	BUILD => build_dir());

is($code, 1, 'make run: data of others');
like($out, qr!data/pg exists and is not a PostgreSQL cluster;!,
	'make run: data of others: said');
is(slurp($version, 1), "17\n", 'make run: data of others: left');

done_testing();
