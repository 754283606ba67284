#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Errors that docker/entrypoint.sh reports before it changes anything: variables
# that would inject directives into a configuration, unsuitable owners, a
# missing password, and other data in the folder for its PostgreSQL.
# docker/run.sh leaves such data alone, too.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Nginx;
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
# users and their name spaces

for (
	[ 'no owner', { OWNERS => 'alice' }, qr/OWNERS must be .* "alice"/ ],
	[ 'a pattern', { OWNERS => 'a=te*' }, qr/OWNERS must be .* "a=te\*"/ ],
	[ 'upper case', { OWNERS => 'Al=x' }, qr/lower case, not "Al=x"/ ],
	[ 'a line', { OWNERS => "a=b;}\nx=y" }, qr/OWNERS must be/ ],
	[ 'twice', { OWNERS => 'a=b a=c' }, qr/has the user a twice/ ],
	[ 'without tokens', { OWNERS => 'a=b', AUTH => 'off' },
		qr/OWNERS requires AUTH=token/ ],
	[ 'public', { PUBLIC => 'yes' }, qr/PUBLIC must be on or off/ ])
{
	my ($name, $env, $why) = @$_;
	my ($code, $out) = entrypoint(AUTH => 'token', %$env);

	is($code, 1, "owners: $name: refused");
	like($out, $why, "owners: $name: the reason");
}

# Another nginx loads the module here, so the test writes its path.

entrypoint(AUTH => 'token', POSTGRES => 'host=/none dbname=x',
	MIGRATE => 'no', PUBLIC => 'on', PORT => free_port(),
	URL_BASE => 'http://xet.example',
	OWNERS => 'alice=team default=lab,team include=* ');

my $conf = slurp("$dir/run/nginx.conf");
my $module = Test::Xet::Nginx::module();

like($conf, qr/^ +"=default" "lab,team";$/m,
	'owners: a user with the name of a parameter');
like($conf, qr/^ +xet_hub_public on;$/m, 'public: on');

$conf =~ s/^load_module .*$/$module ? "load_module $module;" : ''/me;
spew("$dir/run/nginx.conf", $conf);

my ($tested, $said) = run_command([ Test::Xet::Nginx::binary(), '-e', 'stderr',
	'-t', '-q', '-p', "$dir/run", '-c', "$dir/run/nginx.conf" ]);

is($tested, 0, 'owners: nginx -t') or diag($said);

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
