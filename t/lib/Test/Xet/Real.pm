package Test::Xet::Real;

# Copyright (C) the ngx_http_xet_module authors

# Runs the real clients as programs: hf_xet (t/clients/hf_xet_run.py) and
# @huggingface/hub (t/clients/hub_blob.mjs).

use warnings;
use strict;

use parent qw/ Exporter /;

use Digest::SHA;
use File::Temp qw/ tempdir /;
use JSON::PP ();

use Test::Xet::Process qw/ patience root /;

our @EXPORT = qw/
	client_limit file_slice hf_xet hf_xet_start hf_xet_wait hub_blob
	insert_into make_mix sha256_file uploaded xtool
/;

# Returns the command prefix that limits the time of a client.  Clients compute
# a lot, and are many times slower on a busy machine.  XET_CLIENT_SECONDS sets a
# longer limit for larger files.

sub client_limit {
	return ('timeout', int(patience($ENV{XET_CLIENT_SECONDS} || 120)));
}

sub build { return $ENV{XET_BUILD} || root() . '/build' }

# Starts a client.  Calls with the same machine share a client's cache; a call
# without a machine gets its own cache.

sub hf_xet_start {
	my ($o, @args) = @_;

	my $cache = $o->{machine} || tempdir(CLEANUP => 1);
	my $python = $o->{python} || build() . '/venv/bin/python';

	die "no hf_xet in $python, run t/clients/setup.sh\n" unless -x $python;

	local $ENV{HF_XET_CACHE} = $cache;
	local $ENV{HF_XET_CLIENT_RETRY_BASE_DELAY} = '100ms';
	local @ENV{keys %{ $o->{env} || {} }} = values %{ $o->{env} || {} };

	my $script = root() . '/t/clients/hf_xet_run.py';

	open(my $fh, '-|', client_limit(), $python, $script, @args)
		or die "$python: $!\n";

	return $fh;
}

# Returns the client's result, undef on failure.  Old releases of hf_xet log to
# standard output, so the result is the last line.

sub hf_xet_wait {
	my ($fh) = @_;

	local $/;
	my $text = <$fh>;

	return undef unless close($fh);

	my ($line) = $text =~ /([^\n]*)\n\z/;

	return JSON::PP::decode_json($line);
}

sub hf_xet { return hf_xet_wait(hf_xet_start(@_)) }

# Runs xtool of the Rust sources, with the arguments and results of
# hf_xet_run.py.

sub xtool {
	my ($o, $command, @args) = @_;

	shift(@args) if $command ne 'range';

	my $endpoint = shift(@args);
	my $dir = tempdir(CLEANUP => 1);

	return upload_xtool($o, $endpoint, "$dir/json", @args)
		if $command eq 'upload';

	my ($hash, $size, @wanted) = @args;

	return run_xtool($o, $endpoint, 'download', '--size', $size, '-o',
		$wanted[0], $hash) ? {} : undef if $command eq 'download';

	my @found;

	for my $range (@wanted) {
		(my $source = $range) =~ s/:/../;

		unlink("$dir/out");
		run_xtool($o, $endpoint, 'download', '--size', $size, '-o',
			"$dir/out", '--source-range', $source, $hash)
			or return undef;

		push @found, { length => -s "$dir/out",
			sha256 => sha256_file("$dir/out") };
	}

	return \@found;
}

sub upload_xtool {
	my ($o, $endpoint, $json, @files) = @_;

	run_xtool($o, $endpoint, 'upload', '--output', $json, @files)
		or return undef;

	open(my $fh, '<', $json) or return undef;
	local $/;

	return [ map { { hash => $_->{xet_info}{hash},
		size => $_->{xet_info}{file_size} } }
		@{ JSON::PP::decode_json(<$fh>) } ];
}

sub run_xtool {
	my ($o, $endpoint, @args) = @_;

	local $ENV{HF_XET_CACHE} = $o->{machine} || tempdir(CLEANUP => 1);
	local $ENV{HF_XET_CLIENT_RETRY_BASE_DELAY} = '100ms';
	local @ENV{keys %{ $o->{env} || {} }} = values %{ $o->{env} || {} };

	return system(client_limit(), build() . '/clients/xtool/bin/xtool',
		'--quiet', '--endpoint', $endpoint, '--token', 'none', 'file',
		@args) == 0;
}

# Returns the command of the newer Node.js that t/clients/setup.sh installs, or
# else of the system's Node.js.

sub node_program {
	my $newer = build() . '/npm/node_modules/.bin/node';

	return -x $newer ? $newer : 'node';
}

sub hub_blob {
	my (@args) = @_;

	my $npm = build() . '/npm';

	die "no client in $npm, run t/clients/setup.sh\n" unless -d $npm;

	open(my $fh, '-|', client_limit(), node_program(),
		root() . '/t/clients/hub_blob.mjs', $npm, @args)
		or die "node: $!\n";

	return hf_xet_wait($fh);
}

# log_bytes() returns the options of a server that logs request sizes;
# uploaded() returns the bytes of all xorb uploads in that log.

sub log_bytes {
	return (http => 'log_format bytes "$request_method $uri $status '
		. '$request_length $http_user_agent";'
		. 'access_log %%DIR%%/bytes.log bytes;');
}

sub uploaded {
	my ($t) = @_;

	my $sum = 0;

	for (split(/\n/, $t->read_file('bytes.log'))) {
		$sum += $1 if m!^POST \S*/xorbs/\S+ 200 (\d+)\b!;
	}

	return $sum;
}

# Makes a file of mixed data, which may be too large for memory.

sub make_mix {
	my ($path, $seed, $size) = @_;

	my $tool = build() . '/tools/xet_make';

	system("$tool mix $seed $size > $path") == 0 or die "xet_make: $?\n";

	return $path;
}

# Inserts bytes of one file into another; returns the name of a third file.

sub insert_into {
	my ($file, $where, $new) = @_;

	my $out = "$new-in";
	my $rest = $where + 1;

	system("{ head -c $where $file; cat $new; tail -c +$rest $file; }"
		. " > $out") == 0 or die "$out: $?\n";

	return $out;
}

sub sha256_file {
	my ($path) = @_;

	return Digest::SHA->new(256)->addfile($path, 'b')->hexdigest();
}

sub file_slice {
	my ($path, $start, $end) = @_;

	my $data = '';

	open(my $fh, '<:raw', $path) or die "$path: $!\n";
	seek($fh, $start, 0) or die "$path: $!\n";
	read($fh, $data, $end - $start) // die "$path: $!\n";

	return $data;
}

1;
