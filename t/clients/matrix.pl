#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Tests every client in the package registries with one server, and prints a
# table of what works; the latest one is in docs/clients.md.  "make clients"
# installs the clients and runs this script; arguments name the rows to run
# ("hf_xet 1.1").
#
# A cell is "pass", with details where they vary, or "FAIL".  It is "-" if the
# client has no such operation, and "no" if it lacks a feature that other
# clients have.  A pass means that the bytes were right and that the client sent
# the expected requests.
#
# Environment: XET_CLIENTS_MIB is the size of the file in the dedup cells of all
# rows; another machine sends the second version of this file.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Hub;
use Test::Xet::Real;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;
use POSIX qw/ strftime /;

my $MULTI = 'HF_XET_CLIENT_ENABLE_MULTIRANGE_FETCHING';

my $mib = 1048576;
my @wanted = @ARGV;
my @columns = ('upload', 'download', 'range', 'dedup', 'edit',
	'multi-range', 'expired URL', 'broken line', 'v2 -> v1');

my $t = Test::Xet->new(conf => '', workers => 2, log => 'info',
	timeout => 7200);

# a larger file may take longer

$ENV{XET_CLIENT_SECONDS} ||= 120 + 4 * ($ENV{XET_CLIENTS_MIB} || 0);

Test::Xet::Hub::prepare($t);
$t->run();

my $hub = Test::Xet::Hub->new($t);
my $dir = tempdir(CLEANUP => 1);
my $seed = 1;
my (@rows, $failed);

# several ranges of one xorb

my $own = $hub->multi_file();
my $mixed = $own->{data};

# --------------------------------------------------------------------------

my $build = Test::Xet::Real::build();

for my $python (sort { number($a) <=> number($b) }
	glob("$build/clients/hf_xet-*/bin/python"), "$build/venv/bin/python")
{
	hf_xet_row($python) if -x $python;
}

xtool_row() if -x "$build/clients/xtool/bin/xtool";

hub_row() if -x "$build/clients/huggingface_hub/bin/hf";

if (-d "$build/npm/node_modules/\@huggingface/hub") {
	node_row('Node', 'node');
	node_row(chromium(), 'browser') if chromium();
}

print_table();

$hub->stop();
ok(!$failed, 'no failures');
unlike($t->log(), qr/\[(crit|alert|emerg)\]/, 'no alerts logged');
$t->done();

# --------------------------------------------------------------------------
# hf_xet

sub hf_xet_row {
	my ($python) = @_;

	my $version = pip_version($python, 'hf_xet');
	my ($major, $minor) = split(/\./, $version);

	xet_row("hf_xet $version", $major > 1 || $minor >= 5, sub {
		my ($env, @args) = @_;

		return hf_xet({ python => $python, env => $env }, @args)
			// die "it has failed\n";
	});
}

# the xtool command, from the same sources, as published

sub xtool_row {
	my ($version) = `$build/clients/xtool/bin/xtool --version`
		=~ /([\d.]+)/;

	xet_row("xtool $version", 1, sub {
		my ($env, @args) = @_;

		return xtool({ env => $env }, @args)
			// die "it has failed\n";
	});
}

# Fills a row for hf_xet; $run->({ environment }, arguments of hf_xet_run.py)
# runs the client.

