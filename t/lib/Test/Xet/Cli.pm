package Test::Xet::Cli;

# Copyright (C) the ngx_http_xet_module authors

# Runs the command line client as a program.
#
#     my $r = xet($t, 'put', '--json', $file);
#
# xet() returns { code, out, err, json => [ objects ] }; code is undef if a
# signal ended the client.  $t is the server that the client uses, and may be
# undef.
#
# Environment:
#
#     XET_TEST_CLI  $XET_BUILD/xet

use warnings;
use strict;

use parent qw/ Exporter /;

use File::Temp qw/ tempdir /;
use JSON::PP ();

use Test::Xet::Bytes ();
use Test::Xet::Process qw/ build_dir patience reap slurp spawn /;

our @EXPORT = qw/ xet xet_start xet_wait /;

sub binary {
	my $binary = $ENV{XET_TEST_CLI} || build_dir() . '/xet';

	die "no $binary: run make cli first\n" unless -x $binary;

	return $binary;
}

# Starts the client.  The first argument may be a hash of options: env => { },
# stdin => file, dir => folder, endpoint => URL, timeout => seconds, ulimit =>
# "-v 1000".

sub xet_start {
	my ($t, @args) = @_;

	my %o = ref $args[0] ? %{ shift @args } : ();
	my ($out, $err) = (Test::Xet::Bytes::scratch(),
		Test::Xet::Bytes::scratch());

	my $endpoint = $o{endpoint} // ($t ? $t->url('/api') : undef);

	my %env = (XET_ENDPOINT => $endpoint // '', XET_TOKEN => '',
		XDG_CACHE_HOME => cache(), %{ $o{env} || {} });

	# the shell redirects standard output and standard error to two files

	my $limit = $o{ulimit} ? "ulimit $o{ulimit}; " : '';

	my $pid = spawn([ '/bin/sh', '-c', $limit . 'exec "$@" 2> "$0"', $err,
		binary(), @args ], output => $out, env => \%env,
		$o{stdin} ? (stdin => $o{stdin}) : (),
		$o{dir} ? (dir => $o{dir}) : ());

	return { pid => $pid, out_file => $out, err_file => $err,
		timeout => $o{timeout} || 120 };
}

sub xet_wait {
	my ($run) = @_;

	my $status = reap($run->{pid}, $run->{timeout});

	if (!defined $status) {
		kill('KILL', $run->{pid});
		reap($run->{pid}, 5);
		$status = 9;
	}

	my $out = slurp($run->{out_file}, 1) // '';
	my $err = slurp($run->{err_file}, 1) // '';

	unlink($run->{out_file}, $run->{err_file});

	my @json = map { eval { JSON::PP->new->utf8->decode($_) } }
		grep { /^\{/ } split(/\n/, $out);

	return { code => $status & 127 ? undef : $status >> 8, out => $out,
		err => $err, json => \@json };
}

# Returns the folder of the client's record of uploads.

{
	my $cache;

	sub cache { return $cache //= tempdir(CLEANUP => 1) }
}

sub xet { return xet_wait(xet_start(@_)) }

1;