sub xet_row {
	my ($name, $session, $run) = @_;

	my $row = row($name) or return;
	my $api = $session ? 'session' : 'legacy';
	my $empty = '';
	my $down = sub {
		my ($server, $hash, $size, $sha256, $env) = @_;

		unlink("$dir/out");
		$run->($env || {}, 'download', $api, $hub->endpoint($server),
			$hash, $size, "$dir/out");

		if ($size == 0 && !-e "$dir/out") {
			$empty = '; writes no empty file';
			return;
		}

		same(sha256_file("$dir/out"), $sha256);
	};

	my $size = 20 * $mib;
	my $file = new_file($size);
	my $sha256 = sha256_file($file);
	my $info;

	cell($row, 'upload', sub {
		my @small = map { new_file($_) } 0, 1, 131073;

		$info = $run->({}, 'upload', $api, $hub->endpoint('plain'),
			$file)->[0];

		my @r = $hub->requests();
		die "no xorb\n" unless xorb_bytes(@r);

		my $infos = $run->({}, 'upload', $api,
			$hub->endpoint('plain'), @small);

		for my $i (0 .. $#small) {
			$down->('plain', $infos->[$i]{hash}, -s $small[$i],
				sha256_file($small[$i]));
		}

		my $same = hash_file(file_slice($file, 0, $size))->{hash}
			eq $info->{hash};

		return how_shards(@r) . $empty
			. ($same ? '' : '; other chunks');
	});

	return unless $info;

	cell($row, 'download', sub {
		$down->('plain', $info->{hash}, $size, $sha256);
		return api_versions($hub->requests());
	});

	cell($row, 'range', sub {
		my @ranges = ([ 0, 1 ], [ 70000, 5000001 ],
			[ $size - 9, $size ]);
		my $got = $run->({}, 'range', $hub->endpoint('plain'),
			$info->{hash}, $size,
			map { "$_->[0]:$_->[1]" } @ranges);

		same($got->[$_]{sha256}, sha256_hex(
			file_slice($file, @{ $ranges[$_] }))) for 0 .. 2;
		return;
	}) if $session;

	cell($row, 'dedup', sub {
		my $second = second_version($file, sub { $run->({}, 'upload',
			$api, $hub->endpoint('plain'), @_) });

		my $got = $run->({}, 'upload', $api,
			$hub->endpoint('plain'), $second)->[0];

		my $note = saved($second, $hub->requests());
		$down->('plain', $got->{hash}, -s $second,
			sha256_file($second));
		return $note;
	});

	cell($row, 'multi-range', sub {
		$down->('ranges', $own->{hash}, length($mixed),
			sha256_hex($mixed), { $MULTI => 'true' });
		return multi($hub->requests());
	});

	cell($row, 'expired URL', sub {
		$down->('expire', $info->{hash}, $size, $sha256);
		return expired($hub->requests());
	});

	cell($row, 'broken line', sub {
		$down->('break', $info->{hash}, $size, $sha256);
		return broken($hub->calls());
	});

	cell($row, 'v2 -> v1', sub {
		my $other = new_file(3 * $mib);
		my $got = $run->({}, 'upload', $api, $hub->endpoint('old'),
			$other)->[0];

		$down->('old', $got->{hash}, 3 * $mib, sha256_file($other));
		return fallback($hub->requests());
	});
}

# --------------------------------------------------------------------------
# huggingface_hub and its command hf

sub hub_row {
	my $python = "$build/clients/huggingface_hub/bin/python";
	my $row = row('huggingface_hub ' . pip_version($python,
		'huggingface_hub') . ', hf') or return;

	my $hf = sub {
		$hub->hf('', @_) or die(($hub->{printed} =~ /(Error.*)/)[0]
			// $hub->{printed}, "\n");
	};
	my $down = sub {
		my ($repo, $path, $file) = @_;

		my $out = tempdir(DIR => $dir);

		$hf->('download', $repo, $path // (), '--local-dir', $out);
		same(sha256_file("$out/" . ($path // 'w.bin')),
			sha256_file($file));
		return $out;
	};

	my $size = 20 * $mib;
	my $file = new_file($size);
	my $folder = tempdir(DIR => $dir);

	system('cp', $file, "$folder/w.bin");
	open(my $small, '>', "$folder/small.txt") or die;
	print $small 'small';
	close($small);

	cell($row, 'upload', sub {
		for my $owner (qw/ alice plain expire break /) {
			$hf->('upload', "$owner/f", $file, 'w.bin');
		}

		my @r = $hub->requests();
		die "no xorb\n" unless xorb_bytes(@r);

		$hf->('upload', 'alice/folder', $folder, '.');
		return 'file, folder; ' . how_shards(@r, $hub->requests());
	});

	cell($row, 'download', sub {
		$down->('alice/f', 'w.bin', $file);
		my $note = api_versions($hub->requests());

		my $out = $down->('alice/folder', undef, $file);
		die "no small file\n" unless -s "$out/small.txt" == 5;
		api_versions($hub->requests());

		return "file, snapshot; $note";
	});

	cell($row, 'dedup', sub {
		my $second = second_version($file, sub {
			$hf->('upload', 'alice/f', @_, 'large.bin') });

		$hf->('upload', 'alice/f', $second, 'v2.bin');
		my $note = saved($second, $hub->requests());
		$down->('alice/f', 'v2.bin', $second);
		return $note;
	});

	cell($row, 'multi-range', sub {
		local $ENV{$MULTI} = 'true';

		my $gap = edited($file, 7 * $mib, 100000);

		$hf->('upload', 'ranges/f', $file, 'w.bin');
		$hf->('upload', 'ranges/f', $gap, 'gap.bin');
		$hub->requests();
		$down->('ranges/f', 'gap.bin', $gap);
		return multi($hub->requests());
	});

	cell($row, 'expired URL', sub {
		$down->('expire/f', 'w.bin', $file);
		return expired($hub->requests());
	});

	cell($row, 'broken line', sub {
		$down->('break/f', 'w.bin', $file);
		return broken($hub->calls());
	});

	cell($row, 'v2 -> v1', sub {
		my $other = new_file(3 * $mib);

		$hf->('upload', 'old/f', $other, 'w.bin');
		$down->('old/f', 'w.bin', $other);
		return fallback($hub->requests());
	});
}

# --------------------------------------------------------------------------
# @huggingface/hub

# Fills a row for Node or for a browser.

sub node_row {
	my ($where, $method) = @_;

	my $json = content("$build/npm/node_modules/\@huggingface/hub/"
		. 'package.json');
	my ($version) = $json =~ /"version": "(.*?)"/;
	my $row = row("\@huggingface/hub $version, $where")
		or return;

	my $node = sub { $hub->$method(@_) // die "it has failed\n" };
	my $repo = $method;
	my $size = 12 * $mib;
	my $file = new_file($size);
	my $down = sub {
		my ($from, $path, $sha256) = @_;

		same($node->($from, 'download', $path)->{sha256}, $sha256);
	};

	cell($row, 'upload', sub {
		my $small = new_file(5);

		for my $owner (qw/ alice old expire break ranges /) {
			$node->("$owner/$repo", 'upload', 'w.bin', $file,
				'small.bin', $small);
		}

		my @r = $hub->requests();
		die "no xorb\n" unless xorb_bytes(@r);
		die "no preflight\n" if $method eq 'browser'
			&& !grep { $_->{method} eq 'OPTIONS'
				&& $_->{status} == 204 } @r;
		return how_shards(@r);
	});

	cell($row, 'download', sub {
		$down->("alice/$repo", 'w.bin', sha256_file($file));
		return api_versions($hub->requests());
	});

	cell($row, 'range', sub {
		my @ranges = ([ 0, 1 ], [ 70000, 5000001 ],
			[ $size - 9, $size ]);
		my $got = $node->("alice/$repo", 'download', 'w.bin',
			map { "$_->[0]:$_->[1]" } @ranges);

		same($got->{ranges}[$_], sha256_hex(
			file_slice($file, @{ $ranges[$_] }))) for 0 .. 2;
		return;
	});

	cell($row, 'dedup', sub {
		my $second = second_version($file, sub { $node->(
			"alice/$repo", 'upload', 'large.bin', @_) });

		$node->("alice/$repo", 'upload', 'v2.bin', $second);
		my $note = saved($second, $hub->requests());
		$down->("alice/$repo", 'v2.bin', sha256_file($second));
		return $note;
	});

	cell($row, 'edit', sub {
		my $data = file_slice($file, 0, $size);
		my @notes;

		for (edits($size)) {
			my ($name, @edits) = @$_;

			$node->("alice/$repo-edit", 'upload', 'w.bin', $file);
			$hub->requests();

			my $new = $data;
			my @args;

			for my $e (reverse @edits) {
				my ($start, $end, $bytes) = @$e;
				my $piece = $bytes ? new_file($bytes) : '';

				substr($new, $start, $end - $start) = $piece
					? file_slice($piece, 0, $bytes) : '';
				push @args, "$start:$end:$piece";
			}

			$node->("alice/$repo-edit", 'edit', 'w.bin',
				reverse @args);

			my @r = $hub->requests();
			die "$name: no file-chunk-hashes\n" unless grep {
				$_->{uri} =~ /file-chunk-hashes/
				&& $_->{status} == 200 } @r;
			my $sent = xorb_bytes(@r);
			die "$name: $sent bytes sent\n" if $sent > $size / 4;

			$down->("alice/$repo-edit", 'w.bin', sha256_hex($new));
			push @notes, $name;
		}

		return join(', ', @notes);
	});

	cell($row, 'multi-range', sub {
		my $got = hub_blob($hub->endpoint('ranges'), $own->{hash},
			length($mixed));

		die "it has failed\n" unless $got;
		same($got->{whole}{sha256}, sha256_hex($mixed));
		return multi($hub->requests());
	}) if $method eq 'node';

	cell($row, 'multi-range', sub {
		my $gap = edited($file, 7 * $mib, 100000);

		$node->("ranges/$repo", 'upload', 'gap.bin', $gap);
		$down->("ranges/$repo", 'gap.bin', sha256_file($gap));
		return multi($hub->requests());
	}) if $method eq 'browser';

	cell($row, 'expired URL', sub {
		$down->("expire/$repo", 'w.bin', sha256_file($file));
		return expired($hub->requests());
	});

	cell($row, 'broken line', sub {
		$down->("break/$repo", 'w.bin', sha256_file($file));
		return broken($hub->calls());
	});

	cell($row, 'v2 -> v1', sub {
		my $got = $hub->$method("old/$repo", 'download', 'w.bin');
		my @r = $hub->requests();

		die "no: 404 is final\n" if !$got && grep { $_->{uri}
			=~ m!^/api/(?:e\d+/)?v2/! && $_->{status} == 404 } @r;
		same($got->{sha256}, sha256_file($file));
		return fallback(@r);
	});
}

# Returns a list of edits: the name, and [ start, end, new bytes ].

sub edits {
	my ($size) = @_;

	return (
		[ 'overwrite', [ 5000000, 5000100, 100 ] ],
		[ 'insert', [ 3000000, 3000000, 70000 ] ],
		[ 'append', [ $size, $size, 50000 ] ],
		[ 'delete', [ 1000000, 1200000, 0 ] ],
		[ 'several', [ 0, 10, 7 ], [ 6000000, 6100000, 0 ],
			[ 9000000, 9000000, 1000 ], [ $size, $size, 10 ] ],
	);
}

# --------------------------------------------------------------------------
# checks of the requests: each returns a note for the cell, or dies

sub same {
	my ($got, $expected) = @_;

	die "other bytes\n" if ($got // '') ne $expected;
}

sub how_shards {
	my %seen;

	for (@_) {
		$seen{$1} = 1 if $_->{method} eq 'POST'
			&& $_->{uri} =~ m!^/api(?:/e\d+)?(.*/?shards?)(/|$)!
			&& $_->{status} == 200;
	}

	die "no shard\n" unless %seen;
	return join(' ', map { m!^/! ? $_ : "/$_" } sort keys %seen);
}

# Returns the versions of the reconstruction route that a download has used.

sub api_versions {
	my %seen;

	for (@_) {
		next unless $_->{uri} =~ /reconstruction/
			&& $_->{uri} =~ m!^/api(?:/e\d+)?(/v\d|/reconstructions?)/!;
		$seen{$1} = 1 if $_->{status} == 200;
	}

	die "no reconstruction\n" unless %seen;
	return join(' ', sort keys %seen);
}

sub saved {
	my ($file, @requests) = @_;

	my $sent = xorb_bytes(@requests);
	my $part = 100 * $sent / -s $file;

	die "nothing sent\n" unless $sent;
	die sprintf("%.0f %% sent\n", $part) if $part > 30;
	return sprintf('%.1f %% sent', $part);
}

sub multi {
	my @data = grep { $_->{uri} =~ m!^/xorbs/! } @_;

	die "no data\n" unless @data;
	return 'single ranges' unless grep { $_->{range} =~ /,/ } @data;
	return;
}

sub expired {
	my @refused = grep { $_->{uri} =~ m!^/xorbs/! && $_->{status} == 403 }
		@_;
	my @asked = grep { $_->{uri} =~ m!/reconstruction! } @_;

	die "nothing was refused\n" unless @refused;
	die "not asked again\n" unless @asked > 1;
	return;
}

sub broken {
	my %seen;

	$seen{$_->[1] =~ s/\?.*//r}++
		for grep { $_->[1] =~ m!^/shim/break/! } @_;

	die "nothing was broken\n" unless %seen;
	die "not asked again\n" if grep { $_ < 2 } values %seen;
	return;
}

sub fallback {
	my %v2 = map { $_->{status} => 1 }
		grep { $_->{uri} =~ m!^/api/(?:e\d+/)?v2/! } @_;

	return 'never asks v2' unless %v2;
	die "v2 is there\n" if $v2{200};
	api_versions(@_);
	return;
}

# --------------------------------------------------------------------------
# files

sub new_file {
	my ($size) = @_;

	$seed++;
	return make_mix("$dir/" . $seed, $seed, $size);
}

# Returns a copy of the file with inserted bytes.

sub edited {
	my ($file, $where, $bytes) = @_;

	return insert_into($file, $where, new_file($bytes));
}

# Returns the second version of the file in a dedup cell.  The first version is
# the file that the row has already sent.  With XET_CLIENTS_MIB, the first
# version is a file of that size, which is sent here.

sub second_version {
	my ($file, $upload) = @_;

	if ($ENV{XET_CLIENTS_MIB}) {
		$file = new_file($ENV{XET_CLIENTS_MIB} * $mib);
		$upload->($file);
		$hub->requests();
	}

	my $second = edited($file, (-s $file) / 2, 100000);

	unlink($file) if $ENV{XET_CLIENTS_MIB};

	return $second;
}

sub content {
	my ($path) = @_;

	open(my $fh, '<', $path) or die "$path: $!\n";
	local $/;

	return <$fh> // '';
}

# --------------------------------------------------------------------------
# rows and cells

sub number {
	my @parts = $_[0] =~ /hf_xet-(\d+)\.(\d+)\.(\d+)/ or return 1e9;

	return $parts[0] * 1e6 + $parts[1] * 1e3 + $parts[2];
}

sub pip_version {
	my ($python, $package) = @_;

	my $version = `$python -c 'import importlib.metadata as m;
print(m.version("$package"))'`;
	chomp($version);

	return $version;
}

sub chromium {
	my ($version) = `chromium --version 2>/dev/null` =~ /(Chromium \d+)/;

	return $version;
}

sub row {
	my ($name) = @_;

	return if @wanted && !grep { index($name, $_) == 0 } @wanted;

	push @rows, { name => $name };
	print "# $name\n";

	return $rows[-1];
}

sub cell {
	my ($row, $column, $code) = @_;

	$hub->requests();
	$hub->calls();

	open(my $stderr, '>&', \*STDERR) or die "dup: $!\n";
	open(STDERR, '>', "$dir/stderr") or die "$dir/stderr: $!\n";

	my $note = eval { $code->() };
	my $error = $@;

	open(STDERR, '>&', $stderr) or die "dup: $!\n";

	if ($error =~ /^no: (.*)/) {
		$row->{$column} = "no ($1)";
		return;
	}

	if ($error) {
		my $text = content("$dir/stderr");

		$failed++;
		chomp($error);
		$row->{$column} = "FAIL: $error";
		print "# $row->{name}, $column: $error\n";
		print map { "#   $_\n" } split(/\n/, substr($text, -2000));
		return;
	}

	$row->{$column} = ($note // '') ne '' ? "pass ($note)" : 'pass';
}

# Prints the table as Markdown.

sub print_table {
	print strftime("\n%Y-%m-%d\n\n", gmtime());

	my @table = map { my $row = $_;
		[ $row->{name}, map { $row->{$_} // '-' } @columns ] } @rows;

	print '| ', join(' | ', 'client', @columns), " |\n";
	print '| ', join(' | ', map { '---' } 0 .. @columns), " |\n";
	print '| ', join(' | ', @$_), " |\n" for @table;
	print "\n";
}
